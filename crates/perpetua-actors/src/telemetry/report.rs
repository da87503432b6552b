//! What travels to those who watch a process: readings in short. Must not know how it travels.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::histogram::Latencies;
use super::reading::{ActorReading, Reading};

/// Latencies in short, in nanoseconds; all zero where none were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// What one of ten exceeds.
    pub p90: u64,
    /// What one of a hundred exceeds.
    pub p99: u64,
    /// What one of a thousand exceeds.
    pub p999: u64,
    /// The greatest.
    pub max: u64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl From<&Latencies> for LatencySummary {
    fn from(all: &Latencies) -> LatencySummary {
        LatencySummary {
            count: all.count(),
            mean: all.mean(),
            p50: nanos(all.p50()),
            p90: nanos(all.p90()),
            p99: nanos(all.p99()),
            p999: nanos(all.p999()),
            max: nanos(all.max()),
        }
    }
}

/// An actor, or many that are told of together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActorRow {
    /// Its name; of many what they were launched under.
    pub name: String,
    /// Its number; of many the first one's.
    pub id: u32,
    /// How many these are.
    pub actors: u32,
    /// Where in its life it is; of many where most of them are.
    pub state: String,
    /// How many of them are there.
    pub in_state: u32,
    /// Messages that its handler has handled.
    pub processed: u64,
    /// Messages that its handler has sent.
    pub sent: u64,
    /// Messages to it that were not handled.
    pub dropped: u64,
    /// Faults, foreign messages, deadlines passed.
    pub errors: u64,
    /// Messages that wait.
    pub queue_depth: u64,
    /// From sending to the end of the handler.
    pub latency: LatencySummary,
}

impl From<&ActorReading> for ActorRow {
    fn from(actor: &ActorReading) -> ActorRow {
        ActorRow {
            name: actor.name.clone(),
            id: actor.id,
            actors: actor.actors,
            state: actor.state.clone(),
            in_state: actor.in_state,
            processed: actor.metrics.messages_processed,
            sent: actor.metrics.messages_sent,
            dropped: actor.metrics.messages_dropped,
            errors: actor.metrics.errors_encountered,
            queue_depth: actor.metrics.queue_depth,
            latency: (&actor.metrics.latency).into(),
        }
    }
}

/// A runtime, or another source of actors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Its name.
    pub name: String,
    /// On what its actors run.
    pub backend: String,
    /// Whether handlers stay there and wait for messages.
    pub stays: bool,
    /// Messages that nobody handled.
    pub dead_letters: u64,
    /// Why it stands still, where it failed.
    pub failure: Option<String>,
    /// All actors together.
    pub totals: ActorRow,
    /// Its actors. Each is in one row.
    pub actors: Vec<ActorRow>,
}

impl SourceReport {
    /// A reading in short.
    pub fn new(name: String, reading: &Reading) -> SourceReport {
        let totals = ActorReading::new(name.clone(), 0, "", reading.totals())
            .of_many(reading.actors.iter().map(|actor| actor.actors).sum(), 0);
        SourceReport {
            name,
            backend: reading.backend.clone(),
            stays: reading.stays,
            dead_letters: reading.dead_letters,
            failure: reading.failure.clone(),
            totals: (&totals).into(),
            actors: reading.actors.iter().map(ActorRow::from).collect(),
        }
    }
}

/// Which process it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its number.
    pub pid: u32,
    /// What it asked to be called.
    pub name: String,
    /// The program's file.
    pub program: String,
    /// The version of Perpetua in it.
    pub perpetua: String,
    /// For how long it has been observable, in milliseconds.
    pub uptime_ms: u64,
}

/// A process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Which process.
    pub process: ProcessInfo,
    /// Its runtimes, and what else registered.
    pub sources: Vec<SourceReport>,
}
