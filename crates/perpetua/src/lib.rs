//! Write a kernel once in Rust; run it on any GPU or on the CPU.
//!
//! A function marked [`macro@kernel`] stays an ordinary function, and is a kernel beside it. A program opens a
//! [`Device`](struct@device::Device), puts data into a [`Buffer`](struct@device::Buffer), and launches the one on the other:
//!
//! ```
//! use perpetua::device::{BackendKind, Device, LaunchConfig};
//! use perpetua::prelude::*;
//!
//! #[kernel]
//! fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
//!     let i = global_id_x();
//!     if i < y.len() {
//!         y[i] += a * x[i];
//!     }
//! }
//!
//! // `BackendKind::Auto` takes a GPU where there is one.
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let x = device.upload(&[1.0f32; 1000])?;
//! let y = device.upload(&[2.0f32; 1000])?;
//! device.launch(&saxpy::kernel(), LaunchConfig::linear(1000, 256), args![3.0f32, &x, &y])?;
//! assert_eq!(y.read()?[999], 5.0);
//! # Ok::<(), perpetua::device::Error>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | write kernels | [`macro@kernel`], [`macro@device`] for functions that they call, [`derive(GpuType)`](derive@GpuType) for structs in buffers, [`mod@kernel`] for the language's own functions, [`prelude`] |
//! | run them | [`Device`](struct@device::Device), [`Buffer`](struct@device::Buffer), [`Stream`](struct@device::Stream), [`args!`], [`LaunchConfig`](struct@device::LaunchConfig) |
//! | choose how they are compiled and launched | [`CompileOptions`](struct@device::CompileOptions), [`StencilConfig`] |
#![cfg_attr(
    feature = "actors",
    doc = "| keep them resident as actors | [`mod@actors`]: [`PerpetuaRuntime`](struct@actors::PerpetuaRuntime), [`ring_kernel`](macro@actors::ring_kernel), [`LaunchOptions`](struct@actors::LaunchOptions) |"
)]
#![cfg_attr(
    not(feature = "actors"),
    doc = "| keep them resident as actors | the feature `actors` |"
)]
#![cfg_attr(
    feature = "isa",
    doc = "| run programs that are data | [`mod@isa`]: [`Executor`](struct@isa::Executor), [`capture_kernel`](fn@isa::capture_kernel) |"
)]
#![cfg_attr(
    not(feature = "isa"),
    doc = "| run programs that are data | the feature `isa` |"
)]
#![cfg_attr(
    feature = "tensor",
    doc = "| compute with tensors | [`mod@tensor`]: [`Tensor`](struct@tensor::Tensor), [`Random`](struct@tensor::Random) |"
)]
#![cfg_attr(
    not(feature = "tensor"),
    doc = "| compute with tensors | the feature `tensor` |"
)]
#![cfg_attr(
    feature = "kernels",
    doc = "| multiply matrices, normalise rows | [`mod@kernels`]: [`GemmKernel`](struct@kernels::GemmKernel), [`SoftmaxKernel`](struct@kernels::SoftmaxKernel) |"
)]
#![cfg_attr(
    not(feature = "kernels"),
    doc = "| multiply matrices, normalise rows | the feature `kernels` |"
)]
#![cfg_attr(
    feature = "wave",
    doc = "| simulate waves | [`mod@wave`]: [`Scene`](struct@wave::Scene), [`Simulation`](struct@wave::Simulation), [`Tuning`](struct@wave::Tuning) |"
)]
#![cfg_attr(not(feature = "wave"), doc = "| simulate waves | the feature `wave` |")]
#![cfg_attr(
    feature = "transpile",
    doc = "| read kernels at run time | [`mod@transpile`] |"
)]
#![cfg_attr(
    not(feature = "transpile"),
    doc = "| read kernels at run time | the feature `transpile` |"
)]

// What the macros write names this crate; so it can be written here, too.
extern crate self as perpetua;

#[cfg(doctest)]
mod book;

/// Actors: handlers in Rust, on threads or resident on a GPU.
#[cfg(feature = "actors")]
#[doc(inline)]
pub use perpetua_actors as actors;

/// Programs in a portable instruction set: assembled, verified, run on any backend.
///
/// A kernel is one, too:
///
/// ```
/// use perpetua::isa::{Arguments, LaunchConfig, capture_kernel, new_executor};
/// use perpetua::prelude::*;
///
/// #[kernel]
/// fn scale(a: f32, x: &mut [f32]) {
///     let i = global_id_x();
///     if i < x.len() {
///         x[i] *= a;
///     }
/// }
///
/// let executor = new_executor()?;
/// let x = executor.allocate_buffer(8)?;
/// executor.write_buffer(x, 0, &[1.0f32, 2.0])?;
/// let program = capture_kernel(&scale::kernel())?.with_buffer("x", x)?;
/// executor.execute(&program, &LaunchConfig::linear(2, 64), &Arguments::new().with("a", 3.0f32))?;
/// assert_eq!(executor.read_buffer::<f32>(x, 0, 2)?, [3.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "isa")]
#[doc(inline)]
pub use perpetua_isa as isa;

/// Tensors: recorded, fused into generated kernels, differentiated, on every backend.
#[cfg(feature = "tensor")]
#[doc(inline)]
pub use perpetua_tensor as tensor;

/// Kernels that programs need again and again: matrix products, attention, norms, quantised weights.
#[cfg(feature = "kernels")]
#[doc(inline)]
pub use perpetua_kernels as kernels;

/// PTX of single instructions, with registers of Rust's types.
#[cfg(feature = "kernels")]
#[doc(inline)]
pub use perpetua_kernels::ptx;

/// Waves in the plane and in space, by finite differences, on any backend.
#[cfg(feature = "wave")]
#[doc(inline)]
pub use perpetua_wave as wave;

/// The device layer: backends, memory, streams, launches.
#[doc(inline)]
pub use perpetua_device as device;

#[doc(inline)]
pub use perpetua_language::{
    Edge, GpuType, GpuValue, GridPos, KernelFn, Scope, StencilConfig, args, device, gpu_println, kernel,
    volume,
};

/// Functions with kernels as text: Rust's syntax in, CUDA C or another target's text out, at run time.
#[cfg(feature = "transpile")]
pub mod transpile {
    pub use perpetua_ir::transpile::*;
    pub use perpetua_language::StencilConfig;

    /// What kernels call, as plain Rust: indices are those of a launch's only lane, barriers wait for nobody.
    pub mod dsl {
        pub use perpetua_language::GridPos;
        pub use perpetua_language::kernel::{barrier::*, index::*};
    }
}

/// What a program needs: `use perpetua::prelude::*;`.
pub mod prelude {
    #[cfg(all(feature = "actors", not(target_arch = "wasm32")))]
    pub use crate::actors::{Backend, CpuRuntime, KernelHandle, LaunchOptions, PerpetuaRuntime, RingKernel};
    #[cfg(feature = "actors")]
    pub use crate::actors::{
        HlcClock, HlcTimestamp, MessageId, PubSubBroker, PubSubConfig, RingMessage, Topic, message::priority,
        ring_kernel,
    };
    pub use perpetua_language::prelude::*;
}
