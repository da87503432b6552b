//! The meaning of every row against the reference, at the edges and at random.

mod reference;

use half::{bf16, f16};
use proptest::prelude::*;

use super::*;
use crate::ops::Spelling;
use reference::*;

fn check_unary(op: UnaryOp, s: Scalar, a: u64) {
    let expected = match s {
        Scalar::Bool => a ^ 1,
        Scalar::F16 => unary_f16(op, a),
        Scalar::BF16 => unary_bf16(op, a),
        Scalar::F32 => unary_f32(op, a),
        Scalar::F64 => unary_f64(op, a),
        _ => int_unary(op, s, a),
    };
    let found = eval_unary(op, s, a);
    let r = result_scalar(op.row().result, s);
    assert!(
        same(r, found, expected, false),
        "{}.{s}({a:#x}) gave {found:#x}, expected {expected:#x}",
        op.name()
    );
}

fn check_binary(op: BinaryOp, s: Scalar, a: u64, b: u64) {
    let expected = match s {
        Scalar::Bool => Ok(match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor | BinaryOp::Ne => a ^ b,
            _ => 1 ^ a ^ b,
        }),
        Scalar::F16 => Ok(binary_f16(op, a, b)),
        Scalar::BF16 => Ok(binary_bf16(op, a, b)),
        Scalar::F32 => Ok(binary_f32(op, a, b)),
        Scalar::F64 => Ok(binary_f64(op, a, b)),
        _ => int_binary(op, s, a, b),
    };
    let found = eval_binary(op, s, a, b);
    let r = result_scalar(op.row().result, s);
    let zeros = matches!(op, BinaryOp::Min | BinaryOp::Max);
    let equal = match (found, expected) {
        (Ok(f), Ok(e)) => same(r, f, e, zeros),
        (f, e) => f == e,
    };
    assert!(
        equal,
        "{}.{s}({a:#x}, {b:#x}) gave {found:x?}, expected {expected:x?}",
        op.name()
    );
}

fn exact_unary() -> Vec<(UnaryOp, Scalar)> {
    let exact = UnaryOp::ALL
        .iter()
        .filter(|op| op.row().cuda != Spelling::Library);
    exact
        .flat_map(|op| {
            Scalar::ALL
                .into_iter()
                .filter(|s| op.row().domain.contains(*s))
                .map(|s| (*op, s))
        })
        .collect()
}

fn exact_binary() -> Vec<(BinaryOp, Scalar)> {
    let exact = BinaryOp::ALL
        .iter()
        .filter(|op| op.row().cuda != Spelling::Library);
    exact
        .flat_map(|op| {
            Scalar::ALL
                .into_iter()
                .filter(|s| op.row().domain.contains(*s))
                .map(|s| (*op, s))
        })
        .collect()
}

#[test]
fn every_unary_row_at_the_edges() {
    for (op, s) in exact_unary() {
        edge_bits(s).into_iter().for_each(|a| check_unary(op, s, a));
    }
}

#[test]
fn every_binary_row_at_the_edges() {
    for (op, s) in exact_binary() {
        for a in edge_bits(s) {
            edge_bits(s).into_iter().for_each(|b| check_binary(op, s, a, b));
        }
    }
}

/// A row, a type that it takes, and operands of that type.
fn unary_case() -> impl Strategy<Value = (UnaryOp, Scalar, u64)> {
    proptest::sample::select(exact_unary()).prop_flat_map(|(op, s)| (Just(op), Just(s), any_bits(s)))
}

