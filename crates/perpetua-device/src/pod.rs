//! Types that can live in device memory. Must not know buffers or backends.

use perpetua_ir::ir::{Scalar, Type};

/// A plain type with a layout that kernels know: what [`Buffer`](crate::Buffer)s and value arguments hold.
///
/// Implemented for the number types, `half`'s floats and arrays of them; `#[derive(GpuType)]` implements it for
/// `#[repr(C)]` structs without padding.
///
/// # Safety
/// [`GpuPod::ty`] must describe this type's memory layout exactly: the same size, and at each leaf's offset a field of
/// that scalar type.
pub unsafe trait GpuPod: bytemuck::Pod + Send + Sync {
    /// The type as kernels see it.
    fn ty() -> Type;
}

macro_rules! scalars {
    ($($rust:ty => $scalar:ident),* $(,)?) => {$(
        // SAFETY: the IR's scalar of the same name has the same size and encoding (two's complement, IEEE 754, bf16 as
        // the upper half of an f32), and is the type's only leaf, at offset 0.
        unsafe impl GpuPod for $rust {
            fn ty() -> Type {
                Type::Scalar(Scalar::$scalar)
            }
        }
    )*};
}

scalars! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    half::f16 => F16, half::bf16 => BF16, f32 => F32, f64 => F64,
}

// SAFETY: an array's elements lie one after another without padding, as `Type::Array` lays them out.
unsafe impl<T: GpuPod, const N: usize> GpuPod for [T; N] {
    fn ty() -> Type {
        // A type of the IR has at most 2^32 bytes; longer arrays get a length that equals no parameter's.
        Type::array(T::ty(), u32::try_from(N).unwrap_or(u32::MAX))
    }
}

/// Whether values of the two types have the same bytes: equal size and the same scalars at the same offsets. So
/// `[f32; 4]` matches a vector of four and a struct of four fields.
pub fn same_layout(a: &Type, b: &Type) -> bool {
    a == b || (a.size() == b.size() && a.leaves() == b.leaves())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_match_by_their_bytes() {
        let check = |a: Type, b: Type, same: bool| assert_eq!(same_layout(&a, &b), same, "{a} {b}");
        check(f32::ty(), Type::F32, true);
        check(f32::ty(), Type::U32, false);
        check(<[f32; 4]>::ty(), Type::Vector(Scalar::F32, 4), true);
        check(<[f32; 3]>::ty(), Type::Vector(Scalar::F32, 3), false);
        check(<[u8; 2]>::ty(), Type::tuple(vec![u8::ty(), u8::ty()]), true);
    }
}
