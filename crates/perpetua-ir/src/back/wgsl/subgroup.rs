//! Operations among the lanes of a subgroup. WGSL has reductions, and sums and products as scans; its shuffles leave open
//! what a lane without a source gets, so all go through one that names the source.

use super::super::c_like::{Bind, Dialect, Expr, Writer};
use super::dialect::Wgsl;
use super::scalar;
use crate::ir::{ReduceOp, Scalar, SubgroupOp, Type};
use crate::ops::eval::reduce_identity;

/// Names of the builtin values.
pub(super) const LANE: &str = "subgroup_lane";
pub(super) const SIZE: &str = "subgroup_size";

pub(super) fn operation(
    d: &Wgsl,
    w: &mut Writer<'_>,
    op: SubgroupOp,
    s: Scalar,
    value: &Expr,
    arg: Option<&Expr>,
) -> Expr {
    let lane = Expr::whole(LANE);
    let size = Expr::whole(SIZE);
    let arg = arg
        .cloned()
        .unwrap_or_else(|| scalar::literal(w.m, Scalar::U32, 0));
    let shuffle = |from: Expr| Expr::call("subgroupShuffle", &[value.clone(), from]);
    let reduced = |name: &str| Expr::call(name, std::slice::from_ref(value));
    match op {
        SubgroupOp::Shuffle => shuffle(arg),
        SubgroupOp::ShuffleXor => shuffle(Expr::infix("^", Bind::Bits, &lane, &arg)),
        SubgroupOp::ShuffleUp => {
            let arg = w.named(&Type::U32, arg, "by");
            let source = Expr::infix("-", Bind::Sum, &lane, &arg);
            let has = Expr::infix("<=", Bind::Compare, &arg, &lane);
            shuffle(Expr::call("select", &[lane, source, has]))
        }
        SubgroupOp::ShuffleDown => {
            let arg = w.named(&Type::U32, arg, "by");
            let source = Expr::infix("+", Bind::Sum, &lane, &arg);
            // The lane is below the size, so the difference does not wrap.
            let room = Expr::infix("-", Bind::Sum, &size, &lane);
            let has = Expr::infix("<", Bind::Compare, &arg, &room);
            shuffle(Expr::call("select", &[lane, source, has]))
        }
        SubgroupOp::BroadcastFirst => reduced("subgroupBroadcastFirst"),
        SubgroupOp::Any => reduced("subgroupAny"),
        SubgroupOp::All => reduced("subgroupAll"),
        SubgroupOp::Ballot => {
            let votes = w.name("votes");
            w.write(&format!("let {votes} = subgroupBallot({});", value.text));
            Expr::whole(format!(
                "array<u32, 4>({votes}.x, {votes}.y, {votes}.z, {votes}.w)"
            ))
        }
        SubgroupOp::Reduce(r) => match native_reduction(r) {
            Some(name) if !(s.is_float() && matches!(r, ReduceOp::Min | ReduceOp::Max)) => reduced(name),
            _ => by_turns(d, w, r, s, value, "total", "true"),
        },
        SubgroupOp::InclusiveScan(r) => match r {
            ReduceOp::Add => reduced("subgroupInclusiveAdd"),
            ReduceOp::Mul => reduced("subgroupInclusiveMul"),
            _ => by_turns(d, w, r, s, value, "inclusive", &format!("source <= {LANE}")),
        },
        SubgroupOp::ExclusiveScan(r) => match r {
            ReduceOp::Add => reduced("subgroupExclusiveAdd"),
            ReduceOp::Mul => reduced("subgroupExclusiveMul"),
            _ => by_turns(d, w, r, s, value, "exclusive", &format!("source < {LANE}")),
        },
    }
    .at_run_time()
}

const fn native_reduction(op: ReduceOp) -> Option<&'static str> {
    Some(match op {
        ReduceOp::Add => "subgroupAdd",
        ReduceOp::Mul => "subgroupMul",
        ReduceOp::Min => "subgroupMin",
        ReduceOp::Max => "subgroupMax",
        ReduceOp::And => "subgroupAnd",
        ReduceOp::Or => "subgroupOr",
        ReduceOp::Xor => "subgroupXor",
    })
}

/// Goes through the lanes in order and combines the values of those that are active and chosen.
fn by_turns(
    d: &Wgsl,
    w: &mut Writer<'_>,
    op: ReduceOp,
    s: Scalar,
    value: &Expr,
    word: &str,
    chosen: &str,
) -> Expr {
    let ty = scalar::name(s);
    let combined = d
        .binary(
            w,
            op.binary(),
            (s, s),
            &Expr::whole("total"),
            &Expr::whole("other"),
        )
        .map_or(String::new(), |e| e.text);
    let nothing = scalar::literal(w.m, s, reduce_identity(op, s)).text;
    let test = if chosen == "true" {
        "takes_part".to_owned()
    } else {
        format!("takes_part && {chosen}")
    };
    let name = w.m.helper(&format!("{word}_{}_{s}", op.name()), |name| {
        format!(
            "fn {name}(value: {ty}, {LANE}: u32, {SIZE}: u32) -> {ty} {{\n    let votes = subgroupBallot(true);\n    var total = {nothing};\n    for (var source = 0u; source < {SIZE}; source += 1u) {{\n        let other = subgroupShuffle(value, source);\n        let takes_part = ((votes[source >> 5u] >> (source & 31u)) & 1u) != 0u;\n        if ({test}) {{\n            total = {combined};\n        }}\n    }}\n    return total;\n}}\n"
        )
    });
    Expr::call(&name, &[value.clone(), Expr::whole(LANE), Expr::whole(SIZE)])
}
