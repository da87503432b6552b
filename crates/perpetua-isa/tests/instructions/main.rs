//! Each instruction on each backend that the build has. Here are those that compute, over edge values against the table's own account; `edges` has those
//! of memory, atomics and tiles, and `combining` reductions, likewise; `others` has a program for each row that is none of these, and what it must leave.

#![allow(clippy::expect_used, clippy::panic)]

mod combining;
#[path = "../common/mod.rs"]
mod common;
mod edges;
mod others;

use common::{bind, executors, missing, upload};
use perpetua_device::conformance::{Judge, Map, rows};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, Domain, TernaryOp, UnaryOp, eval};
use perpetua_isa::{Activation, Executor, LaunchConfig, Meaning, Opcode, Program, Slot, Ty};

/// How an instruction's results are judged.
enum Right {
    Map(Map),
    // The same value.
    Same,
    // The product's sum with a third operand, each rounded.
    MultiplyAdd,
    Activation(Activation),
}

struct Cell {
    opcode: Opcode,
    ty: Scalar,
    from: Option<Scalar>,
    right: Right,
    // The type at which the map is judged.
    judged: Scalar,
}

/// What is the same for all cells of a group: types that are read and written, and whether some operands fault.
type Group = (Vec<Scalar>, Scalar, bool);

fn computing() -> Vec<Cell> {
    let mut cells = Vec::new();
    for opcode in Opcode::all() {
        let row = opcode.row();
        let types = || {
            let domain = row.types.unwrap_or(Domain::Any);
            Scalar::ALL.into_iter().filter(move |ty| domain.contains(*ty))
        };
        let mut cell = |ty: Scalar, from, right, judged| {
            cells.push(Cell {
                opcode,
                ty,
                from,
                right,
                judged,
            });
        };
        for ty in types() {
            match row.meaning {
                Meaning::Unary(op) => cell(ty, None, Right::Map(Map::Unary(op)), ty),
                Meaning::Binary(op) | Meaning::Compare(op, false) => {
                    cell(ty, None, Right::Map(Map::Binary(op)), ty);
                }
                Meaning::Compare(op, true) => cell(ty, None, Right::Map(Map::Binary(op)), ty.to_unsigned()),
                Meaning::Ternary(op) => cell(ty, None, Right::Map(Map::Ternary(op)), ty),
                Meaning::Move => cell(ty, None, Right::Same, ty),
                Meaning::MultiplyAdd => cell(ty, None, Right::MultiplyAdd, ty),
                Meaning::Activation(which) => cell(ty, None, Right::Activation(which), ty),
                Meaning::Convert if ty != Scalar::Bool => {
                    let from = Scalar::ALL.into_iter().filter(|from| *from != ty);
                    let from = from.filter(|from| *from != Scalar::Bool || ty.is_int());
                    from.for_each(|from| cell(ty, Some(from), Right::Map(Map::Cast(ty)), from));
                }
                Meaning::Bitcast => {
                    let from = Scalar::ALL.into_iter();
                    let from = from.filter(|from| *from != ty && from.bits() == ty.bits());
                    from.for_each(|from| cell(ty, Some(from), Right::Map(Map::Bitcast(ty)), from));
                }
                _ => {}
            }
        }
    }
    cells
}

// Predicates lie in memory as numbers.
fn stored(ty: Scalar) -> Scalar {
    if ty == Scalar::Bool { Scalar::U32 } else { ty }
}

fn name(ty: Scalar) -> &'static str {
    if ty == Scalar::Bool { "pred" } else { ty.name() }
}

impl Cell {
    // Types of what is read and what is written.
    fn operands(&self) -> (Vec<Scalar>, Scalar) {
        let mut reads = Vec::new();
        let mut write = self.ty;
        for slot in &self.opcode.row().operands {
            match slot {
                Slot::Write(ty) => write = ty.of(Some(self.ty), self.from).expect("typed"),
                Slot::Read(Ty::From) => reads.push(self.from.expect("two types")),
                Slot::Read(ty) => reads.push(ty.of(Some(self.ty), self.from).expect("typed")),
                other => panic!("{other:?} computes nothing"),
            }
        }
        (reads, write)
    }

    fn group(&self) -> Group {
        let (reads, write) = self.operands();
        let divides = matches!(self.right, Right::Map(Map::Binary(BinaryOp::Div | BinaryOp::Rem)));
        (reads, write, divides)
    }

