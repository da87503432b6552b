//! 64-bit integers, as NVIDIA's Vulkan driver (580.159) computes them rightly. It takes a comparison for the carry of a sum or
//! difference of the same numbers, and loses halves of sums whose terms are remainders: of 60 kernels with five random operators on
//! `u64`, five were wrong, and none with what is here.

use super::super::c_like::{Expr, Module};
use super::scalar;
use crate::ir::Scalar;
use crate::ops::BinaryOp;

/// Whether a scalar is an integer of two words.
pub(super) const fn is_wide(s: Scalar) -> bool {
    matches!(s, Scalar::I64 | Scalar::U64)
}

/// `a + b`, half by half.
pub(super) fn sum(m: &Module<'_>, s: Scalar, a: &Expr, b: &Expr) -> Expr {
    let name = m.helper("sum_u64", |name| {
        format!(
            "fn {name}(x: u64, y: u64) -> u64 {{\n    let low = u32(x & 0xfffffffflu) + u32(y & 0xfffffffflu);\n    \
             let carry = select(0u, 1u, low < u32(x & 0xfffffffflu));\n    \
             return (u64(u32(x >> 32u) + u32(y >> 32u) + carry) << 32u) | u64(low);\n}}\n"
        )
    });
    unsigned(m, &name, s, a, b)
}

/// `a - b`, half by half.
pub(super) fn difference(m: &Module<'_>, s: Scalar, a: &Expr, b: &Expr) -> Expr {
    let name = m.helper("difference_u64", |name| {
        format!(
            "fn {name}(x: u64, y: u64) -> u64 {{\n    let low = vec2<u32>(u32(x & 0xfffffffflu), u32(y & 0xfffffffflu));\n    \
             let borrow = select(0u, 1u, low.x < low.y);\n    \
             return (u64(u32(x >> 32u) - u32(y >> 32u) - borrow) << 32u) | u64(low.x - low.y);\n}}\n"
        )
    });
    unsigned(m, &name, s, a, b)
}

/// A call of a function of two `u64`, whose result has the operands' type.
fn unsigned(m: &Module<'_>, name: &str, s: Scalar, a: &Expr, b: &Expr) -> Expr {
    let [a, b] = [a, b].map(|e| scalar::cast_integer(m, s, Scalar::U64, e));
    let done = Expr::call(name, &[a, b]).at_run_time();
    scalar::cast_integer(m, Scalar::U64, s, &done)
}

/// `a` compared with `b` for order. A minimum is no difference, so no carry is looked for.
pub(super) fn ordered(m: &Module<'_>, op: BinaryOp, s: Scalar, a: &Expr, b: &Expr) -> Expr {
    let ty = scalar::name(s);
    let name = m.helper(&format!("less_{ty}"), |name| {
        format!("fn {name}(x: {ty}, y: {ty}) -> bool {{\n    return min(x, y) != y;\n}}\n")
    });
    let (first, second) = match op {
        BinaryOp::Lt | BinaryOp::Ge => (a, b),
        _ => (b, a),
    };
    let less = Expr::call(&name, &[first.clone(), second.clone()]).at_run_time();
    match op {
        BinaryOp::Lt | BinaryOp::Gt => less,
        _ => less.negated(),
    }
}

/// The lowest bit of `a`, whose type is `s`. The driver gets products of `x & 1` and of `x % 2` wrong where `x` is, or was, a 64-bit sum.
pub(super) fn lowest_bit(m: &Module<'_>, s: Scalar, a: &Expr) -> Expr {
    let word = scalar::cast_integer(m, s, Scalar::U32, a);
    let bit = Expr::whole(format!("extractBits({}, 0u, 1u)", word.text)).reading([&word]);
    scalar::cast_integer(m, Scalar::U32, s, &bit)
}
