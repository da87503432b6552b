//! Cells of operators: one for each operator of the table with each scalar type that it takes, each cast and each
//! bitcast. A kernel maps columns of operands, edges of the type and random bits, and what it leaves is compared with
//! `perpetua_ir::ops::eval`. Operands that fault are left out. Knows nothing of how operators are rendered.

use perpetua_cpu::testing::{Random, edge_values, random_bytes};
use perpetua_ir::back::Capability;
use perpetua_ir::ir::{Access, Axis, Builtin, KernelBuilder, Op, Place, Scalar, Type, TypeError, Value};
use perpetua_ir::ops::eval::{eval_binary, eval_cast, eval_ternary, eval_unary, result_scalar};
use perpetua_ir::ops::{BinaryOp, Domain, Exactness, Spelling, TernaryOp, UnaryOp};

use super::judge::Judge;
use super::kernels::{compile, guarded};
use super::{Cell, Check, Failure, Need};
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::dynamic::DynBuffer;

/// Random rows of operands, after the edges.
const RANDOM_ROWS: usize = 200;

/// What makes a value of values: the cells' subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Map {
    /// An operator.
    Unary(UnaryOp),
    /// An operator.
    Binary(BinaryOp),
    /// An operator.
    Ternary(TernaryOp),
    /// Rust's `as`.
    Cast(Scalar),
    /// The same bits at another type.
    Bitcast(Scalar),
}

impl Map {
    fn name(self) -> String {
        match self {
            Map::Unary(op) => op.name().to_owned(),
            Map::Binary(op) => op.name().to_owned(),
            Map::Ternary(op) => op.name().to_owned(),
            Map::Cast(to) => format!("cast to {to}"),
            Map::Bitcast(to) => format!("bitcast to {to}"),
        }
    }

    /// Types of the operands, for a first one of type `s` (of `select`: a second one).
    pub fn operands(self, s: Scalar) -> Vec<Scalar> {
        match self {
            Map::Unary(_) | Map::Cast(_) | Map::Bitcast(_) => vec![s],
            Map::Binary(_) => vec![s, s],
            Map::Ternary(TernaryOp::Select) => vec![Scalar::Bool, s, s],
            Map::Ternary(_) => vec![s, s, s],
        }
    }

    /// The result's type.
    pub fn result(self, s: Scalar) -> Scalar {
        match self {
            Map::Unary(op) => result_scalar(op.row().result, s),
            Map::Binary(op) => result_scalar(op.row().result, s),
            Map::Ternary(op) => result_scalar(op.row().result, s),
            Map::Cast(to) | Map::Bitcast(to) => to,
        }
    }

    pub(super) fn exactness(self) -> Exactness {
        match self {
            Map::Unary(op) => op.row().exactness,
            Map::Binary(op) => op.row().exactness,
            Map::Ternary(op) => op.row().exactness,
            Map::Cast(_) | Map::Bitcast(_) => Exactness::Exact,
        }
    }

    /// The result's bits by the table's account; `None` where the operator faults.
    pub fn eval(self, s: Scalar, row: &[u64]) -> Option<u64> {
        Some(match (self, row) {
            (Map::Unary(op), &[a]) => eval_unary(op, s, a),
            (Map::Binary(op), &[a, b]) => eval_binary(op, s, a, b).ok()?,
            (Map::Ternary(op), &[a, b, c]) => eval_ternary(op, s, a, b, c),
            (Map::Cast(to), &[a]) => eval_cast(s, to, a),
            (Map::Bitcast(_), &[a]) => a,
            _ => return None,
        })
    }

