//! Expanded operators have the bits of the reference, whatever a target makes of sums.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

use bytemuck::Pod;
use perpetua_cpu::interp::{Arg, BufferRef, Interpreter, LaunchConfig};
use perpetua_ir::ir::{Kernel, Scalar};
use perpetua_ir::math::{eval_unary, eval_unary_wide};
use perpetua_ir::ops::UnaryOp;
use perpetua_ir::pass::{Sums, expand_library};
use perpetua_ir::verify::verify;

fn computed_by<T: Pod + Default>(op: UnaryOp, s: Scalar, sums: Sums, xs: &mut [T]) -> Vec<T> {
    let text = format!(
        "kernel k(x: buffer<{s}, read>, y: buffer<{s}, read_write>) source \"t\" {{\n  %0: u32 = block_idx.x @1\n  %1: {s} = load x[%0] @1\n  %2: {s} = {} %1 @1\n  store y[%0], %2 @1\n  return @1\n}}\n",
        op.name()
    );
    let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let expanded = verify(expand_library(kernel, sums)).unwrap();
    let mut ys = vec![T::default(); xs.len()];
    let grid = [xs.len() as u32, 1, 1];
    let args = [
        Arg::Buffer(BufferRef::from_slice(xs)),
        Arg::Buffer(BufferRef::from_slice(&mut ys)),
    ];
    let interpreter = Interpreter::new(&expanded).unwrap();
    interpreter
        .launch(&LaunchConfig::new(grid, [1; 3], &args))
        .unwrap();
    ys
}

#[test]
fn expanded_operators_have_the_bits_of_the_reference() {
    // All exponents and signs, what lies close to where results change, and what is no number.
    let mut singles: Vec<f32> = (0..1 << 14)
        .map(|i| f32::from_bits((i << 18) | (i * 77 % (1 << 18))))
        .collect();
    singles.extend((-1200..1200).map(|i| i as f32 * 0.125));
    singles.extend([
        0.0,
        -0.0,
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        88.722_84,
        -103.972_08,
    ]);
    let mut doubles: Vec<f64> = singles.iter().map(|x| f64::from(*x) * 1.000_000_1).collect();
    doubles.extend((-1200..1200).map(f64::from));
    for zero in [0, 1 << 31] {
        assert!(singles.iter().any(|x| x.to_bits() == zero));
        assert!(doubles.iter().any(|x| x.to_bits() == u64::from(zero) << 32));
    }
    for sums in [Sums::AsWritten, Sums::Rearranged] {
        for &op in UnaryOp::ALL {
            if eval_unary(op, 0.0).is_none() {
                continue;
            }
            let found = computed_by(op, Scalar::F32, sums, &mut singles);
            for (x, found) in singles.iter().zip(found) {
                let expected = eval_unary(op, *x).unwrap();
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{op:?} of {x:e}, {sums:?}: {found:e}, not {expected:e}"
                );
            }
            let found = computed_by(op, Scalar::F64, sums, &mut doubles);
            for (x, found) in doubles.iter().zip(found) {
                let expected = eval_unary_wide(op, *x).unwrap();
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{op:?} of {x:e}, {sums:?}: {found:e}, not {expected:e}"
                );
            }
        }
    }
}
