//! What actors of a device send to the host, to topics, and to actors of other devices. Where there is no room, the actor is held: it handles nothing until there is,
//! or until the runtime's patience ends; what it has sent meanwhile waits behind. Must not know rings.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::cell::{Cell, Unsent};
use super::{Deployed, Shared};
use crate::dead_letters::DeadReason;
use crate::lock::lock;
use crate::message::{ActorId, Kind, Packet};
use crate::runtime::engine::Refusal;
use crate::runtime::outbox;

/// Whether a packet that has left its device is for an actor.
fn is_elsewhere(packet: &Packet) -> bool {
    let head = &packet.header;
    matches!(head.kind, Kind::Message | Kind::Reply) && head.destination != ActorId::HOST.0
}

impl Shared {
    /// Takes what an actor has sent out of its device.
    pub(super) fn out(&self, deployed: &Deployed, packet: &Packet) {
        let actor = packet.header.sender;
        let Some(cell) = deployed.cell(actor) else {
            return self
                .host
                .undelivered(&deployed.group, packet, DeadReason::Unknown);
        };
        // Who waits for an answer gets it, also while what its actor sent before finds no room.
        let gone = match cell.is_stalled() {
            true => self.host.answers(&deployed.group, packet),
            false => self.give(deployed, packet),
        };
        if gone {
            return;
        }
        lock(&cell.unsent).packets.push_back(*packet);
        if cell.stall(true, |life, held| deployed.tell_life(actor, life, held)) {
            deployed.stalled.fetch_add(1, Ordering::AcqRel);
            lock(&cell.unsent).since = Some(Instant::now());
            self.host.stalled(actor);
        }
        // There may have been room between the two.
        self.send_on(deployed, actor);
    }

    // Whether whom it is for has taken it.
    fn give(&self, deployed: &Deployed, packet: &Packet) -> bool {
        let taken = match packet.header.kind {
            Kind::Publish => self.host.publish(&deployed.group, packet),
            _ if is_elsewhere(packet) => outbox::to_elsewhere(&self.host, packet, None),
            // An answer that says that there is none names the actor, too.
            _ => self.host.take(&deployed.group, packet),
        };
        if taken == Err(Refusal::Gone) {
            self.host
                .undelivered(&deployed.group, packet, DeadReason::Unknown);
        }
        taken != Err(Refusal::Full)
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
            while let Some(packet) = unsent.packets.front()
                && self.give(deployed, packet)
            {
                unsent.packets.pop_front();
                // The next one waits from now on.
                unsent.since = Some(Instant::now());
            }
            match unsent.packets.front().map(is_elsewhere) {
                None => self.let_go(deployed, cell, &mut unsent, actor),
                Some(true) => self.host.look_again(actor, &mut unsent.looks),
                // Queues of the host tell when they have room.
                Some(false) => {}
            }
        }
    }

    fn let_go(&self, deployed: &Deployed, cell: &Cell, unsent: &mut Unsent, actor: ActorId) {
        unsent.since = None;
        if cell.stall(false, |life, held| deployed.tell_life(actor, life, held)) {
            deployed.stalled.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// What an actor has not been able to send for long is undeliverable.
    pub(super) fn give_up(&self, deployed: &Deployed, actor: ActorId) {
        let Some(cell) = deployed.cell(actor).filter(|cell| cell.is_stalled()) else {
            return;
        };
        let given_up = {
            let mut unsent = lock(&cell.unsent);
            if unsent.since.is_some_and(|since| since.elapsed() < self.patience) {
                return self.host.stalled(actor);
            }
            let packets = std::mem::take(&mut unsent.packets);
            self.let_go(deployed, cell, &mut unsent, actor);
            packets
        };
        cell.dropped.fetch_add(given_up.len() as u64, Ordering::Relaxed);
        for packet in given_up {
            self.host.undelivered(&deployed.group, &packet, DeadReason::Full);
        }
    }
}
