//! Programs that run as ordinary Rust and in the interpreter.

pub mod control;
pub mod data;
pub mod generics;
pub mod inference;
pub mod numbers;
