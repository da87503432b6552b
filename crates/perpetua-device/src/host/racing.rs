//! Copies and fills of memory that other threads may access at the same time. Whatever they do, nothing here is a data
//! race: bytes that somebody else writes meanwhile come out unspecified, and that is all. Knows addresses only.
//!
//! Rust's own copies are plain accesses, and relaxed atomic ones, word by word, reach half of a large copy's bandwidth. So
//! the C library does the work, called through an address that the compiler cannot see through. To the compiler the call may
//! be any function that Rust code could be, among them one that makes relaxed atomic accesses, each to just the bytes that
//! the other threads' atomics are of; so it must allow for that one, and machine code that no compiler of Rust has seen has no
//! other meaning than its processor's. The tools that check Rust's model (Miri, ThreadSanitizer) and processors on which none of
//! this was tried get relaxed atomics, byte by byte. A browser's one thread races with nobody.
//!
//! **Accesses of different sizes** to the same bytes, without an order between them, Rust's documentation forbids to its atomics,
//! as C++ has no words for them. Here they happen: between those bytes and the elements that a kernel or the host
//! (`MappedBuffer`) accesses, and wherever two streams, or a stream and the host, take the same bytes for elements of different
//! sizes (`Buffer::cast`, fields of a struct). There we rely on what stands below Rust: LLVM, which defines an atomic load byte by byte,
//! each the byte of one of the atomic stores that it may see, whatever their sizes; and processors, which write each byte whole
//! (x86-64, aarch64: memory is coherent byte by byte). So such an element comes out torn, with bytes of either store, which is an
//! unspecified value and nothing worse. It must not be taken for a value that its type does not have: whoever reads `bool`s or enums
//! checks what was read (`layout::check_values`, `Element::load`). Elements of one size are not torn.

pub use imp::{copy, set};

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, perpetua_tsan))
))]
mod imp {
    use std::arch::asm;
    use std::ffi::{c_int, c_void};

    type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    type Memset = unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void;

    unsafe extern "C" {
        fn memcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
        fn memset(to: *mut c_void, byte: c_int, len: usize) -> *mut c_void;
    }

    /// Copies `len` bytes.
    ///
    /// # Safety
    /// Both ranges are valid for `len` bytes and do not overlap; other threads access them by atomics, or by machine code
    /// such as this.
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        let mut function: Memcpy = memcpy;
        // SAFETY: does nothing. To the compiler `function` may be any function afterwards, so it cannot make a plain copy
        // of the call.
        unsafe { asm!("/* {} */", inout(reg) function, options(nostack, preserves_flags)) };
        // SAFETY: it is still `memcpy`, and the ranges are as it asks, by the caller's promise. That other threads may
        // access them meanwhile is no matter to the code behind it: processors have no undefined accesses.
        unsafe { function(to.cast(), from.cast(), len) };
    }

    /// Makes `len` bytes `byte`.
    ///
    /// # Safety
    /// The range is valid for writes of `len` bytes; other threads access it as for [`copy`].
    pub unsafe fn set(to: *mut u8, byte: u8, len: usize) {
        let mut function: Memset = memset;
        // SAFETY: as in `copy`.
        unsafe { asm!("/* {} */", inout(reg) function, options(nostack, preserves_flags)) };
        // SAFETY: as in `copy`, with `memset`.
        unsafe { function(to.cast(), c_int::from(byte), len) };
    }
}

#[cfg(target_arch = "wasm32")]
mod imp {
    /// Copies `len` bytes.
    ///
    /// # Safety
    /// Both ranges are valid for `len` bytes and do not overlap.
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: by the caller's promise; there is one thread.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    }

    /// Makes `len` bytes `byte`.
    ///
    /// # Safety
    /// The range is valid for writes of `len` bytes.
    pub unsafe fn set(to: *mut u8, byte: u8, len: usize) {
        // SAFETY: as in `copy`.
        unsafe { std::ptr::write_bytes(to, byte, len) };
    }
}

#[cfg(all(
    not(target_arch = "wasm32"),
    any(
        miri,
        perpetua_tsan,
        not(any(target_arch = "x86_64", target_arch = "aarch64"))
    )
))]
mod imp {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// Copies `len` bytes.
    ///
    /// # Safety
    /// Both ranges are valid for `len` bytes and do not overlap; other threads access them by atomics.
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        for i in 0..len {
            // SAFETY: inside the ranges, by the caller's promise; a byte needs no alignment. `from` is only read.
            let (from, to) = unsafe {
                (
                    AtomicU8::from_ptr(from.add(i).cast_mut()),
                    AtomicU8::from_ptr(to.add(i)),
                )
            };
            // Relaxed: orders nothing.
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Makes `len` bytes `byte`.
    ///
    /// # Safety
    /// The range is valid for writes of `len` bytes; other threads access it by atomics.
    pub unsafe fn set(to: *mut u8, byte: u8, len: usize) {
        for i in 0..len {
            // SAFETY: as in `copy`. Relaxed: orders nothing.
            unsafe { AtomicU8::from_ptr(to.add(i)) }.store(byte, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_copied_and_set_and_no_others() {
        for len in [0usize, 1, 7, 8, 33, 4096, 100_001] {
            let from: Vec<u8> = (0..len).map(|i| (i * 7 + 1) as u8).collect();
            let mut to = vec![0u8; len + 2];
            // SAFETY: both are as long, and two allocations.
            unsafe { copy(from.as_ptr(), to.as_mut_ptr().wrapping_add(1), len) };
            assert!(to[0] == 0 && to[1..=len] == from[..] && to[len + 1] == 0);
            // SAFETY: inside the vector.
            unsafe { set(to.as_mut_ptr().wrapping_add(1), 9, len) };
            assert!(to[0] == 0 && to[1..=len].iter().all(|b| *b == 9) && to[len + 1] == 0);
        }
    }
}
