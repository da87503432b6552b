//! Takes out what comes out of the homes, and gives it to whom it is for. Must not know how packets get in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cell::Cell;
use super::{Deployed, Shared};
use crate::dead_letters::DeadReason;
use crate::error::{ActorError, Result};
use crate::kernels::layout::{REASON_EXPIRED, REASON_FOREIGN, REASON_FULL, REASON_INACTIVE, REASON_UNKNOWN};
use crate::lock::{lock, read};
use crate::message::{ActorId, Kind, PACKET_WORDS, Packet};
use crate::runtime::engine::{Deliver, Refusal};
use crate::runtime::unsent::Unsent;

/// Packets taken out of a home at once.
const BATCH: usize = 64;
/// Rounds without a packet after which the pump sleeps between two.
const PATIENCE: u32 = 200;

/// How often homes are looked at for signs of life.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long after a handler's time is over its home must have given one.
const SILENCE: Duration = Duration::from_secs(2);

/// Starts the thread that takes out what nobody waits for.
pub(super) fn start(shared: &Arc<Shared>) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("perpetua-pump".into())
        .spawn(move || run(&shared))
        .map_err(|source| ActorError::Io {
            path: "a thread that takes packets from the device".into(),
            source,
        })
}

fn run(shared: &Shared) {
    let mut idle = 0u32;
    let mut looked = Instant::now();
    while !shared.stopped.load(Ordering::Acquire) {
        let all: Vec<Arc<Deployed>> = read(&shared.deployed).clone();
        let mut taken = 0;
        for deployed in &all {
            for home in 0..deployed.grid.homes() {
                taken += shared.drain(deployed, home);
                shared.refill(deployed, home);
            }
        }
        if looked.elapsed() > HEARTBEAT {
            looked = Instant::now();
            all.iter().for_each(|deployed| deployed.listen());
        }
        idle = if taken > 0 { 0 } else { idle.saturating_add(1) };
        if idle > PATIENCE {
            std::thread::sleep(Duration::from_micros(50));
        } else {
            std::thread::yield_now();
        }
    }
}

impl Deployed {
    /// Tells of homes that give no sign of life any more, once each.
    fn listen(&self) {
        for (number, home) in (0u32..).zip(&self.homes) {
            let silence = self.grid.silence(number);
            let silent = silence > self.grid.run_limit() + SILENCE;
            if home.silent.swap(silent, Ordering::Relaxed) || !silent {
                continue;
            }
            // A device that is lost says so to whoever asks it anything.
            let cause = match self.grid.handled(0) {
                Ok(_) => "its kernel does not go on".to_owned(),
                Err(error) => error.to_string(),
            };
            tracing::error!(
                actors = self.group.name,
                home = number,
                ?silence,
                cause,
                "a home gives no sign of life: its actors answer nobody, until they are restored from a checkpoint"
            );
        }
    }
}

impl Shared {
    /// Takes packets out of a home; says how many. None where another thread is at it.
    pub(super) fn drain(&self, deployed: &Deployed, home: u32) -> usize {
        deployed
            .grid
            .drain(home, BATCH, |words| self.take(deployed, words))
    }

    /// Puts what waits for room into the ring.
    fn refill(&self, deployed: &Deployed, home: u32) {
        if let Some(side) = deployed.homes.get(home as usize) {
            let mut queue = lock(&side.queue);
            if !queue.waiting.is_empty() {
                deployed.settle(home, &mut queue);
            }
        }
    }

    fn take(&self, deployed: &Deployed, words: &[u32; PACKET_WORDS]) {
        let Some(packet) = Packet::from_words(words) else {
            tracing::error!(?words, "a packet from the device that is none");
            return;
        };
        let head = &packet.header;
        // The host's clock goes on from the device's. A device's clock that is far ahead is told of once a packet.
        if let Err(error) = self.host.go_on_from(head.sent) {
            tracing::warn!(%error, "the device's clock");
        }
        match head.kind {
            Kind::Message | Kind::Ask | Kind::Reply | Kind::Done | Kind::Publish => {
                self.out(deployed, &packet)
            }
            Kind::Fault => self.fault(deployed, packet),
            Kind::Undelivered => self.back(deployed, packet),
            Kind::Command => {}
        }
    }

    /// A handler faulted: the packet is its message, the deadline the site.
    fn fault(&self, deployed: &Deployed, mut packet: Packet) {
        let actor = ActorId(packet.header.destination);
        let site = packet.header.deadline;
        packet.header.deadline = 0;
        packet.header.kind = match packet.header.correlation {
            0 => Kind::Message,
            _ => Kind::Ask,
        };
        let text = deployed.grid.fault_text(site);
        let again = deployed.group.again(&packet);
        let cell = deployed.cell(actor);
        let kept = cell.is_some_and(|cell| cell.faulted(again));
        let letter = (!kept).then_some(&packet);
        let stop = || {
            if let Some(cell) = cell {
                cell.tell_fault();
            }
        };
        self.host.faulted(&deployed.group, actor, letter, text, stop);
    }

