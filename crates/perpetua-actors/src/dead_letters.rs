//! Messages that nobody handled, and why: kept to be looked at and sent again, counted for ever, bounded. Must not know routes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::HlcTimestamp;
use crate::message::Packet;

/// Why a message was not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum DeadReason {
    /// The mailbox was full, and the sender could not wait.
    Full = 0,
    /// The actor is gone.
    Terminated = 1,
    /// There never was such an actor.
    Unknown = 2,
    /// The handler faulted on it.
    Faulted = 3,
    /// Its deadline passed before its handler began.
    Expired = 4,
    /// The handler does not take this type.
    Foreign = 5,
    /// A subscriber's queue was full, and its policy dropped it.
    Overflow = 6,
    /// It was delivered as often as is allowed, and never acknowledged.
    Unacknowledged = 7,
    /// The runtime shut down before it was handled.
    ShutDown = 8,
    /// It answers a question whose asker no longer waited.
    Late = 9,
}

impl DeadReason {
    /// All reasons, by number.
    pub const ALL: [DeadReason; 10] = [
        DeadReason::Full,
        DeadReason::Terminated,
        DeadReason::Unknown,
        DeadReason::Faulted,
        DeadReason::Expired,
        DeadReason::Foreign,
        DeadReason::Overflow,
        DeadReason::Unacknowledged,
        DeadReason::ShutDown,
        DeadReason::Late,
    ];
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeadReason::Full => "mailbox full",
            DeadReason::Terminated => "actor terminated",
            DeadReason::Unknown => "no such actor",
            DeadReason::Faulted => "handler faulted",
            DeadReason::Expired => "deadline passed",
            DeadReason::Foreign => "type not taken",
            DeadReason::Overflow => "dropped by its subscriber's policy",
            DeadReason::Unacknowledged => "never acknowledged",
            DeadReason::ShutDown => "runtime shut down",
            DeadReason::Late => "its asker no longer waited",
        })
    }
}

/// A message that nobody handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Names it in the store; ascending.
    pub number: u64,
    /// The message as it was sent.
    pub packet: Packet,
    /// Why nobody handled it.
    pub reason: DeadReason,
    /// When that was found out.
    pub when: HlcTimestamp,
}

/// How many messages died, of what, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterCounts {
    /// All that died, by the reason's number.
    pub by_reason: [u64; DeadReason::ALL.len()],
    /// Letters taken out, to be sent again or thrown away.
    pub taken: u64,
    /// The oldest letters, which made room for newer ones.
    pub evicted: u64,
}

impl DeadLetterCounts {
    /// All that died.
    pub fn total(&self) -> u64 {
        self.by_reason.iter().sum()
    }

    /// Those that died of `reason`.
    pub fn of(&self, reason: DeadReason) -> u64 {
        self.by_reason[reason as usize]
    }
}

/// What is done with the packet of a letter that leaves the store and is not sent again.
struct AtEnd(Box<dyn Fn(&Packet) + Send + Sync>);

impl fmt::Debug for AtEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtEnd")
    }
}

/// The store. Where it is full, the oldest letter makes room; the counts know of it still.
#[derive(Debug)]
pub struct DeadLetters {
    capacity: usize,
    store: Mutex<Store>,
    at_end: Option<AtEnd>,
}

#[derive(Debug, Default)]
struct Store {
    letters: VecDeque<DeadLetter>,
    next: u64,
    counts: DeadLetterCounts,
}

impl DeadLetters {
    /// A store of at most `capacity` letters; of none it only counts.
    pub fn new(capacity: usize) -> DeadLetters {
        DeadLetters {
            capacity,
            store: Mutex::default(),
            at_end: None,
        }
    }

    /// Does `act` with each packet that leaves the store and is not sent again.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "no runtime there"))]
    pub(crate) fn at_end(mut self, act: impl Fn(&Packet) + Send + Sync + 'static) -> DeadLetters {
        self.at_end = Some(AtEnd(Box::new(act)));
        self
    }

    fn end(&self, letter: &DeadLetter) {
        if let Some(AtEnd(act)) = &self.at_end {
            act(&letter.packet);
        }
    }

    /// Puts a message in, and says under what number.
    pub fn add(&self, packet: Packet, reason: DeadReason, when: HlcTimestamp) -> u64 {
        let mut store = self.store();
        let number = store.next;
        store.next += 1;
        store.counts.by_reason[reason as usize] += 1;
        store.letters.push_back(DeadLetter {
            number,
            packet,
            reason,
            when,
        });
        let mut evicted = Vec::new();
        while store.letters.len() > self.capacity {
            evicted.extend(store.letters.pop_front());
            store.counts.evicted += 1;
        }
        drop(store);
        evicted.iter().for_each(|letter| self.end(letter));
        number
    }

