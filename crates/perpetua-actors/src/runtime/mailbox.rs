//! An actor's bounded mailbox: higher priorities first, the order of sending within one. Its memory grows with what waits, so that
//! a million empty ones cost little. Must not know who runs the actor.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::lock::lock;
use crate::message::Packet;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    Taken,
    Full,
    /// Nothing is taken until [`Mailbox::unseal`].
    Sealed,
    /// Nothing is taken any more.
    Closed,
}

/// A bounded queue of packets.
#[derive(Default)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    // As many as wait; a hint for those who do not lock.
    depth: AtomicU32,
}

#[derive(Default)]
struct Inner {
    packets: VecDeque<Packet>,
    sealed: bool,
    closed: bool,
}

impl Mailbox {
    /// Appends behind all of the same or higher priority.
    pub(crate) fn push(&self, packet: &Packet, capacity: usize) -> Push {
        let mut inner = lock(&self.inner);
        if inner.closed {
            return Push::Closed;
        }
        if inner.sealed {
            return Push::Sealed;
        }
        if inner.packets.len() >= capacity {
            return Push::Full;
        }
        let priority = packet.header.priority;
        match inner.packets.back() {
            Some(last) if last.header.priority < priority => {
                let at = inner
                    .packets
                    .partition_point(|other| other.header.priority >= priority);
                inner.packets.insert(at, *packet);
            }
            _ => inner.packets.push_back(*packet),
        }
        self.depth.store(inner.packets.len() as u32, Ordering::Relaxed);
        Push::Taken
    }

    /// The next packet.
    pub(crate) fn pop(&self) -> Option<Packet> {
        if self.depth.load(Ordering::Relaxed) == 0 {
            // A push that is not seen here is followed by its pusher's look at the actor's schedule.
            return None;
        }
        let mut inner = lock(&self.inner);
        let packet = inner.packets.pop_front();
        self.depth.store(inner.packets.len() as u32, Ordering::Relaxed);
        packet
    }

    /// Gives back what was popped last and not handled: it goes first again. False where it is closed.
    pub(crate) fn unpop(&self, packets: impl DoubleEndedIterator<Item = Packet>) -> bool {
        let mut inner = lock(&self.inner);
        if inner.closed {
            return false;
        }
        packets.rev().for_each(|packet| inner.packets.push_front(packet));
        self.depth.store(inner.packets.len() as u32, Ordering::Relaxed);
        true
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.depth.load(Ordering::Relaxed) as usize
    }

    /// Refuses packets until [`Mailbox::unseal`].
    pub(crate) fn seal(&self) {
        lock(&self.inner).sealed = true;
    }

    /// Takes packets again.
    pub(crate) fn unseal(&self) {
        lock(&self.inner).sealed = false;
    }

    /// What waits, in order.
    pub(crate) fn snapshot(&self) -> Vec<Packet> {
        lock(&self.inner).packets.iter().copied().collect()
    }

    /// Refuses packets for ever, and gives what waited.
    pub(crate) fn close(&self) -> Vec<Packet> {
        let mut inner = lock(&self.inner);
        inner.closed = true;
        self.depth.store(0, Ordering::Relaxed);
        std::mem::take(&mut inner.packets).into()
    }

    /// Closes `other` and takes over what waits there, as if it had been sent here first.
    pub(crate) fn inherit(&self, other: &Mailbox) {
        let mut packets = other.close();
        let mut inner = lock(&self.inner);
        packets.extend(&inner.packets);
        packets.sort_by_key(|packet| std::cmp::Reverse(packet.header.priority));
        inner.packets = packets.into();
        self.depth.store(inner.packets.len() as u32, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ActorId, Header, Kind, PAYLOAD_WORDS, priority};

    fn packet(priority: u8, number: u32) -> Packet {
        let mut payload = [0; PAYLOAD_WORDS];
        payload[0] = number;
        let header = Header {
            destination: 0,
            sender: ActorId::HOST,
            type_id: 0,
            correlation: 0,
            sent: 0,
            kind: Kind::Message,
            priority,
            words: 1,
            deadline: 0,
            deliveries: Default::default(),
        };
        Packet { header, payload }
    }

    #[test]
    fn priorities_go_first_and_order_stays_within_them() {
        let mailbox = Mailbox::default();
        let sent = [
            (priority::NORMAL, 1),
            (priority::LOW, 2),
            (priority::HIGH, 3),
            (priority::NORMAL, 4),
            (priority::HIGH, 5),
            (priority::CRITICAL, 6),
            (priority::LOW, 7),
        ];
        for (priority, number) in sent {
            assert_eq!(mailbox.push(&packet(priority, number), 8), Push::Taken);
        }
        let order: Vec<u32> = std::iter::from_fn(|| mailbox.pop())
            .map(|p| p.payload[0])
            .collect();
        assert_eq!(order, [6, 3, 5, 1, 4, 2, 7]);
    }

    #[test]
    fn what_is_full_sealed_or_closed_takes_nothing() {
        let mailbox = Mailbox::default();
        let one = packet(priority::NORMAL, 1);
        assert_eq!(mailbox.push(&one, 1), Push::Taken);
        assert_eq!(mailbox.push(&one, 1), Push::Full);
        mailbox.seal();
        assert_eq!(mailbox.push(&one, 2), Push::Sealed);
        mailbox.unseal();
        assert_eq!(mailbox.push(&one, 2), Push::Taken);
        assert_eq!(mailbox.close().len(), 2);
        assert_eq!(mailbox.push(&one, 2), Push::Closed);
        assert_eq!(mailbox.pop(), None);
    }
}
