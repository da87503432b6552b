//! A builder of PTX for those who want each instruction as they wrote it: instructions take and give registers of Rust's types, so that a wrong
//! one does not compile. Must not know the kernel language.
//!
//! ```
//! use perpetua::ptx::{PtxKernel, PtxModule, PtxType};
//!
//! let saxpy = PtxKernel::build("saxpy", |k| {
//!     let a = k.param::<f32>("a");
//!     let (x, y) = (k.buffer::<f32>("x"), k.buffer_mut::<f32>("y"));
//!     let i = k.global_id_x();
//!     let (left, right) = (k.load(&x, i), k.load(&y, i));
//!     let sum = k.fma(a, left, right);
//!     k.store(&y, i, sum);
//! });
//! assert_eq!(saxpy.signature().to_string(), "saxpy(a: f32, x: &[f32], y: &mut [f32])");
//! let ptx = PtxModule::new().with(saxpy).emit_ptx(); // needs no GPU
//! assert!(ptx.contains("fma.rn.f32") && ptx.contains(".param .f32 a"));
//! assert_eq!(PtxType::F32.name(), "f32");
//! ```
//!
//! An integer where an instruction takes floats is a mistake that the compiler finds:
//!
//! ```compile_fail,E0308
//! use perpetua::ptx::PtxKernel;
//!
//! PtxKernel::build("wrong", |k| {
//!     let a = k.param::<f32>("a");
//!     let i = k.global_id_x();
//!     k.add(a, i); // `Reg<f32>` and `Reg<u32>`
//! });
//! ```
//!
//! Memory is reached through buffers and shared arrays alone, and each access compares its index: beyond the end a load gives 0 and a store does
//! nothing. So launching such a kernel is safe.

mod builder;
mod memory;
mod tensor;
mod types;

use std::collections::BTreeSet;
use std::fmt::Write;

use perpetua_device::{CompileOptions, KernelArg, KernelSource, LaunchConfig, Signature, Stream, args};
use perpetua_ir::ir::{Param, ParamKind};

pub use builder::{PtxBuilder, Var};
pub use memory::{GlobalSlice, SharedArray};
pub use tensor::{FragmentA, FragmentB};
pub use types::{PtxElement, PtxFloat, PtxHalf, PtxInteger, PtxNumber, PtxScalar, PtxType, Reg};

use crate::error::Result;

/// Kernels as one text.
#[derive(Clone, Debug, Default)]
pub struct PtxModule {
    kernels: Vec<PtxKernel>,
}

impl PtxModule {
    /// A module without kernels.
    pub fn new() -> PtxModule {
        PtxModule::default()
    }

    /// The same with a kernel more, whose name no other of the module has.
    pub fn with(mut self, kernel: PtxKernel) -> PtxModule {
        self.kernels.push(kernel);
        self
    }

    /// The text, for the oldest generation that has all instructions in it: the driver compiles it for this and every later one.
    pub fn emit_ptx(&self) -> String {
        let sm = self
            .kernels
            .iter()
            .map(|kernel| kernel.sm)
            .max()
            .unwrap_or(OLDEST);
        // The first version that knows the generation and its instructions.
        let version = if sm >= 90 { "7.8" } else { "7.0" };
        let mut text = format!(".version {version}\n.target sm_{sm}\n.address_size 64\n");
        for kernel in &self.kernels {
            text.push('\n');
            kernel.write(&mut text);
        }
        text
    }
}

/// The oldest generation that is written for.
const OLDEST: u32 = 70;

/// A kernel made of instructions.
#[derive(Clone, Debug)]
pub struct PtxKernel {
    name: String,
    params: Vec<Param>,
    /// Registers by the start of their names and their type.
    registers: BTreeSet<(&'static str, u32, &'static str)>,
    shared: Vec<String>,
    code: String,
    sm: u32,
}

impl PtxKernel {
    /// The kernel that `body` writes, one call an instruction. The name is the entry point's: letters, digits and `_`; other characters become `_`.
    pub fn build(name: &str, body: impl FnOnce(&mut PtxBuilder)) -> PtxKernel {
        let mut builder = PtxBuilder::new();
        body(&mut builder);
        builder.finish(identifier(name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters: what launches are checked against.
    pub fn signature(&self) -> Signature {
        Signature::new(self.name.clone(), self.params.clone())
    }

    /// The text of a module with this kernel alone.
    pub fn emit_ptx(&self) -> String {
        PtxModule::new().with(self.clone()).emit_ptx()
    }

    /// Checks the arguments against the signature and submits a launch. The device keeps the compiled text.
    ///
    /// # Errors
    /// What is wrong with an argument; a device that is not CUDA takes no PTX
    /// ([`SourceUnsupported`](perpetua_device::Error::SourceUnsupported)).
    pub fn launch(&self, stream: &Stream, config: LaunchConfig, args: &[KernelArg<'_>]) -> Result<()> {
        self.signature().check(args)?;
        let text = self.emit_ptx();
        let module = stream
            .device()
            .compile(&KernelSource::Ptx(&text), &CompileOptions::default())?;
        let kernel = module.kernel(&self.name)?;
        let mut all = Vec::with_capacity(2 * args.len());
        for arg in args {
            all.push(arg.clone());
            if let KernelArg::Buffer(buffer) = arg {
                all.extend_from_slice(args![buffer.len()]);
            }
        }
        // SAFETY: the arguments passed the signature's checks, and lengths stand behind buffers, as the text declares them. It accesses
        // memory only through `memory`, which compares each index with the length of a buffer or of a shared array.
        Ok(unsafe { stream.launch_unchecked(&kernel, config, &all) }?)
    }

    fn write(&self, text: &mut String) {
        let mut params = Vec::new();
        for param in &self.params {
            let name = &param.name;
            match &param.kind {
                ParamKind::Buffer { .. } => {
                    params.push(format!("    .param .u64 {name}"));
                    params.push(format!("    .param .u64 {name}_len"));
                }
                ParamKind::Value(ty) => {
                    let ty = ty.to_string().replace('i', "s");
                    params.push(format!("    .param .{ty} {name}"));
                }
            }
        }
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            ".visible .entry {}(\n{}\n)\n{{\n",
            self.name,
            params.join(",\n")
        );
        for (prefix, number, bits) in &self.registers {
            let _ = writeln!(text, "    .reg .{bits} %{prefix}{number};");
        }
        for array in &self.shared {
            let _ = writeln!(text, "    {array};");
        }
        text.push_str(&self.code);
        text.push_str("    ret;\n}\n");
    }
}

/// A name with only such characters as PTX has in names.
fn identifier(name: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(valid).collect();
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name,
        false => format!("k_{name}"),
    }
}
