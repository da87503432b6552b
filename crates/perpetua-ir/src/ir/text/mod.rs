//! The text form of kernels: what it looks like, printing and reading it.
//!
//! One statement a line; names for everything that has one, `%3` for values, `$name` for local variables, `@12`
//! for source lines. Reading what was printed gives the same kernel. Knows nothing of whether a kernel is right:
//! that is the verifier's business.

mod print;
mod words;

pub(crate) use print::statement;
