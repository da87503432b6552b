//! What engines call back to: the clock, those who wait for answers, the host's queues, dead letters. Must not know any engine.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::time::{Duration, Instant};

use super::Settings;
use super::arena::Arena;
use super::asks::Asks;
use super::engine::Refusal;
use super::group::Group;
use super::output::Received;
use super::outputs::Outputs;
use super::several::Neighbours;
use super::simulation::{Simulator, Traced};
use super::timer::{Job, Timer};
use crate::clock::{COUNTER_BITS, HlcClock, HlcTimestamp};
use crate::dead_letters::{DeadLetters, DeadReason};
use crate::error::ActorError;
use crate::lock::{lock, read, write};
use crate::message::{ActorId, Kind, Packet};
use crate::pubsub::PubSubBroker;
use crate::time::Time;

const SHARDS: usize = 16;
/// When what could not be looked at, or found no room in another engine, is tried again.
const AGAIN: Duration = Duration::from_micros(500);

/// Microseconds since 1970 of a packed stamp.
pub(crate) fn micros(stamp: u64) -> u64 {
    stamp >> COUNTER_BITS
}

/// The host's side of an engine.
pub(crate) struct Host {
    pub(crate) asks: Asks,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) pubsub: Arc<PubSubBroker>,
    pub(crate) timer: Timer,
    /// Where messages' vectors lie.
    pub(crate) arena: Arc<Arena>,
    outputs: [RwLock<HashMap<u32, Arc<Outputs>>>; SHARDS],
    pub(crate) clock: Arc<HlcClock>,
    pub(crate) time: Time,
    /// What moves the runtime on, where it is simulated.
    pub(crate) simulator: Option<Arc<Simulator>>,
    patience: Duration,
    // The runtime is shut down: queues of the host take everything, so that no actor waits.
    accepts_all: AtomicBool,
    last_faults: Mutex<HashMap<ActorId, String>>,
    // The engines of the runtime's devices, where it has several.
    neighbours: OnceLock<Weak<dyn Neighbours>>,
}

