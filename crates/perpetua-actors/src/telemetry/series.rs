//! Readings as series of figures: few enough for a store of metrics, however many actors there are. Must not know any format.

use super::counters::ActorMetrics;
use super::reading::Reading;

/// The actors of larger launches are one series.
pub(super) const ONE_BY_ONE: u32 = 16;
/// Series of one source; further launches are one series, `(others)`.
pub(super) const MOST: usize = 512;
const OTHERS: &str = "(others)";

/// A figure that only grows.
pub(super) type Counter = (&'static str, &'static str, fn(&ActorMetrics) -> u64);

/// What is counted of actors: name, meaning, figure.
pub(super) const COUNTERS: [Counter; 4] = [
    (
        "perpetua_actor_messages_processed_total",
        "Messages that handlers have handled.",
        |metrics| metrics.messages_processed,
    ),
    (
        "perpetua_actor_messages_sent_total",
        "Messages that handlers have sent, replies included.",
        |metrics| metrics.messages_sent,
    ),
    (
        "perpetua_actor_messages_dropped_total",
        "Messages to actors that were not handled.",
        |metrics| metrics.messages_dropped,
    ),
    (
        "perpetua_actor_errors_total",
        "Faults of handlers, foreign messages, deadlines passed.",
        |metrics| metrics.errors_encountered,
    ),
];
pub(super) const ACTORS: (&str, &str) = ("perpetua_actors", "Actors that there are.");
pub(super) const QUEUE_DEPTH: (&str, &str) = ("perpetua_actor_queue_depth", "Messages that wait.");
pub(super) const LATENCY: (&str, &str) = (
    "perpetua_actor_latency_seconds",
    "From sending a message to the end of its handler.",
);
pub(super) const DEAD_LETTERS: (&str, &str) = (
    "perpetua_dead_letters_total",
    "Messages that nobody handled, for whatever reason.",
);
pub(super) const FAILED: (&str, &str) = (
    "perpetua_runtime_failed",
    "1 where an actor without supervisor has stopped all others.",
);

/// Figures of an actor or of many, and what tells them from others.
pub(super) struct Series {
    /// Names and values: `runtime`, `backend`, `actor`, and of one actor `id`.
    pub(super) labels: Vec<(&'static str, String)>,
    /// How many actors these are.
    pub(super) actors: u32,
    pub(super) metrics: ActorMetrics,
}

/// What tells a source from others.
pub(super) fn source_labels(name: &str, reading: &Reading) -> Vec<(&'static str, String)> {
    vec![("runtime", name.into()), ("backend", reading.backend.clone())]
}

/// A source's series: each of its actors is in one of them.
pub(super) fn series_of(name: &str, reading: &Reading) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut rest: Option<Series> = None;
    let labels = |actor: &str, id: Option<u32>| {
        let mut labels = source_labels(name, reading);
        labels.push(("actor", actor.into()));
        labels.extend(id.map(|id| ("id", id.to_string())));
        labels
    };
    let launches = reading.actors.chunk_by(|a, b| a.launch == b.launch);
    for launch in launches {
        let Some(first) = launch.first() else { continue };
        let actors: u32 = launch.iter().map(|entry| entry.actors).sum();
        if actors <= ONE_BY_ONE && all.len() + launch.len() <= MOST {
            all.extend(launch.iter().map(|entry| Series {
                labels: labels(&first.launch, Some(entry.id)),
                actors: entry.actors,
                metrics: entry.metrics.clone(),
            }));
            continue;
        }
        let series = match all.len() < MOST {
            true => {
                all.push(Series {
                    labels: labels(&first.launch, None),
                    actors: 0,
                    metrics: ActorMetrics::default(),
                });
                all.last_mut()
            }
            false => Some(rest.get_or_insert_with(|| Series {
                labels: labels(OTHERS, None),
                actors: 0,
                metrics: ActorMetrics::default(),
            })),
        };
        if let Some(series) = series {
            series.actors += actors;
            launch
                .iter()
                .for_each(|entry| series.metrics.merge(&entry.metrics));
        }
    }
    all.extend(rest);
    all
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    use super::*;
    use crate::telemetry::ActorReading;

    fn launch(name: &str, actors: u32) -> Vec<ActorReading> {
        let metrics = ActorMetrics {
            messages_processed: 1,
            ..ActorMetrics::default()
        };
        let member =
            |at| ActorReading::new(format!("{name}[{at}]"), at, "Active", metrics.clone()).launched_as(name);
        (0..actors).map(member).collect()
    }

    fn check(actors: impl IntoIterator<Item = ActorReading>, expected: &[(&str, Option<&str>, u32)]) -> u64 {
        let mut reading = Reading::new("CPU");
        reading.actors.extend(actors);
        let series = series_of("market", &reading);
        let found: Vec<_> = series
            .iter()
            .map(|series| {
                let id = series.labels.get(3).map(|(_, id)| id.as_str());
                (series.labels[2].1.as_str(), id, series.actors)
            })
            .collect();
        let from = found.len() - expected.len();
        assert_eq!(&found[from..], expected);
        series
            .iter()
            .map(|series| series.metrics.messages_processed)
            .sum()
    }

    #[test]
    fn few_actors_have_a_series_each_and_many_one_for_all() {
        let expected = [("few", Some("0"), 1), ("few", Some("1"), 1), ("many", None, 17)];
        assert_eq!(
            check([launch("few", 2), launch("many", 17)].concat(), &expected),
            19
        );
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let launches = (0..600).flat_map(|number| launch(&format!("launch{number}"), 1));
        let expected = [("launch511", Some("0"), 1), ("(others)", None, 88)];
        assert_eq!(check(launches, &expected), 600);
    }
}
