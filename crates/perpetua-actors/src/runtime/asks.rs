//! Who waits for which answer. Must not know engines.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use super::output::Received;
use crate::error::Result;
use crate::lock::lock;
use crate::message::ActorId;

const SHARDS: usize = 16;

/// One who waits for an answer.
pub(crate) struct Waiter {
    /// Whom was asked.
    pub(crate) actor: ActorId,
    /// Whether the outcome is there.
    pub(crate) answered: AtomicBool,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    outcome: Option<Result<Received>>,
    waker: Option<Waker>,
    // Set by those who do not look at the clock themselves.
    deadline: Option<Instant>,
}

impl Waiter {
    /// The outcome, if it is there; else `waker` is woken when it is, at the latest at `deadline`.
    pub(crate) fn poll(&self, waker: &Waker, deadline: Instant) -> Option<Result<Received>> {
        let mut slot = lock(&self.slot);
        if slot.outcome.is_none() {
            slot.waker = Some(waker.clone());
            slot.deadline = Some(deadline);
        }
        slot.outcome.take()
    }

    /// The outcome, if it is there.
    pub(crate) fn take(&self) -> Option<Result<Received>> {
        lock(&self.slot).outcome.take()
    }

    fn complete(&self, outcome: Result<Received>) {
        let waker = {
            let mut slot = lock(&self.slot);
            slot.outcome = Some(outcome);
            slot.waker.take()
        };
        // Release: pairs with the Acquire of who polls the flag and then takes the outcome.
        self.answered.store(true, Ordering::Release);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Correlations are ascending numbers: they are their own hash.
#[derive(Default)]
pub(crate) struct OwnHash(u64);

impl Hasher for OwnHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
    fn write_u32(&mut self, number: u32) {
        // The table's groups are chosen by the highest bits, too.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Shard = HashMap<u32, Arc<Waiter>, BuildHasherDefault<OwnHash>>;

/// All who wait, by the correlation that their answers will carry.
pub(crate) struct Asks {
    shards: [Mutex<Shard>; SHARDS],
    /// Those that nobody waits for any more, until it is known what became of the question: no more than questions that are under way.
    given_up: Mutex<HashSet<(ActorId, u32)>>,
    next: AtomicU32,
}

impl Asks {
    pub(crate) fn new() -> Asks {
        Asks {
            shards: std::array::from_fn(|_| Mutex::default()),
            given_up: Mutex::default(),
            next: AtomicU32::new(1),
        }
    }

    fn shard(&self, correlation: u32) -> &Mutex<Shard> {
        &self.shards[correlation as usize % SHARDS]
    }

    /// A correlation that nobody uses, and its waiter.
    pub(crate) fn begin(&self, actor: ActorId) -> (u32, Arc<Waiter>) {
        let waiter = Arc::new(Waiter {
            actor,
            answered: AtomicBool::new(false),
            slot: Mutex::default(),
        });
        loop {
            let correlation = self.next.fetch_add(1, Ordering::Relaxed);
            let mut shard = lock(self.shard(correlation));
            // 0 means that nobody waits; one in use has waited for four thousand million others.
            if correlation != 0 && !shard.contains_key(&correlation) {
                shard.insert(correlation, Arc::clone(&waiter));
                return (correlation, waiter);
            }
        }
    }

    /// One who waits until the answer is there, or until this is dropped.
    pub(crate) fn pending(&self, correlation: u32, waiter: Arc<Waiter>) -> Pending<'_> {
        Pending {
            asks: self,
            correlation,
            waiter,
        }
    }

    // Its asker no longer waits.
    fn give_up(&self, actor: ActorId, correlation: u32) {
        // First, so that an answer that finds nobody waiting finds it there.
        lock(&self.given_up).insert((actor, correlation));
        if lock(self.shard(correlation)).remove(&correlation).is_none() {
            // The answer came at this moment.
            self.forget(actor, correlation);
        }
    }

    /// It is known what became of a question: whether its asker had given up waiting. Says so once.
    pub(crate) fn forget(&self, actor: ActorId, correlation: u32) -> bool {
        lock(&self.given_up).remove(&(actor, correlation))
    }

    /// Gives the outcome to who waits for it from `actor`; gives it back where nobody does.
    pub(crate) fn complete(
        &self,
        actor: ActorId,
        correlation: u32,
        outcome: Result<Received>,
    ) -> std::result::Result<(), Result<Received>> {
        let mut shard = lock(self.shard(correlation));
        match shard.get(&correlation) {
            Some(waiter) if waiter.actor == actor => {}
            _ => return Err(outcome),
        }
        let waiter = shard.remove(&correlation);
        drop(shard);
        if let Some(waiter) = waiter {
            waiter.complete(outcome);
        }
        Ok(())
    }

    /// Wakes those whose time is up (they see so themselves); when the next one's is.
    pub(crate) fn wake_late(&self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut late = Vec::new();
        for shard in &self.shards {
            for waiter in lock(shard).values() {
                let mut slot = lock(&waiter.slot);
                match slot.deadline {
                    Some(deadline) if deadline <= now => late.extend(slot.waker.take()),
                    Some(deadline) => next = Some(next.map_or(deadline, |next| next.min(deadline))),
                    None => {}
                }
            }
        }
        late.into_iter().for_each(Waker::wake);
        next
    }

    /// Where correlations go on.
    pub(crate) fn position(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    /// Correlations begin there: what a checkpoint still holds answers nobody else.
    pub(crate) fn go_on_from(&self, position: u32) {
        self.next.store(position, Ordering::Relaxed);
    }
}

/// One who has asked; who gives up waiting is forgotten.
pub(crate) struct Pending<'a> {
    asks: &'a Asks,
    correlation: u32,
    pub(crate) waiter: Arc<Waiter>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // Answered ones are gone from the table.
        if !self.waiter.answered.load(Ordering::Acquire) {
            self.asks.give_up(self.waiter.actor, self.correlation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_were_given_up_are_known_until_their_end() {
        let asks = Asks::new();
        let actor = ActorId(7);
        let all: Vec<u32> = (0..10_000)
            .map(|_| {
                let (correlation, waiter) = asks.begin(actor);
                drop(asks.pending(correlation, waiter));
                correlation
            })
            .collect();
        for correlation in all {
            assert!(!asks.forget(ActorId(8), correlation));
            assert!(asks.forget(actor, correlation), "{correlation}");
            assert!(!asks.forget(actor, correlation));
        }
        assert!(lock(&asks.given_up).is_empty());
    }
}
