//! Memory of the host and what moves its bytes: what the CPU and null backends are made of, and what GPU backends without
//! page-locked memory of their own use for it. Must not know any backend.

mod pool;
pub mod racing;
mod transfer;

pub use pool::{HostMemory, HostPool, HostPools, memory_info, raw};
pub use transfer::{Transfer, read};
