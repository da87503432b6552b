//! What a handler sees of the world: the same plain struct on every backend. What it sends is written to an outbox inside it,
//! which whoever runs the handler empties afterwards. Must not know backends.

use perpetua::kernel::atomic::{Ordering, Scope};
use perpetua::prelude::*;

use super::message::PAYLOAD_WORDS;

/// Packets that one run of a handler can send beside its answer.
pub const OUTBOX: usize = 8;
/// Lanes of a group, at most: those of a subgroup.
pub const GROUP_LANES: usize = 32;
/// Words of an entry: destination, type, correlation, flags (kind, priority, words as in a header), payload.
pub const ENTRY_WORDS: usize = 4 + PAYLOAD_WORDS;
/// Says of an entry of the outbox, in the place of its priority, that it is what the handler gave back.
pub const IS_ANSWER: u32 = 1 << 8;
/// Words of the outbox, which has a place for the answer, too.
pub const OUTBOX_WORDS: usize = (OUTBOX + 1) * ENTRY_WORDS;

/// What a handler gave back.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
pub struct Answer {
    /// 1 if the handler takes messages of this type: it has run.
    pub known: u32,
    /// The answer's type.
    pub type_id: u32,
    /// Kind and number of words, as in a header; 0 where there is no answer.
    pub flags: u32,
    /// The answer's words.
    pub payload: [u32; PAYLOAD_WORDS],
}

#[device]
impl Answer {
    /// Nothing has run.
    #[must_use]
    pub fn none() -> Answer {
        Answer {
            known: 0,
            type_id: 0,
            flags: 0,
            payload: [0; PAYLOAD_WORDS],
        }
    }

    /// The handler has run, and gave nothing back.
    #[must_use]
    pub fn nothing() -> Answer {
        Answer {
            known: 1,
            type_id: 0,
            flags: 0,
            payload: [0; PAYLOAD_WORDS],
        }
    }

    /// As an entry, to who asked.
    #[must_use]
    pub fn entry(&self, destination: u32, correlation: u32) -> Entry {
        Entry {
            destination,
            type_id: self.type_id,
            correlation,
            flags: self.flags,
            payload: self.payload,
        }
    }

    /// The handler gave back a message of this type.
    #[must_use]
    pub fn of(type_id: u32, words: u32, payload: [u32; PAYLOAD_WORDS]) -> Answer {
        Answer {
            known: 1,
            type_id,
            flags: 2 | (words << 16),
            payload,
        }
    }
}

/// A packet that a handler sends, its answer included.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
pub struct Entry {
    /// An actor's number, `u32::MAX` for the host; a topic's number where it publishes.
    pub destination: u32,
    /// Its type.
    pub type_id: u32,
    /// The asker's number for what it answers, else 0.
    pub correlation: u32,
    /// Kind, priority and number of words, as in a header.
    pub flags: u32,
    /// Its words.
    pub payload: [u32; PAYLOAD_WORDS],
}

#[device]
impl Entry {
    /// Its words in a row: destination, type, correlation, flags, payload.
    #[must_use]
    pub fn word(&self, word: u32) -> u32 {
        match word {
            0 => self.destination,
            1 => self.type_id,
            2 => self.correlation,
            3 => self.flags,
            _ => self.payload[word as usize - 4],
        }
    }
}

/// A handler's view: who it is, whose message it handles and when, and what it sends.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
pub struct Context {
    // The entries behind the first one. In the first place, for they are 16 bytes by 16 then.
    outbox: [u32; OUTBOX * ENTRY_WORDS],
    // The first entry: most handlers send one, which then never leaves the registers of a device.
    first: Entry,
    actor: u32,
    sender: u32,
    correlation: u32,
    thread: u32,
    threads: u32,
    entries: u32,
    replies: u32,
    refused: u32,
    now_low: u32,
    now_high: u32,
    sent_low: u32,
    sent_high: u32,
    deliveries: u32,
}

