//! Signs of life of a home, as the host has seen them. Must not know grids.

use std::time::Instant;

use super::port::Report;

/// What a home told when it was last looked at, and since when it has told just that.
pub(super) struct Beat {
    pub(super) told: [Report; 2],
    pub(super) since: Instant,
}

impl Beat {
    /// Nothing yet.
    pub(super) fn now() -> Beat {
        Beat {
            told: Default::default(),
            since: Instant::now(),
        }
    }
}