    // Whether it gives one of its operands, the smaller or larger, so that either zero is right.
    pub(super) fn chooses(self) -> bool {
        matches!(
            self,
            Map::Binary(BinaryOp::Min | BinaryOp::Max) | Map::Ternary(TernaryOp::Clamp)
        )
    }
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for s in Scalar::ALL {
        cells.extend(maps(s).into_iter().map(|map| cell(map, s)));
    }
    cells.extend(Scalar::ALL.into_iter().map(|s| together(s, false)));
    cells.extend([Scalar::I64, Scalar::U64].map(|s| together(s, true)));
    let lowest = Cell::new("operators/lowest bit of a 64-bit sum", lowest_bit).needs(Need::Compute);
    cells.push(needs(&[Scalar::U64]).into_iter().fold(lowest, Cell::needs));
    cells
}

// What there is for operands of a type.
fn maps(s: Scalar) -> Vec<Map> {
    let mut maps = Vec::new();
    let takes = |domain: Domain| domain.contains(s);
    maps.extend(
        UnaryOp::ALL
            .iter()
            .filter(|op| takes(op.row().domain))
            .map(|op| Map::Unary(*op)),
    );
    maps.extend(
        BinaryOp::ALL
            .iter()
            .filter(|op| takes(op.row().domain))
            .map(|op| Map::Binary(*op)),
    );
    let ternary = |op: &&TernaryOp| **op == TernaryOp::Select || takes(op.row().domain);
    maps.extend(TernaryOp::ALL.iter().filter(ternary).map(|op| Map::Ternary(*op)));
    for to in Scalar::ALL.into_iter().filter(|to| *to != s) {
        if to != Scalar::Bool && (s != Scalar::Bool || to.is_int()) {
            maps.push(Map::Cast(to));
        }
        if to.bits() == s.bits() {
            maps.push(Map::Bitcast(to));
        }
    }
    maps
}

fn cell(map: Map, s: Scalar) -> Cell {
    let name = format!("operators/{} of {s}", map.name());
    let cell = Cell::new(name, move |device| check(device, map, s)).needs(Need::Compute);
    let of_library = match map {
        Map::Unary(op) => op.row().cuda == Spelling::Library,
        Map::Binary(op) => op.row().cuda == Spelling::Library,
        _ => false,
    };
    let math = (of_library && s == Scalar::F64).then_some(Need::Capability(Capability::Math64));
    let needs = needs(&[s, map.result(s)]).into_iter().chain(math);
    needs.fold(cell, Cell::needs)
}

// What a device must have for values of these types.
fn needs(types: &[Scalar]) -> Vec<Need> {
    let mut needs = Vec::new();
    if types.iter().any(|t| matches!(t, Scalar::I64 | Scalar::U64)) {
        needs.push(Need::Capability(Capability::Int64));
    }
    if types.contains(&Scalar::F64) {
        needs.push(Need::Capability(Capability::Float64));
    }
    needs
}

// All exact operators of a type in one kernel: what a compiler makes of an operator may depend on those beside it. `alone`: the first
// lane does all rows, else each lane one.
fn together(s: Scalar, alone: bool) -> Cell {
    let who = if alone { ", by one lane" } else { "" };
    let name = format!("operators/all of {s} in one kernel{who}");
    let cell = Cell::new(name, move |device| check_together(device, s, alone)).needs(Need::Compute);
    needs(&[s]).into_iter().fold(cell, Cell::needs)
}

fn check(device: &Device, map: Map, s: Scalar) -> Check {
    let operands = map.operands(s);
    let mut rows = rows(&operands);
    rows.retain(|row| map.eval(s, row).is_some());
    let found = run(device, map, s, &rows)?;
    judged(device, map, s, &rows, &found)
}

// Operands of one map among those of all: two or three of its type, or first a condition.
fn own(map: Map, row: &[u64]) -> Vec<u64> {
    match (map, row) {
        (Map::Ternary(TernaryOp::Select), &[a, b, _, c]) => vec![c, a, b],
        (Map::Ternary(_), &[a, b, c, _]) => vec![a, b, c],
        (Map::Binary(_), &[a, b, ..]) => vec![a, b],
        _ => row.iter().take(1).copied().collect(),
    }
}

