//! Types of device memory as Rust reaches them: how a value is loaded and stored where other lanes may do so at the same
//! time. Knows nothing of buffers and their lengths.

use super::resident::U32x4;
use half::{bf16, f16};
use perpetua_ir::front::rust::{GpuType, GpuValue};

/// A type of device memory. `derive(GpuType)` implements it beside [`GpuType`].
///
/// Accesses go scalar by scalar. [`load`](Element::load) and [`store`](Element::store) make relaxed atomic ones, so that
/// lanes that race see each scalar whole; [`read`](Element::read) and [`write`](Element::write) plain ones.
///
/// # Safety
/// The four functions access only the scalars of the value at `place`, each once, and give only valid values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of device memory",
    label = "kernels hold scalars, arrays, and types with `#[derive(GpuType)]`"
)]
pub unsafe trait Element: GpuType {
    /// A number as this type, as by `as`; [`ZEROED`](GpuValue::ZEROED) for types that are no numbers.
    fn from_f64(value: f64) -> Self {
        let _ = value;
        Self::ZEROED
    }

    /// Loads a value.
    ///
    /// # Errors
    /// The number found where an enum has no such variant.
    ///
    /// # Safety
    /// `place` is aligned, and its memory is initialised and valid for atomic reads.
    unsafe fn load(place: *const Self) -> Result<Self, Invalid>;

    /// Stores a value.
    ///
    /// # Safety
    /// `place` is aligned, and its memory is valid for atomic writes.
    unsafe fn store(place: *mut Self, value: Self);

    /// Loads a value that nobody stores to meanwhile.
    ///
    /// # Errors
    /// As [`load`](Element::load).
    ///
    /// # Safety
    /// `place` is aligned, its memory is initialised and valid for reads, and no other thread writes to it.
    unsafe fn read(place: *const Self) -> Result<Self, Invalid>;

    /// Stores a value where nobody else looks meanwhile.
    ///
    /// # Safety
    /// `place` is aligned, its memory is valid for writes, and no other thread accesses it.
    unsafe fn write(place: *mut Self, value: Self);
}

/// A number in memory that is no variant of the enum that should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The enum's name.
    pub ty: &'static str,
    /// The number, sign- or zero-extended.
    pub value: u64,
}

macro_rules! scalars {
    ($($ty:ident $atomic:ident $bits_ty:ident, $v:ident => $from:expr, $bits:ident => $load:expr, $s:ident => $store:expr;)*) => { $(
        // SAFETY: one atomic access of the scalar's size each; every pattern of bits that `store` writes or that the
        // memory may hold by `GpuType` is a value (`bool`: what is not 0 is true).
        unsafe impl Element for $ty {
            fn from_f64($v: f64) -> $ty {
                $from
            }

            #[inline(always)]
            unsafe fn load(place: *const $ty) -> Result<$ty, Invalid> {
                use std::sync::atomic::{$atomic, Ordering};
                // SAFETY: aligned and valid by the caller's promise; the atomic has the scalar's size and alignment.
                let $bits = unsafe { $atomic::from_ptr(place.cast_mut().cast()) }.load(Ordering::Relaxed);
                Ok($load)
            }

            #[inline(always)]
            unsafe fn store(place: *mut $ty, $s: $ty) {
                use std::sync::atomic::{$atomic, Ordering};
                // SAFETY: as in `load`.
                unsafe { $atomic::from_ptr(place.cast()) }.store($store, Ordering::Relaxed);
            }

            #[inline(always)]
            unsafe fn read(place: *const $ty) -> Result<$ty, Invalid> {
                // SAFETY: aligned, initialised and quiet by the caller's promise; read as the integer of its bits.
                let $bits = unsafe { place.cast::<$bits_ty>().read() };
                Ok($load)
            }

            #[inline(always)]
            unsafe fn write(place: *mut $ty, $s: $ty) {
                // SAFETY: aligned and quiet by the caller's promise.
                unsafe { place.cast::<$bits_ty>().write($store) };
            }
        }
    )* };
}

scalars! {
    bool AtomicU8 u8, _v => false, b => b != 0, s => u8::from(s);
    i8 AtomicI8 i8, v => v as i8, b => b, s => s;
    i16 AtomicI16 i16, v => v as i16, b => b, s => s;
    i32 AtomicI32 i32, v => v as i32, b => b, s => s;
    i64 AtomicI64 i64, v => v as i64, b => b, s => s;
    isize AtomicIsize isize, v => v as isize, b => b, s => s;
    u8 AtomicU8 u8, v => v as u8, b => b, s => s;
    u16 AtomicU16 u16, v => v as u16, b => b, s => s;
    u32 AtomicU32 u32, v => v as u32, b => b, s => s;
    u64 AtomicU64 u64, v => v as u64, b => b, s => s;
    usize AtomicUsize usize, v => v as usize, b => b, s => s;
    f16 AtomicU16 u16, v => f16::from_f32(v as f32), b => f16::from_bits(b), s => s.to_bits();
    bf16 AtomicU16 u16, v => bf16::from_f32(v as f32), b => bf16::from_bits(b), s => s.to_bits();
    f32 AtomicU32 u32, v => v as f32, b => f32::from_bits(b), s => s.to_bits();
    f64 AtomicU64 u64, v => v, b => f64::from_bits(b), s => s.to_bits();
}

