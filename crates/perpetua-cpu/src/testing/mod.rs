//! Random kernels for conformance and fuzz tests: well-typed, verified, free of races, with one right answer.
//!
//! In the order in which a test uses them: [`Choices`] is a tape of decisions, [`generate`] turns it into a
//! [`Case`] (a kernel, its launch and its arguments), [`interpret`] runs it, [`mismatches`] compares what two runs left in the buffers,
//! [`histogram()`] tells what a kernel contains, and `minimise` shrinks a failing tape and then the kernel itself.
//! [`cases`] is all that as a proptest strategy. Every kernel verifies; lanes share memory only in ways that give
//! the same result in every order; loops end.

mod case;
mod choices;
mod compact;
mod config;
mod generator;
mod histogram;
mod inputs;
mod minimise;
mod reference;
mod strategy;

pub use case::*;
pub use choices::*;
pub use config::*;
pub use generator::generate;
pub use histogram::histogram;
pub use inputs::{edge_values, random_bytes};
pub use minimise::*;
pub use reference::{interpret, run_case};
pub use strategy::cases;
