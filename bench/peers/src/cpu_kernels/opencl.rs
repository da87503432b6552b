//! OpenCL on the CPU: finds it at run time, builds a kernel, launches it. The library is loaded when first used, so programs start
//! without it. Knows no kernel.

use std::ptr;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_CPU, Device};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::CL_BLOCKING;

use super::rows::Row;

type Error = Box<dyn std::error::Error>;

/// An OpenCL device that is the CPU.
pub(super) struct OpenCl {
    context: Context,
    queue: CommandQueue,
    /// The platform's and the device's own words.
    pub(super) name: String,
}

impl OpenCl {
    /// The first there is; POCL before others.
    pub(super) fn open() -> Result<OpenCl, Error> {
        let mut platforms = Vec::new();
        for platform in get_platforms().map_err(|e| format!("no OpenCL library or platform: {e}"))? {
            platforms.push((platform.name()?, platform));
        }
        platforms.sort_by_key(|(name, _)| !name.contains("Portable Computing Language"));
        for (name, platform) in platforms {
            // A platform without a CPU answers with an error.
            let Some(id) = platform
                .get_devices(CL_DEVICE_TYPE_CPU)
                .ok()
                .and_then(|ids| ids.first().copied())
            else {
                continue;
            };
            let device = Device::new(id);
            let context = Context::from_device(&device)?;
            // The older call, which all platforms have.
            #[allow(deprecated)]
            let queue = CommandQueue::create_default(&context, 0)?;
            let name = format!("{name}, {}: {}", platform.version()?, device.name()?);
            return Ok(OpenCl { context, queue, name });
        }
        Err("no OpenCL platform has a CPU".into())
    }

    /// The row's kernel, ready to be launched on this input and an output of zeros.
    pub(super) fn prepare<'a>(&'a self, row: &'static Row, input: &[f32]) -> Result<Prepared<'a>, Error> {
        let program = Program::create_and_build_from_source(&self.context, row.opencl, "")
            .map_err(|log| format!("{} in OpenCL C: {log}", row.name))?;
        let buffer = |len| {
            // SAFETY: no memory of ours is given.
            unsafe { Buffer::<f32>::create(&self.context, CL_MEM_READ_WRITE, len, ptr::null_mut()) }
        };
        let (mut x, mut y) = (buffer(row.input)?, buffer(row.output)?);
        let zeros = vec![0.0; row.output];
        // SAFETY: both are as long as their slices, and the calls return when the slices have been read.
        unsafe {
            self.queue
                .enqueue_write_buffer(&mut x, CL_BLOCKING, 0, input, &[])?;
            self.queue
                .enqueue_write_buffer(&mut y, CL_BLOCKING, 0, &zeros, &[])?;
        }
        Ok(Prepared {
            queue: &self.queue,
            kernel: Kernel::create(&program, "k")?,
            row,
            x,
            y,
        })
    }
}

/// A kernel and its buffers.
pub(super) struct Prepared<'a> {
    queue: &'a CommandQueue,
    kernel: Kernel,
    row: &'static Row,
    x: Buffer<f32>,
    y: Buffer<f32>,
}

impl Prepared<'_> {
    /// One launch, waited for.
    pub(super) fn launch(&self) -> Result<(), Error> {
        let (grid, block) = (self.row.grid, self.row.block);
        let sizes = [0, 1].map(|axis| grid[axis] as usize * block[axis] as usize);
        // SAFETY: the arguments are those of the row's text, whose indices stay within the row's sizes.
        unsafe {
            ExecuteKernel::new(&self.kernel)
                .set_arg(&self.x)
                .set_arg(&self.y)
                .set_arg(&(self.row.n as u64))
                .set_arg(&self.row.factor)
                .set_global_work_sizes(&sizes)
                .set_local_work_sizes(&block.map(|n| n as usize))
                .enqueue_nd_range(self.queue)?;
        }
        Ok(self.queue.finish()?)
    }

    /// The output as it is now.
    pub(super) fn output(&self) -> Result<Vec<f32>, Error> {
        let mut output = vec![0.0; self.row.output];
        // SAFETY: the buffer is as long as the slice, and the call returns when that is written.
        unsafe {
            self.queue
                .enqueue_read_buffer(&self.y, CL_BLOCKING, 0, &mut output, &[])?
        };
        Ok(output)
    }
}
