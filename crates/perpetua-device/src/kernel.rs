//! Compiled kernels as a program holds them. Must not know backends.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::backend::{CompiledKernel, KernelFunction};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::signature::Signature;
use crate::source::KernelSpec;
use crate::way::Way;

/// A kernel compiled for one device. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    function: Arc<dyn KernelFunction>,
    form: &'static str,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        self.function.name()
    }

    /// Its parameters; `None` for kernels from text other than IR.
    pub fn signature(&self) -> Option<&Signature> {
        self.function.signature()
    }

    /// The largest number of lanes per block that it can be launched with.
    pub fn max_threads_per_block(&self) -> u32 {
        self.function.max_threads_per_block()
    }

    /// Blocks of so many lanes and so much dynamic shared memory, in bytes, that a multiprocessor has room for at the same time; `None` where the device does
    /// not tell (it does on CUDA).
    ///
    /// # Errors
    /// What the driver says to the question.
    pub fn blocks_per_multiprocessor(&self, lanes: u32, shared_bytes: u32) -> Result<Option<u32>> {
        self.function.blocks_per_multiprocessor(lanes, shared_bytes)
    }

    /// How its launches run: on the CPU by native code, by machine code or in the interpreter, elsewhere by the driver's code.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, Device, KernelSource, Way};
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let text = "kernel k(x: buffer<u32, read_write>) {\n  %0: u32 = thread_idx.x\n  store x[%0], %0\n}\n";
    /// let kernel = device.compile(&KernelSource::IrText(text), &Default::default())?.only()?;
    /// match kernel.way() {
    ///     Way::MachineCode(instructions) => println!("machine code for {instructions}"),
    ///     way => println!("{way}"),
    /// }
    /// # Ok::<(), perpetua_device::Error>(())
    /// ```
    pub fn way(&self) -> Way {
        self.function.way()
    }

    /// The form that it was compiled from, for messages.
    pub fn form(&self) -> &'static str {
        self.form
    }

    /// The backend's function.
    pub fn function(&self) -> &Arc<dyn KernelFunction> {
        &self.function
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signature() {
            Some(signature) => write!(f, "kernel {signature}"),
            None => write!(f, "kernel {} from {}", self.name(), self.form),
        }
    }
}

/// A compiled source: one kernel, or all entry points of a text. Cheap to clone.
#[derive(Clone)]
pub struct Module(Arc<ModuleInner>);

struct ModuleInner {
    compiled: Arc<dyn CompiledKernel>,
    form: &'static str,
    only: OnceLock<Kernel>,
}

impl Module {
    pub(crate) fn new(compiled: Arc<dyn CompiledKernel>, form: &'static str) -> Module {
        Module(Arc::new(ModuleInner {
            compiled,
            form,
            only: OnceLock::new(),
        }))
    }

    /// Names of its kernels; empty when the backend cannot list them.
    pub fn names(&self) -> Vec<String> {
        self.0.compiled.function_names()
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        Ok(Kernel {
            function: self.0.compiled.get_function(name)?,
            form: self.0.form,
        })
    }

    /// The kernel of a module that has exactly one.
    pub fn only(&self) -> Result<Kernel> {
        if let Some(kernel) = self.0.only.get() {
            return Ok(kernel.clone());
        }
        let names = self.names();
        let [name] = &names[..] else {
            return Err(Error::FunctionNotFound {
                name: "(the only one)".into(),
                available: names,
            });
        };
        let kernel = self.kernel(name)?;
        // A second thread may have been first; both kernels are the same.
        let _ = self.0.only.set(kernel.clone());
        Ok(kernel)
    }

    /// The backend's module.
    pub fn compiled(&self) -> &Arc<dyn CompiledKernel> {
        &self.0.compiled
    }
}

/// What can be launched: a [`Kernel`], or a kernel function of the program, which is compiled at its first launch on each
/// device.
pub trait Launchable {
    /// The kernel, compiled for `device`.
    fn kernel(&self, device: &Device) -> Result<Kernel>;
}

impl Launchable for Kernel {
    fn kernel(&self, _: &Device) -> Result<Kernel> {
        Ok(self.clone())
    }
}

impl<S: KernelSpec> Launchable for S {
    fn kernel(&self, device: &Device) -> Result<Kernel> {
        device.kernel(self)
    }
}
