//! What is checked of a launch, once, in front of every backend. Must not know backends.

use crate::backend::{GpuStream, Launch, check_owner};
use crate::device::Device;
use crate::dim::{Dim3, LaunchConfig};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::overlap::overlaps;
use crate::signature::{KernelArg, Signature};

/// Checks a launch and submits it.
pub(crate) fn launch(
    device: &Device,
    stream: &dyn GpuStream,
    kernel: &Kernel,
    config: &LaunchConfig,
    args: &[KernelArg<'_>],
) -> Result<()> {
    let Some(signature) = kernel.signature() else {
        return Err(Error::Unchecked {
            kernel: kernel.name().to_owned(),
            given: kernel.form(),
        });
    };
    signature.check(args)?;
    check_owners(device, stream, kernel, args)?;
    check_shape(device, kernel, Some(signature), config)?;
    let overlaps = overlaps(args);
    signature.check_overlaps(&overlaps)?;
    let launch = Launch {
        config: *config,
        overlaps: &overlaps,
    };
    // SAFETY: the arguments passed the signature's checks, of what they share, too; `check_owners` established that all belong
    // to one context, and `check_shape` that the launch is inside the limits and of the block size that the kernel demands.
    unsafe { kernel.function().launch(&launch, stream, args) }
}

/// Checks what can be checked without a signature, and submits the launch.
///
/// # Safety
/// `args` are what the kernel's text expects, and the text accesses memory only inside the buffers given to it.
pub(crate) unsafe fn launch_unchecked(
    device: &Device,
    stream: &dyn GpuStream,
    kernel: &Kernel,
    config: &LaunchConfig,
    args: &[KernelArg<'_>],
) -> Result<()> {
    if kernel.signature().is_some() {
        return launch(device, stream, kernel, config, args);
    }
    check_owners(device, stream, kernel, args)?;
    check_shape(device, kernel, None, config)?;
    let launch = Launch {
        config: *config,
        overlaps: &overlaps(args),
    };
    // SAFETY: the caller vouches for arguments and text; owners and limits were checked above.
    unsafe { kernel.function().launch(&launch, stream, args) }
}

fn check_owners(
    device: &Device,
    stream: &dyn GpuStream,
    kernel: &Kernel,
    args: &[KernelArg<'_>],
) -> Result<()> {
    let own = device.id();
    check_owner(own, stream.context_id(), "launch", "the stream")?;
    check_owner(own, kernel.function().context_id(), "launch", "the kernel")?;
    for (i, arg) in args.iter().enumerate() {
        if let KernelArg::Buffer(b) = arg
            && b.ptr.context_id() != own
        {
            return Err(Error::WrongDevice {
                operation: "launch",
                subject: format!("argument {i}"),
            });
        }
    }
    Ok(())
}

/// Checks a launch's shape against device and kernel.
pub(crate) fn check_shape(
    device: &Device,
    kernel: &Kernel,
    signature: Option<&Signature>,
    config: &LaunchConfig,
) -> Result<()> {
    let limits = &device.info().limits;
    let exceeds = |what: &'static str, found: u64, limit: u64| Error::LaunchLimit {
        backend: device.backend(),
        kernel: kernel.name().to_owned(),
        what,
        found,
        limit,
    };
    let block = config.block.to_array();
    if let Some(needed) = signature.and_then(Signature::block_size)
        && needed != block
    {
        return Err(Error::BlockSize {
            kernel: kernel.name().to_owned(),
            needed,
            found: block,
        });
    }
    if signature
        .and_then(Signature::stages)
        .is_some_and(|stages| stages.pairs)
        && !config.grid.x.is_multiple_of(2)
    {
        return Err(Error::Cluster {
            kernel: kernel.name().to_owned(),
            grid: config.grid.to_array(),
            cluster: [2, 1, 1],
        });
    }
    const BLOCK: [&str; 3] = ["block size in x", "block size in y", "block size in z"];
    const GRID: [&str; 3] = ["grid size in x", "grid size in y", "grid size in z"];
    for axis in 0..3 {
        if block[axis] == 0 {
            return Err(Error::EmptyBlock {
                kernel: kernel.name().to_owned(),
                found: block,
            });
        }
        if block[axis] > limits.max_block[axis] {
            return Err(exceeds(
                BLOCK[axis],
                block[axis].into(),
                limits.max_block[axis].into(),
            ));
        }
        let grid = config.grid.to_array()[axis];
        if grid > limits.max_grid[axis] {
            return Err(exceeds(GRID[axis], grid.into(), limits.max_grid[axis].into()));
        }
    }
    let lanes = config.block.count();
    let most = kernel.max_threads_per_block().min(limits.max_threads_per_block);
    if lanes > u64::from(most) {
        return Err(exceeds("block size (x * y * z)", lanes, most.into()));
    }
    let fixed = signature.map_or(0, Signature::shared_bytes);
    let shared = u64::from(fixed) + u64::from(config.shared_bytes);
    if shared > u64::from(limits.shared_bytes_per_block) {
        let limit = limits.shared_bytes_per_block.into();
        return Err(exceeds(
            "shared memory in bytes (fixed and dynamic)",
            shared,
            limit,
        ));
    }
    if config.cluster != Dim3::ONE || config.cooperative {
        check_together(device, kernel, config)?;
    }
    Ok(())
}

/// Checks what a launch asks for of blocks that run at the same time.
#[cold]
fn check_together(device: &Device, kernel: &Kernel, config: &LaunchConfig) -> Result<()> {
    let (backend, limits) = (device.backend(), &device.info().limits);
    if config.cooperative && !limits.cooperative {
        return Err(Error::Unsupported {
            backend,
            operation: "have all blocks of a launch on the device at the same time",
            remedy: "divide the kernel where its blocks wait for each other, and launch the parts without `cooperative`",
        });
    }
    if config.cluster == Dim3::ONE {
        return Ok(());
    }
    if limits.max_cluster <= 1 {
        return Err(Error::Unsupported {
            backend,
            operation: "launch clusters of blocks",
            remedy: "launch without `with_cluster`, or on an NVIDIA GPU of compute capability 9.0 or later",
        });
    }
    let (grid, cluster) = (config.grid.to_array(), config.cluster.to_array());
    if grid
        .iter()
        .zip(cluster)
        .any(|(grid, cluster)| cluster == 0 || grid % cluster != 0)
    {
        return Err(Error::Cluster {
            kernel: kernel.name().to_owned(),
            grid,
            cluster,
        });
    }
    if config.cluster.count() > u64::from(limits.max_cluster) {
        return Err(Error::LaunchLimit {
            backend,
            kernel: kernel.name().to_owned(),
            what: "cluster size (x * y * z)",
            found: config.cluster.count(),
            limit: limits.max_cluster.into(),
        });
    }
    Ok(())
}
