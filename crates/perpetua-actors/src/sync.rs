//! Atomics, cells and shared ownership for what is lock-free in this crate: the standard library's, or loom's under
//! `--cfg perpetua_loom`, so that its models run the code that ships; and the 16 bytes that move at once. Must not know what is built of
//! them.

#[cfg(perpetua_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
#[cfg(not(perpetua_loom))]
pub(crate) use std::hint::spin_loop;
#[cfg(not(perpetua_loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

/// The standard library's cell with loom's interface.
#[cfg(not(perpetua_loom))]
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(perpetua_loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A value alone on its cache lines: two of 64 bytes, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// 16 bytes that host and devices reach at the same time, each access whole.
///
/// Rust has no stable atomics of 128 bits. On x86-64 the accesses are machine code whose meaning in Rust's memory model is that of an
/// atomic load with Acquire and an atomic store with Release:
/// - whole, since Intel and AMD promise it of aligned accesses of 16 bytes on processors with AVX ([`Vector::moves_at_once`]);
/// - ordered, since such a processor does not move a load behind later accesses, nor a store before earlier ones, and a compiler
///   moves no access to memory across an `asm!` block without `nomem`.
///
/// Elsewhere (Miri, loom's models) a vector is two halves, of which the one with the last word is written last and read first. A
/// reader that compares the last word then sees the whole vector as long as nobody writes it twice meanwhile, which is all that
/// the rings need.
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
#[repr(C, align(16))]
pub(crate) struct Vector {
    low: AtomicU64,
    high: AtomicU64,
}

#[cfg(target_arch = "x86_64")]
impl Vector {
    /// Whether this processor's accesses to vectors are whole.
    pub(crate) fn moves_at_once() -> bool {
        std::arch::is_x86_feature_detected!("avx")
    }

    /// Reads it. Acquire: pairs with [`Vector::store_release`], and with a device's fence before its relaxed store.
    #[cfg(not(any(miri, perpetua_loom)))]
    #[inline(always)]
    pub(crate) fn load_acquire(&self) -> [u32; 4] {
        let words: std::arch::x86_64::__m128i;
        // SAFETY: reads the 16 bytes of `self`, valid and aligned by its type, and changes nothing but a register. What it does is an
        // atomic load (the type's documentation), so others may write there meanwhile.
        unsafe {
            std::arch::asm!(
                "movaps {words}, xmmword ptr [{at}]",
                words = out(xmm_reg) words,
                at = in(reg) std::ptr::from_ref(self),
                options(nostack, preserves_flags),
            );
        }
        // SAFETY: both are 16 bytes without invalid values.
        unsafe { std::mem::transmute::<std::arch::x86_64::__m128i, [u32; 4]>(words) }
    }

    /// Writes it. Release: pairs with [`Vector::load_acquire`], and with a device's fence behind its relaxed load.
    #[cfg(not(any(miri, perpetua_loom)))]
    #[inline(always)]
    pub(crate) fn store_release(&self, words: [u32; 4]) {
        // SAFETY: both are 16 bytes without invalid values.
        let words = unsafe { std::mem::transmute::<[u32; 4], std::arch::x86_64::__m128i>(words) };
        // SAFETY: writes the 16 bytes of `self`, valid and aligned by its type, and inside cells. What it does is an atomic store (the
        // type's documentation), so others may read and write there meanwhile.
        unsafe {
            std::arch::asm!(
                "movaps xmmword ptr [{at}], {words}",
                words = in(xmm_reg) words,
                at = in(reg) std::ptr::from_ref(self),
                options(nostack, preserves_flags),
            );
        }
    }

    #[cfg(any(miri, perpetua_loom))]
    pub(crate) fn load_acquire(&self) -> [u32; 4] {
        // Acquire: pairs with the Release below. The lower half was written before.
        let high = self.high.load(Ordering::Acquire);
        let low = self.low.load(Ordering::Relaxed);
        [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
    }

    #[cfg(any(miri, perpetua_loom))]
    pub(crate) fn store_release(&self, [a, b, c, d]: [u32; 4]) {
        let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        self.low.store(half(a, b), Ordering::Relaxed);
        // Release: pairs with the Acquire above.
        self.high.store(half(c, d), Ordering::Release);
    }

    /// Zeros.
    #[cfg(perpetua_loom)]
    pub(crate) fn zero() -> Vector {
        Vector {
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
        }
    }

    /// Reads it as a device does: fences order it.
    #[cfg(perpetua_loom)]
    pub(crate) fn load_relaxed(&self) -> [u32; 4] {
        let high = self.high.load(Ordering::Relaxed);
        let low = self.low.load(Ordering::Relaxed);
        [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
    }

    /// Writes it as a device does: fences order it.
    #[cfg(perpetua_loom)]
    pub(crate) fn store_relaxed(&self, [a, b, c, d]: [u32; 4]) {
        let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        self.low.store(half(a, b), Ordering::Relaxed);
        self.high.store(half(c, d), Ordering::Relaxed);
    }
}
