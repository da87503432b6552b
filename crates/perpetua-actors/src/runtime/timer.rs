//! What is to be done later, in order of time, by one thread that sleeps until then. Must not know how it is done.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::group::Group;
use crate::lock::lock;
use crate::message::ActorId;

/// Something to do.
pub(crate) enum Job {
    /// Decide what becomes of an actor whose handler faulted.
    Faulted(Arc<Group>, ActorId),
    /// Start it again.
    Restart(Arc<Group>, ActorId),
    /// What this actor could not deliver is undeliverable, if it still waits.
    GiveUp(ActorId),
    /// Send its tick to each actor of the group.
    Tick(Arc<Group>, u64),
    /// Wake those whose time to wait for an answer is over.
    Asks,
    /// Look for handlers that run for too long.
    Limits,
    /// Do this.
    Do(Box<dyn FnOnce() + Send>),
    /// Deliver again what was not acknowledged.
    Redeliver,
    /// Let an actor look again whether what it has sent finds room.
    Resume(ActorId),
    /// Wake somebody.
    Wake(Waker),
}

struct Entry {
    at: Instant,
    // Jobs of one time go in order.
    number: u64,
    job: Job,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// What is to be done later.
pub(crate) struct Timer {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    entries: BinaryHeap<Reverse<Entry>>,
    number: u64,
    stopped: bool,
    // When callers that wait for answers are looked at next.
    asks: Option<Instant>,
    sleeps_until: Option<Instant>,
}

impl Timer {
    pub(crate) fn new() -> Timer {
        Timer {
            inner: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Has `job` done at `at`.
    pub(crate) fn add(&self, at: Instant, job: Job) {
        let mut inner = lock(&self.inner);
        inner.add(at, job);
        self.tell(&inner, at);
    }

    /// Has callers that wait for answers looked at, not later than `at`.
    pub(crate) fn look_at_asks(&self, at: Instant) {
        let mut inner = lock(&self.inner);
        if inner.asks.is_none_or(|planned| at < planned) {
            inner.asks = Some(at);
            inner.add(at, Job::Asks);
            self.tell(&inner, at);
        }
    }

    /// Callers that wait for answers have been looked at.
    pub(crate) fn looked_at_asks(&self, next: Option<Instant>) {
        lock(&self.inner).asks = None;
        if let Some(next) = next {
            self.look_at_asks(next);
        }
    }

    fn tell(&self, inner: &Inner, at: Instant) {
        if inner.sleeps_until.is_none_or(|until| at < until) {
            self.changed.notify_one();
        }
    }

    /// The next job, when its time has come; `None` after a second without any, or once stopped.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut inner = lock(&self.inner);
        let bored = Instant::now() + Duration::from_secs(1);
        loop {
            let now = Instant::now();
            if inner.stopped || now >= bored {
                return None;
            }
            let at = inner.entries.peek().map(|Reverse(entry)| entry.at);
            if at.is_some_and(|at| at <= now) {
                return inner.entries.pop().map(|Reverse(entry)| entry.job);
            }
            let until = at.map_or(bored, |at| at.min(bored));
            inner.sleeps_until = Some(until);
            let waited = self.changed.wait_timeout(inner, until - now);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
            inner.sleeps_until = None;
        }
    }

    /// The next job, if its time has come at `now`; else `None`. For those who do not sleep.
    pub(crate) fn take_due(&self, now: Instant) -> Option<Job> {
        let mut inner = lock(&self.inner);
        let is_due = inner.entries.peek().is_some_and(|Reverse(entry)| entry.at <= now);
        let due = is_due.then(|| inner.entries.pop()).flatten();
        due.map(|Reverse(entry)| entry.job)
    }

    /// When the next job is due, and whether there is one that does not only look whether something is due.
    pub(crate) fn planned(&self) -> (Option<Instant>, bool) {
        let inner = lock(&self.inner);
        let next = inner.entries.peek().map(|Reverse(entry)| entry.at);
        let looks = |entry: &Reverse<Entry>| matches!(entry.0.job, Job::Redeliver | Job::Limits);
        (next, !inner.entries.iter().all(looks))
    }

    /// Whether [`Timer::stop`] was called.
    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.inner).stopped
    }

    /// Nothing more is done; all that sleep are woken.
    pub(crate) fn stop(&self) {
        let mut inner = lock(&self.inner);
        inner.stopped = true;
        let entries = std::mem::take(&mut inner.entries);
        drop(inner);
        self.changed.notify_all();
        for Reverse(entry) in entries {
            if let Job::Wake(waker) = entry.job {
                waker.wake();
            }
        }
    }
}

impl Inner {
    fn add(&mut self, at: Instant, job: Job) {
        self.number += 1;
        let number = self.number;
        self.entries.push(Reverse(Entry { at, number, job }));
    }
}
