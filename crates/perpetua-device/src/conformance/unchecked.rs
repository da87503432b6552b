//! Cells of kernels without fault checks: refused, unless somebody answers for them.

use std::sync::Arc;

use perpetua_ir::ir::Kernel;
use perpetua_ir::ir::text::ParseError;
use perpetua_ir::verify::{Verified, verify};

use super::{Cell, Check, Failure, Need, fails, same};
use crate::args;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::error::Error;
use crate::native::NativeKernel;
use crate::source::{CompileOptions, KernelId, KernelSource, KernelSpec};

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for checks in ["off", "explicit"] {
        cells.push(Cell::new(
            format!("unchecked/checks({checks}) is refused"),
            move |d| refused(d, checks),
        ));
        let trusted = Cell::new(
            format!("unchecked/checks({checks}), somebody answers for it"),
            move |d| trusted(d, checks),
        );
        cells.push(trusted.needs(Need::Compute));
    }
    cells
}

// Stores each lane's number at its own index, whatever the buffer's length.
fn text(checks: &str) -> String {
    format!(
        "kernel far(out: buffer<u32, read_write>) checks({checks}) {{\n  \
         %0: u32 = thread_idx.x\n  store out[%0], %0\n}}\n"
    )
}

fn read(checks: &str) -> Result<Verified, Failure> {
    let kernel: Kernel = text(checks)
        .parse()
        .map_err(|e: ParseError| Failure(e.to_string()))?;
    verify(kernel).map_err(|e| Failure(e.to_string()))
}

// A kernel as programs carry one, written in safe Rust.
struct Carried(Arc<Verified>);

// SAFETY: the id is a hash of the kernel's text and of whether somebody answers for it, which is all there is.
unsafe impl KernelSpec for Carried {
    fn name(&self) -> &str {
        "far"
    }

    fn id(&self) -> KernelId {
        let text = self.0.kernel().to_string();
        KernelId::of(&[b"carried", &[self.0.is_safe().into()], text.as_bytes()])
    }

    fn verified(&self, _: u32) -> crate::Result<Arc<Verified>> {
        Ok(Arc::clone(&self.0))
    }

    fn native(&self) -> Option<NativeKernel> {
        None
    }
}

fn refused(device: &Device, declared: &str) -> Check {
    let is_refused = |e: &Error| matches!(e, Error::ChecksLeftOut { kernel, checks } if kernel == "far" && *checks == declared);
    let (text, options) = (text(declared), CompileOptions::default());
    fails(
        "IR text",
        device.compile(&KernelSource::IrText(&text), &options).map(drop),
        is_refused,
    )?;
    let verified = read(declared)?;
    fails("IR", device.compile_ir(&verified).map(drop), is_refused)?;
    let carried = Carried(Arc::new(verified));
    fails("a carried kernel", device.kernel(&carried).map(drop), is_refused)
}

fn trusted(device: &Device, checks: &str) -> Check {
    // SAFETY: the launches below have four lanes for four elements, and the kernel does nothing else that faults.
    let verified = unsafe { read(checks)?.trust() };
    let carried = Carried(Arc::new(verified.clone()));
    for kernel in [device.compile_ir(&verified)?, device.kernel(&carried)?] {
        let out = device.full(4, 9u32)?;
        device.launch(&kernel, LaunchConfig::new(1, 4), args![&out])?;
        same("lanes", out.read()?, vec![0, 1, 2, 3])?;
    }
    Ok(())
}
