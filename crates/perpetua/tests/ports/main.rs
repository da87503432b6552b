//! Sixty kernels of public projects, ported from the book alone: README.md lists them. Each is compared with plain Rust on all
//! devices of this machine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is the report"
)]
#![allow(
    clippy::complexity,
    clippy::manual_memcpy,
    clippy::style,
    reason = "kernels are written as users write them"
)]

mod ciphers;
mod codes;
mod edges;
mod formats;
mod graphs;
mod harness;
mod hashes;
mod images;
mod learning;
mod matrices;
mod networks;
mod noise;
mod numbers;
mod particles;
mod physics;
mod random;
mod rays;
mod seeks;
mod shapes;
mod sorts;
mod splats;
mod transforms;
