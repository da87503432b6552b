//! The CPU backend's compiler: takes the native body where there is one and it is the faster way, and prepares machine code or the interpreter for
//! the rest.

use std::any::Any;
use std::sync::Arc;

use perpetua_ir::pass::has_open_loop;
use perpetua_ir::verify::Verified;

use super::device::Shared;
use super::launch::CpuFunction;
use crate::backend::{CompiledKernel, KernelFunction};
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::source::{CompileOptions, KernelSource};

pub(super) fn compile(
    shared: &Arc<Shared>,
    source: &KernelSource<'_>,
    options: &CompileOptions,
) -> Result<Arc<dyn CompiledKernel>> {
    let (native, verified) = match source {
        KernelSource::Ir(verified) => (None, Some(Arc::new(Verified::clone(verified)))),
        KernelSource::Spec(spec) => {
            let verified = spec.verified(shared.info.pointer_width())?;
            (spec.native(), Some(verified))
        }
        KernelSource::Native(native, verified) => (Some(**native), verified.map(|v| Arc::new(v.clone()))),
        KernelSource::IrText(_) | KernelSource::CudaC(_) | KernelSource::Ptx(_) | KernelSource::Wgsl(_) => {
            return Err(Error::SourceUnsupported {
                backend: BackendKind::Cpu,
                given: source.kind(),
                takes: "IR, kernel functions and native Rust",
            });
        }
    };
    let native = native.filter(|_| !(options.interpret && verified.is_some()));
    // rustc makes vectors along innermost loops, machine code across lanes: where lanes loop for long, a native body is scalar.
    if let (KernelSource::Spec(_), Some(_), Some(verified)) = (source, &native, &verified)
        && has_open_loop(verified.kernel())
    {
        let code = CpuFunction::new(Arc::clone(shared), None, Some(Arc::clone(verified)), false)?;
        if code.has_code() {
            return Ok(Arc::new(CpuModule(code)));
        }
    }
    let function = CpuFunction::new(Arc::clone(shared), native, verified, options.interpret)?;
    Ok(Arc::new(CpuModule(function)))
}

struct CpuModule(CpuFunction);

impl CompiledKernel for CpuModule {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn function_names(&self) -> Vec<String> {
        vec![self.0.name().to_owned()]
    }

    fn get_function(&self, name: &str) -> Result<Arc<dyn KernelFunction>> {
        if name == self.0.name() {
            return Ok(Arc::new(self.0.clone()));
        }
        Err(Error::FunctionNotFound {
            name: name.to_owned(),
            available: self.function_names(),
        })
    }
}
