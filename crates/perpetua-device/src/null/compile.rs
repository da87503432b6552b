//! The null backend's compiler: reads signatures, makes nothing.

use std::any::Any;
use std::sync::Arc;

use super::device::Shared;
use super::launch::NullFunction;
use crate::backend::{CompiledKernel, KernelFunction};
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::signature::Signature;
use crate::source::KernelSource;

pub(super) fn compile(shared: &Arc<Shared>, source: &KernelSource<'_>) -> Result<Arc<dyn CompiledKernel>> {
    let signature = match source {
        KernelSource::Ir(verified) => Signature::of(verified),
        KernelSource::Spec(spec) => Signature::of(&*spec.verified(shared.info.pointer_width())?),
        KernelSource::Native(native, _) => (native.signature)(),
        KernelSource::IrText(_) | KernelSource::CudaC(_) | KernelSource::Ptx(_) | KernelSource::Wgsl(_) => {
            return Err(Error::SourceUnsupported {
                backend: BackendKind::Null,
                given: source.kind(),
                takes: "IR, kernel functions and native Rust",
            });
        }
    };
    Ok(Arc::new(NullModule(Arc::new(NullFunction::new(
        Arc::clone(shared),
        signature,
    )))))
}

struct NullModule(Arc<NullFunction>);

impl CompiledKernel for NullModule {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn function_names(&self) -> Vec<String> {
        vec![self.0.name().to_owned()]
    }

    fn get_function(&self, name: &str) -> Result<Arc<dyn KernelFunction>> {
        if name == self.0.name() {
            return Ok(Arc::clone(&self.0) as _);
        }
        Err(Error::FunctionNotFound {
            name: name.to_owned(),
            available: self.function_names(),
        })
    }
}
