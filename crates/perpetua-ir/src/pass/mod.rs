//! Passes: from kernel to kernel. Each keeps the meaning and makes one thing explicit that a renderer would
//! otherwise have to know.

pub mod checks;
mod expand;
mod inline;
mod levels;
mod library;

pub use expand::*;
pub use levels::*;
pub use library::*;
