//! How fast a kernel is: what its launches took lately, and so whether one is done sooner than handed to other threads. Knows neither
//! kernels nor threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Launches of up to this many lanes run at once on an idle stream, on the calling thread alone: handing work to other
/// threads takes some 20 us, in which a native kernel has done about so many.
const INLINE_NATIVE: u64 = 16 << 10;

/// The same for machine code that nobody has timed yet, and for launches in the interpreter.
const INLINE_CODE: u64 = 4 << 10;
const INLINE_INTERPRETED: u64 = 1 << 10;

/// Nanoseconds that a launch may take on the calling thread, where its kernel has been seen to be fast.
pub(super) const INLINE_TIME: u64 = 15_000;

/// Launches of this many lanes tell how fast a kernel is; up to a limit beyond which nobody asks.
const TELLING: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 20;

/// What runs a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    Native,
    Code,
    Interpreter,
}

/// What a thousand lanes took lately on one thread, in nanoseconds; 0 where that is not known.
#[derive(Default)]
pub(super) struct Pace(AtomicU64);

impl Pace {
    fn known(&self) -> Option<u64> {
        // Relaxed: a guess.
        Some(self.0.load(Ordering::Relaxed)).filter(|pace| *pace > 0)
    }

    /// What so many lanes take on one thread, by what the kernel took lately.
    pub(super) fn nanoseconds(&self, lanes: u64) -> u64 {
        let pace = self.known().unwrap_or(INLINE_TIME * 1000 / INLINE_NATIVE);
        lanes.saturating_mul(pace) / 1000
    }

    /// Whether so many lanes are done sooner than handed to other threads.
    pub(super) fn is_small(&self, lanes: u64, runner: Runner) -> bool {
        let in_time = self.nanoseconds(lanes) <= INLINE_TIME;
        match (runner, self.known()) {
            (Runner::Native, _) => lanes <= INLINE_NATIVE || in_time,
            (Runner::Code, Some(_)) => in_time,
            (Runner::Code, None) => lanes <= INLINE_CODE,
            (Runner::Interpreter, _) => lanes <= INLINE_INTERPRETED,
        }
    }

    /// Looks at the clock while the parts of a launch of so many lanes run, if these tell something.
    pub(super) fn watch(&self, lanes: u64) -> Watch<'_> {
        Watch {
            pace: self,
            lanes: Some(lanes).filter(|lanes| TELLING.contains(lanes)),
            spent: AtomicU64::new(0),
        }
    }
}

/// The time that all threads spend on a launch.
pub(super) struct Watch<'a> {
    pace: &'a Pace,
    lanes: Option<u64>,
    spent: AtomicU64,
}

impl Watch<'_> {
    /// Runs a part of the launch.
    pub(super) fn time<T>(&self, part: impl FnOnce() -> T) -> T {
        let start = self.lanes.and_then(|_| clock());
        let result = part();
        if let Some(start) = start {
            // Relaxed: whoever spreads parts over threads orders it before what follows.
            self.spent
                .fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        result
    }

    /// All lanes are done.
    pub(super) fn note(self) {
        let took = self.spent.into_inner();
        if let Some(lanes) = self.lanes.filter(|_| took > 0) {
            let pace = took.saturating_mul(1000) / lanes.max(1);
            self.pace.0.store(pace.max(1), Ordering::Relaxed);
        }
    }
}

// Browsers' `Instant` does not work on wasm32-unknown-unknown.
fn clock() -> Option<Instant> {
    (!cfg!(target_arch = "wasm32")).then(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_that_is_slow_is_not_small() {
        let pace = Pace::default();
        assert!(pace.is_small(INLINE_CODE, Runner::Code) && !pace.is_small(INLINE_CODE + 1, Runner::Code));
        // A microsecond a lane.
        pace.0.store(1_000_000, Ordering::Relaxed);
        assert!(pace.is_small(15, Runner::Code) && !pace.is_small(16, Runner::Code));
        // A tenth of a nanosecond.
        pace.0.store(100, Ordering::Relaxed);
        assert!(pace.is_small(100_000, Runner::Code) && !pace.is_small(100_000, Runner::Interpreter));
    }

    #[test]
    fn launches_of_some_size_tell() {
        let pace = Pace::default();
        let launch = |lanes| {
            let watch = pace.watch(lanes);
            watch.time(|| std::thread::sleep(std::time::Duration::from_millis(2)));
            watch.note();
        };
        launch(*TELLING.start() - 1);
        assert_eq!(pace.known(), None);
        launch(*TELLING.start());
        assert!(pace.nanoseconds(*TELLING.start()) >= 1_900_000);
    }
}