    /// How many letters are in it.
    pub fn len(&self) -> usize {
        self.store().letters.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All letters, oldest first. They stay.
    pub fn letters(&self) -> Vec<DeadLetter> {
        self.store().letters.iter().copied().collect()
    }

    /// How many died, of what.
    pub fn counts(&self) -> DeadLetterCounts {
        self.store().counts
    }

    /// Takes letter `number` out, where it still is there. The vectors of its message are gone then: [`DeadLetters::resend`] sends
    /// it with them.
    pub fn take(&self, number: u64) -> Option<DeadLetter> {
        let letter = self.take_out(number);
        if let Some(letter) = &letter {
            self.end(letter);
        }
        letter
    }

    fn take_out(&self, number: u64) -> Option<DeadLetter> {
        let mut store = self.store();
        let at = store.letters.iter().position(|letter| letter.number == number)?;
        let letter = store.letters.remove(at);
        store.counts.taken += u64::from(letter.is_some());
        letter
    }

    /// Offers each letter, oldest first, to `send`: those of which it says true are out, the others stay. Says how many are out.
    /// What dies meanwhile, also by being sent again, is not offered.
    pub fn resend(&self, mut send: impl FnMut(&DeadLetter) -> bool) -> usize {
        // The store is not locked while `send` runs: that may add letters.
        let offered = self.letters();
        let sent = offered.iter().filter(|letter| {
            // Taken first, so that no letter can be sent by two at once.
            let Some(letter) = self.take_out(letter.number) else {
                return false;
            };
            let is_sent = send(&letter);
            if !is_sent {
                self.put_back(letter);
            }
            is_sent
        });
        sent.count()
    }

    fn put_back(&self, letter: DeadLetter) {
        let mut store = self.store();
        store.counts.taken -= 1;
        if store.letters.len() >= self.capacity {
            store.counts.evicted += 1;
            drop(store);
            return self.end(&letter);
        }
        let at = store
            .letters
            .partition_point(|other| other.number < letter.number);
        store.letters.insert(at, letter);
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        // Every change of the store is complete before something can panic.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ActorId, Header, Kind, PAYLOAD_WORDS, priority};

    fn packet(destination: u32) -> Packet {
        Packet {
            header: Header {
                destination,
                sender: ActorId(9),
                type_id: 1,
                correlation: 0,
                sent: 0,
                kind: Kind::Message,
                priority: priority::NORMAL,
                words: 0,
                deadline: 0,
                deliveries: Default::default(),
            },
            payload: [0; PAYLOAD_WORDS],
        }
    }

    #[test]
    fn letters_are_kept_counted_taken_and_sent_again() {
        let when = HlcTimestamp::new(5, 0, 1).unwrap();
        let dead = DeadLetters::new(3);
        for destination in 0..5 {
            let reason = if destination % 2 == 0 {
                DeadReason::Unknown
            } else {
                DeadReason::Faulted
            };
            assert_eq!(
                dead.add(packet(destination), reason, when),
                u64::from(destination)
            );
        }
        let numbers = || {
            dead.letters()
                .iter()
                .map(|letter| letter.number)
                .collect::<Vec<u64>>()
        };
        assert_eq!(numbers(), [2, 3, 4]);
        let counts = dead.counts();
        assert_eq!((counts.total(), counts.evicted), (5, 2));
        assert_eq!(
            (counts.of(DeadReason::Unknown), counts.of(DeadReason::Faulted)),
            (3, 2)
        );

        assert_eq!(dead.take(1), None);
        assert_eq!(dead.take(3).map(|letter| letter.packet), Some(packet(3)));
        assert_eq!(dead.resend(|letter| letter.number == 4), 1);
        assert_eq!(numbers(), [2]);
        // What dies while it is sent again is a letter of its own, and the old one is out.
        assert_eq!(
            dead.resend(|letter| dead.add(letter.packet, DeadReason::Full, when) == 5),
            1
        );
        assert_eq!(numbers(), [5]);
        let counts = dead.counts();
        assert_eq!(counts.total(), counts.taken + counts.evicted + dead.len() as u64);
    }

    #[test]
    fn a_store_of_nothing_counts() {
        let dead = DeadLetters::new(0);
        dead.add(packet(1), DeadReason::Expired, HlcTimestamp::default());
        assert!(dead.is_empty());
        assert_eq!((dead.counts().total(), dead.counts().evicted), (1, 1));
    }

    #[test]
    fn reasons_have_their_numbers() {
        for (number, reason) in DeadReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number, "{reason}");
        }
    }
}
