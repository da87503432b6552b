//! MSL's numbers: every operator and cast on edge values, run and compared with the operator table's own evaluation.

use crate::{metal, verified};
use perpetua_cpu::testing::edge_values;
use perpetua_ir::back::{ArgsLayout, Target, render};
use perpetua_ir::ir::*;
use perpetua_ir::math;
use perpetua_ir::ops::eval::{
    division_fault, eval_binary, eval_cast, eval_ternary, eval_unary, result_scalar,
};
use perpetua_ir::ops::{BinaryOp, Domain, Second, Spelling, TernaryOp, UnaryOp};

/// Lanes of a block.
const BLOCK: u32 = 64;

/// What one lane computes from its operands, as the bits of its result; `None` where a check says that it faults.
type Answer = Box<dyn Fn(&[u64]) -> Option<u64>>;

/// One result of a kernel: what it is called, its type, and what it should be.
struct Cell {
    name: String,
    ty: Scalar,
    expected: Answer,
}

/// A kernel that computes many results from the same operands, each into its own row of `out`.
struct Table {
    k: KernelBuilder,
    i: Value,
    row: Value,
    out: Base,
    operands: Vec<(Scalar, Value)>,
    cells: Vec<Cell>,
}

impl Table {
    fn new(name: &str, operands: &[Scalar]) -> Result<Table, TypeError> {
        let mut k = KernelBuilder::new(name);
        let inputs: Vec<Base> = operands
            .iter()
            .enumerate()
            .map(|(n, s)| k.buffer(format!("in{n}"), (*s).into(), Access::Read))
            .collect();
        let out = k.buffer("out", Type::U64, Access::ReadWrite);
        let i = k.global_id(Axis::X)?;
        let row = k.op(Op::Len(inputs[0], Scalar::U32))?;
        let mut values = Vec::new();
        for (s, base) in operands.iter().zip(inputs) {
            values.push((*s, k.load(Place::element(base, i))?));
        }
        Ok(Table {
            k,
            i,
            row,
            out,
            operands: values,
            cells: Vec::new(),
        })
    }

    fn operand(&self, n: usize) -> Value {
        self.operands[n].1
    }

    /// Stores `v` as the next cell.
    fn keep(&mut self, cell: Cell, v: Value) -> Result<(), TypeError> {
        let k = &mut self.k;
        let ty = cell.ty;
        let bits = if ty.is_float() {
            k.op(Op::Bitcast(ty.to_unsigned(), v))?
        } else {
            v
        };
        let bits = if ty.is_signed_int() {
            k.cast(ty.to_unsigned(), bits)?
        } else {
            bits
        };
        let bits = k.cast(Scalar::U64, bits)?;
        let number = k.u32(self.cells.len() as u32);
        let start = k.binary(BinaryOp::Mul, number, self.row)?;
        let at = k.binary(BinaryOp::Add, start, self.i)?;
        k.store(Place::element(self.out, at), bits)?;
        self.cells.push(cell);
        Ok(())
    }

