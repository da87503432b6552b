//! MSL as a dialect of C: its names for types, operators and accesses.

use super::super::c_like::c::{self, CNames};
use super::super::c_like::{CDialect, DEAD, Expr, Module, Spot, Writer};
use super::{atomics, report, subgroup};
use crate::ir::{AtomicOp, Axis, Base, Builtin, DeviceOp, MemOrder, PrintPiece, Scalar, Sync, Type};
use crate::ops::{BinaryOp, DeviceRow, Spelling, TernaryOp, UnaryOp};
use crate::pass::Operation;

/// The dialect, with the names of what the kernel is passed behind the scenes.
pub(super) struct Msl {
    /// For each parameter, the name of its length.
    pub(super) lengths: Vec<String>,
}

impl Msl {
    pub(super) fn new(m: &Module<'_>) -> Msl {
        Msl {
            lengths: m
                .params
                .iter()
                .map(|p| m.global_name(&format!("{p}_len")))
                .collect(),
        }
    }

    pub(super) fn type_name_of(&self, m: &Module<'_>, ty: &Type) -> String {
        c::type_name(self, m, ty)
    }

    fn lvalue(&self, w: &Writer<'_>, spot: &Spot) -> Expr {
        let (root, ty, run, flat) = c::base_of(w.m, spot.base);
        c::lvalue(w, spot, &root, &ty, run, flat)
    }
}

fn is_wide_int(s: Scalar) -> bool {
    s.is_int() && s.size() >= 4
}

/// Whether MSL writes an operation itself.
pub(in super::super) fn native(operation: &Operation) -> bool {
    use Operation::{Binary, Cast, Select, Ternary, Unary};
    let is_single = |s: &Scalar| *s == Scalar::F32;
    match operation {
        Unary(op, s) if c::is_in_place(*op, *s) => true,
        Unary(op, s) => match op {
            UnaryOp::Neg => s.is_int() || is_single(s),
            UnaryOp::Not => true,
            UnaryOp::CountOnes | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros | UnaryOp::ReverseBits => {
                is_wide_int(*s)
            }
            UnaryOp::Abs
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Trunc
            | UnaryOp::Round
            | UnaryOp::RoundTiesEven
            | UnaryOp::Sqrt
            | UnaryOp::IsNan
            | UnaryOp::IsInfinite
            | UnaryOp::IsFinite
            | UnaryOp::IsSignNegative => is_single(s),
            _ => false,
        },
        Binary(BinaryOp::Rem, s) => s.is_int(),
        Binary(op, s) => match op {
            BinaryOp::Min | BinaryOp::Max => is_wide_int(*s) || is_single(s),
            BinaryOp::MulHigh => matches!(s, Scalar::I32 | Scalar::U32),
            BinaryOp::Copysign => is_single(s),
            BinaryOp::RotateLeft
            | BinaryOp::RotateRight
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSub
            | BinaryOp::AbsDiff => false,
            _ => !matches!(s, Scalar::F16 | Scalar::BF16) && op.row().msl != Spelling::Library,
        },
        Ternary(TernaryOp::Fma, s) => is_single(s),
        Ternary(_, s) => is_wide_int(*s) || is_single(s),
        Select(_) => true,
        Cast { from, to } => match (from, to) {
            (Scalar::F16, Scalar::F32) | (Scalar::F32, Scalar::F16) => true,
            (Scalar::F16 | Scalar::BF16, _) | (_, Scalar::F16 | Scalar::BF16) => false,
            (Scalar::F32 | Scalar::F64, to) => to.size() >= 4,
            _ => true,
        },
    }
}

impl CNames for Msl {
    fn scalar(&self, s: Scalar) -> &'static str {
        match s {
            Scalar::Bool => "bool",
            Scalar::I8 => "char",
            Scalar::I16 => "short",
            Scalar::I32 => "int",
            Scalar::I64 => "long",
            Scalar::U8 => "uchar",
            Scalar::U16 | Scalar::F16 | Scalar::BF16 => "ushort",
            Scalar::U32 => "uint",
            Scalar::U64 => "ulong",
            Scalar::F32 => "float",
            // No kernel with f64 comes here: the capability is missing.
            Scalar::F64 => "double",
        }
    }

    fn suffix(&self, s: Scalar) -> &'static str {
        match s {
            Scalar::U32 => "u",
            Scalar::I64 => "l",
            Scalar::U64 => "ul",
            Scalar::F32 => "f",
            _ => "",
        }
    }

    fn float_from_bits(&self, _: Scalar, bits: u64) -> String {
        format!("as_type<float>(0x{bits:08x}u)")
    }

    fn aligned(&self, bytes: u32) -> String {
        format!("alignas({bytes}) ")
    }

    fn vector(&self, s: Scalar, n: u8) -> Option<String> {
        Some(format!("{}{n}", self.scalar(s)))
    }
}

