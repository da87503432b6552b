//! Runs programs: buffers by handle, programs compiled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytemuck::Pod;
use perpetua_device::{BackendKind, Buffer, Device, DynBuffer, Kernel, KernelArg, LaunchConfig};
use perpetua_ir::ir::{Scalar, Scope};

use crate::error::{Error, Result};
use crate::lower::{Options, lower};
use crate::opcode::Meaning;
use crate::program::{MemoryKind, Program};
use crate::verify::verify;

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

/// Most programs that an executor keeps compiled.
const KEPT: usize = 256;

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
/// let program = program.with_buffer("x", x).map_err(|_| "no buffer x")?;
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
    buffers: HashMap<u64, Buffer<u8>>,
    next: u64,
    kernels: HashMap<u128, Kept>,
    used: u64,
}

struct Kept {
    kernel: Arc<Kernel>,
    // Programs of one id need not be one: somebody may have looked for two.
    program: Program,
    // When it was used last, in launches.
    used: u64,
}

/// What programs that nobody trusts may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many instructions a lane may run in loops, about.
    pub instructions: u32,
    /// How many bytes all buffers of the executor may have.
    pub memory: usize,
    /// How many instructions a program may have: drivers' compilers are not made for large ones.
    pub size: usize,
}

impl Default for Limits {
    /// A hundred million instructions, a GiB, four thousand instructions of code.
    fn default() -> Limits {
        Limits {
            instructions: 100_000_000,
            memory: 1 << 30,
            size: 4096,
        }
    }
}

impl Limits {
    fn check(&self, program: &Program) -> Result<()> {
        let within = |what, found: usize, limit: usize| match found <= limit {
            true => Ok(()),
            false => Err(Error::Limit {
                what,
                found: found as u64,
                limit: limit as u64,
            }),
        };
        within("instructions", program.len(), self.size)?;
        let system = Meaning::Fence(Some(Scope::System));
        let mut code = program.routines.iter().flat_map(|routine| &routine.code);
        match code.any(|instruction| instruction.opcode.meaning() == system) {
            true => Err(Error::Backend(
                "a program that nobody trusts orders no memory of the system: `fence_system`".into(),
            )),
            false => Ok(()),
        }
    }

    fn check_memory(&self, bytes: usize) -> Result<()> {
        match bytes <= self.memory {
            true => Ok(()),
            false => Err(Error::Limit {
                what: "bytes of buffers",
                found: bytes as u64,
                limit: self.memory as u64,
            }),
        }
    }
}

/// Values of a program's parameters, by name.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Vec<(String, Scalar, [u8; 8])>);

/// A type that a parameter can have.
pub trait Argument: Copy {
    /// As the programs' type.
    const TYPE: Scalar;
    /// Its bytes, little-endian, the rest zero.
    fn bytes(self) -> [u8; 8];
}

macro_rules! arguments {
    ($($ty:ty: $scalar:ident,)*) => { $(
        impl Argument for $ty {
            const TYPE: Scalar = Scalar::$scalar;
            fn bytes(self) -> [u8; 8] {
                let mut all = [0; 8];
                let own = self.to_le_bytes();
                all[..own.len()].copy_from_slice(&own);
                all
            }
        }
    )* };
}

arguments! {
    i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64,
    half::f16: F16, half::bf16: BF16,
}

impl Arguments {
    /// None yet.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// The same, and a parameter's value.
    pub fn with<T: Argument>(self, name: impl Into<String>, value: T) -> Arguments {
        self.with_bytes(name, T::TYPE, value.bytes())
    }

