//! CUDA C as a dialect: its names for types, operators and accesses.

use super::super::c_like::c::{self, CNames};
use super::super::c_like::{Bind, CDialect, DEAD, Expr, Module, Spot, Writer};
use super::{atomics, is_bits, report, resident, subgroup};
use crate::ir::{AtomicOp, Axis, Base, Builtin, DeviceOp, PrintPiece, Scalar, Sync, Type};
use crate::ops::{BinaryOp, DeviceRow, Spelling, TernaryOp, UnaryOp};
use crate::pass::Operation;

/// The dialect, with the names of what the kernel is passed behind the scenes.
pub(super) struct Cuda {
    pub(super) plain: bool,
    /// For each parameter, the name of its length.
    pub(super) lengths: Vec<String>,
}

impl Cuda {
    pub(super) fn new(m: &Module<'_>, plain: bool) -> Cuda {
        Cuda {
            plain,
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

    /// Memory that a spot leads to.
    pub(super) fn lvalue(&self, w: &Writer<'_>, spot: &Spot) -> Expr {
        let (root, ty, run, flat) = c::base_of(w.m, spot.base);
        c::lvalue(w, spot, &root, &ty, run, flat)
    }
}

const fn is_float(s: Scalar) -> bool {
    matches!(s, Scalar::F32 | Scalar::F64)
}

const fn is_wide_int(s: Scalar) -> bool {
    s.is_int() && s.size() >= 4
}

/// Whether CUDA C writes an operation itself. The plain convention takes CUDA's own transcendental functions, which
/// keep within the operator table's bounds, for the sake of readers.
pub(in super::super) fn native(operation: &Operation, plain: bool) -> bool {
    use Operation::{Binary, Cast, Select, Ternary, Unary};
    match operation {
        Unary(op, s) if c::is_in_place(*op, *s) => true,
        Unary(op, s) if op.row().cuda == Spelling::Library => plain && is_float(*s),
        Unary(op, s) => match op {
            UnaryOp::Neg => s.is_int() || is_float(*s),
            UnaryOp::Not => true,
            UnaryOp::CountOnes | UnaryOp::LeadingZeros | UnaryOp::ReverseBits => is_wide_int(*s),
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
            | UnaryOp::IsSignNegative => is_float(*s),
            _ => false,
        },
        Binary(op, s) if op.row().cuda == Spelling::Library => plain && is_float(*s),
        Binary(BinaryOp::Rem, s) => s.is_int() || plain && is_float(*s),
        Binary(op, s) => match op {
            BinaryOp::Min | BinaryOp::Max => is_wide_int(*s) || is_float(*s),
            BinaryOp::MulHigh => is_wide_int(*s),
            BinaryOp::Copysign => is_float(*s),
            BinaryOp::RotateLeft
            | BinaryOp::RotateRight
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSub
            | BinaryOp::AbsDiff => false,
            _ => !matches!(s, Scalar::F16 | Scalar::BF16),
        },
        Ternary(TernaryOp::Fma, s) => is_float(*s),
        Ternary(_, s) => is_wide_int(*s) || is_float(*s),
        Select(_) => true,
        Cast { from, to } => match (from, to) {
            (Scalar::F16, Scalar::F32) | (Scalar::F32, Scalar::F16) => true,
            (Scalar::F16 | Scalar::BF16, _) | (_, Scalar::F16 | Scalar::BF16) => false,
            (Scalar::F32 | Scalar::F64, to) => to.size() >= 4,
            _ => true,
        },
    }
}

impl CNames for Cuda {
    fn scalar(&self, s: Scalar) -> &'static str {
        match s {
            Scalar::Bool => "bool",
            Scalar::I8 => "signed char",
            Scalar::I16 => "short",
            Scalar::I32 => "int",
            Scalar::I64 => "long long",
            Scalar::U8 => "unsigned char",
            Scalar::U16 | Scalar::F16 | Scalar::BF16 => "unsigned short",
            Scalar::U32 => "unsigned int",
            Scalar::U64 => "unsigned long long",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
        }
    }

    fn suffix(&self, s: Scalar) -> &'static str {
        match s {
            Scalar::U32 => "u",
            Scalar::I64 => "ll",
            Scalar::U64 => "ull",
            Scalar::F32 => "f",
            _ => "",
        }
    }

