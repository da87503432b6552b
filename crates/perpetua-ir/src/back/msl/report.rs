//! What a kernel tells the host of faults, as `crate::fault` lays it out.

use super::super::c_like::c;
use super::super::c_like::{Expr, Writer, fold_cast, mark_dead};
use super::dialect::Msl;
use crate::fault::record;
use crate::ir::Scalar;

/// An integer operand in 64 bits, extended by its type.
fn extended(d: &Msl, s: Scalar, e: &Expr) -> Expr {
    if let Some(bits) = e.literal {
        return c::literal(d, Scalar::U64, fold_cast(s, Scalar::U64, bits));
    }
    c::cast(d, s, Scalar::U64, e).unwrap_or_else(|| e.clone())
}

/// Reports a fault and marks the lane dead where somebody asks for that.
pub(super) fn fault(d: &Msl, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
    let name = w.m.helper("report_fault", |name| {
        let lines: String = [
            (record::BLOCK, "bid.x"),
            (record::BLOCK + 1, "bid.y"),
            (record::BLOCK + 2, "bid.z"),
            (record::THREAD, "tid.x"),
            (record::THREAD + 1, "tid.y"),
            (record::THREAD + 2, "tid.z"),
            (record::FIRST, "uint(first)"),
            (record::FIRST + 1, "uint(first >> 32)"),
            (record::SECOND, "uint(second)"),
            (record::SECOND + 1, "uint(second >> 32)"),
            (record::SITE, "site"),
        ]
        .iter()
        .map(|(word, value)| {
            format!("    atomic_store_explicit(&record[{word}], {value}, memory_order_relaxed);\n")
        })
        .collect();
        format!(
            "// The first lane that faults in a launch claims the record. The exchange may fail for no reason.\nstatic inline void {name}(device atomic_uint* record, uint site, uint3 tid, uint3 bid, ulong first, ulong second)\n{{\n    uint claimed = 0u;\n    while (!atomic_compare_exchange_weak_explicit(&record[{claim}], &claimed, 1u, memory_order_relaxed, memory_order_relaxed)) {{\n        if (claimed != 0u) {{\n            return;\n        }}\n    }}\n{lines}}}\n",
            claim = record::CLAIM,
        )
    });
    let zero = c::literal(d, Scalar::U64, 0);
    let mut operands = operands.iter().map(|(s, e)| extended(d, *s, e));
    let first = operands.next().unwrap_or_else(|| zero.clone());
    let second = operands.next().unwrap_or(zero);
    mark_dead(w);
    w.write(&format!(
        "{name}(fault_record, site_base + {site}u, tid, bid, {}, {});",
        first.text, second.text
    ));
}
