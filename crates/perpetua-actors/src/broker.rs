//! Messages from actor to actor over the host: by number or by name, with a receipt for each. Must not know what a mailbox is
//! made of, nor topics.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::clock::{HlcClock, HlcTimestamp};
use crate::dead_letters::{DeadLetters, DeadReason};
use crate::error::{ActorError, Result};
use crate::message::{ActorId, MessageId, Packet};
use crate::ring::{PushError, mpsc};

/// Where an actor's messages go.
pub trait Mailbox: Send + Sync {
    /// Takes `packet`, or says why not. Called by any thread, never waits; what it refuses it has not taken.
    fn deliver(&self, packet: Packet) -> DeliveryStatus;
}

impl Mailbox for mpsc::Producer<Packet> {
    fn deliver(&self, packet: Packet) -> DeliveryStatus {
        match self.push(packet) {
            Ok(()) => DeliveryStatus::Queued,
            Err(PushError::Full(_)) => DeliveryStatus::Refused(Refusal::Full),
            Err(PushError::Closed(_)) => DeliveryStatus::Refused(Refusal::Terminated),
        }
    }
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The mailbox is full: send later.
    Full,
    /// The actor is gone; the message is among the dead letters.
    Terminated,
    /// There never was such an actor; the message is among the dead letters.
    Unknown,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryStatus {
    /// It waits in the mailbox.
    Queued,
    /// Its handler has it already.
    Delivered,
    /// It was not taken.
    Refused(Refusal),
}

/// Says what became of a message when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryReceipt {
    /// Names the message: the broker's stamp, unique in this process.
    pub message: MessageId,
    /// Who sent it.
    pub source: ActorId,
    /// Who was to have it.
    pub destination: ActorId,
    /// What became of it.
    pub status: DeliveryStatus,
    /// When it was sent: also in its header.
    pub timestamp: HlcTimestamp,
}

impl DeliveryReceipt {
    /// Whether the message was taken.
    pub fn is_accepted(&self) -> bool {
        !matches!(self.status, DeliveryStatus::Refused(_))
    }
}

/// What the broker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrokerStats {
    /// Messages put into mailboxes.
    pub queued: u64,
    /// Messages handed to handlers at once.
    pub delivered: u64,
    /// Messages to full mailboxes.
    pub full: u64,
    /// Messages to actors that are gone.
    pub terminated: u64,
    /// Messages to numbers and names that nobody has had.
    pub unknown: u64,
}

/// Routes messages between actors. Share it by reference or in an [`Arc`].
pub struct K2kBroker {
    clock: Arc<HlcClock>,
    dead: Arc<DeadLetters>,
    routes: RwLock<Routes>,
    /// By [`Counter`].
    counters: [AtomicU64; 5],
}

#[derive(Default)]
struct Routes {
    /// `None`: the actor is gone.
    actors: HashMap<ActorId, Option<Route>>,
    names: HashMap<String, ActorId>,
}

struct Route {
    name: String,
    mailbox: Arc<dyn Mailbox>,
}

impl Routes {
    /// The actor's mailbox, or why there is none.
    fn mailbox(&self, actor: ActorId) -> std::result::Result<Arc<dyn Mailbox>, Refusal> {
        match self.actors.get(&actor) {
            Some(Some(route)) => Ok(route.mailbox.clone()),
            Some(None) => Err(Refusal::Terminated),
            None => Err(Refusal::Unknown),
        }
    }
}

#[derive(Clone, Copy)]
enum Counter {
    Queued,
    Delivered,
    Full,
    Terminated,
    Unknown,
}

impl fmt::Debug for K2kBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actors = self.read().names.len();
        write!(f, "K2kBroker {{ actors: {actors}, stats: {:?} }}", self.stats())
    }
}

impl K2kBroker {
    /// A broker that stamps with `clock` and puts what nobody can have into `dead`.
    pub fn new(clock: Arc<HlcClock>, dead: Arc<DeadLetters>) -> K2kBroker {
        K2kBroker {
            clock,
            dead,
            routes: RwLock::default(),
            counters: Default::default(),
        }
    }

    /// Makes an actor reachable by its number and its name. An error where a living actor has either.
    pub fn register(&self, actor: ActorId, name: &str, mailbox: Arc<dyn Mailbox>) -> Result<()> {
        let mut routes = self.write();
        if routes.actors.get(&actor).is_some_and(Option::is_some) {
            return Err(ActorError::NameTaken {
                name: actor.to_string(),
            });
        }
        match routes.names.entry(name.to_owned()) {
            Entry::Occupied(_) => return Err(ActorError::NameTaken { name: name.into() }),
            Entry::Vacant(entry) => entry.insert(actor),
        };
        let name = name.to_owned();
        routes.actors.insert(actor, Some(Route { name, mailbox }));
        Ok(())
    }

