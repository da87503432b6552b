//! Passes: from kernel to kernel. Each keeps the meaning and makes one thing explicit that a renderer would
//! otherwise have to know.

pub mod checks;
mod inline;
mod library;

pub use library::*;
