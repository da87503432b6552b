//! The CPU backend's launches: native bodies spread over threads.

use std::any::Any;
use std::sync::Arc;

use super::device::Shared;
use super::stream::{CpuStream, Work};
use crate::backend::{GpuStream, KernelFunction};
use crate::dim::Dim3;
use crate::error::{Error, Result};
use crate::host::raw;
use crate::native::{NativeArg, NativeKernel, NativeLaunch};
use crate::ptr::{ContextId, DevicePtr};
use crate::signature::{KernelArg, Signature, ValueArg};

/// Launches of up to this many lanes run at once on an idle stream, on the calling thread.
const INLINE_LANES: u64 = 1024;

/// A kernel ready to run. Cheap to clone.
#[derive(Clone)]
pub(super) struct CpuFunction(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    signature: Signature,
    native: Option<NativeKernel>,
}

impl CpuFunction {
    pub(super) fn new(
        shared: Arc<Shared>,
        signature: Signature,
        native: Option<NativeKernel>,
    ) -> CpuFunction {
        CpuFunction(Arc::new(Inner {
            shared,
            signature,
            native,
        }))
    }
}

/// A submitted launch: what it needs, kept alive until it has run.
pub(super) struct Launch {
    function: CpuFunction,
    shape: NativeLaunch,
    args: Vec<Arg>,
}

enum Arg {
    Buffer(DevicePtr, usize),
    Value(ValueArg),
}

impl Launch {
    fn lanes(&self) -> u64 {
        self.shape.grid.count().saturating_mul(self.shape.block.count())
    }

    pub(super) fn is_small(&self) -> bool {
        self.lanes() <= INLINE_LANES
    }

    pub(super) fn run(&self) -> Result<()> {
        if self.lanes() == 0 {
            return Ok(());
        }
        let Inner {
            signature, native, ..
        } = &*self.function.0;
        let args: Vec<NativeArg<'_>> = self
            .args
            .iter()
            .zip(signature.params())
            .map(|(arg, param)| match (arg, &param.kind) {
                (Arg::Buffer(ptr, len), _) => NativeArg::Buffer {
                    // Memory of this context is host memory; `Signature::check` and the owner's check precede this.
                    ptr: raw(ptr).map_or(std::ptr::null_mut(), |p| p.as_ptr()),
                    len: *len,
                },
                (Arg::Value(value), perpetua_ir::ir::ParamKind::Value(ty)) => {
                    NativeArg::Value(value.bytes_for(ty))
                }
                (Arg::Value(value), _) => NativeArg::Value(value.bytes()),
            })
            .collect();
        match native {
            Some(native) if (native.accepts)(&self.shape, &args) => self.run_native(native, &args),
            _ => Err(Error::Unsupported {
                backend: crate::BackendKind::Cpu,
                operation: "run this launch of a native kernel natively",
                remedy: "give the kernel's IR too",
            }),
        }
    }

    fn run_native(&self, native: &NativeKernel, args: &[NativeArg<'_>]) -> Result<()> {
        let blocks = self.shape.grid.count();
        let run = |from: u64, to: u64| {
            // SAFETY: the launch's arguments passed the signature's check (`KernelFunction::launch`'s contract), their
            // memory is kept alive by `self.args` and initialised (host pools give such), and `accepts` said yes.
            unsafe { (native.run)(&self.shape, args, from..to) }
        };
        #[cfg(not(target_arch = "wasm32"))]
        if !self.is_small() && blocks > 1 {
            use rayon::iter::{IntoParallelIterator, ParallelIterator};

            // Several parts a thread, so that uneven parts even out.
            let parts = blocks.min(rayon::current_num_threads() as u64 * 4);
            let bound = |part: u64| (u128::from(blocks) * u128::from(part) / u128::from(parts)) as u64;
            return Ok((0..parts)
                .into_par_iter()
                .try_for_each(|i| run(bound(i), bound(i + 1)))?);
        }
        Ok(run(0, blocks)?)
    }
}

impl KernelFunction for CpuFunction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.0.signature.name()
    }

    fn context_id(&self) -> ContextId {
        self.0.shared.id
    }

    fn signature(&self) -> Option<&Signature> {
        Some(&self.0.signature)
    }

    fn max_threads_per_block(&self) -> u32 {
        self.0.shared.info.limits.max_threads_per_block
    }

    unsafe fn launch(
        &self,
        grid: Dim3,
        block: Dim3,
        shared_mem: usize,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let stream: &CpuStream = stream.as_any().downcast_ref().ok_or_else(|| Error::WrongDevice {
            operation: "launch",
            subject: "the stream".into(),
        })?;
        let own = |arg: &KernelArg<'_>| match arg {
            KernelArg::Buffer(b) => Arg::Buffer(b.ptr.clone(), b.len as usize),
            KernelArg::Value(v) => Arg::Value(v.clone()),
        };
        let launch = Launch {
            function: self.clone(),
            shape: NativeLaunch {
                grid,
                block,
                shared_bytes: shared_mem as u32,
            },
            args: args.iter().map(own).collect(),
        };
        stream.submit(Work::Launch(Arc::new(launch)))
    }
}
