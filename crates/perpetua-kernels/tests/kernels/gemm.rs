//! Products of matrices.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua::prelude::*;
use perpetua_device::{BackendKind, args};
use perpetua_ir::back::Capability;
use perpetua_kernels::{Beside, E4m3, E5m2, Epilogue, Factors, GemmKernel, Kernel, reference};

use crate::harness::{Case, Stored, compare, in_f64};

/// Adds what stands beside an element, and keeps it from falling below -1.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(crate) struct Bounded {
    unit: u8,
}

#[device]
impl Epilogue for Bounded {
    fn apply(element: f32, beside: f32) -> f32 {
        (element + beside).max(-1.0)
    }
}

pub(crate) fn naive(case: &mut Case) -> Result<(), Failed> {
    product(case, |_, [m, n, k]| GemmKernel::naive(m, n, k))
}

pub(crate) fn tiled(case: &mut Case) -> Result<(), Failed> {
    product(case, |case, [m, n, k]| {
        let tile = case.one_of(&[1, 16, 32, 64, 64, 128]);
        GemmKernel::tiled(m, n, k, tile)
    })
}

/// Of few rows or columns, as they are asked for, and as products by tensor cores find them.
pub(crate) fn thin(case: &mut Case) -> Result<(), Failed> {
    (case.thin, case.aligned, case.deep) = (true, case.chance(2), case.chance(2));
    product(case, |_, [m, n, k]| GemmKernel::thin(m, n, k))
}

pub(crate) fn tensor_core(case: &mut Case) -> Result<(), Failed> {
    let kernel = |case: &mut Case, [m, n, k]: [usize; 3]| {
        GemmKernel::tensor_core(m, n, k).with_tile_columns(case.one_of(&[128, 256]))
    };
    if !case.device.info().capabilities.contains(&Capability::Matrices) {
        let x = case.device.zeros::<f16>(64)?;
        let refused =
            GemmKernel::tensor_core(8, 8, 8).launch(&case.device.default_stream(), args![&x, &x, &x]);
        return match refused {
            Err(e) if e.to_string().contains(&Capability::Matrices.to_string()) => Ok(()),
            other => Err(format!("without matrices: {other:?}").into()),
        };
    }
    case.aligned = case.chance(2);
    match case.chance(2) {
        true => product_of::<f16>(case, kernel),
        false => product_of::<bf16>(case, kernel),
    }
}

pub(crate) fn staged(case: &mut Case) -> Result<(), Failed> {
    if !has_stages(case)? {
        return Ok(());
    }
    let kernel = |case: &mut Case, [m, n, k]: [usize; 3]| {
        let [rows, columns] = case.one_of(&TILES);
        let kernel = GemmKernel::staged(m, n, k).with_tile(rows, columns);
        kernel.with_slices(case.one_of(&[1, 1, 2, 3]))
    };
    (case.aligned, case.deep) = (case.chance(2), case.chance(2));
    match case.chance(2) {
        true => product_of::<f16>(case, kernel),
        false => product_of::<bf16>(case, kernel),
    }
}

