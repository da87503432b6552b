//! From a `syn::ItemFn` to a target's source in one call. Composes the front end, the verifier and the renderers;
//! decides nothing itself but what the plain calling convention means: for pasting into other people's CUDA, with
//! pointers instead of slices, without checks.
//!
//! ```
//! use perpetua_ir::transpile::transpile_global_kernel;
//! let kernel: syn::ItemFn = syn::parse_quote! {
//!     fn my_kernel(data: &mut [f32], n: i32) {
//!         let idx = block_idx_x() * block_dim_x() + thread_idx_x();
//!         if idx >= n { return; }
//!         data[idx as usize] = data[idx as usize] * 2.0;
//!     }
//! };
//! let cuda = transpile_global_kernel(&kernel)?;
//! assert!(cuda.contains("extern \"C\" __global__ void my_kernel(float* data, int n)"));
//! # Ok::<(), perpetua_ir::transpile::TranspileError>(())
//! ```

use perpetua_syntax::FunctionKind;

use crate::back::{CudaAbi, RenderError, Source, Target, render};
use crate::front::rust::{
    Instantiation, LowerError, SourceError, StencilConfig, lower, lower_device, read_item,
};
use crate::ir::{Checks, Kernel};
use crate::verify::{VerifyErrors, verify};

/// Why a function cannot be transpiled.
#[derive(Debug, thiserror::Error)]
pub enum TranspileError {
    /// It is outside the kernel language.
    #[error("{0}")]
    Source(#[from] SourceError),
    /// It has no meaning on a device.
    #[error("{0}")]
    Lower(#[from] LowerError),
    /// What it became is not sound: a variable is read before it has a value, or lanes part before a barrier.
    #[error("{0}")]
    Verify(#[from] VerifyErrors),
    /// The target cannot do it.
    #[error("{0}")]
    Render(#[from] RenderError),
}

/// How text for other people's CUDA is made.
fn plain() -> Instantiation {
    Instantiation {
        checks: Checks::Off,
        ..Instantiation::default()
    }
}

const PLAIN: Target = Target::CudaC { abi: CudaAbi::Plain };

fn rendered(kernel: Kernel, target: &Target) -> Result<Source, TranspileError> {
    Ok(render(&verify(kernel)?, target)?)
}

/// A kernel as CUDA C in the plain convention: a pointer for each slice, a value for each scalar, no checks.
///
/// # Errors
/// The first stage that refuses it.
pub fn transpile_global_kernel(item: &syn::ItemFn) -> Result<String, TranspileError> {
    let def = read_item(item, FunctionKind::Kernel)?;
    Ok(rendered(lower(&def, &plain())?, &PLAIN)?.text)
}

/// A stencil as CUDA C in the plain convention. After the function's parameters come `unsigned int`s: width, height
/// and, on solid grids, depth.
///
/// # Errors
/// The first stage that refuses it.
pub fn transpile_stencil_kernel(
    item: &syn::ItemFn,
    config: &StencilConfig,
) -> Result<String, TranspileError> {
    let def = read_item(item, FunctionKind::Kernel)?;
    let how = Instantiation {
        stencil: config.clone(),
        ..plain()
    };
    Ok(rendered(lower(&def, &how)?, &PLAIN)?.text)
}

/// A device function as CUDA C.
///
/// # Errors
/// The first stage that refuses it; and a function that takes or gives references, which exists only inlined.
pub fn transpile_device_function(item: &syn::ItemFn) -> Result<String, TranspileError> {
    let def = read_item(item, FunctionKind::Device)?;
    let source = rendered(lower_device(&def, &plain())?, &PLAIN)?;
    // The entry point stands last, and is empty.
    let end = source
        .text
        .rfind("extern \"C\" __global__")
        .unwrap_or(source.text.len());
    Ok(source.text[..end].trim_end().to_owned() + "\n")
}

/// A kernel or stencil for any target, with checks and default choices: see [`transpile_with`] for others.
///
/// # Errors
/// The first stage that refuses it.
pub fn transpile(item: &syn::ItemFn, target: &Target) -> Result<Source, TranspileError> {
    transpile_with(item, target, &Instantiation::default())
}

/// A kernel or stencil for any target.
///
/// # Errors
/// The first stage that refuses it.
pub fn transpile_with(
    item: &syn::ItemFn,
    target: &Target,
    how: &Instantiation,
) -> Result<Source, TranspileError> {
    let def = read_item(item, FunctionKind::Kernel)?;
    let plain = *target == PLAIN;
    let how = Instantiation {
        checks: if plain { Checks::Off } else { how.checks },
        ..how.clone()
    };
    rendered(lower(&def, &how)?, target)
}
