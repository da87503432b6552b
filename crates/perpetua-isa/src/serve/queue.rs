//! Whose turn it is. Clients wait with one job each. Next is the one that has used the least of the workers' time lately, less the time that it
//! has waited: a client with short jobs does not wait behind one with long ones, and nobody waits for ever, however many clients come anew. While there is more than one worker, the last free one is kept for clients that have
//! used little.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::frame::Frame;

/// After so long, what a client has used counts half.
const HALF: Duration = Duration::from_secs(10);
/// A client that has used more is not let to the last free worker.
const LITTLE: Duration = Duration::from_millis(500);

/// A job that waits.
pub(super) struct Waiting {
    pub(super) client: u64,
    pub(super) frame: Frame,
    pub(super) answer: mpsc::Sender<Frame>,
    /// Whether its client has gone. Nothing else is published through it.
    pub(super) is_gone: Arc<AtomicBool>,
}

/// What a worker does next.
pub(super) enum Next {
    Job(Waiting),
    /// The client whose child it has is gone: end the child.
    Retire,
    End,
}

// What a client has used.
struct Used {
    seconds: f64,
    at: Instant,
}

struct Idle {
    worker: usize,
    // Whose child it has.
    owner: Option<u64>,
}

#[derive(Default)]
struct State {
    // Since when, and what.
    waiting: Vec<(Instant, Waiting)>,
    used: HashMap<u64, Used>,
    // In the order in which they became idle.
    idle: Vec<Idle>,
    given: HashMap<usize, Next>,
    is_ending: bool,
}

pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    workers: usize,
}

impl Used {
    fn now(&self, now: Instant) -> f64 {
        let halves = now.saturating_duration_since(self.at).as_secs_f64() / HALF.as_secs_f64();
        self.seconds * 0.5f64.powf(halves)
    }
}

impl State {
    // Gives jobs to workers as long as there are both. The last free worker is kept for clients that have used little.
    fn match_up(&mut self, workers: usize, now: Instant) {
        while !self.idle.is_empty() {
            let is_last = workers > 1 && self.idle.len() == 1;
            let most = if is_last {
                LITTLE.as_secs_f64()
            } else {
                f64::INFINITY
            };
            let Some(at) = self.next(now, most) else {
                return;
            };
            let (_, job) = self.waiting.remove(at);
            let own = self.idle.iter().position(|idle| idle.owner == Some(job.client));
            let fresh = || self.idle.iter().position(|idle| idle.owner.is_none());
            let idle = self.idle.remove(own.or_else(fresh).unwrap_or(0));
            self.given.insert(idle.worker, Next::Job(job));
        }
    }

    // The job whose turn it is among those whose clients have used at most so many seconds; of equals the one that came first.
    fn next(&self, now: Instant, most: f64) -> Option<usize> {
        let jobs = self.waiting.iter().enumerate().filter_map(|(at, (since, job))| {
            let used = self.used.get(&job.client).map_or(0.0, |used| used.now(now));
            let waited = now.saturating_duration_since(*since).as_secs_f64();
            (used <= most).then_some((at, used - waited))
        });
        jobs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at)
    }
}

