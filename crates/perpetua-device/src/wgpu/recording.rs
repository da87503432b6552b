//! Work that a stream has recorded and not submitted yet, with its block of kernel arguments.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::launch::Dispatch;
use super::shared::Shared;
use super::signal::Signal;
use crate::backend::Captured;
use crate::error::{Error, Result};
use crate::fault::SiteRange;
use crate::ptr::DevicePtr;

/// Bytes of kernel arguments in one submission; a full block is submitted.
const ARGS_BYTES: u64 = 256 << 10;

/// One step of a graph.
pub(super) enum Command {
    Launch(Dispatch),
    Copy(DevicePtr, DevicePtr),
    Fill(DevicePtr, Vec<u8>),
}

/// Something that the host does when a submission has ended: bytes go to host memory, a fault is noted.
#[derive(Clone)]
pub(super) struct Afterwards {
    pub(super) done: Arc<Signal>,
    /// Addresses that it writes.
    pub(super) writes: Range<usize>,
}

/// Addresses of host memory; none for device memory.
pub(super) fn addresses(ptr: &DevicePtr) -> Range<usize> {
    ptr.host_ptr().map_or(0..0, |p| {
        let start = p.as_ptr() as usize;
        start..start + ptr.len() as usize
    })
}

/// Work recorded and not submitted yet.
pub(super) struct Recording {
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<wgpu::ComputePass<'static>>,
    args: Vec<u8>,
    args_buffer: wgpu::Buffer,
    held: Vec<DevicePtr>,
    /// Sites of the launches that can fault and were recorded since faults were last looked for, by base.
    pub(super) may_fault: BTreeMap<u32, Arc<SiteRange>>,
    /// The last submission, if there was one.
    pub(super) last: Option<wgpu::SubmissionIndex>,
    /// What the host does after submissions and had not done when last looked at.
    pub(super) afterwards: Vec<Afterwards>,
    /// The graph being captured.
    pub(super) capture: Option<Captured<Command>>,
}

impl Recording {
    pub(super) fn new(shared: &Shared) -> Recording {
        Recording {
            encoder: None,
            pass: None,
            args: Vec::new(),
            args_buffer: shared.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("arguments"),
                size: ARGS_BYTES,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
            held: Vec::new(),
            may_fault: BTreeMap::new(),
            last: None,
            afterwards: Vec::new(),
            capture: None,
        }
    }

    /// Keeps memory from being used for something else until the work recorded here is submitted.
    pub(super) fn hold(&mut self, ptr: &DevicePtr) {
        self.held.push(ptr.clone());
    }

    /// Tells that a launch with these sites is recorded.
    pub(super) fn may_fault(&mut self, sites: &Arc<SiteRange>) {
        let known = self.may_fault.entry(sites.base());
        known.or_insert_with(|| Arc::clone(sites));
    }

    /// The encoder, outside any pass.
    pub(super) fn encoder(&mut self, shared: &Shared) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.open(shared)
    }

    fn open(&mut self, shared: &Shared) -> &mut wgpu::CommandEncoder {
        let make = || {
            shared
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
        };
        self.encoder.get_or_insert_with(make)
    }

    /// The open compute pass.
    pub(super) fn pass(&mut self, shared: &Shared) -> &mut wgpu::ComputePass<'static> {
        let pass = match self.pass.take() {
            Some(pass) => pass,
            None => self
                .open(shared)
                .begin_compute_pass(&wgpu::ComputePassDescriptor::default())
                .forget_lifetime(),
        };
        self.pass.insert(pass)
    }

    pub(super) fn args_buffer(&self) -> &wgpu::Buffer {
        &self.args_buffer
    }

    /// Adds an argument block and gives its offset. Submits what is recorded when there is no room.
    pub(super) fn push_args(&mut self, shared: &Shared, bytes: &[u8]) -> Result<u32> {
        let alignment = shared.limits.min_uniform_buffer_offset_alignment.max(16) as usize;
        let most = shared.limits.max_uniform_buffer_binding_size.min(ARGS_BYTES);
        if bytes.len() as u64 > most {
            return Err(Error::Limit {
                what: "bytes of kernel arguments",
                found: bytes.len() as u64,
                limit: most,
                remedy: "pass large values in a buffer",
            });
        }
        let mut start = self.args.len().next_multiple_of(alignment);
        if (start + bytes.len()) as u64 > ARGS_BYTES {
            self.submit(shared);
            start = 0;
        }
        self.args.resize(start, 0);
        self.args.extend_from_slice(bytes);
        Ok(start as u32)
    }

    /// Submits what is recorded.
    pub(super) fn submit(&mut self, shared: &Shared) {
        self.pass = None;
        let Some(encoder) = self.encoder.take() else {
            return;
        };
        if !self.args.is_empty() {
            self.args.resize(self.args.len().next_multiple_of(4), 0);
            shared.queue.write_buffer(&self.args_buffer, 0, &self.args);
            self.args.clear();
        }
        self.last = Some(shared.queue.submit([encoder.finish()]));
        self.held.clear();
    }

    /// What the host has not done yet.
    pub(super) fn pending(&mut self) -> &[Afterwards] {
        self.afterwards.retain(|a| a.done.get().is_none());
        &self.afterwards
    }
}