    fn code(&self) -> String {
        let (reads, write) = self.operands();
        let read = |(i, ty): (usize, &Scalar)| match ty {
            Scalar::Bool => format!("p{}", i + 1),
            _ => format!("r{i}"),
        };
        let target = if write == Scalar::Bool { "p9" } else { "r9" };
        let operands = reads.iter().enumerate().map(read);
        let operands: Vec<String> = std::iter::once(target.into()).chain(operands).collect();
        let types = [Some(self.ty), self.from].into_iter().flatten();
        let types: String = types.map(|ty| format!(".{}", name(ty))).collect();
        format!(" {}{types} {}\n", self.opcode.row().name, operands.join(", "))
    }

    fn is_right(&self, executor: &Executor, row: &[u64], found: u64) -> bool {
        let probe = executor.device().info().numeric_probe.unwrap_or_default();
        let judge = |map| Judge {
            map,
            s: self.judged,
            probe,
        };
        match self.right {
            Right::Map(map) => judge(map).accepts(row, found),
            Right::Same => found == row[0] || is_nan(self.ty, found) && is_nan(self.ty, row[0]),
            Right::MultiplyAdd => {
                let product = eval::eval_binary(BinaryOp::Mul, self.ty, row[0], row[1]).expect("no division");
                judge(Map::Binary(BinaryOp::Add)).accepts(&[product, row[2]], found)
                    || !probe.is_exact() && judge(Map::Ternary(TernaryOp::Fma)).accepts(row, found)
            }
            Right::Activation(which) => {
                let expected = activation(which, self.ty, row[0]);
                if found == expected || is_nan(self.ty, found) && is_nan(self.ty, expected) {
                    return true;
                }
                let [expected, found] =
                    [expected, found].map(|bits| f64::from_bits(eval::eval_cast(self.ty, Scalar::F64, bits)));
                // Either zero is the larger one of two; devices that round otherwise may be a few steps away, or flush.
                let inexact = !probe.is_exact();
                expected == found
                    || inexact && (found - expected).abs() <= 2f64.powi(-18) * expected.abs() + 2f64.powi(-120)
                    // What overflows on the way with them does so a step earlier or later.
                    || inexact && expected.abs() > 1e37 && found.abs() > 1e37
            }
        }
    }
}

fn is_nan(ty: Scalar, bits: u64) -> bool {
    ty.is_float() && f64::from_bits(eval::eval_cast(ty, Scalar::F64, bits)).is_nan()
}

// The formula of the specification, each step rounded to the type.
fn activation(which: Activation, ty: Scalar, x: u64) -> u64 {
    use BinaryOp::{Add, Div, Ge, Max, Mul};
    use UnaryOp::{Abs, Exp, ExpM1, Ln1p, Neg, Recip, Tanh};
    let unary = |op, a| eval::eval_unary(op, ty, a);
    let binary = |op, a, b| eval::eval_binary(op, ty, a, b).expect("floats fault nowhere");
    let number = |value: f64| eval::eval_cast(Scalar::F64, ty, value.to_bits());
    let (zero, one) = (number(0.0), number(1.0));
    let sigmoid = |x| unary(Recip, binary(Add, one, unary(Exp, unary(Neg, x))));
    match which {
        Activation::Relu => binary(Max, x, zero),
        Activation::Sigmoid => sigmoid(x),
        Activation::Silu => binary(Mul, x, sigmoid(x)),
        Activation::Gelu => {
            let cube = binary(Mul, binary(Mul, x, x), x);
            let inner = eval::eval_ternary(TernaryOp::Fma, ty, number(0.044_715), cube, x);
            let share = unary(Tanh, binary(Mul, number(0.797_884_560_8), inner));
            binary(Mul, binary(Mul, number(0.5), x), binary(Add, one, share))
        }
        Activation::Softplus => {
            let rest = unary(Ln1p, unary(Exp, unary(Neg, unary(Abs, x))));
            binary(Add, binary(Max, x, zero), rest)
        }
        Activation::Softsign => binary(Div, x, binary(Add, one, unary(Abs, x))),
        Activation::Elu if binary(Ge, x, zero) == 1 => x,
        Activation::Elu => unary(ExpM1, x),
        Activation::HardSigmoid => {
            let line = eval::eval_ternary(TernaryOp::Fma, ty, x, number(1.0 / 6.0), number(0.5));
            eval::eval_ternary(TernaryOp::Clamp, ty, line, zero, one)
        }
    }
}

fn bytes(ty: Scalar, values: impl Iterator<Item = u64>) -> Vec<u8> {
    let size = ty.size() as usize;
    values
        .flat_map(|value| value.to_le_bytes().into_iter().take(size))
        .collect()
}

