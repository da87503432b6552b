//! The cell of device loss. It opens a device of its own and loses that one.

use super::{Cell, Check, fails, open_again, same};
use crate::device::Device;
use crate::error::Error;
use crate::future::block_on;
use crate::info::BackendKind;
use crate::ptr::MemoryKind;

pub(super) fn cells() -> Vec<Cell> {
    vec![Cell::new("loss/every operation says so", every_operation)]
}

fn every_operation(device: &Device) -> Check {
    let doomed = open_again(device)?;
    let stream = doomed.create_stream()?;
    let buffer = doomed.upload(&[1u32, 2, 3])?;
    let event = stream.record()?;
    let graph = stream.capture(|s| s.fill(&buffer, 1))?;
    let pending = buffer.read_async();
    doomed.synchronize()?;
    doomed.lose_device_for_test()?;
    // Submitted before the loss: either it was done, or it says what happened.
    match block_on(pending) {
        Ok(values) => same("read before the loss", values, vec![1, 2, 3])?,
        Err(error) => fails("read in flight", Err::<(), _>(error), Error::is_device_lost)?,
    }
    let lost = Error::is_device_lost;
    fails("allocate", doomed.alloc::<u32>(4), lost)?;
    fails("write", buffer.write(&[0; 3]), lost)?;
    fails("read", buffer.read(), lost)?;
    fails("awaited read", block_on(buffer.read_async()), lost)?;
    fails("fill", stream.fill(&buffer, 1), lost)?;
    fails("record", stream.record(), lost)?;
    fails("event", event.is_complete(), lost)?;
    fails("event's synchronise", event.synchronize(), lost)?;
    fails("graph", stream.launch_graph(&graph), lost)?;
    fails("synchronise", stream.synchronize(), lost)?;
    fails("device's synchronise", doomed.synchronize(), lost)?;
    fails("awaited synchronise", block_on(doomed.synchronize_async()), lost)?;
    fails("new stream", doomed.create_stream(), lost)?;
    fails("trim", doomed.trim(0), lost)?;
    let kernel = super::kernels::index(&doomed);
    fails("compile", kernel.map_err(|f| f.0), |text: &String| {
        text.contains("was lost")
    })?;
    drop((buffer, graph, event, stream, doomed));
    // CUDA's driver gives this process nothing more; elsewhere opening again gives a working device.
    if device.backend() == BackendKind::Cuda {
        let again = Device::new(device.backend(), device.info().index);
        return fails("opening again in this process", again, lost);
    }
    let again = open_again(device)?;
    same("a new device", again.upload(&[5u8])?.read()?, vec![5])?;
    same("peak", again.pool_stats(MemoryKind::Device).peak > 0, true)
}
