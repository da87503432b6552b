//! What the actors of one launch have in common. Must not know engines.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};

use crate::delivery::Delivery;
use crate::error::{ActorError, Result};
use crate::handler::{Handler, Takes};
use crate::message::{ActorId, Packet};
use crate::supervise::{OnFault, Supervision};
use crate::telemetry::{ActorMetrics, LatencyHistogram};

/// The actors of one launch: numbers in a row, one handler, one set of options.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) first: ActorId,
    pub(crate) count: u32,
    pub(crate) handler: Handler,
    /// The types that the handler takes; none: any.
    pub(crate) takes: Vec<Takes>,
    pub(crate) capacity: usize,
    pub(crate) block_size: u32,
    /// On which of the runtime's devices they live.
    pub(crate) device: usize,
    pub(crate) priority: u8,
    /// State at launch and at each restart.
    pub(crate) initial: Vec<u8>,
    /// Messages that say nothing else are worthless after this.
    pub(crate) deadline: Option<Duration>,
    /// A handler that runs longer is faulted.
    pub(crate) run_limit: Option<Duration>,
    pub(crate) tick: Option<Duration>,
    pub(crate) supervision: Supervision,
    pub(crate) on_fault: OnFault,
    /// Of messages that ask for nothing else.
    pub(crate) delivery: Delivery,
    /// Deliveries of a message, at most.
    pub(crate) max_deliveries: u8,
    pub(crate) supervisor: Option<ActorId>,
    pub(crate) telemetry: GroupTelemetry,
    /// So many from the first on are known to be gone.
    pub(crate) gone: AtomicU32,
    /// Handles that there are.
    pub(crate) handles: AtomicU32,
    /// Whether an actor was removed.
    pub(crate) any_left: AtomicBool,
}

/// Groups of more actors have one histogram of latencies for all: each takes 9 KiB.
const OWN_LATENCIES: u32 = 4096;

/// What is measured of a group as a whole.
#[derive(Default)]
pub(crate) struct GroupTelemetry {
    /// Nanoseconds that the handler has taken at some actor, about; 0: not known.
    pub(crate) run_time: AtomicU32,
    /// Of all actors, where [`Group::shares_latencies`].
    pub(crate) latency: OnceLock<Box<LatencyHistogram>>,
    /// What they had done when all were terminated.
    pub(crate) last: OnceLock<ActorMetrics>,
    /// When they were launched, or restored.
    pub(crate) since: OnceLock<Instant>,
}

impl Group {
    /// Whether the actor is one of these.
    pub(crate) fn has(&self, actor: ActorId) -> bool {
        actor.0.wrapping_sub(self.first.0) < self.count
    }

    /// The actors' numbers.
    pub(crate) fn actors(&self) -> impl Iterator<Item = ActorId> + use<> {
        (self.first.0..self.first.0 + self.count).map(ActorId)
    }

    /// Whether all actors have one histogram of latencies.
    pub(crate) fn shares_latencies(&self) -> bool {
        self.count > OWN_LATENCIES
    }

    /// The name of one of these.
    pub(crate) fn member(&self, actor: ActorId) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{}[{}]", self.name, actor.0.wrapping_sub(self.first.0)),
        }
    }

    /// What to call one of these in messages to people.
    pub(crate) fn title(&self, actor: ActorId) -> String {
        format!("`{}`", self.member(actor))
    }

    /// Whether the handler takes messages of this type.
    pub(crate) fn takes(&self, type_id: u32) -> bool {
        self.takes.is_empty() || self.takes.iter().any(|takes| takes.type_id == type_id)
    }

    /// Words that a message of this type from the host brings beside its vectors; 0 where the handler reaches none.
    pub(crate) fn room(&self, type_id: u32) -> u32 {
        let takes = self.takes.iter().find(|takes| takes.type_id == type_id);
        takes.and_then(|takes| takes.room).unwrap_or(0)
    }

    /// Whether a message is to be delivered until a handler of it has returned.
    pub(crate) fn repeats(&self, packet: &Packet) -> bool {
        packet.header.deliveries.asked().unwrap_or(self.delivery) == Delivery::AtLeastOnce
    }

    /// The message as it is delivered once more when its handler has faulted; `None` where it is a dead letter. Its handler had begun
    /// in time, so it has no deadline any more.
    pub(crate) fn again(&self, packet: &Packet) -> Option<Packet> {
        let deliveries = packet.header.deliveries.next();
        let mut packet = *packet;
        packet.header.deliveries = deliveries;
        packet.header.deadline = 0;
        (self.repeats(&packet) && deliveries.before() < self.max_deliveries).then_some(packet)
    }

    /// An error unless the handler takes messages of this type, of which `found` is the path.
    #[inline]
    pub(crate) fn check_type(&self, actor: ActorId, type_id: u32, found: &str) -> Result<()> {
        match self.takes(type_id) {
            true => Ok(()),
            false => Err(self.foreign(actor, type_id, found)),
        }
    }

    #[cold]
    fn foreign(&self, actor: ActorId, type_id: u32, found: &str) -> ActorError {
        let name = found.rsplit("::").next().unwrap_or(found);
        // Where the names do not tell them apart, paths and fields may.
        let is_twin = self.takes.iter().any(|takes| takes.name == name);
        let each = self.takes.iter().map(|takes| match is_twin {
            true => takes.described(),
            false => takes.name.to_owned(),
        });
        ActorError::ForeignMessage {
            actor: self.title(actor),
            found: match is_twin {
                true => found.into(),
                false => name.into(),
            },
            type_id,
            takes: each.collect::<Vec<_>>().join(", "),
        }
    }
}
