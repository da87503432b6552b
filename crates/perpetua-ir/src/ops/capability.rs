//! What a kernel may need of its target. Which target has what, targets say themselves.

use std::fmt;

use crate::ir::Scope;

/// Something that not every target or device can do. (f16 and bf16 need nothing: both are computed by way of f32,
/// to the same bits.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// 64-bit integers.
    Int64,
    /// f64.
    Float64,
    /// The math library's functions of f64, which need an exact `fma`.
    Math64,
    /// Subgroup operations.
    Subgroups,
    /// Atomic accesses of 64 bits.
    Atomic64,
    /// Acquire, release and sequentially consistent atomics, and fences, at block scope. (Barriers need nothing.)
    BlockOrdering,
    /// Acquire, release and sequentially consistent atomics, and fences, at device or system scope.
    DeviceOrdering,
    /// `gpu_println!`.
    Print,
    /// Dynamic shared memory.
    DynamicShared,
    /// What kernels need that stay on a device: its clock, naps, atomic accesses of 16 bytes, faults that are caught.
    Residency,
    /// Matrices that the lanes of a subgroup hold together, and their products.
    Matrices,
    /// Products of matrices that are multiplied in stages.
    Stages,
}

impl Capability {
    /// All of them.
    pub const ALL: [Capability; 12] = [
        Capability::Int64,
        Capability::Float64,
        Capability::Math64,
        Capability::Subgroups,
        Capability::Atomic64,
        Capability::BlockOrdering,
        Capability::DeviceOrdering,
        Capability::Print,
        Capability::DynamicShared,
        Capability::Residency,
        Capability::Matrices,
        Capability::Stages,
    ];

    /// What ordering at a scope needs.
    pub const fn ordering(scope: Scope) -> Capability {
        match scope {
            Scope::Block => Capability::BlockOrdering,
            Scope::Device | Scope::System => Capability::DeviceOrdering,
        }
    }

    /// What to do without it, as the end of an error.
    pub const fn remedy(self) -> &'static str {
        match self {
            Capability::Int64 => "use 32-bit integers, or a device with 64-bit ones",
            Capability::Float64 => "use f32, or a device with f64",
            Capability::Math64 => "compute them in f32, or use CUDA or the CPU",
            Capability::Subgroups => "use shared memory and barriers, or a device with subgroups",
            Capability::Atomic64 => "use 32-bit atomics, or a device with 64-bit ones",
            Capability::BlockOrdering => "use relaxed atomics and sync_threads, or CUDA or the CPU",
            Capability::DeviceOrdering => "use relaxed atomics and separate launches, or CUDA or the CPU",
            Capability::Print => "remove gpu_println!, or use CUDA or the CPU",
            Capability::DynamicShared => "give the shared array a fixed size",
            Capability::Residency => "run it in batches, or on CUDA with compute capability 7.5 or higher",
            Capability::Matrices => {
                "add up the products lane by lane, or use CUDA with compute capability 8.0 or higher, or the CPU"
            }
            Capability::Stages => {
                "multiply matrices of subgroups instead, or use CUDA with compute capability 9.0 (`sm_90a`), or the CPU"
            }
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Capability::Int64 => "64-bit integers",
            Capability::Float64 => "f64",
            Capability::Math64 => "functions of f64 such as sin and exp",
            Capability::Subgroups => "subgroup operations",
            Capability::Atomic64 => "64-bit atomics",
            Capability::BlockOrdering => "ordered atomics and fences at block scope",
            Capability::DeviceOrdering => "ordered atomics at device scope",
            Capability::Print => "printing",
            Capability::DynamicShared => "dynamic shared memory",
            Capability::Residency => {
                "what resident kernels need (clock, naps, 16-byte atomics, caught faults)"
            }
            Capability::Matrices => "matrices of subgroups",
            Capability::Stages => "products in stages",
        })
    }
}
