//! The words of the text form that stand for IR constants: builtins, orders, scopes, subgroup operations. Printer
//! and parser both read them here; operators have theirs in the operator table.

use crate::ir::{Axis, Builtin, MemOrder, ReduceOp, Scope, SubgroupOp};

/// Name of a builtin without its axis.
pub(super) const fn builtin(b: Builtin) -> (&'static str, Option<Axis>) {
    match b {
        Builtin::ThreadIdx(axis) => ("thread_idx", Some(axis)),
        Builtin::BlockIdx(axis) => ("block_idx", Some(axis)),
        Builtin::BlockDim(axis) => ("block_dim", Some(axis)),
        Builtin::GridDim(axis) => ("grid_dim", Some(axis)),
        Builtin::SubgroupSize => ("subgroup_size", None),
        Builtin::SubgroupLane => ("subgroup_lane", None),
    }
}

pub(super) const fn order(order: MemOrder) -> &'static str {
    match order {
        MemOrder::Relaxed => "relaxed",
        MemOrder::Acquire => "acquire",
        MemOrder::Release => "release",
        MemOrder::AcqRel => "acq_rel",
        MemOrder::SeqCst => "seq_cst",
    }
}

pub(super) const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Workgroup => "workgroup",
        Scope::Device => "device",
        Scope::System => "system",
    }
}

/// Name of a subgroup operation after `subgroup_`, without the combining operation that follows it.
pub(super) const fn subgroup(op: SubgroupOp) -> (&'static str, Option<ReduceOp>) {
    match op {
        SubgroupOp::Shuffle => ("shuffle", None),
        SubgroupOp::ShuffleUp => ("shuffle_up", None),
        SubgroupOp::ShuffleDown => ("shuffle_down", None),
        SubgroupOp::ShuffleXor => ("shuffle_xor", None),
        SubgroupOp::BroadcastFirst => ("broadcast_first", None),
        SubgroupOp::Any => ("any", None),
        SubgroupOp::All => ("all", None),
        SubgroupOp::Ballot => ("ballot", None),
        SubgroupOp::Reduce(r) => ("reduce", Some(r)),
        SubgroupOp::InclusiveScan(r) => ("inclusive", Some(r)),
        SubgroupOp::ExclusiveScan(r) => ("exclusive", Some(r)),
    }
}
