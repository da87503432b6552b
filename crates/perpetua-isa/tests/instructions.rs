//! Each instruction on each backend that the build has: those that compute, over edge values against the table's own account; all
//! others by a program and what it must leave.

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;

use common::{bind, executors, upload};
use perpetua_device::conformance::{Judge, Map, rows};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, Domain, TernaryOp, UnaryOp, eval};
use perpetua_isa::{Activation, Arguments, Executor, LaunchConfig, Meaning, Opcode, Program, Slot, Ty};

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

// What a run leaves in a buffer of so many bytes; why not, where the device cannot run it.
fn execute(
    executor: &Executor,
    program: &Program,
    columns: &[(String, Vec<u8>)],
    out: usize,
    config: LaunchConfig,
    arguments: &Arguments,
) -> Result<Vec<u8>, String> {
    let mut handles = Vec::new();
    // Sizes are multiples of four bytes on all devices.
    for (name, content) in columns {
        handles.push((name.as_str(), upload(executor, content)));
    }
    let result = executor.allocate_buffer(out).expect("memory");
    handles.push(("out", result));
    let program = bind(program.clone(), &handles);
    let done = executor
        .execute(&program, &config, arguments)
        .map_err(|error| error.to_string());
    let found = done.map(|()| {
        executor
            .read_buffer::<u8>(result, 0, out)
            .unwrap_or_else(|error| panic!("{error}\n{program}"))
    });
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

fn check(executor: &Executor, cells: &[&Cell]) -> Result<(), String> {
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
    let out = execute(
        executor,
        &program,
        &columns,
        rows.len() * cells.len() * size,
        config,
        &Arguments::new(),
    )?;
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
    Ok(())
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
        let mut skipped = 0;
        for ((reads, write, _), cells) in &groups {
            if let Err(why) = check(&executor, cells) {
                // For what the device lacks alone: of 32 bits all can do all.
                let plain = |ty: &Scalar| *ty == Scalar::Bool || ty.bits() == 32;
                assert!(!reads.iter().chain([write]).all(plain), "{why}\n{}", text(cells));
                eprintln!("skipped on {:?}: {why}", executor.device().backend());
                skipped += cells.len();
            }
        }
        assert!(skipped < cells.len() / 2, "{skipped}");
    }
}

