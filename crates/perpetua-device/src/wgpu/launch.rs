//! Kernels and their launches: bindings, argument blocks, dispatches.

use std::any::Any;
use std::num::NonZeroU64;
use std::sync::Arc;

use perpetua_ir::back::ArgsLayout;
use perpetua_ir::ir::ParamKind;

use super::compile::{Convention, Loaded, Pipeline};
use super::memory::Memory;
use super::stream::{Recording, Stream, StreamCore};
use crate::backend::{GpuStream, KernelFunction};
use crate::dim::Dim3;
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::ptr::{ContextId, DevicePtr};
use crate::signature::{KernelArg, Signature};

/// One launch, ready to be recorded any number of times.
#[derive(Clone)]
pub(super) struct Dispatch {
    pipeline: Arc<Pipeline>,
    kernel: Arc<Loaded>,
    buffers: Vec<DevicePtr>,
    args: Vec<u8>,
    groups: [u32; 3],
}

impl Dispatch {
    /// Records the launch.
    pub(super) fn record(&self, core: &StreamCore, rec: &mut Recording) -> Result<()> {
        let shared = &core.shared;
        let offset = if self.args.is_empty() {
            0
        } else {
            rec.push_args(shared, &self.args)?
        };
        let checked = matches!(self.kernel.convention, Convention::Checked { .. });
        let group = if checked {
            self.kernel
                .group(core, rec.args_buffer(), &self.buffers, self.args.len() as u64)
        } else {
            self.plain_group(rec.args_buffer(), offset)
        };
        self.buffers.iter().for_each(|b| rec.hold(b));
        if checked && self.kernel.can_fault() {
            rec.may_fault();
        }
        let pass = rec.pass(shared);
        pass.set_pipeline(&self.pipeline.pipeline);
        pass.set_bind_group(
            0,
            &group,
            if checked {
                std::slice::from_ref(&offset)
            } else {
                &[]
            },
        );
        let [x, y, z] = self.groups;
        pass.dispatch_workgroups(x, y, z);
        Ok(())
    }

    /// Bindings of a text kernel: each buffer from its own first byte, then the values.
    fn plain_group(&self, args: &wgpu::Buffer, offset: u32) -> wgpu::BindGroup {
        let layout = self.pipeline.pipeline.get_bind_group_layout(0);
        let mut entries: Vec<wgpu::BindGroupEntry<'_>> = Vec::with_capacity(self.buffers.len() + 1);
        for ptr in &self.buffers {
            if let Some(memory) = ptr.downcast::<Memory>() {
                let size = NonZeroU64::new(ptr.len().next_multiple_of(4).max(4));
                entries.push(wgpu::BindGroupEntry {
                    binding: entries.len() as u32,
                    resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &memory.buffer,
                        offset: ptr.offset(),
                        size,
                    }),
                });
            }
        }
        if !self.args.is_empty() {
            entries.push(wgpu::BindGroupEntry {
                binding: entries.len() as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: args,
                    offset: offset.into(),
                    size: NonZeroU64::new(self.args.len() as u64),
                }),
            });
        }
        self.kernel
            .shared
            .device
            .create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &layout,
                entries: &entries,
            })
    }
}

/// An entry point.
pub(super) struct Function {
    pub(super) kernel: Arc<Loaded>,
    pub(super) name: String,
}

impl KernelFunction for Function {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn context_id(&self) -> ContextId {
        self.kernel.shared.id
    }

    fn signature(&self) -> Option<&Signature> {
        match &self.kernel.convention {
            Convention::Checked { signature, .. } => Some(signature),
            Convention::Plain => None,
        }
    }

    fn max_threads_per_block(&self) -> u32 {
        self.kernel.shared.limits.max_compute_invocations_per_workgroup
    }

    unsafe fn launch(
        &self,
        grid: Dim3,
        block: Dim3,
        shared_mem: usize,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        if grid.count() == 0 {
            return Ok(());
        }
        let Some(stream) = stream.as_any().downcast_ref::<Stream>() else {
            return Err(Error::WrongDevice {
                operation: "launch",
                subject: "the stream".into(),
            });
        };
        let buffers: Vec<DevicePtr> = args
            .iter()
            .filter_map(|a| match a {
                KernelArg::Buffer(b) => Some(b.ptr.clone()),
                KernelArg::Value(_) => None,
            })
            .collect();
        let (args, groups) = match &self.kernel.convention {
            Convention::Checked {
                layout, site_base, ..
            } => {
                let groups = fold(
                    grid,
                    self.kernel.shared.limits.max_compute_workgroups_per_dimension,
                )
                .ok_or_else(|| self.too_many(grid))?;
                (self.pack(layout, *site_base, grid, args)?, groups)
            }
            Convention::Plain => (plain_values(args), grid.to_array()),
        };
        let pipeline = self.kernel.pipeline(&self.name, block, shared_mem as u32)?;
        stream.core().launch(Dispatch {
            pipeline,
            kernel: Arc::clone(&self.kernel),
            buffers,
            args,
            groups,
        })
    }
}

