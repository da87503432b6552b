//! WGSL as a dialect: its names for types, operators and accesses.

use super::super::c_like::c::{self, comparison};
use super::super::c_like::{Bind, DEAD, Dialect, Expr, Module, Spot, Writer, type_word};
use super::region::Regions;
use super::{report, scalar, subgroup, wide};
use crate::ir::{
    AtomicOp, Axis, Base, Builtin, DeviceOp, MemOrder, ParamKind, PrintPiece, Scalar, Sync, Type,
};
use crate::ops::{BinaryOp, DeviceRow, Spelling, TernaryOp, UnaryOp};
use crate::pass::Operation;

/// The dialect, with the names of what the kernel is passed behind the scenes.
pub(super) struct Wgsl {
    pub(super) regions: Regions,
    /// Whether the kernel has 64-bit integers.
    pub(super) wide: bool,
    pub(super) block: [u32; 3],
    /// Elements of dynamic workgroup memory.
    pub(super) dynamic: u32,
    /// Whether barriers order accesses to buffers too.
    pub(super) orders_buffers: bool,
    /// For each parameter, its fields in the argument block.
    pub(super) fields: Vec<Vec<String>>,
    /// For each parameter that is a buffer, its length and the number of its first element.
    pub(super) length: Vec<String>,
    pub(super) first: Vec<String>,
}

/// Whether a scalar is an integer of a word, or of two.
const fn has_words(s: Scalar) -> bool {
    matches!(s, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64)
}

const fn is_float(s: Scalar) -> bool {
    matches!(s, Scalar::F32 | Scalar::F64)
}

/// Whether WGSL writes an operation itself.
pub(in super::super) fn native(operation: &Operation) -> bool {
    use Operation::{Binary, Cast, Select, Ternary, Unary};
    match operation {
        Unary(op, s) if c::is_in_place(*op, *s) => true,
        Unary(op, s) => match op {
            UnaryOp::Neg => s.is_int() || is_float(*s),
            UnaryOp::Not => true,
            UnaryOp::CountOnes | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros | UnaryOp::ReverseBits => {
                matches!(s, Scalar::I32 | Scalar::U32)
            }
            UnaryOp::Abs => is_float(*s) || *s == Scalar::I32,
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundTiesEven | UnaryOp::Sqrt => {
                is_float(*s)
            }
            _ => false,
        },
        Binary(BinaryOp::Rem, s) => s.is_int(),
        Binary(op, s) => match op {
            BinaryOp::Min | BinaryOp::Max => s.is_int() || is_float(*s),
            BinaryOp::MulHigh
            | BinaryOp::Copysign
            | BinaryOp::RotateLeft
            | BinaryOp::RotateRight
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSub
            | BinaryOp::AbsDiff => false,
            _ => !matches!(s, Scalar::F16 | Scalar::BF16) && op.row().wgsl != Spelling::Library,
        },
        Ternary(TernaryOp::Fma, s) => is_float(*s),
        Ternary(_, s) => s.is_int() || is_float(*s),
        Select(ty) => matches!(ty, Type::Scalar(_) | Type::Vector(..)),
        Cast { from, to } => match (from, to) {
            (Scalar::F16 | Scalar::BF16, _) | (_, Scalar::F16 | Scalar::BF16) => false,
            (Scalar::F32 | Scalar::F64, to) => to.size() >= 4,
            _ => true,
        },
    }
}

/// To the nearest integer, of two to the even one. Lavapipe's own `round` of f64 was seen to go towards zero on processors without AVX-512.
/// From 2^52 on there are integers only; what is one already keeps its sign.
fn round_f64(a: &Expr) -> Expr {
    let args = std::slice::from_ref(a);
    let [x, size] = ["f64", "abs"].map(|name| Expr::call(name, args));
    let (own, size) = (&x.text, &size.text);
    let low = format!("floor({size})");
    let odd = format!("({low} - 2.0lf * floor({low} * 0.5lf))");
    let more =
        format!("select(select(0.0lf, {odd}, {size} - {low} == 0.5lf), 1.0lf, {size} - {low} > 0.5lf)");
    let near = format!("({low} + {more})");
    let signed = format!("select({near}, -{near}, {own} < 0.0lf)");
    let whole = format!("{size} >= 4503599627370496.0lf || {near} == {size}");
    let [signed, whole] = [signed, whole].map(|text| Expr::new(text, Bind::Choice));
    // What the operand reads goes along with `x`.
    let parts = [signed, x, whole];
    Expr::call("select", &parts)
}

