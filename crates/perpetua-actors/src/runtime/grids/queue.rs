//! What waits on the host's side of a home until its ring has room. Must not know rings.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use crate::message::{Kind, PACKET_WORDS};

/// What waits on the host's side of a home.
#[derive(Default)]
pub(super) struct Home {
    pub(super) queue: Mutex<Queue>,
    /// It has given no sign of life for too long.
    pub(super) silent: AtomicBool,
}

/// Its packets.
#[derive(Default)]
pub(super) struct Queue {
    /// Packets that the ring has had no room for, each with its number of all that the home was sent: those of higher priority first, but none past a command.
    pub(super) waiting: BTreeMap<Turn, (u64, [u32; PACKET_WORDS])>,
    /// Commands that have waited.
    commands: u64,
    /// Packets that have waited.
    waited: u64,
    /// Packets that the home was ever sent, with those that wait.
    pub(super) sent: u64,
    /// Numbers and actors of the packets that are in the ring, in order; for commands no actor.
    pub(super) inside: VecDeque<(u64, Option<u32>)>,
    /// Packets that the home had taken in when `inside` was last looked at.
    pub(super) taken: u32,
}

/// When a packet that waits is to go: commands before it, its priority, packets before it.
pub(super) type Turn = (u64, Reverse<u8>, u64);

impl Home {
    /// Of a home that has taken in so many packets, of others' before.
    pub(super) fn new(taken: u32) -> Home {
        let queue = Queue {
            taken,
            ..Queue::default()
        };
        Home {
            queue: Mutex::new(queue),
            ..Home::default()
        }
    }
}

impl Queue {
    /// Puts a packet where its turn is.
    pub(super) fn wait(&mut self, number: u64, words: [u32; PACKET_WORDS]) {
        self.waited += 1;
        let turn = |commands, priority| (commands, Reverse(priority), self.waited);
        let turn = if is_command(&words) {
            self.commands += 2;
            turn(self.commands - 1, 0)
        } else {
            turn(self.commands, (words[6] >> 8) as u8)
        };
        self.waiting.insert(turn, (number, words));
    }

    /// Whether a command, or something for an actor, is still on its way of what the home was sent up to this number. (Others may be: those of higher priority pass.)
    pub(super) fn has_on_its_way(&self, actor: u32, number: u64) -> bool {
        let waiting = self.waiting.values();
        let waiting = waiting.map(|(number, words)| (*number, (!is_command(words)).then_some(words[0])));
        let mut all = waiting.chain(self.inside.iter().copied());
        all.any(|(sent, whom)| sent <= number && whom.is_none_or(|whom| whom == actor))
    }
}

/// Whether the packet is a command.
pub(super) fn is_command(words: &[u32; PACKET_WORDS]) -> bool {
    words[6] & 0xff == Kind::Command as u32
}
