//! The syntax tree of the kernel language (a subset of Rust), its binary encoding, and behind the feature
//! `parse` its reader from Rust tokens.
//!
//! The macros read the user's function with it and embed the encoded bytes; `perpetua-ir` decodes them at
//! first use, without syn, and lowers them. This crate must not know what a construct means: no inference, no
//! operator table, no targets.

/// Rust tokens to the tree, with an error at its span for all that the language lacks.
#[cfg(feature = "parse")]
pub mod parse;

/// The tree.
pub mod ast;
/// The functions that are part of the language, by name.
pub mod intrinsic;
/// How deeply trees nest.
mod nesting;

/// The tree as bytes and back.
pub mod encoding;

pub use ast::*;
pub use encoding::{DecodeError, FORMAT_VERSION, decode, encode};
pub use intrinsic::{INTRINSICS, Intrinsic, IntrinsicGroup};
pub use nesting::MAX_NESTING;
