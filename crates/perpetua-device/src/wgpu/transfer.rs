//! Copies and fills at any byte offset and length. wgpu's own take multiples of four only; the rest goes through two
//! small kernels in which each lane owns one destination word, so that bytes beside the range keep their values.

use std::sync::Arc;

use super::memory::{Memory, Pool};
use super::recording::Recording;
use super::shared::{Shared, driver};
use crate::error::Result;
use crate::ptr::DevicePtr;

/// Lanes per work-group of both kernels.
const LANES: u64 = 64;

const SOURCE: &str = "
struct Move { to: u32, len: u32, from_byte: u32, width: u32, pattern: vec4<u32> }
@group(0) @binding(0) var<storage, read_write> destination: array<u32>;
@group(0) @binding(1) var<storage, read_write> source: array<u32>;
@group(0) @binding(2) var<uniform> move_: Move;

fn mask_of(word: u32) -> u32 {
    // Bytes of destination word `word` that lie in the range, as a mask; `to` is the range's first byte.
    var mask = 0u;
    for (var b = 0u; b < 4u; b++) {
        let at = word * 4u + b;
        if at >= move_.to && at - move_.to < move_.len { mask |= 0xffu << (8u * b); }
    }
    return mask;
}

fn word_index(group: vec3<u32>, lane: u32) -> u32 {
    return move_.to / 4u + (group.x + group.y * move_.width) * 64u + lane;
}

@compute @workgroup_size(64) fn copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = word_index(group, lane);
    let mask = mask_of(word);
    if mask == 0u { return; }
    // Source byte under this word's first byte; it may lie before the range, where its value does not count.
    let at = word * 4u - move_.to + move_.from_byte;
    let shift = (at & 3u) * 8u;
    let low_index = bitcast<u32>(bitcast<i32>(at) >> 2u);
    var value = 0u;
    let last = arrayLength(&source) - 1u;
    if low_index <= last { value = source[low_index] >> shift; }
    if shift != 0u && low_index + 1u <= last { value |= source[low_index + 1u] << (32u - shift); }
    destination[word] = (destination[word] & ~mask) | (value & mask);
}

@compute @workgroup_size(64) fn fill(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = word_index(group, lane);
    let mask = mask_of(word);
    if mask == 0u { return; }
    var value = 0u;
    for (var b = 0u; b < 4u; b++) {
        let i = (word * 4u + b - move_.to) & 15u;
        value |= ((move_.pattern[i / 4u] >> (8u * (i & 3u))) & 0xffu) << (8u * b);
    }
    destination[word] = (destination[word] & ~mask) | (value & mask);
}
";

/// The pipelines that move bytes.
pub(super) struct Movers {
    shared: Arc<Shared>,
    copy: wgpu::ComputePipeline,
    fill: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    /// Stands for the source of a fill.
    nothing: wgpu::Buffer,
}