impl Wgsl {
    pub(super) fn type_name_of(&self, m: &Module<'_>, ty: &Type) -> String {
        match ty {
            Type::Scalar(s) => scalar::name(*s).to_owned(),
            Type::Vector(s, n) => format!("vec{n}<{}>", scalar::name(*s)),
            Type::Array(element, n) => format!("array<{}, {n}>", self.type_name_of(m, element)),
            Type::Struct(s) => {
                let fields: String = s
                    .fields
                    .iter()
                    .zip(m.fields(s))
                    .map(|(f, name)| format!("    {name}: {},\n", self.type_name_of(m, &f.ty)))
                    .collect();
                m.declared_type(ty, &type_word(ty), |name| {
                    format!("struct {name} {{\n{fields}}}\n")
                })
            }
        }
    }

    /// Name and type of a base outside the body, and whether it is a run of elements.
    pub(super) fn base_of(&self, m: &Module<'_>, base: Base) -> (String, Type, bool) {
        let (name, ty, run, _) = c::base_of(m, base);
        (name, ty, run)
    }

    /// `a` and `b` combined by an atomic operation.
    pub(super) fn combined(&self, w: &mut Writer<'_>, op: AtomicOp, s: Scalar, a: &Expr, b: &Expr) -> Expr {
        let combined = op.binary().and_then(|op| self.binary(w, op, (s, s), a, b));
        combined.unwrap_or_else(|| b.clone())
    }

    /// Orders other than relaxed exist nowhere in WGSL.
    fn relaxed(&self, w: &Writer<'_>, sync: Sync) {
        if sync.order != MemOrder::Relaxed {
            w.m.unsupported(w.line, "an ordered atomic: its atomics are relaxed");
        }
    }

    /// A value that would be computed where the module is read is computed at run time instead.
    fn at_run_time(&self, m: &Module<'_>, s: Scalar, a: &Expr, others: &[&Expr]) -> Expr {
        let constant = a.constant && others.iter().all(|e| e.constant);
        if constant && s != Scalar::Bool {
            scalar::opaque(m, s, a)
        } else {
            a.clone()
        }
    }
}

/// The name of a function for the smaller (`<`) or larger (`>`) of two floats: the other one if one is NaN.
fn float_extreme(m: &Module<'_>, s: Scalar, sign: &str) -> String {
    let ty = scalar::name(s);
    let nan = if s == Scalar::F32 {
        "(bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u"
    } else {
        "!(x == x)"
    };
    let word = if sign == "<" { "min" } else { "max" };
    m.helper(&format!("{word}_{s}"), |name| {
        format!(
            "fn {name}(x: {ty}, y: {ty}) -> {ty} {{\n    let x_is_nan = {nan};\n    return select(x, y, x_is_nan || y {sign} x);\n}}\n"
        )
    })
}

/// Whether an f32 has an inverse that is not subnormal, and is no subnormal number itself.
fn has_normal_inverse(bits: u64) -> bool {
    let exponent = bits >> 23 & 0xff;
    (1..253).contains(&exponent)
}

/// The name of a function for quotients: Vulkan promises nothing where the divisor's inverse is subnormal (above 2^126),
/// and divides by multiplying with it.
fn quotient(m: &Module<'_>) -> String {
    m.helper("quotient", |name| {
        format!(
            "fn {name}(x: f32, y: f32) -> f32 {{\n    let k = select(1f, 0.25f, abs(y) > 8.507059e37f);\n    return (x * k) / (y * k);\n}}\n"
        )
    })
}

/// The name of a function that casts a float as Rust does: to the nearest end of the range, NaN to 0.
fn saturating(m: &Module<'_>, from: Scalar, to: Scalar) -> String {
    let (source, target) = (scalar::name(from), scalar::name(to));
    let end = if from == Scalar::F32 { "f" } else { "lf" };
    let nan = if from == Scalar::F32 {
        "(bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u"
    } else {
        "!(x == x)"
    };
    let limit = 2f64.powi(to.bits() as i32 - i32::from(to.is_signed_int()));
    let all = if to.bits() == 64 {
        u64::MAX
    } else {
        (1 << to.bits()) - 1
    };
    let sign = 1u64 << (to.bits() - 1);
    let (least, most) = if to.is_signed_int() {
        (sign, sign - 1)
    } else {
        (0, all)
    };
    let (least, most) = (
        scalar::literal(m, to, least).text,
        scalar::literal(m, to, most).text,
    );
    let (zero, low) = (
        scalar::literal(m, to, 0).text,
        if to.is_signed_int() {
            format!("x < -{limit:?}{end}")
        } else {
            format!("x < 0.0{end}")
        },
    );
    m.helper(&format!("{from}_to_{to}"), |name| {
        format!(
            "fn {name}(x: {source}) -> {target} {{\n    if ({nan}) {{\n        return {zero};\n    }}\n    if (x >= {limit:?}{end}) {{\n        return {most};\n    }}\n    if ({low}) {{\n        return {least};\n    }}\n    return {target}(x);\n}}\n"
        )
    })
}

