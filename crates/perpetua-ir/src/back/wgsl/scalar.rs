//! Scalars in WGSL, which has 32-bit integers, f32 and `bool` (and 64-bit types where the device has them). Narrower
//! integers are held in 32 bits, sign- or zero-extended; f16 and bf16 as their bits in a `u32`.

use super::super::c_like::c::float_digits;
use super::super::c_like::{Bind, Expr, Module};
use crate::ir::Scalar;

/// The type that holds a scalar.
pub(super) const fn held(s: Scalar) -> Scalar {
    match s {
        Scalar::I8 | Scalar::I16 => Scalar::I32,
        Scalar::U8 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => Scalar::U32,
        other => other,
    }
}

/// The name of the type that holds a scalar.
pub(super) const fn name(s: Scalar) -> &'static str {
    held(s).name()
}

const fn suffix(s: Scalar) -> &'static str {
    match held(s) {
        Scalar::I32 => "i",
        Scalar::U32 => "u",
        Scalar::I64 => "li",
        Scalar::U64 => "lu",
        Scalar::F32 => "f",
        Scalar::F64 => "lf",
        _ => "",
    }
}

/// A call that is computed at run time, whatever its argument: WGSL refuses constant expressions that overflow.
pub(super) fn opaque(m: &Module<'_>, s: Scalar, e: &Expr) -> Expr {
    let ty = name(s);
    let name = m.helper(&format!("at_run_time_{ty}"), |name| {
        format!(
            "// Keeps a constant from being computed where the module is read.\nfn {name}(x: {ty}) -> {ty} {{\n    return x;\n}}\n"
        )
    });
    Expr::call(&name, std::slice::from_ref(e)).at_run_time()
}

/// A float from its bits, also those that a constant expression must not have.
pub(super) fn from_bits(m: &Module<'_>, s: Scalar, bits: &Expr) -> Expr {
    let (float, word) = (name(s), name(s.to_unsigned()));
    let name = m.helper(&format!("{float}_from_bits"), |name| {
        format!("fn {name}(bits: {word}) -> {float} {{\n    return bitcast<{float}>(bits);\n}}\n")
    });
    Expr::call(&name, std::slice::from_ref(bits)).at_run_time()
}

/// A scalar constant.
pub(super) fn literal(m: &Module<'_>, s: Scalar, bits: u64) -> Expr {
    let end = suffix(s);
    match s {
        Scalar::Bool => Expr::literal(if bits == 0 { "false" } else { "true" }, Bind::Whole, bits),
        Scalar::F32 | Scalar::F64 => {
            let subnormal = match s {
                Scalar::F32 => f32::from_bits(bits as u32).is_subnormal(),
                _ => f64::from_bits(bits).is_subnormal(),
            };
            let negative_zero = bits == 1 << (s.bits() - 1);
            // The shortest digits of the largest f32 are above it as an f64, which is how some readers parse them.
            let digits = match s {
                Scalar::F32 if f32::from_bits(bits as u32).abs() == f32::MAX => {
                    Some(format!("{:?}", f64::from(f32::from_bits(bits as u32))))
                }
                _ => float_digits(s, bits),
            };
            match digits {
                Some(digits) if !subnormal && !negative_zero => {
                    let bind = if digits.starts_with('-') {
                        Bind::Prefix
                    } else {
                        Bind::Whole
                    };
                    Expr::literal(format!("{digits}{end}"), bind, bits)
                }
                _ => from_bits(m, s, &hexadecimal(s.to_unsigned(), bits)),
            }
        }
        Scalar::F16 | Scalar::BF16 => Expr {
            literal: Some(bits),
            constant: true,
            ..hexadecimal(Scalar::U32, bits)
        },
        _ if s.is_signed_int() => {
            let shift = 64 - s.bits();
            let value = (bits << shift) as i64 >> shift;
            if value == i64::MIN {
                // The number itself is too large before its sign is taken.
                return Expr::literal(format!("i64({}li - 1li)", i64::MIN + 1), Bind::Whole, bits);
            }
            if value == i64::from(i32::MIN) && held(s) == Scalar::I32 {
                return Expr::literal("i32(-2147483648)", Bind::Whole, bits);
            }
            let bind = if value < 0 { Bind::Prefix } else { Bind::Whole };
            Expr::literal(format!("{value}{end}"), bind, bits)
        }
        _ => Expr::literal(format!("{bits}{end}"), Bind::Whole, bits),
    }
}

