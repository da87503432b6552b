//! Messages by topic: who publishes does not know who subscribes. Topics have numbers, so that a handler on a device can publish;
//! the last message of a topic can be kept for those who come later; each subscriber chooses how often it wants to be sure of
//! a message and what happens when it is too slow. Must not know what a subscriber does with its messages.

mod broker;
mod queue;
mod subscription;
#[cfg(all(test, not(perpetua_loom)))]
mod tests;

use std::time::Duration;

use crate::clock::HlcTimestamp;
use crate::message::{ActorId, Packet};
use crate::topic::Topic;

pub use broker::PubSubBroker;
pub use subscription::Subscription;

/// What a broker and its subscriptions are like, unless they say otherwise.
///
/// ```
/// use perpetua::actors::pubsub::{Overflow, PubSubConfig, SubscribeOptions};
/// use perpetua::actors::{ActorId, PubSubBroker, Topic};
/// let config = PubSubConfig {
///     subscription: SubscribeOptions::default().with_capacity(16).with_overflow(Overflow::DropOldest),
///     max_topics: 100,
///     ..PubSubConfig::default()
/// };
/// let broker = PubSubBroker::new(config);
/// let alarms = broker.subscribe(ActorId(1), Topic::new("alarms/#"))?;
/// assert_eq!(alarms.options().capacity, 16);
/// # Ok::<(), perpetua::actors::ActorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PubSubConfig {
    /// For subscriptions that do not choose.
    pub subscription: SubscribeOptions,
    /// Topics that there can be: each has a number.
    pub max_topics: usize,
    /// Subscriptions that there can be.
    pub max_subscriptions: usize,
}

impl Default for PubSubConfig {
    /// 65536 topics, 65536 subscriptions.
    fn default() -> PubSubConfig {
        PubSubConfig {
            subscription: SubscribeOptions::default(),
            max_topics: 1 << 16,
            max_subscriptions: 1 << 16,
        }
    }
}

/// How often a subscriber gets a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QualityOfService {
    /// Once, or not at all where it is gone before it has handled it.
    #[default]
    AtMostOnce,
    /// Again and again until it acknowledges it.
    AtLeastOnce,
}

/// What happens when a subscriber's queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Publishing is refused, for all subscribers: who publishes waits.
    #[default]
    Refuse,
    /// The oldest message that waits makes room; counted.
    DropOldest,
    /// The new message is not queued; counted.
    DropNewest,
}

/// What a subscriber wants.
///
/// ```
/// use perpetua::actors::pubsub::{PubSubConfig, QualityOfService, SubscribeOptions};
/// use perpetua::actors::{ActorId, PubSubBroker, Topic};
/// use std::time::Duration;
/// let broker = PubSubBroker::new(PubSubConfig::default());
/// let sure = SubscribeOptions::default().at_least_once(Duration::from_millis(100));
/// let orders = broker.subscribe_with(ActorId(1), Topic::new("orders"), sure)?;
/// assert_eq!(orders.options().quality, QualityOfService::AtLeastOnce);
/// # Ok::<(), perpetua::actors::ActorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Messages that wait for it, those included that it has not acknowledged.
    pub capacity: usize,
    /// What happens when there are more.
    pub overflow: Overflow,
    /// How sure it wants to be of each.
    pub quality: QualityOfService,
    /// When a message that was not acknowledged is delivered again.
    pub redeliver_after: Duration,
    /// How often a message is delivered at most; then it is a dead letter. 0: for ever.
    pub max_deliveries: u32,
}

impl Default for SubscribeOptions {
    /// 1024 messages, refusing more; at most once; were it at least once, again after a second, for ever.
    fn default() -> SubscribeOptions {
        SubscribeOptions {
            capacity: 1024,
            overflow: Overflow::Refuse,
            quality: QualityOfService::AtMostOnce,
            redeliver_after: Duration::from_secs(1),
            max_deliveries: 0,
        }
    }
}

impl SubscribeOptions {
    /// The options, with room for `capacity` messages.
    #[must_use]
    pub fn with_capacity(mut self, capacity: usize) -> SubscribeOptions {
        self.capacity = capacity;
        self
    }

    /// The options, with this policy for more messages than there is room for.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> SubscribeOptions {
        self.overflow = overflow;
        self
    }

    /// The options, with each message delivered again after `redeliver_after` until it is acknowledged.
    #[must_use]
    pub fn at_least_once(mut self, redeliver_after: Duration) -> SubscribeOptions {
        self.quality = QualityOfService::AtLeastOnce;
        self.redeliver_after = redeliver_after;
        self
    }

    /// The options, with at most `deliveries` deliveries of a message.
    #[must_use]
    pub fn with_max_deliveries(mut self, deliveries: u32) -> SubscribeOptions {
        self.max_deliveries = deliveries;
        self
    }
}

/// A message as a subscriber gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Names the delivery to this subscriber: what is acknowledged.
    pub delivery: u64,
    /// What it was published to.
    pub topic: Topic,
    /// That topic's number.
    pub number: u32,
    /// Who published it.
    pub sender: ActorId,
    /// When it was published.
    pub timestamp: HlcTimestamp,
    /// The message.
    pub packet: Packet,
    /// How often it was delivered before.
    pub redelivered: u32,
    /// Whether it was published before the subscription and kept.
    pub is_retained: bool,
}

/// What became of a message that was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishReceipt {
    /// The topic's number.
    pub number: u32,
    /// Subscriptions that stand for the topic.
    pub subscribers: usize,
    /// Those in whose queue it is.
    pub queued: usize,
    /// Messages that were dropped for it, or it itself, by policies.
    pub dropped: usize,
}

/// What a broker has done, or what has come to one subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PubSubStats {
    /// Messages published (of a broker), or published to it (of a subscription).
    pub published: u64,
    /// Messages put into queues, retained ones included.
    pub queued: u64,
    /// Messages that a subscriber took, each for the first time.
    pub delivered: u64,
    /// Messages that a subscriber took once more.
    pub redelivered: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// Messages that waited longest and made room.
    pub dropped_oldest: u64,
    /// Messages that found no room.
    pub dropped_newest: u64,
    /// Messages delivered as often as allowed and not acknowledged.
    pub unacknowledged: u64,
    /// Times that publishing was refused for want of room.
    pub refused: u64,
}
