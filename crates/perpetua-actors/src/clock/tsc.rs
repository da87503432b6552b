//! Physical time from the processor's time stamp counter. An anchor says what time a count was and how fast it counts; the
//! operating system's clock renews it, and tells when the counter is not to be trusted. Must not know logical clocks.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::COUNTER_BITS;
use super::system::system_nanos;
use crate::sync::{AtomicU64, CachePadded, Ordering, fence};

/// For how long the rate is measured before first use.
const FIRST_MEASURE: Duration = Duration::from_millis(2);
/// For how many nanoseconds an anchor is good.
const ANCHOR_NANOS: u64 = 100_000_000;
/// Rates that differ by more than this part from one anchor to the next are no rate. Two readings of both clocks miss each
/// other by less than a microsecond, in 2 ms at first.
const TRUST: f64 = 2e-3;
/// Fraction bits of the rate.
const RATE_BITS: u32 = 58;

/// What time it was at a count, and how fast the counter counts: read by many, written by one at a time, neither waits.
#[derive(Debug)]
pub(super) struct Anchor {
    /// Odd while the rest is being written.
    version: AtomicU64,
    count: AtomicU64,
    /// Time at that count: microseconds above [`COUNTER_BITS`] bits of fraction.
    packed: AtomicU64,
    /// Packed time a count, with [`RATE_BITS`] fraction bits; 0: the counter is not trusted.
    rate: AtomicU64,
    /// Counts after which it is to be renewed.
    good_for: AtomicU64,
}

/// What an anchor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) count: u64,
    pub(super) packed: u64,
    pub(super) rate: u64,
    pub(super) good_for: u64,
}

impl Anchor {
    pub(super) fn new(reading: Reading) -> Anchor {
        Anchor {
            version: AtomicU64::new(0),
            count: AtomicU64::new(reading.count),
            packed: AtomicU64::new(reading.packed),
            rate: AtomicU64::new(reading.rate),
            good_for: AtomicU64::new(reading.good_for),
        }
    }

    /// What it holds; `None` while it is being written.
    #[inline(always)]
    pub(super) fn read(&self) -> Option<Reading> {
        // Acquire: pairs with the Release that ends `write`; what follows is at least as new as the version.
        let version = self.version.load(Ordering::Acquire);
        let reading = Reading {
            count: self.count.load(Ordering::Relaxed),
            packed: self.packed.load(Ordering::Relaxed),
            rate: self.rate.load(Ordering::Relaxed),
            good_for: self.good_for.load(Ordering::Relaxed),
        };
        // Acquire: pairs with the Release fence in `write`. Had one of the loads above seen a newer value, the load below would
        // see that the version has changed.
        fence(Ordering::Acquire);
        let same = self.version.load(Ordering::Relaxed) == version;
        (same && version & 1 == 0).then_some(reading)
    }

