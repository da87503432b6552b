//! What a handler sees of the world: the same plain struct on every backend. What it sends is written to an outbox inside it,
//! which whoever runs the handler empties afterwards. Must not know backends.

use perpetua::prelude::*;

use crate::message::PAYLOAD_WORDS;

/// Packets that one run of a handler can send, its reply included.
pub const OUTBOX: usize = 8;
/// Words of an entry: destination, type, correlation, flags (kind, priority, words as in a header), payload.
pub const ENTRY_WORDS: usize = 4 + PAYLOAD_WORDS;
/// Words of the outbox.
pub const OUTBOX_WORDS: usize = OUTBOX * ENTRY_WORDS;

/// A handler's view: who it is, whose message it handles and when, and what it sends.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
pub struct Context {
    actor: u32,
    sender: u32,
    correlation: u32,
    thread: u32,
    threads: u32,
    entries: u32,
    refused: u32,
    now_low: u32,
    now_high: u32,
    outbox: [u32; OUTBOX_WORDS],
}

#[device]
impl Context {
    /// A context for the actor `actor`, of which `threads` lanes run the handler.
    #[must_use]
    pub fn new(actor: u32, thread: u32, threads: u32) -> Context {
        Context {
            actor,
            sender: 0,
            correlation: 0,
            thread,
            threads,
            entries: 0,
            refused: 0,
            now_low: 0,
            now_high: 0,
            outbox: [0; OUTBOX_WORDS],
        }
    }

    /// Makes it ready for the next message, and its outbox empty. The time is that of [`Context::now`], in two halves: some
    /// devices have no 64-bit integers.
    pub fn begin(&mut self, actor: u32, sender: u32, correlation: u32, now_low: u32, now_high: u32) {
        self.actor = actor;
        self.sender = sender;
        self.correlation = correlation;
        self.now_low = now_low;
        self.now_high = now_high;
        self.entries = 0;
        self.refused = 0;
    }

    /// This actor's number.
    #[must_use]
    pub fn actor(&self) -> u32 {
        self.actor
    }

    /// Who sent the message: an actor's number, `u32::MAX` for the host.
    #[must_use]
    pub fn sender(&self) -> u32 {
        self.sender
    }

    /// When the handler began, by the hybrid logical clock of where it runs: microseconds since 1970 in the upper 52 bits, a
    /// counter in the lower 12. Later than when the message was sent.
    #[must_use]
    pub fn now(&self) -> u64 {
        u64::from(self.now_low) | (u64::from(self.now_high) << 32)
    }

    /// The lane's index in the group that runs the handler.
    #[must_use]
    pub fn thread_index(&self) -> u32 {
        self.thread
    }

    /// Number of lanes that run the handler together.
    #[must_use]
    pub fn group_size(&self) -> u32 {
        self.threads
    }

    /// Packets in the outbox.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Packets that found the outbox full since [`Context::begin`].
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.refused
    }

    /// Word `word` of entry `entry` of the outbox.
    #[must_use]
    pub fn outbox_word(&self, entry: u32, word: u32) -> u32 {
        self.outbox[entry as usize * ENTRY_WORDS + word as usize]
    }

    /// Puts a packet into the outbox; false where it is full. `flags`: the kind, and the number of words from bit 16 on.
    #[allow(clippy::needless_range_loop, reason = "kernels have no iterators")]
    pub fn put(&mut self, destination: u32, type_id: u32, flags: u32, payload: [u32; PAYLOAD_WORDS]) -> bool {
        if self.entries >= OUTBOX as u32 {
            self.refused += 1;
            return false;
        }
        let at = self.entries as usize * ENTRY_WORDS;
        self.outbox[at] = destination;
        self.outbox[at + 1] = type_id;
        self.outbox[at + 2] = if (flags & 255) == 2 { self.correlation } else { 0 };
        self.outbox[at + 3] = flags;
        for i in 0..PAYLOAD_WORDS {
            self.outbox[at + 4 + i] = payload[i];
        }
        self.entries += 1;
        true
    }

    /// Sends to an actor. Handlers write `ctx.send(actor, message)`, which becomes this.
    pub fn send_words(
        &mut self,
        actor: u32,
        type_id: u32,
        words: u32,
        payload: [u32; PAYLOAD_WORDS],
    ) -> bool {
        self.put(actor, type_id, words << 16, payload)
    }

    /// Replies to the sender, once more. Handlers write `ctx.reply(message)`.
    pub fn reply_words(&mut self, type_id: u32, words: u32, payload: [u32; PAYLOAD_WORDS]) -> bool {
        let to = self.sender;
        self.put(to, type_id, 2 | (words << 16), payload)
    }

    /// Publishes to the topic number `topic`. Handlers write `ctx.publish(topic, message)`.
    pub fn publish_words(
        &mut self,
        topic: u32,
        type_id: u32,
        words: u32,
        payload: [u32; PAYLOAD_WORDS],
    ) -> bool {
        self.put(topic, type_id, 3 | (words << 16), payload)
    }
}
