//! Targets: what each can do, how kernels are called there, and the renderers. Renderers are pure functions of a
//! verified kernel; they know nothing of front ends or devices.

mod abi;
mod c_like;
mod cuda_c;
mod msl;
pub mod ptx;
mod target;
mod wgsl;

pub use abi::*;
pub use target::*;
pub use wgsl::BROWSER_SUBGROUPS;

use crate::verify::Verified;

/// Renders a kernel for a target.
///
/// # Errors
/// [`RenderError::Lacks`] when the kernel needs what the target has not, [`RenderError::Unsupported`] and
/// [`RenderError::Limit`] for the few things that no capability names.
pub fn render(kernel: &Verified, target: &Target) -> Result<Source, RenderError> {
    match target {
        Target::CudaC { abi } => cuda_c::render(kernel, *abi),
        Target::Wgsl {
            capabilities,
            block,
            dynamic_shared,
        } => wgsl::render(kernel, capabilities, *block, *dynamic_shared),
        Target::Msl => msl::render(kernel),
        Target::Ptx { sm } => ptx::render(kernel, *sm),
    }
}
