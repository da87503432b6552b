//! What a backend compiles: kernels as IR, as text, or as native functions, and the options. Must not know backends.

use std::fmt;
use std::sync::Arc;

use perpetua_ir::hash::StableHasher;
use perpetua_ir::ir::Checks;
use perpetua_ir::verify::Verified;

use crate::dim::Dim3;
use crate::error::{Error, Result};
use crate::future::{MaybeSend, MaybeSync};
use crate::native::NativeKernel;

/// A kernel in one of the forms that backends take. A form that a backend does not take is
/// [`Error::SourceUnsupported`].
///
/// **Arguments of text kernels.** Launching one is `unsafe`: nobody checks what the text does with its arguments.
/// - CUDA C and PTX: the plain ABI, as [`perpetua_ir::back`] documents it. Kernel parameters in order: a buffer is its
///   address (`u64`), a value its bytes. No lengths, no hidden parameters. CUDA C entries are `extern "C" __global__`.
/// - WGSL: the i-th buffer argument is `@group(0) @binding(i)`, a storage buffer, `read_write`; value
///   arguments, if any, are words of `array<vec4<u32>, N>` in a uniform at the next binding, one after another, each
///   starting at a multiple of 4 bytes. A buffer argument starts at its own first byte, which must be aligned to the device's
///   `min_storage_buffer_offset_alignment`. The block given at launch must equal the entry's `@workgroup_size`.
/// - IR text carries its signature, so it is checked and launched like IR.
#[derive(Clone, Copy)]
pub enum KernelSource<'a> {
    /// A verified kernel. Every backend takes it. [`Device::compile`](crate::Device::compile) refuses one whose checks are off
    /// or explicit, unless [`Verified::trust`] was called on it.
    Ir(&'a Verified),
    /// A kernel in the IR's text form. [`Device::compile`](crate::Device::compile) reads and verifies it; contexts get
    /// [`KernelSource::Ir`] and need not take text.
    IrText(&'a str),
    /// CUDA C++ text, compiled by NVRTC.
    CudaC(&'a str),
    /// PTX text.
    Ptx(&'a str),
    /// WGSL text.
    Wgsl(&'a str),
    /// A kernel that the program carries. A backend that finds its [`KernelSpec::id`] in a cache need not lower it; else it
    /// asks for [`KernelSpec::verified`] with its pointer width. The CPU asks for [`KernelSpec::native`] first.
    Spec(&'a dyn KernelSpec),
    /// A kernel compiled into the program (CPU), with the IR that stands for it when the native body declines a launch.
    Native(&'a NativeKernel, Option<&'a Verified>),
}

impl KernelSource<'_> {
    /// Name for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            KernelSource::Ir(_) => "IR",
            KernelSource::IrText(_) => "IR text",
            KernelSource::CudaC(_) => "CUDA C",
            KernelSource::Ptx(_) => "PTX",
            KernelSource::Wgsl(_) => "WGSL",
            KernelSource::Spec(_) => "a kernel function",
            KernelSource::Native(..) => "native Rust",
        }
    }
}

impl fmt::Debug for KernelSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelSource::Ir(k) => write!(f, "IR of kernel `{}`", k.kernel().name),
            KernelSource::Spec(k) => write!(f, "kernel function `{}`", k.name()),
            KernelSource::Native(k, _) => write!(f, "native kernel `{}`", k.name),
            KernelSource::IrText(t)
            | KernelSource::CudaC(t)
            | KernelSource::Ptx(t)
            | KernelSource::Wgsl(t) => {
                write!(f, "{}: {t}", self.kind())
            }
        }
    }
}

