//! Reductions of a lane's registers, of blocks and of grids: each of the table's rows at each type that it takes, over edge values, against the
//! operators that they combine by.

use perpetua_ir::ir::{ReduceOp, Scalar};
use perpetua_ir::ops::{BinaryOp, eval};
use perpetua_isa::{LaunchConfig, Meaning, Opcode};

use super::edges::{Column, Expected, LANES, NUMBER, combine, each_type, number, opcodes, pairs, run};

#[test]
fn a_lanes_registers_are_combined() {
    const RUN: usize = 3;
    each_type(|executor, ty| {
        let reduce = |meaning| match meaning {
            Meaning::Reduce(op) => Some(op),
            _ => None,
        };
        let Some(ops) = opcodes(ty, reduce) else { return };
        let values: Vec<u64> = pairs(ty).concat();
        let count = (values.len() - RUN) / (4 * LANES) * (4 * LANES);
        let mut text = format!(
            ".buffer x: {ty}\n.buffer out: {ty}\n{NUMBER} mul.u32 r2, r1, {}\n",
            ops.len()
        );
        for i in 0..RUN {
            text += &format!(" ldg.{ty} r{}, x[r1 + {i}]\n", 10 + i);
        }
        for (i, (opcode, _)) in ops.iter().enumerate() {
            text += &format!(" {opcode:?}.{ty} r3, r10, {RUN}\n stg.{ty} out[r2 + {i}], r3\n");
        }
        let mut columns = [
            Column("x", ty, values.clone()),
            Column("out", ty, vec![0; ops.len() * count]),
        ];
        let config = LaunchConfig::new((count / LANES) as u32, LANES as u32);
        if !run(executor, &text, config, &mut columns) {
            return;
        }
        for (i, found) in columns[1].2.chunks(ops.len()).enumerate() {
            let of = &values[i..i + RUN];
            for (found, (opcode, op)) in found.iter().zip(&ops) {
                let steps = |step: &dyn Fn(u64) -> u64| {
                    let values = of.iter().map(|bits| step(*bits));
                    let all = values.reduce(|a, b| step(combine(op.binary(), ty, a, b)));
                    all.expect("three")
                };
                Expected {
                    executor,
                    opcode: *opcode,
                    ty,
                }
                .check_by(*found, of, steps);
            }
        }
    });
}

// What changes nothing: the lanes of a block hold this, but for some.
fn neutral(op: ReduceOp, ty: Scalar) -> u64 {
    let top = 1u64 << (ty.bits() - 1);
    let mask = u64::MAX >> (64 - ty.bits());
    match op {
        // Minus zero.
        ReduceOp::Add if ty.is_float() => top,
        ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor => 0,
        ReduceOp::Mul => number(ty, 1),
        ReduceOp::And => mask,
        ReduceOp::Min if ty.is_float() => eval::eval_cast(Scalar::F64, ty, f64::INFINITY.to_bits()),
        ReduceOp::Max if ty.is_float() => eval::eval_cast(Scalar::F64, ty, f64::NEG_INFINITY.to_bits()),
        ReduceOp::Min => match ty.is_signed_int() {
            true => top - 1,
            false => mask,
        },
        ReduceOp::Max => match ty.is_signed_int() {
            true => top,
            false => 0,
        },
    }
}

// What the lanes of a block hold: a pair of edge values far from one another, and sometimes one of them once more.
fn held(op: ReduceOp, ty: Scalar, block: usize, pair: &[u64]) -> Vec<u64> {
    let mut all = vec![neutral(op, ty); LANES];
    all[block % LANES] = pair[0];
    all[(block + 4) % LANES] = pair[1];
    if block.is_multiple_of(3) {
        all[(block + 6) % LANES] = pair[0];
    }
    all
}

// The tree of the specification.
fn tree(op: BinaryOp, ty: Scalar, mut values: Vec<u64>, step: &dyn Fn(u64) -> u64) -> u64 {
    values.iter_mut().for_each(|bits| *bits = step(*bits));
    while values.len() > 1 {
        let pairs = values.len() / 2;
        let rest = values.len() - pairs;
        for i in 0..pairs {
            values[i] = step(combine(op, ty, values[i], values[i + rest]));
        }
        values.truncate(rest);
    }
    values[0]
}

// For each operation what the lanes hold, block by block.
fn columns_of(ops: &[(Opcode, ReduceOp)], ty: Scalar, pairs: &[Vec<u64>]) -> Vec<u64> {
    let of = |(_, op): &(Opcode, ReduceOp)| -> Vec<u64> {
        let blocks = pairs.iter().enumerate();
        blocks
            .flat_map(|(block, pair)| held(*op, ty, block, pair))
            .collect()
    };
    ops.iter().flat_map(of).collect()
}