/// Several products in one launch, of which all may have the same A or B.
pub(crate) fn batched(case: &mut Case) -> Result<(), Failed> {
    if !has_stages(case)? {
        return Ok(());
    }
    let aligned = case.chance(2);
    let unit = if aligned { 8 } else { 1 };
    let [m, n, deep] = [(); 3].map(|()| {
        case.one_of(&[1, 17, 65, 128, 128, 130usize])
            .next_multiple_of(unit)
    });
    let k = if case.chance(6) { 0 } else { deep };
    let (batch, transposed) = (1 + case.below(3), [case.chance(2), case.chance(2)]);
    let is_shared = [case.chance(4), case.chance(4)];
    let gaps = [(); 3].map(|()| unit * case.below(3));
    let sizes = [m * k, k * n, m * n];
    let apart: [usize; 3] = std::array::from_fn(|i| match is_shared.get(i) {
        Some(true) => 0,
        _ => sizes[i] + gaps[i],
    });
    let [a, b] = [0, 1].map(|i| -> Vec<f32> {
        let len = (batch - 1) * apart[i] + sizes[i];
        (0..len).map(|_| bf16::from_f32(case.number()).to_f32()).collect()
    });
    let beside: Vec<f32> = (0..batch * m * n).map(|_| case.number()).collect();
    let finishes = case.chance(2);
    let stored = |x: &[f32]| -> Vec<bf16> { x.iter().copied().map(bf16::from_f32).collect() };
    let (a_buffer, b_buffer) = (case.device.upload(&stored(&a))?, case.device.upload(&stored(&b))?);
    let x_buffer = case.device.upload(&beside)?;
    let c = case.device.full((batch - 1) * apart[2] + m * n, -7.0f32)?;
    let mut kernel = GemmKernel::staged(m, n, k)
        .with_factors(Factors::Bf16)
        .with_element(perpetua_kernels::Element::F32)
        .with_transposed(transposed[0], transposed[1])
        .with_batch(batch, apart);
    let mut all = args![&a_buffer, &b_buffer].to_vec();
    if finishes {
        kernel = kernel.with_epilogue::<Bounded>(Beside::Elements);
        all.push(x_buffer.arg());
    }
    all.push(c.arg());
    kernel.launch(&case.device.default_stream(), &all)?;
    let found = c.read()?;
    for layer in 0..batch {
        let part = |x: &[f32], i: usize| in_f64(&x[layer * apart[i]..][..sizes[i]]);
        let products = reference::gemm([m, n, k], transposed, &part(&a, 0), &part(&b, 1));
        let expected: Vec<(f64, f64)> = products
            .into_iter()
            .enumerate()
            .map(|(at, (sum, size))| {
                let x = f64::from(beside[layer * m * n + at]);
                let number = if finishes { (sum + x).max(-1.0) } else { sum };
                (number, (k as f64 + 4.0) * 2.4e-7 * (size + 1.0))
            })
            .collect();
        let what = format!("{kernel:?}, product {layer}");
        compare::<f32>(&what, &found[layer * apart[2]..][..m * n], &expected)?;
        let gap = found.iter().skip(layer * apart[2] + m * n).take(gaps[2]);
        if gap.clone().any(|x| *x != -7.0) {
            return Err(format!("{what}: what stands behind it has changed").into());
        }
    }
    Ok(())
}

/// Factors that C does not hold.
pub(crate) fn staged_factors(case: &mut Case) -> Result<(), Failed> {
    if !has_stages(case)? {
        return Ok(());
    }
    let kernel = |case: &mut Case, [m, n, k]: [usize; 3]| {
        let [rows, columns] = case.one_of(&TILES);
        let kernel = GemmKernel::staged(m, n, k)
            .with_tile(rows, columns)
            .with_slices(case.one_of(&[1, 1, 2, 3]));
        if case.chance(3) {
            kernel.with_promoted_sums()
        } else {
            kernel
        }
    };
    fn thrice(case: &mut Case, size: [usize; 3]) -> GemmKernel {
        let slices = case.one_of(&[1, 1, 2, 3]);
        GemmKernel::staged(size[0], size[1], size[2])
            .with_slices(slices)
            .with_3xtf32()
    }
    (case.aligned, case.deep) = (case.chance(2), case.chance(2));
    match case.below(11) {
        10 => product_kept::<f32, f32>(case, Some(Factors::Tf32), !0, thrice),
        8 => product_with::<f16, f32>(case, Some(Factors::F16), kernel),
        9 => product_with::<bf16, f32>(case, Some(Factors::Bf16), kernel),
        0 => product_with::<f32, f32>(case, Some(Factors::Tf32), kernel),
        1 => product_with::<i8, i32>(case, Some(Factors::I8), kernel),
        2 => product_with::<E5m2, f32>(case, Some(Factors::E5m2), kernel),
        3 => product_with::<E5m2, bf16>(case, Some(Factors::E5m2), kernel),
        4 => product_with::<E5m2, f16>(case, Some(Factors::E5m2), kernel),
        5 => product_with::<E4m3, f32>(case, Some(Factors::E4m3), kernel),
        6 => product_with::<E4m3, f16>(case, Some(Factors::E4m3), kernel),
        _ => product_with::<E4m3, bf16>(case, Some(Factors::E4m3), kernel),
    }
}

