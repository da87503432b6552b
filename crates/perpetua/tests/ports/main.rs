//! Sixty kernels of public projects, ported from the book alone: README.md lists them. Each is compared with plain Rust on all
//! devices of this machine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is the report"
)]
#![allow(
    clippy::needless_range_loop,
    clippy::too_many_arguments,
    reason = "kernels are written as users write them"
)]

mod ciphers;
mod codes;
mod formats;
mod graphs;
mod harness;
mod hashes;
mod random;
mod transforms;