impl Dialect for Wgsl {
    fn constant(&self, _: &Module<'_>, _: &Type, name: &str, value: &str) -> String {
        format!("let {name} = {value};")
    }

    fn variable(&self, m: &Module<'_>, ty: &Type, _: u32, name: &str, value: Option<&str>) -> String {
        match value {
            Some(value) => format!("var {name} = {value}"),
            None => format!("var {name}: {}", self.type_name_of(m, ty)),
        }
    }

    fn literal(&self, m: &Module<'_>, s: Scalar, bits: u64) -> Expr {
        scalar::literal(m, s, bits)
    }

    fn zero(&self, m: &Module<'_>, ty: &Type) -> Expr {
        match ty {
            Type::Scalar(s) => scalar::literal(m, *s, 0),
            _ => Expr::whole(format!("{}()", self.type_name_of(m, ty))),
        }
    }

    fn unary(&self, w: &mut Writer<'_>, op: UnaryOp, s: Scalar, a: &Expr) -> Option<Expr> {
        if c::is_in_place(op, s) {
            return c::in_place(self, w, op, s, a);
        }
        let a = &self.at_run_time(w.m, s, a, &[]);
        let args = std::slice::from_ref(a);
        let count = |name: &str| {
            let e = Expr::call(name, args);
            if s.is_signed_int() {
                scalar::convert(Scalar::U32, &e)
            } else {
                e
            }
        };
        Some(match op {
            UnaryOp::Neg if wide::is_wide(s) => wide::difference(w.m, s, &scalar::literal(w.m, s, 0), a),
            UnaryOp::Neg => scalar::wrapped(s, Expr::prefix("-", a)),
            UnaryOp::Not if s == Scalar::Bool => a.negated(),
            UnaryOp::Not => scalar::wrapped(s, Expr::prefix("~", a)),
            UnaryOp::CountOnes => count("countOneBits"),
            UnaryOp::LeadingZeros => count("countLeadingZeros"),
            UnaryOp::TrailingZeros => count("countTrailingZeros"),
            UnaryOp::ReverseBits => Expr::call("reverseBits", args),
            UnaryOp::Abs => Expr::call("abs", args),
            UnaryOp::RoundTiesEven if s == Scalar::F64 => round_f64(a),
            _ => match op.row().wgsl {
                Spelling::Call(name) if is_float(s) => Expr::call(name, args),
                _ => return None,
            },
        })
    }

