//! Operations among the lanes of a warp that are active where they stand. Shuffles are CUDA's own; reductions and
//! scans go by butterflies where all lanes are there, and lane by lane where not.

use super::super::c_like::c;
use super::super::c_like::{Bind, Dialect, Expr, Module, Writer};
use super::atomics::value_type;
use super::dialect::Cuda;
use crate::ir::{ReduceOp, Scalar, SubgroupOp, Type};
use crate::ops::eval::reduce_identity;

/// The name of a function that gives the lane's index in its warp.
pub(super) fn lane_index(m: &Module<'_>) -> String {
    m.helper("lane_index", |name| {
        format!(
            "__device__ unsigned int {name}()\n{{\n    unsigned int lane;\n    asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane));\n    return lane;\n}}\n"
        )
    })
}

pub(super) fn operation(
    d: &Cuda,
    w: &mut Writer<'_>,
    op: SubgroupOp,
    s: Scalar,
    value: &Expr,
    arg: Option<&Expr>,
) -> Expr {
    let value = c::exact(d, s, value);
    let active = Expr::whole("__activemask()");
    let arg = arg.cloned().unwrap_or_else(|| Expr::whole("0"));
    match op {
        SubgroupOp::Shuffle => Expr::call("__shfl_sync", &[active, value, arg]),
        SubgroupOp::ShuffleXor => Expr::call("__shfl_xor_sync", &[active, value, arg]),
        SubgroupOp::ShuffleUp | SubgroupOp::ShuffleDown => {
            let name = shift(d, w.m, op, s);
            Expr::call(&name, &[value, arg])
        }
        SubgroupOp::BroadcastFirst => {
            let ty = value_type(d, w.m, s);
            let name = w.m.helper(&format!("broadcast_first_{s}"), |name| {
                format!(
                    "__device__ {ty} {name}({ty} value)\n{{\n    const unsigned int active = __activemask();\n    return __shfl_sync(active, value, __ffs(active) - 1);\n}}\n"
                )
            });
            Expr::call(&name, &[value])
        }
        SubgroupOp::Any | SubgroupOp::All => {
            let name = if op == SubgroupOp::Any { "__any_sync" } else { "__all_sync" };
            let vote = Expr::call(name, &[active, value]);
            Expr::infix("!=", Bind::Compare, &vote, &Expr::whole("0"))
        }
        SubgroupOp::Ballot => {
            let ty = d.type_name_of(w.m, &Type::array(Type::U32, 4));
            let votes = Expr::call("__ballot_sync", &[active, value]);
            Expr::whole(format!("{ty}{{{{{}, 0u, 0u, 0u}}}}", votes.text)).reading([&votes])
        }
        SubgroupOp::Reduce(r) => {
            let name = reduce(d, w, r, s);
            Expr::call(&name, &[value])
        }
        SubgroupOp::InclusiveScan(r) => {
            let name = scan(d, w, r, s, true);
            Expr::call(&name, &[value])
        }
        SubgroupOp::ExclusiveScan(r) => {
            let name = scan(d, w, r, s, false);
            Expr::call(&name, &[value])
        }
    }
    .at_run_time()
}

/// Up or down by any distance: a lane without a source keeps its own value.
fn shift(d: &Cuda, m: &Module<'_>, op: SubgroupOp, s: Scalar) -> String {
    let ty = value_type(d, m, s);
    let (word, call) = if op == SubgroupOp::ShuffleUp {
        ("up", "__shfl_up_sync")
    } else {
        ("down", "__shfl_down_sync")
    };
    m.helper(&format!("shuffle_{word}_{s}"), |name| {
        format!(
            "__device__ {ty} {name}({ty} value, unsigned int by)\n{{\n    const {ty} other = {call}(__activemask(), value, by & 31u);\n    return by < 32u ? other : value;\n}}\n"
        )
    })
}

/// `a` and `b` combined, in their own type.
fn combined(d: &Cuda, w: &mut Writer<'_>, op: ReduceOp, s: Scalar, a: &str, b: &str) -> String {
    let e = d.binary(w, op.binary(), (s, s), &Expr::whole(a), &Expr::whole(b));
    e.map_or(String::new(), |e| c::natural(d, s, e).text)
}

fn reduce(d: &Cuda, w: &mut Writer<'_>, op: ReduceOp, s: Scalar) -> String {
    let ty = value_type(d, w.m, s);
    let near = combined(d, w, op, s, "total", "__shfl_xor_sync(active, total, by)");
    let far = combined(
        d,
        w,
        op,
        s,
        "total",
        "__shfl_sync(active, value, __ffs(rest) - 1)",
    );
    w.m.helper(&format!("subgroup_{}_{s}", op.name()), |name| {
        format!(
            "__device__ {ty} {name}({ty} value)\n{{\n    const unsigned int active = __activemask();\n    {ty} total = value;\n    if (active == 0xffffffffu) {{\n        for (int by = 16; by > 0; by /= 2) {{\n            total = {near};\n        }}\n        return total;\n    }}\n    total = __shfl_sync(active, value, __ffs(active) - 1);\n    for (unsigned int rest = active & (active - 1u); rest != 0u; rest &= rest - 1u) {{\n        total = {far};\n    }}\n    return total;\n}}\n"
        )
    })
}

fn scan(d: &Cuda, w: &mut Writer<'_>, op: ReduceOp, s: Scalar, inclusive: bool) -> String {
    let ty = value_type(d, w.m, s);
    let lane = lane_index(w.m);
    let near = combined(d, w, op, s, "other", "total");
    let far = combined(d, w, op, s, "total", "other");
    let own = combined(d, w, op, s, "total", "value");
    let nothing = d.literal(w.m, s, reduce_identity(op, s)).text;
    let (word, all, some) = if inclusive {
        ("inclusive", "return total;".to_owned(), format!("return {own};"))
    } else {
        (
            "exclusive",
            format!(
                "const {ty} before = __shfl_up_sync(active, total, 1);\n        return lane == 0u ? {nothing} : before;"
            ),
            "return total;".to_owned(),
        )
    };
    w.m.helper(&format!("{word}_{}_{s}", op.name()), |name| {
        format!(
            "__device__ {ty} {name}({ty} value)\n{{\n    const unsigned int active = __activemask();\n    const unsigned int lane = {lane}();\n    if (active == 0xffffffffu) {{\n        {ty} total = value;\n        for (unsigned int by = 1u; by < 32u; by *= 2u) {{\n            const {ty} other = __shfl_up_sync(active, total, by);\n            if (lane >= by) {{\n                total = {near};\n            }}\n        }}\n        {all}\n    }}\n    {ty} total = {nothing};\n    for (unsigned int rest = active; rest != 0u; rest &= rest - 1u) {{\n        const unsigned int from = __ffs(rest) - 1;\n        const {ty} other = __shfl_sync(active, value, from);\n        if (from < lane) {{\n            total = {far};\n        }}\n    }}\n    {some}\n}}\n"
        )
    })
}
