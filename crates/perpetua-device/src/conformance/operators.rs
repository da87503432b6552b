//! Cells of operators: one for each operator of the table with each scalar type that it takes, each cast and each
//! bitcast. A kernel maps columns of operands, edges of the type and random bits, and what it leaves is compared with
//! `perpetua_ir::ops::eval`. Operands that fault are left out. Knows nothing of how operators are rendered.

use half::{bf16, f16};
use perpetua_ir::back::Capability;
use perpetua_ir::ir::{Access, Op, Place, Scalar, Type};
use perpetua_ir::ops::eval::{eval_binary, eval_cast, eval_ternary, eval_unary, result_scalar};
use perpetua_ir::ops::{BinaryOp, Domain, Exactness, TernaryOp, UnaryOp};
use perpetua_ir::testing::{Random, edge_values, random_bytes};

use super::kernels::{compile, guarded};
use super::{Cell, Check, Failure, Need};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::info::NumericProbe;
use crate::signature::{ArgType, BufferArg, KernelArg};

/// Units in the last place that a device whose probe is not exact gets on top of an operator's own bound.
const INEXACT_SLACK: u64 = 4;

/// Random rows of operands, after the edges.
const RANDOM_ROWS: usize = 200;

/// What a cell maps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Map {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Ternary(TernaryOp),
    Cast(Scalar),
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

    fn operands(self, s: Scalar) -> Vec<Scalar> {
        match self {
            Map::Unary(_) | Map::Cast(_) | Map::Bitcast(_) => vec![s],
            Map::Binary(_) => vec![s, s],
            Map::Ternary(TernaryOp::Select) => vec![Scalar::Bool, s, s],
            Map::Ternary(_) => vec![s, s, s],
        }
    }

    fn result(self, s: Scalar) -> Scalar {
        match self {
            Map::Unary(op) => result_scalar(op.row().result, s),
            Map::Binary(op) => result_scalar(op.row().result, s),
            Map::Ternary(op) => result_scalar(op.row().result, s),
            Map::Cast(to) | Map::Bitcast(to) => to,
        }
    }

    fn exactness(self) -> Exactness {
        match self {
            Map::Unary(op) => op.row().exactness,
            Map::Binary(op) => op.row().exactness,
            Map::Ternary(op) => op.row().exactness,
            Map::Cast(_) | Map::Bitcast(_) => Exactness::Exact,
        }
    }

    // The result's bits; `None` where the operator faults.
    fn eval(self, s: Scalar, row: &[u64]) -> Option<u64> {
        Some(match (self, row) {
            (Map::Unary(op), &[a]) => eval_unary(op, s, a),
            (Map::Binary(op), &[a, b]) => eval_binary(op, s, a, b).ok()?,
            (Map::Ternary(op), &[a, b, c]) => eval_ternary(op, s, a, b, c),
            (Map::Cast(to), &[a]) => eval_cast(s, to, a),
            (Map::Bitcast(_), &[a]) => a,
            _ => return None,
        })
    }

    // Whether either zero is right.
    fn any_zero(self) -> bool {
        matches!(
            self,
            Map::Binary(BinaryOp::Min | BinaryOp::Max) | Map::Ternary(TernaryOp::Clamp)
        )
    }
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for s in Scalar::ALL {
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
        cells.extend(maps.into_iter().map(|map| cell(map, s)));
    }
    cells
}

fn cell(map: Map, s: Scalar) -> Cell {
    let name = format!("operators/{} of {s}", map.name());
    let mut cell = Cell::new(name, move |device| check(device, map, s)).needs(Need::Compute);
    let types = [s, map.result(s)];
    if types.iter().any(|t| matches!(t, Scalar::I64 | Scalar::U64)) {
        cell = cell.needs(Need::Capability(Capability::Int64));
    }
    if types.contains(&Scalar::F64) {
        cell = cell.needs(Need::Capability(Capability::Float64));
    }
    // Their reductions keep, by fused steps, what two roundings lose.
    let fused = [UnaryOp::Sin, UnaryOp::Cos, UnaryOp::Tan]
        .map(Map::Unary)
        .contains(&map)
        || map == Map::Binary(BinaryOp::Pow);
    if fused {
        cell = cell.needs(Need::ExactFma);
    }
    cell
}

