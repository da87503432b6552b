//! NVIDIA's assembler takes the PTX of every kernel of the library, which keeps what it adds up in registers.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the macros write names the facade, whose kernel language is this crate's.
extern crate perpetua_language as perpetua;

use half::{bf16, f16};
use perpetua_device::KernelSpec as _;
use perpetua_kernels::ptx::{PtxHalf, PtxKernel, PtxModule};
use perpetua_kernels::{
    AttentionKernel, CrossEntropyBackwardKernel, CrossEntropyKernel, DequantizeKernel, Element, Factors,
    GemmKernel, Kernel, LayerNormBackwardKernel, LayerNormKernel, PagedAttentionKernel, Pages, QuantFormat,
    QuantGemmKernel, QuantGemvKernel, QuantizeKernel, RmsNormBackwardKernel, RmsNormKernel,
    SoftmaxBackwardKernel, SoftmaxKernel,
};
use perpetua_vendor_tools::{Assembled, nvdisasm, ptxas};

#[path = "kernels_ptx/beside.rs"]
mod beside;
#[path = "kernels_ptx/epilogues.rs"]
mod epilogues;

/// Assembles a kernel; it may use so many registers. A register or two may wait in memory; a variable of several numbers may not.
fn check(kernel: &dyn Kernel, registers: u32) {
    check_stack(kernel, registers, 16);
}

/// The same with less than so many bytes in memory.
fn check_stack(kernel: &dyn Kernel, registers: u32, bytes: u32) {
    let name = kernel.name();
    let Some(assembled) = ptxas(&kernel.emit_ptx(), "sm_90a").required(name).unwrap() else {
        return;
    };
    let usage = &assembled.usage[0];
    println!("{usage:?}");
    assert!(
        usage.stack_bytes < bytes,
        "{name}: sums that lie in memory are slow: {usage:?}"
    );
    assert!(usage.registers <= registers, "{name}: {usage:?}");
}

#[test]
fn products() {
    check(&GemmKernel::naive(64, 64, 64), 64);
    for (tile, registers) in [(16, 64), (32, 64), (64, 96), (128, 168)] {
        for transposed in [(false, false), (false, true), (true, false), (true, true)] {
            let kernel = GemmKernel::tiled(512, 512, 512, tile);
            check(&kernel.with_transposed(transposed.0, transposed.1), registers);
        }
    }
}

#[test]
fn tensor_cores() {
    for transposed in [(false, false), (false, true), (true, false), (true, true)] {
        for element in [Element::F16, Element::Bf16] {
            // Two blocks of 128 x 128 sums have room in a multiprocessor where they read 16 bytes at a time.
            for (pitch, columns, registers) in
                [(512, 128, 128), (509, 128, 168), (512, 256, 232), (509, 256, 255)]
            {
                let kernel = GemmKernel::tensor_core(512, pitch, pitch)
                    .with_element(element)
                    .with_transposed(transposed.0, transposed.1)
                    .with_tile_columns(columns);
                check(&kernel, registers);
                assert!(kernel.emit_ptx().contains("ldmatrix.sync.aligned.m8n8.x4"));
            }
        }
    }
}

#[test]
fn staged() {
    for (i, (rows, columns)) in [(256, 256), (128, 256), (128, 128), (64, 128), (128, 64)]
        .into_iter()
        .enumerate()
    {
        for (j, transposed) in [(false, false), (false, true), (true, false), (true, true)]
            .into_iter()
            .enumerate()
        {
            let element = [Element::F16, Element::Bf16][(i + j) % 2];
            let kernel = GemmKernel::staged(512, 512, 512)
                .with_element(element)
                .with_transposed(transposed.0, transposed.1)
                .with_tile(rows, columns);
            // C is written 16 bytes at a time, two elements, or one.
            let odd = kernel.with_pitches(512, 512, 513);
            for kernel in [kernel, kernel.with_scales(1.0, 1.0), odd] {
                let ptx = kernel.ptx_for(90).unwrap();
                let Some(assembled) = assembled_in_stages("staged", &ptx, 0) else {
                    return;
                };
                let Some(code) = nvdisasm(&assembled.cubin).required("staged").unwrap() else {
                    continue;
                };
                let is_high = rows >= 128;
                assert_eq!(code.contains("USETMAXREG.TRY_ALLOC"), is_high, "{code}");
                assert_eq!(code.contains("USETMAXREG.DEALLOC"), is_high, "{code}");
                assert!(code.contains("UTMALDG.3D"), "{code}");
                assert_eq!(code.contains("UTMALDG.3D.MULTICAST"), rows == 256, "{code}");
                // Whoever has multiplied says so without waiting for other accesses to memory.
                let (_, behind) = code.split_once("HGMMA").unwrap();
                let (between, _) = behind.split_once("SYNCS.ARRIVE").unwrap();
                assert!(!between.contains("MEMBAR"), "{between}");
                // Sums stay where they are: four products follow each other in one loop.
                assert_eq!(
                    code.matches(&format!("HGMMA.64x{columns}x16.F32")).count(),
                    4,
                    "{code}"
                );
            }
        }
    }
}

