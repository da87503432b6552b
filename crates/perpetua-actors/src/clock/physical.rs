//! Physical time in microseconds since 1970, come by as fast as the machine allows. Must not know logical clocks; time may go
//! backwards here.

use super::system::{coarse_nanos, system_nanos};
use super::tsc::Tsc;
use super::{COUNTER_BITS, above_counter};
use crate::sync::{Arc, AtomicU64, Ordering};

/// Where physical time comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PhysicalClock {
    /// The processor's time stamp counter, set by the operating system's clock ten times a second and dropped where it disagrees
    /// with that (some 7 ns). Chosen by [`PhysicalClock::fastest`] only.
    Tsc(&'static Tsc),
    /// The operating system's clock (some 20 ns).
    System,
    /// The operating system's clock as of its last tick, which may be some milliseconds ago (some 5 ns). Elsewhere than on
    /// Linux the same as [`PhysicalClock::System`].
    Coarse,
    /// Microseconds since 1970 that somebody else sets: tests, simulated time.
    Manual(Arc<AtomicU64>),
}

impl PhysicalClock {
    /// The time stamp counter where it is invariant and agrees with the operating system's clock, else that.
    pub fn fastest() -> PhysicalClock {
        Tsc::shared().map_or(PhysicalClock::System, PhysicalClock::Tsc)
    }

    /// Microseconds since 1970.
    pub fn micros(&self) -> u64 {
        self.packed() >> COUNTER_BITS
    }

    /// Microseconds since 1970 above a counter of zero.
    #[inline]
    pub(super) fn packed(&self) -> u64 {
        match self {
            PhysicalClock::Tsc(tsc) => tsc.packed(),
            PhysicalClock::System => above_counter(system_nanos() / 1000),
            PhysicalClock::Coarse => above_counter(coarse_nanos() / 1000),
            // Relaxed: only the number itself counts.
            PhysicalClock::Manual(micros) => above_counter(micros.load(Ordering::Relaxed)),
        }
    }
}
