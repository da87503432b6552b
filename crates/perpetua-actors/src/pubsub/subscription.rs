//! A subscription, as its subscriber holds it: takes messages (at once, waiting, or asynchronously), acknowledges them. Must not
//! know how messages come in.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use super::queue::Queue;
use super::{PubSubStats, Publication, SubscribeOptions};
use crate::dead_letters::{DeadLetters, DeadReason};
use crate::message::ActorId;
use crate::time::Time;
use crate::topic::Topic;

/// What is called when a message has come in.
pub(super) type Arrival = Box<dyn Fn() + Send + Sync>;

/// One subscriber's interest in one pattern of topics, shared by the broker and all handles.
pub(super) struct Subscriber {
    pub(super) number: u64,
    pub(super) actor: ActorId,
    pub(super) pattern: Topic,
    pub(super) options: SubscribeOptions,
    pub(super) dead: Option<Arc<DeadLetters>>,
    pub(super) room: Arc<Room>,
    time: Time,
    queue: Mutex<Queue>,
    handles: AtomicUsize,
    arrived: Condvar,
    on_arrival: Mutex<Option<Arc<Arrival>>>,
}

/// Where those wait who published to a full queue.
#[derive(Default)]
pub(super) struct Room {
    /// How often room was made.
    made: Mutex<u64>,
    changed: Condvar,
    /// Subscriptions that have ended with their handles, and that the broker has not looked at since.
    pub(super) ended: AtomicUsize,
}