    /// Runs it on every combination of its operands' edge values and compares.
    fn check(self) {
        let kernel = verified(self.k.finish());
        let source = render(&kernel, &Target::Msl).unwrap();
        let Some(program) = metal(&source.entry, &source.entry, &source.text) else {
            return;
        };
        let rows = combinations(self.operands.iter().map(|(s, _)| *s));
        // Whole groups: the last combination fills up.
        let lanes = rows.len().next_multiple_of(BLOCK as usize);
        let value = |lane: usize, n: usize| rows[lane.min(rows.len() - 1)][n];
        let mut buffers: Vec<Vec<u8>> = Vec::new();
        for (n, (s, _)) in self.operands.iter().enumerate() {
            let bytes = (0..lanes).flat_map(|l| value(l, n).to_le_bytes()[..s.size() as usize].to_vec());
            buffers.push(bytes.collect());
        }
        buffers.push(vec![0; lanes * self.cells.len() * 8]);
        let layout = ArgsLayout::of(kernel.kernel());
        let mut args = vec![0u32; layout.words as usize];
        let groups = lanes as u32 / BLOCK;
        args[..3].copy_from_slice(&[groups, 1, 1]);
        for (n, at) in layout.params.iter().enumerate() {
            let length = if n < self.operands.len() {
                lanes
            } else {
                lanes * self.cells.len()
            };
            args[*at as usize] = length as u32;
        }
        buffers.push(args.iter().flat_map(|w| w.to_le_bytes()).collect());
        buffers.push(vec![0; 64]);
        let run = program.run([groups, 1, 1], [BLOCK, 1, 1], &mut buffers, 0);
        run.unwrap_or_else(|e| panic!("{e}\n{}", source.text));
        let fault = u32::from_le_bytes(buffers[self.operands.len() + 2][..4].try_into().unwrap());
        assert_eq!(fault, 0, "a lane faulted");

        let out = &buffers[self.operands.len()];
        let mut wrong = Vec::new();
        for (c, cell) in self.cells.iter().enumerate() {
            for (r, row) in rows.iter().enumerate() {
                let Some(expected) = (cell.expected)(row) else {
                    continue;
                };
                let at = (c * lanes + r) * 8;
                let found = u64::from_le_bytes(out[at..at + 8].try_into().unwrap());
                if !agrees(cell, expected, found) {
                    wrong.push(format!(
                        "{} of {row:x?}: expected {expected:#x}, found {found:#x}",
                        cell.name
                    ));
                }
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {}: {}\n{}",
            wrong.len(),
            rows.len() * self.cells.len(),
            wrong[..wrong.len().min(20)].join("\n"),
            source.text
        );
    }
}

fn combinations(types: impl Iterator<Item = Scalar>) -> Vec<Vec<u64>> {
    types.fold(vec![Vec::new()], |rows, s| {
        rows.iter()
            .flat_map(|row| {
                edge_values(s).into_iter().map(|v| {
                    let mut row = row.clone();
                    row.push(v);
                    row
                })
            })
            .collect()
    })
}

fn float(s: Scalar, bits: u64) -> f64 {
    f64::from_bits(eval_cast(s, Scalar::F64, bits))
}

/// A library operator's result, computed natively by the math library: the same bits everywhere.
fn library(s: Scalar, args: &[u64], f: impl Fn(&[f32]) -> Option<f32>) -> Option<u64> {
    let single = |bits: &u64| f32::from_bits(eval_cast(s, Scalar::F32, *bits) as u32);
    let args: Vec<f32> = args.iter().map(single).collect();
    Some(eval_cast(Scalar::F32, s, u64::from(f(&args)?.to_bits())))
}

fn agrees(cell: &Cell, expected: u64, found: u64) -> bool {
    if expected == found {
        return true;
    }
    if !cell.ty.is_float() {
        return false;
    }
    let (a, b) = (float(cell.ty, expected), float(cell.ty, found));
    // Either zero of a pair will do, and any NaN.
    a == b || a.is_nan() && b.is_nan()
}

/// Types that Metal has.
fn scalars() -> impl Iterator<Item = Scalar> {
    Scalar::ALL.into_iter().filter(|s| *s != Scalar::F64)
}

#[test]
fn unary_operators() -> Result<(), TypeError> {
    for s in scalars() {
        let mut table = Table::new(&format!("unary_{s}"), &[s])?;
        for &op in UnaryOp::ALL.iter().filter(|op| op.row().domain.contains(s)) {
            let x = table.operand(0);
            let v = table.k.unary(op, x)?;
            let cell = Cell {
                name: format!("{}_{s}", op.name()),
                ty: result_scalar(op.row().result, s),
                expected: Box::new(move |x| {
                    if op.row().msl == Spelling::Library {
                        return library(s, x, |x| math::eval_unary(op, x[0]));
                    }
                    Some(eval_unary(op, s, x[0]))
                }),
            };
            table.keep(cell, v)?;
        }
        table.check();
    }
    Ok(())
}

#[test]
fn binary_operators() -> Result<(), TypeError> {
    for s in scalars() {
        let mut table = Table::new(&format!("binary_{s}"), &[s, s])?;
        for &op in BinaryOp::ALL.iter().filter(|op| op.row().domain.contains(s)) {
            let (mut x, mut y) = (table.operand(0), table.operand(1));
            let divides = s.is_int() && matches!(op, BinaryOp::Div | BinaryOp::Rem);
            if divides {
                // Where the division would fault, one by one.
                let k = &mut table.k;
                let (zero, one) = (k.constant(s, 0), k.constant(s, 1));
                let mut bad = k.binary(BinaryOp::Eq, y, zero)?;
                if s.is_signed_int() {
                    let minus_one = k.constant(s, u64::MAX >> (64 - s.bits()));
                    let least = k.constant(s, 1 << (s.bits() - 1));
                    let by_minus_one = k.binary(BinaryOp::Eq, y, minus_one)?;
                    let of_least = k.binary(BinaryOp::Eq, x, least)?;
                    let overflows = k.binary(BinaryOp::And, by_minus_one, of_least)?;
                    bad = k.binary(BinaryOp::Or, bad, overflows)?;
                }
                x = k.ternary(TernaryOp::Select, bad, one, x)?;
                y = k.ternary(TernaryOp::Select, bad, one, y)?;
            }
            let v = table.k.binary(op, x, y)?;
            let cell = Cell {
                name: format!("{}_{s}", op.name()),
                ty: result_scalar(op.row().result, s),
                expected: Box::new(move |x| {
                    if division_fault(op, s, x[0], x[1]).is_some() {
                        return None;
                    }
                    if op.row().msl == Spelling::Library {
                        return library(s, x, |x| math::eval_binary(op, x[0], x[1]));
                    }
                    eval_binary(op, s, x[0], x[1]).ok()
                }),
            };
            table.keep(cell, v)?;
        }
        table.check();
    }
    Ok(())
}

#[test]
fn shifts_by_every_type() -> Result<(), TypeError> {
    for t in scalars().filter(|t| t.is_int()) {
        for s in scalars().filter(|s| s.is_int()) {
            let mut table = Table::new(&format!("shift_{s}_{t}"), &[s, t])?;
            for &op in BinaryOp::ALL
                .iter()
                .filter(|op| op.row().second == Second::Amount)
            {
                let (x, n) = (table.operand(0), table.operand(1));
                let v = table.k.binary(op, x, n)?;
                let cell = Cell {
                    name: format!("{}_{s}_{t}", op.name()),
                    ty: s,
                    expected: Box::new(move |x| {
                        eval_binary(op, s, x[0], x[1] & u64::from(s.bits() - 1)).ok()
                    }),
                };
                table.keep(cell, v)?;
            }
            table.check();
        }
    }
    Ok(())
}

#[test]
fn ternary_operators() -> Result<(), TypeError> {
    for s in scalars() {
        let mut table = Table::new(&format!("ternary_{s}"), &[s, s, s])?;
        for &op in TernaryOp::ALL {
            if op.row().domain == Domain::Bool || !op.row().domain.contains(s) {
                continue;
            }
            let (x, y, z) = (table.operand(0), table.operand(1), table.operand(2));
            let v = table.k.ternary(op, x, y, z)?;
            let cell = Cell {
                name: format!("{}_{s}", op.name()),
                ty: s,
                expected: Box::new(move |x| Some(eval_ternary(op, s, x[0], x[1], x[2]))),
            };
            table.keep(cell, v)?;
        }
        if !table.cells.is_empty() {
            table.check();
        }
    }
    Ok(())
}

#[test]
fn casts() -> Result<(), TypeError> {
    for from in scalars() {
        let mut table = Table::new(&format!("cast_{from}"), &[from])?;
        for to in scalars() {
            let accepted = from == to || to != Scalar::Bool && (from != Scalar::Bool || to.is_int());
            let x = table.operand(0);
            if accepted {
                let v = table.k.cast(to, x)?;
                let cell = Cell {
                    name: format!("{from} as {to}"),
                    ty: to,
                    expected: Box::new(move |x| Some(eval_cast(from, to, x[0]))),
                };
                table.keep(cell, v)?;
            }
            if from.bits() == to.bits() {
                let v = table.k.op(Op::Bitcast(to, x))?;
                let cell = Cell {
                    name: format!("bits of {from} as {to}"),
                    ty: to,
                    expected: Box::new(|x| Some(x[0])),
                };
                table.keep(cell, v)?;
            }
        }
        table.check();
    }
    Ok(())
}
