//! Simulations: a whole system of actors on one thread, in an order and at a time that follow from a seed. Mailboxes, routes, supervision
//! and checkpoints are those of the CPU's threads; here is what differs: who runs next, and when. Must not know engines.
//!
//! Whoever waits, moves the simulation on: each look of a future at something that is not there yet is one step. A step runs one actor for
//! a few messages, or does one job of the timer's; where there is nothing to do now, time goes on to what comes next.

mod random;
mod trace;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use self::random::Random;
pub use self::trace::{TraceEvent, Traced};
use crate::error::ActorError;
use crate::lock::lock;
use crate::message::ActorId;
use crate::time::Time;

/// Most messages that an actor handles before another has its turn.
const TURN: u64 = 4;

/// How a simulated system runs ([`RuntimeBuilder::simulated`](super::RuntimeBuilder::simulated)). The same settings, the same program and
/// the same build give the same run.
///
/// ```
/// use std::time::Duration;
/// use perpetua::actors::Simulation;
///
/// let simulation = Simulation::new(42)
///     .with_fault_one_in(100)
///     .with_longest_delay(Duration::from_millis(5));
/// # let _ = simulation;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Simulation {
    pub(super) seed: u64,
    fault_one_in: u32,
    longest_run: Duration,
    longest_delay: Duration,
    traced: bool,
}

impl Simulation {
    /// With this seed: no injected faults, runs of up to 20 microseconds, delays of up to a millisecond.
    pub fn new(seed: u64) -> Simulation {
        Simulation {
            seed,
            fault_one_in: 0,
            longest_run: Duration::from_micros(20),
            longest_delay: Duration::from_millis(1),
            traced: false,
        }
    }

    /// Lets one of so many runs of handlers fault behind its last statement, 0: none. Where the actor's handler has a time limit, half of
    /// these faults are that it was exceeded.
    pub fn with_fault_one_in(mut self, runs: u32) -> Simulation {
        self.fault_one_in = runs;
        self
    }

    /// The longest time that a handler takes.
    pub fn with_longest_run(mut self, time: Duration) -> Simulation {
        self.longest_run = time;
        self
    }

    /// The longest time that an actor with something to do waits for its turn.
    pub fn with_longest_delay(mut self, time: Duration) -> Simulation {
        self.longest_delay = time;
        self
    }

    /// Keeps what happens, for [`PerpetuaRuntime::trace`](super::PerpetuaRuntime::trace).
    pub fn traced(mut self) -> Simulation {
        self.traced = true;
        self
    }
}

impl From<u64> for Simulation {
    fn from(seed: u64) -> Simulation {
        Simulation::new(seed)
    }
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Run this actor for at most so many messages.
    Run(ActorId, u32),
    /// Do the timer's next job, which is due.
    Job,
    /// Nothing; it is another time now.
    Waited,
    /// Nothing, and nothing will be.
    Nothing,
}

/// What the timer has to do.
pub(super) struct Planned {
    /// When its next job is due.
    pub(super) next: Option<Instant>,
    /// Whether there are jobs that do not only look whether something is due.
    pub(super) has_work: bool,
}

/// A simulation that runs.
pub(crate) struct Simulator {
    simulation: Simulation,
    pub(super) time: Time,
    random: Mutex<Random>,
    // Actors that wait for their turn, and from when on they may have it.
    ready: Mutex<Vec<(Instant, ActorId)>>,
    trace: Mutex<Vec<TraceEvent>>,
}

impl Simulator {
    pub(super) fn new(simulation: &Simulation) -> Simulator {
        Simulator {
            simulation: simulation.clone(),
            time: Time::simulated(),
            random: Mutex::new(Random::new(simulation.seed)),
            ready: Mutex::default(),
            trace: Mutex::default(),
        }
    }

    fn below(&self, end: u64) -> u64 {
        lock(&self.random).below(end)
    }

    fn within(&self, longest: Duration) -> Duration {
        let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX - 1);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }

    /// A number for whoever needs one of its own.
    pub(super) fn number(&self) -> u64 {
        self.below(u64::MAX)
    }

    /// The actor has something to do.
    pub(crate) fn queue(&self, actor: ActorId) {
        // Most have their turn as soon as it is theirs; some wait.
        let delay = match self.below(4) {
            0 => self.within(self.simulation.longest_delay),
            _ => Duration::ZERO,
        };
        lock(&self.ready).push((self.time.now() + delay, actor));
    }

    /// Chooses what is done next; where there is nothing to do now, moves time on if that is wanted (`waits`).
    pub(super) fn choose(&self, planned: &Planned, waits: bool) -> Next {
        let now = self.time.now();
        let mut ready = lock(&self.ready);
        let may_run: Vec<usize> = (0..ready.len()).filter(|at| ready[*at].0 <= now).collect();
        let is_due = planned.next.is_some_and(|next| next <= now);
        let choices = may_run.len() as u64 + u64::from(is_due);
        if choices == 0 {
            if !waits || ready.is_empty() && !planned.has_work {
                return Next::Nothing;
            }
            let first = ready.iter().map(|(at, _)| *at).min();
            if let Some(next) = first.into_iter().chain(planned.next).min() {
                self.time.move_to(next);
            }
            return Next::Waited;
        }
        let chosen = self.below(choices) as usize;
        match may_run.get(chosen) {
            Some(at) => Next::Run(ready.swap_remove(*at).1, 1 + self.below(TURN) as u32),
            None => Next::Job,
        }
    }

    /// How often somebody who is about to send is interrupted.
    pub(super) fn interruptions(&self) -> u64 {
        self.below(4)
    }

    /// A handler has run that may run for `limit`: it takes some time, and may fault here.
    pub(crate) fn ran(&self, limit: Option<Duration>) -> Result<(), String> {
        let one_in = u64::from(self.simulation.fault_one_in);
        let faults = one_in > 0 && self.below(one_in) == 0;
        let took = self.within(self.simulation.longest_run);
        match limit {
            Some(limit) if faults && self.below(2) == 0 => {
                self.time.move_to(self.time.now() + limit + took);
                Err(format!("deadline: it ran for longer than {limit:?} (simulated)"))
            }
            _ => {
                self.time.move_to(self.time.now() + took);
                match faults {
                    true => Err("a simulated fault".into()),
                    false => Ok(()),
                }
            }
        }
    }

    /// Keeps what happens, if that is wanted.
    pub(crate) fn note(&self, actor: ActorId, what: Traced) {
        if self.simulation.traced
            && let Time::Simulated(time) = &self.time
        {
            let at = time.passed();
            lock(&self.trace).push(TraceEvent { at, actor, what });
        }
    }

    /// What was kept.
    pub(super) fn trace(&self) -> Vec<TraceEvent> {
        lock(&self.trace).clone()
    }
}

/// The error of an engine that has no simulation.
pub(super) fn unsupported(backend: &'static str) -> ActorError {
    ActorError::Unsupported {
        backend,
        operation: "a simulation of what runs on a device",
        remedy: "simulate the runtime on the CPU, without `resident` and `in_batches`: mailboxes, supervision and checkpoints keep the same promises there",
    }
}