fn binary_case() -> impl Strategy<Value = (BinaryOp, Scalar, u64, u64)> {
    proptest::sample::select(exact_binary())
        .prop_flat_map(|(op, s)| (Just(op), Just(s), any_bits(s), any_bits(s)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn unary_rows_mean_what_rust_means((op, s, a) in unary_case()) {
        check_unary(op, s, a);
    }

    #[test]
    fn binary_rows_mean_what_rust_means((op, s, a, b) in binary_case()) {
        check_binary(op, s, a, b);
    }

    #[test]
    fn fma_rounds_once(a in any_bits(Scalar::F32), b in any_bits(Scalar::F32), c in any_bits(Scalar::F32)) {
        let x = |bits: u64| f32::from_bits(bits as u32);
        let expected = u64::from(x(a).mul_add(x(b), x(c)).to_bits());
        prop_assert!(same(Scalar::F32, eval_ternary(TernaryOp::Fma, Scalar::F32, a, b, c), expected, false));
    }

    #[test]
    fn clamp_is_min_of_max(s in proptest::sample::select(INTS.to_vec()), a: u64, b: u64, c: u64) {
        let expected = wrap(s, value(s, a).max(value(s, b)).min(value(s, c)));
        let all = all_ones(s);
        prop_assert_eq!(eval_ternary(TernaryOp::Clamp, s, a & all, b & all, c & all), expected);
    }

    #[test]
    fn select_selects(s in proptest::sample::select(Scalar::ALL.to_vec()), a: u64, b: u64) {
        let all = all_ones(s);
        prop_assert_eq!(eval_ternary(TernaryOp::Select, s, 1, a & all, b & all), a & all);
        prop_assert_eq!(eval_ternary(TernaryOp::Select, s, 0, a & all, b & all), b & all);
    }

    #[test]
    fn integers_cast_as_their_values(
        from in proptest::sample::select(INTS.to_vec()), to in proptest::sample::select(INTS.to_vec()), a: u64,
    ) {
        let a = a & all_ones(from);
        prop_assert_eq!(eval_cast(from, to, a), wrap(to, value(from, a)));
    }
}

/// Casts between floats and integers, with saturation and NaN, against `as`.
#[test]
fn casts_at_the_edges() {
    for from in [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64] {
        for a in edge_bits(from) {
            let x = as_f64(from, a);
            let expected: [(Scalar, u64); 8] = [
                (Scalar::I8, x as i8 as u8 as u64),
                (Scalar::I16, x as i16 as u16 as u64),
                (Scalar::I32, x as i32 as u32 as u64),
                (Scalar::I64, x as i64 as u64),
                (Scalar::U8, x as u8 as u64),
                (Scalar::U16, x as u16 as u64),
                (Scalar::U32, x as u32 as u64),
                (Scalar::U64, x as u64),
            ];
            for (to, bits) in expected {
                assert_eq!(eval_cast(from, to, a), bits, "{from} {x} as {to}");
            }
            let single = u64::from((x as f32).to_bits());
            assert!(
                same(Scalar::F32, eval_cast(from, Scalar::F32, a), single, false),
                "{from} {x} as f32"
            );
            assert!(
                same(Scalar::F64, eval_cast(from, Scalar::F64, a), x.to_bits(), false),
                "{from} {x} as f64"
            );
            let half = u64::from(f16::from_f32(x as f32).to_bits());
            assert!(
                same(Scalar::F16, eval_cast(from, Scalar::F16, a), half, false),
                "{from} {x} as f16"
            );
        }
    }
    for from in INTS {
        for a in edge_bits(from) {
            let x = value(from, a);
            assert_eq!(
                eval_cast(from, Scalar::F32, a),
                u64::from((x as f32).to_bits()),
                "{from} {x} as f32"
            );
            assert_eq!(
                eval_cast(from, Scalar::F64, a),
                (x as f64).to_bits(),
                "{from} {x} as f64"
            );
            let brain = u64::from(bf16::from_f32(x as f32).to_bits());
            assert_eq!(eval_cast(from, Scalar::BF16, a), brain, "{from} {x} as bf16");
        }
    }
    assert_eq!(eval_cast(Scalar::Bool, Scalar::I64, 1), 1);
}

#[test]
fn identities_leave_values_alone() {
    for op in ReduceOp::ALL {
        for s in Scalar::ALL.into_iter().filter(|s| s.size() >= 4) {
            if s.is_float() && matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor) {
                continue;
            }
            for a in edge_bits(s) {
                if s.is_float() && as_f64(s, a).is_nan() {
                    continue;
                }
                let found = eval_binary(op.binary(), s, reduce_identity(op, s), a).unwrap();
                let zero = matches!(op, ReduceOp::Add);
                assert!(same(s, found, a, zero), "{} {s} {a:#x}: {found:#x}", op.name());
            }
        }
    }
}

/// Products come with subgroup reductions.
#[test]
fn products_combine_as_their_operator() {
    for s in [
        Scalar::I32,
        Scalar::U32,
        Scalar::I64,
        Scalar::U64,
        Scalar::F32,
        Scalar::F64,
    ] {
        for a in edge_bits(s) {
            for b in edge_bits(s) {
                let expected = eval_binary(BinaryOp::Mul, s, a, b).unwrap();
                assert!(
                    same(s, combine(BinaryOp::Mul, s, a, b), expected, false),
                    "{s} {a:#x} {b:#x}"
                );
            }
        }
    }
}

#[test]
fn atomics_compute_as_their_operators() {
    for op in AtomicOp::ALL {
        for s in [
            Scalar::I32,
            Scalar::U32,
            Scalar::I64,
            Scalar::U64,
            Scalar::F32,
            Scalar::F64,
        ] {
            let binary = match op {
                AtomicOp::Exchange => None,
                _ => BinaryOp::from_name(op.name()),
            };
            for a in edge_bits(s) {
                for b in edge_bits(s) {
                    let expected = match binary {
                        None => b,
                        Some(op) if op.row().domain.contains(s) => eval_binary(op, s, a, b).unwrap(),
                        Some(_) => continue,
                    };
                    assert!(
                        same(s, eval_atomic(op, s, a, b), expected, false),
                        "{} {s}",
                        op.name()
                    );
                }
            }
        }
    }
}

/// The library's door leads to the right functions.
#[test]
fn library_operators_are_the_functions_of_their_names() {
    let one = |op: UnaryOp, x: f32| f32::from_bits(eval_unary(op, Scalar::F32, x.to_bits().into()) as u32);
    let close = |a: f32, b: f32| (a - b).abs() <= 1e-6 * b.abs();
    for x in [0.3f32, 0.9] {
        let y = f64::from(x);
        let expected = [
            (UnaryOp::Exp, y.exp()),
            (UnaryOp::Exp2, y.exp2()),
            (UnaryOp::ExpM1, y.exp_m1()),
            (UnaryOp::Ln, y.ln()),
            (UnaryOp::Ln1p, y.ln_1p()),
            (UnaryOp::Log2, y.log2()),
            (UnaryOp::Log10, y.log10()),
            (UnaryOp::Sin, y.sin()),
            (UnaryOp::Cos, y.cos()),
            (UnaryOp::Tan, y.tan()),
            (UnaryOp::Asin, y.asin()),
            (UnaryOp::Acos, y.acos()),
            (UnaryOp::Atan, y.atan()),
            (UnaryOp::Sinh, y.sinh()),
            (UnaryOp::Cosh, y.cosh()),
            (UnaryOp::Tanh, y.tanh()),
            (UnaryOp::Asinh, y.asinh()),
            (UnaryOp::Atanh, y.atanh()),
            (UnaryOp::Cbrt, y.cbrt()),
        ];
        for (op, e) in expected {
            assert!(close(one(op, x), e as f32), "{} of {x}", op.name());
        }
    }
    assert!(close(one(UnaryOp::Acosh, 1.5), 1.5f64.acosh() as f32));
    let two = |op: BinaryOp, x: f32, y: f32| {
        let bits = eval_binary(op, Scalar::F32, x.to_bits().into(), y.to_bits().into()).unwrap();
        f32::from_bits(bits as u32)
    };
    assert!(close(two(BinaryOp::Pow, 2.5, 1.5), 2.5f32.powf(1.5)));
    assert!(close(two(BinaryOp::Atan2, 2.5, -1.5), 2.5f32.atan2(-1.5)));
    assert!(close(two(BinaryOp::Hypot, 3.0, 4.0), 5.0));
    // f16 by way of f32, rounded.
    let half = eval_unary(UnaryOp::Exp, Scalar::F16, u64::from(f16::from_f32(1.0).to_bits()));
    assert_eq!(half, u64::from(f16::from_f32(std::f32::consts::E).to_bits()));
}
