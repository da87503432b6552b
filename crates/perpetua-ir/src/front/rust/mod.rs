//! From Rust functions to the IR: one lowering, whether the function comes from the macros, from `syn` at run time
//! or from a file.
//!
//! In the order of the data: [`describe`] says what types and constants look like, [`gpu_type`] which Rust types
//! have such descriptions, [`resolve`] how a function and the things that its names mean arrive here (the
//! contract with the macros, with an example of an expansion), [`instantiate`] what is chosen at first use.

pub mod describe;

pub mod gpu_type;

pub mod resolve;

pub mod stencil;

pub mod instantiate;

pub mod error;

mod infer;

#[cfg(feature = "transpile")]
pub mod source;

#[cfg(feature = "transpile")]
pub mod file;

mod emit;

#[cfg(all(test, feature = "transpile"))]
mod reference;

pub use describe::*;
pub use emit::{
    COMPUTED, Followed, INSIDE, InferredLocal, inferred_locals, lower, lower_device, lower_followed,
};
pub use error::LowerError;
#[cfg(feature = "transpile")]
pub use file::{
    Crates, FileKernel, Files, HandlerKernels, HandlerLibrary, REFUSED, handlers_in_file,
    kernels_and_refusals, kernels_in_crates, kernels_in_file, kernels_in_files,
};
pub use gpu_type::{GpuConst, GpuType, GpuValue};
pub use instantiate::{GenericValue, Instantiation};
#[doc(hidden)]
pub use resolve::members::inventory;
pub use resolve::members::{DeviceImpl, GenericBlock, GenericMember, ImplBlock, Member, MemberKind, Members};
pub use resolve::{FunctionDef, FunctionKey, Resolutions, Resolved, Resolver};
#[cfg(feature = "transpile")]
pub use source::{SourceError, SourceRefusal, read_item};
pub use stencil::{Edge, StencilConfig};
