//! The run queue: actors that may have work, those of higher priority first, and workers that sleep while there are none. Must
//! not know what running means.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};

use crossbeam_queue::SegQueue;

use crate::lock::lock;
use crate::message::priority;

/// Looks for work before sleeping: some ten microseconds.
const SPINS: u32 = 300;
/// Every so many turns the lowest level goes first, so that it does not starve.
const TURN: u32 = 61;

/// Things to run.
pub(super) struct RunQueue<T> {
    levels: [SegQueue<T>; 4],
    turn: AtomicU32,
    sleepers: AtomicUsize,
    // Sleepers that were told to wake and have not yet.
    woken: Mutex<usize>,
    wake: Condvar,
    stopped: AtomicBool,
}

impl<T> RunQueue<T> {
    pub(super) fn new() -> RunQueue<T> {
        RunQueue {
            levels: [const { SegQueue::new() }; 4],
            turn: AtomicU32::new(0),
            sleepers: AtomicUsize::new(0),
            woken: Mutex::new(0),
            wake: Condvar::new(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Appends, and wakes a worker if one sleeps.
    pub(super) fn push(&self, item: T, of: u8) {
        let level = match of {
            priority::CRITICAL => 0,
            priority::HIGH.. => 1,
            priority::NORMAL.. => 2,
            _ => 3,
        };
        self.levels[level].push(item);
        // Between this push and the look at the sleepers, as in `next` between becoming one and the last look at the queue: one of
        // the two sees the other.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            let mut woken = lock(&self.woken);
            if *woken < self.sleepers.load(Ordering::Relaxed) {
                *woken += 1;
                self.wake.notify_one();
            }
        }
    }

    fn pop(&self) -> Option<T> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if turn.is_multiple_of(TURN)
            && let Some(item) = self.levels.iter().rev().find_map(SegQueue::pop)
        {
            return Some(item);
        }
        self.levels.iter().find_map(SegQueue::pop)
    }

    fn is_empty(&self) -> bool {
        self.levels.iter().all(SegQueue::is_empty)
    }

    /// The next thing to run; sleeps while there is none. `None` once stopped.
    pub(super) fn next(&self) -> Option<T> {
        loop {
            for _ in 0..SPINS {
                if self.stopped.load(Ordering::Acquire) {
                    return None;
                }
                if !self.is_empty()
                    && let Some(item) = self.pop()
                {
                    return Some(item);
                }
                std::hint::spin_loop();
            }
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let mut woken = lock(&self.woken);
            while *woken == 0 && self.is_empty() && !self.stopped.load(Ordering::Acquire) {
                woken = self.wake.wait(woken).unwrap_or_else(PoisonError::into_inner);
            }
            *woken = woken.saturating_sub(1);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Lets all workers end.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        drop(lock(&self.woken));
        self.wake.notify_all();
    }
}
