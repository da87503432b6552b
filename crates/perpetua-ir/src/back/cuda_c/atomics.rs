//! Atomic accesses. CUDA's own functions are relaxed at device scope and serve where that is meant; everything else
//! goes through functions whose names say order and scope, over the PTX instructions that have both.

use super::super::c_like::c::{self, CNames};
use super::super::c_like::{Dialect, Expr, Module, Spot, Writer};
use super::dialect::Cuda;
use super::resident;
use crate::ir::{AtomicOp, MemOrder, Scalar, Scope, Sync, Type};
use crate::ops::BinaryOp;

const fn scope_ptx(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "cta",
        Scope::Device => "gpu",
        Scope::System => "sys",
    }
}

const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "block",
        Scope::Device => "device",
        Scope::System => "system",
    }
}

const fn order_word(order: MemOrder) -> &'static str {
    match order {
        MemOrder::Relaxed => "relaxed",
        MemOrder::Acquire => "acquire",
        MemOrder::Release => "release",
        MemOrder::AcqRel => "acq_rel",
        MemOrder::SeqCst => "seq_cst",
    }
}

/// The instruction before the access, and the access's own order: sequential consistency is a fence and the
/// strongest order that the access has.
fn ordered(sync: Sync, strongest: &'static str) -> (String, &'static str) {
    match sync.order {
        MemOrder::SeqCst => (format!("fence.sc.{}; ", scope_ptx(sync.scope)), strongest),
        order => (String::new(), order_word(order)),
    }
}

/// The unsigned type of the same size, which PTX's loads and stores move.
const fn bits_of(s: Scalar) -> Scalar {
    s.to_unsigned()
}

/// The letter by which inline PTX names a register for this many bytes.
const fn register(bytes: u32) -> &'static str {
    if bytes == 8 { "l" } else { "r" }
}

fn address(d: &Cuda, place: &Expr, s: Scalar, constant: bool) -> String {
    let constant = if constant { "const " } else { "" };
    format!("({constant}{}*)&{}", d.scalar(s), place.text)
}

/// Bits as a value of type `s`.
fn from_bits(d: &Cuda, m: &Module<'_>, s: Scalar, bits: Expr) -> Expr {
    match s {
        Scalar::F32 | Scalar::F64 => d.bitcast(m, bits_of(s), s, &bits),
        _ if bits_of(s) == s => bits,
        _ => c::cast_to(d, s, &bits),
    }
}

/// A value's bits in the unsigned type of its size.
fn to_bits(d: &Cuda, m: &Module<'_>, s: Scalar, value: &Expr) -> Expr {
    match s {
        Scalar::F32 | Scalar::F64 => d.bitcast(m, s, bits_of(s), value),
        _ if s == bits_of(s) => value.clone(),
        Scalar::I32 | Scalar::I64 => c::unsigned(d, s, value),
        _ => c::cast_to(d, bits_of(s), value),
    }
}

pub(super) fn load(d: &Cuda, w: &mut Writer<'_>, spot: &Spot, place: &Expr, sync: Sync) -> Expr {
    if spot.ty.as_scalar().is_none() {
        return resident::load_whole(d, w, spot, place, scope_word(sync.scope), scope_ptx(sync.scope));
    }
    let s = spot.scalar();
    let u = bits_of(s);
    let name = load_function(d, w.m, u, sync);
    let bits = Expr::whole(format!("{name}({})", address(d, place, u, true))).reading([place]);
    from_bits(d, w.m, s, bits)
}

fn load_function(d: &Cuda, m: &Module<'_>, u: Scalar, sync: Sync) -> String {
    let key = format!("load_{}_{}_{u}", order_word(sync.order), scope_word(sync.scope));
    let (fence, order) = ordered(sync, "acquire");
    m.helper(&key, |name| {
        format!(
            "__device__ {ty} {name}(const {ty}* p)\n{{\n    {ty} value;\n    asm volatile(\"{fence}ld.{order}.{}.{u} %0, [%1];\" : \"={}\"(value) : \"l\"(p) : \"memory\");\n    return value;\n}}\n",
            scope_ptx(sync.scope),
            register(u.size()),
            ty = d.scalar(u),
        )
    })
}

