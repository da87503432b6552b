//! What a runtime says of itself: its backend, and how it ended. Must not know engines.

use super::{Backend, PerpetuaRuntime};
use crate::error::Result;

/// The backend that a runtime has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Which.
    pub kind: Backend,
    pub(super) stays: bool,
    pub(super) reaches_peers: bool,
    pub(super) through_host: u64,
}

impl BackendInfo {
    /// Whether handlers stay where they run and wait for messages there; else batches of messages are launched until all are
    /// handled.
    pub fn stays(&self) -> bool {
        self.stays
    }

    /// Whether actors of its devices put what they send each other into the other device's memory
    /// ([`RuntimeBuilder::peer_memory`](super::RuntimeBuilder::peer_memory)).
    pub fn reaches_peers(&self) -> bool {
        self.reaches_peers
    }

    /// Messages from device to device that went through the host until now.
    pub fn through_host(&self) -> u64 {
        self.through_host
    }
}

/// What a shutdown found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Whether all messages of active actors were handled in time.
    pub drained: bool,
    /// Messages that no handler has handled, ever since the runtime was built; each was reported.
    pub dead_letters: u64,
}

/// The runtime on the CPU.
pub struct CpuRuntime;

impl CpuRuntime {
    /// A runtime on the CPU, with all settings at their defaults.
    ///
    /// # Errors
    /// No thread could be started.
    #[expect(
        clippy::new_ret_no_self,
        reason = "the name that users know; there is one type of runtime"
    )]
    pub async fn new() -> Result<PerpetuaRuntime> {
        PerpetuaRuntime::builder().build().await
    }
}
