//! What all actors of a launch have done, read from the device at once. Must not know who asks.

use super::{Deployed, lock};
use crate::telemetry::ActorMetrics;

impl Deployed {
    /// All actors together. Stops nobody.
    pub(super) fn metrics(&self) -> ActorMetrics {
        // What waits is as of now.
        for (number, home) in (0..).zip(&self.homes) {
            self.settle(number, &mut lock(&home.queue));
        }
        let mut counts = self
            .grid
            .counts(0..self.grid.actors())
            .unwrap_or_default()
            .into_iter();
        let mut all = ActorMetrics::default();
        for cell in &self.cells {
            all.merge(&cell.metrics(counts.next().unwrap_or_default()));
        }
        all.latency = self.grid.latencies_of_all().unwrap_or_default();
        all
    }
}