fn check_together(device: &Device, s: Scalar, alone: bool) -> Check {
    let maps: Vec<Map> = maps(s)
        .into_iter()
        .filter(|map| map.exactness() == Exactness::Exact)
        .filter(|map| {
            needs(&[map.result(s)])
                .iter()
                .all(|need| need.missing(device).is_none())
        })
        .collect();
    let columns = [s, s, s, Scalar::Bool];
    let mut random = Random::new(2);
    let mut rows: Vec<Vec<u64>> = rows(&[s, s])
        .into_iter()
        .map(|mut row| {
            let third = row.iter().fold(random.bits() & 1, |v, operand| v ^ operand);
            row.extend([third, random.bits() & 1]);
            row
        })
        .collect();
    rows.retain(|row| maps.iter().all(|map| map.eval(s, &own(*map, row)).is_some()));
    // Every result as its bits, in words as wide as the widest type here.
    let word = match maps.iter().any(|map| map.result(s).bits() == 64) {
        true => Scalar::U64,
        false => Scalar::U32,
    };
    let kernel = compile(device, "operators", |k| {
        let out = k.buffer("out", Type::Scalar(word), Access::ReadWrite);
        let inputs: Vec<_> = (0..columns.len())
            .zip(&columns)
            .map(|(i, s)| k.buffer(format!("x{i}"), Type::Scalar(*s), Access::Read))
            .collect();
        let Some(first) = inputs.first().copied() else {
            return Ok(());
        };
        let all = |k: &mut KernelBuilder, i: Value| {
            let mut row = Vec::new();
            for input in &inputs {
                row.push(k.load(Place::element(*input, i))?);
            }
            let width = k.u32(maps.len() as u32);
            let start = k.binary(BinaryOp::Mul, i, width)?;
            for (n, map) in (0u32..).zip(&maps) {
                let operands: Vec<Value> = own(*map, &[0, 1, 2, 3])
                    .into_iter()
                    .filter_map(|i| row.get(i as usize).copied())
                    .collect();
                let Some(v) = apply(k, *map, &operands)? else {
                    continue;
                };
                let v = bits(k, map.result(s), v)?;
                let v = match map.result(s).to_unsigned() == word {
                    true => v,
                    false => k.cast(word, v)?,
                };
                let at = k.u32(n);
                let at = k.binary(BinaryOp::Add, start, at)?;
                k.store(Place::element(out, at), v)?;
            }
            Ok(())
        };
        match alone {
            false => guarded(k, first, all),
            true => by_first_lane(k, rows.len() as u32, all),
        }
    })?;
    let size = word.size() as usize;
    let out = DynBuffer::upload(
        device,
        &Type::Scalar(word),
        &vec![0; rows.len() * maps.len() * size],
    )?;
    let mut inputs = Vec::new();
    for (i, s) in columns.iter().enumerate() {
        let column = rows.iter().filter_map(|row| row.get(i).copied());
        inputs.push(DynBuffer::upload(
            device,
            &Type::Scalar(*s),
            &to_bytes(*s, column),
        )?);
    }
    let mut args = vec![out.arg()];
    args.extend(inputs.iter().map(DynBuffer::arg));
    device.launch(&kernel, LaunchConfig::linear(rows.len(), 64), &args)?;
    let found = from_bytes(word, &out.read()?);
    for (n, map) in maps.iter().enumerate() {
        let own_rows: Vec<Vec<u64>> = rows.iter().map(|row| own(*map, row)).collect();
        let results: Vec<u64> = found.iter().skip(n).step_by(maps.len()).copied().collect();
        judged(device, *map, s, &own_rows, &results)?;
    }
    Ok(())
}

