//! What CUDA C and MSL have in common, which is nearly all of C: arithmetic that wraps by way of unsigned types,
//! casts, structs and arrays as values.

use super::dialect::Dialect;
use super::expr::{Bind, Expr};
use super::module::{COMPONENTS, Module, type_word};
use super::writer::{Spot, SpotStep, Writer};
use crate::ir::{Base, ParamKind, Scalar, Type};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// Names and literals in which the C targets differ.
pub(crate) trait CNames {
    /// A scalar type.
    fn scalar(&self, s: Scalar) -> &'static str;
    /// What ends a literal of this type.
    fn suffix(&self, s: Scalar) -> &'static str;
    /// A float from its bits.
    fn float_from_bits(&self, s: Scalar, bits: u64) -> String;
    /// What stands before a struct's name to align it.
    fn aligned(&self, bytes: u32) -> String;
    /// A vector type, if the language has one that is laid out as ours.
    fn vector(&self, s: Scalar, n: u8) -> Option<String>;
}

/// A type's name, declared if it is a struct, an array or a vector that the language lacks.
pub(crate) fn type_name(names: &dyn CNames, m: &Module<'_>, ty: &Type) -> String {
    match ty {
        Type::Scalar(s) => names.scalar(*s).to_owned(),
        Type::Vector(s, n) => names.vector(*s, *n).unwrap_or_else(|| {
            let scalar = names.scalar(*s);
            m.declared_type(ty, &type_word(ty), |name| {
                let fields: Vec<&str> = COMPONENTS.into_iter().take(usize::from(*n)).collect();
                let align = names.aligned(ty.align());
                format!(
                    "struct {align}{name} {{\n    {scalar} {};\n}};\n",
                    fields.join(", ")
                )
            })
        }),
        Type::Array(element, n) => {
            let inner = type_name(names, m, element);
            m.declared_type(ty, &type_word(ty), |name| {
                format!("struct {name} {{\n    {inner} at[{n}];\n}};\n")
            })
        }
        Type::Struct(s) => {
            let fields: String = s
                .fields
                .iter()
                .zip(m.fields(s))
                .map(|(f, name)| format!("    {} {name};\n", type_name(names, m, &f.ty)))
                .collect();
            let natural = s.fields.iter().map(|f| f.ty.align()).max().unwrap_or(1);
            let align = if s.align > natural {
                names.aligned(s.align)
            } else {
                String::new()
            };
            m.declared_type(ty, &s.name, |name| {
                format!("struct {align}{name} {{\n{fields}}};\n")
            })
        }
    }
}

/// `TYPE name`, with brackets for the outer `flat` array levels.
pub(crate) fn declarator(names: &dyn CNames, m: &Module<'_>, ty: &Type, flat: u32, name: &str) -> String {
    let mut element = ty;
    let mut brackets = String::new();
    for _ in 0..flat {
        if let Type::Array(inner, n) = element {
            brackets.push_str(&format!("[{n}]"));
            element = inner;
        }
    }
    format!("{} {name}{brackets}", type_name(names, m, element))
}

/// The unsigned type of a signed one's width.
pub(crate) fn is_wide_signed(s: Scalar) -> bool {
    matches!(s, Scalar::I32 | Scalar::I64)
}

/// `(TYPE)e`.
pub(crate) fn cast_to(names: &dyn CNames, s: Scalar, e: &Expr) -> Expr {
    Expr::new(
        format!("({}){}", names.scalar(s), e.at(Bind::Prefix)),
        Bind::Prefix,
    )
    .reading([e])
}

/// A wide integer in the unsigned type of its width.
pub(crate) fn unsigned(names: &dyn CNames, s: Scalar, e: &Expr) -> Expr {
    if !is_wide_signed(s) || e.unsigned {
        return e.clone();
    }
    match e.literal {
        Some(bits) => integer_literal(names, s.to_unsigned(), bits),
        None => cast_to(names, s.to_unsigned(), e),
    }
    .in_unsigned(true)
}

/// A signed value in its own type.
pub(crate) fn natural(names: &dyn CNames, s: Scalar, e: Expr) -> Expr {
    if is_wide_signed(s) && e.unsigned {
        match e.literal {
            Some(bits) => integer_literal(names, s, bits),
            None => cast_to(names, s, &e),
        }
    } else {
        e
    }
}

