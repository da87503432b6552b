//! Figures for the crate `metrics`, and so for whatever recorder a program has installed. Must not know recorders.

use std::collections::HashMap;

use super::histogram::Latencies;
use super::readings;
use super::series::{ACTORS, COUNTERS, DEAD_LETTERS, FAILED, LATENCY, QUEUE_DEPTH, series_of, source_labels};

/// Publishes what all actors of this process do to the recorder of the crate `metrics` that the program has installed, by the names
/// and with the labels of [Prometheus's](crate::telemetry): call [`Publisher::publish`] every few seconds, from one place.
///
/// ```
/// let mut publisher = perpetua_actors::telemetry::Publisher::new();
/// publisher.publish(); // to nobody here: this program has installed no recorder
/// ```
#[derive(Debug, Default)]
pub struct Publisher {
    // Recorders count values themselves: they are told of those that are new.
    told: HashMap<Vec<(&'static str, String)>, Latencies>,
}

impl Publisher {
    /// One that has told nothing yet.
    pub fn new() -> Publisher {
        Publisher::default()
    }

    /// Tells the recorder what is so now. Latencies that came since the last time are recorded one by one, to a 32nd, in seconds.
    pub fn publish(&mut self) {
        for (name, help, _) in COUNTERS.into_iter() {
            metrics::describe_counter!(name, help);
        }
        metrics::describe_gauge!(ACTORS.0, ACTORS.1);
        metrics::describe_gauge!(QUEUE_DEPTH.0, QUEUE_DEPTH.1);
        metrics::describe_histogram!(LATENCY.0, metrics::Unit::Seconds, LATENCY.1);
        metrics::describe_counter!(DEAD_LETTERS.0, DEAD_LETTERS.1);
        metrics::describe_gauge!(FAILED.0, FAILED.1);
        let mut told = HashMap::new();
        for (name, reading) in readings() {
            let labels = source_labels(&name, &reading);
            metrics::counter!(DEAD_LETTERS.0, &labels).absolute(reading.dead_letters);
            let failed = f64::from(u8::from(reading.failure.is_some()));
            metrics::gauge!(FAILED.0, &labels).set(failed);
            for series in series_of(&name, &reading) {
                let labels = &series.labels;
                metrics::gauge!(ACTORS.0, labels).set(series.actors);
                metrics::gauge!(QUEUE_DEPTH.0, labels).set(series.metrics.queue_depth as f64);
                for (name, _, figure) in COUNTERS {
                    metrics::counter!(name, labels).absolute(figure(&series.metrics));
                }
                let before = self.told.get(labels).cloned().unwrap_or_default();
                let latency = metrics::histogram!(LATENCY.0, labels);
                for (nanos, count) in series.metrics.latency.since(&before) {
                    latency.record_many(nanos as f64 / 1e9, count as usize);
                }
                told.insert(series.labels, series.metrics.latency);
            }
        }
        self.told = told;
    }
}
