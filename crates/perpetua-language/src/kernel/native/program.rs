//! What the macros write of a kernel, and how the CPU backend gets it. Must not know how lanes are run.

use std::sync::Arc;

use perpetua_device::native::{NativeArg, NativeKernel, NativeLaunch, PreparedLaunch};
use perpetua_device::{KernelSpec, Signature};

use super::launch::Prepared;
use super::mode::Mode;
use super::stop::Stop;
use super::view::Arguments;
use crate::kernel::entry::KernelFn;

/// Buffers whose addresses [`Program::placed`] can replace.
pub const PLACES: usize = 8;

/// A kernel's native code. The macros implement it.
///
/// # Safety
/// [`lane`](Program::lane) is the function that [`kernel`](Program::kernel) lowers: it makes an access where that makes one, to the
/// same element of the same parameter, and asks for a condition by the number that it has there.
/// [`CONDITIONS`](Program::CONDITIONS) and [`ACCESSES`](Program::ACCESSES) leave none out. [`placed`](Program::placed) changes
/// addresses only.
pub unsafe trait Program: Sized + 'static {
    /// The kernel's name.
    const NAME: &'static str;
    /// The source file.
    const FILE: &'static str;
    /// Whether the body asks for indices in the grid only, so that blocks need not be told apart.
    const MERGED: bool;
    /// Conditions that the body asks for, by the bits of their numbers.
    const CONDITIONS: u64;
    /// Those of them whose `if` ends with `return`. Bodies are faster where this says so; nothing else depends on it.
    const LEAVING: u64;
    /// By parameter: how many loads and stores stand in the body.
    const ACCESSES: &'static [[usize; 2]];
    /// Whether everything that the body calls has native code.
    const AVAILABLE: bool;
    /// The launch's arguments.
    type Args<'a>: Copy + Send + Sync + 'a;

    /// The kernel function.
    fn kernel() -> KernelFn;

    /// Takes the arguments; `None` where they do not fit.
    fn decode<'a>(args: &mut Arguments<'_>) -> Option<Self::Args<'a>>;

    /// The addresses of the first buffers; null where there are no more.
    fn places(args: &Self::Args<'_>) -> [*mut u8; PLACES];

    /// The arguments with their first buffers at these addresses: the same addresses by other ways.
    fn placed<'a>(args: Self::Args<'a>, at: [*mut u8; PLACES]) -> Self::Args<'a>;

    /// What one lane does.
    ///
    /// # Errors
    /// The lane's fault.
    fn lane<M: Mode>(m: &M, args: Self::Args<'_>) -> Result<(), Stop>;
}

/// A kernel's native code.
#[derive(Clone, Copy)]
pub struct Native {
    /// What the CPU backend runs.
    pub kernel: NativeKernel,
    /// How many of a launch's lanes are proven, so that they run fast; `None` where the arguments do not fit.
    pub proven: fn(&NativeLaunch<'_>, &[NativeArg<'_>]) -> Option<u64>,
    /// How many lanes of proven boxes were seen to do what is proven of them, or what one did instead.
    #[cfg(debug_assertions)]
    pub audit: fn(&NativeLaunch<'_>, &[NativeArg<'_>]) -> Option<Audited>,
}

/// How many lanes were seen to do what is proven of them, or what one did instead.
#[cfg(debug_assertions)]
pub type Audited = Result<usize, String>;

/// The native code of a program, where all that it calls has native code.
pub const fn available<P: Program>() -> Option<Native> {
    if !P::AVAILABLE {
        return None;
    }
    Some(Native {
        kernel: NativeKernel {
            name: P::NAME,
            signature: signature::<P>,
            prepare: prepare::<P>,
        },
        proven: proven::<P>,
        #[cfg(debug_assertions)]
        audit: super::audit::audit::<P>,
    })
}

fn signature<P: Program>() -> Signature {
    match P::kernel().verified(usize::BITS) {
        Ok(verified) => Signature::of(&verified),
        // Compiling the kernel says what is wrong with it; nothing is launched without.
        Err(_) => Signature::new(P::NAME, Vec::new()),
    }
}

fn prepare<P: Program>(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
    let prepared = Prepared::<P>::new(launch, args)?;
    Some(Arc::new(prepared))
}

fn proven<P: Program>(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<u64> {
    Some(Prepared::<P>::new(launch, args)?.proven())
}