    fn float_from_bits(&self, s: Scalar, bits: u64) -> String {
        if s == Scalar::F32 {
            format!("__uint_as_float(0x{bits:08x}u)")
        } else {
            format!("__longlong_as_double((long long)0x{bits:016x}ull)")
        }
    }

    fn aligned(&self, bytes: u32) -> String {
        format!("__align__({bytes}) ")
    }

    fn vector(&self, _: Scalar, _: u8) -> Option<String> {
        // CUDA's own vectors of three, and of four 64-bit elements, are aligned otherwise.
        None
    }
}

/// `NAMEf(a)` for f32, `NAME(a)` for f64.
fn math(name: &str, s: Scalar, args: &[Expr]) -> Expr {
    let f = if s == Scalar::F32 { "f" } else { "" };
    Expr::call(&format!("{name}{f}"), args)
}

/// CUDA's name of a library function, without the `f`.
fn library_name(name: &'static str) -> &'static str {
    match name {
        "exp_m1" => "expm1",
        "ln" => "log",
        "ln_1p" => "log1p",
        other => other,
    }
}

impl CDialect for Cuda {
    fn own_unary(&self, op: UnaryOp, s: Scalar, a: &Expr) -> Option<Expr> {
        let row = op.row();
        if row.cuda == Spelling::Library {
            return (self.plain && is_float(s))
                .then(|| math(library_name(row.name), s, std::slice::from_ref(a)));
        }
        let args = [c::natural(self, s, a.clone())];
        let count = |name: &str| {
            let wide = if s.size() == 8 { "ll" } else { "" };
            c::cast_to(self, Scalar::U32, &Expr::call(&format!("{name}{wide}"), &args))
        };
        Some(match op {
            UnaryOp::Abs if is_float(s) => math("fabs", s, &args),
            UnaryOp::IsNan if is_float(s) => Expr::call("isnan", &args),
            UnaryOp::IsInfinite if is_float(s) => Expr::call("isinf", &args),
            UnaryOp::IsFinite if is_float(s) => Expr::call("isfinite", &args),
            UnaryOp::IsSignNegative if is_float(s) => Expr::call("signbit", &args),
            UnaryOp::CountOnes if is_wide_int(s) => count("__popc"),
            UnaryOp::LeadingZeros if is_wide_int(s) => count("__clz"),
            UnaryOp::ReverseBits if is_wide_int(s) => {
                let name = if s.size() == 8 { "__brevll" } else { "__brev" };
                Expr::call(name, &args).in_unsigned(c::is_wide_signed(s))
            }
            _ => match row.cuda {
                Spelling::Call(name) if is_float(s) => math(name, s, &args),
                _ => return None,
            },
        })
    }

    fn own_binary(&self, op: BinaryOp, s: Scalar, a: &Expr, b: &Expr) -> Option<Expr> {
        let exact = || [c::exact(self, s, a), c::exact(self, s, b)];
        if op.row().cuda == Spelling::Library {
            return (self.plain && is_float(s))
                .then(|| math(library_name(op.name()), s, &[a.clone(), b.clone()]));
        }
        Some(match op {
            BinaryOp::Min if is_float(s) => math("fmin", s, &exact()),
            BinaryOp::Max if is_float(s) => math("fmax", s, &exact()),
            BinaryOp::Rem if is_float(s) && self.plain => math("fmod", s, &exact()),
            BinaryOp::Copysign if is_float(s) => math("copysign", s, &exact()),
            BinaryOp::Min if is_wide_int(s) => Expr::call("min", &exact()),
            BinaryOp::Max if is_wide_int(s) => Expr::call("max", &exact()),
            BinaryOp::MulHigh => {
                let name = match s {
                    Scalar::I32 => "__mulhi",
                    Scalar::U32 => "__umulhi",
                    Scalar::I64 => "__mul64hi",
                    Scalar::U64 => "__umul64hi",
                    _ => return None,
                };
                Expr::call(name, &exact())
            }
            _ => return None,
        })
    }

    fn own_cast(&self, m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Option<Expr> {
        let name = match (from, to) {
            // The instruction saturates, and gives 0 for NaN.
            (Scalar::F32, Scalar::I32) => "__float2int_rz".to_owned(),
            (Scalar::F32, Scalar::U32) => "__float2uint_rz".to_owned(),
            (Scalar::F32 | Scalar::F64, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64) => {
                self.saturating(m, from, to)
            }
            (Scalar::F16, Scalar::F32) => m.helper("f16_to_f32", |name| {
                format!(
                    "__device__ float {name}(unsigned short x)\n{{\n    float y;\n    \
                     asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));\n    return y;\n}}\n"
                )
            }),
            (Scalar::F32, Scalar::F16) => m.helper("f32_to_f16", |name| {
                format!(
                    "__device__ unsigned short {name}(float x)\n{{\n    unsigned short y;\n    \
                     asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n    return y;\n}}\n"
                )
            }),
            _ => return None,
        };
        Some(Expr::call(&name, std::slice::from_ref(a)))
    }

    fn fma(&self, s: Scalar, args: &[Expr]) -> Option<Expr> {
        is_float(s).then(|| math("fma", s, args))
    }

    fn bitcast(&self, _: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Expr {
        let name = match (from, to) {
            (Scalar::F32, Scalar::I32) => "__float_as_int",
            (Scalar::F32, Scalar::U32) => "__float_as_uint",
            (Scalar::I32, Scalar::F32) if a.unsigned => "__uint_as_float",
            (Scalar::I32, Scalar::F32) => "__int_as_float",
            (Scalar::U32, Scalar::F32) => "__uint_as_float",
            (Scalar::F64, Scalar::I64) => "__double_as_longlong",
            (Scalar::I64 | Scalar::U64, Scalar::F64) => {
                let a = c::cast_to(self, Scalar::I64, a);
                let a = if from == Scalar::I64 {
                    c::natural(self, from, a)
                } else {
                    a
                };
                return Expr::call("__longlong_as_double", &[a]);
            }
            (Scalar::F64, Scalar::U64) => {
                let e = Expr::call("__double_as_longlong", std::slice::from_ref(a));
                return c::cast_to(self, Scalar::U64, &e);
            }
            _ => return a.clone(),
        };
        Expr::call(name, std::slice::from_ref(a)).at_run_time()
    }

    fn builtin(&self, m: &Module<'_>, b: Builtin) -> Expr {
        let at = |name: &str, axis: Axis| format!("{name}.{}", axis.name());
        Expr::whole(match b {
            Builtin::ThreadIdx(a) => at("threadIdx", a),
            Builtin::BlockIdx(a) => at("blockIdx", a),
            Builtin::BlockDim(a) => at("blockDim", a),
            Builtin::GridDim(a) => at("gridDim", a),
            Builtin::SubgroupSize => "32u".to_owned(),
            Builtin::SubgroupLane => format!("{}()", subgroup::lane_index(m)),
        })
    }

    fn length(&self, w: &mut Writer<'_>, base: Base, s: Scalar) -> Expr {
        let wide = match base {
            Base::Buffer(i) => {
                if self.plain {
                    let name = w.m.params.get(i as usize).map_or("", String::as_str);
                    w.m.unsupported(
                        w.line,
                        format!("the length of `{name}`: its pointers come without lengths"),
                    );
                }
                Expr::whole(self.lengths.get(i as usize).map_or("", String::as_str))
            }
            _ => {
                let name = w.m.helper("dynamic_shared_bytes", |name| {
                    format!(
                        "__device__ unsigned int {name}()\n{{\n    unsigned int bytes;\n    \
                         asm(\"mov.u32 %0, %%dynamic_smem_size;\" : \"=r\"(bytes));\n    return bytes;\n}}\n"
                    )
                });
                let (_, ty, ..) = c::base_of(w.m, base);
                let bytes = Expr::whole(format!("{name}()"));
                let size = c::literal(self, Scalar::U32, u64::from(ty.size()));
                let n = Expr::infix("/", Bind::Product, &bytes, &size);
                return if s == Scalar::U32 {
                    n
                } else {
                    c::cast_to(self, s, &n)
                };
            }
        };
        if s == Scalar::U64 {
            wide
        } else {
            c::cast_to(self, s, &wide)
        }
    }

    fn load(&self, w: &mut Writer<'_>, spot: &Spot, sync: Option<Sync>) -> Expr {
        let place = self.lvalue(w, spot);
        if let Some(sync) = sync {
            return atomics::load(self, w, spot, &place, sync);
        }
        match spot.base {
            Base::Constant(i) => match w.m.kernel.constants.get(i as usize) {
                Some(t) if is_bits(t) => self.bitcast(w.m, t.element.to_unsigned(), t.element, &place),
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
        atomics::update(self, w, op, spot.scalar(), &place, value, sync)
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
        atomics::compare_exchange(self, w, spot.scalar(), &place, expected, new, sync)
    }

    fn hidden_arguments(&self, m: &Module<'_>, f: u32) -> Vec<String> {
        let needs = m.needs.get(f as usize);
        let hidden = needs.map(|n| super::hidden(m, self, n)).unwrap_or_default();
        hidden.into_iter().map(|(_, name)| name).collect()
    }

    fn words(&self, row: &DeviceRow) -> Option<&'static str> {
        row.cuda
    }

    fn device(&self, w: &mut Writer<'_>, op: DeviceOp, s: Scalar, args: &[Expr]) -> Option<Expr> {
        Some(match (op, args) {
            (DeviceOp::Subgroup(op), [value, rest @ ..]) => {
                subgroup::operation(self, w, op, s, value, rest.first())
            }
            (DeviceOp::Clock, _) => resident::clock(w.m),
            (DeviceOp::CatchFault, _) => resident::catch_fault(w.m),
            (DeviceOp::IsDead, _) if self.plain => c::literal(self, Scalar::Bool, 0),
            (DeviceOp::IsDead, _) => Expr::whole(DEAD),
            _ => return None,
        })
    }

    fn print(&self, w: &mut Writer<'_>, site: u32, pieces: &[PrintPiece], args: &[(Scalar, Expr)]) {
        if self.plain {
            report::printf(self, w, pieces, args);
        } else {
            report::print(self, w, site, args);
        }
    }

    fn fault(&self, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
        if !self.plain {
            report::fault(self, w, site, operands);
        }
    }
}

impl Cuda {
    /// The name of a function that casts as Rust does: to the nearest end of the range, NaN to 0.
    fn saturating(&self, m: &Module<'_>, from: Scalar, to: Scalar) -> String {
        let source = if from == Scalar::F32 { "float" } else { "double" };
        let target = match to {
            Scalar::I32 => "int",
            Scalar::U32 => "uint",
            Scalar::I64 => "ll",
            _ => "ull",
        };
        m.helper(&format!("{from}_to_{to}"), |name| {
            format!(
                "// The instruction saturates, but has its own answer for NaN.\n__device__ {} {name}({} x)\n{{\n    \
                 return x != x ? {} : __{source}2{target}_rz(x);\n}}\n",
                self.scalar(to),
                self.scalar(from),
                c::literal(self, to, 0).text
            )
        })
    }
}
