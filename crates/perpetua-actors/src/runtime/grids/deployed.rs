//! A launch on the device: its grid, and what the host keeps of its homes and actors. Must not know other launches.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::cell::Cell;
use super::queue::{Home, Queue, is_command};
use crate::error::Result;
use crate::grid::Grid;
use crate::kernels::layout::COMMAND_BECOME;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::{ActorId, Header, Kind, PACKET_WORDS, PAYLOAD_WORDS, Packet};
use crate::runtime::engine::ActorImage;
use crate::runtime::group::Group;

/// A launch on the device.
pub(super) struct Deployed {
    pub(super) group: Arc<Group>,
    pub(super) grid: Grid,
    pub(super) homes: Vec<Home>,
    /// Actors that are not gone.
    pub(super) left: AtomicU32,
    pub(super) cells: Vec<Cell>,
    /// Actors that are held because something they have sent finds no room.
    pub(super) stalled: AtomicU32,
}

impl Deployed {
    pub(super) fn cell(&self, actor: ActorId) -> Option<&Cell> {
        self.cells.get(actor.0.wrapping_sub(self.group.first.0) as usize)
    }

    pub(super) fn home(&self, actor: ActorId) -> (u32, Option<&Home>) {
        let home = self.grid.home_of(actor.0);
        (home, self.homes.get(home as usize))
    }

    /// Puts a packet into the ring of its actor's home, or behind those that wait for room there; says how many the home was sent by then.
    pub(super) fn push(&self, words: [u32; PACKET_WORDS], counts: bool) -> u64 {
        let actor = ActorId(words[0]);
        let (number, Some(home)) = self.home(actor) else {
            return 0;
        };
        let mut queue = lock(&home.queue);
        queue.sent += 1;
        self.settle(number, &mut queue);
        if queue.waiting.is_empty() && self.grid.push(number, [&words]) == 1 {
            let sent = (queue.sent, counts.then_some(actor.0));
            queue.inside.push_back(sent);
        } else {
            let number = queue.sent;
            queue.wait(number, words);
        }
        queue.sent
    }

    /// Counts what the home has taken in since, and puts what waits into the ring where there is room.
    pub(super) fn settle(&self, number: u32, queue: &mut Queue) {
        let taken = self.grid.report(number).taken_in as u32;
        // It may be less than before: then it is not looked at.
        while (taken.wrapping_sub(queue.taken) as i32) > 0 {
            queue.taken = queue.taken.wrapping_add(1);
            if let Some((_, Some(actor))) = queue.inside.pop_front()
                && let Some(cell) = self.cell(ActorId(actor))
            {
                cell.waits.fetch_sub(1, Ordering::Relaxed);
            }
        }
        while let Some(next) = queue.waiting.first_entry() {
            if self.grid.push(number, [&next.get().1]) == 0 {
                break;
            }
            let (sent, words) = next.remove();
            queue
                .inside
                .push_back((sent, (!is_command(&words)).then_some(words[0])));
        }
    }

    /// Tells a home something about an actor, behind all that was sent before; says how many packets that were, this one included.
    pub(super) fn command(&self, actor: ActorId, command: u32, words: [u32; 2]) -> u64 {
        let mut payload = [0; PAYLOAD_WORDS];
        payload[..2].copy_from_slice(&words);
        let header = Header {
            destination: actor.0,
            sender: ActorId::HOST,
            type_id: command,
            correlation: 0,
            sent: 0,
            kind: Kind::Command,
            priority: 0,
            words: 2,
            deadline: 0,
            deliveries: Default::default(),
        };
        self.push(Packet { header, payload }.to_words(), false)
    }

    /// Tells the device where an actor is in its life, and brings it what has waited for that.
    pub(super) fn tell_life(&self, actor: ActorId, life: ActorState, held: VecDeque<Packet>) {
        // Pairs with `overflow`, which counts a packet before it lets the sender go on behind it.
        let seen = self
            .cell(actor)
            .map_or(0, |cell| cell.overflowed.load(Ordering::Acquire));
        self.command(actor, COMMAND_BECOME, [life as u32, seen]);
        for packet in held {
            self.push(packet.to_words(), true);
        }
    }

    /// Whether an actor's home has taken in what it was sent for the actor, and commands, up to the packet of this number.
    pub(super) fn has_taken_in(&self, actor: ActorId, packets: u64) -> bool {
        self.has_taken_in_for(actor, actor.0, packets)
    }

    /// How many packets the home of an actor was ever sent.
    pub(super) fn sent_to_home_of(&self, actor: ActorId) -> u64 {
        self.home(actor).1.map_or(0, |home| lock(&home.queue).sent)
    }

    /// The same for packets to `whom` alone, and commands, in the home of `actor`.
    pub(super) fn has_taken_in_for(&self, actor: ActorId, whom: u32, packets: u64) -> bool {
        let (number, Some(home)) = self.home(actor) else {
            return true;
        };
        let mut queue = lock(&home.queue);
        self.settle(number, &mut queue);
        !queue.has_on_its_way(whom, packets)
    }

    /// Packets on their way to an actor's home, its own or others'.
    pub(super) fn on_the_way(&self, actor: ActorId) -> usize {
        let (number, Some(home)) = self.home(actor) else {
            return 0;
        };
        let mut queue = lock(&home.queue);
        self.settle(number, &mut queue);
        queue.waiting.len() + queue.inside.len()
    }

    /// The actors as they stand; all grids are parked, what came out was taken, and nobody moves a packet but from a home's queue into its ring.
    pub(super) fn image(&self, images: &mut BTreeMap<ActorId, ActorImage>) -> Result<()> {
        // All at once: what goes from a queue into its ring meanwhile would be in neither.
        let queues: Vec<_> = self.homes.iter().map(|home| lock(&home.queue)).collect();
        let grid = self.grid.image()?;
        let mut packets: HashMap<u32, Vec<Packet>> = HashMap::new();
        let waiting = queues.iter().flat_map(|queue| queue.waiting.values());
        let waiting = waiting.map(|(_, words)| words);
        for words in grid.packets.iter().chain(waiting) {
            if let Some(packet) = Packet::from_words(words)
                && packet.header.kind != Kind::Command
            {
                packets.entry(words[0]).or_default().push(packet);
            }
        }
        // A cell is locked before its home's queue.
        drop(queues);
        let size = self.group.handler.state_size.max(1);
        for (i, actor) in self.group.actors().enumerate() {
            let state = grid.states.get(i * size..(i + 1) * size).unwrap_or_default();
            let handled = grid.handled.get(i).copied().unwrap_or(0);
            let on_the_way = packets.remove(&actor.0).unwrap_or_default();
            let image = self
                .cells
                .get(i)
                .and_then(|c| c.image(state, handled, on_the_way));
            images.extend(image.map(|image| (actor, image)));
        }
        Ok(())
    }

    pub(super) fn index(&self, actor: ActorId) -> u32 {
        actor.0.wrapping_sub(self.group.first.0)
    }
}
