//! Forms of the kernel language: each kernel is called as plain Rust, lane by lane, and launched on every device that is
//! here, and what both write must be equal. Every target's renderer takes it, and the vendors' tools take what it writes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is the report"
)]
#![allow(
    clippy::needless_range_loop,
    clippy::manual_find,
    clippy::unnecessary_sort_by,
    clippy::flat_map_identity,
    clippy::wrong_self_convention,
    clippy::iter_nth,
    clippy::while_let_on_iterator,
    clippy::manual_is_multiple_of,
    clippy::partialeq_to_none,
    clippy::clone_on_copy,
    clippy::needless_borrows_for_generic_args,
    clippy::obfuscated_if_else,
    clippy::unnecessary_lazy_evaluations,
    clippy::eq_op,
    clippy::toplevel_ref_arg,
    clippy::precedence,
    clippy::unnecessary_literal_unwrap,
    for_loops_over_fallibles,
    reason = "kernels are written as users write them"
)]

mod attributes;
mod barriers;
mod calls;
mod chains;
mod check;
mod chosen;
mod closures;
#[cfg(all(debug_assertions, feature = "compare"))]
mod compared;
mod derives;
mod elements;
mod equality;
mod functions;
mod generics;
mod given;
mod habits;
mod harness;
mod iterators;
mod meanings;
mod nested;
mod options;
mod order;
mod panics;
mod patterns;
mod places;
mod random;
mod ranges;
mod standing;
mod strangers;
mod structs;
mod sweep;
mod told;
mod traits;
mod unseen;
mod values;
mod variants;
mod wide;
