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
/// Close to the last stamp. From here on each is given by a change that may be refused, so that no thread goes past the last, and runtimes begin nothing.
const END: u64 = u64::MAX - (1 << 32);
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
    /// The stamp of these microseconds since 1970 and this counter.
    ///
    /// ```
    /// use perpetua::actors::HlcTimestamp;
    /// assert!(HlcTimestamp::new(1, 4095, 7)? > HlcTimestamp::new(1, 5, 7)?);
    /// assert!(HlcTimestamp::new(1, 4096, 7).is_err());
    /// # Ok::<(), perpetua::actors::ActorError>(())
    /// ```
    ///
    /// # Errors
    /// [`ActorError::StampRange`] where the microseconds have more than 52 bits, or the counter has more than 12.
    pub const fn new(micros: u64, counter: u64, node: u64) -> Result<HlcTimestamp> {
        if micros >> (u64::BITS - COUNTER_BITS) != 0 || counter > COUNTER {
            return Err(ActorError::StampRange { micros, counter });
        }
        let packed = micros << COUNTER_BITS | counter;
        Ok(HlcTimestamp { packed, node })
    }

    /// Before all stamps that a clock gives.
    pub const fn zero() -> HlcTimestamp {
        HlcTimestamp { packed: 0, node: 0 }
    }

    /// Whether no clock has given it.
    pub const fn is_zero(self) -> bool {
        self.packed == 0
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> u64 {
        self.packed >> COUNTER_BITS
    }

    /// Whole milliseconds since 1970.
    pub const fn as_millis(self) -> u64 {
        self.as_micros() / 1000
    }

    /// What tells stamps of one microsecond apart.
    pub const fn counter(self) -> u16 {
        (self.packed & COUNTER) as u16
    }

    /// All of it in one number, in the same order: the time in the upper 64 bits, the node in the lower.
    pub const fn pack(self) -> u128 {
        (self.packed as u128) << 64 | self.node as u128
    }

    /// The stamp that [`HlcTimestamp::pack`] has made this number of.
    pub const fn unpack(packed: u128) -> HlcTimestamp {
        HlcTimestamp {
            packed: (packed >> 64) as u64,
            node: packed as u64,
        }
    }
}

/// Microseconds above a counter of zero; the last stamp where there are more than 52 bits of them.
const fn above_counter(micros: u64) -> u64 {
    match micros >> (u64::BITS - COUNTER_BITS) {
        0 => micros << COUNTER_BITS,
        _ => u64::MAX,
    }
}

impl fmt::Display for HlcTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}@{}", self.as_micros(), self.counter(), self.node)
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

    /// A stamp for something that happens now: greater than all before, not before physical time. At the end of the range, which time
    /// reaches in the year 2112, it is the last one again and again: [`HlcClock::try_tick`] says so.
    #[inline]
    pub fn tick(&self) -> HlcTimestamp {
        self.at(self.stamp(self.physical.packed()).unwrap_or(u64::MAX))
    }

    /// The same, or [`ActorError::ClockEnd`] where no greater stamp is left.
    pub fn try_tick(&self) -> Result<HlcTimestamp> {
        let stamp = self.stamp(self.physical.packed());
        stamp.map(|packed| self.at(packed)).ok_or(ActorError::ClockEnd)
    }

    /// A stamp for something that begins now: behind it there are others for all that comes of it. [`ActorError::ClockEnd`] where so few are left
    /// that there might be none.
    pub(crate) fn begin(&self) -> Result<HlcTimestamp> {
        match self.tick() {
            stamp if stamp.packed < END => Ok(stamp),
            _ => Err(ActorError::ClockEnd),
        }
    }

    /// The greatest stamp so far, or physical time where that is later. Does not move the clock.
    pub fn now(&self) -> HlcTimestamp {
        // Relaxed: as in `stamp`.
        let packed = self.last.load(Ordering::Relaxed).max(self.physical.packed());
        self.at(packed)
    }

    /// A stamp for the receipt of something stamped `remote`: greater than that, too. An error where `remote` is further ahead
    /// of physical time than is allowed, or at the end of the range; then the clock stays as it was.
    pub fn update(&self, remote: &HlcTimestamp) -> Result<HlcTimestamp> {
        let now = self.physical.packed();
        let ahead = remote.as_micros().saturating_sub(now >> COUNTER_BITS);
        if ahead > self.max_drift {
            return Err(ActorError::ClockDrift {
                ahead,
                allowed: self.max_drift,
            });
        }
        let least = remote.packed.checked_add(1).map(|after| now.max(after));
        let stamp = least.and_then(|least| self.stamp(least));
        stamp.map(|packed| self.at(packed)).ok_or(ActorError::ClockEnd)
    }

    fn at(&self, packed: u64) -> HlcTimestamp {
        HlcTimestamp {
            packed,
            node: self.node,
        }
    }

    /// A stamp of at least `least`, greater than all before; none where the last has been given.
    ///
    /// Every order here is Relaxed: the clock hands over nothing but itself. All changes of `last` stand in one order, each makes
    /// it greater, and a stamp is what its change left there: so stamps are unique, and a tick that happens after another
    /// (by whatever orders them: a ring, a lock) is later in that order and greater.
    #[inline]
    fn stamp(&self, least: u64) -> Option<u64> {
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let next = match last >= least {
                // Most ticks of a busy clock: the microsecond has not changed. This cannot fail, whoever else ticks: fewer threads than
                // lie between `END` and the last stamp can have come this far.
                true if last < END => return Some(self.last.fetch_add(1, Ordering::Relaxed) + 1),
                true => last.checked_add(1)?,
                false => least,
            };
            match self
                .last
                .compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Some(next),
                Err(now) => last = now,
            }
        }
    }
}
