//! Atomic accesses. Metal's are relaxed and 32 bits wide; orders among the lanes of a block come from fences
//! before and after (MSL 3.2). Floats in threadgroup memory, and smaller and larger floats anywhere, go by way of
//! compare-and-exchange on their bits.

use super::super::c_like::c::{self, CNames};
use super::super::c_like::{Expr, Spot, Writer};
use super::dialect::Msl;
use crate::ir::{AtomicOp, Base, MemOrder, Scalar, Sync, Type};

/// Writes a fence among the lanes of the block.
pub(super) fn fence(w: &mut Writer<'_>, order: MemOrder) {
    let order = match order {
        MemOrder::Relaxed => return,
        MemOrder::Acquire => "memory_order_acquire",
        MemOrder::Release => "memory_order_release",
        MemOrder::AcqRel => "memory_order_acq_rel",
        MemOrder::SeqCst => "memory_order_seq_cst",
    };
    w.write(&format!(
        "atomic_thread_fence(mem_flags::mem_device | mem_flags::mem_threadgroup, {order}, thread_scope_threadgroup);"
    ));
}

/// The fence that goes before an access of this order.
fn before(w: &mut Writer<'_>, order: MemOrder) {
    match order {
        MemOrder::Release | MemOrder::AcqRel => fence(w, MemOrder::Release),
        MemOrder::SeqCst => fence(w, MemOrder::SeqCst),
        MemOrder::Relaxed | MemOrder::Acquire => {}
    }
}

/// The fence that goes after an access of this order.
fn after(w: &mut Writer<'_>, order: MemOrder) {
    match order {
        MemOrder::Acquire | MemOrder::AcqRel => fence(w, MemOrder::Acquire),
        MemOrder::SeqCst => fence(w, MemOrder::SeqCst),
        MemOrder::Relaxed | MemOrder::Release => {}
    }
}

const fn space(base: Base) -> &'static str {
    match base {
        Base::Shared(_) => "threadgroup",
        _ => "device",
    }
}

/// Metal's atomic for integers of 32 bits.
const fn atomic_type(s: Scalar) -> &'static str {
    match s {
        Scalar::I32 => "atomic_int",
        _ => "atomic_uint",
    }
}

fn pointer(base: Base, ty: &str, place: &Expr) -> String {
    format!("({} {ty}*)&{}", space(base), place.text)
}

/// Bits of an atomic word as a value.
fn value_of(s: Scalar, bits: Expr) -> Expr {
    match s {
        Scalar::F32 => Expr::whole(format!("as_type<float>({})", bits.text)).reading([&bits]),
        _ => bits,
    }
}

fn bits_of(d: &Msl, s: Scalar, value: &Expr) -> Expr {
    match s {
        Scalar::F32 => Expr::whole(format!("as_type<uint>({})", value.text)).reading([value]),
        _ => c::exact(d, s, value),
    }
}

pub(super) fn load(w: &mut Writer<'_>, spot: &Spot, place: &Expr, sync: Sync) -> Expr {
    let s = spot.scalar();
    before(
        w,
        if sync.order == MemOrder::SeqCst {
            MemOrder::SeqCst
        } else {
            MemOrder::Relaxed
        },
    );
    let read_only = match spot.base {
        Base::Buffer(i) => super::is_read_only(w.m, i),
        _ => false,
    };
    let constant = if read_only { "const " } else { "" };
    let p = format!(
        "({constant}{} {}*)&{}",
        space(spot.base),
        atomic_type(s),
        place.text
    );
    let bits = Expr::whole(format!("atomic_load_explicit({p}, memory_order_relaxed)")).reading([place]);
    let e = value_of(s, bits);
    if sync.order == MemOrder::Relaxed {
        return e;
    }
    let e = w.named(&Type::Scalar(s), e, "seen");
    after(w, sync.order);
    e
}

pub(super) fn store(d: &Msl, w: &mut Writer<'_>, spot: &Spot, place: &Expr, value: &Expr, sync: Sync) {
    let s = spot.scalar();
    before(w, sync.order);
    let bits = bits_of(d, s, value);
    let p = pointer(spot.base, atomic_type(s), place);
    w.write(&format!(
        "atomic_store_explicit({p}, {}, memory_order_relaxed);",
        bits.text
    ));
    if sync.order == MemOrder::SeqCst {
        after(w, sync.order);
    }
}

