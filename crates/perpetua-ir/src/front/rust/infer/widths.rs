//! Numbers as kernels compute with them, the integers beside a float, and what the IR has for each.

use std::fmt;
use std::sync::{Arc, LazyLock};

use perpetua_syntax::Scalar;

use crate::ir;

/// The type of a number: a scalar of the IR, or an integer of two words, which is a struct there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Num {
    /// A scalar of the IR.
    Word(ir::Scalar),
    /// `i128`.
    I128,
    /// `u128`.
    U128,
}

impl Num {
    /// The scalar of the IR; `None` for an integer of two words.
    pub(crate) fn word(self) -> Option<ir::Scalar> {
        match self {
            Num::Word(s) => Some(s),
            Num::I128 | Num::U128 => None,
        }
    }

    /// A scalar of the IR that has the same operators.
    pub(crate) fn like(self) -> ir::Scalar {
        match self {
            Num::Word(s) => s,
            Num::I128 => ir::Scalar::I64,
            Num::U128 => ir::Scalar::U64,
        }
    }

    /// Size in memory, in bytes; also the alignment.
    pub(crate) fn size(self) -> u32 {
        self.word().map_or(16, ir::Scalar::size)
    }

    /// Width of the value in bits.
    pub(crate) fn bits(self) -> u32 {
        self.word().map_or(128, ir::Scalar::bits)
    }

    pub(crate) fn is_int(self) -> bool {
        self.like().is_int()
    }

    pub(crate) fn is_signed_int(self) -> bool {
        self.like().is_signed_int()
    }

    pub(crate) fn is_unsigned_int(self) -> bool {
        self.like().is_unsigned_int()
    }

    pub(crate) fn is_float(self) -> bool {
        self.like().is_float()
    }

    /// The unsigned integer of the same width.
    pub(crate) fn to_unsigned(self) -> Num {
        match self {
            Num::Word(s) => Num::Word(s.to_unsigned()),
            Num::I128 | Num::U128 => Num::U128,
        }
    }

    /// All of the type's bits.
    pub(crate) fn all_bits(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// The bits of an integer type's greatest value.
    pub(crate) fn greatest(self) -> u128 {
        self.all_bits() >> u32::from(self.is_signed_int())
    }

    /// The bits of an integer type's least value.
    pub(crate) fn least(self) -> u128 {
        self.all_bits() - self.greatest()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Num::Word(s) => s.name(),
            Num::I128 => "i128",
            Num::U128 => "u128",
        }
    }
}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ir::Scalar> for Num {
    fn from(s: ir::Scalar) -> Num {
        Num::Word(s)
    }
}

impl PartialEq<ir::Scalar> for Num {
    fn eq(&self, other: &ir::Scalar) -> bool {
        *self == Num::Word(*other)
    }
}

impl From<Num> for ir::Type {
    fn from(num: Num) -> ir::Type {
        match num {
            Num::Word(s) => s.into(),
            Num::I128 => ir::Type::Struct(WIDE[0].clone()),
            Num::U128 => ir::Type::Struct(WIDE[1].clone()),
        }
    }
}

/// The structs that `i128` and `u128` are, in Rust's layout: the lower word, then the upper one.
static WIDE: LazyLock<[Arc<ir::StructType>; 2]> = LazyLock::new(|| {
    WIDE_NAMES.map(|name| {
        let fields = ["low", "high"].map(|field| (field.to_owned(), ir::Type::U64));
        Arc::new(ir::StructType::repr_c(name, fields.into(), 16))
    })
});

/// What the structs are called.
pub(crate) const WIDE_NAMES: [&str; 2] = ["Signed128", "Unsigned128"];

/// The number that values of the type are.
pub(crate) fn num_of(ty: &ir::Type) -> Option<Num> {
    match ty {
        ir::Type::Scalar(s) => Some(Num::Word(*s)),
        ir::Type::Struct(of) if Arc::ptr_eq(of, &WIDE[0]) => Some(Num::I128),
        ir::Type::Struct(of) if Arc::ptr_eq(of, &WIDE[1]) => Some(Num::U128),
        _ => None,
    }
}

/// The unsigned integer of the same width.
pub(crate) fn unsigned(s: Scalar) -> Scalar {
    match s {
        Scalar::Bool => Scalar::Bool,
        Scalar::I8 | Scalar::U8 => Scalar::U8,
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => Scalar::U16,
        Scalar::I32 | Scalar::U32 | Scalar::F32 => Scalar::U32,
        Scalar::I64 | Scalar::U64 | Scalar::F64 => Scalar::U64,
        Scalar::I128 | Scalar::U128 => Scalar::U128,
        Scalar::Isize | Scalar::Usize => Scalar::Usize,
    }
}

/// The signed integer of the same width.
pub(crate) fn signed(s: Scalar) -> Scalar {
    match unsigned(s) {
        Scalar::U8 => Scalar::I8,
        Scalar::U16 => Scalar::I16,
        Scalar::U32 => Scalar::I32,
        Scalar::U64 => Scalar::I64,
        Scalar::U128 => Scalar::I128,
        Scalar::Usize => Scalar::Isize,
        other => other,
    }
}

/// The number of the IR, for a pointer width in bits.
pub(crate) fn num(s: Scalar, width: u32) -> Num {
    Num::Word(match s {
        Scalar::Bool => ir::Scalar::Bool,
        Scalar::I8 => ir::Scalar::I8,
        Scalar::I16 => ir::Scalar::I16,
        Scalar::I32 => ir::Scalar::I32,
        Scalar::I64 => ir::Scalar::I64,
        Scalar::U8 => ir::Scalar::U8,
        Scalar::U16 => ir::Scalar::U16,
        Scalar::U32 => ir::Scalar::U32,
        Scalar::U64 => ir::Scalar::U64,
        Scalar::F16 => ir::Scalar::F16,
        Scalar::Bf16 => ir::Scalar::BF16,
        Scalar::F32 => ir::Scalar::F32,
        Scalar::F64 => ir::Scalar::F64,
        Scalar::Isize if width == 32 => ir::Scalar::I32,
        Scalar::Isize => ir::Scalar::I64,
        Scalar::Usize if width == 32 => ir::Scalar::U32,
        Scalar::Usize => ir::Scalar::U64,
        Scalar::I128 => return Num::I128,
        Scalar::U128 => return Num::U128,
    })
}
