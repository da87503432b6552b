//! What actors do, counted while they do it: messages, errors, and how long they took. Everything is written without locks and can be
//! read at any time. Must not know who reads, nor in which format.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bits of a value that its bucket keeps behind the leading one: buckets are at most a 32nd of their values wide.
const BITS: u32 = 5;
const PER_POWER: usize = 1 << BITS;
/// Values of this many bits and more share the last bucket: 2^40 ns are 18 minutes.
const LARGEST_BITS: u32 = 40;
const BUCKETS: usize = (LARGEST_BITS - BITS + 1) as usize * PER_POWER;

/// Latencies in nanoseconds, in buckets that grow with them (as HDR histograms do). Takes 9 KiB.
#[derive(Debug)]
pub struct LatencyHistogram {
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
    largest: AtomicU64,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram::new()
    }
}

impl LatencyHistogram {
    /// One without values.
    pub fn new() -> LatencyHistogram {
        LatencyHistogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            largest: AtomicU64::new(0),
        }
    }

    /// Counts a latency of `nanos` nanoseconds. Any thread may at any time.
    #[inline]
    pub fn record(&self, nanos: u64) {
        self.record_many(nanos, 1);
    }

    /// Counts `count` latencies of `nanos` nanoseconds: a batch that took `count` times as long.
    #[inline]
    pub fn record_many(&self, nanos: u64, count: u64) {
        // Relaxed: values are independent of each other, and a reader may see some and not others.
        self.buckets[bucket_of(nanos)].fetch_add(count, Ordering::Relaxed);
        self.sum.fetch_add(nanos.wrapping_mul(count), Ordering::Relaxed);
        if nanos > self.largest.load(Ordering::Relaxed) {
            self.largest.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    /// What has been counted so far. Values that come meanwhile are in it or not.
    pub fn snapshot(&self) -> Latencies {
        Latencies {
            counts: self
                .buckets
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .collect(),
            sum: self.sum.load(Ordering::Relaxed),
            largest: self.largest.load(Ordering::Relaxed),
        }
    }
}

/// The bucket of a value: values below [`PER_POWER`] have one each, above it each power of two has [`PER_POWER`].
#[inline]
fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.min((1 << LARGEST_BITS) - 1);
    let shift = (63 - (nanos | 1).leading_zeros()).saturating_sub(BITS);
    // The leading one is counted by the next power's start: (shift + 1) * 32 + the bits behind it.
    (shift as usize) * PER_POWER + (nanos >> shift) as usize
}

/// The least value of a bucket, and how many values it has.
fn range_of(bucket: usize) -> (u64, u64) {
    let shift = (bucket / PER_POWER).saturating_sub(1);
    let mantissa = bucket - shift * PER_POWER;
    ((mantissa as u64) << shift, 1 << shift)
}

/// Latencies as they were counted at some moment, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies {
    counts: Vec<u64>,
    sum: u64,
    largest: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            counts: vec![0; BUCKETS],
            sum: 0,
            largest: 0,
        }
    }
}

impl Latencies {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Their mean in nanoseconds; 0 without any.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count().max(1) as f64
    }

    /// The greatest, exactly.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.largest)
    }

    /// The latency that `part` (0 to 1) of them do not exceed, to a 64th; zero without any.
    pub fn quantile(&self, part: f64) -> Duration {
        let count = self.count();
        let rank = ((count as f64 * part.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, held) in self.counts.iter().enumerate() {
            below += held;
            if below >= rank {
                let (least, width) = range_of(bucket);
                return Duration::from_nanos((least + width / 2).min(self.largest));
            }
        }
        Duration::ZERO
    }

    /// The median.
    pub fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    /// What one of a hundred exceeds.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// What one of a thousand exceeds.
    pub fn p999(&self) -> Duration {
        self.quantile(0.999)
    }

    /// These and those of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.largest = self.largest.max(other.largest);
    }

    /// Each bucket that holds something: its upper end in nanoseconds, and how many do not exceed that. What Prometheus calls
    /// cumulative.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut below = 0;
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(move |(bucket, count)| {
                below += count;
                let (least, width) = range_of(bucket);
                (least + width - 1, below)
            })
    }
}

/// What one actor does. Whoever runs it counts; anybody reads.
#[derive(Debug, Default)]
pub struct ActorCounters {
    processed: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
    errors: AtomicU64,
    depth: AtomicU64,
    /// From sending to the end of the handler.
    pub latency: LatencyHistogram,
}