fn check(device: &Device, map: Map, s: Scalar) -> Check {
    let operands = map.operands(s);
    let mut rows = rows(&operands);
    rows.retain(|row| map.eval(s, row).is_some());
    let found = run(device, map, s, &rows)?;
    let judge = Judge {
        map,
        s,
        probe: device.info().numeric_probe.unwrap_or_default(),
    };
    let wrong: Vec<_> = rows
        .iter()
        .zip(&found)
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

// Rows of operands: edges with each other (of three operands, a sample), then random ones.
fn rows(operands: &[Scalar]) -> Vec<Vec<u64>> {
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

fn argument(buffer: &Buffer<u8>, s: Scalar) -> KernelArg<'_> {
    let element = match s {
        Scalar::Bool => ArgType::of::<bool>(),
        Scalar::I8 => ArgType::of::<i8>(),
        Scalar::I16 => ArgType::of::<i16>(),
        Scalar::I32 => ArgType::of::<i32>(),
        Scalar::I64 => ArgType::of::<i64>(),
        Scalar::U8 => ArgType::of::<u8>(),
        Scalar::U16 => ArgType::of::<u16>(),
        Scalar::U32 => ArgType::of::<u32>(),
        Scalar::U64 => ArgType::of::<u64>(),
        Scalar::F16 => ArgType::of::<f16>(),
        Scalar::BF16 => ArgType::of::<bf16>(),
        Scalar::F32 => ArgType::of::<f32>(),
        Scalar::F64 => ArgType::of::<f64>(),
    };
    KernelArg::Buffer(BufferArg {
        ptr: buffer.ptr(),
        len: buffer.bytes() / u64::from(s.size()),
        element,
    })
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
            let v = match (map, &values[..]) {
                (Map::Unary(op), &[a]) => k.unary(op, a)?,
                (Map::Binary(op), &[a, b]) => k.binary(op, a, b)?,
                (Map::Ternary(op), &[a, b, c]) => k.ternary(op, a, b, c)?,
                (Map::Cast(to), &[a, ..]) => k.cast(to, a)?,
                (Map::Bitcast(to), &[a, ..]) => k.op(Op::Bitcast(to, a))?,
                // The columns were made from the same operands.
                _ => return Ok(()),
            };
            k.store(Place::element(out, i), v)
        })
    })?;
    let out = device.zeros::<u8>(rows.len() * result.size() as usize)?;
    let mut columns = Vec::new();
    for (i, s) in operands.iter().enumerate() {
        let column = rows.iter().filter_map(|row| row.get(i).copied());
        columns.push((device.upload(&to_bytes(*s, column))?, *s));
    }
    let mut args = vec![argument(&out, result)];
    args.extend(columns.iter().map(|(buffer, s)| argument(buffer, *s)));
    device.launch(&kernel, LaunchConfig::linear(rows.len(), 64), &args)?;
    Ok(from_bytes(result, &out.read()?))
}

// Bits of a float's mantissa.
fn mantissa(s: Scalar) -> Option<u32> {
    match s {
        Scalar::F16 => Some(10),
        Scalar::BF16 => Some(7),
        Scalar::F32 => Some(23),
        Scalar::F64 => Some(52),
        _ => None,
    }
}

fn magnitude(s: Scalar, bits: u64) -> u64 {
    bits & ((1 << (s.bits() - 1)) - 1)
}

fn is_nan(s: Scalar, bits: u64) -> bool {
    mantissa(s).is_some_and(|m| {
        magnitude(s, bits) >> m == (1 << (s.bits() - 1 - m)) - 1 && bits & ((1 << m) - 1) != 0
    })
}

// Zero of the same sign for a subnormal number.
fn flush(s: Scalar, bits: u64) -> u64 {
    match mantissa(s) {
        Some(m) if magnitude(s, bits) >> m == 0 => bits ^ magnitude(s, bits),
        _ => bits,
    }
}