pub(super) fn update(
    d: &Msl,
    w: &mut Writer<'_>,
    op: AtomicOp,
    spot: &Spot,
    place: &Expr,
    value: &Expr,
    sync: Sync,
) -> Expr {
    let s = spot.scalar();
    before(w, sync.order);
    let in_device = matches!(spot.base, Base::Buffer(_));
    let name = match op {
        AtomicOp::Add => "fetch_add",
        AtomicOp::Sub => "fetch_sub",
        AtomicOp::Min => "fetch_min",
        AtomicOp::Max => "fetch_max",
        AtomicOp::And => "fetch_and",
        AtomicOp::Or => "fetch_or",
        AtomicOp::Xor => "fetch_xor",
        AtomicOp::Exchange => "exchange",
    };
    let sums = matches!(op, AtomicOp::Add | AtomicOp::Sub);
    let e = if s.is_int() || op == AtomicOp::Exchange {
        let bits = bits_of(d, s, value);
        let p = pointer(spot.base, atomic_type(s), place);
        value_of(
            s,
            Expr::whole(format!(
                "atomic_{name}_explicit({p}, {}, memory_order_relaxed)",
                bits.text
            ))
            .reading([place, &bits]),
        )
    } else if sums && in_device {
        let p = pointer(spot.base, "atomic_float", place);
        Expr::whole(format!(
            "atomic_{name}_explicit({p}, {}, memory_order_relaxed)",
            value.text
        ))
        .reading([place, value])
    } else {
        let function = by_exchange(d, w, op, spot.base);
        let p = pointer(spot.base, "atomic_uint", place);
        Expr::whole(format!("{function}({p}, {})", value.text)).reading([place, value])
    };
    if matches!(sync.order, MemOrder::Relaxed | MemOrder::Release) {
        return e;
    }
    let e = w.named(&Type::Scalar(s), e, "old");
    after(w, sync.order);
    e
}

/// A function that updates a float by exchanging its bits.
fn by_exchange(d: &Msl, w: &mut Writer<'_>, op: AtomicOp, base: Base) -> String {
    let space = space(base);
    let now = Expr::whole("as_type<float>(old)");
    let combined = d.combined(w, op, Scalar::F32, &now, &Expr::whole("value")).text;
    w.m.helper(&format!("atomic_{}_{space}_f32", op.name()), |name| {
        format!(
            "static inline float {name}({space} atomic_uint* p, float value)\n{{\n    uint old = atomic_load_explicit(p, memory_order_relaxed);\n    while (!atomic_compare_exchange_weak_explicit(p, &old, as_type<uint>({combined}), memory_order_relaxed, memory_order_relaxed)) {{\n    }}\n    return as_type<float>(old);\n}}\n"
        )
    })
}

pub(super) fn compare_exchange(
    d: &Msl,
    w: &mut Writer<'_>,
    spot: &Spot,
    place: &Expr,
    expected: &Expr,
    new: &Expr,
    sync: Sync,
) -> Expr {
    let s = spot.scalar();
    before(w, sync.order);
    let (space, atomic, ty) = (space(spot.base), atomic_type(s), d.scalar(s));
    let name = w.m.helper(&format!("compare_exchange_{space}_{s}"), |name| {
        format!(
            "// The weak exchange may fail for no reason: then the old value is the expected one.\nstatic inline {ty} {name}({space} {atomic}* p, {ty} expected, {ty} value)\n{{\n    {ty} old = expected;\n    while (!atomic_compare_exchange_weak_explicit(p, &old, value, memory_order_relaxed, memory_order_relaxed)) {{\n        if (old != expected) {{\n            break;\n        }}\n    }}\n    return old;\n}}\n"
        )
    });
    let (expected, new) = (c::exact(d, s, expected), c::exact(d, s, new));
    let p = pointer(spot.base, atomic, place);
    let e = Expr::whole(format!("{name}({p}, {}, {})", expected.text, new.text))
        .reading([place, &expected, &new]);
    if matches!(sync.order, MemOrder::Relaxed | MemOrder::Release) {
        return e;
    }
    let e = w.named(&Type::Scalar(s), e, "old");
    after(w, sync.order);
    e
}