pub(super) fn store(d: &Cuda, w: &mut Writer<'_>, spot: &Spot, place: &Expr, value: &Expr, sync: Sync) {
    if spot.ty.as_scalar().is_none() {
        let scope = (scope_word(sync.scope), scope_ptx(sync.scope));
        return resident::store_whole(d, w, spot, (place, value), scope);
    }
    let s = spot.scalar();
    let u = bits_of(s);
    let key = format!("store_{}_{}_{u}", order_word(sync.order), scope_word(sync.scope));
    let (fence, order) = ordered(sync, "release");
    let name = w.m.helper(&key, |name| {
        format!(
            "__device__ void {name}({ty}* p, {ty} value)\n{{\n    asm volatile(\"{fence}st.{order}.{}.{u} [%0], %1;\" :: \"l\"(p), \"{}\"(value) : \"memory\");\n}}\n",
            scope_ptx(sync.scope),
            register(u.size()),
            ty = d.scalar(u),
        )
    });
    let bits = to_bits(d, w.m, s, value);
    w.write(&format!(
        "{name}({}, {});",
        address(d, place, u, false),
        bits.text
    ));
}

/// CUDA's own function, where it means the same: relaxed, at device scope.
fn own_function(op: AtomicOp, s: Scalar) -> Option<&'static str> {
    let word = matches!(s, Scalar::I32 | Scalar::U32);
    let long = matches!(s, Scalar::U64);
    Some(match op {
        AtomicOp::Add if word || long || s.is_float() => "atomicAdd",
        AtomicOp::Sub if word => "atomicSub",
        AtomicOp::Min if s.is_int() => "atomicMin",
        AtomicOp::Max if s.is_int() => "atomicMax",
        AtomicOp::And if word || long => "atomicAnd",
        AtomicOp::Or if word || long => "atomicOr",
        AtomicOp::Xor if word || long => "atomicXor",
        AtomicOp::Exchange if word || long || s == Scalar::F32 => "atomicExch",
        _ => return None,
    })
}

pub(super) fn update(
    d: &Cuda,
    w: &mut Writer<'_>,
    op: AtomicOp,
    s: Scalar,
    place: &Expr,
    value: &Expr,
    sync: Sync,
) -> Expr {
    let value = c::exact(d, s, value);
    let name = match own_function(op, s) {
        Some(name) if sync == Sync::RELAXED => name.to_owned(),
        _ => update_function(d, w, op, s, sync),
    };
    Expr::whole(format!("{name}(&{}, {})", place.text, value.text)).reading([place, &value])
}

