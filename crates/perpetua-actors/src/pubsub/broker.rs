//! The broker: which topics there are, who subscribes to which, and what was kept of each. Must not know how a queue keeps its
//! messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use super::queue::{Offered, Queue};
use super::subscription::{Room, Subscriber, Subscription};
use super::{PubSubConfig, PubSubStats, Publication, PublishReceipt, SubscribeOptions};
use crate::clock::HlcTimestamp;
use crate::dead_letters::{DeadLetters, DeadReason};
use crate::error::{ActorError, Result};
use crate::message::{ActorId, Kind, Packet};
use crate::time::Time;
use crate::topic::Topic;

/// Brings what is published to who subscribed. Share it by reference or in an [`Arc`].
pub struct PubSubBroker {
    config: PubSubConfig,
    dead: Option<Arc<DeadLetters>>,
    tables: RwLock<Tables>,
    room: Arc<Room>,
    time: Time,
    published: AtomicU64,
    refused: AtomicU64,
    /// Of subscriptions that have ended.
    past: Mutex<PubSubStats>,
    /// Whoever runs the actors.
    owner: OnceLock<Owner>,
}

/// Is told of each subscription of an actor; an error where there is no such actor.
type Owner = Box<dyn Fn(&Subscription) -> Result<()> + Send + Sync>;

#[derive(Default)]
struct Tables {
    /// By number.
    topics: Vec<Entry>,
    numbers: HashMap<Topic, u32>,
    /// By number.
    subscribers: BTreeMap<u64, Arc<Subscriber>>,
    next: u64,
}

struct Entry {
    topic: Topic,
    /// Whose patterns stand for it, in the order of their numbers: the order in which their queues are locked.
    subscribers: Vec<Arc<Subscriber>>,
    /// The message kept for those who come later.
    retained: Mutex<Option<Publication>>,
}

impl std::fmt::Debug for PubSubBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tables = self.read();
        let (topics, subscriptions) = (tables.topics.len(), tables.subscribers.len());
        write!(
            f,
            "PubSubBroker {{ topics: {topics}, subscriptions: {subscriptions} }}"
        )
    }
}

impl PubSubBroker {
    /// A broker without topics.
    pub fn new(config: PubSubConfig) -> PubSubBroker {
        PubSubBroker {
            config,
            dead: None,
            tables: RwLock::default(),
            room: Arc::default(),
            time: Time::default(),
            published: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            past: Mutex::default(),
            owner: OnceLock::new(),
        }
    }

    /// From now on `owner` answers for subscriptions of actors.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "no runtime there"))]
    pub(crate) fn set_owner(&self, owner: impl Fn(&Subscription) -> Result<()> + Send + Sync + 'static) {
        // A broker has one runtime.
        let _ = self.owner.set(Box::new(owner));
    }

    /// The broker, with what policies drop and what is given up put into `dead`.
    #[must_use]
    pub fn with_dead_letters(mut self, dead: Arc<DeadLetters>) -> PubSubBroker {
        self.dead = Some(dead);
        self
    }

    /// The broker, with this time for what is to be acknowledged.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "no runtime there"))]
    pub(crate) fn with_time(mut self, time: &Time) -> PubSubBroker {
        self.time = time.clone();
        self
    }

    /// Subscribes `actor` to all topics that `pattern` stands for, as the configuration says. Messages kept for these topics come
    /// first. Two patterns of one actor that stand for one topic bring a message twice. With a runtime's broker
    /// (`PerpetuaRuntime::pubsub`) they go into the actor's mailbox; the host ([`ActorId::HOST`]) takes them from the subscription.
    ///
    /// # Errors
    /// [`ActorError::Topic`]; with a runtime's broker [`ActorError::NoSuchActor`].
    pub fn subscribe(&self, actor: ActorId, pattern: Topic) -> Result<Subscription> {
        self.subscribe_with(actor, pattern, self.config.subscription.clone())
    }

