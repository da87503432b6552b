//! Tensors: operations are recorded, fused into generated kernels when somebody looks at a result, and differentiated.
//!
//! ```
//! use perpetua_device::{BackendKind, Device};
//! use perpetua_tensor::Tensor;
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2], &device).tracked();
//! let y = (&x * 2.0 + 1.0).relu().sum(..);
//! assert_eq!(y.to_vec::<f32>()?, [24.0]); // one kernel
//! assert_eq!(y.grad(&[&x])?[0].to_vec::<f32>()?, [2.0; 4]);
//! # Ok::<(), perpetua_tensor::Error>(())
//! ```
//!
//! A [`Tensor`] has a type, a shape and a device, which are values, not type parameters. Its operators are rows of two tables
//! ([`table`]): primitives, and what is composed of them. An operation that its rules refuse gives a tensor that carries the [`Error`]: it
//! comes back from whatever looks at a value made of it, with the line of the program that recorded the operation, or at once from
//! [`Tensor::check`].
//!
//! In the order in which an operation passes: [`table`] has its rules, `tensor` and `create` record it, `view` has views, `gather`,
//! `sort`, `window` and `einsum` what is made of several steps, `graph` walks
//! what is recorded, `fuse` divides it into kernels, `emit` generates them, `run` compiles and launches them; `gradient` records derivatives,
//! `algebra` has functions of matrices that the host computes, `optimise` steps along them, `transform` makes
//! functions of functions, `compile` records one once, `replay` runs it again; `work` finds the device on which an operator is done sooner.

#[macro_use]
mod place;

#[cfg(feature = "linalg")]
mod algebra;
mod anomaly;
#[cfg(any(feature = "nalgebra", feature = "ndarray"))]
mod arrays;
pub mod backends;
mod byte_float;
mod combine;
mod compile;
mod copy;
mod create;
mod display;
mod dlpack;
mod dtype;
mod eager;
mod einsum;
mod emit;
mod error;
mod explain;
mod files;
mod fourier;
mod function;
mod fuse;
mod gather;
pub mod gpu;
mod gradient;
mod graph;
mod host;
#[cfg_attr(not(feature = "cuda"), path = "no_library.rs")]
mod library;
mod linear;
#[cfg(feature = "mmap")]
mod map;
mod memory;
mod node;
#[cfg(feature = "npz")]
mod npz;
mod numbers;
mod operand;
mod optimise;
mod order;
mod random;
mod read;
mod reduce;
mod replay;
mod run;
#[cfg(feature = "safetensors")]
mod safetensors;
mod shape;
mod sort;
mod spectrum;
mod spread;
mod stay;
mod step;
pub mod table;
mod tensor;
#[cfg(feature = "testing")]
pub mod testing;
mod together;
mod transform;
mod view;
mod widest;
mod window;
mod work;

pub use anomaly::detect_anomaly;
pub use compile::{Compiled, compile};
pub use dlpack::{DlDataType, DlDevice, DlManagedTensor, DlPack, DlTensor};
pub use dtype::{DType, Element, promote};
pub use eager::eager;
pub use error::{Error, Result};
pub use explain::Explanation;
pub use function::{checkpoint, clip_grad_norm};
pub use memory::{MemoryPlan, MemoryStep};
pub use node::{Argument, Function, HostValues, OnHost, Tensor, no_grad};
#[cfg(feature = "npz")]
pub use npz::{load_npz, save_npz, save_npz_compressed};
pub use operand::Operand;
pub use optimise::Adam;
pub use perpetua_device::{Data, Device};
pub use random::Random;
pub use run::Statistics;
#[cfg(all(feature = "mmap", feature = "safetensors"))]
pub use safetensors::map_safetensors;
#[cfg(feature = "safetensors")]
pub use safetensors::{load_safetensors, save_safetensors};
pub use shape::{Axes, Shape};
pub use stay::Stay;
#[cfg(feature = "linalg")]
pub use table::MatrixNorm;
pub use table::Unique;
pub use transform::{grad, jvp, vjp, vmap};
pub use view::Slice;
pub use window::{Each, Window};
pub use work::BestFor;
