//! What a kernel tells the host of faults, as `crate::fault` lays it out.

use super::super::c_like::{Expr, Report, Writer, mark_dead};
use super::scalar;
use crate::fault::record;
use crate::ir::Scalar;

/// Low and high word of an integer operand, extended to 64 bits by its type.
fn words(w: &Writer<'_>, s: Scalar, e: &Expr) -> [Expr; 2] {
    let zero = scalar::literal(w.m, Scalar::U32, 0);
    if let Some((inner, t)) = &e.unwidened {
        return words(w, *t, inner);
    }
    if let Some(bits) = e.literal {
        let bits = super::super::c_like::fold_cast(s, Scalar::U64, bits);
        return [bits & 0xffff_ffff, bits >> 32].map(|b| scalar::literal(w.m, Scalar::U32, b));
    }
    match scalar::held(s) {
        Scalar::U64 | Scalar::I64 => {
            let bits = scalar::cast_integer(w.m, s, Scalar::U64, e);
            let high = Expr::whole(format!("({} >> 32u)", bits.at(super::super::c_like::Bind::Whole)));
            [
                scalar::convert(Scalar::U32, &bits),
                scalar::convert(Scalar::U32, &high),
            ]
        }
        Scalar::I32 => {
            let high = Expr::whole(format!("{} >> 31u", e.at(super::super::c_like::Bind::Prefix)));
            [
                scalar::convert(Scalar::U32, e),
                scalar::convert(Scalar::U32, &high),
            ]
        }
        _ => [e.clone(), zero],
    }
}

/// Reports a fault and marks the lane dead where somebody asks for that.
pub(super) fn fault(w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
    let report = Report::of(operands);
    let name = w.m.helper(report.name, |name| {
        let lines = report.lines(
            ["bid", "tid"],
            |of| [format!("{of}.x"), format!("{of}.y")],
            |word, value| format!("atomicStore(&fault_record[{word}], {value});"),
        );
        let params = report.params(|of| format!("{of}: vec2<u32>"));
        format!(
            "// The first lane that faults in a launch claims the record.\nfn {name}(site: u32, tid: vec3<u32>, bid: vec3<u32>, {params}) {{\n    if (atomicExchange(&fault_record[{claim}], 1u) != 0u) {{\n        return;\n    }}\n{lines}}}\n",
            claim = record::CLAIM,
        )
    });
    let pair = |s, e: &Expr| {
        let [low, high] = words(w, s, e);
        format!("vec2<u32>({}, {})", low.text, high.text)
    };
    let operands = report.args(operands, pair, "vec2<u32>()");
    mark_dead(w);
    w.write(&format!(
        "{name}(args.site_base + {site}u, tid, bid, {operands});"
    ));
}
