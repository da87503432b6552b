//! Cells of launches: arguments, shapes, shared memory, order. What operators compute is other cells' business.

use perpetua_ir::back::Capability;
use perpetua_ir::ir::{Access, Place, Scalar, Type};

use super::kernels::{self, compile, guarded};
use super::{Cell, Check, Need, fails, same, same_all};
use crate::args;
use crate::device::Device;
use crate::dim::{Dim3, LaunchConfig};
use crate::error::Error;
use crate::kernel::Module;
use crate::source::{CompileOptions, KernelSource};

pub(super) fn cells() -> Vec<Cell> {
    let cells = vec![
        Cell::new("launches/a lane for each element", each_element),
        Cell::new("launches/three dimensions", three_dimensions),
        Cell::new("launches/grids with nothing in them", empty_grids),
        Cell::new("launches/more groups than 65535", many_groups),
        Cell::new("launches/parts of buffers as arguments", parts_as_arguments),
        Cell::new("launches/one buffer twice", one_buffer_twice),
        Cell::new("launches/one buffer three times", |d| three_of(d, [0, 0, 0])),
        Cell::new("launches/buffers that overlap in part", overlaps_in_part),
        Cell::new("launches/clusters and all blocks at the same time", together),
        Cell::new("launches/value arguments", values),
        Cell::new("launches/wide value arguments", wide_values)
            .needs(Need::Capability(Capability::Int64))
            .needs(Need::Capability(Capability::Float64)),
        Cell::new("launches/small elements", small_elements),
        Cell::new("launches/shared memory and barriers", |d| reverse(d, false)),
        Cell::new("launches/dynamic shared memory", |d| reverse(d, true))
            .needs(Need::Capability(Capability::DynamicShared)),
        Cell::new("launches/in order with copies", in_order),
        Cell::new("launches/buffers dropped in flight", dropped_in_flight),
        Cell::new("launches/in graphs", in_graphs),
        Cell::new("launches/IR text", ir_text),
        Cell::new("launches/mapped buffers", mapped).needs(Need::MappedMemory),
    ];
    cells.into_iter().map(|c| c.needs(Need::Compute)).collect()
}

fn each_element(device: &Device) -> Check {
    let index = kernels::index(device)?;
    for (len, block) in [
        (1usize, 1),
        (1, 64),
        (63, 64),
        (64, 64),
        (65, 64),
        (100_003, 256),
        (1000, 7),
    ] {
        let out = device.full(len, 77u32)?;
        device.launch(&index, LaunchConfig::linear(len, block), args![&out])?;
        let expect: Vec<u32> = (0..len as u32).collect();
        same_all(&format!("{len} lanes by {block}"), &out.read()?, &expect)?;
    }
    Ok(())
}

fn three_dimensions(device: &Device) -> Check {
    let volume = kernels::volume(device)?;
    for (extent, block) in [
        ((5, 3, 2), (4, 2, 2)),
        ((64, 1, 9), (8, 8, 1)),
        ((1, 100, 3), (1, 16, 4)),
    ] {
        let (extent, block) = (Dim3::from(extent), Dim3::from(block));
        let out = device.full(extent.count() as usize, u32::MAX)?;
        let config = LaunchConfig::volume(extent, block);
        device.launch(&volume, config, args![&out, extent.x, extent.y, extent.z])?;
        let expect: Vec<u32> = (0..extent.count() as u32).collect();
        same_all(&format!("{extent} by {block}"), &out.read()?, &expect)?;
    }
    Ok(())
}

fn empty_grids(device: &Device) -> Check {
    let index = kernels::index(device)?;
    let out = device.full(10, 5u32)?;
    for grid in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)] {
        device.launch(&index, LaunchConfig::new(grid, 32), args![&out])?;
    }
    same("untouched", out.read()?, vec![5; 10])?;
    let empty = device.alloc::<u32>(0)?;
    device.launch(&index, LaunchConfig::new(1, 32), args![&empty])?;
    Ok(device.synchronize()?)
}