/// A value whose C type is exactly its own, for places where C infers types or refuses to narrow.
pub(crate) fn exact(names: &dyn CNames, s: Scalar, e: &Expr) -> Expr {
    let is_narrow = s.size() < 4 && s != Scalar::Bool;
    if is_narrow && (!e.is_atom() || e.literal.is_some()) {
        cast_to(names, s, e)
    } else {
        natural(names, s, e.clone())
    }
}

fn integer_literal(names: &dyn CNames, s: Scalar, bits: u64) -> Expr {
    let suffix = names.suffix(s);
    if !s.is_signed_int() {
        return Expr::literal(format!("{bits}{suffix}"), Bind::Whole, bits);
    }
    let shift = 64 - s.bits();
    let value = (bits << shift) as i64 >> shift;
    if value == i64::MIN || value == i64::from(i32::MIN) && s == Scalar::I32 {
        // The number itself is too large for the type before its sign is taken.
        return Expr::literal(format!("({}{suffix} - 1)", value + 1), Bind::Whole, bits);
    }
    let bind = if value < 0 { Bind::Prefix } else { Bind::Whole };
    Expr::literal(format!("{value}{suffix}"), bind, bits)
}

/// Digits of a finite float, with a point or an exponent.
pub(crate) fn float_digits(s: Scalar, bits: u64) -> Option<String> {
    match s {
        Scalar::F32 => {
            let v = f32::from_bits(bits as u32);
            v.is_finite().then(|| format!("{v:?}"))
        }
        Scalar::F64 => {
            let v = f64::from_bits(bits);
            v.is_finite().then(|| format!("{v:?}"))
        }
        _ => None,
    }
}

/// A scalar constant.
pub(crate) fn literal(names: &dyn CNames, s: Scalar, bits: u64) -> Expr {
    match s {
        Scalar::Bool => Expr::literal(if bits == 0 { "false" } else { "true" }, Bind::Whole, bits),
        Scalar::F16 | Scalar::BF16 => Expr::literal(format!("0x{bits:04x}u"), Bind::Whole, bits),
        Scalar::F32 | Scalar::F64 => match float_digits(s, bits) {
            Some(digits) => {
                let bind = if digits.starts_with('-') {
                    Bind::Prefix
                } else {
                    Bind::Whole
                };
                Expr::literal(format!("{digits}{}", names.suffix(s)), bind, bits)
            }
            None => Expr::literal(names.float_from_bits(s, bits), Bind::Whole, bits),
        },
        _ => integer_literal(names, s, bits),
    }
}

/// An operator of one operand that every C writes alike; `None` for the rest.
pub(crate) fn unary(names: &dyn CNames, op: UnaryOp, s: Scalar, a: &Expr) -> Option<Expr> {
    Some(match op {
        UnaryOp::Neg if is_wide_signed(s) => Expr::prefix("-", &unsigned(names, s, a)).in_unsigned(true),
        UnaryOp::Neg if s.is_signed_int() => cast_to(names, s, &Expr::prefix("-", a)),
        UnaryOp::Neg if s.size() >= 4 => Expr::prefix("-", a),
        UnaryOp::Not if s == Scalar::Bool => a.negated(),
        UnaryOp::Not => {
            let not = Expr::prefix("~", a);
            if s.size() < 4 {
                cast_to(names, s, &not)
            } else {
                not.in_unsigned(a.unsigned)
            }
        }
        _ => return None,
    })
}

/// Bits of a shift amount that count.
pub(crate) fn amount(names: &dyn CNames, s: Scalar, t: Scalar, n: &Expr) -> Expr {
    let mask = u64::from(s.bits() - 1);
    match n.literal {
        Some(bits) => integer_literal(names, Scalar::I32, bits & mask),
        None => {
            let mask = integer_literal(
                names,
                if t.is_signed_int() && !n.unsigned {
                    Scalar::I32
                } else {
                    Scalar::U32
                },
                mask,
            );
            Expr::infix("&", Bind::Bits, n, &mask)
        }
    }
}