// `out[(i & 1) * 3 + i % 3 + 6 * i] = 1`, where `i` is the lane's number in 64 bits.
fn lowest_bit(device: &Device) -> Check {
    const LANES: usize = 200;
    let kernel = compile(device, "lowest_bit", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let number = |k: &mut KernelBuilder, b: Builtin| {
            let v = k.builtin(b);
            k.cast(Scalar::U64, v)
        };
        let (block, lanes) = (
            number(k, Builtin::BlockIdx(Axis::X))?,
            number(k, Builtin::BlockDim(Axis::X))?,
        );
        let before = k.binary(BinaryOp::Mul, block, lanes)?;
        let lane = number(k, Builtin::ThreadIdx(Axis::X))?;
        let i = k.binary(BinaryOp::Add, before, lane)?;
        let [one, three, six, all] = [1, 3, 6, LANES as u64].map(|n| k.constant(Scalar::U64, n));
        let inside = k.binary(BinaryOp::Lt, i, all)?;
        k.if_(inside, |k| {
            let odd = k.binary(BinaryOp::And, i, one)?;
            let row = k.binary(BinaryOp::Mul, odd, three)?;
            let column = k.binary(BinaryOp::Rem, i, three)?;
            let start = k.binary(BinaryOp::Mul, i, six)?;
            let at = k.binary(BinaryOp::Add, row, column)?;
            let at = k.binary(BinaryOp::Add, start, at)?;
            let mark = k.u32(1);
            k.store(Place::element(out, at), mark)
        })
    })?;
    let out = DynBuffer::upload(device, &Type::U32, &[0; LANES * 6 * 4])?;
    device.launch(&kernel, LaunchConfig::linear(LANES, 64), &[out.arg()])?;
    let found = from_bytes(Scalar::U32, &out.read()?);
    let mut expect = vec![0; LANES * 6];
    for i in 0..LANES {
        expect[i * 6 + i % 2 * 3 + i % 3] = 1;
    }
    super::same_all("marks", &found, &expect)
}

// `then` for each of `rows` rows, in the first lane.
fn by_first_lane(
    k: &mut KernelBuilder,
    rows: u32,
    then: impl FnOnce(&mut KernelBuilder, Value) -> Result<(), TypeError>,
) -> Result<(), TypeError> {
    let i = k.global_id(Axis::X)?;
    let zero = k.u32(0);
    let is_first = k.binary(BinaryOp::Eq, i, zero)?;
    k.if_(is_first, |k| {
        let row = Place::local(k.local("row", Type::U32));
        k.store(row.clone(), zero)?;
        k.loop_(|k| {
            let at = k.load(row.clone())?;
            let rows = k.u32(rows);
            let done = k.binary(BinaryOp::Ge, at, rows)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            then(k, at)?;
            let one = k.u32(1);
            let next = k.binary(BinaryOp::Add, at, one)?;
            k.store(row, next)
        })
    })
}

// A value's bits as an unsigned integer of its width; `bool` as a `u32`.
fn bits(k: &mut KernelBuilder, s: Scalar, v: Value) -> Result<Value, TypeError> {
    match s {
        Scalar::Bool => k.cast(Scalar::U32, v),
        _ if s == s.to_unsigned() => Ok(v),
        _ => k.op(Op::Bitcast(s.to_unsigned(), v)),
    }
}

fn judged(device: &Device, map: Map, s: Scalar, rows: &[Vec<u64>], found: &[u64]) -> Check {
    let judge = Judge {
        map,
        s,
        probe: device.info().numeric_probe.unwrap_or_default(),
    };
    let wrong: Vec<_> = rows
        .iter()
        .zip(found)
        .filter(|(row, found)| !judge.accepts(row, **found))
        .collect();
    let Some((row, found)) = wrong.first() else {
        return Ok(());
    };
    let expect = map.eval(s, row).unwrap_or_default();
    Err(Failure(format!(
        "{} of {} rows differ; the first: {} of {s} {row:#x?} gives {} {found:#x}, expected {expect:#x}",
        wrong.len(),
        rows.len(),
        map.name(),
        map.result(s),
    )))
}

