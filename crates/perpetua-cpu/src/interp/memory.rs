//! Memory that kernels read and write: buffers as the caller lends them, and the accesses to them. Knows nothing of
//! kernels.
//!
//! Several threads may reach one buffer at the same time: blocks of one launch, other launches, the host. Two lanes
//! that race get unspecified values, never undefined behaviour, so every access here is a relaxed atomic one, or, for
//! runs of elements on x86-64, machine code that reads or writes each byte once ([`copy_run`]).

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A run of bytes that a kernel may read and write, lent for `'a`. Sub-ranges of one allocation may be lent as
/// several buffers, also overlapping ones.
#[derive(Clone, Copy, Debug)]
pub struct BufferRef<'a> {
    pub(super) ptr: *mut u8,
    pub(super) len: usize,
    lent: PhantomData<&'a mut [u8]>,
}

// SAFETY: a `BufferRef` is an address that may be used from any thread: whoever made it promised that memory there is
// accessed by nobody else (`from_slice`) or only by atomic accesses (`from_raw`), and all accesses made through it are
// atomic in effect (module documentation).
unsafe impl Send for BufferRef<'_> {}
// SAFETY: as above; sharing the address gives no more than copying it.
unsafe impl Sync for BufferRef<'_> {}

impl<'a> BufferRef<'a> {
    /// Lends a slice. Elements have no padding and any bit pattern, so what kernels store there is a valid `T`.
    pub fn from_slice<T: bytemuck::Pod>(slice: &'a mut [T]) -> BufferRef<'a> {
        BufferRef {
            ptr: slice.as_mut_ptr().cast(),
            len: size_of_val(slice),
            lent: PhantomData,
        }
    }

    /// Lends `len` bytes from `ptr`. A launch refuses an address that is not aligned for the element type.
    ///
    /// # Safety
    /// For `'a` the bytes must be valid for reads and writes and initialised, and every access to them that is not
    /// made by a launch must be atomic, or happen before or after each launch that uses this buffer.
    pub unsafe fn from_raw(ptr: *mut u8, len: usize) -> BufferRef<'a> {
        BufferRef {
            ptr,
            len,
            lent: PhantomData,
        }
    }

    /// An empty buffer.
    pub fn empty() -> BufferRef<'static> {
        BufferRef::from_slice::<u64>(&mut [])
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A scalar's storage in memory: an unsigned integer with relaxed accesses.
pub(super) trait Cell: bytemuck::Pod {
    /// Reads.
    ///
    /// # Safety
    /// `at` must be valid for reads and writes and aligned for `Self`; racing accesses must be atomic.
    unsafe fn load(at: *mut u8) -> Self;
    /// Writes.
    ///
    /// # Safety
    /// As for [`Cell::load`].
    unsafe fn store(self, at: *mut u8);
}

macro_rules! cell {
    ($($t:ty, $atomic:ty);*) => { $(
        impl Cell for $t {
            #[inline(always)]
            unsafe fn load(at: *mut u8) -> $t {
                // SAFETY: the caller guarantees validity and alignment; atomic and integer have one layout.
                unsafe { <$atomic>::from_ptr(at.cast()) }.load(Ordering::Relaxed)
            }

            #[inline(always)]
            unsafe fn store(self, at: *mut u8) {
                // SAFETY: the caller guarantees validity and alignment; atomic and integer have one layout.
                unsafe { <$atomic>::from_ptr(at.cast()) }.store(self, Ordering::Relaxed);
            }
        }
    )* };
}

cell!(u8, AtomicU8; u16, AtomicU16; u32, AtomicU32; u64, AtomicU64);

/// Reads four words at once.
///
/// # Safety
/// `at` must be valid for reads of 16 bytes and aligned to as many; racing accesses must be atomic.
pub(super) unsafe fn load_words(at: *mut u8) -> [u32; 4] {
    #[cfg(all(target_arch = "x86_64", not(any(miri, perpetua_tsan))))]
    {
        let words: std::arch::x86_64::__m128i;
        // SAFETY: reads the 16 bytes that the caller guarantees valid and aligned, and changes nothing but its register. To the compiler
        // that is one access to each byte; processors with AVX, all that have kernels which stay, make it a single one.
        unsafe {
            std::arch::asm!(
                "movaps {words}, xmmword ptr [{at}]",
                words = out(xmm_reg) words,
                at = in(reg) at,
                options(nostack, preserves_flags),
            );
        }
        // SAFETY: both are 16 bytes without invalid values.
        unsafe { std::mem::transmute::<std::arch::x86_64::__m128i, [u32; 4]>(words) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, perpetua_tsan)))))]
    {
        // The last one first: it is what readers compare.
        let mut words = [0; 4];
        for i in (0..4).rev() {
            // SAFETY: one of the four words, aligned; validity is the caller's promise.
            words[i] = unsafe { AtomicU32::from_ptr(at.cast::<u32>().add(i)) }.load(Ordering::Acquire);
        }
        words
    }
}

