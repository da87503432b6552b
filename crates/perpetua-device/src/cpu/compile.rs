//! The CPU backend's compiler: takes the native body where there is one, and prepares the interpreter for the rest.

use std::any::Any;
use std::sync::Arc;

use super::device::Shared;
use super::launch::CpuFunction;
use crate::backend::{CompiledKernel, KernelFunction};
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::signature::Signature;
use crate::source::{CompileOptions, KernelSource};

pub(super) fn compile(
    shared: &Arc<Shared>,
    source: &KernelSource<'_>,
    options: &CompileOptions,
) -> Result<Arc<dyn CompiledKernel>> {
    let unsupported = || Error::SourceUnsupported {
        backend: BackendKind::Cpu,
        given: source.kind(),
        takes: "kernel functions and native Rust",
    };
    let (signature, native) = match source {
        KernelSource::Spec(spec) => {
            let verified = spec.verified(shared.info.pointer_width())?;
            (Signature::of(verified.kernel()), spec.native())
        }
        KernelSource::Native(native, verified) => {
            let signature = verified.map_or_else(native.signature, |v| Signature::of(v.kernel()));
            (signature, Some(**native))
        }
        _ => return Err(unsupported()),
    };
    let native = native.filter(|_| !options.interpret).ok_or_else(unsupported)?;
    let function = CpuFunction::new(Arc::clone(shared), signature, Some(native));
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
