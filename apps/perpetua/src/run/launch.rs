//! One launch of a plan on one device. Must not know where the plan comes from.

use perpetua::device::{CompileOptions, Device, DynBuffer, KernelArg, KernelSource, Result, Way};

use super::plan::{Argument, Plan};
use crate::patience::Patience;

/// What each buffer holds afterwards, as numbers. `interpret`: on the CPU, in the interpreter. `patience` is with the launch alone. `begins` is told how
/// the launch will run.
pub(super) fn launch(
    device: &Device,
    plan: &Plan,
    interpret: bool,
    patience: Patience,
    begins: impl FnOnce(Way),
) -> Result<Vec<Vec<u8>>> {
    let options = CompileOptions {
        interpret,
        ..CompileOptions::default()
    };
    let kernel = device
        .compile(&KernelSource::Ir(&plan.kernel), &options)?
        .only()?;
    begins(kernel.way());
    let buffers = plan
        .buffers()
        .map(|b| DynBuffer::upload(device, &b.element, &b.bytes));
    let buffers: Vec<DynBuffer> = buffers.collect::<Result<_>>()?;
    let mut next = buffers.iter();
    let mut arguments = Vec::new();
    for argument in &plan.arguments {
        match argument {
            Argument::Value(ty, bytes) => arguments.push(KernelArg::value(ty, bytes)?),
            Argument::Buffer(_) => arguments.extend(next.next().map(DynBuffer::arg)),
        }
    }
    let waiting = patience.begin(kernel.name());
    device.launch(&kernel, plan.config, &arguments)?;
    device.synchronize()?;
    drop(waiting);
    let read = plan
        .buffers()
        .zip(&buffers)
        .map(|(b, buffer)| Ok(b.numbers.unpack(buffer.read()?)));
    read.collect()
}