/// Two 64-bit operands as they were before they were widened from `u32`, if both were.
fn narrowed(names: &dyn CNames, s: Scalar, a: &Expr, b: &Expr) -> (Expr, Expr) {
    let before = |e: &Expr| match (&e.unwidened, e.literal) {
        (Some((inner, Scalar::U32)), _) => Some((**inner).clone()),
        (None, Some(bits)) if s == Scalar::U64 && bits <= u64::from(u32::MAX) => {
            Some(integer_literal(names, Scalar::U32, bits))
        }
        _ => None,
    };
    match (before(a), before(b)) {
        (Some(a), Some(b)) => (a, b),
        _ => (a.clone(), b.clone()),
    }
}

/// The operator that compares, and the one that says the opposite (but for NaN).
pub(crate) fn comparison(op: BinaryOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinaryOp::Eq => ("==", "!="),
        BinaryOp::Ne => ("!=", "=="),
        BinaryOp::Lt => ("<", ">="),
        BinaryOp::Le => ("<=", ">"),
        BinaryOp::Gt => (">", "<="),
        BinaryOp::Ge => (">=", "<"),
        _ => return None,
    })
}

/// An operator of two operands that every C writes alike; `None` for the rest.
pub(crate) fn binary(
    names: &dyn CNames,
    op: BinaryOp,
    (s, t): (Scalar, Scalar),
    a: &Expr,
    b: &Expr,
) -> Option<Expr> {
    if let Some((sign, opposite)) = comparison(op) {
        let (a, b) = &narrowed(names, s, a, b);
        let (a, b) = (natural(names, s, a.clone()), natural(names, s, b.clone()));
        let e = Expr::infix(sign, Bind::Compare, &a, &b);
        // `!(a < b)` is not `a >= b` where one is NaN.
        let reversible = !s.is_float() || matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        return Some(if reversible {
            e.with_opposite(opposite, &a, &b)
        } else {
            e
        });
    }
    let wraps = is_wide_signed(s);
    let narrow = s.size() < 4;
    let arithmetic = |sign, bind| {
        if s.is_float() {
            return Expr::infix(sign, bind, a, b);
        }
        if narrow {
            // Promotion to int is wide enough but for products of two u16.
            let first = if sign == "*" && s == Scalar::U16 {
                cast_to(names, Scalar::U32, a)
            } else {
                a.clone()
            };
            return cast_to(names, s, &Expr::infix(sign, bind, &first, b));
        }
        Expr::infix(sign, bind, &unsigned(names, s, a), &unsigned(names, s, b)).in_unsigned(wraps)
    };
    Some(match op {
        BinaryOp::Add => arithmetic("+", Bind::Sum),
        BinaryOp::Sub => arithmetic("-", Bind::Sum),
        BinaryOp::Mul => arithmetic("*", Bind::Product),
        BinaryOp::Div if s.is_float() => Expr::infix("/", Bind::Product, a, b),
        BinaryOp::Div | BinaryOp::Rem if s.is_int() => {
            let sign = if op == BinaryOp::Div { "/" } else { "%" };
            let (a, b) = (natural(names, s, a.clone()), natural(names, s, b.clone()));
            let e = Expr::infix(sign, Bind::Product, &a, &b);
            if narrow { cast_to(names, s, &e) } else { e }
        }
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor if s == Scalar::Bool => match op {
            BinaryOp::And => Expr::infix("&&", Bind::And, a, b),
            BinaryOp::Or => Expr::infix("||", Bind::Or, a, b),
            _ => Expr::infix("!=", Bind::Compare, a, b).with_opposite("==", a, b),
        },
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
            let sign = match op {
                BinaryOp::And => "&",
                BinaryOp::Or => "|",
                _ => "^",
            };
            if a.unsigned || b.unsigned {
                Expr::infix(sign, Bind::Bits, &unsigned(names, s, a), &unsigned(names, s, b))
                    .in_unsigned(true)
            } else {
                Expr::infix(sign, Bind::Bits, a, b)
            }
        }
        BinaryOp::Shl => {
            let n = amount(names, s, t, b);
            if narrow {
                let wide = cast_to(names, Scalar::U32, a);
                cast_to(names, s, &Expr::infix("<<", Bind::Bits, &wide, &n))
            } else {
                Expr::infix("<<", Bind::Bits, &unsigned(names, s, a), &n).in_unsigned(wraps)
            }
        }
        BinaryOp::Shr => {
            let n = amount(names, s, t, b);
            Expr::infix(">>", Bind::Bits, &natural(names, s, a.clone()), &n)
        }
        _ => return None,
    })
}