fn hexadecimal(s: Scalar, bits: u64) -> Expr {
    let width = s.bits() as usize / 4;
    let mut e = Expr::whole(format!("0x{bits:0width$x}{}", suffix(s)));
    e.constant = true;
    e
}

/// A 32-bit expression brought back into a narrow integer's range.
pub(super) fn wrapped(s: Scalar, e: Expr) -> Expr {
    match s {
        Scalar::U8 | Scalar::U16 => {
            let mask = if s == Scalar::U8 { "0xffu" } else { "0xffffu" };
            let mut mask = Expr::whole(mask);
            mask.constant = true;
            Expr::infix("&", Bind::Bits, &e, &mask)
        }
        Scalar::I8 | Scalar::I16 => {
            Expr::whole(format!("extractBits({}, 0u, {}u)", e.text, s.bits())).reading([&e])
        }
        _ => e,
    }
}

/// `TYPE(e)`.
pub(super) fn convert(s: Scalar, e: &Expr) -> Expr {
    let mut out = Expr::call(name(s), std::slice::from_ref(e));
    out.cheap = e.is_atom();
    out
}

/// `bitcast<TYPE>(e)`.
pub(super) fn bitcast(s: Scalar, e: &Expr) -> Expr {
    Expr::whole(format!("bitcast<{}>({})", name(s), e.text)).reading([e])
}

/// Rust's `as` among integers and `bool`.
pub(super) fn cast_integer(m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Expr {
    if let Some(bits) = a.literal {
        return literal(m, to, super::super::c_like::fold_cast(from, to, bits));
    }
    let (source, target) = (held(from), held(to));
    if from == Scalar::Bool {
        let word = convert(if target.size() == 8 { Scalar::U32 } else { target }, a);
        return if target.size() == 8 {
            convert(target, &word)
        } else {
            word
        };
    }
    let mut e = match (source, target) {
        _ if source == target => a.clone(),
        (Scalar::I32, Scalar::U64) => bitcast(target, &convert(Scalar::I64, a)),
        // Some drivers extend the sign of a u32 that becomes an i64 in one step.
        (Scalar::U32, Scalar::I64) => bitcast(target, &convert(Scalar::U64, a)),
        (Scalar::I64, Scalar::U32) => convert(target, &bitcast(Scalar::U64, a)),
        (Scalar::U64, Scalar::I32) => bitcast(target, &convert(Scalar::U32, a)),
        (Scalar::I64, Scalar::U64) | (Scalar::U64, Scalar::I64) => bitcast(target, a),
        _ => convert(target, a),
    };
    let keeps = from.size() < to.size() && !(from.is_signed_int() && to.is_unsigned_int())
        || from.size() == to.size() && from == to;
    if !keeps {
        e = wrapped(to, e);
    }
    if to.size() == 8 && from.size() <= 4 {
        e.unwidened = Some((Box::new(a.clone()), from));
    }
    e.cheap = e.cheap || a.is_atom() && e.bind == Bind::Whole;
    e
}

/// An index as `u32`. It is in bounds, so that its upper half is zero.
pub(super) fn index(s: Scalar, e: &Expr) -> Expr {
    if let Some((narrow, t)) = &e.unwidened {
        return index(*t, narrow);
    }
    match e.literal {
        Some(bits) => Expr::literal(format!("{}u", bits as u32), Bind::Whole, bits & 0xffff_ffff),
        None if held(s) == Scalar::U32 => e.clone(),
        None => convert(Scalar::U32, e),
    }
}
