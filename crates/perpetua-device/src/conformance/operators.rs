//! Cells of operators: one for each operator of the table with each scalar type that it takes, each cast and each
//! bitcast. A kernel maps columns of operands, edges of the type and random bits, and what it leaves is compared with
//! `perpetua_ir::ops::eval`. Operands that fault are left out. Knows nothing of how operators are rendered.

use perpetua_ir::back::Capability;
use perpetua_ir::ir::{Access, Op, Place, Scalar, Type};
use perpetua_ir::ops::eval::{eval_binary, eval_cast, eval_ternary, eval_unary, result_scalar};
use perpetua_ir::ops::{BinaryOp, Domain, Exactness, TernaryOp, UnaryOp};
use perpetua_ir::testing::{Random, edge_values, random_bytes};

use super::judge::Judge;
use super::kernels::{compile, guarded};
use super::{Cell, Check, Failure, Need};
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::dynamic::DynBuffer;

/// Random rows of operands, after the edges.
const RANDOM_ROWS: usize = 200;

/// What a cell maps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Map {
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

    pub(super) fn operands(self, s: Scalar) -> Vec<Scalar> {
        match self {
            Map::Unary(_) | Map::Cast(_) | Map::Bitcast(_) => vec![s],
            Map::Binary(_) => vec![s, s],
            Map::Ternary(TernaryOp::Select) => vec![Scalar::Bool, s, s],
            Map::Ternary(_) => vec![s, s, s],
        }
    }

    pub(super) fn result(self, s: Scalar) -> Scalar {
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

    // The result's bits; `None` where the operator faults.
    pub(super) fn eval(self, s: Scalar, row: &[u64]) -> Option<u64> {
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
