//! Targets: what each can do, how kernels are called there, and the renderers. Renderers are pure functions of a
//! verified kernel; they know nothing of front ends or devices.

mod abi;
#[cfg(feature = "c-like")]
mod c_like;
#[cfg(feature = "cuda-c")]
mod cuda_c;
#[cfg(feature = "msl")]
mod msl;
#[cfg(all(feature = "cuda-c", feature = "msl", feature = "wgsl"))]
#[doc(hidden)]
pub mod prepared;
#[cfg(feature = "ptx")]
pub mod ptx;
mod target;
#[cfg(feature = "wgsl")]
mod wgsl;

pub use abi::*;
pub use target::*;
#[cfg(feature = "wgsl")]
pub use wgsl::BROWSER_SUBGROUPS;

use crate::verify::Verified;

/// Renders a kernel for a target.
///
/// # Errors
/// [`RenderError::NotBuilt`] when the program was built without the target's renderer.
/// [`RenderError::Lacks`] when the kernel needs what the target lacks, [`RenderError::Unsupported`] and
/// [`RenderError::Limit`] for the few things that no capability names.
pub fn render(kernel: &Verified, target: &Target) -> Result<Source, RenderError> {
    match target {
        #[cfg(feature = "cuda-c")]
        Target::CudaC { abi } => cuda_c::render(kernel, *abi),
        #[cfg(feature = "wgsl")]
        Target::Wgsl {
            capabilities,
            block,
            dynamic_shared,
            distinct,
            exact_fma,
        } => {
            let launch = wgsl::Launch {
                block: *block,
                dynamic_shared: *dynamic_shared,
                distinct: *distinct,
            };
            wgsl::render(kernel, capabilities, launch, *exact_fma)
        }
        #[cfg(feature = "msl")]
        Target::Msl => msl::render(kernel),
        #[cfg(feature = "ptx")]
        Target::Ptx { sm } => ptx::render(kernel, *sm),
        #[cfg(not(all(feature = "cuda-c", feature = "msl", feature = "ptx", feature = "wgsl")))]
        _ => Err(RenderError::NotBuilt {
            kernel: kernel.kernel().name.clone(),
            target: target.name(),
            feature: target.feature(),
        }),
    }
}
