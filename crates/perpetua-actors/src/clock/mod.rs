//! The hybrid logical clock: stamps that follow physical time, are totally ordered, and put a cause before its effect on whatever
//! machine either is. One atomic, no locks. Must not know messages, nor how the physical time is come by ([`physical`]).

pub mod physical;
mod system;
mod tsc;

#[cfg(all(test, perpetua_loom))]
mod loom_models;
#[cfg(all(test, not(perpetua_loom)))]
mod tests;

use std::fmt;

use crate::error::{ActorError, Result};
use crate::sync::{AtomicU64, CachePadded, Ordering};
use physical::PhysicalClock;

/// Bits of a packed stamp that count; those above are microseconds. 52 bits of microseconds last until the year 2112; were there
/// 48, they would have ended in 1978. A counter that is full carries into the microseconds, which then run ahead of
/// physical time until that has caught up.
pub const COUNTER_BITS: u32 = 12;
const COUNTER: u64 = (1 << COUNTER_BITS) - 1;
/// How far a remote clock may be ahead, unless said otherwise: a minute, in microseconds.
pub const DEFAULT_MAX_DRIFT: u64 = 60_000_000;

/// When something happened: later stamps are greater. Equal ones come from the same tick of the same clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HlcTimestamp {
    /// Microseconds since 1970 above [`COUNTER_BITS`] bits of counter: what a header's `sent` holds.
    pub packed: u64,
    /// Whose clock it was; decides between equal times.
    pub node: u64,
}

impl HlcTimestamp {
    /// The stamp of these microseconds since 1970 (the lower 52 bits count) and this counter (the lower 12 bits).
    pub const fn new(micros: u64, counter: u16, node: u64) -> HlcTimestamp {
        HlcTimestamp {
            packed: micros << COUNTER_BITS | counter as u64 & COUNTER,
            node,
        }
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> u64 {
        self.packed >> COUNTER_BITS
    }

    /// What tells stamps of one microsecond apart.
    pub const fn counter(self) -> u16 {
        (self.packed & COUNTER) as u16
    }
}

impl fmt::Display for HlcTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}@{}", self.micros(), self.counter(), self.node)
    }
}

/// A hybrid logical clock. Share it by reference; each stamp that it gives is greater than all that it gave or took before.
#[derive(Debug)]
pub struct HlcClock {
    /// The greatest stamp given or taken, packed.
    last: CachePadded<AtomicU64>,
    node: u64,
    max_drift: u64,
    physical: PhysicalClock,
}

impl HlcClock {
    /// The clock of node `node`, fed by the fastest exact clock that this machine has.
    pub fn new(node: u64) -> HlcClock {
        HlcClock::with_physical(node, PhysicalClock::fastest())
    }

    /// The clock of node `node`, fed by `physical`.
    pub fn with_physical(node: u64, physical: PhysicalClock) -> HlcClock {
        HlcClock {
            last: CachePadded(AtomicU64::new(0)),
            node,
            max_drift: DEFAULT_MAX_DRIFT,
            physical,
        }
    }

    /// The clock, but with remote clocks allowed to be `micros` microseconds ahead.
    #[must_use]
    pub fn with_max_drift(mut self, micros: u64) -> HlcClock {
        self.max_drift = micros;
        self
    }

    /// Whose clock this is.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// What feeds it.
    pub fn physical(&self) -> &PhysicalClock {
        &self.physical
    }

    /// A stamp for something that happens now: greater than all before, not before physical time.
    #[inline]
    pub fn tick(&self) -> HlcTimestamp {
        self.stamp(self.physical.packed())
    }

    /// The greatest stamp so far, or physical time where that is later. Does not move the clock.
    pub fn now(&self) -> HlcTimestamp {
        // Relaxed: as in `stamp`.
        let packed = self.last.load(Ordering::Relaxed).max(self.physical.packed());
        self.at(packed)
    }

    /// A stamp for the receipt of something stamped `remote`: greater than that, too. An error where `remote` is further ahead
    /// of physical time than is allowed; then the clock stays as it was.
    pub fn update(&self, remote: &HlcTimestamp) -> Result<HlcTimestamp> {
        let now = self.physical.packed();
        let ahead = remote.micros().saturating_sub(now >> COUNTER_BITS);
        if ahead > self.max_drift {
            return Err(ActorError::ClockDrift {
                ahead,
                allowed: self.max_drift,
            });
        }
        Ok(self.stamp(now.max(remote.packed.saturating_add(1))))
    }

    fn at(&self, packed: u64) -> HlcTimestamp {
        HlcTimestamp {
            packed,
            node: self.node,
        }
    }

    /// A stamp of at least `least`, greater than all before.
    ///
    /// Every order here is Relaxed: the clock hands over nothing but itself. All changes of `last` stand in one order, each makes
    /// it greater, and a stamp is what its change left there: so stamps are unique, and a tick that happens after another
    /// (by whatever orders them: a ring, a lock) is later in that order and greater.
    #[inline]
    fn stamp(&self, least: u64) -> HlcTimestamp {
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            if last >= least {
                // Most ticks of a busy clock: the microsecond has not changed. This cannot fail, whoever else ticks.
                return self.at(self.last.fetch_add(1, Ordering::Relaxed) + 1);
            }
            match self
                .last
                .compare_exchange_weak(last, least, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return self.at(least),
                Err(now) => last = now,
            }
        }
    }
}
