//! What the host knows of an actor on the device: where it is in its life, and what waits until it is active. Must not know
//! grids.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::error::Result;
use crate::grid::ActorCounts;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::{ActorId, Packet};
use crate::runtime::engine::{ActorImage, Refusal};
use crate::runtime::unsent::Unsent;
use crate::telemetry::ActorMetrics;

/// An actor.
#[derive(Default)]
pub(super) struct Cell {
    inside: Mutex<Inside>,
    /// What it has sent and what found no room: at the host, in a topic, or in a mailbox. Locked while that is delivered, never within `inside`.
    pub(super) unsent: Mutex<Unsent>,
    pub(super) behind: Mutex<Behind>,
    /// Something it has sent finds no room: it handles nothing meanwhile. Written under the lock of `inside`.
    stalled: AtomicBool,
    /// Packets of its that came out because a box was full; only after that they are looked at.
    pub(super) overflowed: AtomicU32,
    /// There was room since the unsent packets were looked at.
    pub(super) room: AtomicBool,
    /// Messages that wait, here or on their way.
    pub(super) waits: AtomicU32,
    pub(super) errors: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// Handlers run before a checkpoint.
    before: AtomicU64,
}

/// Behind what that must come which an actor sends to others of its device, so that nothing changes its order.
#[derive(Default)]
pub(super) struct Behind {
    /// What has found no room in a box comes behind what is there: so many packets as were ever put into it.
    pub(super) boxed: BTreeMap<ActorId, u32>,
    /// What it sends when it goes on comes behind what went by the host: so many packets as their homes were sent by then.
    pub(super) sent: BTreeMap<ActorId, u64>,
}

struct Inside {
    life: ActorState,
    /// What is seen of its life while a fault that has stopped it is not told yet.
    seen: Option<ActorState>,
    /// It was deactivated, and what it has handled before may not be known yet.
    leaving: bool,
    /// How often it was deactivated.
    departures: u64,
    removed: bool,
    /// What came while it was not active.
    held: VecDeque<Packet>,
}

impl Default for Inside {
    fn default() -> Inside {
        Inside {
            life: ActorState::Launched,
            seen: None,
            leaving: false,
            departures: 0,
            removed: false,
            held: VecDeque::new(),
        }
    }
}

impl Cell {
    pub(super) fn life(&self) -> Option<ActorState> {
        let inside = lock(&self.inside);
        (!inside.removed).then_some(inside.seen.unwrap_or(inside.life))
    }

    pub(super) fn is_removed(&self) -> bool {
        lock(&self.inside).removed
    }

    /// Keeps a packet unless the actor is active; true if it is kept here.
    pub(super) fn hold_unless_active(&self, packet: &Packet) -> std::result::Result<bool, Refusal> {
        let mut inside = lock(&self.inside);
        match inside.life {
            _ if inside.removed => Err(Refusal::Gone),
            ActorState::Terminated => Err(Refusal::Gone),
            ActorState::Active if !self.is_stalled() => Ok(false),
            _ => {
                inside.held.push_back(*packet);
                Ok(true)
            }
        }
    }