    /// Lets nobody reach the actor any more: messages to it are refused as [`Refusal::Terminated`], its name is free. Says whether
    /// it was reachable.
    pub fn unregister(&self, actor: ActorId) -> bool {
        let mut routes = self.write();
        let route = routes.actors.get_mut(&actor).and_then(Option::take);
        route.is_some_and(|route| routes.names.remove(&route.name).is_some())
    }

    /// The actor called `name`.
    pub fn resolve(&self, name: &str) -> Result<ActorId> {
        let found = self.read().names.get(name).copied();
        found.ok_or_else(|| {
            self.count(Counter::Unknown);
            ActorError::NoSuchActor {
                actor: format!("actor called `{name}`"),
            }
        })
    }

    /// Sends `packet` from `source` to `destination`: [`K2kBroker::send_now`], in the shape of the other asynchronous calls. It
    /// never waits.
    pub async fn send(
        &self,
        source: ActorId,
        destination: ActorId,
        packet: Packet,
    ) -> Result<DeliveryReceipt> {
        self.send_now(source, destination, packet)
    }

    /// Sends `packet` to the actor called `name`. An error where there is none; the packet is still the caller's.
    pub fn send_by_name(&self, source: ActorId, name: &str, packet: Packet) -> Result<DeliveryReceipt> {
        self.send_now(source, self.resolve(name)?, packet)
    }

    /// Sends `packet` from `source` to `destination`, stamped now; what its header says of these three does not count. A full
    /// mailbox refuses: the packet is still the caller's. What is sent to nobody is a dead letter.
    ///
    /// # Errors
    /// [`ActorError::ClockEnd`] in the last second of the clock's range, in the year 2112; the packet is still the caller's.
    pub fn send_now(
        &self,
        source: ActorId,
        destination: ActorId,
        mut packet: Packet,
    ) -> Result<DeliveryReceipt> {
        let timestamp = self.clock.begin()?;
        packet.header.sender = source;
        packet.header.destination = destination.0;
        packet.header.sent = timestamp.packed;
        // The routes are not locked while a mailbox takes it.
        let mailbox = self.read().mailbox(destination);
        let status = match mailbox {
            Ok(mailbox) => mailbox.deliver(packet),
            Err(refusal) => DeliveryStatus::Refused(refusal),
        };
        let (counter, reason) = match status {
            DeliveryStatus::Queued => (Counter::Queued, None),
            DeliveryStatus::Delivered => (Counter::Delivered, None),
            DeliveryStatus::Refused(Refusal::Full) => (Counter::Full, None),
            DeliveryStatus::Refused(Refusal::Terminated) => {
                (Counter::Terminated, Some(DeadReason::Terminated))
            }
            DeliveryStatus::Refused(Refusal::Unknown) => (Counter::Unknown, Some(DeadReason::Unknown)),
        };
        self.count(counter);
        if let Some(reason) = reason {
            self.dead.add(packet, reason, timestamp);
        }
        Ok(DeliveryReceipt {
            message: MessageId(timestamp.packed),
            source,
            destination,
            status,
            timestamp,
        })
    }

    /// Sends all dead letters again; those that are taken now are out of the store, the others stay. Says how many are out.
    pub fn resend_dead_letters(&self) -> usize {
        self.dead.resend(|letter| {
            let destination = ActorId(letter.packet.header.destination);
            let mailbox = self.read().mailbox(destination);
            let mut packet = letter.packet;
            if letter.reason == DeadReason::Faulted {
                packet.header.deliveries = packet.header.deliveries.next();
            }
            match mailbox.map(|mailbox| mailbox.deliver(packet)) {
                Ok(DeliveryStatus::Queued) => self.count(Counter::Queued),
                Ok(DeliveryStatus::Delivered) => self.count(Counter::Delivered),
                Ok(DeliveryStatus::Refused(_)) | Err(_) => return false,
            }
            true
        })
    }

    /// What nobody could have.
    pub fn dead_letters(&self) -> &Arc<DeadLetters> {
        &self.dead
    }

    /// What the broker has done so far.
    pub fn stats(&self) -> BrokerStats {
        let of = |counter: Counter| self.counters[counter as usize].load(Ordering::Relaxed);
        BrokerStats {
            queued: of(Counter::Queued),
            delivered: of(Counter::Delivered),
            full: of(Counter::Full),
            terminated: of(Counter::Terminated),
            unknown: of(Counter::Unknown),
        }
    }

