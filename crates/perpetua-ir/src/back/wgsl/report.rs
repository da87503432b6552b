//! What a kernel tells the host of faults, as `crate::fault` lays it out.

use super::super::c_like::{Expr, Module, Report, Writer, mark_dead};
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

/// Keeps a fault for the lane's end and marks the lane dead where somebody asks for that.
///
/// Nothing is written where the fault happens: the record's dozen atomic stores at each of a kernel's checks would be most of its code,
/// and llvmpipe's compiler takes a time that grows with the square of the accesses.
pub(super) fn fault(w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
    let report = Report::of(operands);
    let name = w.m.helper(report.name, |name| {
        let params = report.params(|of| format!("{of}: vec2<u32>"));
        let kept: String = report
            .operands()
            .iter()
            .map(|of| format!("        fault_{of} = {of};\n"))
            .collect();
        format!(
            "// A dead lane may come upon another fault: the first counts.\nfn {name}(site: u32, {params}) {{\n    if (fault_site == 0u) {{\n        fault_site = site;\n{kept}    }}\n}}\n"
        )
    });
    let pair = |s, e: &Expr| {
        let [low, high] = words(w, s, e);
        format!("vec2<u32>({}, {})", low.text, high.text)
    };
    let operands = report.args(operands, pair, "vec2<u32>()");
    mark_dead(w);
    // 0 stands for no fault.
    w.write(&format!("{name}(args.site_base + {}u, {operands});", site + 1));
}

/// The fault that a lane keeps: declarations, and what its end does with it. `None` where no lane can fault.
pub(super) fn at_end(m: &Module<'_>) -> Option<(String, String)> {
    let report = Report::asked_for(m)?;
    let mut declared = String::from(
        "// The number of the fault of this lane, from 1, and its operands.\nvar<private> fault_site: u32;\n",
    );
    for of in report.operands() {
        declared.push_str(&format!("var<private> fault_{of}: vec2<u32>;\n"));
    }
    let lines = report.lines(
        ["bid", "tid"],
        |of| [format!("fault_{of}.x"), format!("fault_{of}.y")],
        "fault_site - 1u",
        |word, value| format!("    atomicStore(&fault_record[{word}], {value});"),
    );
    let end = format!(
        "    // The first lane that faults in a launch claims the record.\n    if (fault_site != 0u && atomicExchange(&fault_record[{claim}], 1u) == 0u) {{\n{lines}    }}\n",
        claim = record::CLAIM,
    );
    Some((declared, end))
}
