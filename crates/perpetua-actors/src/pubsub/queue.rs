//! One subscriber's queue: what waits, what it has taken and not acknowledged, and its policy. Must not know topics' numbers or
//! other subscribers.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;

use super::{Overflow, PubSubStats, Publication, QualityOfService, SubscribeOptions};

/// What waits for a subscriber. Whoever holds it has it locked.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Publication>,
    /// Taken and not acknowledged, in the order in which they are to be delivered again.
    taken: VecDeque<(Instant, Publication)>,
    next_delivery: u64,
    pub(super) stats: PubSubStats,
    pub(super) is_closed: bool,
    pub(super) wakers: Vec<Waker>,
}

/// What became of a message that was offered.
pub(super) enum Offered {
    Queued,
    /// Queued, and this one made room.
    Dropped(Publication),
    /// Not queued.
    Refused(Publication),
}

impl Queue {
    /// Messages that wait or are not acknowledged.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.taken.len()
    }

    /// Whether publishing has to be refused.
    pub(super) fn refuses(&self, options: &SubscribeOptions) -> bool {
        !self.is_closed && options.overflow == Overflow::Refuse && self.len() >= options.capacity
    }

    /// Takes a message in, by the policy.
    pub(super) fn offer(&mut self, mut publication: Publication, options: &SubscribeOptions) -> Offered {
        self.stats.published += 1;
        publication.delivery = self.next_delivery;
        let mut dropped = None;
        if self.len() >= options.capacity {
            // What was taken is not the policy's to drop: it may be acknowledged any moment.
            if options.overflow == Overflow::DropOldest {
                dropped = self.waiting.pop_front();
            }
            if dropped.is_none() {
                self.stats.dropped_newest += 1;
                return Offered::Refused(publication);
            }
            self.stats.dropped_oldest += 1;
        }
        self.next_delivery += 1;
        self.stats.queued += 1;
        self.waiting.push_back(publication);
        dropped.map_or(Offered::Queued, Offered::Dropped)
    }

    /// The message to be delivered at `now`: one whose acknowledgement is overdue, else the oldest that waits. What was delivered as
    /// often as allowed goes to `dead`.
    pub(super) fn take(
        &mut self,
        now: Instant,
        options: &SubscribeOptions,
        dead: &mut Vec<Publication>,
    ) -> Option<Publication> {
        while self.taken.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, mut publication)) = self.taken.pop_front() else {
                break;
            };
            if options.max_deliveries != 0 && publication.redelivered + 1 >= options.max_deliveries {
                self.stats.unacknowledged += 1;
                dead.push(publication);
                continue;
            }
            publication.redelivered += 1;
            self.stats.redelivered += 1;
            self.keep(now, &publication, options);
            return Some(publication);
        }
        let publication = self.waiting.pop_front()?;
        self.stats.delivered += 1;
        if options.quality == QualityOfService::AtLeastOnce {
            self.keep(now, &publication, options);
        }
        Some(publication)
    }

    fn keep(&mut self, now: Instant, publication: &Publication, options: &SubscribeOptions) {
        // A wait too long for the clock is for ever; an hour at a time comes to the same.
        let due = now.checked_add(options.redeliver_after);
        let due = due.unwrap_or_else(|| now + std::time::Duration::from_secs(3600));
        self.taken.push_back((due, publication.clone()));
    }

    /// Whether a message can be taken at `now`.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        !self.waiting.is_empty() || self.next_due().is_some_and(|due| due <= now)
    }

    /// When something taken is to be delivered again.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.taken.front().map(|(due, _)| *due)
    }

    /// Lets go of what was taken under this number; false where it is not there.
    pub(super) fn acknowledge(&mut self, delivery: u64) -> bool {
        let at = self
            .taken
            .iter()
            .position(|(_, taken)| taken.delivery == delivery);
        let is_there = at.and_then(|at| self.taken.remove(at)).is_some();
        self.stats.acknowledged += u64::from(is_there);
        is_there
    }

    /// Ends it: nothing more comes in. Everything not handled, oldest delivery first.
    pub(super) fn close(&mut self) -> Vec<Publication> {
        self.is_closed = true;
        let taken = self.taken.drain(..).map(|(_, publication)| publication);
        let mut rest: Vec<Publication> = taken.chain(self.waiting.drain(..)).collect();
        rest.sort_by_key(|publication| publication.delivery);
        rest
    }
}
