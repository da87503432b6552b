//! What actors of a device send to the host, to topics, and to actors that cannot take it on the device. Where there is no room, the actor is held: it handles nothing
//! until there is, or until the runtime's patience ends; what it has sent meanwhile waits behind. Must not know rings.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::cell::Cell;
use super::{Deployed, Shared};
use crate::dead_letters::DeadReason;
use crate::lock::lock;
use crate::message::{ActorId, Kind, Packet};
use crate::runtime::engine::Refusal;
use crate::runtime::outbox;
use crate::runtime::unsent::Unsent;

/// Whether a packet that has left its device is for an actor.
fn is_for_actor(packet: &Packet) -> bool {
    let head = &packet.header;
    matches!(head.kind, Kind::Message | Kind::Reply) && head.destination != ActorId::HOST.0
}

impl Shared {
    /// What a restored actor had sent comes before what it will send.
    pub(super) fn send_again(&self, deployed: &Deployed, cell: &Cell) {
        for packet in cell.take_unsent() {
            // Restored mailboxes of this device take all; those of another one wait for room, and what the actor sends there next comes behind it.
            match is_for_actor(&packet) {
                true if self.forward(&packet) => {}
                true => self.hold(deployed, cell, lock(&cell.unsent), &packet, Unsent::keep),
                false => self.out(deployed, &packet),
            }
        }
    }

    /// Takes a packet that has been accepted already, whatever waits for its actor; false where that is gone.
    fn forward(&self, packet: &Packet) -> bool {
        let actor = ActorId(packet.header.destination);
        let Some(deployed) = self.find(actor) else {
            return false;
        };
        let Some(cell) = deployed.cell(actor) else {
            return false;
        };
        // First: what is held may go on, and is counted down, at once.
        cell.waits.fetch_add(1, Ordering::Relaxed);
        let Ok(held) = cell.hold_unless_active(packet) else {
            cell.waits.fetch_sub(1, Ordering::Relaxed);
            return false;
        };
        if !held {
            deployed.push(packet.to_words(), true);
        }
        true
    }

    /// Takes what an actor has sent out of its device.
    pub(super) fn out(&self, deployed: &Deployed, packet: &Packet) {
        let actor = packet.header.sender;
        let group = &deployed.group;
        let Some(cell) = deployed.cell(actor) else {
            return self.host.undelivered(group, packet, DeadReason::Unknown);
        };
        // Who waits for an answer gets it, also while what its actor sent before finds no room.
        let gone = match cell.is_stalled() {
            true => self.host.answers(group, packet),
            false => match self.give(deployed, cell, packet) {
                Ok(()) => true,
                Err(Refusal::Full) => false,
                Err(Refusal::Gone) => {
                    self.host.undelivered(group, packet, DeadReason::Unknown);
                    true
                }
            },
        };
        if !gone {
            self.hold(deployed, cell, lock(&cell.unsent), packet, Unsent::keep);
        }
    }

    /// Keeps what an actor has sent and what finds no room, where `keep` puts it, and holds the actor. `unsent` is the actor's.
    pub(super) fn hold(
        &self,
        deployed: &Deployed,
        cell: &Cell,
        mut unsent: MutexGuard<'_, Unsent>,
        packet: &Packet,
        keep: fn(&mut Unsent, Packet),
    ) {
        let actor = packet.header.sender;
        // Whoever removes it says so before the last look at what is unsent.
        if cell.is_removed() {
            drop(unsent);
            return self.host.undelivered(&deployed.group, packet, DeadReason::Full);
        }
        keep(&mut unsent, *packet);
        unsent.wait(&self.host, actor);
        drop(unsent);
        self.stall(deployed, cell, actor, true);
        // There may have been room between the two.
        self.send_on(deployed, actor);
    }

    /// Keeps what a box had no room for.
    pub(super) fn overflow(&self, deployed: &Deployed, cell: &Cell, packet: &Packet) {
        let to = ActorId(packet.header.destination);
        // Before it stalls its sender, which tells the device: pairs with `tell_life`.
        cell.overflowed.fetch_add(1, Ordering::Release);
        let mut behind = lock(&cell.behind);
        if !behind.boxed.contains_key(&to)
            && let Some((boxed, _)) = self.boxed_for(to)
        {
            behind.boxed.insert(to, boxed);
        }
        drop(behind);
        self.hold(deployed, cell, lock(&cell.unsent), packet, Unsent::keep);
    }

