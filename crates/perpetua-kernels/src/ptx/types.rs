//! Types of registers: Rust's scalars stand for PTX's. Must not know instructions.

use std::fmt;
use std::marker::PhantomData;

use half::{bf16, f16};
use perpetua_ir::ir::{Scalar, Type};

/// A type as PTX names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PtxType {
    /// A condition.
    Pred,
    /// Signed, 32 bits.
    S32,
    /// Signed, 64 bits.
    S64,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl PtxType {
    /// Its name in an instruction, as `f32`.
    pub const fn name(self) -> &'static str {
        match self {
            PtxType::Pred => "pred",
            PtxType::S32 => "s32",
            PtxType::S64 => "s64",
            PtxType::U32 => "u32",
            PtxType::U64 => "u64",
            PtxType::F16 => "f16",
            PtxType::Bf16 => "bf16",
            PtxType::F32 => "f32",
            PtxType::F64 => "f64",
        }
    }

    /// Bytes in memory; a condition has none.
    pub const fn bytes(self) -> u32 {
        match self {
            PtxType::Pred => 0,
            PtxType::F16 | PtxType::Bf16 => 2,
            PtxType::S32 | PtxType::U32 | PtxType::F32 => 4,
            PtxType::S64 | PtxType::U64 | PtxType::F64 => 8,
        }
    }

    /// The same bits without a meaning, as moves and memory take them.
    pub const fn bits(self) -> &'static str {
        match self.bytes() {
            0 => "pred",
            2 => "b16",
            4 => "b32",
            _ => "b64",
        }
    }
}

impl fmt::Display for PtxType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values registers hold.
pub trait PtxScalar: sealed::Sealed + Copy + 'static {
    /// What PTX calls it.
    const TYPE: PtxType;
    /// A value as PTX writes it.
    #[doc(hidden)]
    fn literal(self) -> String;
}

/// A number that registers and memory hold, and instructions compute with.
pub trait PtxNumber: PtxElement {
    /// What stands before the type in additions and multiplications that must not be fused.
    #[doc(hidden)]
    const EXACT: &'static str;
    /// The middle of a multiplication's name.
    #[doc(hidden)]
    const LOW: &'static str;
}

/// An integer.
pub trait PtxInteger: PtxNumber {}

/// A float in which instructions compute.
pub trait PtxFloat: PtxNumber {}

/// A 16-bit float, which memory holds and tensor cores take.
pub trait PtxHalf: PtxElement {}

macro_rules! scalars {
    ($($ty:ty: $name:ident, $literal:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl PtxScalar for $ty {
            const TYPE: PtxType = PtxType::$name;
            fn literal(self) -> String {
                $literal(self)
            }
        }
    )*};
}

scalars! {
    bool: Pred, |v: bool| u8::from(v).to_string();
    i32: S32, |v: i32| v.to_string();
    i64: S64, |v: i64| v.to_string();
    u32: U32, |v: u32| v.to_string();
    u64: U64, |v: u64| v.to_string();
    f16: F16, |v: f16| format!("0x{:04X}", v.to_bits());
    bf16: Bf16, |v: bf16| format!("0x{:04X}", v.to_bits());
    f32: F32, |v: f32| format!("0f{:08X}", v.to_bits());
    f64: F64, |v: f64| format!("0d{:016X}", v.to_bits());
}

macro_rules! numbers {
    ($($ty:ty: $kind:ident, $exact:literal, $low:literal;)*) => {$(
        impl PtxNumber for $ty {
            const EXACT: &'static str = $exact;
            const LOW: &'static str = $low;
        }
        impl $kind for $ty {}
    )*};
}

numbers! {
    i32: PtxInteger, "", ".lo";
    i64: PtxInteger, "", ".lo";
    u32: PtxInteger, "", ".lo";
    u64: PtxInteger, "", ".lo";
    f32: PtxFloat, ".rn", ".rn";
    f64: PtxFloat, ".rn", ".rn";
}

impl PtxHalf for f16 {}
impl PtxHalf for bf16 {}

/// What memory holds.
pub trait PtxElement: PtxScalar {
    #[doc(hidden)]
    fn element() -> Type;
}

macro_rules! elements {
    ($($ty:ty: $ir:ident),*) => {$(
        impl PtxElement for $ty {
            fn element() -> Type {
                Type::from(Scalar::$ir)
            }
        }
    )*};
}

elements!(i32: I32, i64: I64, u32: U32, u64: U64, f16: F16, bf16: BF16, f32: F32, f64: F64);

/// A register that holds a `T`. It is written once, by the instruction that made it.
pub struct Reg<T> {
    pub(super) number: u32,
    kind: PhantomData<T>,
}

impl<T> Reg<T> {
    pub(super) fn new(number: u32) -> Reg<T> {
        Reg {
            number,
            kind: PhantomData,
        }
    }
}

impl<T> Clone for Reg<T> {
    fn clone(&self) -> Reg<T> {
        *self
    }
}

impl<T> Copy for Reg<T> {}

/// `%f3`: all registers of a kernel have different numbers.
impl<T: PtxScalar> fmt::Display for Reg<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}{}", prefix(T::TYPE), self.number)
    }
}

impl<T: PtxScalar> fmt::Debug for Reg<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}: {}", T::TYPE)
    }
}

/// How names of registers of a type begin.
pub(super) const fn prefix(ty: PtxType) -> &'static str {
    match ty {
        PtxType::Pred => "p",
        PtxType::F16 | PtxType::Bf16 => "h",
        PtxType::S32 | PtxType::U32 => "r",
        PtxType::S64 | PtxType::U64 => "rd",
        PtxType::F32 => "f",
        PtxType::F64 => "d",
    }
}
