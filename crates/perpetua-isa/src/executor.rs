//! Runs programs: an open device, and programs compiled once. `memory` keeps buffers and pools by handle, `launch` has what
//! runs on them.

mod arguments;
mod crossover;
mod kernels;
mod launch;
mod limits;
mod memory;
mod parts;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use perpetua_device::{BackendKind, Device, Kernel};
use perpetua_ir::back::Capability;

use crate::error::{Error, Result};
use crate::lower::{Options, lower};
use crate::program::Program;
use crate::verify::verify;

pub use arguments::{Argument, Arguments, Registers};
use kernels::Kernels;
pub use launch::{Launch, Prepared};
pub use limits::Limits;
pub(crate) use limits::{MAX_BLOCKS, MAX_CONSTANTS, MAX_CONSTANTS_READ};
use memory::Stored;
use parts::Room;

/// Where programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackendType {
    /// The host's processor.
    Cpu,
    /// Apple's GPUs, through wgpu.
    Metal,
    /// NVIDIA's GPUs.
    Cuda,
    /// Vulkan, Metal, DX12, GL and WebGPU.
    Wgpu,
}

/// Runs programs on one device.
///
/// ```
/// use perpetua_isa::{BackendType, Executor, LaunchConfig, Program};
/// let executor = Executor::new_with_backend(BackendType::Cpu)?;
/// let x = executor.allocate_buffer(12)?;
/// executor.write_buffer(x, 0, &[1.0f32, 2.0, 3.0])?;
/// let program: Program = "\
/// .buffer x: f32
///   setge.u64 p0, r255, len(x)
///   @p0 exit
///   ldg.f32 r0, x[r255]
///   mul.f32 r0, r0, r0
///   stg.f32 x[r255], r0
/// ".parse()?;
/// let program = program.with_buffer("x", x)?;
/// executor.execute_program(&program, &LaunchConfig::linear(3, 256))?;
/// assert_eq!(executor.read_buffer::<f32>(x, 0, 3)?, [1.0, 4.0, 9.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Executor {
    device: Device,
    limits: Option<Limits>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    memory: HashMap<u64, Stored>,
    // Bytes of all memory.
    bytes: usize,
    next: u64,
    kernels: Kernels<Compiled>,
}

/// A program as a kernel of the device.
#[derive(Clone)]
struct Compiled {
    kernel: Arc<Kernel>,
    // What launches of it are held to.
    room: Option<Room>,
}

/// An executor on the host's processor.
pub fn new_executor() -> Result<Executor> {
    Executor::new_with_backend(BackendType::Cpu)
}

/// An executor on the best backend: [`Executor::new_auto`].
pub fn new_executor_auto() -> Result<Executor> {
    Executor::new_auto()
}

/// An executor on a backend by its name: `cpu`, `metal`, `cuda` or `wgpu`.
pub fn new_executor_with_backend(name: &str) -> Result<Executor> {
    match BackendType::from_name(name) {
        Some(backend) => Executor::new_with_backend(backend),
        None => Err(Error::NoBackend { name: name.into() }),
    }
}

impl BackendType {
    /// The backend of this name, in any case.
    pub fn from_name(name: &str) -> Option<BackendType> {
        match name.to_ascii_lowercase().as_str() {
            "cpu" => Some(BackendType::Cpu),
            "metal" => Some(BackendType::Metal),
            "cuda" => Some(BackendType::Cuda),
            "wgpu" => Some(BackendType::Wgpu),
            _ => None,
        }
    }
}

impl Executor {
    /// An executor on this backend, and no other.
    ///
    /// # Errors
    /// If the backend is not built in, or has no device.
    pub fn new_with_backend(backend: BackendType) -> Result<Executor> {
        let apple = cfg!(target_vendor = "apple");
        let kind = match backend {
            BackendType::Cpu => BackendKind::Cpu,
            BackendType::Wgpu => BackendKind::Wgpu,
            BackendType::Cuda => BackendKind::Cuda,
            BackendType::Metal if apple => BackendKind::Wgpu,
            BackendType::Metal => return Err(Error::NotApple),
        };
        Device::new(kind, 0)
            .map(Executor::on)
            .map_err(|error| match (backend, &error) {
                (BackendType::Cuda, perpetua_device::Error::FeatureNotBuilt { .. }) => {
                    Error::CudaNotBuilt(error)
                }
                (BackendType::Cuda, _) => Error::NoCuda(error),
                _ => Error::Device(error),
            })
    }

    /// An executor on the first backend that has a device: Metal on Apple's machines, CUDA, the CPU.
    pub fn new_auto() -> Result<Executor> {
        let backends = [BackendType::Metal, BackendType::Cuda];
        let found = backends
            .into_iter()
            .find_map(|backend| Executor::new_with_backend(backend).ok());
        found.map_or_else(new_executor, Ok)
    }

    /// An executor on an open device.
    pub fn on(device: Device) -> Executor {
        Executor {
            device,
            limits: None,
            state: Mutex::default(),
        }
    }

    /// The same for untrusted programs: a program that goes beyond the limits is refused, or ends with a fault that names
    /// the line. Faults are always checked for; memory of blocks is zero when a block begins. A lane's budget is its own: how long a launch
    /// may take is this times its lanes, which whoever launches it chooses.
    pub fn untrusted(mut self, limits: Limits) -> Executor {
        self.limits = Some(limits);
        // What was compiled without limits does not know them.
        self.state().kernels.clear();
        self
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is under the lock is whole between any two statements.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for all that was launched.
    ///
    /// # Errors
    /// What lanes met.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.device.synchronize()?)
    }

    /// The program as a kernel of the device: verified, lowered and compiled once for equal programs, whatever their buffers. With
    /// [limits](Executor::untrusted) a program with loops takes six parameters more on GPUs, as [`Options::in_parts`] says.
    ///
    /// # Errors
    /// If the program is wrong, or needs what the device cannot do.
    pub fn kernel(&self, program: &Program) -> Result<Arc<Kernel>> {
        Ok(self.compiled(program)?.kernel)
    }

    fn compiled(&self, program: &Program) -> Result<Compiled> {
        let id = program.id();
        let kept = self.state().kernels.get(id, program);
        if let Some(compiled) = kept {
            return Ok(compiled);
        }
        let verified = verify(program)?;
        if let Some(limits) = &self.limits {
            limits.check(&verified)?;
        }
        let info = self.device.info();
        // The host's own threads have no watchdog.
        let is_watched = self.limits.is_some() && !info.on_host;
        let has_loops = verified.has_loops();
        let options = Options {
            pointer_width: info.pointer_width(),
            budget: self.limits.as_ref().map(|limits| limits.instructions),
            in_parts: is_watched && has_loops,
            is_ordered: info.capabilities.contains(&Capability::DeviceOrdering),
        };
        let kernel = lower(&verified, options)?;
        let straight = (!has_loops).then(|| verified.cost());
        let shared = kernel.kernel().shared_bytes();
        let compiled = Compiled {
            kernel: Arc::new(self.device.compile_ir(&kernel)?),
            room: is_watched.then(|| Room::new(info, shared, straight)),
        };
        let bytes = kernels::bytes(program, verified.size);
        self.state().kernels.insert(id, program, bytes, compiled.clone());
        Ok(compiled)
    }
}