// Two blocks of 64 lanes run each; `out` begins with zeros, `x` counts from 0. Instructions, program, and what `out` holds in the end.
const OTHERS: &[(&str, &str, &[u32])] = &[
    (
        "ldg stg",
        ".buffer x: u32\n.buffer out: u32\n ldg.u32 r0, x[r252 + 1]\n setlt.u32 p0, r252, 3\n@p0 stg.u32 out[r252], r0",
        &[1, 2, 3, 0],
    ),
    (
        "lds sts bar",
        ".buffer out: u32\n.shared s: u32[64]\n sts.u32 s[r252], r252\n bar\n sub.u32 r0, 63, r252\n lds.u32 r1, s[r0]\n stg.u32 out[r252], r1",
        &[63, 62, 61, 60],
    ),
    (
        "ldc",
        ".buffer out: u32\n.const t: u32 = 7, 5, 3\n ldc.u32 r0, t[1]\n stg.u32 out[0], r0",
        &[5, 0],
    ),
    (
        "bra nop",
        ".buffer out: u32\n setlt.u32 p0, r252, 2\n@p0 bra there\n nop\n exit\nthere: stg.u32 out[r252], 4",
        &[4, 4, 0],
    ),
    (
        "call ret",
        ".buffer out: u32\n mov.u32 r0, 1\n call f\n call f\n stg.u32 out[0], r0\n.func f\n add.u32 r0, r0, r0\n seteq.u32 p0, r0, 4\n@p0 ret\n add.u32 r0, r0, 0\n ret",
        &[4, 0],
    ),
    (
        "loop exit",
        ".buffer out: u32\n mov.u32 r0, 5\n mov.u32 r1, 0\nagain: add.u32 r1, r1, 1\n loop r0, again\n stg.u32 out[0], r1\n exit\n stg.u32 out[1], 9",
        &[6, 0],
    ),
    (
        "fence_thread fence_block fence_device",
        ".buffer out: u32\n stg.u32 out[0], 1\n fence_thread\n fence_block\n fence_device\n ldg.u32 r0, out[0]\n stg.u32 out[1], r0",
        &[1, 1, 0],
    ),
    (
        "atom_add atom_sub atom_min atom_max",
        ".buffer out: u32\n atom_add.u32 r0, out[0], 3\n atom_sub.u32 r0, out[1], 1\n atom_min.u32 r0, out[0], 4000\n atom_max.u32 r0, out[2], r252",
        &[384, 0u32.wrapping_sub(128), 63, 0],
    ),
    (
        "atom_and atom_or atom_xor atom_exchange",
        ".buffer out: u32\n shl.u32 r1, 1, r252\n atom_or.u32 r0, out[0], r1\n atom_and.u32 r0, out[1], 3\n atom_xor.u32 r0, out[2], r252\n atom_exchange.u32 r0, out[3], 8",
        &[u32::MAX, 0, 0, 8, 0],
    ),
    (
        "atom_cas",
        ".buffer out: u32\n atom_cas.u32 r0, out[0], 0, 7\n seteq.u32 p0, r0, 0\n@p0 atom_add.u32 r0, out[1], 1",
        &[7, 1, 0],
    ),
    (
        "copy fill",
        ".buffer x: u32\n.buffer out: u32\n copy.u32 out[0], x[2], 3\n fill.u32 out[4], 9, 2",
        &[2, 3, 4, 0, 9, 9, 0],
    ),
    (
        "reduce_add reduce_mul reduce_min reduce_max",
        ".buffer out: u32\n mov.u32 r1, 6\n mov.u32 r2, 3\n mov.u32 r3, 5\n reduce_add.u32 r0, r1, 3\n stg.u32 out[0], r0\n reduce_mul.u32 r0, r1, 3\n stg.u32 out[1], r0\n reduce_min.u32 r0, r1, 3\n stg.u32 out[2], r0\n reduce_max.u32 r0, r1, 3\n stg.u32 out[3], r0",
        &[14, 90, 3, 6, 0],
    ),
    (
        "reduce_and reduce_or reduce_xor",
        ".buffer out: u32\n mov.u32 r1, 6\n mov.u32 r2, 3\n mov.u32 r3, 10\n reduce_and.u32 r0, r1, 3\n stg.u32 out[0], r0\n reduce_or.u32 r0, r1, 3\n stg.u32 out[1], r0\n reduce_xor.u32 r0, r1, 3\n stg.u32 out[2], r0",
        &[2, 15, 15, 0],
    ),
    (
        "group_add group_mul group_min group_max",
        ".buffer out: u32\n add.u32 r1, r252, 3\n group_add.u32 r0, r1\n stg.u32 out[0], r0\n setlt.u32 p0, r252, 3\n sel.u32 r2, p0, 2, 1\n group_mul.u32 r0, r2\n stg.u32 out[1], r0\n group_min.u32 r0, r1\n stg.u32 out[2], r0\n group_max.u32 r0, r1\n stg.u32 out[3], r0",
        &[2208, 8, 3, 66, 0],
    ),
    (
        "group_and group_or group_xor",
        ".buffer out: u32\n or.u32 r1, r252, 256\n group_and.u32 r0, r1\n stg.u32 out[0], r0\n group_or.u32 r0, r1\n stg.u32 out[1], r0\n setlt.u32 p0, r252, 3\n sel.u32 r1, p0, r1, 0\n group_xor.u32 r0, r1\n stg.u32 out[2], r0",
        &[256, 256 + 63, 256 + 3, 0],
    ),
    (
        "grid_add grid_mul grid_min grid_max",
        ".buffer out: u32\n atom_cas.u32 r0, out[1], 0, 1\n bar\n grid_add.u32 out[0], 2\n setlt.u32 p0, r252, 2\n sel.u32 r1, p0, 3, 1\n grid_mul.u32 out[1], r1\n grid_min.u32 out[2], r252\n grid_max.u32 out[3], r252",
        &[256, 81, 0, 63, 0],
    ),
    (
        "grid_and grid_or grid_xor",
        ".buffer out: u32\n grid_and.u32 out[0], 5\n grid_or.u32 out[1], r252\n mov.u32 r1, %gid\n seteq.u32 p0, r1, 77\n sel.u32 r1, p0, 12, 0\n grid_xor.u32 out[2], r1",
        &[0, 63, 12, 0],
    ),
    (
        "tile_mma",
        ".buffer out: u32\n mov.u32 r0, 1\n mov.u32 r1, 0\n mov.u32 r2, 2\n mov.u32 r3, 3\n mov.u32 r4, 5\n mov.u32 r5, 7\n tile_mma.u32 r0, r2, r4, 1, 2, 1\n tile_mma.u32 r0, r2, r4, 1, 1, 2\n stg.u32 out[0], r0\n stg.u32 out[1], r1",
        &[1 + 10 + 31, 14, 0],
    ),
];

#[test]
fn all_others_do_what_they_say() {
    for executor in executors() {
        for (names, text, expected) in OTHERS {
            let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
            let mut columns = Vec::new();
            if program.memory("x").is_some() {
                columns.push(("x".to_owned(), bytes(Scalar::U32, 0..66)));
            }
            let config = LaunchConfig::new(2, 64);
            let found = execute(&executor, &program, &columns, 4 * 64, config, &Arguments::new());
            let found = match found {
                Ok(found) => found,
                // WGSL has no fences by themselves.
                Err(error) if names.contains("fence") && error.contains("WGSL lacks") => continue,
                Err(error) => panic!("{names}: {error}"),
            };
            let found: Vec<u32> = found
                .chunks(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect();
            let seen = &found[..expected.len()];
            assert_eq!(seen, *expected, "{names} on {:?}", executor.device());
        }
    }
}

#[test]
fn no_instruction_is_left_out() {
    let others: BTreeSet<&str> = OTHERS.iter().flat_map(|(names, ..)| names.split(' ')).collect();
    let computing: BTreeSet<&str> = computing()
        .iter()
        .map(|cell| cell.opcode.row().name.as_str())
        .collect();
    for opcode in Opcode::all() {
        let name = opcode.row().name.as_str();
        // Order with the host has no result here; pools have a test of their own.
        let elsewhere = name == "fence_system" || name.starts_with("pool_");
        let known = others.contains(name) || computing.contains(name) || elsewhere;
        assert!(known, "`{name}` is tested by nothing here");
    }
}