// Numbers of a float type between two.
fn distance(s: Scalar, a: u64, b: u64) -> u64 {
    let order = |bits: u64| {
        let m = i128::from(magnitude(s, bits));
        if m == i128::from(bits) { m } else { -m }
    };
    (order(a) - order(b)).unsigned_abs() as u64
}

/// Tells right results from wrong ones.
struct Judge {
    map: Map,
    s: Scalar,
    probe: NumericProbe,
}

impl Judge {
    fn accepts(&self, row: &[u64], found: u64) -> bool {
        let (map, s) = (self.map, self.s);
        if matches!(map, Map::Bitcast(_)) && row.iter().any(|v| is_nan(s, *v)) {
            // The payload may be lost on the way.
            return true;
        }
        let near = |expect: Option<u64>| expect.is_some_and(|expect| self.near(expect, found));
        if near(map.eval(s, row)) {
            return true;
        }
        let mut others = Vec::new();
        if self.probe.keeps_denormals != Some(true) {
            let flushed: Vec<u64> = map
                .operands(s)
                .iter()
                .zip(row)
                .map(|(s, v)| flush(*s, *v))
                .collect();
            others.push(map.eval(s, &flushed));
            others.push(map.eval(s, row).map(|v| flush(map.result(s), v)));
            others.push(map.eval(s, &flushed).map(|v| flush(map.result(s), v)));
        }
        if let (Map::Ternary(TernaryOp::Fma), &[a, b, c]) = (map, row)
            && self.probe.exact_fma != Some(true)
        {
            let product = eval_binary(BinaryOp::Mul, s, a, b);
            others.push(product.and_then(|p| eval_binary(BinaryOp::Add, s, p, c)).ok());
        }
        others.into_iter().any(near)
    }

    fn near(&self, expect: u64, found: u64) -> bool {
        let r = self.map.result(self.s);
        if expect == found || is_nan(r, expect) && is_nan(r, found) {
            return true;
        }
        if !r.is_float() || is_nan(r, expect) || is_nan(r, found) {
            return false;
        }
        if self.map.any_zero() && magnitude(r, expect) == 0 && magnitude(r, found) == 0 {
            return true;
        }
        // The bound is one of f32; in the narrower formats it rounds to the next number at most.
        let own = match self.map.exactness() {
            Exactness::Exact => 0,
            Exactness::Ulp(n) if r.size() < 4 => u64::from(n).min(1),
            Exactness::Ulp(n) => u64::from(n),
        };
        let moves = matches!(self.map, Map::Bitcast(_) | Map::Ternary(TernaryOp::Select));
        let slack = if self.probe.is_exact() || moves {
            0
        } else {
            INEXACT_SLACK
        };
        let bound = own + slack;
        bound > 0 && distance(r, expect, found) <= bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_tells_right_from_wrong() {
        let check = |map, probe, row: &[f32], found: f32, expect: bool| {
            let judge = Judge {
                map,
                s: Scalar::F32,
                probe,
            };
            let row: Vec<u64> = row.iter().map(|v| u64::from(v.to_bits())).collect();
            assert_eq!(
                judge.accepts(&row, u64::from(found.to_bits())),
                expect,
                "{map:?} {row:x?} {found}"
            );
        };
        let (exact, unknown) = (NumericProbe::EXACT, NumericProbe::default());
        let add = Map::Binary(BinaryOp::Add);
        check(add, exact, &[1.0, 2.0], 3.0, true);
        check(add, exact, &[1.0, 2.0], 3.0f32.next_up(), false);
        check(add, unknown, &[1.0, 2.0], 3.0f32.next_up(), true);
        check(add, unknown, &[1.0, 2.0], 3.1, false);
        check(add, exact, &[1e-40, 0.0], 0.0, false);
        check(add, unknown, &[1e-40, 0.0], 0.0, true);
        check(add, exact, &[f32::INFINITY, f32::NEG_INFINITY], -f32::NAN, true);
        check(add, unknown, &[f32::INFINITY, f32::NEG_INFINITY], 0.0, false);
        check(add, exact, &[0.0, 0.0], -0.0, false);
        check(Map::Binary(BinaryOp::Min), exact, &[0.0, -0.0], 0.0, true);
    }
}