/// Factors that C does not hold, and sums that are promoted, which lanes have twice.
#[test]
fn staged_factors() {
    let tiles = [(256, 256), (128, 256), (128, 128), (128, 64)];
    let promoted = [(256, 128), (128, 128), (64, 128), (128, 64)];
    let all = [
        (Factors::Tf32, Element::F32, tiles, false),
        (Factors::I8, Element::F32, tiles, false),
        (Factors::E4m3, Element::Bf16, tiles, false),
        (Factors::E5m2, Element::F32, promoted, true),
        (Factors::E4m3, Element::F16, promoted, true),
    ];
    for (factors, element, tiles, promotes) in all {
        for (rows, columns) in tiles {
            // C is written 16 bytes at a time, or in less.
            for n in [512, 511] {
                let mut kernel = GemmKernel::staged(512, n, 512)
                    .with_element(element)
                    .with_factors(factors)
                    .with_transposed(false, true)
                    .with_tile(rows, columns);
                if promotes {
                    kernel = kernel.with_promoted_sums();
                }
                let ptx = kernel.ptx_for(90).unwrap();
                let what = format!("{factors:?} {rows} x {columns}");
                let Some(assembled) = assembled_in_stages(&what, &ptx, 0) else {
                    return;
                };
                let Some(code) = nvdisasm(&assembled.cubin).required("factors").unwrap() else {
                    continue;
                };
                let instruction = match factors {
                    Factors::I8 => format!("IGMMA.64x{columns}x32"),
                    Factors::Tf32 => format!("HGMMA.64x{columns}x8"),
                    _ => format!("QGMMA.64x{columns}x32"),
                };
                assert_eq!(code.matches(&instruction).count(), 4, "{code}");
                assert_eq!(code.contains("UTMALDG.3D.MULTICAST"), rows == 256, "{code}");
            }
        }
    }
}

/// What the assembler makes of a text in stages, where there is one: lanes keep no more than so many bytes in memory, and it does not complain of products that wait for each other.
fn assembled_in_stages(what: &str, text: &str, bytes: u32) -> Option<Assembled> {
    let assembled = ptxas(text, "sm_90a").required("attention").unwrap()?;
    let usage = &assembled.usage[0];
    println!("{what}: {usage:?}");
    assert!(usage.stack_bytes <= bytes, "{what}: {usage:?}");
    // It says so where products wait for each other, or where lanes do not get the registers that they ask for.
    let complaints = ["serializ", "C75", "setmaxnreg", "warning"];
    let complains = complaints.iter().find(|word| assembled.log.contains(**word));
    assert_eq!(complains, None, "{what}: {}", assembled.log);
    Some(assembled)
}

/// Two blocks of a multiprocessor are at work at the same time, but of the widest heads.
#[test]
fn decoding_in_stages() {
    for dim in [64, 128, 256] {
        for rows in [16, 64] {
            let pages = Pages {
                count: 100,
                rows,
                of_entry: 10,
            };
            let kernel = PagedAttentionKernel::new(4, 8, dim, pages)
                .with_element([Element::F16, Element::Bf16][rows / 64])
                .in_stages();
            let what = format!("{dim} columns, pages of {rows}");
            let Some(assembled) = assembled_in_stages(&what, &kernel.ptx_for(90).unwrap(), 0) else {
                return;
            };
            let most = if dim == 256 { 255 } else { 128 };
            assert!(assembled.usage[0].registers <= most, "{what}");
        }
    }
}