fn many_groups(device: &Device) -> Check {
    let count = kernels::count(device)?;
    for grid in [
        Dim3::new(70_001, 1, 1),
        Dim3::new(65_536, 2, 1),
        Dim3::new(300, 300, 3),
    ] {
        let out = device.zeros::<u32>(1)?;
        device.launch(&count, LaunchConfig::new(grid, 2), args![&out])?;
        same(
            &format!("lanes of {grid} by 2"),
            out.read()?,
            vec![grid.count() as u32 * 2],
        )?;
    }
    Ok(())
}

fn parts_as_arguments(device: &Device) -> Check {
    let affine = kernels::affine(device)?;
    let x = device.upload(&(0..300u32).collect::<Vec<_>>())?;
    for (from, to, len) in [(0, 0, 1), (1, 3, 50), (63, 65, 100), (7, 0, 293)] {
        let y = device.full(300, 9u32)?;
        let (source, target) = (x.slice(from..from + len)?, y.slice(to..to + len)?);
        device.launch(
            &affine,
            LaunchConfig::linear(300, 64),
            args![&source, &target, 3u32, 1u32],
        )?;
        let mut expect = vec![9; 300];
        for i in 0..len {
            expect[to + i] = (from + i) as u32 * 3 + 1;
        }
        same_all(&format!("{len} from {from} to {to}"), &y.read()?, &expect)?;
    }
    Ok(())
}

fn one_buffer_twice(device: &Device) -> Check {
    let affine = kernels::affine(device)?;
    let x = device.upload(&(0..100u32).collect::<Vec<_>>())?;
    // Read and written as a whole, then its halves.
    device.launch(&affine, LaunchConfig::linear(100, 64), args![&x, &x, 2u32, 0u32])?;
    let (low, high) = (x.slice(..50)?, x.slice(50..)?);
    device.launch(
        &affine,
        LaunchConfig::linear(50, 64),
        args![&low, &high, 1u32, 1u32],
    )?;
    let expect: Vec<u32> = (0..50).map(|i| 2 * i).chain((0..50).map(|i| 2 * i + 1)).collect();
    same_all("content", &x.read()?, &expect)
}

/// Three buffers of 64 elements that begin at these elements of one.
fn three_of(device: &Device, starts: [usize; 3]) -> Check {
    let kernel = kernels::three_buffers(device)?;
    let before: Vec<u32> = (0..192).map(|i| i * i).collect();
    let x = device.upload(&before)?;
    let part = |start: usize| x.slice(start..start + 64);
    let (a, b, out) = (part(starts[0])?, part(starts[1])?, part(starts[2])?);
    device.launch(&kernel, LaunchConfig::new(1, 64), args![&a, &b, &out])?;
    let mut expect = before.clone();
    for t in 0..64 {
        expect[starts[2] + t] = before[starts[0] + t] * 3 + before[starts[1] + 63 - t];
    }
    same_all(&format!("from {starts:?}"), &x.read()?, &expect)
}

fn overlaps_in_part(device: &Device) -> Check {
    // Of the three each pair, each pair but one, and none.
    for starts in [[0, 16, 32], [0, 0, 16], [32, 0, 0], [0, 40, 80], [0, 64, 128]] {
        three_of(device, starts)?;
    }
    Ok(())
}

fn together(device: &Device) -> Check {
    let (volume, limits) = (kernels::volume(device)?, device.info().limits);
    let grid = LaunchConfig::new((4, 2, 1), 32);
    let largest = grid.with_cluster((limits.max_cluster.min(4), 1, 1));
    for (config, can) in [
        (grid.with_cluster((2, 1, 1)), limits.max_cluster >= 2),
        (grid.with_cluster((2, 2, 1)), limits.max_cluster >= 4),
        (largest, true),
        (grid.cooperative(), limits.cooperative),
    ] {
        let out = device.full(256, 7u32)?;
        let launched = device.launch(&volume, config, args![&out, 128u32, 2u32, 1u32]);
        if can {
            launched?;
            same_all(
                &format!("{config:?}"),
                &out.read()?,
                &(0..256).collect::<Vec<u32>>(),
            )?;
        } else {
            fails(
                &format!("{config:?}"),
                launched,
                |e| matches!(e, Error::Unsupported { backend, .. } if *backend == device.backend()),
            )?;
            same("untouched", out.read()?, vec![7; 256])?;
        }
    }
    Ok(())
}