/// Writes four words at once.
///
/// # Safety
/// As for [`load_words`], with writes.
pub(super) unsafe fn store_words(at: *mut u8, words: [u32; 4]) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, perpetua_tsan))))]
    {
        // SAFETY: both are 16 bytes without invalid values.
        let words = unsafe { std::mem::transmute::<[u32; 4], std::arch::x86_64::__m128i>(words) };
        // SAFETY: as in `load_words`, with a write.
        unsafe {
            std::arch::asm!(
                "movaps xmmword ptr [{at}], {words}",
                words = in(xmm_reg) words,
                at = in(reg) at,
                options(nostack, preserves_flags),
            );
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, perpetua_tsan)))))]
    for (i, word) in words.into_iter().enumerate() {
        // SAFETY: as in `load_words`.
        unsafe { AtomicU32::from_ptr(at.cast::<u32>().add(i)) }.store(word, Ordering::Release);
    }
}

/// Copies `count` elements of type `C` from `from` to `to`.
///
/// Bytes that another thread changes meanwhile have an unspecified value after it.
///
/// # Safety
/// Both ranges must be valid for reads and writes and aligned for `C`, and must not overlap; racing accesses to
/// them must be atomic.
#[inline(always)]
pub(super) unsafe fn copy_run<C: Cell>(from: *mut u8, to: *mut u8, count: usize) {
    let bytes = count * size_of::<C>();
    // Vector copies of the whole 16-byte pieces; what is left goes element by element.
    let done = if cfg!(all(target_arch = "x86_64", not(any(miri, perpetua_tsan)))) && bytes >= 16 {
        let whole = bytes & !15;
        // SAFETY: `whole` is positive, a multiple of 16 and no more than the ranges' size.
        unsafe { copy_vectors(from, to, whole) };
        whole
    } else {
        0
    };
    let mut at = done;
    while at < bytes {
        // SAFETY: `at` is a multiple of the element's size below the ranges' size, so both addresses are valid and aligned.
        unsafe { C::load(from.add(at)).store(to.add(at)) };
        at += size_of::<C>();
    }
}

/// Copies `bytes` bytes, 16 at a time.
///
/// # Safety
/// Both ranges must be valid for reads and writes and must not overlap; `bytes` must be a positive multiple of 16;
/// racing accesses to the ranges must be atomic.
#[inline(always)]
unsafe fn copy_vectors(from: *mut u8, to: *mut u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, perpetua_tsan))))]
    // SAFETY: the loop reads [from, from + bytes) and writes [to, to + bytes), which the caller guarantees valid, and
    // clobbers only what it declares. To the compiler an `asm!` block may do what Rust code could: here that is one
    // relaxed atomic access to each element, as other threads make, which is no data race with theirs; the
    // processor makes each byte of a vector access whole. No stack is used, flags are clobbered by default.
    unsafe {
        std::arch::asm!(
            "2:",
            "movups {x}, xmmword ptr [{from} + {at}]",
            "movups xmmword ptr [{to} + {at}], {x}",
            "add {at}, 16",
            "cmp {at}, {bytes}",
            "jb 2b",
            x = out(xmm_reg) _,
            from = in(reg) from,
            to = in(reg) to,
            at = inout(reg) 0usize => _,
            bytes = in(reg) bytes,
            options(nostack),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, perpetua_tsan)))))]
    let _ = (from, to, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<C: Cell + PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> C) {
        for count in 0..100 {
            for skip in 0..3 {
                let mut from: Vec<C> = (0..count + skip).map(&make).collect();
                let mut to: Vec<C> = vec![make(7777); count + skip + 1];
                let (a, b) = (
                    from.as_mut_ptr().wrapping_add(skip).cast::<u8>(),
                    to.as_mut_ptr().wrapping_add(skip).cast::<u8>(),
                );
                // SAFETY: both vectors have `count` elements from element `skip` on, and are two allocations.
                unsafe { copy_run::<C>(a, b, count) };
                assert_eq!(to[skip..skip + count], from[skip..]);
                assert_eq!(to[..skip], vec![make(7777); skip]);
                assert_eq!(to[skip + count], make(7777));
            }
        }
    }

    #[test]
    fn runs_are_copied_whole_and_nothing_else() {
        check(|i| i as u8);
        check(|i| i as u16);
        check(|i| i as u32);
        check(|i| i as u64 * 0x1_0000_0001);
    }
}