macro_rules! wide {
    ($($ty:ident)*) => { $(
        // SAFETY: its two words, the lower one first, one access each; every pattern of bits is a value.
        unsafe impl Element for $ty {
            fn from_f64(v: f64) -> $ty {
                v as $ty
            }

            #[inline(always)]
            unsafe fn load(place: *const $ty) -> Result<$ty, Invalid> {
                // SAFETY: aligned and valid by the caller's promise, for an array of two words of the same size, too.
                let [low, high] = unsafe { <[u64; 2]>::load(place.cast()) }?;
                Ok((u128::from(high) << 64 | u128::from(low)) as $ty)
            }

            #[inline(always)]
            unsafe fn store(place: *mut $ty, value: $ty) {
                // SAFETY: as in `load`.
                unsafe { <[u64; 2]>::store(place.cast(), [value as u64, (value >> 64) as u64]) };
            }

            #[inline(always)]
            unsafe fn read(place: *const $ty) -> Result<$ty, Invalid> {
                // SAFETY: aligned, initialised and quiet by the caller's promise.
                Ok(unsafe { place.read() })
            }

            #[inline(always)]
            unsafe fn write(place: *mut $ty, value: $ty) {
                // SAFETY: aligned and quiet by the caller's promise.
                unsafe { place.write(value) };
            }
        }
    )* };
}

wide!(i128 u128);

// SAFETY: its four words, one access each; every pattern of bits is a value.
unsafe impl Element for U32x4 {
    #[inline(always)]
    unsafe fn load(place: *const U32x4) -> Result<U32x4, Invalid> {
        // SAFETY: aligned and valid by the caller's promise, for an array of four words of the same size, too.
        let [x, y, z, w] = unsafe { <[u32; 4]>::load(place.cast()) }?;
        Ok(U32x4 { x, y, z, w })
    }

    #[inline(always)]
    unsafe fn store(place: *mut U32x4, value: U32x4) {
        // SAFETY: as in `load`.
        unsafe { <[u32; 4]>::store(place.cast(), [value.x, value.y, value.z, value.w]) }
    }

    #[inline(always)]
    unsafe fn read(place: *const U32x4) -> Result<U32x4, Invalid> {
        // SAFETY: as in `load`, and nobody writes meanwhile by the caller's promise.
        let [x, y, z, w] = unsafe { <[u32; 4]>::read(place.cast()) }?;
        Ok(U32x4 { x, y, z, w })
    }

    #[inline(always)]
    unsafe fn write(place: *mut U32x4, value: U32x4) {
        // SAFETY: as in `store`, and nobody looks meanwhile by the caller's promise.
        unsafe { <[u32; 4]>::write(place.cast(), [value.x, value.y, value.z, value.w]) }
    }
}

// SAFETY: element by element, by the elements' own promise.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    #[inline(always)]
    unsafe fn load(place: *const [T; N]) -> Result<[T; N], Invalid> {
        let mut value = Self::ZEROED;
        for (i, element) in value.iter_mut().enumerate() {
            // SAFETY: `i` is less than `N`, so the element lies inside the array at `place`.
            *element = unsafe { T::load(place.cast::<T>().add(i)) }?;
        }
        Ok(value)
    }

    #[inline(always)]
    unsafe fn store(place: *mut [T; N], value: [T; N]) {
        for (i, element) in value.into_iter().enumerate() {
            // SAFETY: as in `load`.
            unsafe { T::store(place.cast::<T>().add(i), element) };
        }
    }

    #[inline(always)]
    unsafe fn read(place: *const [T; N]) -> Result<[T; N], Invalid> {
        let mut value = Self::ZEROED;
        for (i, element) in value.iter_mut().enumerate() {
            // SAFETY: as in `load`.
            *element = unsafe { T::read(place.cast::<T>().add(i)) }?;
        }
        Ok(value)
    }

    #[inline(always)]
    unsafe fn write(place: *mut [T; N], value: [T; N]) {
        for (i, element) in value.into_iter().enumerate() {
            // SAFETY: as in `load`.
            unsafe { T::write(place.cast::<T>().add(i), element) };
        }
    }
}
