//! Copies and fills of host memory, as work that can be kept and repeated. Must not know streams or backends.

use std::ptr::NonNull;
use std::sync::Arc;

use super::pool::raw;
use super::racing;
use crate::backend::{Content, check_copy, check_fill, check_owner, check_sizes};
use crate::error::Result;
use crate::ptr::{ContextId, DevicePtr};

/// A checked copy or fill. Keeps its memory alive. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Transfer(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Write(Arc<[u8]>, DevicePtr),
    Copy(DevicePtr, DevicePtr),
    Fill(DevicePtr, [u8; 16], u8),
}

impl Transfer {
    /// Copies bytes of the host to `dst`, of equal length.
    pub fn write(own: ContextId, src: &[u8], dst: &DevicePtr) -> Result<Transfer> {
        check_write(own, src, dst)?;
        Ok(Transfer(Kind::Write(src.into(), dst.clone())))
    }

    /// Copies `src` to `dst`, of equal length and not overlapping.
    pub fn copy(own: ContextId, src: &DevicePtr, dst: &DevicePtr) -> Result<Transfer> {
        check_copy(own, src, dst)?;
        Ok(Transfer(Kind::Copy(src.clone(), dst.clone())))
    }

    /// Fills `dst` with a pattern of 1, 2, 4, 8 or 16 bytes.
    pub fn fill(own: ContextId, dst: &DevicePtr, pattern: &[u8]) -> Result<Transfer> {
        check_fill(own, dst, pattern)?;
        let mut bytes = [0; 16];
        bytes[..pattern.len()].copy_from_slice(pattern);
        Ok(Transfer(Kind::Fill(dst.clone(), bytes, pattern.len() as u8)))
    }

    /// Makes `dst` hold `content`, within this call.
    pub fn now(own: ContextId, dst: &DevicePtr, content: &Content<'_>) -> Result<()> {
        match content {
            Content::Pattern(pattern) => Transfer::fill(own, dst, pattern)?.run(),
            Content::Bytes(bytes) => {
                check_write(own, bytes, dst)?;
                write(bytes, dst);
            }
        }
        Ok(())
    }

    /// The memory that it accesses, and whether it writes there.
    pub fn touches(&self) -> impl Iterator<Item = (&DevicePtr, bool)> {
        let (src, dst) = match &self.0 {
            Kind::Copy(src, dst) => (Some((src, false)), dst),
            Kind::Write(_, dst) | Kind::Fill(dst, ..) => (None, dst),
        };
        src.into_iter().chain([(dst, true)])
    }

    /// Number of bytes written.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Kind::Write(_, dst) | Kind::Copy(_, dst) | Kind::Fill(dst, ..) => dst.len(),
        }
    }

    /// Whether it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Does it. Memory that is not [`HostMemory`](super::HostMemory) is left alone: the checks exclude it.
    ///
    /// Other streams may access the same memory meanwhile, by [`racing`] too or by atomics; then the bytes are unspecified.
    pub fn run(&self) {
        match &self.0 {
            Kind::Write(bytes, dst) => write(bytes, dst),
            Kind::Copy(src, dst) => {
                if let (Some(from), Some(to)) = (raw(src), raw(dst)) {
                    // SAFETY: `copy` checked equal lengths and that the two do not overlap.
                    unsafe { racing::copy(from.as_ptr(), to.as_ptr(), src.len() as usize) };
                }
            }
            Kind::Fill(dst, pattern, len) => {
                if let Some(to) = raw(dst) {
                    // SAFETY: `to` points to `dst.len()` bytes; the pattern is this value's own.
                    unsafe { fill(to, dst.len() as usize, &pattern[..usize::from(*len)]) };
                }
            }
        }
    }
}

fn check_write(own: ContextId, src: &[u8], dst: &DevicePtr) -> Result<()> {
    check_owner(own, dst.context_id(), "copy", "the destination buffer")?;
    check_sizes("copy", src.len() as u64, dst.len())
}

// Copies bytes that have passed `check_write` with `dst`.
fn write(bytes: &[u8], dst: &DevicePtr) {
    if let Some(to) = raw(dst) {
        // SAFETY: `check_write` found `dst` to have `bytes.len()` bytes, which `to` points to; `bytes` are an allocation of the
        // work's own, or the caller's while `dst` is new memory, of which nobody has a slice.
        unsafe { racing::copy(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }
}

/// Copies `src` to `dst`, of equal length.
pub fn read(own: ContextId, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
    check_owner(own, src.context_id(), "read", "the buffer")?;
    check_sizes("read", src.len(), dst.len() as u64)?;
    if let Some(from) = raw(src) {
        // SAFETY: `from` points to `src.len()` initialised bytes, `dst` is as long and borrowed for writing.
        unsafe { racing::copy(from.as_ptr(), dst.as_mut_ptr(), dst.len()) };
    }
    Ok(())
}

/// Repeats `pattern` over `len` bytes at `at`.
///
/// # Safety
/// `at` points to `len` writable bytes, and `pattern` is not inside them.
unsafe fn fill(at: NonNull<u8>, len: usize, pattern: &[u8]) {
    if len == 0 || pattern.is_empty() {
        return;
    }
    if let [byte] = *pattern {
        // SAFETY: the caller vouches for the bytes.
        return unsafe { racing::set(at.as_ptr(), byte, len) };
    }
    // One block of the pattern, copied block by block: large copies, and what was written is not read back.
    let block = pattern.repeat(4096 / pattern.len());
    let mut done = 0;
    while done < len {
        let n = block.len().min(len - done);
        // SAFETY: `done + n <= len`, inside what the caller vouches for; `block` is this function's own.
        unsafe { racing::copy(block.as_ptr(), at.as_ptr().add(done), n) };
        done += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fills_to_the_last_byte() {
        let mut bytes = vec![0u8; 10_000];
        let at = NonNull::from(&mut bytes[..]).cast::<u8>();
        // SAFETY: `at` points to the vector's bytes.
        unsafe { fill(at, 9_999, &[1, 2, 3]) };
        assert!(bytes[..9_999].chunks(3).all(|c| c == [1, 2, 3]));
        assert_eq!(bytes[9_999], 0);
    }
}
