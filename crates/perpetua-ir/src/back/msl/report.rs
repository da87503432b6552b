//! What a kernel tells the host of faults, as `crate::fault` lays it out.

use super::super::c_like::c;
use super::super::c_like::{Expr, Report, Writer, fold_cast, mark_dead};
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
    let report = Report::of(operands);
    let name = w.m.helper(report.name, |name| {
        let lines = report.lines(
            ["bid", "tid"],
            |of| [format!("uint({of})"), format!("uint({of} >> 32)")],
            "site",
            |word, value| format!("atomic_store_explicit(&record[{word}], {value}, memory_order_relaxed);"),
        );
        let params = report.params(|of| format!("ulong {of}"));
        format!(
            "// The first lane that faults in a launch claims the record. The exchange may fail for no reason.\nstatic inline void {name}(device atomic_uint* record, uint site, uint3 tid, uint3 bid, {params})\n{{\n    uint claimed = 0u;\n    while (!atomic_compare_exchange_weak_explicit(&record[{claim}], &claimed, 1u, memory_order_relaxed, memory_order_relaxed)) {{\n        if (claimed != 0u) {{\n            return;\n        }}\n    }}\n{lines}}}\n",
            claim = record::CLAIM,
        )
    });
    let zero = c::literal(d, Scalar::U64, 0);
    let operands = report.args(operands, |s, e| extended(d, s, e).text, &zero.text);
    mark_dead(w);
    w.write(&format!(
        "{name}(fault_record, site_base + {site}u, tid, bid, {operands});"
    ));
}