fn values(device: &Device) -> Check {
    let kernel = compile(device, "values", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let flag = k.param("flag", Type::BOOL);
        let narrow = k.param("narrow", Type::Scalar(Scalar::I8));
        let f = k.param("f", Type::F32);
        let small = k.param("small", Type::Scalar(Scalar::U16));
        let triple = k.param("triple", Type::array(Type::U32, 3));
        let i = k.param("i", Type::I32);
        let words = [
            k.cast(Scalar::U32, flag)?,
            k.cast(Scalar::U32, narrow)?,
            k.op(perpetua_ir::ir::Op::Bitcast(Scalar::U32, f))?,
            k.cast(Scalar::U32, small)?,
            k.op(perpetua_ir::ir::Op::Extract(triple, 2))?,
            k.op(perpetua_ir::ir::Op::Bitcast(Scalar::U32, i))?,
        ];
        for (at, word) in words.into_iter().enumerate() {
            let at = k.u32(at as u32);
            k.store(Place::element(out, at), word)?;
        }
        Ok(())
    })?;
    let out = device.zeros::<u32>(6)?;
    let one = LaunchConfig::new(1, 1);
    device.launch(
        &kernel,
        one,
        args![&out, true, -2i8, -0.5f32, 65_535u16, [1u32, 2, 3], i32::MIN],
    )?;
    let expect = vec![1, -2i32 as u32, (-0.5f32).to_bits(), 65_535, 3, 1 << 31];
    same("as words", out.read()?, expect)
}

fn wide_values(device: &Device) -> Check {
    let kernel = compile(device, "wide_values", |k| {
        let u64_ty = Type::Scalar(Scalar::U64);
        let out = k.buffer("out", u64_ty.clone(), Access::ReadWrite);
        let flag = k.param("flag", Type::BOOL);
        let u = k.param("u", u64_ty);
        let narrow = k.param("narrow", Type::Scalar(Scalar::U8));
        let f = k.param("f", Type::Scalar(Scalar::F64));
        let words = [
            k.cast(Scalar::U64, flag)?,
            u,
            k.cast(Scalar::U64, narrow)?,
            k.op(perpetua_ir::ir::Op::Bitcast(Scalar::U64, f))?,
        ];
        for (at, word) in words.into_iter().enumerate() {
            let at = k.u32(at as u32);
            k.store(Place::element(out, at), word)?;
        }
        Ok(())
    })?;
    let out = device.zeros::<u64>(4)?;
    let big = usize::MAX / 3;
    device.launch(
        &kernel,
        LaunchConfig::new(1, 1),
        args![&out, true, big, 200u8, -1.5f64],
    )?;
    same(
        "as words",
        out.read()?,
        vec![1, big as u64, 200, (-1.5f64).to_bits()],
    )
}

fn small_elements(device: &Device) -> Check {
    // Neighbouring lanes store to neighbouring bytes; buffers begin and end inside words.
    for scalar in [Scalar::U8, Scalar::U16] {
        let kernel = compile(device, &format!("small_{scalar}"), |k| {
            let out = k.buffer("out", Type::Scalar(scalar), Access::ReadWrite);
            guarded(k, out, |k, i| {
                let v = k.cast(scalar, i)?;
                k.store(Place::element(out, i), v)
            })
        })?;
        let config = LaunchConfig::linear(1003, 64);
        for (start, len) in [(0usize, 1003usize), (1, 1000), (2, 5), (3, 1)] {
            let what = format!("{len} of {scalar} at {start}");
            if scalar == Scalar::U8 {
                let out = device.full(1003, 0xaau8)?;
                device.launch(&kernel, config, args![&out.slice(start..start + len)?])?;
                let mut expect = vec![0xaa; 1003];
                (0..len).for_each(|i| expect[start + i] = i as u8);
                same_all(&what, &out.read()?, &expect)?;
            } else {
                let out = device.full(1003, 0xaaaau16)?;
                device.launch(&kernel, config, args![&out.slice(start..start + len)?])?;
                let mut expect = vec![0xaaaa; 1003];
                (0..len).for_each(|i| expect[start + i] = i as u16);
                same_all(&what, &out.read()?, &expect)?;
            }
        }
    }
    Ok(())
}

