//! What all kernels of the library can do. Must not know any of them.

use perpetua_device::{BackendKind, KernelArg, KernelSpec, Stream};
use perpetua_ir::back::{Sm, ptx};
use perpetua_language::KernelFn;

use crate::error::{Error, Result};

/// A kernel of the library for one problem: shapes and options are fixed, data comes with each launch.
///
/// ```
/// use perpetua::kernels::{GemmKernel, Kernel, SoftmaxKernel};
/// let all: [&dyn Kernel; 2] = [&GemmKernel::tiled(512, 512, 512, 64), &SoftmaxKernel::new(512, 1000)];
/// for kernel in all {
///     assert!(kernel.emit_ptx().contains(kernel.name()));
/// }
/// ```
pub trait Kernel {
    /// The kernel function that a launch runs.
    fn function(&self) -> KernelFn;

    /// Checks the arguments against the kernel's shapes and submits the launch. Which buffers it takes, in which order, each kernel's
    /// type says.
    ///
    /// # Errors
    /// [`Error`] says which operand is wrong, with shapes and strides; a buffer of another element type is
    /// [`ArgumentMismatch`](perpetua_device::Error::ArgumentMismatch). Nothing was submitted then.
    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()>;

    /// The function's name, with which that of its entry point begins.
    fn name(&self) -> &'static str {
        self.function().name()
    }

    /// PTX for a generation of GPUs: 90 is `sm_90`. Needs no GPU.
    ///
    /// # Errors
    /// The generation is below what the kernel needs.
    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_of(self.function(), sm)
    }

    /// PTX for `sm_90`, as the CUDA driver takes it. Needs no GPU.
    ///
    /// # Panics
    /// No kernel of this library does. One of another crate does where [`Kernel::ptx_for`] gives an error for 90: ask that then.
    #[expect(
        clippy::panic,
        reason = "a text that says why it is none would be taken for PTX"
    )]
    fn emit_ptx(&self) -> String {
        self.ptx_for(90)
            .unwrap_or_else(|error| panic!("`{}` has no PTX: {error}", self.name()))
    }
}

/// PTX of a kernel function.
pub(crate) fn ptx_of(function: KernelFn, sm: impl Into<Sm>) -> Result<String> {
    let verified = function.verified(64)?;
    let rendered = ptx::render(&verified, sm);
    let rendered =
        rendered.map_err(|e| perpetua_device::Error::render(perpetua_device::BackendKind::Cuda, e));
    Ok(rendered.map_err(Error::Device)?.text)
}

/// PTX of a kernel function as CUDA runs it: without fault checks.
pub(crate) fn ptx_unchecked(function: KernelFn, sm: u32) -> Result<String> {
    // SAFETY: nothing is launched here; what launches it says why it may.
    ptx_of(unsafe { function.unchecked() }, sm)
}

/// A number of blocks as launches take it. Of too many there is no device, which the launch says.
pub(crate) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A kernel as this stream launches it: on CUDA without fault checks.
///
/// # Safety
/// As [`KernelFn::unchecked`].
pub(crate) unsafe fn unchecked_on(stream: &Stream, function: KernelFn) -> KernelFn {
    match stream.device().backend() {
        // SAFETY: the caller's promise.
        BackendKind::Cuda => unsafe { function.unchecked() },
        _ => function,
    }
}
