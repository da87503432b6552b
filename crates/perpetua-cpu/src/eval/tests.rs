//! Lanes side by side compute what one lane does by itself.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::edge_values;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, Row, Spelling, TernaryOp, UnaryOp};

fn as_f64(s: Scalar, bits: u64) -> f64 {
    f64::from_bits(eval_cast(s, Scalar::F64, bits))
}

/// Equal bits, or two that are no numbers.
fn same(s: Scalar, a: u64, b: u64) -> bool {
    a == b || s.is_float() && as_f64(s, a).is_nan() && as_f64(s, b).is_nan()
}

/// The rows that the library has no part in, with each type that they take.
fn exact<O: Copy>(all: &[O], row: impl Fn(&O) -> &'static Row) -> Vec<(O, Scalar)> {
    let exact = all.iter().filter(|op| row(op).cuda != Spelling::Library);
    exact
        .flat_map(|op| {
            let takes = Scalar::ALL.into_iter().filter(|s| row(op).domain.contains(*s));
            takes.map(|s| (*op, s))
        })
        .collect()
}

/// All levels of the processor compute the same bits (but for NaN payloads) as one lane by itself; also of operands that are there once.
#[test]
fn levels_agree() {
    let mask = [u64::MAX, 1];
    let columns = |s: Scalar, turn: usize| {
        let edges = edge_values(s);
        let words = if turn == 1 { 2 } else { 1 };
        let mut lines = vec![Line::ZERO; words * s.size() as usize];
        (0..words * WORD).for_each(|i| put(&mut lines, s.size(), i, edges[(i * turn + i / 3) % edges.len()]));
        lines
    };
    let bits = |lines: &[Line], s: Scalar, i: usize| {
        let words = lines.len() / s.size() as usize;
        get(lines, s.size(), if words == 1 { i % WORD } else { i })
    };
    let agree =
        |r: Scalar, run: &dyn Fn(Level, &mut [Line]), one: &dyn Fn(usize) -> Option<u64>, what: &str| {
            let results: Vec<Vec<Line>> = Level::all()
                .into_iter()
                .map(|level| {
                    let mut out = vec![Line::ZERO; 2 * r.size() as usize];
                    run(level, &mut out);
                    out
                })
                .collect();
            for found in &results {
                for i in 0..=WORD {
                    let (Some(a), b) = (one(i), get(found, r.size(), i)) else {
                        continue;
                    };
                    assert!(same(r, a, b), "{what}, lane {i}: {a:#x} and {b:#x}");
                }
            }
        };
    for (op, s) in exact(UnaryOp::ALL, |op| op.row()) {
        let (a, r) = (columns(s, 1), result_scalar(op.row().result, s));
        let one = |i| Some(eval_unary(op, s, bits(&a, s, i)));
        agree(
            r,
            &|level, out| unary(level, op, s, &mask, &a, out),
            &one,
            op.name(),
        );
    }
    for (op, s) in exact(BinaryOp::ALL, |op| op.row()) {
        let second = match op.row().second {
            perpetua_ir::ops::Second::Same => s,
            perpetua_ir::ops::Second::Amount => s.to_unsigned(),
        };
        let (a, b, r) = (
            columns(s, 1),
            columns(second, 7),
            result_scalar(op.row().result, s),
        );
        let one = |i| eval_binary(op, s, bits(&a, s, i), bits(&b, s, i)).ok();
        agree(
            r,
            &|level, out| binary(level, op, s, &mask, &a, &b, out),
            &one,
            op.name(),
        );
    }
    for from in Scalar::ALL {
        for to in Scalar::ALL.into_iter().filter(|to| *to != Scalar::Bool) {
            if from == Scalar::Bool && to.is_float() {
                continue;
            }
            let a = columns(from, 1);
            let one = |i| Some(eval_cast(from, to, bits(&a, from, i)));
            agree(
                to,
                &|level, out| cast(level, from, to, &mask, &a, out),
                &one,
                "cast",
            );
        }
    }
    let (a, b, c) = (
        columns(Scalar::F32, 1),
        columns(Scalar::F32, 5),
        columns(Scalar::F32, 11),
    );
    let fma = |level, out: &mut [Line]| ternary(level, TernaryOp::Fma, Scalar::F32, &mask, (&a, &b, &c), out);
    let f32s = |i| [&a, &b, &c].map(|lines| bits(lines, Scalar::F32, i));
    let one = |i| {
        let [a, b, c] = f32s(i);
        Some(eval_ternary(TernaryOp::Fma, Scalar::F32, a, b, c))
    };
    agree(Scalar::F32, &fma, &one, "fma");
}

/// Suspicion never misses a division that faults.
#[test]
fn suspect_divisions_are_found() {
    for s in Scalar::ALL.into_iter().filter(|s| s.is_int()) {
        for a in edge_values(s) {
            for b in edge_values(s) {
                let (mut x, mut y) = ([Line::ZERO; 8], [Line::ZERO; 8]);
                put(&mut x, s.size(), 0, a);
                put(&mut y, s.size(), 0, b);
                // The other lanes divide 0 by 0: make them harmless.
                (1..WORD).for_each(|i| put(&mut y, s.size(), i, 1));
                let size = s.size() as usize;
                let suspect = division_suspect(Level::detect(), s, &[1], &x[..size], &y[..size]);
                assert_eq!(
                    suspect,
                    division_fault(BinaryOp::Div, s, a, b).is_some(),
                    "{s} {a:#x} / {b:#x}"
                );
            }
        }
    }
}