/// `as_type<TYPE>(e)`.
fn as_type(ty: &str, e: &Expr) -> Expr {
    Expr::whole(format!("as_type<{ty}>({})", e.text))
        .reading([e])
        .at_run_time()
}

impl CDialect for Msl {
    fn own_unary(&self, op: UnaryOp, s: Scalar, a: &Expr) -> Option<Expr> {
        let args = [c::natural(self, s, a.clone())];
        let single = s == Scalar::F32;
        let count = |name: &str| {
            let bits = c::unsigned(self, s, a);
            let e = Expr::call(name, &[bits]);
            if s == Scalar::U32 || s == Scalar::I32 {
                e
            } else {
                c::cast_to(self, Scalar::U32, &e)
            }
        };
        Some(match op {
            UnaryOp::Abs if single => Expr::call("fabs", &args),
            UnaryOp::Sqrt if single => Expr::call("precise::sqrt", &args),
            UnaryOp::IsNan if single => Expr::call("isnan", &args),
            UnaryOp::IsInfinite if single => Expr::call("isinf", &args),
            UnaryOp::IsFinite if single => Expr::call("isfinite", &args),
            UnaryOp::IsSignNegative if single => Expr::call("signbit", &args),
            UnaryOp::CountOnes if is_wide_int(s) => count("popcount"),
            UnaryOp::LeadingZeros if is_wide_int(s) => count("clz"),
            UnaryOp::TrailingZeros if is_wide_int(s) => count("ctz"),
            UnaryOp::ReverseBits if is_wide_int(s) => {
                Expr::call("reverse_bits", &[c::unsigned(self, s, a)]).in_unsigned(c::is_wide_signed(s))
            }
            _ => match op.row().msl {
                Spelling::Call(name) if single => Expr::call(name, &args),
                _ => return None,
            },
        })
    }

    fn own_binary(&self, op: BinaryOp, s: Scalar, a: &Expr, b: &Expr) -> Option<Expr> {
        let single = s == Scalar::F32;
        let name = match op {
            BinaryOp::Min if single => "fmin",
            BinaryOp::Max if single => "fmax",
            BinaryOp::Copysign if single => "copysign",
            BinaryOp::Min if is_wide_int(s) => "min",
            BinaryOp::Max if is_wide_int(s) => "max",
            BinaryOp::MulHigh => "mulhi",
            _ => return None,
        };
        Some(Expr::call(name, &[c::exact(self, s, a), c::exact(self, s, b)]))
    }

