//! Targets and capabilities. A kernel carries what it needs, a target what it has; the difference is an error
//! before anything is rendered.

use std::collections::BTreeSet;

use crate::fault::FaultSite;
pub use crate::ops::Capability;
use crate::print::PrintSite;

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
