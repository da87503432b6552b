//! Passes: from kernel to kernel. Each keeps the meaning and makes one thing explicit that a renderer would
//! otherwise have to know.

#[cfg(feature = "wgsl")]
mod apart;
mod bind;
pub mod checks;
mod cut;
mod expand;
mod inline;
mod levels;
mod library;
mod open_loops;
mod statements;
mod turns;
mod unroll;
mod wide;

#[cfg(feature = "wgsl")]
pub(crate) use apart::returns_apart;
pub use bind::bind_scalars;
pub use cut::tell_cut_loops;
pub use expand::*;
pub use inline::inline_functions;
pub use levels::*;
pub use library::*;
pub use open_loops::has_open_loop;
pub use turns::{OUT_OF_TURNS, limit_turns};
pub use unroll::unroll_indexed;
pub use wide::{Wide, widen, widen_by};