/// Windows, bounds, slopes and heads of 256 columns: no lane keeps sums in memory, and no product waits for another one.
#[test]
fn attention_of_all_kinds() {
    for dim in [64, 128, 256] {
        for kind in 0..16 {
            // All of 256 columns, of others some.
            if dim != 256 && !matches!(kind, 2 | 3 | 7 | 13 | 15) {
                continue;
            }
            let mut kernel = AttentionKernel::new(1, 8, [512, 500], dim)
                .with_element([Element::F16, Element::Bf16][kind / 2 % 2])
                .in_stages();
            if kind & 1 != 0 {
                kernel = kernel.causal();
            }
            if kind & 2 != 0 {
                kernel = kernel.with_window(100);
            }
            if kind & 4 != 0 {
                kernel = kernel.with_soft_cap(30.0);
            }
            if kind & 8 != 0 {
                kernel = kernel.with_slopes();
            }
            let ptx = kernel.ptx_for(90).unwrap();
            if assembled_in_stages(&format!("{dim} columns, {kind}"), &ptx, 0).is_none() {
                return;
            }
        }
    }
}

#[test]
fn attention_in_stages() {
    for dim in [64, 128] {
        for element in [Element::F16, Element::Bf16] {
            let kernel = AttentionKernel::new(1, 8, [512, 512], dim)
                .with_element(element)
                .in_stages();
            for kernel in [kernel, kernel.causal()] {
                let ptx = kernel.ptx_for(90).unwrap();
                let Some(assembled) = assembled_in_stages(&format!("{dim} columns"), &ptx, 0) else {
                    return;
                };
                let Some(code) = nvdisasm(&assembled.cubin).required("attention").unwrap() else {
                    continue;
                };
                // Queries with keys, in steps of 16 columns, then weights with values, in steps of 16 keys.
                // In turns with masks and in the others; where two products are under way, also in the first turn or the last one.
                let products = |columns: usize| code.matches(&format!("HGMMA.64x{columns}x16.F32")).count();
                let expected = if dim == 64 {
                    [3 * 4, 3 * 8]
                } else {
                    [3 * (8 + 8), 0]
                };
                assert_eq!([products(128), products(64)], expected, "{code}");
                assert_eq!(code.matches("UTMALDG.3D").count(), 3 * dim / 64, "{code}");
                // Lanes wait for the product with keys, and make weights of it before they wait for the one with values.
                let overlapped: Vec<&str> = code.split("DEPBAR.LE gsb0, 0x1").skip(1).collect();
                assert_eq!(overlapped.len(), 2, "{code}");
                for behind in overlapped {
                    let (meanwhile, _) = behind.split_once("DEPBAR.LE gsb0, 0x0").unwrap();
                    assert!(meanwhile.matches("MUFU.EX2").count() >= 64, "{code}");
                }
            }
        }
    }
}

/// Four products a stage, none of which waits for another one, and lanes keep a few words in memory at most.
#[test]
fn attention_gradients_in_stages() {
    for dim in [64, 128] {
        for kind in 0..8 {
            let mut kernel = AttentionKernel::new(1, 8, [512, 500], dim)
                .with_element([Element::F16, Element::Bf16][kind / 4])
                .in_stages();
            if kind & 1 != 0 {
                kernel = kernel.causal();
            }
            if kind & 2 != 0 {
                kernel = kernel.with_window(100);
            }
            let backward = kernel.backward();
            for function in [backward.function(), backward.function_of_queries()] {
                // SAFETY: nothing is launched.
                let function = unsafe { function.unchecked() };
                let sm = perpetua_ir::back::Sm::of_device(9, 0);
                let ptx = perpetua_ir::back::ptx::render(&function.verified(64).unwrap(), sm).unwrap();
                // Outside of the loops lanes may keep a few words in memory.
                if assembled_in_stages(&format!("{dim} columns, {kind}"), &ptx.text, 64).is_none() {
                    return;
                }
            }
        }
    }
}