    fn count(&self, counter: Counter) {
        // Relaxed: counts order nothing.
        self.counters[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> RwLockReadGuard<'_, Routes> {
        // Every change of the routes is complete before something can panic.
        self.routes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Routes> {
        self.routes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    use super::*;
    use crate::clock::physical::PhysicalClock;
    use crate::message::{Header, Kind, PAYLOAD_WORDS, priority};

    fn packet(value: u32) -> Packet {
        Packet {
            header: Header {
                destination: 0,
                sender: ActorId::HOST,
                type_id: 1,
                correlation: 0,
                sent: 0,
                kind: Kind::Message,
                priority: priority::NORMAL,
                words: 1,
                deadline: 0,
                deliveries: Default::default(),
            },
            payload: [value; PAYLOAD_WORDS],
        }
    }

    fn broker() -> K2kBroker {
        K2kBroker::new(Arc::new(HlcClock::new(1)), Arc::new(DeadLetters::new(8)))
    }

    const A: ActorId = ActorId(1);
    const B: ActorId = ActorId(2);

    #[test]
    fn messages_go_where_they_are_sent_and_receipts_say_so() {
        let broker = broker();
        let (producer, mut mailbox) = mpsc::ring(2).unwrap();
        broker.register(B, "b", Arc::new(producer)).unwrap();
        let first = broker.send_now(A, B, packet(7)).unwrap();
        let second = broker.send_by_name(A, "b", packet(8)).unwrap();
        assert_eq!(
            (first.status, second.status),
            (DeliveryStatus::Queued, DeliveryStatus::Queued)
        );
        assert!(first.is_accepted() && first.message < second.message);
        let third = broker.send_now(A, B, packet(9)).unwrap();
        assert_eq!(third.status, DeliveryStatus::Refused(Refusal::Full));
        let got = mailbox.pop().unwrap();
        assert_eq!(
            (got.payload[0], got.header.sender, got.header.destination),
            (7, A, 2)
        );
        assert_eq!(got.header.sent, first.timestamp.packed);
        assert!(matches!(
            broker.send_by_name(A, "c", packet(1)),
            Err(ActorError::NoSuchActor { .. })
        ));
        let expected = BrokerStats {
            queued: 2,
            full: 1,
            unknown: 1,
            ..Default::default()
        };
        assert_eq!(broker.stats(), expected);
        assert!(broker.dead_letters().is_empty());
    }

    #[test]
    fn at_the_end_of_the_clock_nothing_is_sent() {
        let end = PhysicalClock::Manual(Arc::new(AtomicU64::new((1 << 52) - 1)));
        let clock = Arc::new(HlcClock::with_physical(1, end));
        let broker = K2kBroker::new(clock, Arc::new(DeadLetters::new(8)));
        let (producer, mut mailbox) = mpsc::ring(2).unwrap();
        broker.register(B, "b", Arc::new(producer)).unwrap();
        for sent in [
            broker.send_now(A, B, packet(1)),
            broker.send_by_name(A, "b", packet(2)),
        ] {
            assert!(matches!(sent, Err(ActorError::ClockEnd)));
        }
        assert!(mailbox.pop().is_none() && broker.dead_letters().is_empty());
        assert_eq!(broker.stats(), BrokerStats::default());
    }

    #[test]
    fn names_and_numbers_are_taken_once_and_free_again() {
        let broker = broker();
        let mailbox = || Arc::new(mpsc::ring(2).unwrap().0);
        broker.register(A, "a", mailbox()).unwrap();
        assert!(matches!(
            broker.register(A, "other", mailbox()),
            Err(ActorError::NameTaken { .. })
        ));
        assert!(matches!(
            broker.register(B, "a", mailbox()),
            Err(ActorError::NameTaken { .. })
        ));
        assert!(broker.unregister(A) && !broker.unregister(A));
        broker.register(B, "a", mailbox()).unwrap();
        assert_eq!(broker.resolve("a").unwrap(), B);
    }

    #[test]
    fn what_nobody_can_have_is_a_dead_letter_and_can_be_sent_again() {
        let broker = broker();
        let (producer, mut mailbox) = mpsc::ring(4).unwrap();
        assert_eq!(
            broker.send_now(A, B, packet(1)).unwrap().status,
            DeliveryStatus::Refused(Refusal::Unknown)
        );
        broker.register(B, "b", Arc::new(producer.clone())).unwrap();
        broker.unregister(B);
        assert_eq!(
            broker.send_now(A, B, packet(2)).unwrap().status,
            DeliveryStatus::Refused(Refusal::Terminated)
        );
        assert_eq!(broker.resend_dead_letters(), 0);
        broker.register(B, "b", Arc::new(producer)).unwrap();
        assert_eq!(broker.resend_dead_letters(), 2);
        assert_eq!(
            [mailbox.pop(), mailbox.pop()].map(|got| got.unwrap().payload[0]),
            [1, 2]
        );
        mailbox.close();
        assert_eq!(
            broker.send_now(A, B, packet(3)).unwrap().status,
            DeliveryStatus::Refused(Refusal::Terminated)
        );
        assert_eq!(broker.dead_letters().counts().of(DeadReason::Terminated), 2);
        assert_eq!(
            (
                broker.stats().queued,
                broker.stats().terminated,
                broker.stats().unknown
            ),
            (2, 2, 1)
        );
    }
}