impl Room {
    pub(super) fn made(&self) -> u64 {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Waits until room was made after `seen`, or until `deadline`; false where that passed.
    pub(super) fn wait(&self, seen: u64, deadline: Instant) -> bool {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        while *made == seen {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(made, left);
            made = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Subscriber {
    pub(super) fn new(
        number: u64,
        actor: ActorId,
        pattern: Topic,
        options: SubscribeOptions,
        dead: Option<Arc<DeadLetters>>,
        room: Arc<Room>,
        time: Time,
    ) -> Subscriber {
        Subscriber {
            number,
            actor,
            pattern,
            options,
            dead,
            room,
            time,
            queue: Mutex::default(),
            handles: AtomicUsize::new(0),
            arrived: Condvar::new(),
            on_arrival: Mutex::default(),
        }
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change of a queue is complete before something can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for a message. The queue must not be locked.
    pub(super) fn tell(&self) {
        let wakers = std::mem::take(&mut self.queue().wakers);
        self.arrived.notify_all();
        wakers.into_iter().for_each(std::task::Waker::wake);
        let on_arrival = self
            .on_arrival
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(on_arrival) = on_arrival {
            on_arrival();
        }
    }

    /// Ends it; gives what was not handled.
    pub(super) fn close(&self) -> Vec<Publication> {
        let rest = self.queue().close();
        self.tell();
        self.room.tell();
        rest
    }

    pub(super) fn bury(&self, publication: &Publication, reason: DeadReason) {
        if let Some(dead) = &self.dead {
            let mut packet = publication.packet;
            packet.header.destination = self.actor.0;
            dead.add(packet, reason, publication.timestamp);
        }
    }
}

/// A handle to a subscription: clones take from the same queue. An actor's ends with the actor, or by
/// [`PubSubBroker::unsubscribe`](super::PubSubBroker::unsubscribe); one of the host ([`ActorId::HOST`]) also with its last handle: what waits
/// then are dead letters.
pub struct Subscription(pub(super) Arc<Subscriber>);

impl Clone for Subscription {
    fn clone(&self) -> Subscription {
        Subscription::of(&self.0)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // AcqRel: what other handles did comes before the end.
        let is_last = self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && self.0.actor == ActorId::HOST && !self.is_closed() {
            self.0.room.ended.fetch_add(1, Ordering::Relaxed);
            for publication in self.0.close() {
                self.0.bury(&publication, DeadReason::Terminated);
            }
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Subscription {} of {} to {}",
            self.0.number, self.0.actor, self.0.pattern
        )
    }
}

impl Subscription {
    pub(super) fn of(subscriber: &Arc<Subscriber>) -> Subscription {
        // Relaxed: who makes a handle has another one, or the broker's tables.
        subscriber.handles.fetch_add(1, Ordering::Relaxed);
        Subscription(Arc::clone(subscriber))
    }

    /// Names it within its broker.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Who subscribed.
    pub fn actor(&self) -> ActorId {
        self.0.actor
    }

    /// To what.
    pub fn pattern(&self) -> &Topic {
        &self.0.pattern
    }

    /// What it wants.
    pub fn options(&self) -> &SubscribeOptions {
        &self.0.options
    }

    /// The next message, where there is one: one that was not acknowledged in time first.
    pub fn try_receive(&self) -> Option<Publication> {
        let mut dead = Vec::new();
        let taken = self.0.queue().take(self.0.time.now(), &self.0.options, &mut dead);
        // At most once, taking makes room; at least once, what was given up does.
        if !dead.is_empty() || taken.is_some() {
            self.0.room.tell();
        }
        for publication in dead {
            self.0.bury(&publication, DeadReason::Unacknowledged);
        }
        taken
    }

    /// The next message; waits for it, for at most `timeout`. `None` where that has passed, or the subscription has ended.
    pub fn receive_timeout(&self, timeout: Duration) -> Option<Publication> {
        let time = &self.0.time;
        // This thread sleeps, so it is the machine's time that passes.
        let start = Instant::now();
        loop {
            if let Some(publication) = self.try_receive() {
                return Some(publication);
            }
            let queue = self.0.queue();
            let left = timeout.saturating_sub(start.elapsed());
            if queue.is_closed || left.is_zero() {
                return None;
            }
            let due = queue
                .next_due()
                .map(|due| due.saturating_duration_since(time.now()));
            if queue.is_ready(time.now()) {
                continue;
            }
            let wait = due.map_or(left, |due| due.min(left));
            drop(self.0.arrived.wait_timeout(queue, wait));
        }
    }

    /// The next message, awaited; `None` where the subscription has ended. A message that is delivered again does not wake who
    /// awaits: [`PubSubBroker::redeliver`](super::PubSubBroker::redeliver) does, called now and then.
    pub async fn receive(&self) -> Option<Publication> {
        poll_fn(|context| {
            if let Some(publication) = self.try_receive() {
                return Poll::Ready(Some(publication));
            }
            let mut queue = self.0.queue();
            if queue.is_closed {
                return Poll::Ready(None);
            }
            if queue.is_ready(self.0.time.now()) {
                // It came between the two locks.
                context.waker().wake_by_ref();
            } else if !queue.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                queue.wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Lets go of a message that was taken under [`Publication::delivery`]; false where it was acknowledged before, given up, or
    /// never needed it.
    pub fn acknowledge(&self, delivery: u64) -> bool {
        let is_there = self.0.queue().acknowledge(delivery);
        if is_there {
            self.0.room.tell();
        }
        is_there
    }

    /// Calls `arrival` after each message that comes in, on the publisher's thread: to wake the subscriber. `arrival` must neither wait
    /// nor publish. It is called at once where messages wait already.
    pub fn on_arrival(&self, arrival: impl Fn() + Send + Sync + 'static) {
        let arrival: Arc<Arrival> = Arc::new(Box::new(arrival));
        let slot = &self.0.on_arrival;
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(arrival.clone());
        if !self.is_empty() {
            arrival();
        }
    }

    /// Messages that wait, those included that were taken and not acknowledged.
    pub fn len(&self) -> usize {
        self.0.queue().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.0.queue().is_closed
    }

    /// What has come to it so far; what a policy dropped is counted here.
    pub fn stats(&self) -> PubSubStats {
        self.0.queue().stats
    }
}
