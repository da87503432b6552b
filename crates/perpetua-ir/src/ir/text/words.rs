//! The words of the text form that stand for IR constants: builtins, orders, scopes. Printer
//! and parser both read them here; operators and operations of the device have theirs in their tables.

use crate::ir::{Access, AtomicOp, Axis, Builtin, Checks, FaultKind, MemOrder, Scope};

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

/// The builtin of this name; the axis is ignored where it has none. The second value tells whether it has one.
pub(super) fn builtin_named(name: &str, axis: Axis) -> Option<(Builtin, bool)> {
    [
        Builtin::ThreadIdx(axis),
        Builtin::BlockIdx(axis),
        Builtin::BlockDim(axis),
        Builtin::GridDim(axis),
        Builtin::SubgroupSize,
        Builtin::SubgroupLane,
    ]
    .into_iter()
    .find(|b| builtin(*b).0 == name)
    .map(|b| (b, builtin(b).1.is_some()))
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

pub(super) fn order_named(name: &str) -> Option<MemOrder> {
    [
        MemOrder::Relaxed,
        MemOrder::Acquire,
        MemOrder::Release,
        MemOrder::AcqRel,
        MemOrder::SeqCst,
    ]
    .into_iter()
    .find(|o| order(*o) == name)
}

pub(super) fn scope_named(name: &str) -> Option<Scope> {
    Scope::ALL.into_iter().find(|s| s.name() == name)
}

pub(super) const fn access(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::ReadWrite => "read_write",
    }
}

pub(super) fn access_named(name: &str) -> Option<Access> {
    [Access::Read, Access::ReadWrite]
        .into_iter()
        .find(|a| access(*a) == name)
}

pub(super) const fn checks(checks: Checks) -> &'static str {
    match checks {
        Checks::On => "on",
        Checks::Explicit => "explicit",
        Checks::Caught => "caught",
        Checks::Off => "off",
    }
}

pub(super) fn checks_named(name: &str) -> Option<Checks> {
    [Checks::On, Checks::Explicit, Checks::Caught, Checks::Off]
        .into_iter()
        .find(|c| checks(*c) == name)
}

pub(super) fn atomic_named(name: &str) -> Option<AtomicOp> {
    AtomicOp::ALL.into_iter().find(|op| op.name() == name)
}

pub(super) fn fault_named(name: &str) -> Option<FaultKind> {
    FaultKind::ALL.into_iter().find(|f| f.name() == name)
}
