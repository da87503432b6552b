//! Topics and actors: what a subscription gets goes into its actor's mailbox. Must not know engines by their type.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::engine::{Engine, Refusal};
use super::group::Group;
use super::host::Host;
use super::timer::Job;
use crate::dead_letters::DeadReason;
use crate::delivery::{Deliveries, Delivery};
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::{ActorId, Kind, Packet};
use crate::pubsub::{Publication, QualityOfService, Subscription};

/// When a full mailbox is tried again.
const AGAIN: Duration = Duration::from_micros(200);
/// When messages that were not acknowledged are looked for.
const REDELIVER: Duration = Duration::from_millis(100);

/// All feeds, by actor.
pub(super) struct Feeds {
    host: Arc<Host>,
    engine: Weak<dyn Engine>,
    by_actor: Mutex<HashMap<ActorId, Vec<Arc<Feed>>>>,
}

/// Brings what one subscription gets to its actor.
struct Feed {
    host: Arc<Host>,
    engine: Weak<dyn Engine>,
    subscription: Subscription,
    // Taken from the subscription, and not yet by the mailbox.
    held: Mutex<VecDeque<Publication>>,
}

impl Feed {
    /// Moves all that waits into the mailbox, as far as there is room; the rest a little later.
    fn run(self: &Arc<Self>) {
        let Some(engine) = self.engine.upgrade() else {
            return;
        };
        let mut held = lock(&self.held);
        while let Some(publication) = held.pop_front().or_else(|| self.subscription.try_receive()) {
            let packet = self.packet(&publication);
            // A checkpoint, which stops all, looks at what is held: nobody may wait here.
            match engine.offer(&packet) {
                Ok(_) => {
                    // From here on the mailbox answers for it: until a handler of it has returned, where that was asked for.
                    self.subscription.acknowledge(publication.delivery);
                }
                Err(Refusal::Full) => {
                    held.push_front(publication);
                    let feed = Arc::clone(self);
                    let again = Job::Do(Box::new(move || feed.run()));
                    return self.host.timer.add(self.host.time.now() + AGAIN, again);
                }
                Err(Refusal::Gone) => {
                    let now = self.host.clock.tick();
                    self.host.dead.add(packet, DeadReason::Terminated, now);
                }
            }
        }
    }

    fn packet(&self, publication: &Publication) -> Packet {
        let mut packet = publication.packet;
        packet.header.destination = self.subscription.actor().0;
        packet.header.kind = Kind::Message;
        packet.header.correlation = 0;
        if self.subscription.options().quality == QualityOfService::AtLeastOnce {
            packet.header.deliveries = Deliveries::asking(Delivery::AtLeastOnce);
        }
        packet
    }

    /// What waits for room in the mailbox, in order.
    fn waiting(&self) -> Vec<Packet> {
        let mut held = lock(&self.held);
        held.extend(std::iter::from_fn(|| self.subscription.try_receive()));
        held.iter().map(|publication| self.packet(publication)).collect()
    }

    /// Ends the subscription, and gives what the mailbox did not get.
    fn end(&self) -> Vec<Packet> {
        // What was not acknowledged is in both.
        let mut rest = self.host.pubsub.unsubscribe(&self.subscription);
        let held = std::mem::take(&mut *lock(&self.held));
        let is_new = |one: &Publication| !rest.iter().any(|other| other.delivery == one.delivery);
        let held: Vec<Publication> = held.into_iter().filter(is_new).collect();
        rest.splice(0..0, held);
        rest.iter().map(|publication| self.packet(publication)).collect()
    }
}

impl Feeds {
    pub(super) fn new(host: &Arc<Host>, engine: &Arc<dyn Engine>) -> Feeds {
        Feeds {
            host: Arc::clone(host),
            engine: Arc::downgrade(engine),
            by_actor: Mutex::default(),
        }
    }

    /// Brings what an actor's subscription gets to its mailbox.
    pub(super) fn attach(&self, subscription: &Subscription) -> Result<()> {
        let actor = subscription.actor();
        let life = self.engine.upgrade().and_then(|engine| engine.life(actor));
        if life.is_none_or(|life| life == ActorState::Terminated) {
            return Err(ActorError::NoSuchActor {
                actor: actor.to_string(),
            });
        }
        let feed = Arc::new(Feed {
            host: Arc::clone(&self.host),
            engine: Weak::clone(&self.engine),
            subscription: subscription.clone(),
            held: Mutex::default(),
        });
        let weak = Arc::downgrade(&feed);
        lock(&self.by_actor).entry(actor).or_default().push(feed);
        subscription.on_arrival(move || {
            if let Some(feed) = weak.upgrade() {
                feed.run();
            }
        });
        Ok(())
    }

    /// Ends an actor's subscriptions; what waited for it is reported.
    pub(super) fn unsubscribe(&self, group: &Group, actor: ActorId) {
        let Some(feeds) = lock(&self.by_actor).remove(&actor) else {
            return;
        };
        for feed in feeds {
            for packet in feed.end() {
                self.host.undelivered(group, &packet, DeadReason::Terminated);
            }
        }
    }

    /// What waits outside an actor's mailbox because that is full.
    pub(super) fn fed(&self, actor: ActorId) -> Vec<Packet> {
        let feeds = lock(&self.by_actor).get(&actor).cloned().unwrap_or_default();
        feeds.iter().flat_map(|feed| feed.waiting()).collect()
    }
}

impl Host {
    /// Delivers again what subscribers have not acknowledged.
    pub(super) fn redeliver(&self) {
        let latest = self.time.now() + REDELIVER;
        let next = self.pubsub.redeliver().map_or(latest, |next| next.min(latest));
        self.timer.add(next, Job::Redeliver);
    }

    /// Publishes what a handler has.
    pub(crate) fn publish(&self, group: &Group, packet: &Packet) -> std::result::Result<(), Refusal> {
        let head = &packet.header;
        let published = self
            .pubsub
            .publish_number(head.destination, head.sender, *packet, self.clock.tick());
        match published {
            Ok(_) => Ok(()),
            Err(ActorError::Full { .. }) => {
                // Nobody tells when there is room.
                self.timer.add(self.time.now() + AGAIN, Job::Resume(head.sender));
                Err(Refusal::Full)
            }
            Err(_) => {
                self.undelivered(group, packet, DeadReason::Unknown);
                Ok(())
            }
        }
    }
}
