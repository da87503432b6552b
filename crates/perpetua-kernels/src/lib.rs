//! Kernels that programs need again and again, written in the kernel language: matrix products, softmax, norms,
//! attention and quantised weights.
//!
//! In the order of the data: [`Kernel`] is what all of them can do; `operand` checks what a launch is given against the shapes,
//! and [`Error`] says what is wrong; `element` is how numbers are stored; [`gemm`], [`rows`], [`quant`] and [`attention`] are the kernels, with [`transpose`](mod@transpose), [`lookup`], [`reduce`], [`rotary`](mod@rotary) and [`random`](mod@random) beside them; [`reference`](mod@reference)
//! computes the same in `f64` on the host; [`measure`] says what kernels reach of what a device could do; [`ptx`] builds kernels of single instructions. Programs reach all of this as `perpetua::kernels`. Must not know backends: a kernel is
//! launched as any other.
//!
//! ```
//! use perpetua::device::{BackendKind, Device};
//! use perpetua::kernels::{GemmKernel, Kernel};
//! use perpetua::prelude::*;
//!
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let a = device.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
//! let b = device.upload(&[0.0f32, 1.0, 1.0, 0.0])?;
//! let c = device.zeros::<f32>(4)?;
//! GemmKernel::tiled(2, 2, 2, 16).launch(&device.default_stream(), args![&a, &b, &c])?;
//! assert_eq!(c.read()?, [2.0, 1.0, 4.0, 3.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(
    clippy::needless_range_loop,
    reason = "a lane's numbers have places, which a kernel names"
)]

// What the macros write names the facade, whose kernel language is this crate's.
extern crate perpetua_language as perpetua;

mod error;
mod kernel;
mod operand;

mod byte_floats;
mod element;
mod factors;
mod lanes;

pub mod attention;
pub mod gemm;
pub mod lookup;
pub mod quant;
pub mod random;
pub mod reduce;
pub mod rotary;
pub mod rows;
pub mod transpose;

pub mod measure;
pub mod ptx;
pub mod reference;

pub use attention::{AttentionBackwardKernel, AttentionKernel, PagedAttentionKernel, Pages};
pub use byte_floats::{E4m3, E5m2};
pub use element::Element;
pub use error::{Error, Result};
pub use gemm::{Beside, Choice, Choices, Epilogue, Factors, Gate, GemmKernel, GroupedGemmKernel, Tuned};
pub use kernel::Kernel;
pub use lookup::{EmbeddingBackwardKernel, GatherKernel};
pub use quant::{DequantizeKernel, QuantFormat, QuantGemmKernel, QuantGemvKernel, QuantizeKernel};
pub use random::{DropoutKernel, RandomKernel, philox};
pub use reduce::ReduceKernel;
pub use rotary::RotaryKernel;
pub use rows::{
    ArgmaxKernel, CrossEntropyBackwardKernel, CrossEntropyKernel, LayerNormBackwardKernel, LayerNormKernel,
    Reduction, RmsNormBackwardKernel, RmsNormKernel, SoftmaxBackwardKernel, SoftmaxKernel, TopKKernel,
};
pub use transpose::TransposeKernel;
