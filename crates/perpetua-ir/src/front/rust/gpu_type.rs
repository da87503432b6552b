//! Which Rust types live in device memory and which are constants of kernels. `derive(GpuType)` implements both
//! traits for the user's structs and enums; all other implementations are here.

use std::cmp::Ordering;
use std::sync::Arc;

use half::{bf16, f16};
use perpetua_syntax::Scalar;

use super::describe::{ConstValue, TypeDesc};

/// A type whose values lie in buffers and are passed to kernels: scalars, `[T; N]`, and structs and enums with
/// `#[derive(GpuType)]`, which has an example with a struct.
///
/// ```
/// use perpetua_ir::front::rust::GpuType;
/// assert_eq!(<[f32; 3]>::describe().to_string(), "[f32; 3]");
/// ```
///
/// # Safety
/// [`GpuType::describe`] tells the truth about the type's layout: each scalar at its offset, the size, and for
/// enums each valid value; the type holds no references, pointers or interior mutability. Memory is copied to and
/// from devices as bytes by that description.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of device memory",
    label = "kernels hold scalars, arrays, and types with `#[derive(GpuType)]`",
    note = "write `#[derive(Clone, Copy, GpuType)] #[repr(C)]` on the struct, or `#[repr(u32)]` on the enum; an enum with data \
            lives in kernels only: keep its number and its fields in memory"
)]
pub unsafe trait GpuType: GpuValue {
    /// The type's description.
    fn describe() -> TypeDesc;
}

/// A type whose values kernels compute with: all [`GpuType`]s, enums with data with `#[derive(GpuType)]`, which no memory takes,
/// and arrays, tuples, `Option`s and `Result`s of such types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of the kernel language",
    label = "kernels compute with scalars, arrays, tuples, and types with `#[derive(GpuType)]`",
    note = "write `#[derive(Clone, Copy, GpuType)]` on it; a struct needs `#[repr(C)]`, too, an enum without data `#[repr(u32)]`"
)]
pub trait GpuValue: GpuConst + Copy + Send + Sync + 'static {
    /// All zeros; of an enum that has no variant of that number the first one.
    const ZEROED: Self;

    /// Whether the compiler would tell a type whose `PartialEq` is derived from one whose is written by hand: not where one of
    /// its fields is compared by a function.
    #[doc(hidden)]
    const STRUCTURAL: bool = true;

    /// The type's description.
    fn value_type() -> TypeDesc {
        // Only slices have none.
        Self::const_type().unwrap_or(TypeDesc::Tuple(Vec::new()))
    }
}

/// A value that a kernel may use as a constant of the surrounding Rust: all [`GpuType`]s, and tuples, slices and
/// references to constants.
#[diagnostic::on_unimplemented(
    message = "a constant of type `{Self}` cannot be used in a kernel",
    label = "constants are scalars, arrays, tuples, and types with `#[derive(GpuType)]`",
    note = "write `#[derive(Clone, Copy, GpuType)] #[repr(C)]` on the struct, or `#[repr(u32)]` on the enum"
)]
pub trait GpuConst {
    /// The value.
    fn to_const(&self) -> ConstValue;

    /// The type, which an empty array's elements need; `None` where only a value has one (slices).
    fn const_type() -> Option<TypeDesc>;
}

macro_rules! scalars {
    ($($ty:ty => $kind:ident $scalar:ident $zero:expr, $value:ident => $bits:expr $(, structural: $structural:literal)?;)*) => { $(
        impl GpuValue for $ty {
            const ZEROED: $ty = $zero;
            $(const STRUCTURAL: bool = $structural;)?
        }

        // SAFETY: a primitive scalar (or half's, a transparent u16) of exactly this description.
        unsafe impl GpuType for $ty {
            fn describe() -> TypeDesc {
                TypeDesc::Scalar(Scalar::$scalar)
            }
        }

        impl GpuConst for $ty {
            fn to_const(&self) -> ConstValue {
                let $value = *self;
                ConstValue::$kind(Scalar::$scalar, $bits)
            }

            fn const_type() -> Option<TypeDesc> {
                Some(TypeDesc::Scalar(Scalar::$scalar))
            }
        }
    )* };
}

scalars! {
    bool => Scalar Bool false, v => u64::from(v);
    i8 => Scalar I8 0, v => u64::from(v as u8);
    i16 => Scalar I16 0, v => u64::from(v as u16);
    i32 => Scalar I32 0, v => u64::from(v as u32);
    i64 => Scalar I64 0, v => v as u64;
    i128 => Wide I128 0, v => v as u128;
    isize => Scalar Isize 0, v => v as i64 as u64;
    u8 => Scalar U8 0, v => u64::from(v);
    u16 => Scalar U16 0, v => u64::from(v);
    u32 => Scalar U32 0, v => u64::from(v);
    u64 => Scalar U64 0, v => v;
    u128 => Wide U128 0, v => v;
    usize => Scalar Usize 0, v => v as u64;
    f16 => Scalar F16 f16::ZERO, v => u64::from(v.to_bits()), structural: false;
    bf16 => Scalar Bf16 bf16::ZERO, v => u64::from(v.to_bits()), structural: false;
    f32 => Scalar F32 0.0, v => u64::from(v.to_bits());
    f64 => Scalar F64 0.0, v => v.to_bits();
}