impl Queue {
    pub(super) fn new(workers: usize) -> Queue {
        Queue {
            state: Mutex::default(),
            changed: Condvar::new(),
            workers,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn match_up(&self, mut state: MutexGuard<'_, State>) {
        state.match_up(self.workers, Instant::now());
        self.changed.notify_all();
    }

    /// A job waits from now on. One that comes when the queue is ending is dropped, and its sender with it.
    pub(super) fn submit(&self, job: Waiting) {
        let mut state = self.state();
        if !state.is_ending {
            state.waiting.push((Instant::now(), job));
            self.match_up(state);
        }
    }

    /// What a worker does next, when it has ended what it had; `owner` is whose child it has.
    pub(super) fn next(&self, worker: usize, owner: Option<u64>) -> Next {
        let mut state = self.state();
        if owner.is_some_and(|owner| !state.used.contains_key(&owner)) {
            return Next::Retire;
        }
        state.idle.push(Idle { worker, owner });
        state.match_up(self.workers, Instant::now());
        self.changed.notify_all();
        loop {
            if let Some(next) = state.given.remove(&worker) {
                return next;
            }
            if state.is_ending {
                return Next::End;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A client has used a worker for so long.
    pub(super) fn has_used(&self, client: u64, time: Duration) {
        let (mut state, now) = (self.state(), Instant::now());
        // One that has gone is not remembered.
        if let Some(used) = state.used.get_mut(&client) {
            used.seconds = used.now(now) + time.as_secs_f64();
            used.at = now;
        }
    }

    /// A client is there.
    pub(super) fn enter(&self, client: u64) {
        let used = Used {
            seconds: 0.0,
            at: Instant::now(),
        };
        self.state().used.insert(client, used);
    }

    /// A client is gone: its job, if one waits, and its child with it.
    pub(super) fn leave(&self, client: u64) {
        let mut state = self.state();
        state.used.remove(&client);
        state.waiting.retain(|(_, job)| job.client != client);
        while let Some(at) = state.idle.iter().position(|idle| idle.owner == Some(client)) {
            let idle = state.idle.remove(at);
            state.given.insert(idle.worker, Next::Retire);
        }
        self.match_up(state);
    }

    /// Nothing is begun any more: what waits is dropped, and workers end when they have ended what they do.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_ending = true;
        state.waiting.clear();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::protocol::Kind;

    fn submit(queue: &Queue, client: u64) {
        let frame = Frame {
            kind: Kind::Run,
            id: client as u32,
            payload: Vec::new(),
        };
        let answer = mpsc::channel().0;
        queue.submit(Waiting {
            client,
            frame,
            answer,
            is_gone: Arc::default(),
        });
    }

    fn client(next: Next) -> u64 {
        match next {
            Next::Job(job) => job.client,
            Next::Retire | Next::End => panic!("no job"),
        }
    }

    #[test]
    fn the_one_that_has_used_least_is_next() {
        let queue = Queue::new(1);
        (1..=3).for_each(|client| queue.enter(client));
        queue.has_used(1, Duration::from_secs(5));
        queue.has_used(2, Duration::from_millis(1));
        [1, 2, 3, 2].iter().for_each(|client| submit(&queue, *client));
        let order = [(); 4].map(|()| client(queue.next(0, None)));
        assert_eq!(order, [3, 2, 2, 1]);
    }

    #[test]
    fn of_equals_the_one_that_waits_longest_is_next() {
        let queue = Queue::new(1);
        [4, 2, 9, 1].iter().for_each(|client| submit(&queue, *client));
        let order = [(); 4].map(|()| client(queue.next(0, None)));
        assert_eq!(order, [4, 2, 9, 1]);
    }

    #[test]
    fn nobody_waits_for_ever_behind_those_that_come_anew() {
        let queue = Queue::new(1);
        queue.enter(1);
        queue.has_used(1, Duration::from_millis(300));
        submit(&queue, 1);
        let now = Instant::now() + Duration::from_secs(1);
        submit(&queue, 2);
        queue.state().waiting[1].0 = now;
        assert_eq!(queue.state().next(now, f64::INFINITY), Some(0));
    }

    #[test]
    fn the_last_free_worker_is_for_those_that_use_little() {
        let queue = Queue::new(2);
        (1..=2).for_each(|client| queue.enter(client));
        queue.has_used(1, Duration::from_secs(5));
        std::thread::scope(|scope| {
            submit(&queue, 1);
            // It has waited so long that its turn is before all that come anew.
            let long = Duration::from_secs(60);
            queue.state().waiting[0].0 -= long;
            // One worker is idle alone: it is kept.
            let kept = scope.spawn(|| client(queue.next(0, None)));
            while queue.state().idle.is_empty() {
                std::thread::yield_now();
            }
            assert!(!queue.state().waiting.is_empty());
            submit(&queue, 2);
            assert_eq!(kept.join().expect("a worker"), 2);
            // Two are idle: the job that takes long gets one.
            let one = scope.spawn(|| queue.next(0, None));
            let other = scope.spawn(|| queue.next(1, None));
            while !queue.state().waiting.is_empty() {
                std::thread::yield_now();
            }
            queue.end();
            let jobs = [one, other].map(|worker| matches!(worker.join().expect("a worker"), Next::Job(_)));
            assert_ne!(jobs[0], jobs[1]);
        });
    }

    #[test]
    fn workers_get_their_own_clients_and_end_the_children_of_others() {
        let queue = Queue::new(2);
        (7..=8).for_each(|client| queue.enter(client));
        std::thread::scope(|scope| {
            let seven = scope.spawn(|| queue.next(0, Some(7)));
            let eight = scope.spawn(|| queue.next(1, Some(8)));
            while queue.state().idle.len() < 2 {
                std::thread::yield_now();
            }
            submit(&queue, 8);
            assert_eq!(client(eight.join().expect("a worker")), 8);
            queue.leave(7);
            assert!(matches!(seven.join().expect("a worker"), Next::Retire));
        });
        submit(&queue, 1);
        queue.leave(1);
        queue.end();
        submit(&queue, 2);
        assert!(matches!(queue.next(0, None), Next::End));
    }
}
