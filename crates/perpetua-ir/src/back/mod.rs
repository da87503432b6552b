//! Targets: what each can do, how kernels are called there, and the renderers. Renderers are pure functions of a
//! verified kernel; they know nothing of front ends or devices.

mod abi;
mod c_like;
mod cuda_c;
pub mod ptx;
mod target;

pub use abi::*;
pub use target::*;

use crate::verify::Verified;

/// Renders a kernel for a target.
///
/// # Errors
/// [`RenderError::Lacks`] when the kernel needs what the target has not, [`RenderError::Unsupported`] and
/// [`RenderError::Limit`] for the few things that no capability names.
pub fn render(kernel: &Verified, target: &Target) -> Result<Source, RenderError> {
    match target {
        Target::CudaC { abi } => cuda_c::render(kernel, *abi),
        _ => Err(RenderError::Unsupported {
            kernel: kernel.kernel().name.clone(),
            line: 0,
            what: "a kernel yet".into(),
            target: target.name(),
        }),
    }
}