    fn own_cast(&self, m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Option<Expr> {
        Some(match (from, to) {
            (Scalar::F16, Scalar::F32) => {
                let bits = c::exact(self, from, a);
                Expr::call("float", &[as_type("half", &bits)])
            }
            (Scalar::F32, Scalar::F16) => as_type("ushort", &Expr::call("half", std::slice::from_ref(a))),
            (Scalar::F32, _) if is_wide_int(to) => {
                Expr::call(&self.saturating(m, to), std::slice::from_ref(a))
            }
            _ => return None,
        })
    }

    fn fma(&self, s: Scalar, args: &[Expr]) -> Option<Expr> {
        (s == Scalar::F32).then(|| Expr::call("fma", args))
    }

    fn bitcast(&self, _: &Module<'_>, _: Scalar, to: Scalar, a: &Expr) -> Expr {
        // Either form of an integer has the size that counts.
        as_type(self.scalar(to), a)
    }

    fn builtin(&self, _: &Module<'_>, b: Builtin) -> Expr {
        let at = |name: &str, axis: Axis| format!("{name}.{}", axis.name());
        Expr::whole(match b {
            Builtin::ThreadIdx(a) => at("tid", a),
            Builtin::BlockIdx(a) => at("bid", a),
            Builtin::BlockDim(a) => at("bdim", a),
            Builtin::GridDim(a) => at("gdim", a),
            Builtin::SubgroupSize => "simd_size".to_owned(),
            Builtin::SubgroupLane => "simd_lane".to_owned(),
        })
    }

    fn length(&self, _: &mut Writer<'_>, base: Base, s: Scalar) -> Expr {
        let n = match base {
            Base::Buffer(i) => self.lengths.get(i as usize).map_or("", String::as_str),
            _ => "shared_len",
        };
        let n = Expr::whole(n);
        if s == Scalar::U32 {
            n
        } else {
            c::cast(self, Scalar::U32, s, &n).unwrap_or(n)
        }
    }

    fn load(&self, w: &mut Writer<'_>, spot: &Spot, sync: Option<Sync>) -> Expr {
        let place = self.lvalue(w, spot);
        if let Some(sync) = sync {
            return atomics::load(w, spot, &place, sync);
        }
        match spot.base {
            Base::Constant(i) => match w.m.kernel.constants.get(i as usize) {
                Some(t) if super::is_bits(t) => as_type(self.scalar(t.element), &place),
                _ => place,
            },
            _ => place,
        }
    }

    fn store(&self, w: &mut Writer<'_>, spot: &Spot, value: &Expr, sync: Option<Sync>) {
        let place = self.lvalue(w, spot);
        match sync {
            Some(sync) => atomics::store(self, w, spot, &place, value, sync),
            None => w.write(&format!("{} = {};", place.text, value.text)),
        }
    }

    fn atomic(&self, w: &mut Writer<'_>, op: AtomicOp, spot: &Spot, value: &Expr, sync: Sync) -> Expr {
        let place = self.lvalue(w, spot);
        atomics::update(self, w, op, spot, &place, value, sync)
    }

    fn compare_exchange(
        &self,
        w: &mut Writer<'_>,
        spot: &Spot,
        expected: &Expr,
        new: &Expr,
        sync: Sync,
    ) -> Expr {
        let place = self.lvalue(w, spot);
        atomics::compare_exchange(self, w, spot, &place, expected, new, sync)
    }

    fn hidden_arguments(&self, m: &Module<'_>, f: u32) -> Vec<String> {
        let needs = m.needs.get(f as usize);
        let hidden = needs.map(super::hidden).unwrap_or_default();
        hidden.into_iter().map(|(_, name)| name).collect()
    }

    fn words(&self, row: &DeviceRow) -> Option<&'static str> {
        row.msl
    }

    fn device(&self, w: &mut Writer<'_>, op: DeviceOp, s: Scalar, args: &[Expr]) -> Option<Expr> {
        Some(match (op, args) {
            (DeviceOp::Subgroup(op), [value, rest @ ..]) => {
                subgroup::operation(self, w, op, s, value, rest.first())
            }
            (DeviceOp::IsDead, _) => Expr::whole(DEAD),
            (DeviceOp::Fence(_), _) => {
                // The capability leaves none but those among a block's lanes.
                atomics::fence(w, MemOrder::AcqRel);
                Expr::whole("")
            }
            _ => return None,
        })
    }

    fn print(&self, w: &mut Writer<'_>, _: u32, _: &[PrintPiece], _: &[(Scalar, Expr)]) {
        w.m.unsupported(w.line, "printing");
    }

    fn fault(&self, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
        report::fault(self, w, site, operands);
    }
}

impl Msl {
    /// The name of a function that casts an f32 as Rust does: to the nearest end of the range, NaN to 0.
    fn saturating(&self, m: &Module<'_>, to: Scalar) -> String {
        let ty = self.scalar(to);
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
        let limit = 2f32.powi(to.bits() as i32 - i32::from(to.is_signed_int()));
        let low = if to.is_signed_int() { -limit } else { 0.0 };
        let number = |bits| c::literal(self, to, bits).text;
        let (zero, least, most) = (number(0), number(least), number(most));
        m.helper(&format!("f32_to_{to}"), |name| {
            format!(
                "static inline {ty} {name}(float x)\n{{\n    return isnan(x) ? {zero} : x >= {limit:?}f ? {most} : x < {low:?}f ? {least} : ({ty})x;\n}}\n"
            )
        })
    }

    /// `a` and `b` combined by an atomic operation.
    pub(super) fn combined(&self, w: &mut Writer<'_>, op: AtomicOp, s: Scalar, a: &Expr, b: &Expr) -> Expr {
        use super::super::c_like::Dialect;
        let combined = op
            .binary()
            .and_then(|op| Dialect::binary(self, w, op, (s, s), a, b));
        combined.unwrap_or_else(|| b.clone())
    }

    /// Low and high words of a 64-bit integer, and back.
    pub(super) fn halves(e: &str) -> [String; 2] {
        [format!("uint({e})"), format!("uint({e} >> 32)")]
    }
}