    /// A packet was not delivered: the deadline says why, and of which kind it was.
    fn back(&self, deployed: &Deployed, mut packet: Packet) {
        let [reason, kind, ..] = packet.header.deadline.to_le_bytes();
        let reason = u32::from(reason);
        packet.header.deadline = 0;
        packet.header.kind = Kind::from_number(kind).unwrap_or(Kind::Message);
        if reason == REASON_UNKNOWN && self.host.neighbours().is_some() {
            return self.out(deployed, &packet);
        }
        if reason == REASON_FULL
            && let Some(cell) = deployed.cell(packet.header.sender)
        {
            return self.overflow(deployed, cell, &packet);
        }
        let actor = ActorId(packet.header.destination);
        // It may be another launch's actor.
        let to = self.find(actor);
        let cell = to.as_ref().and_then(|d| d.cell(actor));
        if reason == REASON_INACTIVE
            && let (Some(to), Some(cell)) = (&to, cell)
        {
            return self.bring_back(to, cell, &packet);
        }
        let counted = match reason {
            REASON_FOREIGN => cell.map(|cell| &cell.errors),
            REASON_EXPIRED => cell.map(|cell| &cell.dropped),
            _ => None,
        };
        if let Some(counter) = counted {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let reason = match reason {
            REASON_EXPIRED => DeadReason::Expired,
            REASON_FOREIGN => DeadReason::Foreign,
            // It was there when this was sent: its launch has gone since.
            REASON_INACTIVE => DeadReason::Terminated,
            _ => DeadReason::Unknown,
        };
        let group = to.as_ref().map_or(&deployed.group, |d| &d.group);
        self.host.undelivered(group, &packet, reason);
    }

    /// Puts a packet that the device could not let wait into its actor's mailbox, before what its sender has sent since. What the mailbox has no room for
    /// waits with its sender.
    pub(super) fn bring_back(&self, to: &Deployed, cell: &Cell, packet: &Packet) {
        let actor = packet.header.sender;
        let from = self.find(actor);
        let elsewhere = match from {
            None if actor != ActorId::HOST => self.host.neighbours(),
            _ => None,
        };
        let capacity = match from.is_some() || elsewhere.is_some() {
            true => to.group.capacity,
            // The mailbox has taken it from the host.
            false => usize::MAX,
        };
        let mut deliver = |packet: &Packet| {
            let left = cell.hold_again(packet, capacity)?;
            // It may have become active before the packet was kept.
            cell.take_left().iter().for_each(|packet| {
                to.push(packet.to_words(), true);
            });
            Ok(left)
        };
        let kept = match elsewhere {
            Some(neighbours) => neighbours.returned(packet, &mut deliver),
            None => self.returned(from.as_deref(), packet, &mut deliver),
        };
        // What nobody can be held for is kept here.
        let kept = match kept {
            Ok(Some(left)) => cell.hold_again(&left, usize::MAX).map(drop),
            other => other.map(drop),
        };
        if kept.is_err() {
            self.host.undelivered(&to.group, packet, DeadReason::Terminated);
        }
    }

    /// As [`Engine::returned`](crate::runtime::engine::Engine::returned), where the sender's launch is `from`.
    pub(super) fn returned(
        &self,
        from: Option<&Deployed>,
        packet: &Packet,
        deliver: Deliver<'_>,
    ) -> std::result::Result<Option<Packet>, Refusal> {
        let sender = from.and_then(|from| Some((from, from.cell(packet.header.sender)?)));
        let Some((from, sender)) = sender else {
            return deliver(packet);
        };
        // Until it is kept: one that was sent before it may come back meanwhile, through another home.
        let unsent = lock(&sender.unsent);
        let left = match unsent.has_before(packet) {
            true => Some(*packet),
            false => deliver(packet)?,
        };
        if let Some(left) = left {
            self.hold(from, sender, unsent, &left, Unsent::keep_again);
        }
        Ok(None)
    }

    /// How many handlers have run, if nothing is on its way.
    pub(super) fn handled_if_idle(&self) -> Option<u64> {
        let all: Vec<Arc<Deployed>> = read(&self.deployed).clone();
        let mut handled = 0;
        for deployed in &all {
            for (number, home) in (0u32..).zip(&deployed.homes) {
                // Not under the queue's lock: who takes packets out may put one into a queue.
                let comes_out = || deployed.grid.drain_waits(number);
                if comes_out() {
                    return None;
                }
                let mut queue = lock(&home.queue);
                deployed.settle(number, &mut queue);
                let report = deployed.grid.report(number);
                let waits = !queue.waiting.is_empty() || !queue.inside.is_empty();
                drop(queue);
                let stalled = deployed.stalled.load(Ordering::Acquire) > 0;
                if waits || stalled || comes_out() {
                    return None;
                }
                handled += report.handled;
            }
            if !deployed.grid.boxes_are_done().unwrap_or(true) {
                return None;
            }
        }
        self.commons.far_is_done().then_some(handled)
    }
}
