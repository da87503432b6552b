//! The kernel language as plain Rust, and what the macros' output calls.
//!
//! In the order in which one meets them: [`KernelFn`] is what `#[kernel]` makes of a function, [`index`] where a lane
//! stands in its launch, [`grid`] where in a stencil's grid, [`barrier`], [`shared`], [`subgroup`] and [`atomic`]
//! what lanes do together, [`resident`] what kernels need that stay on a device. A function with `#[kernel]` or `#[device]` that is called as plain Rust is the only lane
//! of a launch of one lane.
//!
//! # Traits
//! `#[device]` stands before traits and before the blocks that implement them, for types of your own and for primitive ones;
//! generic kernels take any of them, those of other crates, too:
//! ```
//! use perpetua::prelude::*;
//!
//! #[device]
//! trait Combine: Copy {
//!     const IDENTITY: Self;
//!     fn combine(self, other: Self) -> Self;
//! }
//!
//! #[device]
//! impl Combine for f32 {
//!     const IDENTITY: f32 = 0.0;
//!     fn combine(self, other: f32) -> f32 {
//!         self + other
//!     }
//! }
//!
//! #[kernel]
//! fn reduce<T: Combine>(x: &[T], out: &mut [T]) {
//!     let mut all = T::IDENTITY;
//!     for i in 0..x.len() {
//!         all = all.combine(x[i]);
//!     }
//!     out[0] = all;
//! }
//!
//! let kernel = reduce::kernel::<f32>();
//! let mut sum = [0.0];
//! reduce(&[1.0, 2.0, 4.0], &mut sum);
//! assert_eq!(sum, [7.0]);
//! ```
//!
//! # Closures and patterns
//! Closures are passed to functions with `#[device]`, capture values and places, and are called where they stand:
//! ```
//! use perpetua::prelude::*;
//!
//! #[device]
//! fn fold(x: &[f32], first: f32, each: impl Fn(f32, f32) -> f32) -> f32 {
//!     let mut all = first;
//!     for i in 0..x.len() {
//!         all = each(all, x[i]);
//!     }
//!     all
//! }
//!
//! #[kernel]
//! fn span(x: &[f32], out: &mut [f32]) {
//!     let (mut low, mut high) = (fold(x, x[0], |a, b| a.min(b)), fold(x, x[0], |a, b| a.max(b)));
//!     if low > high {
//!         (low, high) = (high, low);
//!     }
//!     out[0] = high - low;
//! }
//!
//! let mut out = [0.0];
//! span(&[1.0, -2.0, 4.0], &mut out);
//! assert_eq!(out, [6.0]);
//! ```
//!
//! # Iterators and parts of slices
//! A chain of iterators is the loop that it means, so it stands where it is used: in `for`, or ended by `sum`, `fold` and their
//! kin. Items are references as in Rust; `min`, `find` and `last` give values, behind `copied()`. `x[a..b]` is checked once,
//! passed to functions, and returned from them:
//! ```
//! use perpetua::prelude::*;
//!
//! #[device]
//! fn mean(part: &[f32]) -> f32 {
//!     part.iter().sum::<f32>() / part.len() as f32
//! }
//!
//! #[kernel]
//! fn smooth(x: &[f32], out: &mut [f32]) {
//!     let weights = [0.25, 0.5, 0.25];
//!     let near: f32 = weights.iter().zip(&x[1..]).map(|(w, v)| w * v).sum();
//!     let peak = x.chunks_exact(2).map(mean).fold(f32::MIN, f32::max);
//!     out[0] = near;
//!     out[1] = peak;
//! }
//!
//! let mut out = [0.0; 2];
//! smooth(&[1.0, 2.0, 4.0, 8.0], &mut out);
//! assert_eq!(out, [4.5, 6.0]);
//! ```
//!
//! # Assertions
//! `assert!`, `assert_eq!`, `assert_ne!`, `panic!`, `todo!`, `unreachable!`, `unwrap` and `expect` end a lane by a fault that has their message:
//! the launch's error shows it with kernel, line, block and lane. A message shows up to four scalars. `debug_assert!` and its kin are there where
//! the crate is compiled with debug assertions.
//!
//! A kernel with closures, assertions, such patterns or iterators runs on the CPU as machine code, as one with `#[kernel(interpret)]` does.

pub mod index;

pub mod element;
#[doc(hidden)]
pub mod equality;
pub mod grid;

pub mod barrier;

pub mod fast;
/// Methods of `f16` and `bf16`.
pub mod half_float;
pub mod scalar;

pub mod shared;

pub mod matrix;
pub mod stages;
#[doc(hidden)]
pub mod standard;
pub mod subgroup;

pub mod atomic;

pub mod resident;

mod print;

pub mod entry;
mod identity;

pub mod check;

#[doc(hidden)]
pub mod native;

#[doc(hidden)]
pub mod expand;

pub use crate::gpu_println;
pub use atomic::Scope;
pub use check::check_all;
pub use entry::KernelFn;
pub use grid::{GridPos, volume};
