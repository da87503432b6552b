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

mod alignments;
mod archives;
mod backgrounds;
mod beams;
mod boards;
mod bodies;
mod bricks;
mod cascades;
mod cells;
mod charges;
mod ciphers;
mod cloth;
mod clusters;
mod codebooks;
mod codes;
mod columns;
#[cfg(all(debug_assertions, feature = "compare"))]
mod compared;
mod corners;
mod counts;
mod crystals;
mod curves;
mod databases;
mod decompositions;
mod dice;
mod drafts;
mod draws;
mod echoes;
mod edges;
mod factors;
mod features;
mod fields;
mod filters;
mod flows;
mod fluids;
mod forecasts;
mod forests;
mod formats;
mod genomes;
mod glazes;
mod graphs;
mod halfedges;
mod harness;
mod hashes;
mod hulls;
mod images;
mod keypoints;
mod lattices;
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
mod motions;
mod needles;
mod nests;
mod networks;
mod noise;
mod normals;
mod numbers;
mod orchards;
mod packs;
mod pairs;
mod parcels;
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
mod pulsars;
mod quotes;
mod random;
mod ranks;
mod rasters;
mod rays;
mod reactions;
mod reactors;
mod records;
mod reels;
mod roots;
mod sampling;
mod scenes;
mod seals;
mod seeds;
mod seeks;
mod series;
mod sets;
mod shading;
mod shallows;
mod shapes;
mod shocks;
mod sieves;
mod sightings;
mod signals;
mod skies;
mod slices;
mod solids;
mod solvers;
mod sorts;
mod space;
mod spectra;
mod splats;
mod stamps;
mod stars;
mod strands;
mod streams;
mod surfaces;
mod surroundings;
mod tapes;
mod texts;
mod tokens;
mod tones;
mod trainers;
mod transformers;
mod transforms;
mod trees;
mod utterances;
mod video;
mod volumes;
mod waters;
mod wavelets;
mod waves;
mod weathers;
mod webs;
mod weights;