    fn binary(
        &self,
        w: &mut Writer<'_>,
        op: BinaryOp,
        (s, t): (Scalar, Scalar),
        a: &Expr,
        b: &Expr,
    ) -> Option<Expr> {
        let a = &self.at_run_time(w.m, s, a, &[b]);
        if let Some((sign, opposite)) = comparison(op) {
            // Lengths and indices are widened to be compared: where both were 32 bits wide, that needs no 64.
            if let Some(e) = checked_index(w.m, op, a, b) {
                return Some(e);
            }
            let is_wide = before_widening(w.m, a).is_none() || before_widening(w.m, b).is_none();
            let (a, b) = narrowed(w.m, a, b);
            if s.is_float() && op == BinaryOp::Ne {
                // NaN differs from everything; `!=` is written as an ordered comparison by some compilers.
                let equal = Expr::infix("==", Bind::Compare, &a, &b);
                return Some(equal.negated());
            }
            if wide::is_wide(s) && is_wide && !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
                return Some(wide::ordered(w.m, op, s, &a, &b));
            }
            let e = Expr::infix(sign, Bind::Compare, &a, &b);
            return Some(if s.is_float() {
                e
            } else {
                e.with_opposite(opposite, &a, &b)
            });
        }
        let arithmetic = |sign, bind| scalar::wrapped(s, Expr::infix(sign, bind, a, b));
        let shift = |sign| {
            let n = match b.literal {
                Some(bits) => scalar::literal(w.m, Scalar::U32, bits & u64::from(s.bits() - 1)),
                None => {
                    let n = scalar::cast_integer(w.m, t, Scalar::U32, b);
                    let mask = scalar::literal(w.m, Scalar::U32, u64::from(s.bits() - 1));
                    Expr::infix("&", Bind::Bits, &n, &mask)
                }
            };
            scalar::wrapped(s, Expr::infix(sign, Bind::Bits, a, &n))
        };
        Some(match op {
            BinaryOp::Add if wide::is_wide(s) => wide::sum(w.m, s, a, b),
            BinaryOp::Sub if wide::is_wide(s) => wide::difference(w.m, s, a, b),
            BinaryOp::Add => arithmetic("+", Bind::Sum),
            BinaryOp::Sub => arithmetic("-", Bind::Sum),
            BinaryOp::Mul => arithmetic("*", Bind::Product),
            BinaryOp::Div if s == Scalar::F32 && b.literal.is_none_or(|b| !has_normal_inverse(b)) => {
                Expr::call(&quotient(w.m), &[a.clone(), b.clone()]).at_run_time()
            }
            BinaryOp::And if self.wide && has_words(s) && b.literal == Some(1) => wide::lowest_bit(w.m, s, a),
            BinaryOp::And if self.wide && has_words(s) && a.literal == Some(1) => wide::lowest_bit(w.m, s, b),
            BinaryOp::Rem if self.wide && s.is_unsigned_int() && has_words(s) && b.literal == Some(2) => {
                wide::lowest_bit(w.m, s, a)
            }
            BinaryOp::Div | BinaryOp::Rem => {
                let sign = if op == BinaryOp::Div { "/" } else { "%" };
                let b = if b.constant && s.is_int() && matches!(b.literal, None | Some(0)) {
                    scalar::opaque(w.m, s, b)
                } else {
                    b.clone()
                };
                scalar::wrapped(s, Expr::infix(sign, Bind::Product, a, &b))
            }
            BinaryOp::Min | BinaryOp::Max if s.is_float() => {
                let name = float_extreme(w.m, s, if op == BinaryOp::Min { "<" } else { ">" });
                Expr::call(&name, &[a.clone(), b.clone()]).at_run_time()
            }
            BinaryOp::Min => Expr::call("min", &[a.clone(), b.clone()]),
            BinaryOp::Max => Expr::call("max", &[a.clone(), b.clone()]),
            BinaryOp::And if s == Scalar::Bool => Expr::infix("&&", Bind::And, a, b),
            BinaryOp::Or if s == Scalar::Bool => Expr::infix("||", Bind::Or, a, b),
            BinaryOp::Xor if s == Scalar::Bool => {
                Expr::infix("!=", Bind::Compare, a, b).with_opposite("==", a, b)
            }
            BinaryOp::And => Expr::infix("&", Bind::Bits, a, b),
            BinaryOp::Or => Expr::infix("|", Bind::Bits, a, b),
            BinaryOp::Xor => Expr::infix("^", Bind::Bits, a, b),
            BinaryOp::Shl => shift("<<"),
            BinaryOp::Shr => shift(">>"),
            _ => return None,
        })
    }

    fn ternary(&self, w: &mut Writer<'_>, op: TernaryOp, s: Scalar, args: [&Expr; 3]) -> Option<Expr> {
        if op == TernaryOp::Fma && is_float(s) {
            let first = self.at_run_time(w.m, s, args[0], &args);
            return Some(Expr::call("fma", &[first, args[1].clone(), args[2].clone()]));
        }
        c::ternary(self, w, op, s, args)
    }

    fn select(&self, _: &Module<'_>, _: &Type, c: &Expr, a: &Expr, b: &Expr) -> Expr {
        Expr::call("select", &[b.clone(), a.clone(), c.clone()])
    }

    fn cast(&self, w: &mut Writer<'_>, from: Scalar, to: Scalar, a: &Expr) -> Option<Expr> {
        Some(match (from, to) {
            (Scalar::F16 | Scalar::BF16, _) | (_, Scalar::F16 | Scalar::BF16) => return None,
            (_, Scalar::F32 | Scalar::F64) => scalar::convert(to, &self.at_run_time(w.m, from, a, &[])),
            (Scalar::F32 | Scalar::F64, _) if to.size() >= 4 => {
                let name = saturating(w.m, from, to);
                Expr::call(&name, std::slice::from_ref(a)).at_run_time()
            }
            (Scalar::F32 | Scalar::F64, _) => return None,
            _ => scalar::cast_integer(w.m, from, to, a),
        })
    }

    fn bitcast(&self, m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Expr {
        if is_float(to) && a.constant {
            let bits = scalar::bitcast(to.to_unsigned(), a);
            return scalar::from_bits(m, to, if from.is_signed_int() { &bits } else { a });
        }
        if to.size() < 4 {
            // f16 and bf16 are kept as the bits of a u16.
            let bits = |s: Scalar| if s.is_float() { Scalar::U16 } else { s };
            return scalar::cast_integer(m, bits(from), bits(to), a);
        }
        scalar::bitcast(to, a)
    }

    fn compose(&self, m: &Module<'_>, ty: &Type, parts: &[Expr]) -> Expr {
        Expr::call(&self.type_name_of(m, ty), parts).at_run_time()
    }

    fn list(&self, _: &[Expr]) -> Option<String> {
        None
    }

    fn component(&self, m: &Module<'_>, ty: &Type, _: bool, i: u32) -> String {
        self.component_of(m, ty, i)
    }

    fn element(&self, m: &Module<'_>, array: &Type, index: &Expr, s: Scalar, _: bool) -> String {
        let mut index = scalar::index(s, index);
        if let (Some(bits), Type::Array(_, n)) = (index.literal, array)
            && bits >= u64::from(*n)
        {
            // Never done, but seen where the module is read.
            index = scalar::opaque(m, Scalar::U32, &index);
        }
        format!("[{}]", index.text)
    }

    fn builtin(&self, m: &Module<'_>, b: Builtin) -> Expr {
        let axis = |a: Axis| match a {
            Axis::X => 0,
            Axis::Y => 1,
            Axis::Z => 2,
        };
        Expr::whole(match b {
            Builtin::ThreadIdx(a) => format!("tid.{}", a.name()),
            Builtin::BlockIdx(a) => format!("bid.{}", a.name()),
            Builtin::BlockDim(a) => {
                let n = self.block.get(axis(a)).copied().unwrap_or(1);
                return scalar::literal(m, Scalar::U32, n.into());
            }
            Builtin::GridDim(a) => format!("args.grid.{}", a.name()),
            Builtin::SubgroupSize => subgroup::SIZE.to_owned(),
            Builtin::SubgroupLane => subgroup::LANE.to_owned(),
        })
    }

    fn param(&self, m: &Module<'_>, index: u32) -> Expr {
        let ty = match m.kernel.params.get(index as usize).map(|p| &p.kind) {
            Some(ParamKind::Value(ty)) => ty.clone(),
            _ => Type::U32,
        };
        super::param_value(self, m, index, &ty)
    }

    fn length(&self, w: &mut Writer<'_>, base: Base, s: Scalar) -> Expr {
        let n = match base {
            Base::Buffer(i) => Expr::whole(self.length.get(i as usize).map_or("", String::as_str)),
            _ => scalar::literal(w.m, Scalar::U32, self.dynamic.into()),
        };
        if s == Scalar::U32 {
            n
        } else {
            scalar::cast_integer(w.m, Scalar::U32, s, &n)
        }
    }

    fn load(&self, w: &mut Writer<'_>, spot: &Spot, sync: Option<Sync>) -> Expr {
        if let Some(sync) = sync {
            self.relaxed(w, sync);
        }
        self.load_spot(w, spot)
    }

    fn load_met(&self, w: &mut Writer<'_>, spot: &Spot) -> Option<Expr> {
        self.load_alike(w, spot)
    }

    fn store(&self, w: &mut Writer<'_>, spot: &Spot, value: &Expr, sync: Option<Sync>) {
        if let Some(sync) = sync {
            self.relaxed(w, sync);
        }
        self.store_spot(w, spot, value);
    }

    fn atomic(
        &self,
        w: &mut Writer<'_>,
        op: AtomicOp,
        spot: &Spot,
        value: &Expr,
        sync: Sync,
        used: bool,
    ) -> Expr {
        self.relaxed(w, sync);
        self.update(w, op, spot, value, used)
    }

    fn compare_exchange(
        &self,
        w: &mut Writer<'_>,
        spot: &Spot,
        expected: &Expr,
        new: &Expr,
        sync: Sync,
        used: bool,
    ) -> Expr {
        self.relaxed(w, sync);
        self.exchange(w, spot, expected, new, used)
    }

    fn call(&self, m: &Module<'_>, f: u32, args: &[Expr]) -> Expr {
        let mut all = args.to_vec();
        if let Some(needs) = m.needs.get(f as usize) {
            all.extend(
                super::hidden(needs)
                    .into_iter()
                    .map(|(_, name)| Expr::whole(name)),
            );
        }
        let name = m.functions.get(f as usize).map_or("", String::as_str);
        Expr::call(name, &all).at_run_time()
    }

    fn discard(&self, ty: &Type, value: &Expr) -> String {
        let is_call = matches!(ty, Type::Struct(s) if s.fields.is_empty());
        if is_call || value.text.starts_with("atomic") {
            format!("{};", value.text)
        } else {
            format!("_ = {};", value.text)
        }
    }

    fn words(&self, row: &DeviceRow) -> Option<&'static str> {
        row.wgsl
    }

    fn device(&self, w: &mut Writer<'_>, op: DeviceOp, s: Scalar, args: &[Expr]) -> Option<Expr> {
        Some(match (op, args) {
            (DeviceOp::Subgroup(op), [value, rest @ ..]) => {
                subgroup::operation(self, w, op, s, value, rest.first())
            }
            (DeviceOp::IsDead, _) => Expr::whole(DEAD),
            (DeviceOp::Barrier, _) => {
                if self.orders_buffers {
                    w.write("storageBarrier();");
                }
                Expr::whole("workgroupBarrier()")
            }
            _ => return None,
        })
    }

    fn print(&self, w: &mut Writer<'_>, _: u32, _: &[PrintPiece], _: &[(Scalar, Expr)]) {
        w.m.unsupported(w.line, "printing");
    }

    fn fault(&self, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
        report::fault(w, site, operands);
    }

    fn endless(&self) -> &'static str {
        "loop"
    }

    fn needs_exits(&self) -> bool {
        true
    }

    fn case(&self, m: &Module<'_>, s: Scalar, labels: &[u64]) -> String {
        if labels.is_empty() {
            return "default:".to_owned();
        }
        let labels: Vec<String> = labels
            .iter()
            .map(|bits| scalar::literal(m, s, *bits).text)
            .collect();
        format!("case {}:", labels.join(", "))
    }

    fn breaks_cases(&self) -> bool {
        false
    }

    fn switches_on(&self, s: Scalar) -> bool {
        scalar::held(s).size() == 4
    }

    fn natural(&self, _: &Module<'_>, _: Scalar, e: Expr) -> Expr {
        e
    }
}

