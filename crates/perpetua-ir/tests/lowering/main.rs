//! Kernels lowered from source: against the same text as ordinary Rust, against expected numbers, and refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is the report"
)]

mod contract;
mod files;
mod growing;
mod lanes;
mod limits;
mod macros;
mod memory;
mod native;
mod operators;
#[allow(
    clippy::all,
    unreachable_pub,
    dead_code,
    missing_docs,
    unused_parens,
    arithmetic_overflow,
    reason = "programs are written for what they exercise"
)]
mod programs;
mod refusals;
mod remedies;
mod run;
mod stencil;
mod variants;
mod witness;
