//! Latencies, counted in buckets that grow with them, as HDR histograms do: a quantile is off by at most a 32nd. Written without
//! locks, read at any time. Must not know whose latencies they are, nor who reads.

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
        let counts: Vec<u64> = self
            .buckets
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect();
        if counts.iter().all(|count| *count == 0) {
            return Latencies::default();
        }
        Latencies {
            counts,
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
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    // None where there are no latencies: what did nothing takes no room.
    counts: Vec<u64>,
    sum: u64,
    largest: u64,
}

impl std::fmt::Debug for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Its buckets are more than a thousand numbers.
        f.debug_struct("Latencies")
            .field("count", &self.count())
            .field("p50", &self.p50())
            .field("p99", &self.p99())
            .field("max", &self.max())
            .finish()
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

    /// The latency that `part` (0 to 1) of them do not exceed, to a 32nd; zero without any.
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

    /// What one of ten exceeds.
    pub fn p90(&self) -> Duration {
        self.quantile(0.9)
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
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else {
            self.add_counts(other);
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.largest = self.largest.max(other.largest);
    }

    fn add_counts(&mut self, other: &Latencies) {
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
    }

    /// How many there are of which size, of sizes that came since `before` was counted: the middle of each bucket in nanoseconds, and how
    /// many more it holds now.
    pub fn since(&self, before: &Latencies) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().enumerate().filter_map(|(bucket, count)| {
            let more = count.saturating_sub(before.counts.get(bucket).copied().unwrap_or(0));
            let (least, width) = range_of(bucket);
            (more > 0).then_some((least + width / 2, more))
        })
    }

    /// How many of them do not exceed `nanos` nanoseconds, to a 32nd of it.
    pub fn count_to(&self, nanos: u64) -> u64 {
        match self.counts.get(..=bucket_of(nanos)) {
            Some(counts) => counts.iter().sum(),
            None => 0,
        }
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
    fn without_values_all_is_zero() {
        let latencies = LatencyHistogram::new().snapshot();
        assert_eq!(latencies, Latencies::default());
        assert_eq!((latencies.p999(), latencies.mean()), (Duration::ZERO, 0.0));
    }
}