#[test]
fn blocks_combine_in_the_order_of_a_tree() {
    each_type(|executor, ty| {
        let group = |meaning| match meaning {
            Meaning::Group(op) => Some(op),
            _ => None,
        };
        let Some(ops) = opcodes(ty, group) else { return };
        let pairs = pairs(ty);
        let lanes = pairs.len() * LANES;
        let mut text = format!(
            ".buffer x: {ty}\n.buffer out: {ty}\n{NUMBER} mul.u32 r2, r1, {}\n",
            ops.len()
        );
        for (i, (opcode, _)) in ops.iter().enumerate() {
            let from = i * lanes;
            text += &format!(
                " ldg.{ty} r3, x[r1 + {from}]\n {opcode:?}.{ty} r4, r3\n stg.{ty} out[r2 + {i}], r4\n"
            );
        }
        let mut columns = [
            Column("x", ty, columns_of(&ops, ty, &pairs)),
            Column("out", ty, vec![0; ops.len() * lanes]),
        ];
        let config = LaunchConfig::new(pairs.len() as u32, LANES as u32);
        if !run(executor, &text, config, &mut columns) {
            return;
        }
        for (i, (opcode, op)) in ops.iter().enumerate() {
            for (block, pair) in pairs.iter().enumerate() {
                let expected =
                    |step: &dyn Fn(u64) -> u64| tree(op.binary(), ty, held(*op, ty, block, pair), step);
                for lane in 0..LANES {
                    let found = columns[1].2[(block * LANES + lane) * ops.len() + i];
                    Expected {
                        executor,
                        opcode: *opcode,
                        ty,
                    }
                    .check_by(found, pair, expected);
                }
            }
        }
    });
}

#[test]
fn grids_combine_into_elements_in_either_order() {
    each_type(|executor, ty| {
        let grid = |meaning| match meaning {
            Meaning::Grid(op) => Some(op),
            _ => None,
        };
        let Some(ops) = opcodes(ty, grid) else { return };
        let pairs = pairs(ty);
        let (lanes, elements) = (pairs.len() * LANES, pairs.len() / 2);
        // Two blocks share an element, which begins with a value of its own.
        let mut text =
            format!(".buffer x: {ty}\n.buffer out: {ty}\n{NUMBER} mov.u32 r2, r253\n shr.u32 r2, r2, 1\n");
        for (i, (opcode, _)) in ops.iter().enumerate() {
            let (from, to) = (i * lanes, i * elements);
            text += &format!(" ldg.{ty} r3, x[r1 + {from}]\n {opcode:?}.{ty} out[r2 + {to}], r3\n");
        }
        let first = |i: usize| pairs[(i * 7 + 5) % pairs.len()][1];
        let begins: Vec<u64> = (0..ops.len() * elements).map(|i| first(i % elements)).collect();
        let mut columns = [
            Column("x", ty, columns_of(&ops, ty, &pairs)),
            Column("out", ty, begins),
        ];
        let config = LaunchConfig::new(pairs.len() as u32, LANES as u32);
        if !run(executor, &text, config, &mut columns) {
            return;
        }
        for (i, (opcode, op)) in ops.iter().enumerate() {
            for element in 0..elements {
                let found = columns[1].2[i * elements + element];
                let of_block = |block: usize, step: &dyn Fn(u64) -> u64| {
                    tree(op.binary(), ty, held(*op, ty, block, &pairs[block]), step)
                };
                let (from, [a, b]) = (first(element), [2 * element, 2 * element + 1]);
                // CUDA's atomics flush, its blocks do not.
                let both = |a, b, blocks_flush: bool| {
                    move |step: &dyn Fn(u64) -> u64| {
                        let inner: &dyn Fn(u64) -> u64 = if blocks_flush { step } else { &|bits| bits };
                        let by =
                            |all, block| step(combine(op.binary(), ty, all, step(of_block(block, inner))));
                        by(by(step(from), a), b)
                    }
                };
                let orders = [(a, b, false), (b, a, false), (a, b, true), (b, a, true)];
                let expected = Expected {
                    executor,
                    opcode: *opcode,
                    ty,
                };
                let mut orders = orders.into_iter().map(|(a, b, flush)| both(a, b, flush));
                if !orders.any(|order| expected.is_by(found, order)) {
                    let of = [a, b].map(|block| of_block(block, &|bits| bits));
                    expected.check_by(found, &[from, of[0], of[1]], both(a, b, false));
                }
            }
        }
    });
}
