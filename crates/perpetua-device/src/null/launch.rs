//! The null backend's launches: an entry in the log, and the fault that a test planned.

use std::any::Any;
use std::sync::Arc;

use super::device::Shared;
use super::stream::{NullStream, Work};
use crate::backend::{GpuStream, KernelFunction, Launch};
use crate::dim::LaunchConfig;
use crate::error::{Error, Result};
use crate::ptr::ContextId;
use crate::signature::{KernelArg, Signature};

/// A launch in the null device's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullLaunch {
    /// The kernel's name.
    pub kernel: String,
    /// Its shape.
    pub config: LaunchConfig,
    /// Its arguments, for reading.
    pub args: Vec<String>,
}

pub(super) struct NullFunction {
    shared: Arc<Shared>,
    signature: Signature,
}

impl NullFunction {
    pub(super) fn new(shared: Arc<Shared>, signature: Signature) -> NullFunction {
        NullFunction { shared, signature }
    }
}

impl KernelFunction for NullFunction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.signature.name()
    }

    fn context_id(&self) -> ContextId {
        self.shared.id
    }

    fn signature(&self) -> Option<&Signature> {
        Some(&self.signature)
    }

    fn max_threads_per_block(&self) -> u32 {
        self.shared.info.limits.max_threads_per_block
    }

    unsafe fn launch(
        &self,
        launch: &Launch<'_>,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let stream: &NullStream = stream.as_any().downcast_ref().ok_or_else(|| Error::WrongDevice {
            operation: "launch",
            subject: "the stream".into(),
        })?;
        let keep = args.iter().filter_map(|arg| match arg {
            KernelArg::Buffer(b) => Some(b.ptr.clone()),
            KernelArg::Value(_) => None,
        });
        let launch = NullLaunch {
            kernel: self.name().to_owned(),
            config: launch.config,
            args: args.iter().map(|a| a.to_string()).collect(),
        };
        stream.submit(Work::Launch(launch, keep.collect()))
    }
}
