//! trueno's names, where its programs look for them.

pub mod gpu;
