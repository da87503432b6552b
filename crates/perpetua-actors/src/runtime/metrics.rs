//! What actors have done, in figures. Must not know engines.

use super::engine::ActorStats;

/// Figures of one actor, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelMetrics {
    /// Messages whose handler has run to its end.
    pub messages_processed: u64,
    /// Handlers that faulted, and messages of a type that the handler does not take.
    pub errors_encountered: u64,
    /// Messages that ended without their handler, each a dead letter, and what found the handler's outbox full.
    pub messages_dropped: u64,
    /// Replies to messages of other actors that these do not take.
    pub replies_unclaimed: u64,
    /// Messages that wait.
    pub queue_depth: u64,
}

impl KernelMetrics {
    pub(super) fn add(&mut self, stats: &ActorStats) {
        self.messages_processed += stats.processed;
        self.errors_encountered += stats.errors;
        self.messages_dropped += stats.dropped;
        self.replies_unclaimed += stats.unclaimed;
        self.queue_depth += stats.queued;
    }
}
