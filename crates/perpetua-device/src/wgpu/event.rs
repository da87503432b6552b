//! Events: points in a stream's work, with the device's time where it can tell.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::core::StreamCore;
use super::recording::{Afterwards, Recording};
use super::shared::{driver, lock};
use super::signal::Signal;
use crate::backend::{GpuEvent, check_owner};
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::info::BackendKind;
use crate::ptr::ContextId;

/// A point in a stream's work.
pub(super) struct Event {
    core: Arc<StreamCore>,
    done: Arc<Signal>,
    /// Ticks of the device's clock, once known.
    time: Arc<Mutex<Option<u64>>>,
    /// What the host is still to do for the work before it.
    pub(super) before: Vec<Afterwards>,
    submission: Option<wgpu::SubmissionIndex>,
}

impl Event {
    /// Marks the point that `core` has reached and submits what is recorded.
    pub(super) fn record(core: &Arc<StreamCore>) -> Result<Event> {
        let mut rec = core.running("recording an event")?;
        let timing = core
            .shared
            .features
            .contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);
        let stamped = timing.then(|| stamp(core, &mut rec));
        rec.submit(&core.shared);
        let (done, time) = (Arc::<Signal>::default(), Arc::<Mutex<Option<u64>>>::default());
        let signal = Arc::clone(&done);
        match stamped {
            None => core.shared.queue.on_submitted_work_done(move || signal.set(true)),
            Some(buffer) => {
                let (time, source, staging) = (Arc::clone(&time), buffer.clone(), Arc::clone(&core.staging));
                buffer.map_async(wgpu::MapMode::Read, ..8, move |result| {
                    if result.is_ok() {
                        if let Ok(view) = source.get_mapped_range(..8) {
                            let bytes: [u8; 8] = std::array::from_fn(|i| view[i]);
                            *lock(&time) = Some(u64::from_le_bytes(bytes));
                        }
                        source.unmap();
                        staging.give(source);
                    }
                    signal.set(result.is_ok());
                });
            }
        }
        Ok(Event {
            core: Arc::clone(core),
            done,
            time,
            before: rec.pending().to_vec(),
            submission: rec.last.clone(),
        })
    }

    fn signals(&self) -> impl Iterator<Item = &Arc<Signal>> {
        self.before.iter().map(|a| &a.done).chain([&self.done])
    }
}

/// Records a time stamp and its copy to a buffer that the host maps.
fn stamp(core: &StreamCore, rec: &mut Recording) -> wgpu::Buffer {
    let device = &core.shared.device;
    let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
        label: None,
        ty: wgpu::QueryType::Timestamp,
        count: 1,
    });
    let resolved = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 256,
        usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    let buffer = core.staging.take(8);
    let encoder = rec.encoder(&core.shared);
    encoder.write_timestamp(&queries, 0);
    encoder.resolve_query_set(&queries, 0..1, &resolved, 0);
    encoder.copy_buffer_to_buffer(&resolved, 0, &buffer, 0, 8);
    buffer
}

impl GpuEvent for Event {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.core.shared.id
    }

    fn is_complete(&self) -> Result<bool> {
        let ended = || self.signals().all(|s| s.get().is_some());
        self.core.shared.check()?;
        if !ended() {
            // Whatever goes wrong here is seen by `check`.
            let _ = self.core.shared.device.poll(wgpu::PollType::Poll);
            self.core.shared.check()?;
        }
        Ok(ended())
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let shared = &self.core.shared;
            for signal in self.signals() {
                shared.ended(signal, self.submission.as_ref()).await;
            }
            shared.check()
        })
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn synchronize_blocking(&self) -> Result<()> {
        let shared = &self.core.shared;
        for signal in self.signals() {
            shared.wait_for(signal, self.submission.as_ref());
        }
        shared.check()
    }

    #[cfg(target_arch = "wasm32")]
    fn synchronize_blocking(&self) -> Result<()> {
        Err(Error::CannotBlock {
            operation: "waiting for an event",
        })
    }

    fn elapsed_since(&self, earlier: &dyn GpuEvent) -> Result<Duration> {
        let Some(earlier) = earlier.as_any().downcast_ref::<Event>() else {
            return Err(Error::WrongDevice {
                operation: "elapsed time",
                subject: "the earlier event".into(),
            });
        };
        check_owner(
            self.core.shared.id,
            earlier.core.shared.id,
            "elapsed time",
            "the earlier event",
        )?;
        if !self
            .core
            .shared
            .features
            .contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
        {
            return Err(Error::Unsupported {
                backend: BackendKind::Wgpu,
                operation: "tell the time between events",
                remedy: "use a device with timestamp queries",
            });
        }
        if !earlier.is_complete()? || !self.is_complete()? {
            return Err(Error::InvalidState {
                operation: "elapsed time",
                cause: "an event has not happened yet",
                remedy: "synchronise with the later event first",
            });
        }
        let ticks = |event: &Event| {
            lock(&event.time).ok_or_else(|| driver("elapsed time", "the time stamp did not come back"))
        };
        let period = f64::from(self.core.shared.queue.get_timestamp_period());
        let elapsed = ticks(self)?.saturating_sub(ticks(earlier)?);
        Ok(Duration::from_secs_f64(elapsed as f64 * period * 1e-9))
    }
}
