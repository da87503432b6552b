//! Perpetua's kernel language: from Rust syntax or a builder, through a typed IR, to every target.
//!
//! In the order in which a kernel passes through: [`ops`] is the operator table that all the rest reads, [`ir`]
//! the representation, [`front`] what makes it of other forms, [`math`] the functions that are written once for
//! all targets, [`verify`] the gate, [`pass`] the transformations, [`back`] the renderers;
//! [`fault`] is what comes back when a kernel goes wrong; [`nearest`] finds the name that was meant, [`plain`](mod@plain) shows names that somebody else chose.

pub mod ops;

pub mod ir;

pub mod hash;

pub mod front;

pub mod math;

pub mod verify;

#[cfg(feature = "pass")]
pub mod pass;

pub mod back;

#[cfg(feature = "transpile")]
pub mod transpile;

pub mod fault;
pub mod nearest;
pub mod plain;
pub mod print;

/// Hashes of the sources that make a kernel's text: the syntax's and this crate's. Equal hashes render equal kernels to equal
/// texts, so a cache of what was compiled of them is keyed by it.
pub const CODE_HASHES: [&str; 2] = [perpetua_syntax::CODE_HASH, env!("PERPETUA_CODE_HASH")];