    /// Puts `reading` in place of `old`; false where somebody else writes, or has written since `old` was read at `version`.
    pub(super) fn write(&self, version: u64, reading: Reading) -> bool {
        // Acquire: what is written below stays below, and comes after what the last writer wrote.
        let begun = version & 1 == 0
            && self
                .version
                .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !begun {
            return false;
        }
        // Release: pairs with the Acquire fence in `read`: whoever sees a store below, sees the odd version.
        fence(Ordering::Release);
        self.count.store(reading.count, Ordering::Relaxed);
        self.packed.store(reading.packed, Ordering::Relaxed);
        self.rate.store(reading.rate, Ordering::Relaxed);
        self.good_for.store(reading.good_for, Ordering::Relaxed);
        // Release: pairs with the Acquire that begins `read`.
        self.version.store(version + 2, Ordering::Release);
        true
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

/// Time by the time stamp counter.
#[derive(Debug)]
pub struct Tsc {
    anchor: CachePadded<Anchor>,
    /// Both clocks at the beginning, against which the rate is measured ever more exactly.
    begin: Sample,
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    count: u64,
    instant: Instant,
}

impl Sample {
    /// Of a few tries the one whose two counts lie closest together: interrupts fall between the others.
    fn take() -> Sample {
        let mut best = (
            u64::MAX,
            Sample {
                count: 0,
                instant: Instant::now(),
            },
        );
        for _ in 0..5 {
            let before = count();
            let instant = Instant::now();
            let width = count().wrapping_sub(before);
            if width < best.0 {
                let count = before.wrapping_add(width / 2);
                best = (width, Sample { count, instant });
            }
        }
        best.1
    }

    /// Counts a nanosecond between `self` and `later`; `None` where the counter went backwards.
    fn rate_to(&self, later: &Sample) -> Option<f64> {
        let nanos = later.instant.checked_duration_since(self.instant)?.as_nanos() as f64;
        let counts = later.count.checked_sub(self.count)? as f64;
        (nanos > 0.0 && counts > 0.0).then_some(counts / nanos)
    }
}

impl Tsc {
    /// The process's only one; `None` where the processor has no counter that runs at one rate always.
    pub(super) fn shared() -> Option<&'static Tsc> {
        static TSC: OnceLock<Option<Tsc>> = OnceLock::new();
        // A machine that is busy at first may interrupt a measurement.
        TSC.get_or_init(|| (0..3).find_map(|_| Tsc::begin())).as_ref()
    }

    /// Measures the rate, twice; `None` where the two differ.
    fn begin() -> Option<Tsc> {
        if !is_invariant() {
            return None;
        }
        let wait = |since: Instant| {
            while since.elapsed() < FIRST_MEASURE {
                std::hint::spin_loop();
            }
        };
        let begin = Sample::take();
        wait(begin.instant);
        let middle = Sample::take();
        wait(middle.instant);
        let end = Sample::take();
        let (first, second) = (begin.rate_to(&middle)?, middle.rate_to(&end)?);
        let reading = anchor_at(begin.rate_to(&end)?)?;
        agree(first, second).then(|| Tsc {
            anchor: CachePadded(Anchor::new(reading)),
            begin,
        })
    }

    /// Microseconds since 1970 above a counter of zero.
    #[inline]
    pub(super) fn packed(&self) -> u64 {
        if let Some(anchor) = self.anchor.read() {
            let counts = count().wrapping_sub(anchor.count);
            // A counter that is behind the anchor is far beyond it here.
            if counts <= anchor.good_for {
                return anchor.after(counts);
            }
        }
        self.renew()
    }

    /// The operating system's time; and renews the anchor, unless somebody else does.
    #[cold]
    fn renew(&self) -> u64 {
        let version = self.anchor.version();
        let now = (system_nanos() / 1000) << COUNTER_BITS;
        let Some(old) = self.anchor.read() else {
            return now;
        };
        if old.rate == 0 {
            return now;
        }
        let before = (1u64 << RATE_BITS) as f64 / old.rate as f64 * PACKED_PER_NANO;
        let rate = self.begin.rate_to(&Sample::take());
        let reading = rate
            .filter(|rate| agree(*rate, before))
            .and_then(anchor_at)
            // Not trusted any more: from now on each time is the operating system's.
            .unwrap_or(Reading {
                rate: 0,
                good_for: 0,
                ..old
            });
        self.anchor.write(version, reading);
        now
    }

    /// Whether the counter is still in use.
    pub fn is_trusted(&self) -> bool {
        self.anchor.read().is_none_or(|anchor| anchor.rate != 0)
    }
}

/// Packed units a nanosecond.
const PACKED_PER_NANO: f64 = (1u64 << COUNTER_BITS) as f64 / 1000.0;

impl Reading {
    /// Time `counts` counts after the anchor, at most [`Reading::good_for`].
    #[inline(always)]
    pub(super) fn after(&self, counts: u64) -> u64 {
        let since = (u128::from(counts) * u128::from(self.rate)) >> RATE_BITS;
        let packed = self.packed.wrapping_add(since as u64);
        packed >> COUNTER_BITS << COUNTER_BITS
    }
}

/// An anchor for now, of a counter that counts `rate` a nanosecond; `None` where that cannot be written as one.
fn anchor_at(rate: f64) -> Option<Reading> {
    let scaled = PACKED_PER_NANO / rate * (1u64 << RATE_BITS) as f64;
    if !(scaled >= 1.0 && scaled < u64::MAX as f64) {
        return None;
    }
    let (mut width, mut best) = (u64::MAX, (0, 0));
    for _ in 0..5 {
        let before = count();
        let nanos = system_nanos();
        let took = count().wrapping_sub(before);
        if took < width {
            (width, best) = (took, (before.wrapping_add(took / 2), nanos));
        }
    }
    let (count, nanos) = best;
    Some(Reading {
        count,
        packed: (u128::from(nanos) * (1 << COUNTER_BITS) / 1000) as u64,
        rate: scaled as u64,
        good_for: (rate * ANCHOR_NANOS as f64) as u64,
    })
}

fn agree(a: f64, b: f64) -> bool {
    (a - b).abs() <= TRUST * a.min(b)
}

/// The time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn count() -> u64 {
    // SAFETY: user space may read it, unless the operating system forbids it to all programs, which none does by default.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn count() -> u64 {
    0
}

/// Whether the counter runs at one rate in every state of the processor, and does not stop.
#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    // Leaf 0x8000_0007, bit 8 of EDX, where the leaf exists.
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    false
}
