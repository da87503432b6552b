//! What time it is: the machine's, or a simulation's, which moves when the simulation says so. Must not know who asks.

use std::time::{Duration, Instant};

use crate::clock::physical::PhysicalClock;
use crate::sync::{Arc, AtomicU64, Ordering};

/// Where simulated time begins, in microseconds since 1970.
const BEGIN_MICROS: u64 = 1_600_000_000_000_000;

/// Whose time.
#[derive(Clone, Debug, Default)]
pub(crate) enum Time {
    /// The machine's.
    #[default]
    Machine,
    /// A simulation's.
    Simulated(Arc<Simulated>),
}

/// Time that stands still until it is moved.
#[derive(Debug)]
pub(crate) struct Simulated {
    begin: Instant,
    nanos: AtomicU64,
    /// Since 1970, for hybrid logical clocks.
    micros: Arc<AtomicU64>,
    /// `micros` at the beginning.
    first: AtomicU64,
}

impl Time {
    /// Of a new simulation.
    pub(crate) fn simulated() -> Time {
        Time::Simulated(Arc::new(Simulated {
            begin: Instant::now(),
            nanos: AtomicU64::new(0),
            micros: Arc::new(AtomicU64::new(BEGIN_MICROS)),
            first: AtomicU64::new(BEGIN_MICROS),
        }))
    }

    /// Now.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            Time::Machine => Instant::now(),
            Time::Simulated(time) => time.begin + time.passed(),
        }
    }

    /// How long ago that was.
    pub(crate) fn since(&self, then: Instant) -> Duration {
        self.now().saturating_duration_since(then)
    }

    /// The physical clock that goes with it.
    pub(crate) fn physical(&self) -> PhysicalClock {
        match self {
            Time::Machine => PhysicalClock::fastest(),
            Time::Simulated(time) => PhysicalClock::Manual(Arc::clone(&time.micros)),
        }
    }

    /// Moves simulated time on, if it is not there yet.
    pub(crate) fn move_to(&self, at: Instant) {
        if let Time::Simulated(time) = self {
            let nanos = at.saturating_duration_since(time.begin).as_nanos();
            time.nanos
                .fetch_max(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
            time.tell();
        }
    }

    /// Lets simulated time go on from these microseconds since 1970, if they are to come.
    pub(crate) fn go_on_from(&self, micros: u64) {
        if let Time::Simulated(time) = self {
            let passed = time.passed().as_micros() as u64;
            time.first
                .fetch_max(micros.saturating_sub(passed), Ordering::Relaxed);
            time.tell();
        }
    }
}

impl Simulated {
    /// How long the simulation has gone on.
    pub(crate) fn passed(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    // One thread moves the time, so every order is Relaxed.
    fn tell(&self) {
        let micros = self.first.load(Ordering::Relaxed) + self.passed().as_micros() as u64;
        self.micros.store(micros, Ordering::Relaxed);
    }
}
