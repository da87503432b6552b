//! What an actor has sent and what has found no room, in order of sending: it waits until there is room, or until the runtime's patience
//! ends. Alike on every engine. Must not know engines.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::engine::Refusal;
use super::group::Group;
use super::host::Host;
use crate::dead_letters::DeadReason;
use crate::message::{ActorId, Packet};

/// Packets without room.
#[derive(Default)]
pub(crate) struct Unsent {
    packets: VecDeque<Packet>,
    /// Since when the first of them is known to wait.
    since: Option<Instant>,
    /// When it is looked whether they are to be given up.
    gives_up: Option<Instant>,
    /// When it is looked whether another engine has room.
    pub(crate) looks: Option<Instant>,
}

impl Unsent {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The next to be sent.
    pub(crate) fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// All of them, for a checkpoint.
    pub(crate) fn to_vec(&self) -> Vec<Packet> {
        self.packets.iter().copied().collect()
    }

    /// Keeps one behind the others.
    pub(crate) fn keep(&mut self, packet: Packet) {
        self.packets.push_back(packet);
    }

    /// Whether one of them must be delivered before `packet`.
    pub(crate) fn has_before(&self, packet: &Packet) -> bool {
        self.packets.iter().any(|other| other.goes_before(packet))
    }

    /// Keeps one that came back, before what was sent after it.
    pub(crate) fn keep_again(&mut self, packet: Packet) {
        let is_later = |other: &Packet| other.header.sent > packet.header.sent;
        let at = self.packets.iter().position(is_later);
        let at = at.unwrap_or(self.packets.len());
        if at == 0 {
            // The first of them waits from now on.
            self.since = None;
        }
        self.packets.insert(at, packet);
    }

    /// Keeps what a checkpoint held.
    pub(crate) fn keep_all(&mut self, packets: &[Packet]) {
        self.packets.extend(packets);
    }

    /// Takes all of them away.
    pub(crate) fn take(&mut self) -> VecDeque<Packet> {
        self.since = None;
        std::mem::take(&mut self.packets)
    }

    /// Sends in order until `deliver` finds no room, and says whether any went. What is for nobody is undeliverable.
    pub(crate) fn flush(
        &mut self,
        host: &Host,
        group: &Group,
        mut deliver: impl FnMut(&Packet, &mut Option<Instant>) -> Result<(), Refusal>,
    ) -> bool {
        let mut went = false;
        while let Some(packet) = self.packets.front().copied() {
            match deliver(&packet, &mut self.looks) {
                Ok(()) => {}
                Err(Refusal::Gone) => host.undelivered(group, &packet, DeadReason::Unknown),
                Err(Refusal::Full) => break,
            }
            self.packets.pop_front();
            // The next one waits from now on.
            self.since = self.since.map(|_| host.time.now());
            went = true;
        }
        if self.packets.is_empty() {
            self.since = None;
        }
        went
    }

    /// The first of them waits from now on, unless it does already: after the runtime's patience it is looked whether it still does.
    pub(crate) fn wait(&mut self, host: &Host, actor: ActorId) {
        if self.since.is_none() {
            let now = host.time.now();
            self.since = Some(now);
            host.give_up_after(actor, now, &mut self.gives_up);
        }
    }

    /// Those that have waited for too long are undeliverable, and all behind them; says how many.
    pub(crate) fn give_up(&mut self, host: &Host, group: &Group, actor: ActorId, patience: Duration) -> u64 {
        let Some(since) = self.since else {
            return 0;
        };
        if host.time.since(since) < patience {
            host.give_up_after(actor, since, &mut self.gives_up);
            return 0;
        }
        let packets = self.take();
        for packet in &packets {
            host.undelivered(group, packet, DeadReason::Full);
        }
        packets.len() as u64
    }
}