/// Operators that are a line over others, written in place: the same in every dialect.
pub(crate) fn in_place(
    d: &dyn Dialect,
    w: &mut Writer<'_>,
    op: UnaryOp,
    s: Scalar,
    a: &Expr,
) -> Option<Expr> {
    let number = |v: f64| {
        let bits = if s == Scalar::F32 {
            u64::from((v as f32).to_bits())
        } else {
            v.to_bits()
        };
        d.literal(w.m, s, bits)
    };
    let one = number(1.0);
    match op {
        UnaryOp::Recip => d.binary(w, BinaryOp::Div, (s, s), &one, a),
        UnaryOp::Rsqrt => {
            let root = d.unary(w, UnaryOp::Sqrt, s, a)?;
            d.binary(w, BinaryOp::Div, (s, s), &one, &root)
        }
        UnaryOp::ToDegrees => {
            let factor = number(57.295_779_513_082_32);
            d.binary(w, BinaryOp::Mul, (s, s), a, &factor)
        }
        UnaryOp::ToRadians => {
            let factor = number(0.017_453_292_519_943_295);
            d.binary(w, BinaryOp::Mul, (s, s), a, &factor)
        }
        _ => None,
    }
}

/// Whether [`in_place`] writes this operator.
pub(crate) fn is_in_place(op: UnaryOp, s: Scalar) -> bool {
    s.size() >= 4
        && matches!(
            op,
            UnaryOp::Recip | UnaryOp::Rsqrt | UnaryOp::ToDegrees | UnaryOp::ToRadians
        )
}

/// `min(max(x, y), z)`.
pub(crate) fn ternary(
    d: &dyn Dialect,
    w: &mut Writer<'_>,
    op: TernaryOp,
    s: Scalar,
    [x, y, z]: [&Expr; 3],
) -> Option<Expr> {
    if op != TernaryOp::Clamp {
        return None;
    }
    let low = d.binary(w, BinaryOp::Max, (s, s), x, y)?;
    d.binary(w, BinaryOp::Min, (s, s), &low, z)
}

/// A choice between two values.
pub(crate) fn select(names: &dyn CNames, ty: &Type, c: &Expr, a: &Expr, b: &Expr) -> Expr {
    let (mut a, mut b) = (a.clone(), b.clone());
    if let Type::Scalar(s) = ty
        && a.unsigned != b.unsigned
    {
        (a, b) = (unsigned(names, *s, &a), unsigned(names, *s, &b));
    }
    let mut e = Expr::new(
        format!("{} ? {} : {}", c.at(Bind::Or), a.at(Bind::Or), b.at(Bind::Choice)),
        Bind::Choice,
    )
    .reading([c, &a, &b]);
    e.unsigned = a.unsigned && b.unsigned;
    e
}

/// Casts among integers, and from integers and floats to floats of at least 32 bits; `None` for the rest.
pub(crate) fn cast(names: &dyn CNames, from: Scalar, to: Scalar, a: &Expr) -> Option<Expr> {
    if to.is_float() {
        let plain = to.size() >= 4 && (from.is_int() || from.is_float() && from.size() >= 4);
        return plain.then(|| cast_to(names, to, &natural(names, from, a.clone())));
    }
    if from.is_float() {
        return None;
    }
    if let Some(bits) = a.literal {
        return Some(literal(names, to, crate::back::c_like::fold_cast(from, to, bits)));
    }
    if from.size() == to.size() && from.size() >= 4 {
        return Some(match (from.is_signed_int(), to.is_signed_int()) {
            (true, false) => unsigned(names, from, a).in_unsigned(false),
            (false, true) => a.clone().in_unsigned(true),
            _ => a.clone(),
        });
    }
    let value = natural(names, from, a.clone());
    let mut e = cast_to(names, to, &value);
    e.cheap = a.is_atom();
    if to.size() == 8 && from.size() <= 4 {
        e.unwidened = Some((Box::new(value), from));
    }
    Some(e)
}

