//! What an actor does, counted while it does it. Everything is written without locks and can be read at any time. Must not know who
//! reads, nor in which format.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::{Latencies, LatencyHistogram};

/// What one actor does. The thread that runs the actor counts; any thread may read.
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
    /// From the stamp of sending to the end of the handler (on CUDA: to its beginning, as the device counts), by the runtime's hybrid
    /// logical clock: nanoseconds, of which stamps tell whole microseconds. Deadlines passed and faults are not in it.
    pub latency: Latencies,
}

impl ActorMetrics {
    /// What this one has done and what `other` has.
    pub fn merge(&mut self, other: &ActorMetrics) {
        self.messages_processed += other.messages_processed;
        self.messages_sent += other.messages_sent;
        self.messages_dropped += other.messages_dropped;
        self.errors_encountered += other.errors_encountered;
        self.queue_depth += other.queue_depth;
        if other.latency.count() > 0 {
            self.latency.merge(&other.latency);
        }
    }
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    use super::*;

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
}
