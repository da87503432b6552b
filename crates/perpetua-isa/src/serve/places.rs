//! Clients' places: who has one, and whose goes to a new client when all are taken. That is the client for which the server has waited longest,
//! whether for a frame or for it to take an answer: whoever holds many places without work loses them to those who come. Must not know what
//! clients send.

use std::collections::HashMap;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::address::Stream;

/// Clients beyond those that are served, who are told so.
const REFUSED: usize = 32;
/// How long a client may take to take its answer, whoever needs its place: a job's result is not lost by that.
const TAKING: Duration = Duration::from_secs(1);
/// How long a new client waits until one of those has gone.
const ROOM: Duration = Duration::from_secs(1);

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Clients that were served.
    pub clients: u64,
    /// Clients that were sent away, because all places were taken by clients with jobs.
    pub refused: u64,
    /// Clients, of those that were served, whose place went to another.
    pub made_way: u64,
    /// Jobs with a result.
    pub results: u64,
    /// Answers that were errors.
    pub errors: u64,
}

/// What came of a connection's jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    pub(super) results: u64,
    pub(super) errors: u64,
}

struct Place {
    stream: Arc<Stream>,
    standing: Standing,
}

#[derive(Clone, Copy)]
enum Standing {
    /// Its job waits or runs.
    Works,
    /// The server waits for it since then, which does not count before; closing the stream like this ends the wait.
    Waits(Instant, Shutdown),
    /// It is being told that it cannot stay.
    SentAway,
    /// It has been told, and has a moment to read that.
    Told,
}

impl Standing {
    fn may_stay(self) -> bool {
        matches!(self, Standing::Works | Standing::Waits(..))
    }
}

/// A client that has come.
pub(super) struct Entry {
    pub(super) client: u64,
    pub(super) stream: Arc<Stream>,
    /// Whether it has a place; otherwise all are taken by clients whose jobs wait or run.
    pub(super) is_served: bool,
}

#[derive(Default)]
struct State {
    places: HashMap<u64, Place>,
    next: u64,
    summary: Summary,
}

pub(super) struct Places {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) most: usize,
}

impl State {
    fn served(&self) -> usize {
        let served = self.places.values().filter(|place| place.standing.may_stay());
        served.count()
    }

    // The client for which the server has waited longest makes way.
    fn make_way(&mut self) -> bool {
        let now = Instant::now();
        let waiting = self.places.values_mut().filter_map(|place| match place.standing {
            Standing::Waits(since, how) if since <= now => Some((since, how, place)),
            _ => None,
        });
        let Some((_, how, place)) = waiting.min_by_key(|(since, ..)| *since) else {
            return false;
        };
        place.standing = Standing::SentAway;
        place.stream.shutdown(how);
        self.summary.made_way += 1;
        true
    }
}

impl Places {
    pub(super) fn new(most: usize) -> Places {
        Places {
            state: Mutex::default(),
            changed: Condvar::new(),
            most,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client comes. Nothing if there is not even room to tell it that it cannot stay.
    pub(super) fn enter(&self, stream: Stream) -> Option<Entry> {
        let mut state = self.state();
        let end = Instant::now() + ROOM;
        // Those that take their time to read why they cannot stay have had it.
        while state.places.len() >= self.most.saturating_add(REFUSED) {
            let places = state.places.values();
            let told = places.filter(|place| matches!(place.standing, Standing::Told));
            told.for_each(|place| place.stream.shutdown(Shutdown::Both));
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.summary.refused += 1;
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_served = state.served() < self.most || state.make_way();
        let standing = match is_served {
            true => Standing::Waits(Instant::now(), Shutdown::Read),
            false => Standing::SentAway,
        };
        state.summary.refused += u64::from(!is_served);
        state.next += 1;
        let client = state.next;
        let stream = Arc::new(stream);
        let place = Place {
            stream: Arc::clone(&stream),
            standing,
        };
        state.places.insert(client, place);
        Some(Entry {
            client,
            stream,
            is_served,
        })
    }

    // Whether it may stay.
    fn set(&self, client: u64, standing: Standing) -> bool {
        let mut state = self.state();
        let place = state.places.get_mut(&client);
        let place = place.filter(|place| place.standing.may_stay() || matches!(standing, Standing::Told));
        place.is_some_and(|place| {
            place.standing = standing;
            true
        })
    }

    /// From now on the server waits for a client's next frame. Gives whether the client may stay.
    pub(super) fn awaits_frame(&self, client: u64) -> bool {
        self.set(client, Standing::Waits(Instant::now(), Shutdown::Read))
    }

    /// From now on the server does what the client asks for. Gives whether the client may stay, as then it may until it is waited for again.
    pub(super) fn works(&self, client: u64) -> bool {
        self.set(client, Standing::Works)
    }

    /// From now on the server waits until the client has taken its answer.
    pub(super) fn awaits_taking(&self, client: u64) {
        self.set(client, Standing::Waits(Instant::now() + TAKING, Shutdown::Both));
    }

    /// The client has no place any more, and is being told why.
    pub(super) fn sends_away(&self, client: u64) {
        self.set(client, Standing::SentAway);
    }

    /// It has been told.
    pub(super) fn has_told(&self, client: u64) {
        self.set(client, Standing::Told);
    }

    /// A client has gone; what came of its jobs, if it was served.
    pub(super) fn leave(&self, client: u64, answers: Option<Answers>) {
        let mut state = self.state();
        state.places.remove(&client);
        if let Some(answers) = answers {
            state.summary.clients += 1;
            state.summary.results += answers.results;
            state.summary.errors += answers.errors;
        }
        self.changed.notify_all();
    }

    /// Closes all connections.
    pub(super) fn shutdown(&self, how: Shutdown) {
        let state = self.state();
        state.places.values().for_each(|place| place.stream.shutdown(how));
    }

    /// Waits until all have gone, or it is late.
    pub(super) fn wait(&self, end: Instant) {
        let mut state = self.state();
        while !state.places.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What became of clients and their jobs.
    pub(super) fn summary(&self) -> Summary {
        self.state().summary
    }
}
