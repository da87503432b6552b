//! The functions of f64 against values computed with 3,000 bits, against the host's, and where arguments are special.

use crate::math::tests::exact;
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
fn results_are_within_one_last_place() {
    let (mut checked, mut failures) = (0, String::new());
    for line in include_str!("values.txt").lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let bits = words.map(|word| u64::from_str_radix(word, 16).unwrap());
        let numbers: Vec<f64> = bits.map(f64::from_bits).collect();
        let (found, want) = match numbers[..] {
            [x, want] => (eval_unary_wide(UnaryOp::from_name(name).unwrap(), x), want),
            [x, y, want] => (eval_binary_wide(BinaryOp::from_name(name).unwrap(), x, y), want),
            _ => panic!("{line}"),
        };
        let found = found.unwrap();
        if distance(found, want) > 1 {
            failures += &format!("{name} of {numbers:?} is {found:e}\n");
        }
        checked += 1;
    }
    assert!(checked > 300 && failures.is_empty(), "{checked}\n{failures}");
}

fn host(op: UnaryOp, x: f64) -> f64 {
    match op {
        // Of these the host has no good ones.
        UnaryOp::Asinh | UnaryOp::Acosh | UnaryOp::Atanh => f64::NAN,
        op => exact(op, x),
    }
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
            let want = host(op, x);
            let inverse = matches!(op, UnaryOp::Asinh | UnaryOp::Acosh | UnaryOp::Atanh);
            if !inverse && distance(found, want) > 2 {
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
    ] {
        assert_eq!(distance(of(op, x), want), 0, "{op:?} of {x}");
    }
}
