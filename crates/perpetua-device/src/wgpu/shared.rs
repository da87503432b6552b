//! What everything made from one context shares: the device, its queue and facts, its health, and waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::signal::Signal;
use crate::error::{Error, Result};
use crate::info::{BackendKind, DeviceInfo};
pub(super) use crate::lock::lock;
use crate::ptr::{ContextId, MemoryKind};

/// A driver error.
pub(super) fn driver(operation: impl Into<String>, message: impl Into<String>) -> Error {
    Error::Driver {
        backend: BackendKind::Wgpu,
        operation: operation.into(),
        message: message.into(),
    }
}

/// Whether the device still is, and what wgpu has complained of.
pub(super) struct Health {
    name: String,
    lost: OnceLock<String>,
    /// The first error that wgpu reported outside an error scope and nobody has been told of.
    uncaught: Mutex<Option<Error>>,
}

impl Health {
    /// Watches a device called `name`.
    pub(super) fn watch(device: &wgpu::Device, name: String) -> Arc<Health> {
        let health = Arc::new(Health {
            name,
            lost: OnceLock::new(),
            uncaught: Mutex::default(),
        });
        let own = Arc::clone(&health);
        device.set_device_lost_callback(move |reason, message| own.lose(format!("{reason:?}: {message}")));
        let own = Arc::clone(&health);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let error = match error {
                wgpu::Error::OutOfMemory { .. } => out_of_memory(0),
                other => driver("submitted work", other.to_string()),
            };
            lock(&own.uncaught).get_or_insert(error);
        }));
        health
    }

    /// Marks the device as lost. The first reason is the one that counts.
    pub(super) fn lose(&self, reason: String) {
        self.lost.get_or_init(|| reason);
    }

    /// An error if the device is lost.
    fn alive(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |reason| {
            Err(Error::DeviceLost {
                backend: BackendKind::Wgpu,
                device: self.name.clone(),
                reason: reason.clone(),
            })
        })
    }

    /// An error if the device is lost or wgpu has reported one, which is then cleared.
    pub(super) fn check(&self) -> Result<()> {
        self.alive()?;
        lock(&self.uncaught).take().map_or(Ok(()), Err)
    }
}

/// Out of device memory.
pub(super) fn out_of_memory(requested: u64) -> Error {
    Error::OutOfMemory {
        backend: BackendKind::Wgpu,
        memory: MemoryKind::Device,
        requested,
        free: None,
        total: None,
    }
}

/// The error that `made` caused, if any: what an error scope around it caught.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn scoped<T>(
    device: &wgpu::Device,
    filter: wgpu::ErrorFilter,
    made: impl FnOnce() -> T,
) -> (T, Option<wgpu::Error>) {
    let scope = device.push_error_scope(filter);
    let made = made();
    // Native wgpu knows at once.
    (made, crate::future::block_on(scope.pop()))
}

/// A browser tells of errors later: they are `uncaught`, and the next operation reports them.
#[cfg(target_arch = "wasm32")]
pub(super) fn scoped<T>(
    _: &wgpu::Device,
    _: wgpu::ErrorFilter,
    made: impl FnOnce() -> T,
) -> (T, Option<wgpu::Error>) {
    (made(), None)
}

/// What everything made from one context shares.
pub(super) struct Shared {
    pub(super) id: ContextId,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) limits: wgpu::Limits,
    pub(super) features: wgpu::Features,
    pub(super) info: DeviceInfo,
    pub(super) health: Arc<Health>,
    /// Bytes of buffers copied to the host so far.
    pub(super) read: AtomicU64,
    #[cfg(feature = "testing")]
    pub(super) rewrite: OnceLock<crate::backend::TextRewrite>,
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) driver: super::signal::Driver,
}

impl Shared {
    /// Bytes of buffers copied to the host so far.
    pub(super) fn bytes_read(&self) -> u64 {
        // Relaxed: a count, which publishes nothing else.
        self.read.load(Ordering::Relaxed)
    }

    /// Counts a copy to the host.
    pub(super) fn count_read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// An error if the device is lost or wgpu has reported one.
    pub(super) fn check(&self) -> Result<()> {
        self.health.check()
    }

    /// As [`scoped`], on this device.
    pub(super) fn scoped<T>(
        &self,
        filter: wgpu::ErrorFilter,
        made: impl FnOnce() -> T,
    ) -> (T, Option<wgpu::Error>) {
        scoped(&self.device, filter, made)
    }

    /// Sleeps until `signal`, which comes with a submission, has ended; it has ended badly when the device is gone.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn wait_for(&self, signal: &Signal, submission: Option<&wgpu::SubmissionIndex>) -> bool {
        let mut waited = false;
        loop {
            if let Some(ok) = signal.get() {
                return ok;
            }
            if waited {
                // The submission has ended; another thread is about to call back.
                std::thread::yield_now();
            }
            // Not for ever: a driver that forgets to wake who waits costs a second.
            let result = self.device.poll(wgpu::PollType::Wait {
                submission_index: submission.cloned(),
                timeout: Some(std::time::Duration::from_secs(1)),
            });
            let goes_on = matches!(result, Ok(_) | Err(wgpu::PollError::Timeout));
            if (!goes_on || self.health.alive().is_err()) && signal.get().is_none() {
                signal.set(false);
            }
            waited = result.is_ok();
        }
    }

    /// Waits as a future, with any executor.
    pub(super) async fn ended(
        self: &Arc<Self>,
        signal: &Arc<Signal>,
        submission: Option<&wgpu::SubmissionIndex>,
    ) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        super::signal::Driver::drive(self, signal, submission.cloned());
        #[cfg(target_arch = "wasm32")]
        let _ = submission;
        signal.ended().await
    }
}
