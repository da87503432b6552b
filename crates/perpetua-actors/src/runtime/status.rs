//! What is to be said of actors in one call, and the same in 128 bytes of fixed layout. Must not know engines.

use std::time::Duration;

use super::handle::KernelHandle;
use crate::lifecycle::ActorState;
use crate::message::ActorId;
use crate::telemetry::ActorMetrics;

/// How an actor, or the actors of one launch, are doing.
#[derive(Clone, Debug)]
pub struct KernelStatus {
    /// The first actor's number.
    pub id: ActorId,
    /// The name that it was launched under.
    pub name: String,
    /// Where in its life the first actor is.
    pub state: ActorState,
    /// How long ago it was launched, or restored out of a checkpoint.
    pub uptime: Duration,
    /// Messages that a mailbox takes.
    pub queue_capacity: usize,
    /// What the actors have done, all together, and what waits for them.
    pub metrics: ActorMetrics,
    /// Why the first actor's handler faulted last, if it did.
    pub last_fault: Option<String>,
}

/// A [`KernelStatus`] in 128 bytes of fixed layout, as a copy: for tools that read such a block out of memory or a file. Numbers
/// that are more than a field holds are its greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct ControlBlock {
    /// 1 while it handles messages.
    pub is_active: u32,
    /// 1 from the runtime's shutdown on.
    pub should_terminate: u32,
    /// 1 where it is terminated.
    pub has_terminated: u32,
    /// Faults, and messages of types that it does not take.
    pub errors_encountered: u32,
    /// Handlers that returned.
    pub messages_processed: u64,
    /// What these sent.
    pub messages_sent: u64,
    /// Messages that were not delivered, or not handled.
    pub messages_dropped: u64,
    /// Messages that wait.
    pub input_depth: u64,
    /// Messages that a mailbox takes.
    pub input_capacity: u64,
    /// The runtime's clock when this was read: a packed stamp.
    pub clock: u64,
    /// Microseconds since it was launched or restored.
    pub uptime: u64,
    /// Zeros.
    pub reserved: [u64; 7],
}

const _: () = assert!(size_of::<ControlBlock>() == 128);

impl KernelHandle {
    /// State, uptime, figures and the last fault in one call, without stopping anything.
    pub fn status(&self) -> KernelStatus {
        let now = self.core.host.time.now();
        let since = self.group.telemetry.since.get();
        KernelStatus {
            id: self.id(),
            name: self.name().into(),
            state: self.state(),
            uptime: since.map_or(Duration::ZERO, |since| now.saturating_duration_since(*since)),
            queue_capacity: self.group.capacity,
            metrics: self.metrics(),
            last_fault: self.last_fault(),
        }
    }

    /// The same in 128 bytes.
    pub fn control_block(&self) -> ControlBlock {
        let status = self.status();
        let metrics = &status.metrics;
        ControlBlock {
            is_active: (status.state == ActorState::Active).into(),
            should_terminate: self.core.check_open().is_err().into(),
            has_terminated: (status.state == ActorState::Terminated).into(),
            errors_encountered: u32::try_from(metrics.errors_encountered).unwrap_or(u32::MAX),
            messages_processed: metrics.messages_processed,
            messages_sent: metrics.messages_sent,
            messages_dropped: metrics.messages_dropped,
            input_depth: metrics.queue_depth,
            input_capacity: status.queue_capacity as u64,
            clock: self.core.host.clock.now().packed,
            uptime: u64::try_from(status.uptime.as_micros()).unwrap_or(u64::MAX),
            reserved: [0; 7],
        }
    }
}