// What a run leaves in a buffer of so many bytes; nothing where the device lacks a capability that the program needs, which the error names.
fn execute(
    executor: &Executor,
    program: &Program,
    columns: &[(String, Vec<u8>)],
    out: usize,
    config: LaunchConfig,
) -> Option<Vec<u8>> {
    let lacks = missing(executor, program);
    let mut handles = Vec::new();
    // Sizes are multiples of four bytes on all devices.
    for (name, content) in columns {
        handles.push((name.as_str(), upload(executor, content)));
    }
    let result = executor.allocate_buffer(out).expect("memory");
    handles.push(("out", result));
    let program = bind(program.clone(), &handles);
    let done = executor.execute_program(&program, &config);
    let found = match (lacks, done) {
        (None, Ok(())) => Some(
            executor
                .read_buffer::<u8>(result, 0, out)
                .unwrap_or_else(|error| panic!("{error}\n{program}")),
        ),
        (Some(lacks), Err(error)) => {
            assert!(error.to_string().contains(&lacks.to_string()), "{lacks}: {error}");
            eprintln!("skipped on {:?}: {lacks}", executor.device().backend());
            None
        }
        (lacks, done) => panic!("{:?} lacks {lacks:?}: {done:?}\n{program}", executor.device()),
    };
    for (_, handle) in handles {
        executor.free_buffer(handle).expect("there");
    }
    found
}

// A program that runs all cells of a group for each row of operands: one behind the other in `out`.
fn text(cells: &[&Cell]) -> String {
    let (reads, write) = cells[0].operands();
    let mut text = String::from(".program cells\n");
    let mut code = format!(
        " setge.u64 p0, r255, len(x0)\n@p0 exit\n mul.u64 r10, r255, {}\n",
        cells.len()
    );
    for (i, ty) in reads.iter().enumerate() {
        let memory = stored(*ty);
        text += &format!(".buffer x{i}: {memory}\n");
        code += &format!(" ldg.{memory} r{i}, x{i}[r255]\n");
        if *ty == Scalar::Bool {
            code += &format!(" setne.u32 p{}, r{i}, 0\n", i + 1);
        }
    }
    let memory = stored(write);
    for (i, cell) in cells.iter().enumerate() {
        code += &cell.code();
        if write == Scalar::Bool {
            code += " sel.u32 r9, p9, 1, 0\n";
        }
        code += &format!(" stg.{memory} out[r10 + {i}], r9\n");
    }
    text + &format!(".buffer out: {memory}\n{code}")
}

// Whether the device has what they need.
fn check(executor: &Executor, cells: &[&Cell]) -> bool {
    let (reads, write) = cells[0].operands();
    let text = text(cells);
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut rows = rows(&reads);
    rows.retain(|row| {
        cells.iter().all(|cell| match cell.right {
            Right::Map(map) => map.eval(cell.judged, row).is_some(),
            _ => true,
        })
    });
    // Whole words of the smallest elements.
    rows.truncate(rows.len() / 4 * 4);
    let column = |(i, ty): (usize, &Scalar)| {
        let values = rows.iter().map(|row| row[i]);
        (format!("x{i}"), bytes(stored(*ty), values))
    };
    let columns: Vec<(String, Vec<u8>)> = reads.iter().enumerate().map(column).collect();
    let size = stored(write).size() as usize;
    let config = LaunchConfig::linear(rows.len(), 64);
    let len = rows.len() * cells.len() * size;
    let Some(out) = execute(executor, &program, &columns, len, config) else {
        return false;
    };
    let found = out.chunks(size).map(|bytes| {
        let mut all = [0; 8];
        all[..size].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    });
    let wanted = rows
        .iter()
        .flat_map(|row| cells.iter().map(move |cell| (row, cell)));
    for ((row, cell), found) in wanted.zip(found) {
        assert!(
            cell.is_right(executor, row, found),
            "{:?}:{} of {row:#x?} gives {found:#x}",
            executor.device(),
            cell.code()
        );
    }
    true
}

#[test]
fn what_computes_is_right_at_the_edges() {
    let cells = computing();
    assert!(cells.len() > 700, "{}", cells.len());
    let mut groups: Vec<(Group, Vec<&Cell>)> = Vec::new();
    for cell in &cells {
        let key = cell.group();
        match groups
            .iter_mut()
            .find(|(known, cells)| *known == key && cells.len() < 16)
        {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((key, vec![cell])),
        }
    }
    for executor in executors() {
        for ((reads, write, _), cells) in &groups {
            if !check(&executor, cells) {
                // Of 32 bits all devices can do all.
                let plain = |ty: &Scalar| *ty == Scalar::Bool || ty.bits() == 32;
                assert!(!reads.iter().chain([write]).all(plain), "{}", text(cells));
            }
        }
    }
}