#[device]
impl Context {
    /// A context for the actor `actor`, of which `threads` lanes run the handler.
    #[must_use]
    pub fn new(actor: u32, thread: u32, threads: u32) -> Context {
        Context {
            outbox: [0; OUTBOX * ENTRY_WORDS],
            first: Answer::none().entry(0, 0),
            actor,
            sender: 0,
            correlation: 0,
            thread,
            threads,
            entries: 0,
            replies: 0,
            refused: 0,
            now_low: 0,
            now_high: 0,
            sent_low: 0,
            sent_high: 0,
            deliveries: 0,
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
        self.replies = 0;
        self.refused = 0;
    }

    /// What the message's header says beside that: when it was sent, and its flags.
    pub fn of_message(&mut self, sent_low: u32, sent_high: u32, flags: u32) {
        self.sent_low = sent_low;
        self.sent_high = sent_high;
        self.deliveries = (flags >> 24) & 63;
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

    /// When the message was sent, by its sender's clock. It names the message together with [`Context::sender`], and is the same in each
    /// of its deliveries.
    #[must_use]
    pub fn sent(&self) -> u64 {
        u64::from(self.sent_low) | (u64::from(self.sent_high) << 32)
    }

    /// Which delivery of the message this is, from 1 on. Above 1 a handler may have run for it before: it faulted, or ran in a process
    /// that has ended since the checkpoint.
    #[must_use]
    pub fn delivery(&self) -> u32 {
        self.deliveries + 1
    }

    /// The lane's index in the group that runs the handler: 0 unless it is a `#[ring_kernel(group)]`.
    #[must_use]
    pub fn thread_index(&self) -> u32 {
        self.thread
    }

    /// Number of lanes that run the handler together.
    #[must_use]
    pub fn group_size(&self) -> u32 {
        self.threads
    }

    /// Waits until all lanes of the group have come here as often; each then sees what the others have written before. Handlers
    /// write `ctx.sync()`, which becomes this. A lane that has ended, by a fault or otherwise, is waited for by nobody; where
    /// lanes come here differently often, those that wait are faulted when the handler's time is over. `phases`: how often each
    /// lane has come, in the block's shared memory.
    pub fn sync_group(&mut self, phases: &mut [u32; GROUP_LANES]) {
        if self.threads > 1 {
            thread_fence_block();
            let own = self.thread as usize;
            let phase = atomic_load_explicit(&phases[own], Ordering::Relaxed, Scope::Block) + 1;
            atomic_store_explicit(&mut phases[own], phase, Ordering::Relaxed, Scope::Block);
            for lane in 0..self.threads {
                while atomic_load_explicit(&phases[lane as usize], Ordering::Relaxed, Scope::Block) < phase {}
            }
            thread_fence_block();
        }
    }

    /// Packets in the outbox.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Whether a reply to the sender is in the outbox.
    #[must_use]
    pub fn has_replied(&self) -> bool {
        self.replies != 0
    }

    /// Packets that found the outbox full since [`Context::begin`].
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.refused
    }

    /// Word `word` of entry `entry` of the outbox.
    #[must_use]
    pub fn outbox_word(&self, entry: u32, word: u32) -> u32 {
        if entry == 0 {
            self.first.word(word)
        } else {
            self.outbox[(entry as usize - 1) * ENTRY_WORDS + word as usize]
        }
    }

    /// Entry `entry` of the outbox.
    #[must_use]
    pub fn entry(&self, entry: u32) -> Entry {
        let mut found = self.first;
        if entry != 0 {
            let at = (entry as usize - 1) * ENTRY_WORDS;
            found = Entry {
                destination: self.outbox[at],
                type_id: self.outbox[at + 1],
                correlation: self.outbox[at + 2],
                flags: self.outbox[at + 3],
                payload: [
                    self.outbox[at + 4],
                    self.outbox[at + 5],
                    self.outbox[at + 6],
                    self.outbox[at + 7],
                    self.outbox[at + 8],
                    self.outbox[at + 9],
                    self.outbox[at + 10],
                    self.outbox[at + 11],
                    self.outbox[at + 12],
                    self.outbox[at + 13],
                    self.outbox[at + 14],
                    self.outbox[at + 15],
                    self.outbox[at + 16],
                    self.outbox[at + 17],
                    self.outbox[at + 18],
                    self.outbox[at + 19],
                ],
            };
        }
        found
    }

    /// Counts a packet that is not sent.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Puts a packet into the outbox; false where it is full. (Word by word: indices that are constants cost a device nothing.) `flags`: the kind, and the number of words from bit 16 on.
    pub fn put(&mut self, destination: u32, type_id: u32, flags: u32, payload: [u32; PAYLOAD_WORDS]) -> bool {
        if self.entries >= OUTBOX as u32 {
            self.refused += 1;
            return false;
        }
        self.enter(destination, type_id, flags, payload);
        true
    }

    // The last place is the answer's, which comes once, when the handler has returned.
    fn enter(&mut self, destination: u32, type_id: u32, flags: u32, payload: [u32; PAYLOAD_WORDS]) {
        let replies = (flags & 255) == 2;
        self.replies += replies as u32;
        let correlation = if replies { self.correlation } else { 0 };
        if self.entries == 0 {
            self.first = Entry {
                destination,
                type_id,
                correlation,
                flags,
                payload,
            };
        } else {
            let at = (self.entries as usize - 1) * ENTRY_WORDS;
            self.outbox[at] = destination;
            self.outbox[at + 1] = type_id;
            self.outbox[at + 2] = correlation;
            self.outbox[at + 3] = flags;
            self.outbox[at + 4] = payload[0];
            self.outbox[at + 5] = payload[1];
            self.outbox[at + 6] = payload[2];
            self.outbox[at + 7] = payload[3];
            self.outbox[at + 8] = payload[4];
            self.outbox[at + 9] = payload[5];
            self.outbox[at + 10] = payload[6];
            self.outbox[at + 11] = payload[7];
            self.outbox[at + 12] = payload[8];
            self.outbox[at + 13] = payload[9];
            self.outbox[at + 14] = payload[10];
            self.outbox[at + 15] = payload[11];
            self.outbox[at + 16] = payload[12];
            self.outbox[at + 17] = payload[13];
            self.outbox[at + 18] = payload[14];
            self.outbox[at + 19] = payload[15];
        }
        self.entries += 1;
    }

    /// Puts what the handler gave back into the outbox, last, which is to be delivered first; true if it has run.
    pub fn answer(&mut self, answer: Answer) -> bool {
        if answer.flags != 0 {
            let to = self.sender;
            self.enter(to, answer.type_id, answer.flags | IS_ANSWER, answer.payload);
        }
        answer.known != 0
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

    /// Replies to the sender, behind what the handler gives back, if it does. Handlers write `ctx.reply(message)`.
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