#[test]
fn rows() {
    for columns in [100, 1000, 4000, 5000] {
        for element in [Element::F32, Element::F16, Element::Bf16] {
            // Of 64 registers a lane 32 hold its numbers: three others wait in memory. The least variable that must not has eight numbers.
            let softmax = SoftmaxKernel::new(10, columns).with_element(element);
            check_stack(&softmax, 64, 32);
            check_stack(&softmax.log(), 64, 32);
            check(&LayerNormKernel::new(10, columns, 1e-5).with_element(element), 64);
            check(&RmsNormKernel::new(10, columns, 1e-5).with_element(element), 64);
            // The next numbers wait in registers, too.
            check_stack(
                &CrossEntropyKernel::new(10, columns).with_element(element),
                64,
                32,
            );
            check(
                &CrossEntropyBackwardKernel::new(10, columns).with_element(element),
                64,
            );
            // A lane holds two numbers of each column.
            check(
                &SoftmaxBackwardKernel::new(10, columns).with_element(element),
                128,
            );
            let rms = RmsNormBackwardKernel::new(10, columns, 1e-5).with_element(element);
            check(&rms, 128);
            check(&rms.with_residual(), 128);
            check(
                &LayerNormBackwardKernel::new(10, columns, 1e-5).with_element(element),
                128,
            );
        }
    }
}

#[test]
fn attention() {
    for (dim, registers) in [(64, 128), (128, 168), (256, 255)] {
        for element in [Element::F32, Element::F16, Element::Bf16] {
            let kernel = AttentionKernel::new(1, 8, [512, 512], dim).with_element(element);
            check(&kernel, registers);
            check(&kernel.causal(), registers);
        }
    }
}

#[test]
fn attention_gradients() {
    for (dim, registers) in [(64, 255), (128, 255)] {
        for element in [Element::F16, Element::Bf16] {
            let kernel = AttentionKernel::new(1, 8, [512, 512], dim).with_element(element);
            for kernel in [kernel, kernel.with_soft_cap(30.0).with_slopes()] {
                check(&kernel.backward(), registers);
                check(&kernel.backward().with_atomic_sums(), registers);
            }
            let ptx = kernel.backward().emit_ptx();
            assert!(ptx.contains("ldmatrix.sync.aligned.m8n8.x4.trans"));
            // SAFETY: nothing is launched.
            let of_queries = unsafe { kernel.backward().function_of_queries().unchecked() };
            let ptx = perpetua_ir::back::ptx::render(&of_queries.verified(64).unwrap(), 90).unwrap();
            let Some(assembled) = ptxas(&ptx.text, "sm_90a").required("queries").unwrap() else {
                return;
            };
            let usage = &assembled.usage[0];
            println!("{usage:?}");
            assert_eq!((usage.stack_bytes, usage.spill_store_bytes), (0, 0), "{usage:?}");
        }
    }
    for (dim, registers) in [(64, 168), (128, 255)] {
        let kernel = AttentionKernel::new(1, 8, [512, 512], dim);
        check(&kernel.backward(), registers);
    }
}

#[test]
fn attention_to_pages() {
    let pages = Pages {
        count: 100,
        rows: 16,
        of_entry: 10,
    };
    for (dim, registers) in [(64, 128), (128, 168), (256, 255)] {
        for element in [Element::F16, Element::Bf16] {
            let kernel = PagedAttentionKernel::new(10, 32, dim, pages).with_key_heads(8);
            check(&kernel.with_element(element), registers);
        }
    }
}

#[test]
fn quantised_weights() {
    for format in QuantFormat::ALL {
        check(&DequantizeKernel::new(format, 1024), 64);
        check(&QuantGemvKernel::new(format, 64, 1024), 96);
        check(&QuantGemmKernel::new(format, 64, 64, 1024), 128);
        // Its search picks scales by number: those may lie in memory.
        let ptx = QuantizeKernel::new(format, 1024).emit_ptx();
        ptxas(&ptx, "sm_90a").required("quantize").unwrap();
    }
}