    /// Keeps a packet that came back, for when the actor is active again, before what its sender has sent since. Gives back what then has no room, where
    /// `capacity` packets wait for it: the last of what its sender has sent since, or the packet itself.
    pub(super) fn hold_again(
        &self,
        packet: &Packet,
        capacity: usize,
    ) -> std::result::Result<Option<Packet>, Refusal> {
        let mut inside = lock(&self.inside);
        if inside.removed || inside.life == ActorState::Terminated {
            return Err(Refusal::Gone);
        }
        let is_later = |other: &Packet| packet.goes_before(other);
        let at = inside.held.iter().position(is_later).unwrap_or(inside.held.len());
        if (self.waits.load(Ordering::Relaxed) as usize) < capacity {
            inside.held.insert(at, *packet);
            self.waits.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        let Some(last) = inside.held.iter().rposition(is_later) else {
            return Ok(Some(*packet));
        };
        let left = inside.held.remove(last);
        inside.held.insert(at, *packet);
        Ok(left)
    }

    /// Moves it on; `tell` says so to the device, with what has waited for it where it becomes active.
    pub(super) fn transition(
        &self,
        to: ActorState,
        name: &str,
        tell: impl FnOnce(ActorState, VecDeque<Packet>),
    ) -> Result<()> {
        let mut inside = lock(&self.inside);
        inside.seen.unwrap_or(inside.life).check_move(to, name)?;
        if inside.seen.is_some() && to != ActorState::Terminated {
            // It is faulted in a moment, wherever it goes.
            inside.seen = Some(to);
            return Ok(());
        }
        inside.seen = None;
        inside.leaving = (inside.life, to) == (ActorState::Active, ActorState::Deactivated);
        inside.departures += u64::from(inside.leaving);
        inside.life = to;
        self.tell(&mut inside, tell);
        Ok(())
    }

    // Under the lock, so that nobody's packet comes before those that have waited.
    fn tell(&self, inside: &mut Inside, tell: impl FnOnce(ActorState, VecDeque<Packet>)) {
        match inside.life {
            ActorState::Active if self.is_stalled() => tell(ActorState::Deactivated, VecDeque::new()),
            ActorState::Active => tell(ActorState::Active, std::mem::take(&mut inside.held)),
            other => tell(other, VecDeque::new()),
        }
    }

    /// Whether something it has sent finds no room.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// Holds it, or lets it go on; `tell` says so to the device where it is active. `all` counts those that are held.
    pub(super) fn stall(
        &self,
        stalled: bool,
        all: &AtomicU32,
        tell: impl FnOnce(ActorState, VecDeque<Packet>),
    ) {
        let mut inside = lock(&self.inside);
        if self.stalled.swap(stalled, Ordering::AcqRel) == stalled {
            return;
        }
        // Under the lock: nobody counts it down who has not counted it up.
        match stalled {
            true => all.fetch_add(1, Ordering::AcqRel),
            false => all.fetch_sub(1, Ordering::AcqRel),
        };
        if inside.life == ActorState::Active {
            self.tell(&mut inside, tell);
        }
    }

    /// Its handler faulted; keeps the message, where it is to be delivered `again`, before all that waits. Says whether it has. Nobody sees it faulted until
    /// [`Cell::tell_fault`].
    pub(super) fn faulted(&self, again: Option<Packet>) -> bool {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut inside = lock(&self.inside);
        if inside.life == ActorState::Active || inside.leaving {
            inside.seen = Some(inside.life);
            inside.life = ActorState::Faulted;
            inside.leaving = false;
        }
        let Some(packet) = again.filter(|_| !inside.removed && inside.life != ActorState::Terminated) else {
            return false;
        };
        inside.held.push_front(packet);
        self.waits.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The fault is known: whoever looks sees it.
    pub(super) fn tell_fault(&self) {
        lock(&self.inside).seen = None;
    }

    /// How often it was deactivated.
    pub(super) fn departures(&self) -> u64 {
        lock(&self.inside).departures
    }

    /// All that it had handled when it had been deactivated so many times is known.
    pub(super) fn settle(&self, departures: u64) {
        let mut inside = lock(&self.inside);
        inside.leaving &= inside.departures != departures;
    }

    /// If packets that came back wait although it is active, because it became so meanwhile: these.
    pub(super) fn take_left(&self) -> VecDeque<Packet> {
        let mut inside = lock(&self.inside);
        match inside.life {
            ActorState::Active if !self.is_stalled() => std::mem::take(&mut inside.held),
            _ => VecDeque::new(),
        }
    }

    /// As a checkpoint holds it, but for what is on the device.
    pub(super) fn image(&self, state: &[u8], handled: u64, on_the_way: Vec<Packet>) -> Option<ActorImage> {
        let unsent = lock(&self.unsent).to_vec();
        let inside = lock(&self.inside);
        if inside.removed {
            return None;
        }
        let mut mailbox = on_the_way;
        mailbox.extend(&inside.held);
        Some(ActorImage {
            life: inside.life,
            state: state.to_vec(),
            mailbox,
            unsent,
            processed: handled + self.before.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        })
    }

    pub(super) fn remove(&self) -> Vec<Packet> {
        let mut inside = lock(&self.inside);
        inside.removed = true;
        let mut left: Vec<Packet> = inside.held.drain(..).collect();
        drop(inside);
        left.extend(lock(&self.unsent).take());
        left
    }

    pub(super) fn restore(&self, image: &ActorImage) {
        lock(&self.unsent).keep_all(&image.unsent);
        let mut inside = lock(&self.inside);
        inside.held.extend(&image.mailbox);
        self.waits.fetch_add(inside.held.len() as u32, Ordering::Relaxed);
        self.before.store(image.processed, Ordering::Relaxed);
        self.errors.store(image.errors, Ordering::Relaxed);
    }

    /// What it had sent before it was restored.
    pub(super) fn take_unsent(&self) -> VecDeque<Packet> {
        lock(&self.unsent).take()
    }

    pub(super) fn revive(&self, life: ActorState, tell: impl FnOnce(ActorState, VecDeque<Packet>)) {
        let mut inside = lock(&self.inside);
        inside.life = life;
        self.tell(&mut inside, tell);
    }

    pub(super) fn metrics(&self, counts: ActorCounts) -> ActorMetrics {
        ActorMetrics {
            messages_processed: counts.handled + self.before.load(Ordering::Relaxed),
            messages_sent: counts.sent,
            messages_dropped: u64::from(counts.refused) + self.dropped.load(Ordering::Relaxed),
            errors_encountered: self.errors.load(Ordering::Relaxed),
            queue_depth: self.waits.load(Ordering::Relaxed).into(),
            ..ActorMetrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Header, Kind, PAYLOAD_WORDS, priority};

    fn packet(sender: u32, sent: u64) -> Packet {
        let header = Header {
            destination: 0,
            sender: ActorId(sender),
            type_id: 0,
            correlation: 0,
            sent,
            kind: Kind::Message,
            priority: priority::NORMAL,
            words: 1,
            deadline: 0,
            deliveries: Default::default(),
        };
        let payload = [0; PAYLOAD_WORDS];
        Packet { header, payload }
    }

    #[test]
    fn what_comes_back_goes_before_what_its_sender_has_sent_since() {
        let cell = Cell::default();
        for (sender, sent) in [(1, 3), (2, 4), (1, 5)] {
            assert_eq!(cell.hold_unless_active(&packet(sender, sent)), Ok(true));
        }
        // In the order in which the device gives them back.
        for (sender, sent) in [(1, 1), (1, 2), (2, 1), (3, 9)] {
            assert_eq!(cell.hold_again(&packet(sender, sent), 4), Ok(None));
        }
        // One that was sent before what waits takes the place of the last of that.
        let [early, late, other] = [packet(1, 0), packet(1, 6), packet(4, 0)];
        assert_eq!(cell.hold_again(&early, 4), Ok(Some(packet(1, 5))));
        assert_eq!(cell.hold_again(&late, 4), Ok(Some(late)));
        assert_eq!(cell.hold_again(&other, 4), Ok(Some(other)));
        let mut order = Vec::new();
        cell.revive(ActorState::Active, |_, held| {
            order = held.iter().map(|p| (p.header.sender.0, p.header.sent)).collect();
        });
        assert_eq!(order, [(1, 0), (1, 1), (1, 2), (1, 3), (2, 1), (2, 4), (3, 9)]);
    }

    #[test]
    fn a_fault_is_seen_when_it_is_told() {
        let to = |cell: &Cell, to| cell.transition(to, "one", |_, _| panic!("the device knows"));
        let active = || {
            let cell = Cell::default();
            cell.transition(ActorState::Active, "one", |_, _| {})
                .expect("a legal move");
            assert!(!cell.faulted(None));
            assert_eq!(cell.life(), Some(ActorState::Active));
            // What comes waits.
            assert_eq!(cell.hold_unless_active(&packet(1, 1)), Ok(true));
            assert!(cell.take_left().is_empty());
            cell
        };
        let cell = active();
        cell.tell_fault();
        assert_eq!(cell.life(), Some(ActorState::Faulted));
        // A move that comes between is legal, and ends in the fault.
        let cell = active();
        to(&cell, ActorState::Deactivated).expect("a legal move");
        assert_eq!(cell.life(), Some(ActorState::Deactivated));
        cell.tell_fault();
        assert_eq!(cell.life(), Some(ActorState::Faulted));
        let cell = active();
        cell.transition(ActorState::Terminated, "one", |_, _| {})
            .expect("a legal move");
        cell.tell_fault();
        assert_eq!(cell.life(), Some(ActorState::Terminated));
    }

    #[test]
    fn a_departure_is_settled_by_who_has_seen_it() {
        for (seen, life) in [(0, ActorState::Faulted), (1, ActorState::Deactivated)] {
            let cell = Cell::default();
            for to in [ActorState::Active, ActorState::Deactivated] {
                cell.transition(to, "one", |_, _| {}).expect("a legal move");
            }
            assert_eq!(cell.departures(), 1);
            cell.settle(seen);
            assert!(!cell.faulted(None));
            cell.tell_fault();
            assert_eq!(cell.life(), Some(life));
        }
    }
}
