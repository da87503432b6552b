//! Kernels compiled into the program: how the CPU backend calls the Rust function behind a `#[kernel]`. The macro's
//! output fills in [`NativeKernel`]; only the CPU backend calls it. Must not know either.

use std::fmt;
use std::ops::Range;

use perpetua_ir::fault::Fault;
use perpetua_ir::front::rust::GpuType;

use crate::dim::Dim3;
use crate::layout::check_values;
use crate::signature::Signature;

/// The body of a [`NativeKernel`]; its contract stands at [`NativeKernel::run`].
pub type NativeBody = unsafe fn(&NativeLaunch, &[NativeArg<'_>], Range<u64>) -> Result<(), Box<Fault>>;

/// A kernel as native code: plain function pointers, so that it can stand in a `const`.
///
/// The launcher calls [`accepts`](NativeKernel::accepts) once for a launch. If that says no, the launch goes to the
/// interpreter (or errs when there is no IR). Else it calls [`run`](NativeKernel::run) for ranges of work-groups that
/// together cover the grid exactly once, in any order, possibly from several threads at the same time, with the same
/// `launch` and `args`.
#[derive(Clone, Copy)]
pub struct NativeKernel {
    /// The kernel's name.
    pub name: &'static str,
    /// Its signature, for checking arguments.
    pub signature: fn() -> Signature,
    /// Whether the native body can run this launch with the promised meaning: index ranges proven or checked before
    /// entry, buffers that must not alias do not. Must not touch the buffers' contents.
    pub accepts: fn(&NativeLaunch, &[NativeArg<'_>]) -> bool,
    /// Runs the work-groups with these linear indices ([`Dim3::position`] gives the coordinates), every lane of each. On a
    /// fault the lane's later effects are suppressed, other lanes go on or are left out, and the first fault seen is returned.
    ///
    /// # Safety
    /// The caller guarantees that `args` match the signature (order, kinds, element layouts), that each buffer's memory is
    /// valid and initialised for the call, and that `accepts` said yes for the same `launch` and `args`. Other threads may
    /// access the same buffers at the same time (other ranges of this launch, other streams): the body must not make
    /// references to elements that others may write, and accesses that can race must be relaxed atomic ones.
    pub run: NativeBody,
}

impl fmt::Debug for NativeKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeKernel")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The shape of a launch, as native code sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeLaunch {
    /// Work-groups.
    pub grid: Dim3,
    /// Lanes per work-group.
    pub block: Dim3,
    /// Bytes of dynamic workgroup memory per work-group.
    pub shared_bytes: u32,
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
