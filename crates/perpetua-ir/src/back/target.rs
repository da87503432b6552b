//! Targets and capabilities. A kernel carries what it needs, a target what it has; the difference is an error
//! before anything is rendered.

use std::collections::BTreeSet;
use std::fmt;

use crate::fault::FaultSite;
use crate::ir::Scope;
use crate::print::PrintSite;

/// Something that not every target or device can do. (f16 and bf16 need nothing: both are computed by way of f32,
/// to the same bits.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// 64-bit integers.
    Int64,
    /// f64.
    Float64,
    /// Subgroup operations.
    Subgroups,
    /// Atomic accesses of 64 bits.
    Atomic64,
    /// Acquire, release and sequentially consistent atomics, and fences, at workgroup scope. (Barriers need nothing.)
    WorkgroupOrdering,
    /// Acquire, release and sequentially consistent atomics, and fences, at device or system scope.
    DeviceOrdering,
    /// `gpu_println!`.
    Print,
    /// Dynamic workgroup memory.
    DynamicShared,
    /// What kernels need that stay on a device: its clock, naps, atomic accesses of 16 bytes, faults that are caught.
    Residency,
}

impl Capability {
    /// All of them.
    pub const ALL: [Capability; 9] = [
        Capability::Int64,
        Capability::Float64,
        Capability::Subgroups,
        Capability::Atomic64,
        Capability::WorkgroupOrdering,
        Capability::DeviceOrdering,
        Capability::Print,
        Capability::DynamicShared,
        Capability::Residency,
    ];

    /// What ordering at a scope needs.
    pub const fn ordering(scope: Scope) -> Capability {
        match scope {
            Scope::Workgroup => Capability::WorkgroupOrdering,
            Scope::Device | Scope::System => Capability::DeviceOrdering,
        }
    }

    /// What to do without it, as the end of an error.
    pub const fn remedy(self) -> &'static str {
        match self {
            Capability::Int64 => "use 32-bit integers, or a device with 64-bit ones",
            Capability::Float64 => "use f32, or a device with f64",
            Capability::Subgroups => "use workgroup memory and barriers, or a device with subgroups",
            Capability::Atomic64 => "use 32-bit atomics, or a device with 64-bit ones",
            Capability::WorkgroupOrdering => "use relaxed atomics and sync_threads, or CUDA or the CPU",
            Capability::DeviceOrdering => "use relaxed atomics and separate launches, or CUDA or the CPU",
            Capability::Print => "remove gpu_println!, or use CUDA or the CPU",
            Capability::DynamicShared => "give the workgroup array a fixed size",
            Capability::Residency => "run it in batches, or on CUDA with compute capability 7.5 or higher",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Capability::Int64 => "64-bit integers",
            Capability::Float64 => "f64",
            Capability::Subgroups => "subgroup operations",
            Capability::Atomic64 => "64-bit atomics",
            Capability::WorkgroupOrdering => "ordered atomics and fences at workgroup scope",
            Capability::DeviceOrdering => "ordered atomics at device scope",
            Capability::Print => "printing",
            Capability::DynamicShared => "dynamic workgroup memory",
            Capability::Residency => {
                "what resident kernels need (clock, naps, 16-byte atomics, caught faults)"
            }
        })
    }
}

/// A set of capabilities.
pub type Capabilities = BTreeSet<Capability>;

/// How a kernel's parameters are passed in CUDA C and PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CudaAbi {
    /// Every buffer as pointer and length; hidden parameters for faults and printing at the end.
    Checked,
    /// Plain pointers, no lengths, no hidden parameters, no checks: for pasting into other people's CUDA.
    Plain,
}

/// What to render for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// PTX for the CUDA driver.
    Ptx {
        /// Compute capability times ten: 70, 75, 80, 90, …
        sm: u32,
    },
    /// CUDA C++ for NVRTC or a reader.
    CudaC {
        /// Calling convention.
        abi: CudaAbi,
    },
    /// WGSL for wgpu and browsers.
    Wgsl {
        /// What the device has.
        capabilities: Capabilities,
        /// Lanes per work-group.
        block: [u32; 3],
        /// Bytes of dynamic workgroup memory.
        dynamic_shared: u32,
        /// Whether no two buffers of a launch share bytes: barriers may then cost less.
        distinct: bool,
    },
    /// Metal Shading Language 3.1.
    Msl,
}

impl Target {
    /// Name for messages.
    pub fn name(&self) -> String {
        match self {
            Target::Ptx { sm } => format!("PTX sm_{sm}"),
            Target::CudaC { .. } => "CUDA C".into(),
            Target::Wgsl { .. } => "WGSL".into(),
            Target::Msl => "MSL".into(),
        }
    }

    /// The Cargo feature of this crate that its renderer belongs to.
    pub const fn feature(&self) -> &'static str {
        match self {
            Target::Ptx { .. } => "ptx",
            Target::CudaC { .. } => "cuda-c",
            Target::Wgsl { .. } => "wgsl",
            Target::Msl => "msl",
        }
    }
}

/// What a renderer gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The program.
    pub text: String,
    /// Name of the entry point in it.
    pub entry: String,
    /// Where it can fault: the index is the number that a device reports, less the launch's site base.
    pub faults: Vec<FaultSite>,
    /// What it can print, numbered likewise.
    pub prints: Vec<PrintSite>,
}

/// Why a verified kernel cannot be rendered for a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The program was built without the renderer.
    #[error(
        "kernel `{kernel}`: this program was built without the renderer for {target}: enable the feature `{feature}` of perpetua-ir"
    )]
    NotBuilt {
        /// Kernel's name.
        kernel: String,
        /// The target.
        target: String,
        /// The renderer's Cargo feature.
        feature: &'static str,
    },
    /// The kernel needs something that the target has not.
    #[error("kernel `{kernel}`{} needs {capability}, which {target} lacks: {}", line_text(*.line), .capability.remedy())]
    Lacks {
        /// Kernel's name.
        kernel: String,
        /// Line of the first use, 0 when unknown.
        line: u32,
        /// What is missing.
        capability: Capability,
        /// The target.
        target: String,
    },
    /// The kernel does something that the target cannot express.
    #[error("kernel `{kernel}`{}: {target} cannot express {what}", line_text(*.line))]
    Unsupported {
        /// Kernel's name.
        kernel: String,
        /// Line, 0 when unknown.
        line: u32,
        /// What cannot be expressed.
        what: String,
        /// The target.
        target: String,
    },
    /// A limit of the target is exceeded.
    #[error("kernel `{kernel}`: {what} is {found}, {target} allows {limit}")]
    Limit {
        /// Kernel's name.
        kernel: String,
        /// What is limited.
        what: String,
        /// The kernel's value.
        found: u64,
        /// The target's limit.
        limit: u64,
        /// The target.
        target: String,
    },
}

fn line_text(line: u32) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(" (line {line})")
    }
}