/// A function for an update of any order and scope.
fn update_function(d: &Cuda, w: &mut Writer<'_>, op: AtomicOp, s: Scalar, sync: Sync) -> String {
    let key = format!(
        "atomic_{}_{}_{}_{s}",
        op.name(),
        order_word(sync.order),
        scope_word(sync.scope)
    );
    let ty = d.scalar(s);
    let u = bits_of(s);
    let value = Expr::whole("value");
    if s.is_float() && matches!(op, AtomicOp::Min | AtomicOp::Max) {
        let binary = if op == AtomicOp::Min {
            BinaryOp::Min
        } else {
            BinaryOp::Max
        };
        let exchange = exchange_function(d, w.m, u, sync);
        let now = from_bits(d, w.m, s, Expr::whole("old"));
        let combined = d.binary(w, binary, (s, s), &now, &value).unwrap_or(value);
        let new = to_bits(d, w.m, s, &combined);
        let result = from_bits(d, w.m, s, Expr::whole("seen"));
        return w.m.helper(&key, |name| {
            format!(
                "__device__ {ty} {name}({ty}* p, {ty} value)\n{{\n    {bits} old = *(volatile {bits}*)p;\n    for (;;) {{\n        const {bits} seen = {exchange}(({bits}*)p, old, {});\n        if (seen == old) {{\n            return {};\n        }}\n        old = seen;\n    }}\n}}\n",
                new.text,
                result.text,
                bits = d.scalar(u),
            )
        });
    }
    let (instruction, operand_type) = match op {
        AtomicOp::Add | AtomicOp::Sub => ("add", if s.is_float() { s } else { u }),
        AtomicOp::Min => ("min", s),
        AtomicOp::Max => ("max", s),
        AtomicOp::And => ("and", u),
        AtomicOp::Or => ("or", u),
        AtomicOp::Xor => ("xor", u),
        AtomicOp::Exchange => ("exch", u),
    };
    let suffix = match op {
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => format!("b{}", s.bits()),
        _ => format!("{}{}", ptx_letter(operand_type), s.bits()),
    };
    let operand = match op {
        AtomicOp::Sub if s.is_float() => "-value".to_owned(),
        AtomicOp::Sub => format!("0 - ({})value", d.scalar(u)),
        _ => "value".to_owned(),
    };
    let register = match (op, s) {
        (AtomicOp::Exchange, Scalar::F32) => "r",
        (AtomicOp::Exchange, Scalar::F64) => "l",
        (_, Scalar::F32) => "f",
        (_, Scalar::F64) => "d",
        _ => register(s.size()),
    };
    let exchanges_bits = op == AtomicOp::Exchange && s.is_float();
    let in_asm = if exchanges_bits { u } else { s };
    let operand = if exchanges_bits {
        to_bits(d, w.m, s, &Expr::whole(operand)).text
    } else {
        operand
    };
    let result = if exchanges_bits {
        from_bits(d, w.m, s, Expr::whole("old")).text
    } else {
        "old".to_owned()
    };
    let (fence, order) = ordered(sync, "acq_rel");
    w.m.helper(&key, |name| {
        format!(
            "__device__ {ty} {name}({ty}* p, {ty} value)\n{{\n    {} old;\n    asm volatile(\"{fence}atom.{order}.{}.{instruction}.{suffix} %0, [%1], %2;\" : \"={register}\"(old) : \"l\"(p), \"{register}\"({operand}) : \"memory\");\n    return {result};\n}}\n",
            d.scalar(in_asm),
            scope_ptx(sync.scope),
        )
    })
}

const fn ptx_letter(s: Scalar) -> &'static str {
    if s.is_float() {
        "f"
    } else if s.is_signed_int() {
        "s"
    } else {
        "u"
    }
}

/// Compare-and-exchange of bits.
fn exchange_function(d: &Cuda, m: &Module<'_>, u: Scalar, sync: Sync) -> String {
    if sync == Sync::RELAXED {
        return "atomicCAS".to_owned();
    }
    let key = format!(
        "compare_exchange_{}_{}_{u}",
        order_word(sync.order),
        scope_word(sync.scope)
    );
    let (fence, order) = ordered(sync, "acq_rel");
    m.helper(&key, |name| {
        format!(
            "__device__ {ty} {name}({ty}* p, {ty} expected, {ty} value)\n{{\n    {ty} old;\n    asm volatile(\"{fence}atom.{order}.{}.cas.b{} %0, [%1], %2, %3;\" : \"={r}\"(old) : \"l\"(p), \"{r}\"(expected), \"{r}\"(value) : \"memory\");\n    return old;\n}}\n",
            scope_ptx(sync.scope),
            u.bits(),
            ty = d.scalar(u),
            r = register(u.size()),
        )
    })
}

pub(super) fn compare_exchange(
    d: &Cuda,
    w: &mut Writer<'_>,
    s: Scalar,
    place: &Expr,
    expected: &Expr,
    new: &Expr,
    sync: Sync,
) -> Expr {
    let u = bits_of(s);
    let name = exchange_function(d, w.m, u, sync);
    let pointer = if s == u || s == Scalar::I32 && name == "atomicCAS" {
        format!("&{}", place.text)
    } else {
        address(d, place, u, false)
    };
    let (expected, new, result) = if s == Scalar::I32 && name == "atomicCAS" {
        (c::exact(d, s, expected), c::exact(d, s, new), s)
    } else {
        (to_bits(d, w.m, s, expected), to_bits(d, w.m, s, new), u)
    };
    let e = Expr::whole(format!("{name}({pointer}, {}, {})", expected.text, new.text))
        .reading([place, &expected, &new]);
    if result == s { e } else { from_bits(d, w.m, s, e) }
}

/// The type of a value in a helper's signature.
pub(super) fn value_type(d: &Cuda, m: &Module<'_>, s: Scalar) -> String {
    c::type_name(d, m, &Type::Scalar(s))
}