/// An aggregate from its components.
pub(crate) fn compose(names: &dyn CNames, m: &Module<'_>, ty: &Type, parts: &[Expr]) -> Expr {
    let exact: Vec<Expr> = parts
        .iter()
        .enumerate()
        .map(|(i, p)| match ty.component(i as u32) {
            Some(Type::Scalar(s)) => exact(names, s, p),
            _ => p.clone(),
        })
        .collect();
    let list: Vec<&str> = exact.iter().map(|p| p.text.as_str()).collect();
    let list = list.join(", ");
    let name = type_name(names, m, ty);
    let text = match ty {
        Type::Array(..) => format!("{name}{{{{{list}}}}}"),
        Type::Vector(s, n) if names.vector(*s, *n).is_some() => format!("{name}({list})"),
        _ => format!("{name}{{{list}}}"),
    };
    Expr::whole(text).reading(parts).at_run_time()
}

/// What follows an aggregate to reach a component.
pub(crate) fn component(m: &Module<'_>, ty: &Type, flat: bool, i: u32) -> String {
    match ty {
        Type::Vector(..) => format!(".{}", COMPONENTS.get(i as usize).copied().unwrap_or("x")),
        Type::Struct(s) => m.field(s, i),
        _ if flat => format!("[{i}]"),
        _ => format!(".at[{i}]"),
    }
}

/// What follows an array to reach an element. An index that was widened for the IR need not be for C.
pub(crate) fn element(index: &Expr, flat: bool) -> String {
    let index = index.unwidened.as_ref().map_or(index, |(inner, _)| inner);
    let at = if flat { "" } else { ".at" };
    match index.literal {
        Some(bits) => format!("{at}[{bits}]"),
        None => format!("{at}[{}]", index.text),
    }
}

/// Memory at the end of a path into something called `root`: a run of elements (`run`), or a variable.
pub(crate) fn lvalue(w: &Writer<'_>, spot: &Spot, root: &str, ty: &Type, run: bool, flat: u32) -> Expr {
    if !run {
        return w.path(root.to_owned(), ty, flat, &spot.steps);
    }
    match spot.steps.split_first() {
        Some((SpotStep::Index(first, _), rest)) => {
            let root = format!("{root}{}", element(first, true));
            w.path(root, ty, 0, rest).reading([first]).at_run_time()
        }
        _ => w.path(root.to_owned(), ty, 0, &spot.steps),
    }
}

/// Type and kind of what a base outside the body is: whether it is a run of elements, and its flat array levels.
pub(crate) fn base_of(m: &Module<'_>, base: Base) -> (String, Type, bool, u32) {
    let k = m.kernel;
    let name = |names: &[String], i: u32| names.get(i as usize).cloned().unwrap_or_default();
    match base {
        Base::Shared(i) => {
            let var = k.shared.get(i as usize);
            let ty = var.map_or(Type::U32, |s| s.ty.clone());
            let flat = m.shared_flat.get(i as usize).copied().unwrap_or(0);
            (name(&m.shared, i), ty, var.is_some_and(|s| s.dynamic), flat)
        }
        Base::Constant(i) => {
            let ty = k
                .constants
                .get(i as usize)
                .map_or(Type::U32, |c| c.element.into());
            (name(&m.constants, i), ty, true, 0)
        }
        Base::Buffer(i) => {
            let ty = match k.params.get(i as usize).map(|p| &p.kind) {
                Some(ParamKind::Buffer { element, .. }) => element.clone(),
                _ => Type::U32,
            };
            (name(&m.params, i), ty, true, 0)
        }
        Base::Local(_) => (String::new(), Type::U32, false, 0),
    }
}

/// `case 1: case 2:`, or `default:`.
pub(crate) fn case(names: &dyn CNames, s: Scalar, labels: &[u64]) -> String {
    if labels.is_empty() {
        return "default:".to_owned();
    }
    let labels: Vec<String> = labels
        .iter()
        .map(|bits| format!("case {}:", literal(names, s, *bits).text))
        .collect();
    labels.join(" ")
}