// SAFETY: the standard library declares it `#[repr(i8)]`, with these three values.
unsafe impl GpuType for Ordering {
    fn describe() -> TypeDesc {
        let variants = [Ordering::Less, Ordering::Equal, Ordering::Greater];
        let names = ["Less", "Equal", "Greater"];
        let variants = std::array::from_fn::<_, 3, _>(|i| (names[i], variants[i] as i128));
        TypeDesc::of_enum::<Self>("Ordering", Scalar::I8, &variants)
    }
}

impl GpuValue for Ordering {
    const ZEROED: Ordering = Ordering::Equal;
}

impl GpuConst for Ordering {
    fn to_const(&self) -> ConstValue {
        ConstValue::of_enum(&Self::describe(), *self as i128)
    }

    fn const_type() -> Option<TypeDesc> {
        Some(Self::describe())
    }
}

// SAFETY: an array is its elements side by side, and they are described truly.
unsafe impl<T: GpuType, const N: usize> GpuType for [T; N] {
    fn describe() -> TypeDesc {
        TypeDesc::Array(Arc::new(T::describe()), N)
    }
}

impl<T: GpuValue, const N: usize> GpuValue for [T; N] {
    const ZEROED: [T; N] = [T::ZEROED; N];
    const STRUCTURAL: bool = T::STRUCTURAL;
}

impl<T: GpuConst, const N: usize> GpuConst for [T; N] {
    fn to_const(&self) -> ConstValue {
        self.as_slice().to_const()
    }

    fn const_type() -> Option<TypeDesc> {
        Some(TypeDesc::Array(Arc::new(T::const_type()?), N))
    }
}

impl<T: GpuConst> GpuConst for [T] {
    fn to_const(&self) -> ConstValue {
        let values: Vec<ConstValue> = self.iter().map(GpuConst::to_const).collect();
        let element = values.first().map(ConstValue::type_desc).or_else(T::const_type);
        ConstValue::Array(element.unwrap_or(TypeDesc::Tuple(Vec::new())), values)
    }

    fn const_type() -> Option<TypeDesc> {
        None
    }
}

impl<T: GpuConst + ?Sized> GpuConst for &T {
    fn to_const(&self) -> ConstValue {
        (**self).to_const()
    }

    fn const_type() -> Option<TypeDesc> {
        T::const_type()
    }
}

macro_rules! tuples {
    ($(($($ty:ident $index:tt),*);)*) => { $(
        impl<$($ty: GpuConst),*> GpuConst for ($($ty,)*) {
            fn to_const(&self) -> ConstValue {
                ConstValue::Tuple(vec![$(self.$index.to_const()),*])
            }

            fn const_type() -> Option<TypeDesc> {
                Some(TypeDesc::Tuple(vec![$($ty::const_type()?),*]))
            }
        }

        impl<$($ty: GpuValue),*> GpuValue for ($($ty,)*) {
            const ZEROED: Self = ($($ty::ZEROED,)*);
            const STRUCTURAL: bool = true $(&& $ty::STRUCTURAL)*;
        }
    )* };
}

impl<T: GpuValue> GpuConst for Option<T> {
    fn to_const(&self) -> ConstValue {
        let held: Vec<ConstValue> = self.iter().map(GpuConst::to_const).collect();
        Self::value_type().of_standard(self.is_some(), &held)
    }

    fn const_type() -> Option<TypeDesc> {
        Some(TypeDesc::Option(Arc::new(T::value_type())))
    }
}

impl<T: GpuValue> GpuValue for Option<T> {
    const ZEROED: Option<T> = None;
    const STRUCTURAL: bool = T::STRUCTURAL;
}

impl<T: GpuValue, E: GpuValue> GpuConst for Result<T, E> {
    fn to_const(&self) -> ConstValue {
        let held = match self {
            Ok(value) => value.to_const(),
            Err(error) => error.to_const(),
        };
        Self::value_type().of_standard(self.is_ok(), &[held])
    }

    fn const_type() -> Option<TypeDesc> {
        Some(TypeDesc::Result(Arc::new([T::value_type(), E::value_type()])))
    }
}

impl<T: GpuValue, E: GpuValue> GpuValue for Result<T, E> {
    const ZEROED: Result<T, E> = Err(E::ZEROED);
    const STRUCTURAL: bool = T::STRUCTURAL && E::STRUCTURAL;
}

tuples! {
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}
