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
    clippy::suspicious_op_assign_impl,
    reason = "kernels are written as users write them"
)]

mod archives;
mod beams;
mod boards;
mod bodies;
mod cells;
mod charges;
mod ciphers;
mod cloth;
mod codebooks;
mod codes;
mod columns;
#[cfg(all(debug_assertions, feature = "compare"))]
mod compared;
mod corners;
mod curves;
mod databases;
mod decompositions;
mod draws;
mod edges;
mod factors;
mod features;
mod fields;
mod filters;
mod flows;
mod fluids;
mod forests;
mod formats;
mod genomes;
mod graphs;
mod harness;
mod hashes;
mod hulls;
mod images;
mod keypoints;
mod learning;
mod lengths;
mod letters;
mod likeness;
mod losses;
mod markets;
mod matches;
mod matrices;
mod means;
mod meshes;
mod molecules;
mod needles;
mod nests;
mod networks;
mod noise;
mod numbers;
mod packs;
mod pairs;
mod parity;
mod particles;
mod phrases;
mod physics;
mod pictures;
mod places;
mod planes;
mod poles;
mod primes;
mod proofs;
mod random;
mod ranks;
mod rasters;
mod rays;
mod reactors;
mod records;
mod roots;
mod sampling;
mod scenes;
mod seeds;
mod seeks;
mod series;
mod shading;
mod shapes;
mod shocks;
mod signals;
mod skies;
mod slices;
mod solids;
mod solvers;
mod sorts;
mod space;
mod spectra;
mod splats;
mod stars;
mod streams;
mod surfaces;
mod tapes;
mod texts;
mod tokens;
mod tones;
mod trainers;
mod transformers;
mod transforms;
mod trees;
mod video;
mod volumes;
mod waters;
mod wavelets;
mod waves;
mod weights;
