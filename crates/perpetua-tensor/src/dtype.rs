//! Element types, what Rust types stand for them, and the type of two types' result.

use std::fmt;

use bytemuck::{CheckedBitPattern, NoUninit};
use half::{bf16, f16};
use perpetua_device::GpuType;

use perpetua_ir::ir::{Scalar, Type};
use perpetua_ir::ops::eval::eval_cast;

use crate::byte_float::{self, ByteFloat};

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// Type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType {
            $( $(#[$doc])* $name, )*
            /// A float of one byte, OCP's E4M3: four bits for the exponent, three for digits, up to 448, no infinities. For storage: what computes wants it cast.
            E4m3,
            /// A float of one byte, OCP's E5M2: five bits for the exponent, two for digits; the upper half of an `f16`. For storage likewise.
            E5m2,
        }

        impl DType {
            /// Every type.
            pub const ALL: &[DType] = &[$(DType::$name,)* DType::E4m3, DType::E5m2];

            /// The type as which kernels have it in memory.
            pub const fn stored(self) -> Scalar {
                match self {
                    $( DType::$name => Scalar::$name, )*
                    DType::E4m3 | DType::E5m2 => Scalar::U8,
                }
            }
        }

        impl From<Scalar> for DType {
            fn from(scalar: Scalar) -> DType {
                match scalar {
                    $( Scalar::$name => DType::$name, )*
                }
            }
        }
    };
}

types! {
    /// True or false; one byte.
    Bool;
    /// Signed integers of 8 bits.
    I8;
    /// Signed integers of 16 bits.
    I16;
    /// Signed integers of 32 bits.
    I32;
    /// Signed integers of 64 bits.
    I64;
    /// Unsigned integers of 8 bits.
    U8;
    /// Unsigned integers of 16 bits.
    U16;
    /// Unsigned integers of 32 bits.
    U32;
    /// Unsigned integers of 64 bits.
    U64;
    /// IEEE's binary16.
    F16;
    /// The upper half of an `f32`.
    BF16;
    /// IEEE's binary32.
    F32;
    /// IEEE's binary64.
    F64;
}

impl DType {
    /// Bytes of an element.
    pub const fn size(self) -> u32 {
        self.stored().size()
    }

