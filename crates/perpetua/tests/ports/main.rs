//! Kernels of public projects, ported from the book alone: README.md lists them. Each is compared with plain Rust on all
//! devices of this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is the report"
)]
#![allow(
    clippy::complexity,
    clippy::manual_memcpy,
    clippy::style,
    clippy::suspicious_arithmetic_impl,
    reason = "kernels are written as users write them"
)]

mod archives;
mod bodies;
mod ciphers;
mod codebooks;
mod codes;
mod curves;
mod databases;
mod draws;
mod edges;
mod features;
mod fields;
mod fluids;
mod formats;
mod genomes;
mod graphs;
mod harness;
mod hashes;
mod hulls;
mod images;
mod learning;
mod lengths;
mod losses;
mod markets;
mod matrices;
mod meshes;
mod molecules;
mod networks;
mod noise;
mod numbers;
mod particles;
mod physics;
mod places;
mod poles;
mod proofs;
mod random;
mod rays;
mod reactors;
mod sampling;
mod scenes;
mod seeks;
mod series;
mod shading;
mod shapes;
mod signals;
mod solids;
mod sorts;
mod space;
mod splats;
mod surfaces;
mod transformers;
mod transforms;
mod trees;
mod video;
mod volumes;
mod weights;
