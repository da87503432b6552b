//! Kernels compiled into the program: how the CPU backend calls the Rust function behind a `#[kernel]`. The macro's
//! output fills in [`NativeKernel`]; only the CPU backend calls it. Must not know either.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use perpetua_ir::fault::Fault;
use perpetua_ir::front::rust::GpuType;

use crate::dim::Dim3;
use crate::layout::check_values;
use crate::overlap::Overlap;
use crate::signature::Signature;

/// What makes a launch ready: [`NativeKernel::prepare`].
pub type NativePrepare = fn(&NativeLaunch<'_>, &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>>;

/// A kernel as native code: plain function pointers, so that it can stand in a `const`.
#[derive(Clone, Copy)]
pub struct NativeKernel {
    /// The kernel's name.
    pub name: &'static str,
    /// Its signature, for checking arguments.
    pub signature: fn() -> Signature,
    /// Makes a launch ready. `None` where the native body cannot run it with the promised meaning; it runs by its IR
    /// then (or errs when there is none). Must not touch the buffers' contents: what it makes is kept for later launches with
    /// the same arguments.
    pub prepare: NativePrepare,
}

/// Who else may access the buffers of a launch while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody stores to them, and nobody reaches those that the launch may store to.
    ConflictFree,
    /// Anybody, by relaxed atomic accesses.
    Shared,
}

/// A launch that was made ready: its lanes, divided into slabs.
///
/// # Safety
/// [`footprints`](PreparedLaunch::footprints) tells of every byte that the lanes may access.
pub unsafe trait PreparedLaunch: Send + Sync {
    /// The number of slabs.
    fn slabs(&self) -> u64;

    /// Runs the lanes of these slabs. On a fault the lane's later effects are suppressed, other lanes go on or are left out,
    /// and the first fault seen is returned.
    ///
    /// # Safety
    /// The caller guarantees that the arguments that the launch was made ready with match the signature (order, kinds,
    /// element layouts), that no two of them share bytes but those of which it was told, and that each buffer's memory is valid
    /// and initialised for the call. Each slab is run once for a launch, in any order, possibly by several threads at the same
    /// time, all with the same `sharing`, which is true. Other threads may run other slabs of this launch at the same time, and
    /// may do what `sharing` says: the body must not make references to elements that others may write, and accesses that can
    /// race must be relaxed atomic ones.
    ///
    /// It ends by itself: the body waits for no other work, since that may wait until this has ended.
    unsafe fn run(&self, slabs: Range<u64>, sharing: Sharing) -> Result<(), Box<Fault>>;

    /// What the slabs access; `None` where that is not known.
    fn footprints(&self) -> Option<&[Footprint]>;
}

/// Accesses that some slabs make: slab `s` accesses bytes at addresses from `low + s * stride` up to, and without,
/// `high + s * stride`, or some of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Footprint {
    /// Whether some of the accesses are stores.
    pub stores: bool,
    /// The slabs that make them.
    pub slabs: Range<u64>,
    /// Address of the first byte for slab 0, were there one.
    pub low: i64,
    /// Address behind the last byte.
    pub high: i64,
    /// Bytes from a slab's to the next one's.
    pub stride: i64,
}

impl fmt::Debug for NativeKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeKernel")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A launch, as native code sees it.
#[derive(Clone, Copy, Debug)]
pub struct NativeLaunch<'a> {
    /// Blocks.
    pub grid: Dim3,
    /// Lanes per block.
    pub block: Dim3,
    /// Bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
    /// Which arguments share bytes: all pairs.
    pub overlaps: &'a [Overlap],
}

/// One argument of a native kernel.
#[derive(Clone, Copy, Debug)]
pub enum NativeArg<'a> {
    /// A buffer: its first element (aligned for the element type when `len` is not zero; dangling when it is) and its length.
    Buffer {
        /// First element.
        ptr: *mut u8,
        /// Number of elements.
        len: usize,
    },
    /// A value's bytes; not necessarily aligned.
    Value(&'a [u8]),
}

// SAFETY: an argument is an address and a length, or shared bytes; sending it to another thread accesses nothing. What
// accesses through the address need is part of `NativeKernel::run`'s contract.
unsafe impl Send for NativeArg<'_> {}
// SAFETY: as above; a shared `NativeArg` can only be copied.
unsafe impl Sync for NativeArg<'_> {}

impl NativeArg<'_> {
    /// Address and length of a buffer; `None` for a value.
    pub fn as_buffer(&self) -> Option<(*mut u8, usize)> {
        match *self {
            NativeArg::Buffer { ptr, len } => Some((ptr, len)),
            NativeArg::Value(_) => None,
        }
    }

    /// A value argument as `T`; `None` for a buffer, or when the bytes are not a `T`.
    pub fn as_value<T: GpuType>(&self) -> Option<T> {
        match self {
            NativeArg::Value(bytes) if bytes.len() == size_of::<T>() => {
                check_values::<T>(bytes).ok()?;
                // SAFETY: there are `size_of::<T>()` bytes, and they are a valid `T`; `read_unaligned` needs no alignment.
                Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
            }
            _ => None,
        }
    }
}