    /// The same, with options.
    pub fn subscribe_with(
        &self,
        actor: ActorId,
        pattern: Topic,
        options: SubscribeOptions,
    ) -> Result<Subscription> {
        pattern.check()?;
        if options.capacity == 0 {
            return Err(
                pattern.error("the subscription's queue has room for no message: ask for one at least")
            );
        }
        let mut tables = self.write();
        self.sweep(&mut tables);
        if tables.subscribers.len() >= self.config.max_subscriptions {
            return Err(
                pattern.error("there are as many subscriptions as `PubSubConfig::max_subscriptions` allows")
            );
        }
        let number = tables.next;
        tables.next += 1;
        let subscriber = Arc::new(Subscriber::new(
            number,
            actor,
            pattern,
            options,
            self.dead.clone(),
            self.room.clone(),
            self.time.clone(),
        ));
        tables.subscribers.insert(number, subscriber.clone());
        let mut kept = Vec::new();
        for entry in &mut tables.topics {
            if subscriber.pattern.matches(&entry.topic) {
                entry.subscribers.push(subscriber.clone());
                kept.extend(entry.retained().clone());
            }
        }
        // Nobody has published since the tables were locked. Oldest first.
        kept.sort_by_key(|publication| publication.timestamp);
        let mut queue = subscriber.queue();
        for publication in kept {
            let kept = Publication {
                is_retained: true,
                ..publication
            };
            self.offer(&subscriber, &mut queue, kept);
        }
        drop((queue, tables));
        let subscription = Subscription::of(&subscriber);
        if actor != ActorId::HOST
            && let Some(owner) = self.owner.get()
            && let Err(error) = owner(&subscription)
        {
            self.unsubscribe(&subscription);
            return Err(error);
        }
        Ok(subscription)
    }

    /// Ends a subscription; gives what waited and what was not acknowledged, oldest first.
    pub fn unsubscribe(&self, subscription: &Subscription) -> Vec<Publication> {
        self.end(vec![subscription.0.number])
    }

    /// Ends all subscriptions of `actor`; gives what waited and what was not acknowledged.
    pub fn unsubscribe_actor(&self, actor: ActorId) -> Vec<Publication> {
        let of_actor = self.subscriptions_of(actor);
        self.end(of_actor.iter().map(Subscription::number).collect())
    }

    fn end(&self, numbers: Vec<u64>) -> Vec<Publication> {
        let removed = self.remove(&mut self.write(), &numbers);
        // Nobody can bring these anything any more, and those who wait for them may look at the tables.
        removed.iter().flat_map(|subscriber| subscriber.close()).collect()
    }

    // Takes subscriptions out of the tables. Their queues may be locked, but not by who calls this.
    fn remove(&self, tables: &mut Tables, numbers: &[u64]) -> Vec<Arc<Subscriber>> {
        for entry in &mut tables.topics {
            entry.subscribers.retain(|one| !numbers.contains(&one.number));
        }
        let removed = numbers
            .iter()
            .filter_map(|number| tables.subscribers.remove(number));
        let removed: Vec<Arc<Subscriber>> = removed.collect();
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        removed.iter().for_each(|one| add(&mut past, &one.queue().stats));
        removed
    }

    // Forgets subscriptions that have ended with their handles.
    fn sweep(&self, tables: &mut Tables) {
        if self.room.ended.swap(0, Ordering::Relaxed) > 0 {
            let all = tables.subscribers.values();
            let ended = all.filter(|one| one.queue().is_closed).map(|one| one.number);
            let ended: Vec<u64> = ended.collect();
            self.remove(tables, &ended);
        }
    }

    /// The subscriptions of `actor`, in the order in which they were made.
    pub fn subscriptions_of(&self, actor: ActorId) -> Vec<Subscription> {
        let tables = self.read();
        let of_actor = tables.subscribers.values().filter(|one| one.actor == actor);
        let living = of_actor.filter(|one| !one.queue().is_closed);
        let mut found: Vec<Subscription> = living.map(Subscription::of).collect();
        found.sort_by_key(Subscription::number);
        found
    }