/// Every instruction of the builder, in one kernel.
fn all_instructions(k: &mut perpetua_kernels::ptx::PtxBuilder) {
    let (a, b) = (k.param::<f32>("a"), k.param::<f64>("b"));
    let (i, j) = (k.param::<i32>("i"), k.param::<u64>("i"));
    let (x, y) = (k.buffer::<f16>("x"), k.buffer_mut::<bf16>("y"));
    let z = k.buffer_mut::<f32>("z");
    let at = k.global_id_x();
    let (tx, ty) = (k.thread_idx_x(), k.thread_idx_y());
    let (bx, by) = (k.block_idx_y(), k.block_dim_y());
    let (gx, lane) = (k.grid_dim_x(), k.subgroup_lane());
    let mut sum = k.add(tx, ty);
    for v in [bx, by, gx, lane] {
        let next = k.xor(sum, v);
        let next = k.or(next, at);
        let next = k.and(next, sum);
        let next = k.shl(next, v);
        let next = k.shr(next, at);
        sum = k.mad(next, v, tx);
    }
    let half = k.load(&x, at);
    let wide = k.convert::<f16, f32>(half);
    let narrow = k.convert::<f32, bf16>(wide);
    k.store(&y, j, narrow);
    let back = k.load(&y, i);
    let back = k.convert::<bf16, f64>(back);
    let back = k.div(back, b);
    let back = k.sqrt(back);
    let back = k.convert::<f64, f32>(back);
    let back = k.ex2_approx(back);
    let (least, most) = (k.min(back, a), k.max(back, a));
    let (less, equal) = (k.lt(least, most), k.eq(least, most));
    let (other, other_2) = (k.ne(i, i), k.ge(j, j));
    let (third, fourth) = (k.le(least, most), k.gt(sum, at));
    let mut all = k.both(less, equal);
    for condition in [other, other_2, third, fourth] {
        all = k.both(all, condition);
    }
    let shared = k.shared::<f32>(100);
    k.store_shared(&shared, tx, most);
    k.sync();
    let from = k.load_shared(&shared, ty);
    let chosen = k.select(all, from, least);
    let counter = k.var(at);
    k.repeat(
        |k| {
            let now = k.get(&counter);
            let end = k.constant(10u32);
            k.lt(now, end)
        },
        |k| {
            let now = k.get(&counter);
            let one = k.constant(1u32);
            let next = k.add(now, one);
            k.set(&counter, next);
        },
    );
    let end = k.get(&counter);
    let product = k.mul(chosen, a);
    let difference = k.sub(product, chosen);
    k.when(all, |k| k.store(&z, end, difference));
}

fn one_product<T: PtxHalf>() -> PtxKernel {
    PtxKernel::build("product", |k| {
        let (a, b) = (k.buffer::<T>("a"), k.buffer::<T>("b"));
        let c = k.buffer_mut::<f32>("c");
        let (left, right) = (k.shared::<T>(256), k.shared::<T>(128));
        let lane = k.subgroup_lane();
        let (value, other) = (k.load(&a, lane), k.load(&b, lane));
        k.store_shared(&left, lane, value);
        k.store_shared(&right, lane, other);
        k.sync();
        let eight = k.constant(8u32);
        let row = k.mul(lane, eight);
        let (l, r) = (k.load_matrix_a(&left, row), k.load_matrix_b(&right, row));
        let zero = k.constant(0.0f32);
        let d = k.mma(l, r, [zero; 4]);
        for value in d {
            k.store(&c, lane, value);
        }
    })
}

#[test]
fn single_instructions() {
    let module = PtxModule::new().with(PtxKernel::build("all", all_instructions));
    ptxas(&module.emit_ptx(), "sm_90a")
        .required("all instructions")
        .unwrap();
    for kernel in [one_product::<f16>(), one_product::<bf16>()] {
        let Some(assembled) = ptxas(&kernel.emit_ptx(), "sm_80").required("mma").unwrap() else {
            return;
        };
        if let Some(code) = nvdisasm(&assembled.cubin).required("mma").unwrap() {
            assert!(code.contains("HMMA") && code.contains("LDSM"), "{code}");
        }
    }
}