impl Function {
    #[cold]
    fn too_many(&self, grid: Dim3) -> Error {
        let most = u64::from(self.kernel.shared.limits.max_compute_workgroups_per_dimension);
        Error::LaunchLimit {
            backend: BackendKind::Wgpu,
            kernel: self.name.clone(),
            what: "grid size (x * y * z)",
            found: grid.count(),
            limit: most * most,
        }
    }

    /// Fills the argument block.
    fn pack(
        &self,
        layout: &ArgsLayout,
        site_base: u32,
        grid: Dim3,
        args: &[KernelArg<'_>],
    ) -> Result<Vec<u8>> {
        let mut block = vec![0u8; layout.words as usize * 4];
        let mut put = |at: u32, bytes: &[u8]| block[at as usize * 4..][..bytes.len()].copy_from_slice(bytes);
        for (i, count) in grid.to_array().into_iter().enumerate() {
            put(ArgsLayout::GRID + i as u32, &count.to_le_bytes());
        }
        put(ArgsLayout::SITE_BASE, &site_base.to_le_bytes());
        let params = self.signature().map(Signature::params).into_iter().flatten();
        for (i, ((param, arg), at)) in params.zip(args).zip(&layout.params).enumerate() {
            match (&param.kind, arg) {
                (ParamKind::Buffer { element, .. }, KernelArg::Buffer(b)) => {
                    let size = u64::from(element.size().max(1));
                    if !b.ptr.offset().is_multiple_of(size) && b.len != 0 {
                        return Err(Error::Alignment {
                            operation: "launch",
                            subject: format!("argument {i} of kernel `{}`", self.name),
                            found: b.ptr.offset(),
                            needed: size,
                        });
                    }
                    let number = |value: u64| {
                        u32::try_from(value)
                            .map(u32::to_le_bytes)
                            .map_err(|_| Error::Limit {
                                what: "elements of a buffer as a kernel argument",
                                found: value,
                                limit: u32::MAX.into(),
                                remedy: "launch over parts of the buffer",
                            })
                    };
                    put(*at, &number(b.len)?);
                    put(at + 1, &number(b.ptr.offset() / size)?);
                }
                (ParamKind::Value(ty), KernelArg::Value(value)) => put(*at, value.bytes_for(ty)),
                _ => {}
            }
        }
        Ok(block)
    }
}

/// Value arguments of a text kernel: each from a word on, padded to a multiple of 16 bytes.
fn plain_values(args: &[KernelArg<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for arg in args {
        if let KernelArg::Value(value) = arg {
            out.extend_from_slice(value.bytes());
            out.resize(out.len().next_multiple_of(4), 0);
        }
    }
    out.resize(out.len().next_multiple_of(16), 0);
    out
}

/// Folds a grid over two dimensions of at most `most` groups each: group `(x, y)` has the linear index `x + y * width`;
/// those at or past the grid's count do nothing. `None` when there are too many groups.
fn fold(grid: Dim3, most: u32) -> Option<[u32; 3]> {
    let count = grid.count();
    let rows = count.div_ceil(most.max(1).into());
    let width = count.div_ceil(rows.max(1));
    let rows = u32::try_from(rows).ok().filter(|r| *r <= most)?;
    Some([width as u32, rows, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_grid_covers_all_groups_and_wastes_less_than_a_row() {
        let check = |grid: Dim3, expect: Option<[u32; 3]>| assert_eq!(fold(grid, 65_535), expect);
        check(Dim3::new(1, 1, 1), Some([1, 1, 1]));
        check(Dim3::new(65_535, 1, 1), Some([65_535, 1, 1]));
        check(Dim3::new(65_536, 1, 1), Some([32_768, 2, 1]));
        check(Dim3::new(256, 256, 3), Some([49_152, 4, 1]));
        check(Dim3::new(u32::MAX, 2, 1), None);
    }
}