    /// Its name in Rust, or in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            DType::E4m3 => "e4m3",
            DType::E5m2 => "e5m2",
            other => other.stored().name(),
        }
    }

    /// Whether it is a type of floats.
    pub const fn is_float(self) -> bool {
        self.is_byte_float() || self.stored().is_float()
    }

    /// Whether it is a type of integers (`bool` is not).
    pub const fn is_int(self) -> bool {
        !self.is_byte_float() && self.stored().is_int()
    }

    pub(crate) const fn bits(self) -> u32 {
        self.stored().bits()
    }

    pub(crate) const fn is_signed_int(self) -> bool {
        self.stored().is_signed_int()
    }

    /// How it is made, if it is for storage alone.
    pub(crate) const fn byte_float(self) -> Option<ByteFloat> {
        match self {
            DType::E4m3 => Some(byte_float::E4M3),
            DType::E5m2 => Some(byte_float::E5M2),
            _ => None,
        }
    }

    /// Whether it is for storage alone.
    pub(crate) const fn is_byte_float(self) -> bool {
        self.byte_float().is_some()
    }

    /// What is said to whoever computes with such.
    pub(crate) fn for_storage(self) -> String {
        format!("{self} is for storage: cast first, to f32, f16 or bf16")
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<DType> for Type {
    fn from(dtype: DType) -> Type {
        Type::Scalar(dtype.stored())
    }
}

/// A Rust type that elements have.
pub trait Element: GpuType + NoUninit + CheckedBitPattern {
    /// The type as a value.
    const TYPE: DType;
    /// Its bits, zero-extended.
    fn bits(self) -> u64;
}

macro_rules! elements {
    ($($ty:ty: $dtype:ident, $value:ident => $bits:expr;)*) => { $(
        impl Element for $ty {
            const TYPE: DType = DType::$dtype;
            fn bits(self) -> u64 {
                let $value = self;
                $bits
            }
        }
    )* };
}

elements! {
    bool: Bool, v => u64::from(v);
    i8: I8, v => u64::from(v as u8);
    i16: I16, v => u64::from(v as u16);
    i32: I32, v => u64::from(v as u32);
    i64: I64, v => v as u64;
    u8: U8, v => u64::from(v);
    u16: U16, v => u64::from(v);
    u32: U32, v => u64::from(v);
    u64: U64, v => v;
    f16: F16, v => u64::from(v.to_bits());
    bf16: BF16, v => u64::from(v.to_bits());
    f32: F32, v => u64::from(v.to_bits());
    f64: F64, v => v.to_bits();
}

/// The type of what an operation makes of two types, as the array API standard has it: `bool` gives way to integers, narrow types to wide
/// ones, `u8` and `i8` meet in `i16`. Beyond the standard, integers give way to floats of any width, and `f16` and `bf16` meet in `f32`. `None`:
/// `u64` and a signed integer, and floats of one byte with all but themselves.
///
/// ```
/// use perpetua_tensor::{DType, promote};
/// assert_eq!(promote(DType::U8, DType::I8), Some(DType::I16));
/// assert_eq!(promote(DType::I64, DType::F16), Some(DType::F16));
/// ```
pub fn promote(a: DType, b: DType) -> Option<DType> {
    use DType::*;
    if a == b {
        return Some(a);
    }
    let wider = |a: DType, b: DType| if a.size() >= b.size() { a } else { b };
    match (a, b) {
        _ if a.is_byte_float() || b.is_byte_float() => None,
        (Bool, other) | (other, Bool) => Some(other),
        (F16, BF16) | (BF16, F16) => Some(F32),
        _ if a.is_float() && b.is_float() => Some(wider(a, b)),
        _ if a.is_float() => Some(a),
        _ if b.is_float() => Some(b),
        _ if a.is_signed_int() == b.is_signed_int() => Some(wider(a, b)),
        _ => {
            let (signed, unsigned) = if a.is_signed_int() { (a, b) } else { (b, a) };
            let above = match unsigned {
                U8 => I16,
                U16 => I32,
                U32 => I64,
                _ => return None,
            };
            Some(wider(signed, above))
        }
    }
}

/// The type in which sums and products of a type are made and given: at least 32 bits for integers; of half floats `f32`, rounded at the end.
pub(crate) fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => summed(other),
    }
}

/// The type of a sum.
pub(crate) fn summed(dtype: DType) -> DType {
    match dtype {
        DType::Bool | DType::I8 | DType::I16 => DType::I32,
        DType::U8 | DType::U16 => DType::U32,
        other => other,
    }
}

/// The type in which a function of real numbers is computed.
pub(crate) fn floating(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

/// A number's bits in a type: rounded, saturated, as Rust's `as` does; as `bool` whether it is not 0.
pub(crate) fn number(dtype: DType, value: f64) -> u64 {
    if dtype == DType::Bool {
        return u64::from(value != 0.0);
    }
    cast(DType::F64, dtype, value.to_bits())
}

/// An element's bits as another type.
pub(crate) fn cast(from: DType, to: DType, bits: u64) -> u64 {
    match (from.byte_float(), to.byte_float()) {
        (Some(from), _) => cast(DType::F64, to, from.value(bits as u8).to_bits()),
        (None, Some(to)) => {
            let value = eval_cast(from.stored(), Scalar::F64, bits);
            u64::from(to.nearest(f64::from_bits(value)))
        }
        (None, None) => eval_cast(from.stored(), to.stored(), bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_meet_as_the_standard_says() {
        use DType::*;
        let check = |a, b, expect| {
            assert_eq!((promote(a, b), promote(b, a)), (expect, expect), "{a} {b}");
        };
        check(I8, I32, Some(I32));
        check(U8, I8, Some(I16));
        check(U8, I64, Some(I64));
        check(U16, I8, Some(I32));
        check(U32, I32, Some(I64));
        check(U64, I8, None);
        check(U64, U8, Some(U64));
        check(Bool, U8, Some(U8));
        check(F32, F64, Some(F64));
        check(BF16, F16, Some(F32));
        check(F16, I64, Some(F16));
    }

    #[test]
    fn numbers_are_true_or_not() {
        assert_eq!(
            [0.0, 1.0, 0.5, f64::NAN].map(|x| number(DType::Bool, x)),
            [0, 1, 1, 1]
        );
        assert_eq!(number(DType::U8, 300.0), 255);
    }
}
