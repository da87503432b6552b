//! What every engine knows of an actor: where in its life it is, and what it has done. Must not know how actors run.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::group::Group;
use super::host::{Host, micros};
use crate::error::Result;
use crate::lifecycle::ActorState;
use crate::message::ActorId;
use crate::telemetry::{ActorMetrics, LatencyHistogram};

/// An actor's life and its figures. The figures are written by whoever runs the actor, read by anybody.
pub(crate) struct Vitals {
    id: ActorId,
    group: Arc<Group>,
    life: AtomicU8,
    pub(crate) processed: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) dropped: AtomicU64,
    // Made with the first message: a million actors that get none take no room for it.
    latency: OnceLock<Box<LatencyHistogram>>,
}

/// Adds to a counter that has one writer at a time.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Vitals {
    /// Counts messages that are not delivered, or not handled: those who run other actors do so, too.
    pub(crate) fn drop_some(&self, more: u64) {
        if more > 0 {
            self.dropped.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Of a launched actor that has done nothing.
    pub(crate) fn new(id: ActorId, group: &Arc<Group>) -> Vitals {
        Vitals {
            id,
            group: Arc::clone(group),
            life: AtomicU8::new(ActorState::Launched as u8),
            processed: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            latency: OnceLock::new(),
        }
    }

    /// Adds what was counted of the actor elsewhere.
    pub(crate) fn go_on_from(&self, other: &Vitals) {
        for (own, other) in [
            (&self.processed, &other.processed),
            (&self.sent, &other.sent),
            (&self.errors, &other.errors),
            (&self.dropped, &other.dropped),
        ] {
            own.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Where in its life it is.
    pub(crate) fn life(&self) -> ActorState {
        ActorState::from_number(self.life.load(Ordering::Acquire)).unwrap_or(ActorState::Terminated)
    }

    /// Sets it without asking.
    pub(crate) fn set_life(&self, life: ActorState) {
        self.life.store(life as u8, Ordering::Release);
    }

    /// Moves it on in its life.
    pub(crate) fn transition(&self, to: ActorState) -> Result<()> {
        loop {
            let from = self.life();
            from.check_move(to, &self.group.title(self.id))?;
            let moved = self
                .life
                .compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Relaxed);
            if moved.is_ok() {
                return Ok(());
            }
        }
    }

    /// Makes it faulted, wherever it was, unless it was terminated meanwhile.
    pub(crate) fn fault(&self) {
        let fault = |life: u8| (life != ActorState::Terminated as u8).then_some(ActorState::Faulted as u8);
        // Terminated already: it stays so.
        let _ = self.life.fetch_update(Ordering::AcqRel, Ordering::Acquire, fault);
    }

    // Where they are counted.
    fn latencies(&self) -> &OnceLock<Box<LatencyHistogram>> {
        match self.group.shares_latencies() {
            true => &self.group.telemetry.latency,
            false => &self.latency,
        }
    }

    /// Counts how long ago the message was sent that has just been handled, to a microsecond.
    pub(crate) fn note_latency(&self, host: &Host, sent: u64) {
        let now = host.clock.now().as_micros();
        self.latencies()
            .get_or_init(Box::default)
            .record(now.saturating_sub(micros(sent)) * 1000);
    }

    /// Figures, of an actor for which `queued` messages wait; without the latencies that its group shares.
    pub(crate) fn metrics(&self, queued: usize) -> ActorMetrics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ActorMetrics {
            messages_processed: load(&self.processed),
            messages_sent: load(&self.sent),
            messages_dropped: load(&self.dropped),
            errors_encountered: load(&self.errors),
            queue_depth: queued as u64,
            // What a group shares is read once for all (`Core::metrics`).
            latency: self.latency.get().map(|all| all.snapshot()).unwrap_or_default(),
        }
    }
}
