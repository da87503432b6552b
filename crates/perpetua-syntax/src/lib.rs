//! The syntax tree of the kernel language (a subset of Rust), its binary encoding, and behind the feature
//! `parse` its reader from Rust tokens.
//!
//! The macros read the user's function with it and embed the encoded bytes; `perpetua-ir` decodes them at
//! first use, without syn, and lowers them. This crate must not know what a construct means: no inference, no
//! operator table, no targets.

// Rust tokens to the tree, with an error at its span for all that the language lacks.
#[cfg(feature = "parse")]
pub mod parse;

// The same for what stands before handlers and messages of actors: items of the language.
#[cfg(feature = "parse")]
pub mod actors;

// The tree, the functions that are part of the language, and how deeply trees nest.
pub mod ast;
pub mod intrinsic;
mod nesting;
mod standard;

// The tree as bytes and back, and as text.
mod display;
pub mod encoding;

pub use ast::*;
pub use encoding::{DecodeError, FORMAT_VERSION, decode, encode};
pub use intrinsic::{INTRINSICS, Intrinsic, IntrinsicGroup};
pub use nesting::MAX_NESTING;
pub use standard::{STD_TRAITS, operator_functions};

/// Hash of this crate's sources, for caches of what is made of trees.
pub const CODE_HASH: &str = env!("PERPETUA_CODE_HASH");