/// Rows of operands: edges with each other (of three operands, a sample), then random ones.
pub fn rows(operands: &[Scalar]) -> Vec<Vec<u64>> {
    let mut random = Random::new(1);
    let edges: Vec<Vec<u64>> = operands.iter().map(|s| edge_values(*s)).collect();
    let mut rows = match &edges[..] {
        [a] => a.iter().map(|a| vec![*a]).collect(),
        [a, b] => a.iter().flat_map(|a| b.iter().map(|b| vec![*a, *b])).collect(),
        more => (0..1000)
            .map(|_| {
                let pick = |all: &Vec<u64>| all.get(random.bits() as usize % all.len()).copied();
                more.iter().filter_map(pick).collect()
            })
            .collect::<Vec<_>>(),
    };
    let columns: Vec<Vec<u64>> = operands
        .iter()
        .map(|s| from_bytes(*s, &random_bytes(&Type::Scalar(*s), RANDOM_ROWS, &mut random)))
        .collect();
    rows.extend((0..RANDOM_ROWS).map(|i| {
        columns
            .iter()
            .filter_map(|c| c.get(i).copied())
            .collect::<Vec<_>>()
    }));
    rows
}

fn to_bytes(s: Scalar, values: impl Iterator<Item = u64>) -> Vec<u8> {
    values
        .flat_map(|v| v.to_le_bytes().into_iter().take(s.size() as usize))
        .collect()
}

fn from_bytes(s: Scalar, bytes: &[u8]) -> Vec<u64> {
    let one = |bytes: &[u8]| bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
    bytes.chunks_exact(s.size() as usize).map(one).collect()
}

// A map's result; `None` for too few operands.
fn apply(k: &mut KernelBuilder, map: Map, operands: &[Value]) -> Result<Option<Value>, TypeError> {
    Ok(Some(match (map, operands) {
        (Map::Unary(op), &[a]) => k.unary(op, a)?,
        (Map::Binary(op), &[a, b]) => k.binary(op, a, b)?,
        (Map::Ternary(op), &[a, b, c]) => k.ternary(op, a, b, c)?,
        (Map::Cast(to), &[a, ..]) => k.cast(to, a)?,
        (Map::Bitcast(to), &[a, ..]) => k.op(Op::Bitcast(to, a))?,
        _ => return Ok(None),
    }))
}

fn run(device: &Device, map: Map, s: Scalar, rows: &[Vec<u64>]) -> Result<Vec<u64>, Failure> {
    let (operands, result) = (map.operands(s), map.result(s));
    let kernel = compile(device, "operator", |k| {
        let out = k.buffer("out", Type::Scalar(result), Access::ReadWrite);
        let columns: Vec<_> = (0..operands.len())
            .zip(&operands)
            .map(|(i, s)| k.buffer(format!("x{i}"), Type::Scalar(*s), Access::Read))
            .collect();
        guarded(k, out, |k, i| {
            let mut values = Vec::new();
            for column in columns {
                values.push(k.load(Place::element(column, i))?);
            }
            match apply(k, map, &values)? {
                Some(v) => k.store(Place::element(out, i), v),
                None => Ok(()),
            }
        })
    })?;
    let bytes = vec![0; rows.len() * result.size() as usize];
    let out = DynBuffer::upload(device, &Type::Scalar(result), &bytes)?;
    let mut columns = Vec::new();
    for (i, s) in operands.iter().enumerate() {
        let column = rows.iter().filter_map(|row| row.get(i).copied());
        columns.push(DynBuffer::upload(
            device,
            &Type::Scalar(*s),
            &to_bytes(*s, column),
        )?);
    }
    let mut args = vec![out.arg()];
    args.extend(columns.iter().map(DynBuffer::arg));
    device.launch(&kernel, LaunchConfig::linear(rows.len(), 64), &args)?;
    Ok(from_bytes(result, &out.read()?))
}
