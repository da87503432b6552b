//! What the writer of C-like code writes down, as a kernel: for tests, which run it.

use super::{c_like, cuda_c, msl, wgsl};
use crate::fault::FaultSite;
use crate::ir::Kernel;
use crate::pass::Operation;
use crate::verify::Verified;

/// Whose text it becomes.
#[derive(Clone, Copy, Debug)]
pub enum Dialect {
    /// CUDA C++.
    CudaC,
    /// The Metal Shading Language.
    Msl,
    /// WGSL.
    Wgsl,
}

/// A kernel prepared for a dialect that writes those of its own operations that are `own`.
pub struct Prepared {
    /// The kernel, with explicit checks.
    pub kernel: Kernel,
    /// What its fault statements stand for, in order.
    pub faults: Vec<FaultSite>,
}

/// Prepares a kernel as rendering it does.
pub fn prepare(verified: &Verified, own: &dyn Fn(&Operation) -> bool, dialect: Dialect) -> Prepared {
    let native = |operation: &Operation| match dialect {
        Dialect::CudaC => cuda_c::native(operation, false),
        Dialect::Msl => msl::native(operation),
        Dialect::Wgsl => wgsl::native(operation),
    };
    let prepared = c_like::prepare(verified, (own, &native), true);
    Prepared {
        kernel: prepared.kernel,
        faults: prepared.faults,
    }
}
