//! What is done with elements of products in stages before they are stored: columns joined in pairs, and integers that become floats.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua::prelude::*;
use perpetua_device::args;
use perpetua_kernels::{Beside, E4m3, Error, Factors, Gate, GemmKernel, Kernel, reference};

use crate::gemm::{Bounded, TILES, has_stages};
use crate::harness::{Case, Stored, compare, in_f64};

/// One column where it is above -1, times the other one.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Gated {
    unit: u8,
}

#[device]
impl Gate for Gated {
    fn join(gate: f32, value: f32) -> f32 {
        gate.max(-1.0) * value
    }
}

pub(crate) fn joined(case: &mut Case) -> Result<(), Failed> {
    if !has_stages(case)? {
        return Ok(());
    }
    match case.below(9) {
        0 => joined_of::<f16, f16>(case, Factors::F16),
        1 => joined_of::<bf16, bf16>(case, Factors::Bf16),
        2 => joined_of::<bf16, f32>(case, Factors::Bf16),
        3 => joined_of::<f32, f32>(case, Factors::Tf32),
        4 => joined_of::<E4m3, f16>(case, Factors::E4m3),
        5 => joined_of::<i8, f16>(case, Factors::I8),
        6 => joined_of::<i8, bf16>(case, Factors::I8),
        _ => joined_of::<i8, f32>(case, Factors::I8),
    }
}

fn joined_of<F: Stored, T: Stored>(case: &mut Case, factors: Factors) -> Result<(), Failed> {
    let is_int = factors == Factors::I8;
    case.aligned = case.chance(2);
    // Of integers both are new, of others gates are.
    let gates = !is_int || case.chance(2);
    let m = case.one_of(&[1, 17, 64, 65, 130usize]);
    let n = case.one_of(&[2, 16, 18, 64, 136, 144, 258usize]);
    let k = case.one_of(&[0, 1, 40, 333, 600usize]);
    let transposed = [case.chance(2), case.chance(2)];
    let (alpha, beta) = match is_int {
        true => (1.0 / 16_384.0, case.one_of(&[0.0, 0.5f32])),
        false => case.one_of(&[(1.0, 0.0), (-0.5, 0.0), (0.5, 2.0f32)]),
    };
    // Low bits that do not count are zeros.
    let mut factor = |len: usize| -> Vec<F> {
        let number = |case: &mut Case| F::of(f32::from_bits(case.number().to_bits() & !0x1fff));
        (0..len).map(|_| number(case)).collect()
    };
    let (a, b) = (factor(m * k), factor(k * n));
    let wide = if gates { n / 2 } else { n };
    let pitch = wide + case.one_of(&[0, 0, 1, 2, 8]);
    let before: Vec<f32> = (0..m * wide).map(|_| T::of(case.number()).number()).collect();
    let x: Vec<T> = (0..wide).map(|_| T::of(case.number())).collect();
    let c = case.matrix::<T>([m, wide, pitch], &before)?;
    let [a_pitch, b_pitch] = [
        if transposed[0] { m } else { k },
        if transposed[1] { k } else { n },
    ];
    let [rows, columns] = case.one_of(&TILES);
    let kernel = GemmKernel::staged(m, n, k)
        .with_factors(factors)
        .with_element(T::ELEMENT)
        .with_transposed(transposed[0], transposed[1])
        .with_scales(alpha, beta)
        .with_pitches(a_pitch, b_pitch, pitch)
        .with_tile(rows, columns)
        .with_slices(case.one_of(&[1, 1, 2, 3]));
    let (a_buffer, b_buffer) = (case.device.upload(&a)?, case.device.upload(&b)?);
    let x_buffer = case.device.upload(&x)?;
    let stream = case.device.default_stream();
    let kernel = match gates {
        true => kernel.with_gate::<Gated>(),
        false => kernel.with_epilogue::<Bounded>(Beside::Columns),
    };
    match gates {
        true => kernel.launch(&stream, args![&a_buffer, &b_buffer, &c.part])?,
        false => kernel.launch(&stream, args![&a_buffer, &b_buffer, &x_buffer, &c.part])?,
    }
    let numbers = |x: &[F]| in_f64(&x.iter().map(|x| x.number()).collect::<Vec<_>>());
    let products = reference::gemm([m, n, k], transposed, &numbers(&a), &numbers(&b));
    let (alpha, beta) = (f64::from(alpha), f64::from(beta));
    // Of bytes tensor cores keep 14 bits of a sum; those of integers are exact.
    let rounding = match factors {
        Factors::E4m3 => 1.25e-4,
        Factors::I8 => 0.0,
        _ => 2.4e-7,
    };
    let part = |at: usize| {
        let (sum, size) = products[at];
        let bound = (k as f64 + 3.0) * rounding * alpha.abs() * size + 1e-6 * (alpha * sum).abs() + 1e-7;
        (alpha * sum, bound)
    };
    let expected: Vec<(f64, f64)> = (0..m * wide)
        .map(|at| {
            let (row, column) = (at / wide, at % wide);
            let before = if beta == 0.0 {
                0.0
            } else {
                beta * f64::from(before[at])
            };
            if !gates {
                let (number, bound) = part(row * n + column);
                let number = (number + before + f64::from(x[column].number())).max(-1.0);
                return (number, bound + 1e-6 * (1.0 + number.abs()));
            }
            let ((gate, near), (value, far)) = (part(row * n + 2 * column), part(row * n + 2 * column + 1));
            let gate = gate.max(-1.0);
            let bound = (gate.abs() + near) * far + near * value.abs();
            (gate * value + before, bound + 1e-6 * (gate * value).abs() + 1e-6)
        })
        .collect();
    compare::<T>(&format!("{kernel:?}"), &c.read()?, &expected)
}

/// What is said of columns that have no other one, and that integers which are stored as they are take no scales, but others do.
pub(crate) fn refused(case: &mut Case) -> Result<(), Failed> {
    if !has_stages(case)? {
        return Ok(());
    }
    let stream = case.device.default_stream();
    let x = case.device.zeros::<f16>(64)?;
    let odd = GemmKernel::staged(8, 7, 8).with_gate::<Gated>();
    match odd.launch(&stream, args![&x, &x, &x]) {
        Err(error @ Error::Range { found: 7, .. }) if error.to_string().ends_with("it must be even") => {}
        other => return Err(format!("{other:?}").into()),
    }
    // C has half as many columns.
    let even = GemmKernel::staged(8, 8, 8).with_gate::<Gated>();
    even.launch(&stream, args![&x, &x, &x.slice(..32)?])?;
    match even.launch(&stream, args![&x, &x, &x.slice(..31)?]) {
        Err(Error::TooShort { needed: 32, .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    // A buffer of what C holds without an epilogue.
    let (bytes, ints) = (case.device.zeros::<i8>(64)?, case.device.zeros::<i32>(64)?);
    let scaled = GemmKernel::staged(8, 8, 8)
        .with_factors(Factors::I8)
        .with_epilogue::<Bounded>(Beside::Columns);
    match scaled.launch(&stream, args![&bytes, &bytes, &ints, &ints]) {
        Err(Error::Stored { .. }) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
