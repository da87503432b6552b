//! What one source of actors says at one moment: a runtime, or whatever else has some. Must not know who asked.

use super::counters::ActorMetrics;

/// One actor, or many that are told of together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActorReading {
    /// Its name; of many what they were launched under.
    pub name: String,
    /// What it was launched under, alone or with others.
    pub launch: String,
    /// Its number; of many the first one's.
    pub id: u32,
    /// How many these are.
    pub actors: u32,
    /// Where in its life it is; of many where most of them are.
    pub state: String,
    /// How many of them are there.
    pub in_state: u32,
    /// What it has done; of many all together.
    pub metrics: ActorMetrics,
}

impl ActorReading {
    /// One actor.
    pub fn new(name: impl Into<String>, id: u32, state: impl Into<String>, metrics: ActorMetrics) -> Self {
        let name = name.into();
        ActorReading {
            launch: name.clone(),
            name,
            id,
            actors: 1,
            state: state.into(),
            in_state: 1,
            metrics,
        }
    }

    /// One of those that were launched under this name.
    #[must_use]
    pub fn launched_as(mut self, launch: impl Into<String>) -> Self {
        self.launch = launch.into();
        self
    }

    /// `actors` of them, of which `in_state` are in the state.
    #[must_use]
    pub fn of_many(mut self, actors: u32, in_state: u32) -> Self {
        self.actors = actors;
        self.in_state = in_state;
        self
    }
}

/// All that a source says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// On what its actors run: `CPU`, `CUDA` …
    pub backend: String,
    /// Whether handlers stay there and wait for messages.
    pub stays: bool,
    /// Messages that nobody handled.
    pub dead_letters: u64,
    /// Why it stands still, where it failed.
    pub failure: Option<String>,
    /// Its actors. Each is in one entry.
    pub actors: Vec<ActorReading>,
}

impl Reading {
    /// Of a source that runs on `backend` and has no actors yet.
    pub fn new(backend: impl Into<String>) -> Reading {
        Reading {
            backend: backend.into(),
            stays: true,
            ..Reading::default()
        }
    }

    /// With one more entry.
    #[must_use]
    pub fn with(mut self, actor: ActorReading) -> Reading {
        self.actors.push(actor);
        self
    }

    /// What all its actors have done together.
    pub fn totals(&self) -> ActorMetrics {
        let mut all = ActorMetrics::default();
        self.actors.iter().for_each(|actor| all.merge(&actor.metrics));
        all
    }
}
