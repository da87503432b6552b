//! Figures as Prometheus reads them: its text format, version 0.0.4. Must not know how they get there.

use std::fmt::Write;

use super::histogram::Latencies;
use super::reading::Reading;
use super::series::{
    ACTORS, COUNTERS, DEAD_LETTERS, FAILED, LATENCY, QUEUE_DEPTH, Series, series_of, source_labels,
};

/// Upper ends of the histogram's buckets, in nanoseconds.
const BUCKETS: [u64; 20] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// What sources have said ([`readings`](super::readings)), in Prometheus's text format:
///
/// | metric | type | labels |
/// |---|---|---|
/// | `perpetua_actors` | gauge | `runtime`, `backend`, `actor`, `id` |
/// | `perpetua_actor_messages_processed_total`, `…_sent_total`, `…_dropped_total` | counter | the same |
/// | `perpetua_actor_errors_total` | counter | the same |
/// | `perpetua_actor_queue_depth` | gauge | the same |
/// | `perpetua_actor_latency_seconds` | histogram, its bounds exact to a 32nd | the same |
/// | `perpetua_dead_letters_total` | counter | `runtime`, `backend` |
/// | `perpetua_runtime_failed` | gauge | `runtime`, `backend` |
///
/// `actor` is what actors were launched as. The actors of launches of at most 16 have a series each, told apart by `id`, the actor's
/// number; larger launches have one series for all, without `id`. A source has at most 512 series, and one more, `(others)`, for
/// what launches remain: so a million actors are a few hundred lines. Each actor is in one series: sums are right.
pub fn exposition(readings: &[(String, Reading)]) -> String {
    let series: Vec<Series> = readings
        .iter()
        .flat_map(|(name, reading)| series_of(name, reading))
        .collect();
    let mut text = String::new();
    family(&mut text, ACTORS, "gauge");
    for one in &series {
        sample(&mut text, ACTORS.0, &one.labels, one.actors);
    }
    for (name, help, figure) in COUNTERS {
        family(&mut text, (name, help), "counter");
        for one in &series {
            sample(&mut text, name, &one.labels, figure(&one.metrics));
        }
    }
    family(&mut text, QUEUE_DEPTH, "gauge");
    for one in &series {
        sample(&mut text, QUEUE_DEPTH.0, &one.labels, one.metrics.queue_depth);
    }
    family(&mut text, LATENCY, "histogram");
    for one in &series {
        histogram(&mut text, &one.labels, &one.metrics.latency);
    }
    family(&mut text, DEAD_LETTERS, "counter");
    for (name, reading) in readings {
        sample(
            &mut text,
            DEAD_LETTERS.0,
            &source_labels(name, reading),
            reading.dead_letters,
        );
    }
    family(&mut text, FAILED, "gauge");
    for (name, reading) in readings {
        let failed = u8::from(reading.failure.is_some());
        sample(&mut text, FAILED.0, &source_labels(name, reading), failed);
    }
    text
}

// Writing to a string does not fail.
fn family(text: &mut String, (name, help): (&str, &str), kind: &str) {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn sample(text: &mut String, name: &str, labels: &[(&str, String)], value: impl std::fmt::Display) {
    text.push_str(name);
    for (at, (label, value)) in labels.iter().enumerate() {
        let before = if at == 0 { '{' } else { ',' };
        let _ = write!(text, "{before}{label}=\"{}\"", escaped(value));
    }
    let _ = writeln!(text, "}} {value}");
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

fn histogram(text: &mut String, labels: &[(&'static str, String)], latencies: &Latencies) {
    let name = LATENCY.0;
    let mut with_bound = labels.to_vec();
    with_bound.push(("le", String::new()));
    let mut bucket = |bound: String, count: u64| {
        if let Some((_, le)) = with_bound.last_mut() {
            *le = bound;
        }
        sample(text, &format!("{name}_bucket"), &with_bound, count);
    };
    for bound in BUCKETS {
        bucket((bound as f64 / 1e9).to_string(), latencies.count_to(bound));
    }
    bucket("+Inf".into(), latencies.count());
    sample(text, &format!("{name}_sum"), labels, latencies.sum() as f64 / 1e9);
    sample(text, &format!("{name}_count"), labels, latencies.count());
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    use super::*;
    use crate::telemetry::{ActorCounters, ActorReading};

    #[test]
    fn figures_are_told_as_prometheus_reads_them() {
        let counters = ActorCounters::new();
        counters.count_processed(3);
        counters.set_queue_depth(2);
        for nanos in [1_000, 40_000, 3_000_000_000] {
            counters.latency.record(nanos);
        }
        let reading = Reading::new("CPU").with(ActorReading::new(
            "a \"name\"\\with\nall",
            7,
            "Active",
            counters.snapshot(),
        ));
        let text = exposition(&[("market".into(), reading)]);
        let labels = r#"runtime="market",backend="CPU",actor="a \"name\"\\with\nall",id="7""#;
        let mut expected = format!(
            "# HELP perpetua_actors Actors that there are.\n# TYPE perpetua_actors gauge\nperpetua_actors{{{labels}}} 1\n"
        );
        for (name, help, value) in [
            ("messages_processed", "Messages that handlers have handled.", 3),
            (
                "messages_sent",
                "Messages that handlers have sent, replies included.",
                0,
            ),
            ("messages_dropped", "Messages to actors that were not handled.", 0),
            (
                "errors",
                "Faults of handlers, foreign messages, deadlines passed.",
                0,
            ),
        ] {
            let name = format!("perpetua_actor_{name}_total");
            expected += &format!("# HELP {name} {help}\n# TYPE {name} counter\n{name}{{{labels}}} {value}\n");
        }
        let name = "perpetua_actor_queue_depth";
        expected +=
            &format!("# HELP {name} Messages that wait.\n# TYPE {name} gauge\n{name}{{{labels}}} 2\n");
        let name = "perpetua_actor_latency_seconds";
        expected += &format!(
            "# HELP {name} From sending a message to the end of its handler.\n# TYPE {name} histogram\n"
        );
        for (bound, count) in [
            ("0.000001", 1),
            ("0.000002", 1),
            ("0.000005", 1),
            ("0.00001", 1),
            ("0.00002", 1),
            ("0.00005", 2),
            ("0.0001", 2),
            ("0.0002", 2),
            ("0.0005", 2),
            ("0.001", 2),
            ("0.002", 2),
            ("0.005", 2),
            ("0.01", 2),
            ("0.02", 2),
            ("0.05", 2),
            ("0.1", 2),
            ("0.2", 2),
            ("0.5", 2),
            ("1", 2),
            ("10", 3),
            ("+Inf", 3),
        ] {
            expected += &format!("{name}_bucket{{{labels},le=\"{bound}\"}} {count}\n");
        }
        expected += &format!("{name}_sum{{{labels}}} 3.000041\n{name}_count{{{labels}}} 3\n");
        let source = r#"runtime="market",backend="CPU""#;
        expected += &format!(
            "# HELP perpetua_dead_letters_total Messages that nobody handled, for whatever reason.\n\
             # TYPE perpetua_dead_letters_total counter\nperpetua_dead_letters_total{{{source}}} 0\n\
             # HELP perpetua_runtime_failed 1 where an actor without supervisor has stopped all others.\n\
             # TYPE perpetua_runtime_failed gauge\nperpetua_runtime_failed{{{source}}} 0\n"
        );
        assert_eq!(text, expected);
    }
}
