//! Threads that do many short pieces of work together: they wait for one another in loops, which takes a fraction of a
//! microsecond, where waking a thread takes tens. Knows no launches.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::threads;
use crate::future::MaybeSync;

/// How long the first thread waits for the others to come. Those that come later, because other work holds them, are not
/// needed.
const PATIENCE: Duration = Duration::from_micros(200);

/// Turns of a waiting loop before the thread lets others run, and before it sleeps.
const SPINS: u32 = 4096;
const YIELDS: u32 = 64;

/// Members, of whom those count that came in time.
struct Roster {
    arrived: AtomicUsize,
    // How many count; 0 while more may come.
    closed: AtomicUsize,
}

/// What a team's members wait for.
pub(super) struct Signals {
    // Somebody has left without finishing.
    broken: AtomicBool,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signals {
    /// Tells those who wait that something has changed.
    pub(super) fn changed(&self) {
        // Sequentially consistent, as is `wait`: either the sleeper is seen here, or it sees the change.
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            drop(self.lock.lock().unwrap_or_else(|e| e.into_inner()));
            self.changed.notify_all();
        }
    }

    /// Waits until `done`; whether it is. Where a member has panicked, it may never be.
    pub(super) fn wait(&self, done: impl Fn() -> bool) -> bool {
        for turn in 0..SPINS + YIELDS {
            if done() {
                return true;
            }
            if self.broken.load(Ordering::Relaxed) {
                return false;
            }
            if turn < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        let mut guard = self.lock.lock().unwrap_or_else(|e| e.into_inner());
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let done = loop {
            std::sync::atomic::fence(Ordering::SeqCst);
            if done() {
                break true;
            }
            if self.broken.load(Ordering::SeqCst) {
                break false;
            }
            guard = self.changed.wait(guard).unwrap_or_else(|e| e.into_inner());
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

/// A place where all members wait for all.
#[derive(Default)]
struct Barrier {
    arrived: AtomicUsize,
    round: AtomicUsize,
}

/// A team's member, as its work sees it.
pub(super) struct Member<'a> {
    /// Its number, from 0.
    pub(super) number: usize,
    /// How many there are.
    pub(super) count: usize,
    pub(super) signals: &'a Signals,
    barrier: &'a Barrier,
}

impl Member<'_> {
    /// Waits for all members; false where one has panicked.
    pub(super) fn meet(&self) -> bool {
        if self.count == 1 {
            return true;
        }
        let Barrier { arrived, round } = self.barrier;
        let now = round.load(Ordering::Relaxed);
        // Acquire and release: what each has written before is seen by all after.
        if arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            arrived.store(0, Ordering::Relaxed);
            round.store(now.wrapping_add(1), Ordering::SeqCst);
            self.signals.changed();
            return true;
        }
        self.signals.wait(|| round.load(Ordering::Acquire) != now)
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.signals.broken.store(true, Ordering::SeqCst);
            self.signals.changed();
        }
    }
}

/// How far somebody has come, for others to see.
#[repr(align(128))]
pub(super) struct Progress(AtomicI64);

impl Progress {
    pub(super) fn new() -> Progress {
        Progress(AtomicI64::new(i64::MIN))
    }

    /// Everything up to `step` is done.
    pub(super) fn reach(&self, step: i64, signals: &Signals) {
        self.0.store(step, Ordering::SeqCst);
        signals.changed();
    }

    /// Whether everything up to `step` is done; what was written for it is seen then.
    pub(super) fn has_reached(&self, step: i64) -> bool {
        self.0.load(Ordering::Acquire) >= step
    }
}

/// Calls `work` on this thread, and at the same time on those of the pool that come soon: on up to `most` in all.
pub(super) fn gather(most: usize, work: &(impl Fn(&Member<'_>) + MaybeSync)) {
    let roster = Roster {
        arrived: AtomicUsize::new(1),
        closed: AtomicUsize::new(0),
    };
    let signals = Signals {
        broken: AtomicBool::new(false),
        sleepers: AtomicUsize::new(0),
        lock: Mutex::default(),
        changed: Condvar::new(),
    };
    let barrier = Barrier::default();
    let member = |number: usize, count: usize| Member {
        number,
        count,
        signals: &signals,
        barrier: &barrier,
    };
    let first = std::thread::current().id();
    threads::spread_to(most, &|| {
        if std::thread::current().id() == first {
            let count = roster.close(threads::count().min(most));
            work(&member(0, count));
        } else if let Some((number, count)) = roster.join() {
            work(&member(number, count));
        }
    });
}

// The roster in one word: who has arrived counts as long as the first has not closed it.
const CLOSED: usize = 1 << (usize::BITS - 1);

impl Roster {
    /// Waits for the others of `all` a while, then closes the roster; gives the number of members.
    fn close(&self, all: usize) -> usize {
        let start = Instant::now();
        while self.arrived.load(Ordering::Relaxed) < all && start.elapsed() < PATIENCE {
            std::hint::spin_loop();
        }
        let count = self.arrived.fetch_or(CLOSED, Ordering::AcqRel);
        self.closed.store(count, Ordering::Release);
        count
    }

    /// Number of this member and of all; `None` where it comes too late.
    fn join(&self) -> Option<(usize, usize)> {
        let number = self.arrived.fetch_add(1, Ordering::AcqRel);
        if number & CLOSED != 0 {
            return None;
        }
        loop {
            // The first closes the roster soon, whatever happens.
            match self.closed.load(Ordering::Acquire) {
                0 => std::hint::spin_loop(),
                count => return Some((number, count)),
            }
        }
    }
}