    // How many packets were ever put into the box that packets from here to an actor lie in, and how many of these have been handled. A device that does not answer has
    // lost it.
    fn boxed_for(&self, to: ActorId) -> Option<(u32, u32)> {
        match self.find(to) {
            Some(launch) => launch.grid.boxed(launch.grid.home_of(to.0)).ok(),
            None => self.commons.sent_far(to.0),
        }
    }

    // Whether nothing that was sent to an actor before is in its box.
    fn is_next(&self, cell: &Cell, to: ActorId) -> bool {
        let mut behind = lock(&cell.behind);
        if let Some(boxed) = behind.boxed.get(&to)
            && let Some((_, handled)) = self.boxed_for(to)
            && (handled.wrapping_sub(*boxed) as i32) < 0
        {
            return false;
        }
        behind.boxed.remove(&to);
        true
    }

    // Whether whom it is for has taken it, and if it is an actor here, that its sender goes on behind it.
    fn give(&self, deployed: &Deployed, cell: &Cell, packet: &Packet) -> Result<(), Refusal> {
        let to = ActorId(packet.header.destination);
        match packet.header.kind {
            Kind::Publish => self.host.publish(&deployed.group, packet),
            _ if is_for_actor(packet) => {
                if !self.is_next(cell, to) {
                    return Err(Refusal::Full);
                }
                let launch = self.find(to);
                let is_here = launch.is_some();
                let sent = match launch {
                    Some(launch) => self.submit_to(&launch, packet)?,
                    None => outbox::to_elsewhere(&self.host, packet, None)?,
                };
                if is_here || self.commons.is_bridged() {
                    let last = &mut lock(&cell.behind).sent;
                    let last = last.entry(to).or_default();
                    *last = sent.max(*last);
                }
                Ok(())
            }
            // An answer that says that there is none names the actor, too.
            _ => self.host.take(&deployed.group, packet),
        }
    }

    // Holds an actor, or lets it go on.
    fn stall(&self, deployed: &Deployed, cell: &Cell, actor: ActorId, stalled: bool) {
        cell.stall(stalled, &deployed.stalled, |life, held| {
            deployed.tell_life(actor, life, held)
        });
    }

    /// There may be room for what an actor has sent.
    pub(super) fn send_on(&self, deployed: &Deployed, actor: ActorId) {
        let Some(cell) = deployed.cell(actor).filter(|cell| cell.is_stalled()) else {
            return;
        };
        cell.room.store(true, Ordering::Release);
        // Who is at it, maybe this thread within a waker, looks again.
        while cell.room.load(Ordering::Acquire) {
            let Ok(mut unsent) = cell.unsent.try_lock() else {
                // A checkpoint that reads it does not look again: this does, in a moment.
                return self.host.look_again(actor, &mut None);
            };
            cell.room.store(false, Ordering::Release);
            unsent.flush(&self.host, &deployed.group, |out, _| {
                self.give(deployed, cell, out)
            });
            match unsent.front().map(is_for_actor) {
                None if self.has_arrived(cell) => self.stall(deployed, cell, actor, false),
                None | Some(true) => self.host.look_again(actor, &mut unsent.looks),
                // Queues of the host tell when they have room.
                Some(false) => {}
            }
        }
    }

    /// Whether what a held actor has sent to others by the host has been handled: what it sends from then on goes through their boxes, and must not come
    /// before it.
    fn has_arrived(&self, cell: &Cell) -> bool {
        let sent = &mut lock(&cell.behind).sent;
        sent.retain(|to, sent| match self.find(*to) {
            Some(launch) => !launch.has_taken_in(*to, *sent),
            None => self.commons.is_bridged() && !self.is_taken_in_elsewhere(*to, *sent),
        });
        sent.is_empty()
    }

    fn is_taken_in_elsewhere(&self, to: ActorId, sent: u64) -> bool {
        let neighbours = self.host.neighbours();
        neighbours.is_none_or(|neighbours| neighbours.has_taken_in(to, sent))
    }

    /// What an actor has not been able to send for long is undeliverable.
    pub(super) fn give_up(&self, deployed: &Deployed, actor: ActorId) {
        // There may be room since the last look, which a busy machine has made a long time ago.
        self.send_on(deployed, actor);
        let Some(cell) = deployed.cell(actor).filter(|cell| cell.is_stalled()) else {
            return;
        };
        let mut unsent = lock(&cell.unsent);
        let given_up = unsent.give_up(&self.host, &deployed.group, actor, self.patience);
        cell.dropped.fetch_add(given_up, Ordering::Relaxed);
        if given_up > 0 {
            // Nothing of it waits for a box any more.
            lock(&cell.behind).boxed.clear();
        }
        drop(unsent);
        self.send_on(deployed, actor);
    }
}
