//! What the host knows of an actor on the device: where it is in its life, and what waits until it is active. Must not know
//! grids.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::error::Result;
use crate::grid::ActorCounts;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::Packet;
use crate::runtime::engine::{ActorImage, Refusal};
use crate::telemetry::ActorMetrics;

/// An actor.
#[derive(Default)]
pub(super) struct Cell {
    inside: Mutex<Inside>,
    /// Messages that wait, here or on their way.
    pub(super) waits: AtomicU32,
    pub(super) errors: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// Handlers run before a checkpoint.
    before: AtomicU64,
}

struct Inside {
    life: ActorState,
    removed: bool,
    /// What came while it was not active.
    held: VecDeque<Packet>,
    /// What a checkpoint says that it had sent, and that had found no room.
    unsent: Vec<Packet>,
}

impl Default for Inside {
    fn default() -> Inside {
        Inside {
            life: ActorState::Launched,
            removed: false,
            held: VecDeque::new(),
            unsent: Vec::new(),
        }
    }
}

impl Cell {
    pub(super) fn life(&self) -> Option<ActorState> {
        let inside = lock(&self.inside);
        (!inside.removed).then_some(inside.life)
    }

    pub(super) fn is_removed(&self) -> bool {
        lock(&self.inside).removed
    }

    /// Keeps a packet unless the actor is active; true if it is kept here.
    pub(super) fn hold_unless_active(&self, packet: &Packet) -> std::result::Result<bool, Refusal> {
        let mut inside = lock(&self.inside);
        match inside.life {
            _ if inside.removed => Err(Refusal::Gone),
            ActorState::Terminated => Err(Refusal::Gone),
            ActorState::Active => Ok(false),
            _ => {
                inside.held.push_back(*packet);
                Ok(true)
            }
        }
    }

    /// Keeps a packet that came back, for when the actor is active again; false where it never will be.
    pub(super) fn hold_again(&self, packet: &Packet) -> bool {
        let mut inside = lock(&self.inside);
        if inside.removed || inside.life == ActorState::Terminated {
            return false;
        }
        inside.held.push_back(*packet);
        self.waits.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Moves it on; `tell` says so to the device, with what has waited for it where it becomes active.
    pub(super) fn transition(
        &self,
        to: ActorState,
        name: &str,
        tell: impl FnOnce(VecDeque<Packet>),
    ) -> Result<()> {
        let mut inside = lock(&self.inside);
        inside.life.check_move(to, name)?;
        inside.life = to;
        let held = match to {
            ActorState::Active => std::mem::take(&mut inside.held),
            _ => VecDeque::new(),
        };
        // Under the lock, so that nobody's packet comes before those that have waited.
        tell(held);
        Ok(())
    }

    /// Its handler faulted.
    pub(super) fn faulted(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut inside = lock(&self.inside);
        if inside.life == ActorState::Active {
            inside.life = ActorState::Faulted;
        }
    }

    /// If packets that came back wait although it is active, because it became so meanwhile: these.
    pub(super) fn take_left(&self) -> VecDeque<Packet> {
        let mut inside = lock(&self.inside);
        match inside.life {
            ActorState::Active => std::mem::take(&mut inside.held),
            _ => VecDeque::new(),
        }
    }

    /// As a checkpoint holds it, but for what is on the device.
    pub(super) fn image(&self, state: &[u8], handled: u64, on_the_way: Vec<Packet>) -> Option<ActorImage> {
        let inside = lock(&self.inside);
        if inside.removed {
            return None;
        }
        let mut mailbox = on_the_way;
        mailbox.extend(&inside.held);
        Some(ActorImage {
            life: inside.life,
            state: state.to_vec(),
            mailbox,
            unsent: inside.unsent.clone(),
            processed: handled + self.before.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        })
    }

    pub(super) fn remove(&self) -> Vec<Packet> {
        let mut inside = lock(&self.inside);
        inside.removed = true;
        inside.held.drain(..).collect()
    }

    pub(super) fn restore(&self, image: &ActorImage) {
        let mut inside = lock(&self.inside);
        inside.unsent.clone_from(&image.unsent);
        inside.held.extend(&image.mailbox);
        self.waits.fetch_add(inside.held.len() as u32, Ordering::Relaxed);
        self.before.store(image.processed, Ordering::Relaxed);
        self.errors.store(image.errors, Ordering::Relaxed);
    }

    /// What it had sent before it was restored.
    pub(super) fn take_unsent(&self) -> Vec<Packet> {
        std::mem::take(&mut lock(&self.inside).unsent)
    }

    pub(super) fn revive(&self, life: ActorState, tell: impl FnOnce(VecDeque<Packet>)) {
        let mut inside = lock(&self.inside);
        inside.life = life;
        let held = match life {
            ActorState::Active => std::mem::take(&mut inside.held),
            _ => VecDeque::new(),
        };
        tell(held);
    }

    pub(super) fn metrics(&self, counts: ActorCounts) -> ActorMetrics {
        ActorMetrics {
            messages_processed: u64::from(counts.handled) + self.before.load(Ordering::Relaxed),
            messages_sent: counts.sent.into(),
            messages_dropped: u64::from(counts.refused) + self.dropped.load(Ordering::Relaxed),
            errors_encountered: self.errors.load(Ordering::Relaxed),
            queue_depth: self.waits.load(Ordering::Relaxed).into(),
            ..ActorMetrics::default()
        }
    }
}