/// Another number in each process, and for each runtime.
fn random_node() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Host {
    pub(crate) fn new(settings: &Settings) -> Host {
        let arena = Arc::new(Arena::new(settings.arena_bytes));
        let freed = Arc::clone(&arena);
        let dead = DeadLetters::new(settings.dead_letters).at_end(move |packet| freed.release(packet));
        let dead = Arc::new(dead);
        let simulator = settings.simulation.as_ref().map(|s| Arc::new(Simulator::new(s)));
        let time = simulator.as_ref().map_or(Time::Machine, |s| s.time.clone());
        let pubsub = PubSubBroker::new(settings.pubsub.clone())
            .with_dead_letters(Arc::clone(&dead))
            .with_time(&time);
        let node = settings.clock_node.unwrap_or_else(|| match &simulator {
            Some(simulator) => simulator.number(),
            None => random_node(),
        });
        Host {
            asks: Asks::new(),
            dead,
            pubsub: Arc::new(pubsub),
            timer: Timer::new(),
            arena,
            outputs: std::array::from_fn(|_| RwLock::default()),
            clock: Arc::new(HlcClock::with_physical(node, time.physical())),
            time,
            simulator,
            patience: settings.patience,
            accepts_all: AtomicBool::new(false),
            last_faults: Mutex::default(),
            neighbours: OnceLock::new(),
        }
    }

    /// A stamp greater than all before, for something that begins now.
    ///
    /// # Errors
    /// [`ActorError::ClockEnd`].
    pub(crate) fn now(&self) -> crate::Result<u64> {
        Ok(self.clock.begin()?.packed)
    }

    /// All stamps from now on are greater than this one, which another clock of this runtime's has given.
    pub(crate) fn go_on_from(&self, packed: u64) -> crate::Result<()> {
        let node = self.clock.node();
        self.time.go_on_from(micros(packed));
        self.clock.update(&HlcTimestamp { packed, node }).map(drop)
    }

    /// The queue of what an actor sends to the host.
    pub(crate) fn outputs(&self, actor: ActorId) -> Arc<Outputs> {
        let shard = &self.outputs[actor.0 as usize % SHARDS];
        if let Some(outputs) = read(shard).get(&actor.0) {
            return Arc::clone(outputs);
        }
        Arc::clone(write(shard).entry(actor.0).or_default())
    }

    /// The queue of what an actor has sent to the host, if there ever was one.
    pub(crate) fn known_outputs(&self, actor: ActorId) -> Option<Arc<Outputs>> {
        read(&self.outputs[actor.0 as usize % SHARDS])
            .get(&actor.0)
            .cloned()
    }

    /// From now on no actor waits for the host.
    pub(crate) fn accept_all(&self) {
        self.accepts_all.store(true, Ordering::Relaxed);
    }

    /// The actor is gone: nothing more comes from it.
    pub(crate) fn forget(&self, actor: ActorId) {
        let mut shard = write(&self.outputs[actor.0 as usize % SHARDS]);
        if let Some(outputs) = shard.get(&actor.0) {
            outputs.close();
            // What is there can still be taken.
            if outputs.len() == 0 {
                shard.remove(&actor.0);
            }
        }
        drop(shard);
        lock(&self.last_faults).remove(&actor);
    }

    /// Nobody takes any more what an actor has sent to the host, if it is gone.
    pub(crate) fn give_up_outputs(&self, group: &Group, actor: ActorId) {
        let left = {
            let mut shard = write(&self.outputs[actor.0 as usize % SHARDS]);
            match shard.get(&actor.0) {
                Some(outputs) if outputs.is_closed() => shard.remove(&actor.0),
                _ => None,
            }
        };
        for packet in left.iter().flat_map(|outputs| outputs.snapshot()) {
            self.undelivered(group, &packet, DeadReason::Terminated);
        }
    }

    /// Takes a packet that an actor of `group` has sent to the host.
    pub(crate) fn take(&self, group: &Group, packet: &Packet) -> Result<(), Refusal> {
        if self.answers(group, packet) {
            return Ok(());
        }
        let head = &packet.header;
        let capacity = match self.accepts_all.load(Ordering::Relaxed) {
            true => usize::MAX,
            false => group.capacity,
        };
        match self.outputs(head.sender).push(packet, capacity) {
            true => Ok(()),
            false => Err(Refusal::Full),
        }
    }

    /// Whether a packet is an answer that needs no room: one goes to who waits for it, whatever else of its sender is held; a late one is a dead
    /// letter, and that a handler ran is counted already.
    pub(crate) fn answers(&self, group: &Group, packet: &Packet) -> bool {
        let head = &packet.header;
        // A device's word that a handler gave nothing back names the actor as destination, too.
        if head.kind == Kind::Reply && head.destination != ActorId::HOST.0 {
            return false;
        }
        if head.correlation != 0 && matches!(head.kind, Kind::Reply | Kind::Done) {
            let outcome = match head.kind {
                Kind::Done => Err(ActorError::NoReply {
                    actor: group.title(head.sender),
                }),
                _ => Ok(Received::new(*packet, &self.arena)),
            };
            match self.asks.complete(head.sender, head.correlation, outcome) {
                Ok(()) => return true,
                // Nobody waits for it: what it brought goes on with the packet.
                Err(outcome) => drop(outcome.map(Received::into_packet)),
            }
            if self.asks.forget(head.sender, head.correlation) && head.kind == Kind::Reply {
                self.dead.add(*packet, DeadReason::Late, self.clock.tick());
                return true;
            }
        }
        head.kind == Kind::Done
    }

    /// The runtime has several devices.
    pub(super) fn set_neighbours(&self, neighbours: &Arc<dyn Neighbours>) {
        // Once, when the runtime is built.
        let _ = self.neighbours.set(Arc::downgrade(neighbours));
    }

    /// What leads to the engines of the other devices, where there are any.
    pub(crate) fn neighbours(&self) -> Option<Arc<dyn Neighbours>> {
        self.neighbours.get()?.upgrade()
    }

    /// Another engine has no room for what this actor has sent: it looks again in a moment.
    /// `planned`: when it does so already.
    pub(crate) fn look_again(&self, actor: ActorId, planned: &mut Option<Instant>) {
        let now = self.time.now();
        if planned.is_none_or(|at| at <= now) {
            *planned = Some(now + AGAIN);
            self.timer.add(now + AGAIN, Job::Resume(actor));
        }
    }

    /// A packet ends here, unhandled, unless somebody waits for it as an answer; `group` is that of its destination, or of its sender where it has none.
    pub(crate) fn undelivered(&self, group: &Group, packet: &Packet, reason: DeadReason) {
        if self.answers(group, packet) {
            return;
        }
        let head = &packet.header;
        let actor = group.title(ActorId(head.destination));
        let error = match reason {
            DeadReason::Expired => ActorError::Timeout {
                actor,
                waited: Duration::from_micros(u64::from(head.deadline)),
                held: false,
            },
            DeadReason::Foreign => group
                .check_type(ActorId(head.destination), head.type_id, "another type")
                .err()
                .unwrap_or(ActorError::NoReply { actor }),
            DeadReason::ShutDown => ActorError::ShutDown,
            _ => ActorError::Terminated { actor },
        };
        self.bury(packet, reason, error, || {});
    }

    // Makes a packet a dead letter, does what is to be seen with it, and tells whoever asked.
    fn bury(&self, packet: &Packet, reason: DeadReason, error: ActorError, then: impl FnOnce()) {
        let head = &packet.header;
        tracing::debug!(%reason, to = head.destination, "dead letter");
        // First, so that it is there when who asked looks for it.
        self.dead.add(*packet, reason, self.clock.tick());
        let message = head.sent;
        if head.kind != Kind::Publish {
            self.note(ActorId(head.destination), Traced::Dead { message, reason });
        }
        then();
        if head.kind == Kind::Ask && head.sender == ActorId::HOST {
            // Where nobody waits any more, the dead letter still tells.
            let actor = ActorId(head.destination);
            if self.asks.complete(actor, head.correlation, Err(error)).is_err() {
                self.asks.forget(actor, head.correlation);
            }
        }
    }

    /// The actor's handler faulted: on this packet, where it is not delivered again. `stop` makes the actor a faulted one: whoever sees
    /// that finds the fault and the dead letter, and whoever is told of the fault sees that.
    pub(crate) fn faulted(
        &self,
        group: &Arc<Group>,
        actor: ActorId,
        letter: Option<&Packet>,
        fault: String,
        stop: impl FnOnce(),
    ) {
        let name = group.title(actor);
        tracing::error!(actor = %name, %fault, "the handler faulted");
        self.note_fault(actor, fault.clone());
        match letter {
            Some(packet) => {
                let error = ActorError::Faulted { actor: name, fault };
                self.bury(packet, DeadReason::Faulted, error, stop);
            }
            None => stop(),
        }
        self.timer
            .add(self.time.now(), Job::Faulted(Arc::clone(group), actor));
    }

    /// Remembers the last fault of an actor.
    pub(crate) fn note_fault(&self, actor: ActorId, fault: String) {
        lock(&self.last_faults).insert(actor, fault);
    }

    /// The last fault of an actor.
    pub(crate) fn last_fault(&self, actor: ActorId) -> Option<String> {
        lock(&self.last_faults).get(&actor).cloned()
    }

    /// What the actor has sent finds no room since then: when the runtime's patience ends, it is looked whether it still finds none.
    /// `planned`: when that is done already.
    pub(crate) fn give_up_after(&self, actor: ActorId, since: Instant, planned: &mut Option<Instant>) {
        if planned.is_none_or(|at| at <= self.time.now()) {
            *planned = Some(since + self.patience);
            self.timer.add(since + self.patience, Job::GiveUp(actor));
        }
    }

    /// The same, where the actor is being run, so that nobody else can tell whether it still finds none.
    pub(crate) fn stalled_in_a_moment(&self, actor: ActorId) {
        self.timer.add(self.time.now() + AGAIN, Job::GiveUp(actor));
    }

    /// Tells the simulation, where this is one, what has happened to an actor.
    #[inline]
    pub(crate) fn note(&self, actor: ActorId, what: Traced) {
        if let Some(simulator) = &self.simulator {
            simulator.note(actor, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::physical::PhysicalClock;
    use crate::echo::{Echo, echo};
    use crate::lifecycle::ActorState;
    use crate::runtime::RuntimeBuilder;
    use crate::runtime::open::open_engine;
    use crate::runtime::options::LaunchOptions;

    #[test]
    fn at_the_end_of_the_clock_handlers_fault_and_nothing_is_stamped_twice() {
        for builder in [
            RuntimeBuilder::default().threads(1),
            RuntimeBuilder::default().in_batches(),
        ] {
            let settings = builder.settings;
            let mut host = Host::new(&settings);
            let end = crate::sync::Arc::new(crate::sync::AtomicU64::new((1 << 52) - 1));
            host.clock = Arc::new(HlcClock::with_physical(1, PhysicalClock::Manual(end)));
            let host = Arc::new(host);
            assert!(matches!(host.now(), Err(ActorError::ClockEnd)));
            let engine = open_engine(&host, &settings).unwrap();
            let group = LaunchOptions::default().group("one", echo::handler()).unwrap();
            let actor = group.first;
            engine.launch(&Arc::new(group)).unwrap();
            engine.revive(actor, ActorState::Active);
            let mut packet = Packet::of(&Echo::default());
            packet.header.destination = actor.0;
            engine.submit(&packet).unwrap();
            let until = Instant::now() + Duration::from_secs(60);
            while host.dead.counts().of(DeadReason::Faulted) == 0 {
                assert!(Instant::now() < until, "no fault");
                std::thread::yield_now();
            }
            let fault = host.last_fault(actor).unwrap();
            assert!(fault.contains("the clock is at the end of its range"), "{fault}");
            assert_eq!(host.outputs(actor).len(), 0);
            engine.stop();
        }
    }
}
