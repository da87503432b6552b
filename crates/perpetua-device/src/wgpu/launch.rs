//! Kernels and their launches: bindings, argument blocks, dispatches.

use std::any::Any;
use std::num::NonZeroU64;
use std::sync::Arc;

use perpetua_ir::back::ArgsLayout;
use perpetua_ir::ir::ParamKind;

use super::compile::{Checked, Loaded, Program};
use super::core::StreamCore;
use super::memory::Memory;
use super::recording::{Command, Recording};
use super::shared::driver;
use super::stream::Stream;
use crate::backend::{GpuStream, KernelFunction, Launch};
use crate::dim::{Dim3, LaunchConfig};
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::ptr::{ContextId, DevicePtr};
use crate::signature::{KernelArg, Signature};

/// One launch, ready to be recorded any number of times.
pub(super) struct Dispatch {
    pipeline: wgpu::ComputePipeline,
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
        let (group, offsets) = match &self.kernel.program {
            Program::Checked(checked) => {
                if checked.can_fault {
                    rec.may_fault(&checked.sites);
                }
                (
                    checked.group(core, rec.args_buffer(), &self.buffers),
                    Some(offset),
                )
            }
            Program::Text { .. } => (self.text_group(rec.args_buffer(), offset)?, None),
        };
        self.buffers.iter().for_each(|b| rec.hold(b));
        let pass = rec.pass(shared);
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, offsets.as_slice());
        let [x, y, z] = self.groups;
        pass.dispatch_workgroups(x, y, z);
        Ok(())
    }

    /// Bindings of a text kernel: each buffer from its own first byte, then the values.
    fn text_group(&self, args: &wgpu::Buffer, offset: u32) -> Result<wgpu::BindGroup> {
        let part = |buffer, offset, len| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset,
                size: NonZeroU64::new(len),
            })
        };
        let buffers = self.buffers.iter().filter_map(|ptr| {
            let memory = ptr.downcast::<Memory>()?;
            // Whole words; an empty buffer has one, which the pool's sizes leave room for, but for one at the end.
            let start = ptr.offset().min(memory.buffer.size() - 4);
            Some(part(&memory.buffer, start, ptr.len().next_multiple_of(4).max(4)))
        });
        let values = (!self.args.is_empty()).then(|| part(args, offset.into(), self.args.len() as u64));
        let entries: Vec<_> = buffers
            .chain(values)
            .enumerate()
            .map(|(i, resource)| wgpu::BindGroupEntry {
                binding: i as u32,
                resource,
            })
            .collect();
        let shared = &self.kernel.shared;
        let (group, error) = shared.scoped(wgpu::ErrorFilter::Validation, || {
            shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &self.pipeline.get_bind_group_layout(0),
                entries: &entries,
            })
        });
        error.map_or(Ok(group), |e| {
            Err(driver("binding the arguments of a WGSL kernel", e.to_string()))
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
        match &self.kernel.program {
            Program::Checked(checked) => Some(&checked.signature),
            Program::Text { .. } => None,
        }
    }

    fn max_threads_per_block(&self) -> u32 {
        self.kernel.shared.limits.max_compute_invocations_per_workgroup
    }

    unsafe fn launch(
        &self,
        launch: &Launch<'_>,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
            ..
        } = launch.config;
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
        let limits = &self.kernel.shared.limits;
        let most = limits.max_compute_workgroups_per_dimension;
        let (args, groups) = match &self.kernel.program {
            Program::Checked(checked) => {
                let groups =
                    fold(grid, most).ok_or_else(|| self.too_many(grid.count(), u64::from(most).pow(2)))?;
                (self.pack(checked, grid, args)?, groups)
            }
            Program::Text { .. } => {
                let largest = grid.to_array().into_iter().max().unwrap_or(0);
                if largest > most {
                    return Err(self.too_many(largest.into(), most.into()));
                }
                let alignment = u64::from(limits.min_storage_buffer_offset_alignment);
                if let Some(i) = buffers.iter().position(|b| !b.offset().is_multiple_of(alignment)) {
                    return Err(self.misaligned(i, buffers[i].offset(), alignment));
                }
                (text_values(args), grid.to_array())
            }
        };
        let distinct = match &self.kernel.program {
            Program::Checked(checked) => !checked.depends_on_overlaps || launch.overlaps.is_empty(),
            Program::Text { .. } => false,
        };
        let pipeline = self.kernel.pipeline(&self.name, block, shared_bytes, distinct)?;
        stream.core().submit(Command::Launch(Dispatch {
            pipeline,
            kernel: Arc::clone(&self.kernel),
            buffers,
            args,
            groups,
        }))
    }
}

impl Function {
    #[cold]
    fn too_many(&self, found: u64, limit: u64) -> Error {
        Error::LaunchLimit {
            backend: BackendKind::Wgpu,
            kernel: self.name.clone(),
            what: "number of work-groups",
            found,
            limit,
        }
    }

    #[cold]
    fn misaligned(&self, argument: usize, found: u64, needed: u64) -> Error {
        Error::Alignment {
            operation: "launch",
            subject: format!("buffer argument {argument} of kernel `{}`", self.name),
            found,
            needed,
        }
    }

    /// Fills the argument block.
    fn pack(&self, checked: &Checked, grid: Dim3, args: &[KernelArg<'_>]) -> Result<Vec<u8>> {
        let layout = &checked.args;
        let mut block = vec![0u8; layout.words as usize * 4];
        let mut put = |at: u32, bytes: &[u8]| block[at as usize * 4..][..bytes.len()].copy_from_slice(bytes);
        for (i, count) in grid.to_array().into_iter().enumerate() {
            put(ArgsLayout::GRID + i as u32, &count.to_le_bytes());
        }
        put(ArgsLayout::SITE_BASE, &checked.sites.base().to_le_bytes());
        for (i, ((param, arg), at)) in checked
            .signature
            .params()
            .zip(args)
            .zip(&layout.params)
            .enumerate()
        {
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
                (ParamKind::Value(ty), KernelArg::Value(value)) => put(*at, &value.bytes_for(ty)),
                _ => {}
            }
        }
        Ok(block)
    }
}

/// Value arguments of a text kernel: each from a word on, padded to a multiple of 16 bytes.
fn text_values(args: &[KernelArg<'_>]) -> Vec<u8> {
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
