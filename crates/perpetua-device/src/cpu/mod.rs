//! The CPU backend: kernels run on the host's processor, as the native Rust behind them, as machine code generated from IR, or in the
//! lockstep interpreter.
//! Memory is the host's ([`crate::host`]).
//!
//! **Where work runs.** Submission to an idle stream runs small work (below bounds in `stream` and `pace`) at once, on the calling
//! thread: an empty kernel costs no thread switch. Larger work is queued, and run in order by the stream's own thread, or by a
//! thread that waits for the stream, whichever comes first. Kernels are spread over a pool of threads.
//! In a browser there are no threads: all work runs within the call that submits it.

mod batch;
mod claims;
mod code;
mod compile;
mod device;
mod event;
mod floats;
mod graph;
mod launch;
mod pace;
mod ready;
mod simd;
mod stream;
mod team;
mod threads;
mod wavefront;
mod work;

use crate::backend::GpuBackend;
use crate::future::ready;
use crate::info::BackendKind;
use crate::select::BackendEntry;

pub use device::{CpuBackend, CpuContext};

/// Calls a function of the host's own on this thread, and at the same time on those that kernels are spread over; returns when all calls have. On a thread of a pool of rayon's, and where the
/// system gives no threads, it is called once.
pub fn spread(work: &(impl Fn() + crate::MaybeSync)) {
    match threads::may_spread() {
        true => threads::spread(work),
        false => work(),
    }
}

/// Its place in the choice: behind all GPUs.
pub(crate) const ENTRY: BackendEntry = BackendEntry {
    kind: BackendKind::Cpu,
    order: Some(40),
    emulates: false,
    open: |_| {
        let backend: Box<dyn GpuBackend> = Box::new(CpuBackend::new());
        ready(Ok(backend))
    },
};