impl Movers {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Movers> {
        let device = &shared.device;
        let storage = wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        };
        let uniform = wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Uniform,
            has_dynamic_offset: true,
            min_binding_size: None,
        };
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty,
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("move bytes"),
            entries: &[entry(0, storage), entry(1, storage), entry(2, uniform)],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("move bytes"),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let ((copy, fill), error) = shared.scoped(wgpu::ErrorFilter::Validation, || {
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some("move bytes"),
                source: wgpu::ShaderSource::Wgsl(SOURCE.into()),
            });
            let pipeline = |entry| {
                device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: Some(entry),
                    layout: Some(&pipeline_layout),
                    module: &module,
                    entry_point: Some(entry),
                    compilation_options: wgpu::PipelineCompilationOptions::default(),
                    cache: None,
                })
            };
            (pipeline("copy"), pipeline("fill"))
        });
        if let Some(error) = error {
            return Err(driver("compiling the copy kernels", error.to_string()));
        }
        let nothing = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("nothing"),
            size: 16,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        });
        Ok(Movers {
            shared: Arc::clone(shared),
            copy,
            fill,
            layout,
            nothing,
        })
    }

    /// Records a copy between two places of equal length in device memory.
    pub(super) fn copy(&self, rec: &mut Recording, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        let (Some(from), Some(to)) = (src.downcast::<Memory>(), dst.downcast::<Memory>()) else {
            return Ok(());
        };
        rec.hold(src);
        rec.hold(dst);
        let aligned = (src.offset() | dst.offset() | src.len()).is_multiple_of(4);
        if aligned && from.buffer != to.buffer {
            let (from, to) = (&from.buffer, &to.buffer);
            rec.encoder(&self.shared)
                .copy_buffer_to_buffer(from, src.offset(), to, dst.offset(), src.len());
            return Ok(());
        }
        self.dispatch(rec, &self.copy, dst, Some((&from.buffer, src.offset())), [0; 4])
    }

    /// Records a fill with a pattern of 1, 2, 4, 8 or 16 bytes.
    pub(super) fn fill(&self, rec: &mut Recording, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        let Some(to) = dst.downcast::<Memory>() else {
            return Ok(());
        };
        rec.hold(dst);
        if (dst.offset() | dst.len()).is_multiple_of(4) && pattern.iter().all(|b| *b == 0) {
            rec.encoder(&self.shared)
                .clear_buffer(&to.buffer, dst.offset(), Some(dst.len()));
            return Ok(());
        }
        let mut words = [0u8; 16];
        for (i, byte) in words.iter_mut().enumerate() {
            *byte = pattern[i % pattern.len()];
        }
        self.dispatch(rec, &self.fill, dst, None, bytemuck::cast(words))
    }

    /// Records one of the kernels over the words of `dst`, from a byte of `source` on, in parts that 32-bit byte offsets can
    /// address.
    fn dispatch(
        &self,
        rec: &mut Recording,
        pipeline: &wgpu::ComputePipeline,
        dst: &DevicePtr,
        source: Option<(&wgpu::Buffer, u64)>,
        pattern: [u32; 4],
    ) -> Result<()> {
        let Some(to) = dst.downcast::<Memory>() else {
            return Ok(());
        };
        // A multiple of 16, so that patterns go on unbroken.
        const PART: u64 = 1 << 30;
        let alignment = u64::from(self.shared.limits.min_storage_buffer_offset_alignment).max(16);
        let mut done = 0;
        while done < dst.len() {
            let len = (dst.len() - done).min(PART);
            let to_byte = dst.offset() + done;
            let (source, from) = source.map_or((&self.nothing, 0), |(buffer, byte)| (buffer, byte + done));
            let to_start = to_byte / alignment * alignment;
            let from_start = from / alignment * alignment;
            let words = (to_byte % 4 + len).div_ceil(4);
            let groups = words.div_ceil(LANES);
            let most = u64::from(self.shared.limits.max_compute_workgroups_per_dimension);
            let (width, height) = (groups.min(most), groups.div_ceil(most));
            let args: [u32; 8] = [
                (to_byte - to_start) as u32,
                len as u32,
                (from - from_start) as u32,
                width as u32,
                pattern[0],
                pattern[1],
                pattern[2],
                pattern[3],
            ];
            let offset = rec.push_args(&self.shared, bytemuck::cast_slice(&args))?;
            let rest = |buffer: &wgpu::Buffer, start: u64, need: u64| {
                std::num::NonZeroU64::new((buffer.size() - start).min(need.next_multiple_of(4).max(4)))
            };
            let binding = |buffer, start, need| {
                wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: start,
                    size: rest(buffer, start, need),
                })
            };
            let group = self.shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &self.layout,
                entries: &[
                    wgpu::BindGroupEntry {
                        binding: 0,
                        resource: binding(&to.buffer, to_start, to_byte - to_start + len + 4),
                    },
                    wgpu::BindGroupEntry {
                        binding: 1,
                        resource: binding(source, from_start, from - from_start + len + 4),
                    },
                    wgpu::BindGroupEntry {
                        binding: 2,
                        resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                            buffer: rec.args_buffer(),
                            offset: 0,
                            size: std::num::NonZeroU64::new(32),
                        }),
                    },
                ],
            });
            let pass = rec.pass(&self.shared);
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[offset]);
            pass.dispatch_workgroups(width as u32, height as u32, 1);
            done += len;
        }
        Ok(())
    }

    /// Writes host bytes to device memory by way of the queue; nothing may be recorded in front.
    pub(super) fn write(
        &self,
        rec: &mut Recording,
        bytes: &[u8],
        dst: &DevicePtr,
        pool: &Arc<Pool>,
    ) -> Result<()> {
        let Some(to) = dst.downcast::<Memory>() else {
            return Ok(());
        };
        if (dst.offset() | bytes.len() as u64).is_multiple_of(4) {
            self.shared.queue.write_buffer(&to.buffer, dst.offset(), bytes);
            return Ok(());
        }
        // Beside it first, and then by the kernel to where it belongs.
        let beside = pool.allocate(bytes.len() as u64)?;
        if let Some(memory) = beside.downcast::<Memory>() {
            let mut padded = bytes.to_vec();
            padded.resize(bytes.len().next_multiple_of(4), 0);
            self.shared.queue.write_buffer(&memory.buffer, 0, &padded);
        }
        self.copy(rec, &beside, dst)
    }
}
