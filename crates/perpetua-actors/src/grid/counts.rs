//! What an actor's record on its device says that it has done. Must not know grids.

/// What an actor has done, as its device counted. Read in the moment in which a lower half wraps, 2^32 less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActorCounts {
    /// How often its handler has run to its end.
    pub handled: u64,
    /// What these runs have sent, answers included.
    pub sent: u64,
    /// What their outboxes had no room for; wraps at 2^32.
    pub refused: u32,
}

impl ActorCounts {
    /// Of an actor's record.
    pub(super) fn of(record: &[u32]) -> ActorCounts {
        let wide = |low: usize, high: usize| u64::from(record[low]) | u64::from(record[high]) << 32;
        ActorCounts {
            handled: wide(1, 4),
            sent: wide(2, 5),
            refused: record[3],
        }
    }
}
