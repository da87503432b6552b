//! The functions of f64 against values computed with hundreds of bits, against the host's, and where arguments are special.

use crate::ir::Scalar;
use crate::math::tests::{exact, magnitude};
use crate::math::{eval_binary_wide, eval_unary_wide};
use crate::ops::{BinaryOp, UnaryOp};

/// How many numbers of f64 lie between two.
fn distance(a: f64, b: f64) -> u64 {
    let order = |v: f64| {
        let bits = v.to_bits() as i64;
        i128::from(if bits < 0 { i64::MIN - bits } else { bits })
    };
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0,
        (false, false) => (order(a) - order(b)).unsigned_abs() as u64,
        _ => u64::MAX,
    }
}

/// Each line has a function, its arguments and the nearest f64, as bits.
#[test]
fn results_are_within_the_tables_bound() {
    let (mut checked, mut failures) = (0, String::new());
    for line in include_str!("values.txt").lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let bits = words.map(|word| u64::from_str_radix(word, 16).unwrap());
        let numbers: Vec<f64> = bits.map(f64::from_bits).collect();
        let (found, want, bound) = match numbers[..] {
            [x, want] => {
                let op = UnaryOp::from_name(name).unwrap();
                let places = f64::from(op.row().exactness.ulps(Scalar::F64));
                let large = magnitude(op, x, want);
                let bound = (large.next_up() - large) / (want.abs().next_up() - want.abs()) * places;
                (eval_unary_wide(op, x), want, bound as u64)
            }
            [x, y, want] => {
                let op = BinaryOp::from_name(name).unwrap();
                let bound = op.row().exactness.ulps(Scalar::F64).into();
                (eval_binary_wide(op, x, y), want, bound)
            }
            _ => panic!("{line}"),
        };
        let found = found.unwrap();
        let error = distance(found, want);
        if error > bound {
            failures += &format!("{name} of {numbers:?} is {found:e}, {error} places away\n");
        }
        checked += 1;
    }
    assert!(checked > 300 && failures.is_empty(), "{checked}\n{failures}");
}

/// Values where a function changes, and its neighbours.
fn special() -> Vec<f64> {
    let places = [
        0.0,
        1e-310,
        f64::MIN_POSITIVE,
        1e-20,
        1e-9,
        0.5,
        1.0,
        2.0,
        40.0,
        709.78,
        710.4,
        710.6,
        711.5,
        713.0,
        716.0,
        745.13,
        8e8,
        1e18,
        1e300,
    ];
    let around = places.iter().flat_map(|v| [v.next_down(), *v, v.next_up()]);
    let signed = around.flat_map(|v| [v, -v]);
    let ends = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN];
    signed
        .chain(ends)
        .chain((-200..200).map(|i| f64::from(i) * 0.173))
        .collect()
}

/// The host's own functions may be off by a last place, too.
#[test]
fn results_are_near_the_hosts() {
    let mut failures = String::new();
    for x in special() {
        for &op in UnaryOp::ALL {
            let Some(found) = eval_unary_wide(op, x) else {
                continue;
            };
            // Of these the host has none, or no good ones.
            let own = matches!(op, UnaryOp::Erf | UnaryOp::Erfc | UnaryOp::Lgamma);
            if own || matches!(op, UnaryOp::Asinh | UnaryOp::Acosh | UnaryOp::Atanh) {
                continue;
            }
            let want = exact(op, x);
            if distance(found, want) > 2 {
                failures += &format!("{}({x:e}) is {found:e}, not {want:e}\n", op.name());
            }
        }
        for y in special().into_iter().step_by(3) {
            for (op, want) in [
                (BinaryOp::Pow, x.powf(y)),
                (BinaryOp::Atan2, x.atan2(y)),
                (BinaryOp::Hypot, x.hypot(y)),
            ] {
                let found = eval_binary_wide(op, x, y).unwrap();
                if distance(found, want) > 2 {
                    failures += &format!("{}({x:e}, {y:e}) is {found:e}, not {want:e}\n", op.name());
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn what_the_host_is_not_asked_at_the_edges() {
    let of = |op, x| eval_unary_wide(op, x).unwrap();
    for (op, x, want) in [
        (UnaryOp::Asinh, -0.0, -0.0),
        (UnaryOp::Asinh, f64::NEG_INFINITY, f64::NEG_INFINITY),
        (UnaryOp::Acosh, 1.0, 0.0),
        (UnaryOp::Acosh, 0.5, f64::NAN),
        (UnaryOp::Acosh, f64::INFINITY, f64::INFINITY),
        (UnaryOp::Atanh, -0.0, -0.0),
        (UnaryOp::Atanh, -1.0, f64::NEG_INFINITY),
        (UnaryOp::Atanh, 1.5, f64::NAN),
        (UnaryOp::Asinh, f64::NAN, f64::NAN),
        (UnaryOp::Erf, -0.0, -0.0),
        (UnaryOp::Erf, f64::INFINITY, 1.0),
        (UnaryOp::Erf, f64::NEG_INFINITY, -1.0),
        (UnaryOp::Erfc, 0.0, 1.0),
        (UnaryOp::Erfc, f64::INFINITY, 0.0),
        (UnaryOp::Erfc, f64::NEG_INFINITY, 2.0),
        (UnaryOp::Erfc, f64::NAN, f64::NAN),
        (UnaryOp::Lgamma, -0.0, f64::INFINITY),
        (UnaryOp::Lgamma, -3.0, f64::INFINITY),
        (UnaryOp::Lgamma, f64::INFINITY, f64::INFINITY),
        (UnaryOp::Lgamma, f64::NEG_INFINITY, f64::INFINITY),
        (UnaryOp::Lgamma, f64::MAX, f64::INFINITY),
        (UnaryOp::Lgamma, f64::NAN, f64::NAN),
    ] {
        assert_eq!(distance(of(op, x), want), 0, "{op:?} of {x}");
    }
}