/// An operand before it was widened from `u32`.
fn before_widening(m: &Module<'_>, e: &Expr) -> Option<Expr> {
    match (&e.unwidened, e.literal) {
        (Some((inner, s)), _) if scalar::held(*s) == Scalar::U32 => Some((**inner).clone()),
        (None, Some(bits)) if e.text.ends_with("lu") && bits <= u64::from(u32::MAX) => {
            Some(scalar::literal(m, Scalar::U32, bits))
        }
        _ => None,
    }
}

/// Both operands as they were before they were widened from `u32`, if both were.
fn narrowed(m: &Module<'_>, a: &Expr, b: &Expr) -> (Expr, Expr) {
    match (before_widening(m, a), before_widening(m, b)) {
        (Some(a), Some(b)) => (a, b),
        _ => (a.clone(), b.clone()),
    }
}

/// A signed index compared with a length, both widened: negative is beyond every length.
fn checked_index(m: &Module<'_>, op: BinaryOp, index: &Expr, length: &Expr) -> Option<Expr> {
    let (inner, s) = index.unwidened.as_ref()?;
    if scalar::held(*s) != Scalar::I32 || !inner.is_atom() || !index.text.starts_with("bitcast<u64>") {
        return None;
    }
    let length = before_widening(m, length)?;
    let zero = scalar::literal(m, Scalar::I32, 0);
    let bits = scalar::convert(Scalar::U32, inner);
    let beyond = Expr::infix(
        "||",
        Bind::Or,
        &Expr::infix("<", Bind::Compare, inner, &zero),
        &Expr::infix(">=", Bind::Compare, &bits, &length),
    );
    let within = Expr::infix(
        "&&",
        Bind::And,
        &Expr::infix(">=", Bind::Compare, inner, &zero),
        &Expr::infix("<", Bind::Compare, &bits, &length),
    );
    let (e, opposite) = match op {
        BinaryOp::Ge => (beyond, within),
        BinaryOp::Lt => (within, beyond),
        _ => return None,
    };
    Some(Expr {
        opposite: Some((opposite.text, opposite.bind)),
        ..e
    })
}
