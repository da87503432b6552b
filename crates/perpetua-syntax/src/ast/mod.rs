//! The tree of a kernel, device or stencil function, and of the structs, enums and constants that it may use.
//!
//! Names of locals are plain text: scoping and shadowing are the lowering's work. Everything that is not local
//! is an index into [`Function::paths`], which code in the user's own scope resolves. Types are as written;
//! nothing here is inferred or checked beyond what the syntax shows.

mod data;
mod expr;
mod function;
mod operator;
mod path;
mod pattern;
mod print;
mod types;

pub use data::*;
pub use expr::*;
pub use function::*;
pub use operator::*;
pub use path::*;
pub use pattern::*;
pub use print::*;
pub use types::*;

/// A line of the source file, counted from 1.
pub type Line = u32;
