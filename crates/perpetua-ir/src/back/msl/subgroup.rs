//! Operations among the lanes of a SIMD-group. Metal's take up to 32 bits: wider values go in halves. Reductions and scans
//! that Metal lacks go through the lanes in order.

use super::super::c_like::c::{self, CNames};
use super::super::c_like::{Bind, Dialect, Expr, Module, Writer};
use super::dialect::Msl;
use crate::ir::{ReduceOp, Scalar, SubgroupOp, Type};
use crate::ops::eval::reduce_identity;

const LANE: &str = "simd_lane";
const SIZE: &str = "simd_size";

pub(super) fn operation(
    d: &Msl,
    w: &mut Writer<'_>,
    op: SubgroupOp,
    s: Scalar,
    value: &Expr,
    arg: Option<&Expr>,
) -> Expr {
    let value = c::exact(d, s, value);
    let wide = s.size() == 8;
    let lane = Expr::whole(LANE);
    let arg = arg.cloned().unwrap_or_else(|| Expr::whole("0u"));
    match op {
        SubgroupOp::Shuffle => shuffle(d, w.m, s, &value, &arg),
        SubgroupOp::ShuffleXor => {
            let from = Expr::infix("^", Bind::Bits, &lane, &arg);
            shuffle(d, w.m, s, &value, &from)
        }
        SubgroupOp::ShuffleUp => {
            let arg = w.named(&Type::U32, arg, "by");
            let from = Expr::whole(format!(
                "{a} <= {LANE} ? {LANE} - {a} : {LANE}",
                a = arg.at(Bind::Whole)
            ));
            shuffle(d, w.m, s, &value, &from)
        }
        SubgroupOp::ShuffleDown => {
            let arg = w.named(&Type::U32, arg, "by");
            let from = Expr::whole(format!(
                "{a} < {SIZE} - {LANE} ? {LANE} + {a} : {LANE}",
                a = arg.at(Bind::Whole)
            ));
            shuffle(d, w.m, s, &value, &from)
        }
        SubgroupOp::BroadcastFirst if wide => {
            let name = w.m.helper(&format!("broadcast_first_{s}"), |name| {
                halved(d, name, s, "", |half| format!("simd_broadcast_first({half})"))
            });
            Expr::call(&name, &[value])
        }
        SubgroupOp::BroadcastFirst => Expr::call("simd_broadcast_first", &[value]),
        SubgroupOp::Any => Expr::call("simd_any", &[value]),
        SubgroupOp::All => Expr::call("simd_all", &[value]),
        SubgroupOp::Ballot => {
            let ty = d.type_name_of(w.m, &Type::array(Type::U32, 4));
            let votes = w.name("votes");
            w.write(&format!(
                "const ulong {votes} = (ulong)(simd_vote::vote_t)simd_ballot({});",
                value.text
            ));
            Expr::whole(format!("{ty}{{{{uint({votes}), uint({votes} >> 32), 0u, 0u}}}}"))
        }
        SubgroupOp::Reduce(r) => {
            let name = match r {
                ReduceOp::Add => "simd_sum",
                ReduceOp::Mul => "simd_product",
                ReduceOp::Min => "simd_min",
                ReduceOp::Max => "simd_max",
                ReduceOp::And => "simd_and",
                ReduceOp::Or => "simd_or",
                ReduceOp::Xor => "simd_xor",
            };
            // What Metal's smallest and largest make of NaN is not said.
            if wide || s.is_float() && matches!(r, ReduceOp::Min | ReduceOp::Max) {
                by_turns(d, w, r, s, &value, "total", None)
            } else {
                Expr::call(name, &[value])
            }
        }
        SubgroupOp::InclusiveScan(r) => match (r, wide) {
            (ReduceOp::Add, false) => Expr::call("simd_prefix_inclusive_sum", &[value]),
            (ReduceOp::Mul, false) => Expr::call("simd_prefix_inclusive_product", &[value]),
            _ => by_turns(d, w, r, s, &value, "inclusive", Some("<=")),
        },
        SubgroupOp::ExclusiveScan(r) => match (r, wide) {
            (ReduceOp::Add, false) => Expr::call("simd_prefix_exclusive_sum", &[value]),
            (ReduceOp::Mul, false) => Expr::call("simd_prefix_exclusive_product", &[value]),
            _ => by_turns(d, w, r, s, &value, "exclusive", Some("<")),
        },
    }
    .at_run_time()
}

/// A function that sends the halves of a 64-bit value through `send`.
fn halved(d: &Msl, name: &str, s: Scalar, params: &str, send: impl Fn(&str) -> String) -> String {
    let ty = d.scalar(s);
    let [low, high] = Msl::halves("value");
    format!(
        "static inline {ty} {name}({ty} value{params})\n{{\n    const uint low = {};\n    const uint high = {};\n    return ({ty})((ulong)high << 32 | (ulong)low);\n}}\n",
        send(&low),
        send(&high)
    )
}

/// The value of lane `from`.
fn shuffle(d: &Msl, m: &Module<'_>, s: Scalar, value: &Expr, from: &Expr) -> Expr {
    let name = if s.size() == 8 {
        m.helper(&format!("shuffle_{s}"), |name| {
            halved(d, name, s, ", ushort from", |half| {
                format!("simd_shuffle({half}, from)")
            })
        })
    } else {
        "simd_shuffle".to_owned()
    };
    let from = Expr::whole(format!("ushort({})", from.text)).reading([from]);
    Expr::call(&name, &[value.clone(), from])
}

/// Goes through the lanes in order and combines the values of those that are active and chosen.
fn by_turns(
    d: &Msl,
    w: &mut Writer<'_>,
    op: ReduceOp,
    s: Scalar,
    value: &Expr,
    word: &str,
    below: Option<&str>,
) -> Expr {
    let ty = d.scalar(s);
    let combined = d
        .binary(
            w,
            op.binary(),
            (s, s),
            &Expr::whole("total"),
            &Expr::whole("other"),
        )
        .map_or(String::new(), |e| c::natural(d, s, e).text);
    let nothing = c::literal(d, s, reduce_identity(op, s)).text;
    let other = shuffle(d, w.m, s, &Expr::whole("value"), &Expr::whole("from")).text;
    let test = below.map_or(String::new(), |sign| format!(" && from {sign} {LANE}"));
    let name = w.m.helper(&format!("{word}_{}_{s}", op.name()), |name| {
        format!(
            "static inline {ty} {name}({ty} value, uint {LANE}, uint {SIZE})\n{{\n    const ulong votes = (ulong)(simd_vote::vote_t)simd_ballot(true);\n    {ty} total = {nothing};\n    for (uint from = 0u; from < {SIZE}; from += 1u) {{\n        const {ty} other = {other};\n        if (((votes >> from) & 1ul) != 0ul{test}) {{\n            total = {combined};\n        }}\n    }}\n    return total;\n}}\n"
        )
    });
    Expr::call(&name, &[value.clone(), Expr::whole(LANE), Expr::whole(SIZE)])
}