pub(crate) const TILES: [[usize; 2]; 6] = [
    [256, 256],
    [128, 256],
    [256, 128],
    [128, 128],
    [64, 128],
    [128, 64],
];

/// Whether the device multiplies in stages; where not, that it says so.
pub(crate) fn has_stages(case: &Case) -> Result<bool, Failed> {
    if case.device.info().capabilities.contains(&Capability::Stages) {
        return Ok(true);
    }
    let x = case.device.zeros::<f16>(64)?;
    let refused = GemmKernel::staged(8, 8, 8).launch(&case.device.default_stream(), args![&x, &x, &x]);
    match refused {
        Err(e) if e.to_string().contains(&Capability::Stages.to_string()) => Ok(false),
        other => Err(format!("without stages: {other:?}").into()),
    }
}

/// Where each element lies, exactly: one factor picks rows or columns of the other, which has numbers that tell them apart.
pub(crate) fn staged_places(case: &mut Case) -> Result<(), Failed> {
    if !has_stages(case)? {
        return Ok(());
    }
    let stream = case.device.default_stream();
    let (mut wrong, mut launches) = (Vec::new(), 0);
    for transposed in [[false, true], [false, false], [true, true], [true, false]] {
        for [m, n, k] in [
            [128, 256, 64],
            [64, 64, 16],
            [128, 256, 320],
            [264, 520, 72],
            [1000, 600, 200],
        ] {
            for picks_rows in [true, false] {
                launches += 1;
                let [rows, columns] = TILES[launches % 6];
                let picked = |i: usize| (i * 7 + 3) % k;
                let number = |i: usize, j: usize| ((i * 37 + j * 5) % 2048) as f32;
                // `op(A)` of m x k and `op(B)` of k x n.
                let left = |i: usize, j: usize| match picks_rows {
                    true => f32::from(u8::from(j == picked(i))),
                    false => number(i, j),
                };
                let right = |i: usize, j: usize| match picks_rows {
                    true => number(j, i),
                    false => f32::from(u8::from(i == picked(j))),
                };
                let stored = |rows: usize,
                              columns: usize,
                              transposed: bool,
                              of: &dyn Fn(usize, usize) -> f32|
                 -> Vec<f16> {
                    let at = |x: usize| match transposed {
                        true => of(x % rows, x / rows),
                        false => of(x / columns, x % columns),
                    };
                    (0..rows * columns).map(|x| f16::from_f32(at(x))).collect()
                };
                let a = case.device.upload(&stored(m, k, transposed[0], &left))?;
                let b = case.device.upload(&stored(k, n, transposed[1], &right))?;
                // C is written eight elements at a time, one, or two.
                let pitch = n + launches / 4 % 3;
                let c = case.device.full(m * pitch, f16::NAN)?;
                let columns_of =
                    |rows: usize, columns: usize, transposed: bool| if transposed { rows } else { columns };
                let kernel = GemmKernel::staged(m, n, k)
                    .with_transposed(transposed[0], transposed[1])
                    .with_pitches(
                        columns_of(m, k, transposed[0]),
                        columns_of(k, n, transposed[1]),
                        pitch,
                    )
                    .with_tile(rows, columns);
                kernel.launch(&stream, args![&a, &b, &c])?;
                let all = c.read()?;
                let found: Vec<f16> = all.chunks(pitch).flat_map(|row| &row[..n]).copied().collect();
                let expected = |x: usize| match picks_rows {
                    true => number(x % n, picked(x / n)),
                    false => number(x / n, picked(x % n)),
                };
                let off: Vec<usize> = (0..m * n)
                    .filter(|x| found[*x].to_f32() != expected(*x))
                    .collect();
                if off.is_empty() {
                    continue;
                }
                let some: Vec<String> = off
                    .iter()
                    .take(12)
                    .map(|x| format!("({}, {}): {} not {}", x / n, x % n, found[*x], expected(*x)))
                    .collect();
                wrong.push(format!(
                    "{m} x {n} x {k}, tiles of {rows} x {columns}, transposed {transposed:?}, {} picks: {} of {} are wrong: {}",
                    if picks_rows { "A" } else { "B" },
                    off.len(),
                    m * n,
                    some.join(", ")
                ));
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n").into()),
    }
}

fn product(case: &mut Case, make: fn(&mut Case, [usize; 3]) -> GemmKernel) -> Result<(), Failed> {
    match case.below(4) {
        0 => product_of::<f16>(case, make),
        1 => product_of::<bf16>(case, make),
        _ => product_of::<f32>(case, make),
    }
}

fn product_of<T: Stored>(
    case: &mut Case,
    make: fn(&mut Case, [usize; 3]) -> GemmKernel,
) -> Result<(), Failed> {
    product_with::<T, T>(case, None, make)
}

/// `F` is what A and B hold, `T` what C does.
fn product_with<F: Stored, T: Stored>(
    case: &mut Case,
    factors: Option<Factors>,
    make: fn(&mut Case, [usize; 3]) -> GemmKernel,
) -> Result<(), Failed> {
    // Low bits that do not count are zeros.
    let kept = if factors == Some(Factors::Tf32) {
        !0x1fff
    } else {
        !0
    };
    product_kept::<F, T>(case, factors, kept, make)
}

/// Of numbers with these bits.
fn product_kept<F: Stored, T: Stored>(
    case: &mut Case,
    factors: Option<Factors>,
    kept: u32,
    make: fn(&mut Case, [usize; 3]) -> GemmKernel,
) -> Result<(), Failed> {
    let unit = if case.aligned { 8 } else { 1 };
    let [m, n, k] = case.product(unit);
    let transposed = [case.chance(2), case.chance(2)];
    let scales = [(1.0f32, 0.0f32), (1.0, 1.0), (-0.5, 2.0)];
    let is_int = factors == Some(Factors::I8);
    let (alpha, beta) = case.one_of(&scales[..if is_int { 2 } else { 3 }]);
    let [a_rows, a_columns] = if transposed[0] { [k, m] } else { [m, k] };
    let [b_rows, b_columns] = if transposed[1] { [n, k] } else { [k, n] };
    let pitches = [a_columns, b_columns, n].map(|columns| columns + unit * case.one_of(&[0, 0, 1, 5]));
    let mut numbers = |len| -> Vec<f32> {
        let all = case.numbers(len, 2.0).into_iter();
        // In two parts infinities become NaN.
        let finite = factors == Some(Factors::Tf32) && kept == !0;
        all.map(|x| if finite && x.is_infinite() { 1.5 } else { x })
            .map(|x| F::of(f32::from_bits(x.to_bits() & kept)).number())
            .collect()
    };
    // As what they are stored as.
    let own = |numbers: &[f32]| -> Vec<f32> {
        match is_int {
            true => numbers.iter().map(|x| x / 64.0).collect(),
            false => numbers.to_vec(),
        }
    };
    let (a, b) = (numbers(m * k), numbers(k * n));
    // What is not read may be anything.
    let before = if beta == 0.0 {
        vec![f32::NAN; m * n]
    } else {
        let all = case.numbers(m * n, 2.0).into_iter();
        all.map(|x| T::of(x).number()).collect()
    };
    let a_buffer = case.matrix::<F>([a_rows, a_columns, pitches[0]], &own(&a))?;
    let b_buffer = case.matrix::<F>([b_rows, b_columns, pitches[1]], &own(&b))?;
    let is_kept: Vec<f32> = match is_int {
        true => before.iter().map(|x| x / 1024.0).collect(),
        false => before.clone(),
    };
    let c_buffer = case.matrix::<T>([m, n, pitches[2]], &is_kept)?;
    let mut kernel = make(case, [m, n, k])
        .with_transposed(transposed[0], transposed[1])
        .with_element(T::ELEMENT)
        .with_scales(alpha, beta)
        .with_pitches(pitches[0], pitches[1], pitches[2]);
    if let Some(factors) = factors {
        kernel = kernel.with_factors(factors).with_element(T::ELEMENT);
    }
    let finishes = kernel.name().starts_with("gemm_staged") && !is_int && case.chance(3);
    let beside = case.one_of(&[Beside::Columns, Beside::Rows, Beside::Elements]);
    let [x_rows, x_columns] = match beside {
        Beside::Columns => [1, n],
        Beside::Rows => [1, m],
        Beside::Elements => [m, n],
    };
    let x: Vec<f32> = (0..x_rows * x_columns)
        .map(|_| T::of(case.number()).number())
        .collect();
    let x_buffer = case.matrix::<T>([x_rows, x_columns, x_columns], &x)?;
    if finishes {
        kernel = kernel.with_epilogue::<Bounded>(beside);
    }
    let is_tensor_core = kernel.name() == "gemm_tensor_core" || kernel.name().starts_with("gemm_staged");
    let stream = case.device.default_stream();
    let mut all = args![&a_buffer.part, &b_buffer.part].to_vec();
    if finishes {
        all.push(x_buffer.part.arg());
    }
    all.push(c_buffer.part.arg());
    kernel.launch(&stream, &all)?;
    let products = reference::gemm([m, n, k], transposed, &in_f64(&a), &in_f64(&b));
    let (alpha, beta) = (f64::from(alpha), f64::from(beta));
    let expected: Vec<(f64, f64)> = products
        .iter()
        .zip(&before)
        .enumerate()
        .map(|(at, ((sum, size), before))| {
            let before = if beta == 0.0 {
                0.0
            } else {
                beta * f64::from(*before)
            };
            // Tensor cores round sums otherwise than `f32` does.
            let on_gpu = case.device.backend() == BackendKind::Cuda;
            let rounding = match factors {
                // Of bytes they keep 14 bits of a sum, of which it has more only where each 128 products are added up by themselves.
                Some(Factors::E4m3 | Factors::E5m2) if on_gpu => 1.25e-4,
                _ if is_tensor_core => 2.4e-7,
                _ => 6e-8,
            };
            let bound = (k as f64 + 3.0) * rounding * (alpha.abs() * size + before.abs());
            let number = alpha * sum + before;
            if !finishes {
                return (number, bound);
            }
            let beside = match beside {
                Beside::Columns => x[at % n],
                Beside::Rows => x[at / n],
                Beside::Elements => x[at],
            };
            let number = number + f64::from(beside);
            let bound = if number.is_finite() {
                bound + number.abs() * 1.2e-7
            } else {
                0.0
            };
            (number.max(-1.0), bound)
        })
        .collect();
    let what = format!("{kernel:?}");
    compare::<T>(&what, &c_buffer.read()?, &expected)?;
    for (operand, values) in [(&a_buffer, &a), (&b_buffer, &b)] {
        let unchanged = operand
            .read()?
            .iter()
            .zip(values)
            .all(|(x, y)| x.to_bits() == y.to_bits());
        if !unchanged {
            return Err(format!("{what}: an operand has changed").into());
        }
    }
    Ok(())
}