    /// The number of `topic`, given now if it has none: what a handler on a device publishes to.
    pub fn number(&self, topic: &Topic) -> Result<u32> {
        topic.check_name()?;
        if let Some(number) = self.read().numbers.get(topic) {
            return Ok(*number);
        }
        let mut tables = self.write();
        if let Some(number) = tables.numbers.get(topic) {
            return Ok(*number);
        }
        let number = tables.topics.len();
        if number >= self.config.max_topics {
            return Err(topic.error("there are as many topics as `PubSubConfig::max_topics` allows"));
        }
        let standing = tables
            .subscribers
            .values()
            .filter(|one| one.pattern.matches(topic));
        let mut subscribers: Vec<Arc<Subscriber>> = standing.cloned().collect();
        subscribers.sort_by_key(|subscriber| subscriber.number);
        tables.topics.push(Entry {
            topic: topic.clone(),
            subscribers,
            retained: Mutex::default(),
        });
        tables.numbers.insert(topic.clone(), number as u32);
        Ok(number as u32)
    }

    /// The topic with this number.
    pub fn topic(&self, number: u32) -> Option<Topic> {
        let tables = self.read();
        tables
            .topics
            .get(number as usize)
            .map(|entry| entry.topic.clone())
    }

    /// Publishes `packet`: to all who subscribed, or, where the queue of one that refuses is full, to nobody
    /// ([`ActorError::Full`]).
    pub fn publish(
        &self,
        topic: Topic,
        sender: ActorId,
        packet: Packet,
        timestamp: HlcTimestamp,
    ) -> Result<PublishReceipt> {
        self.publish_number(self.number(&topic)?, sender, packet, timestamp)
    }

    /// The same, to the topic with this number.
    pub fn publish_number(
        &self,
        number: u32,
        sender: ActorId,
        packet: Packet,
        timestamp: HlcTimestamp,
    ) -> Result<PublishReceipt> {
        self.bring(number, sender, packet, timestamp, false)
    }

    /// The same, and keeps the message for those who subscribe later, in place of the one kept before.
    pub fn publish_retained(
        &self,
        topic: Topic,
        sender: ActorId,
        packet: Packet,
        timestamp: HlcTimestamp,
    ) -> Result<PublishReceipt> {
        self.bring(self.number(&topic)?, sender, packet, timestamp, true)
    }

    /// Publishes as soon as all subscribers have room, waiting for at most `timeout`.
    pub fn publish_timeout(
        &self,
        topic: Topic,
        sender: ActorId,
        packet: Packet,
        timestamp: HlcTimestamp,
        timeout: Duration,
    ) -> Result<PublishReceipt> {
        let number = self.number(&topic)?;
        // A wait too long for the clock is as good as a day.
        let start = Instant::now();
        let deadline = start.checked_add(timeout);
        let deadline = deadline.unwrap_or_else(|| start + Duration::from_secs(86_400));
        loop {
            let seen = self.room.made();
            match self.bring(number, sender, packet, timestamp, false) {
                Err(ActorError::Full { .. }) if self.room.wait(seen, deadline) => {}
                other => return other,
            }
        }
    }

    /// Forgets the message kept for `topic`, and gives it.
    pub fn take_retained(&self, topic: &Topic) -> Option<Publication> {
        let tables = self.read();
        let number = *tables.numbers.get(topic)?;
        tables.topics.get(number as usize)?.retained().take()
    }