impl ActorCounters {
    /// All zero.
    pub fn new() -> ActorCounters {
        ActorCounters::default()
    }

    /// Counts `count` messages as handled.
    #[inline]
    pub fn count_processed(&self, count: u64) {
        self.processed.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts `count` messages as sent by the actor.
    #[inline]
    pub fn count_sent(&self, count: u64) {
        self.sent.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts `count` messages as dropped: they are dead letters, or dropped by a policy.
    #[inline]
    pub fn count_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts `count` errors: faults, foreign messages, deadlines passed.
    #[inline]
    pub fn count_errors(&self, count: u64) {
        self.errors.fetch_add(count, Ordering::Relaxed);
    }

    /// Says how many messages wait.
    #[inline]
    pub fn set_queue_depth(&self, depth: u64) {
        self.depth.store(depth, Ordering::Relaxed);
    }

    /// All of it as it is now.
    pub fn snapshot(&self) -> ActorMetrics {
        ActorMetrics {
            messages_processed: self.processed.load(Ordering::Relaxed),
            messages_sent: self.sent.load(Ordering::Relaxed),
            messages_dropped: self.dropped.load(Ordering::Relaxed),
            errors_encountered: self.errors.load(Ordering::Relaxed),
            queue_depth: self.depth.load(Ordering::Relaxed),
            latency: self.latency.snapshot(),
        }
    }
}

/// What an actor has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActorMetrics {
    /// Messages that its handler has handled.
    pub messages_processed: u64,
    /// Messages that its handler has sent, replies included.
    pub messages_sent: u64,
    /// Messages to it that were not handled.
    pub messages_dropped: u64,
    /// Faults, foreign messages, deadlines passed.
    pub errors_encountered: u64,
    /// Messages that wait.
    pub queue_depth: u64,
    /// From sending to the end of the handler.
    pub latency: Latencies,
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (least, width) = range_of(bucket);
            assert_eq!(least, next, "bucket {bucket}");
            assert_eq!((bucket_of(least), bucket_of(least + width - 1)), (bucket, bucket));
            next = least + width;
        }
        assert_eq!(next, 1 << LARGEST_BITS);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_32nd(values in proptest::collection::vec(0u64..1 << 38, 1..200), part in 0.0f64..=1.0) {
            let histogram = LatencyHistogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let latencies = histogram.snapshot();
            let mut sorted = values;
            sorted.sort_unstable();
            let rank = ((sorted.len() as f64 * part).ceil() as usize).max(1);
            let (exact, got) = (sorted[rank - 1], latencies.quantile(part).as_nanos() as u64);
            prop_assert!(got.abs_diff(exact) <= exact / 32, "{got} for {exact}");
            prop_assert_eq!(latencies.count(), sorted.len() as u64);
            prop_assert_eq!(latencies.max().as_nanos() as u64, sorted[sorted.len() - 1]);
            prop_assert_eq!(latencies.sum(), sorted.iter().sum::<u64>());
            prop_assert_eq!(latencies.cumulative().last().map(|(_, count)| count), Some(sorted.len() as u64));
        }
    }

    #[test]
    fn several_threads_write_while_one_reads() {
        const EACH: u64 = 50_000;
        let counters = ActorCounters::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for value in 0..EACH {
                        counters.latency.record(value);
                        counters.count_processed(1);
                    }
                });
            }
            let mut last = 0;
            while last < 3 * EACH {
                let count = counters.snapshot().latency.count();
                assert!(count >= last);
                last = count;
                std::thread::yield_now();
            }
        });
        let mut all = counters.snapshot();
        assert_eq!(
            (all.messages_processed, all.latency.count()),
            (3 * EACH, 3 * EACH)
        );
        assert_eq!(all.latency.sum(), 3 * (EACH * (EACH - 1) / 2));
        let twice = all.latency.clone();
        all.latency.merge(&twice);
        assert_eq!((all.latency.count(), all.latency.p50()), (6 * EACH, twice.p50()));
    }

    #[test]
    fn without_values_all_is_zero() {
        let latencies = LatencyHistogram::new().snapshot();
        assert_eq!(latencies, Latencies::default());
        assert_eq!((latencies.p999(), latencies.mean()), (Duration::ZERO, 0.0));
    }
}