    /// The same, and a parameter's value of a type that is known at run time: its bytes, little-endian, the rest zero.
    pub fn with_bytes(mut self, name: impl Into<String>, ty: Scalar, bytes: [u8; 8]) -> Arguments {
        self.0.push((name.into(), ty, bytes));
        self
    }
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
        None => Err(Error::Backend(format!(
            "there is no backend `{name}`: choose cpu, metal, cuda or wgpu"
        ))),
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
            BackendType::Metal => {
                return Err(Error::Backend(
                    "Metal backend only available on Apple platforms".into(),
                ));
            }
        };
        Device::new(kind, 0)
            .map(Executor::on)
            .map_err(|error| match (backend, &error) {
                (BackendType::Cuda, perpetua_device::Error::FeatureNotBuilt { .. }) => Error::Backend(
                    format!("CUDA backend requires 'cuda' feature to be enabled: {error}"),
                ),
                (BackendType::Cuda, _) => {
                    Error::Backend(format!("CUDA device not found or initialization failed: {error}"))
                }
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

    /// The same for programs that nobody trusts: a program that goes beyond the limits is refused, or ends with a fault that names
    /// the line. Faults are always checked for; memory of blocks is zero when a block begins. A lane's budget is its own: how long a launch
    /// may take is this times its lanes, which whoever launches it chooses.
    pub fn untrusted(mut self, limits: Limits) -> Executor {
        self.limits = Some(limits);
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

    /// Allocates a buffer of bytes, all zero; gives its handle.
    pub fn allocate_buffer(&self, bytes: usize) -> Result<u64> {
        if let Some(limits) = &self.limits {
            let used: usize = self.state().buffers.values().map(Buffer::len).sum();
            limits.check_memory(used.saturating_add(bytes))?;
        }
        let buffer = self.device.zeros::<u8>(bytes)?;
        let mut state = self.state();
        state.next += 1;
        let handle = state.next;
        state.buffers.insert(handle, buffer);
        Ok(handle)
    }

    /// Frees a buffer. Work that uses it ends first.
    ///
    /// # Errors
    /// [`Error::NoBuffer`].
    pub fn free_buffer(&self, handle: u64) -> Result<()> {
        let freed = self.state().buffers.remove(&handle);
        freed.map(|_| ()).ok_or(Error::NoBuffer { handle })
    }

    /// A buffer's bytes.
    pub fn buffer(&self, handle: u64) -> Result<Buffer<u8>> {
        self.state()
            .buffers
            .get(&handle)
            .cloned()
            .ok_or(Error::NoBuffer { handle })
    }

    /// A buffer's size in bytes.
    pub fn buffer_size(&self, handle: u64) -> Result<usize> {
        Ok(self.buffer(handle)?.len())
    }

    fn part(&self, operation: &'static str, handle: u64, offset: usize, len: usize) -> Result<Buffer<u8>> {
        let buffer = self.buffer(handle)?;
        match offset.checked_add(len) {
            Some(end) if end <= buffer.len() => Ok(buffer.slice(offset..end)?),
            _ => Err(Error::Range {
                operation,
                handle,
                offset: offset as u64,
                len: len as u64,
                size: buffer.len() as u64,
            }),
        }
    }

    /// Copies values into a buffer, from a byte on.
    pub fn write_buffer<T: Pod>(&self, handle: u64, offset: usize, values: &[T]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        if bytes.is_empty() {
            return self.buffer(handle).map(|_| ());
        }
        Ok(self.part("a write", handle, offset, bytes.len())?.write(bytes)?)
    }

    /// Waits for values of a buffer: `len` of them, from a byte on.
    pub fn read_buffer<T: Pod>(&self, handle: u64, offset: usize, len: usize) -> Result<Vec<T>> {
        let size = len.saturating_mul(size_of::<T>());
        if size == 0 {
            return self.buffer(handle).map(|_| Vec::new());
        }
        let bytes = self.part("a read", handle, offset, size)?.read()?;
        let mut values = vec![T::zeroed(); len];
        bytemuck::cast_slice_mut(&mut values).copy_from_slice(&bytes);
        Ok(values)
    }

    /// Copies bytes of a buffer to another, each from a byte on.
    pub fn copy_buffer(&self, from: (u64, usize), to: (u64, usize), len: usize) -> Result<()> {
        if len == 0 {
            return self.buffer(from.0).and(self.buffer(to.0)).map(|_| ());
        }
        let source = self.part("a copy", from.0, from.1, len)?;
        let destination = self.part("a copy", to.0, to.1, len)?;
        Ok(self.device.default_stream().copy(&source, &destination)?)
    }

    /// Launches a program whose buffers are bound to handles, and which takes no parameters.
    ///
    /// # Errors
    /// If the program is wrong, or not to be launched like this. What lanes meet (an index out of bounds) is told by the next read.
    pub fn execute_program(&self, program: &Program, config: &LaunchConfig) -> Result<()> {
        self.execute(program, config, &Arguments::new())
    }

    /// Launches a program with values for its parameters.
    ///
    /// # Errors
    /// As [`Executor::execute_program`].
    pub fn execute(&self, program: &Program, config: &LaunchConfig, arguments: &Arguments) -> Result<()> {
        let kernel = self.kernel(program)?;
        let mut buffers = Vec::new();
        for memory in &program.memories {
            if let MemoryKind::Buffer { handle, .. } = memory.kind {
                let handle = handle.ok_or_else(|| Error::Unbound {
                    program: program.name.clone(),
                    name: memory.name.clone(),
                })?;
                buffers.push(DynBuffer::view(&self.buffer(handle)?, &memory.element.into())?);
            }
        }
        let mut args: Vec<KernelArg<'_>> = buffers.iter().map(DynBuffer::arg).collect();
        for parameter in &program.parameters {
            let given = arguments
                .0
                .iter()
                .rev()
                .find(|(name, ..)| *name == parameter.name);
            let wrong = |found: String| Error::Parameter {
                program: program.name.clone(),
                name: parameter.name.clone(),
                expected: parameter.ty,
                found,
            };
            let (_, ty, bytes) = given.ok_or_else(|| wrong("nothing was given".into()))?;
            if *ty != parameter.ty {
                return Err(wrong(format!("{ty} was given")));
            }
            let size = parameter.ty.size() as usize;
            args.push(KernelArg::value(&parameter.ty.into(), &bytes[..size])?);
        }
        Ok(self.device.launch(kernel.as_ref(), *config, &args)?)
    }

    /// Waits for all that was launched.
    ///
    /// # Errors
    /// What lanes met.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.device.synchronize()?)
    }

    /// The program as a kernel of the device: verified, lowered and compiled once for equal programs, whatever their buffers.
    ///
    /// # Errors
    /// If the program is wrong, or needs what the device cannot do.
    pub fn kernel(&self, program: &Program) -> Result<Arc<Kernel>> {
        let id = program.id();
        let mut state = self.state();
        state.used += 1;
        let used = state.used;
        let kept = state.kernels.get_mut(&id);
        if let Some(kept) = kept.filter(|kept| kept.program.is_same_kernel(program)) {
            kept.used = used;
            return Ok(Arc::clone(&kept.kernel));
        }
        drop(state);
        let verified = verify(program)?;
        if let Some(limits) = &self.limits {
            limits.check(program)?;
        }
        let options = Options {
            pointer_width: self.device.info().pointer_width(),
            budget: self.limits.as_ref().map(|limits| limits.instructions),
        };
        let kernel = lower(&verified, options)?;
        let kernel = Arc::new(self.device.compile_ir(&kernel)?);
        let mut state = self.state();
        if state.kernels.len() >= KEPT
            && let Some(oldest) = state
                .kernels
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(id, _)| *id)
        {
            state.kernels.remove(&oldest);
        }
        let kept = Kept {
            kernel: Arc::clone(&kernel),
            program: program.clone(),
            used,
        };
        state.kernels.insert(id, kept);
        Ok(kernel)
    }
}