fn reverse(device: &Device, dynamic: bool) -> Check {
    let kernel = kernels::reverse(device, dynamic)?;
    let x = device.upload(&(0..640u32).collect::<Vec<_>>())?;
    let config = LaunchConfig::linear(640, 64).with_shared_bytes(if dynamic { 256 } else { 0 });
    device.launch(&kernel, config, args![&x])?;
    let expect: Vec<u32> = (0..10)
        .flat_map(|b| (0..64).rev().map(move |t| b * 64 + t))
        .collect();
    same_all("reversed", &x.read()?, &expect)
}

fn in_order(device: &Device) -> Check {
    let affine = kernels::affine(device)?;
    let stream = device.create_stream()?;
    let (x, y) = (device.zeros::<u32>(50_000)?, device.zeros::<u32>(50_000)?);
    device.synchronize()?;
    for i in 0..50u32 {
        // Small and large launches, copies and fills, each needing the one before.
        stream.launch(
            &affine,
            LaunchConfig::linear(50_000, 256),
            args![&x, &y, 1u32, 1u32],
        )?;
        stream.copy(&y, &x)?;
        stream.launch(&affine, LaunchConfig::new(1, 1), args![&x, &y, 1u32, i])?;
    }
    let last = stream.read(&y)?;
    same("first", last[0], 50 + 49)?;
    same_all("others", &last[1..], &[50; 49_999])
}

fn dropped_in_flight(device: &Device) -> Check {
    let affine = kernels::affine(device)?;
    let result = device.zeros::<u32>(100_000)?;
    for round in 0..20u32 {
        let x = device.full(100_000, round)?;
        let y = device.alloc::<u32>(100_000)?;
        let config = LaunchConfig::linear(100_000, 256);
        device.launch(&affine, config, args![&x, &y, 2u32, 1u32])?;
        drop(x);
        device.launch(&affine, config, args![&y, &result, 1u32, 0u32])?;
    }
    same_all("the last round", &result.read()?, &[39; 100_000])
}

fn in_graphs(device: &Device) -> Check {
    let affine = kernels::affine(device)?;
    let stream = device.create_stream()?;
    let (x, y) = (device.full(1000, 1u32)?, device.zeros::<u32>(1000)?);
    device.synchronize()?;
    let graph = stream.capture(|s| {
        // The same launch twice with other values: a graph keeps arguments, not places.
        s.launch(&affine, LaunchConfig::linear(1000, 64), args![&x, &y, 2u32, 0u32])?;
        s.launch(&affine, LaunchConfig::linear(1000, 64), args![&y, &x, 1u32, 1u32])
    })?;
    for _ in 0..5 {
        stream.launch_graph(&graph)?;
    }
    // x = 2 x + 1, five times.
    same_all("replayed", &stream.read(&x)?, &[63; 1000])
}

fn ir_text(device: &Device) -> Check {
    let text = "kernel text(out: buffer<u32, read_write>) source \"text.ir\" {\n  \
        %0: u32 = thread_idx.x @2\n  store out[%0], %0 @3\n}\n";
    let module: Module = device.compile(&KernelSource::IrText(text), &CompileOptions::default())?;
    let kernel = module.kernel("text")?;
    let out = device.full(8, 9u32)?;
    device.launch(&kernel, LaunchConfig::new(1, 8), args![&out])?;
    same("content", out.read()?, (0..8).collect())
}

fn mapped(device: &Device) -> Check {
    let affine = kernels::affine(device)?;
    let (x, y) = (device.mapped::<u32>(100)?, device.mapped::<u32>(100)?);
    (0..100).try_for_each(|i| x.store(i, i as u32))?;
    device.launch(&affine, LaunchConfig::linear(100, 64), args![&x, &y, 2u32, 1u32])?;
    device.synchronize()?;
    (0..100).try_for_each(|i| same(&format!("element {i}"), y.load(i)?, 2 * i as u32 + 1))
}
