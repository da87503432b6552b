//! The null backend: the whole contract without hardware. Memory is the host's ([`crate::host`]) and copies move it; launches
//! are checked, written to a log, and compute nothing. It proves that the contract needs no device, and lets tests see what a
//! program would do.

mod compile;
mod device;
mod launch;
mod stream;

use crate::backend::GpuBackend;
use crate::future::ready;
use crate::info::BackendKind;
use crate::select::BackendEntry;

pub use device::{NullBackend, NullContext};
pub use launch::NullLaunch;

/// Its place in the choice: taken by its name only.
pub(crate) const ENTRY: BackendEntry = BackendEntry {
    kind: BackendKind::Null,
    order: None,
    emulates: false,
    open: |_| {
        let backend: Box<dyn GpuBackend> = Box::new(NullBackend::new());
        ready(Ok(backend))
    },
};
