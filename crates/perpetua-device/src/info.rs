//! What is known about a device: identity, limits, capabilities, and what probes found. Must not know any backend's types.

use std::fmt;

use perpetua_ir::back::Capabilities;

/// A family of devices, or the choice to take the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum BackendKind {
    /// The best there is, in the order CUDA, Metal, wgpu, CPU.
    #[default]
    Auto,
    /// NVIDIA GPUs through the CUDA driver.
    Cuda,
    /// Apple GPUs.
    Metal,
    /// Vulkan, Metal, DX12, GL and WebGPU through wgpu.
    Wgpu,
    /// The host's processor.
    Cpu,
    /// No hardware: checks everything, computes nothing.
    Null,
    /// A backend of another crate, by its name: see [`register_backend`](crate::register_backend).
    Other(&'static str),
}

impl BackendKind {
    /// Name on the command line: `auto`, `cuda`, `metal`, `wgpu`, `cpu`, `null`, or another backend's own.
    pub const fn name(self) -> &'static str {
        match self {
            BackendKind::Auto => "auto",
            BackendKind::Cuda => "cuda",
            BackendKind::Metal => "metal",
            BackendKind::Wgpu => "wgpu",
            BackendKind::Cpu => "cpu",
            BackendKind::Null => "null",
            BackendKind::Other(name) => name,
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BackendKind::Auto => "automatic",
            BackendKind::Cuda => "CUDA",
            BackendKind::Metal => "Metal",
            BackendKind::Wgpu => "wgpu",
            BackendKind::Cpu => "CPU",
            BackendKind::Null => "null",
            BackendKind::Other(name) => name,
        })
    }
}

/// What sort of hardware stands behind a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdapterType {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU passed through by a hypervisor.
    Virtual,
    /// A processor, as the CPU backend or a software rasteriser uses it.
    Cpu,
    /// Not known.
    Other,
}

impl fmt::Display for AdapterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdapterType::Discrete => "discrete GPU",
            AdapterType::Integrated => "integrated GPU",
            AdapterType::Virtual => "virtual GPU",
            AdapterType::Cpu => "processor",
            AdapterType::Other => "other",
        })
    }
}

/// What a launch may ask of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Lanes per block, all dimensions together.
    pub max_threads_per_block: u32,
    /// Lanes per block in x, y, z.
    pub max_block: [u32; 3],
    /// Blocks in x, y, z (of the logical grid: a backend that folds large grids gives the folded limit).
    pub max_grid: [u32; 3],
    /// Shared memory per block, in bytes, static and dynamic together.
    pub shared_bytes_per_block: u32,
    /// Blocks per cluster, all dimensions together; 1 where there are no clusters.
    pub max_cluster: u32,
    /// Whether a launch can have all its blocks on the device at the same time.
    pub cooperative: bool,
    /// Buffer parameters of one kernel.
    pub max_buffers: u32,
    /// Size of one buffer in bytes.
    pub max_buffer_bytes: u64,
    /// Turns that a lane's loops may take together in a launch, where a probe found that the driver ends loops then: more of
    /// them are a fault.
    pub max_loop_turns: Option<u32>,
}

/// What small test kernels found out about a device's floating-point arithmetic (f32). `None`: not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NumericProbe {
    /// Multiplication and addition written apart stay apart.
    pub no_contraction: Option<bool>,
    /// Denormal numbers are kept.
    pub keeps_denormals: Option<bool>,
    /// The device's own fused multiply-add rounds once; where it does not, `mul_add` is computed by integers.
    pub exact_fma: Option<bool>,
    /// Division is correctly rounded.
    pub exact_division: Option<bool>,
    /// Square root is correctly rounded.
    pub exact_sqrt: Option<bool>,
}

impl NumericProbe {
    /// All that is needed for equality to the bit with the interpreter.
    pub const EXACT: NumericProbe = NumericProbe {
        no_contraction: Some(true),
        keeps_denormals: Some(true),
        exact_fma: Some(true),
        exact_division: Some(true),
        exact_sqrt: Some(true),
    };

    /// Whether add, subtract, multiply, divide, `mul_add` and square root are known to equal the interpreter's to the bit.
    pub fn is_exact(&self) -> bool {
        *self == NumericProbe::EXACT
    }
}

/// A device's properties.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// Product name.
    pub name: String,
    /// Which backend drives it.
    pub backend: BackendKind,
    /// Index within the backend.
    pub index: usize,
    /// Vendor's name.
    pub vendor: String,
    /// Driver's name and version, empty when unknown.
    pub driver: String,
    /// What sort of hardware it is.
    pub adapter_type: AdapterType,
    /// Whether launches compute; else they are only checked (the null device).
    pub computes: bool,
    /// Whether kernels run on the host's own threads, at the cost of a call, instead of behind a driver.
    pub on_host: bool,
    /// NVIDIA's compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// Multiprocessors, or cores that the CPU backend uses; `None` where the driver does not tell (of Vulkan's, NVIDIA's does).
    pub multiprocessors: Option<u32>,
    /// Highest clock of the multiprocessors in MHz; `None` where the driver does not tell.
    pub clock: Option<u32>,
    /// Device memory in bytes; `None` where the API does not tell.
    pub memory_total: Option<u64>,
    /// Free device memory in bytes at the time of asking.
    pub memory_free: Option<u64>,
    /// Whether host and device share one memory.
    pub unified_memory: bool,
    /// Whether [`MemoryKind::Mapped`](crate::MemoryKind::Mapped) memory exists.
    pub mapped_memory: bool,
    /// Whether events carry times, so that time between two can be had.
    pub timestamps: bool,
    /// PCI address (`domain:bus:device.function`), where there is one.
    pub pci_id: Option<String>,
    /// Limits of launches and buffers.
    pub limits: DeviceLimits,
    /// Smallest and largest number of lanes in a subgroup.
    pub subgroup_size: (u32, u32),
    /// What kernels may use.
    pub capabilities: Capabilities,
    /// What probes found; `None` when none ran.
    pub numeric_probe: Option<NumericProbe>,
    /// Further facts worth showing (SIMD features, graphics API), as `name: value`.
    pub details: Vec<(String, String)>,
}

impl DeviceInfo {
    /// Whether a kernel can stay on it and talk with the host meanwhile.
    pub fn can_stay(&self) -> bool {
        self.computes
            && self
                .capabilities
                .contains(&perpetua_ir::back::Capability::Residency)
    }

    /// Width of `usize` in kernels for this device: 32 bits where wgpu drives it (no buffer has more elements, and not every device has
    /// wider integers), else 64.
    pub fn pointer_width(&self) -> u32 {
        match self.backend {
            BackendKind::Wgpu => 32,
            _ if !self.capabilities.contains(&perpetua_ir::back::Capability::Int64) => 32,
            _ => 64,
        }
    }
}

/// Device memory at one moment, in bytes; `None` where the API does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryInfo {
    /// Free.
    pub free: Option<u64>,
    /// All there is.
    pub total: Option<u64>,
}