/// How to compile.
///
/// ```
/// use perpetua_device::{BackendKind, CompileOptions, Device, KernelSource, LaunchConfig, args};
/// let text = "kernel count(x: buffer<u32, read_write>) {\n  %0: u32 = thread_idx.x\n  store x[%0], %0\n}\n";
/// let options = CompileOptions {
///     block: Some(4.into()), // compiled for these blocks now, not at the first launch
///     no_disk_cache: true,
///     ..CompileOptions::default()
/// };
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let count = device.compile(&KernelSource::IrText(text), &options)?.only()?;
/// let x = device.zeros::<u32>(4)?;
/// device.launch(&count, LaunchConfig::new(1, 4), args![&x])?;
/// assert_eq!(x.read()?, [0, 1, 2, 3]);
/// # Ok::<(), perpetua_device::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct CompileOptions {
    /// Block size to specialise for at once. Backends whose block size is a compile-time constant (wgpu)
    /// otherwise specialise at the first launch of each size.
    pub block: Option<Dim3>,
    /// Bytes of dynamic shared memory to specialise for at once, likewise.
    pub shared_bytes: u32,
    /// Allow multiplications and additions to be contracted into fused ones (text kernels; IR carries its own choice).
    pub contract: bool,
    /// Keep line information for debuggers and profilers.
    pub debug: bool,
    /// Leave the on-disk cache of compiled kernels alone, as `PERPETUA_CACHE=off` does for the whole process.
    pub no_disk_cache: bool,
    /// On the CPU: run IR in the interpreter although a native body or machine code could run.
    pub interpret: bool,
}

/// Identity of a kernel: equal for equal content, stable across processes ([`StableHasher`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u128);

impl KernelId {
    /// Identity of the concatenation of `parts`, each with its length, so that `["ab", "c"]` and `["a", "bc"]` differ.
    pub fn of(parts: &[&[u8]]) -> KernelId {
        KernelId(StableHasher::of(parts))
    }

    /// Identity of a verified kernel, by its content. Computed once for each [`Verified`].
    pub fn of_ir(verified: &Verified) -> KernelId {
        KernelId(verified.id())
    }
}

/// A kernel that the program carries: what `#[kernel]` makes. [`Device::kernel`](crate::Device::kernel) compiles it once
/// for each device and keeps it.
///
/// # Safety
/// Specs of equal [`id`](KernelSpec::id) are the same kernel: equal IR for each pointer width, for which the same can be
/// trusted ([`Verified::is_safe`]), and the same native body. Caches, also those on disk, hand out for an id what was compiled for it.
pub unsafe trait KernelSpec: MaybeSend + MaybeSync {
    /// The kernel's name.
    fn name(&self) -> &str;
    /// Identity: differs between kernels and between instances of a generic one. Called at each launch: must be cheap.
    fn id(&self) -> KernelId;
    /// Lowers and verifies the kernel with `usize` of this many bits (32 or 64).
    fn verified(&self, pointer_width: u32) -> Result<Arc<Verified>>;
    /// The native body, if the kernel has one.
    fn native(&self) -> Option<NativeKernel>;
}

/// [`Error::ChecksLeftOut`] for a kernel that could do harm and that nobody answers for.
pub(crate) fn require_safe(verified: &Verified) -> Result<()> {
    if verified.is_safe() {
        return Ok(());
    }
    let kernel = verified.kernel();
    Err(Error::ChecksLeftOut {
        kernel: kernel.name.clone(),
        checks: match kernel.checks {
            Checks::On => "on",
            Checks::Explicit => "explicit",
            Checks::Caught => "caught",
            Checks::Off => "off",
        },
    })
}

/// A kernel of the program whose IR is held to [`require_safe`] whenever a backend asks for it.
pub(crate) struct SafeSpec<'a>(pub(crate) &'a dyn KernelSpec);

// SAFETY: it has the id of the inner spec, and gives what that gives or an error.
unsafe impl KernelSpec for SafeSpec<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn id(&self) -> KernelId {
        self.0.id()
    }

    fn verified(&self, pointer_width: u32) -> Result<Arc<Verified>> {
        let verified = self.0.verified(pointer_width)?;
        require_safe(&verified)?;
        Ok(verified)
    }

    fn native(&self) -> Option<NativeKernel> {
        self.0.native()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_follow_content_and_division() {
        assert_eq!(KernelId::of(&[b"a", b"b"]), KernelId::of(&[b"a", b"b"]));
        assert_ne!(KernelId::of(&[b"ab", b"c"]), KernelId::of(&[b"a", b"bc"]));
        assert_ne!(KernelId::of(&[]), KernelId::of(&[b""]));
    }
}