    fn bring(
        &self,
        number: u32,
        sender: ActorId,
        mut packet: Packet,
        timestamp: HlcTimestamp,
        retain: bool,
    ) -> Result<PublishReceipt> {
        let tables = self.read();
        let Some(entry) = tables.topics.get(number as usize) else {
            return Err(Topic::new(format!("topic number {number}")).error("no topic has this number"));
        };
        packet.header.kind = Kind::Publish;
        packet.header.destination = number;
        packet.header.sender = sender;
        packet.header.sent = timestamp.packed;
        let publication = Publication {
            delivery: 0,
            topic: entry.topic.clone(),
            number,
            sender,
            timestamp,
            packet,
            redelivered: 0,
            is_retained: false,
        };
        // All queues at once, in one order everywhere: so one that refuses refuses for all, and all see one order of messages.
        let mut queues: Vec<_> = entry.subscribers.iter().map(|one| one.queue()).collect();
        let mut pairs = queues.iter().zip(&entry.subscribers);
        if let Some((_, full)) = pairs.find(|(queue, one)| queue.refuses(&one.options)) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(ActorError::Full {
                actor: format!("{}, subscribed to {}", full.actor, full.pattern),
                capacity: full.options.capacity,
            });
        }
        if retain {
            *entry.retained() = Some(publication.clone());
        }
        let mut receipt = PublishReceipt {
            number,
            subscribers: queues.iter().filter(|queue| !queue.is_closed).count(),
            ..PublishReceipt::default()
        };
        let both = queues.iter_mut().zip(&entry.subscribers);
        for (queue, subscriber) in both.filter(|(queue, _)| !queue.is_closed) {
            let (queued, dropped) = self.offer(subscriber, queue, publication.clone());
            receipt.queued += usize::from(queued);
            receipt.dropped += usize::from(dropped);
        }
        drop(queues);
        let subscribers = entry.subscribers.clone();
        drop(tables);
        if self.room.ended.load(Ordering::Relaxed) > 0 {
            self.sweep(&mut self.write());
        }
        self.published.fetch_add(1, Ordering::Relaxed);
        subscribers.iter().for_each(|subscriber| subscriber.tell());
        Ok(receipt)
    }

    /// Whether it was queued, and whether something was dropped.
    fn offer(&self, subscriber: &Subscriber, queue: &mut Queue, publication: Publication) -> (bool, bool) {
        let (queued, dropped) = match queue.offer(publication, &subscriber.options) {
            Offered::Queued => (true, None),
            Offered::Dropped(oldest) => (true, Some(oldest)),
            Offered::Refused(newest) => (false, Some(newest)),
        };
        if let Some(publication) = &dropped {
            subscriber.bury(publication, DeadReason::Overflow);
        }
        (queued, dropped.is_some())
    }

    /// Wakes the subscribers to whom something is due again, and says when the next is: call it then.
    pub fn redeliver(&self) -> Option<Instant> {
        let subscribers: Vec<Arc<Subscriber>> = self.read().subscribers.values().cloned().collect();
        let now = self.time.now();
        let mut next = None;
        for subscriber in subscribers {
            let due = subscriber.queue().next_due();
            if due.is_some_and(|due| due <= now) {
                subscriber.tell();
            }
            next = next.into_iter().chain(due).min();
        }
        next
    }

    /// What the broker has done so far, for all subscriptions.
    pub fn stats(&self) -> PubSubStats {
        let tables = self.read();
        let mut sum = *self.past.lock().unwrap_or_else(PoisonError::into_inner);
        for subscriber in tables.subscribers.values() {
            add(&mut sum, &subscriber.queue().stats);
        }
        sum.published = self.published.load(Ordering::Relaxed);
        sum.refused = self.refused.load(Ordering::Relaxed);
        sum
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        // Every change of the tables is complete before something can panic.
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn retained(&self) -> std::sync::MutexGuard<'_, Option<Publication>> {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(sum: &mut PubSubStats, stats: &PubSubStats) {
    sum.queued += stats.queued;
    sum.delivered += stats.delivered;
    sum.redelivered += stats.redelivered;
    sum.acknowledged += stats.acknowledged;
    sum.dropped_oldest += stats.dropped_oldest;
    sum.dropped_newest += stats.dropped_newest;
    sum.unacknowledged += stats.unacknowledged;
}
