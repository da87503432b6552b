//! What a handler sees of its message's vectors: spans of the one block that came with the message, and the block itself. The same
//! plain structs on every backend. Must not know where the block lies, nor who owns it when the handler has run.
//!
//! A block begins with [`HEAD_WORDS`] words: how many words it has behind them, how many of these are in use, 1 until a device has
//! no more use for it, and its generation. Spans count from behind the head, so a block may lie anywhere.
//!
//! The three types of spans are alike and stand here in full: programs that print handlers read this file, and expand no macros.

use perpetua::prelude::*;

use super::context::{Answer, Context};
use super::message::PAYLOAD_WORDS;

/// Words of a block's head.
pub const HEAD_WORDS: usize = 4;
/// Which word of the head says that a device is at it still.
pub const HEAD_LENT: usize = 2;
/// In a header's number of words: a block comes with the message.
pub const BLOCK_FLAG: u32 = 128;
/// The payload's word that tells the block's generation, where one comes with the message; the next tells where it lies.
pub const BLOCK_WORD: usize = PAYLOAD_WORDS - 2;
/// The kind of a packet to a topic.
const PUBLISH: u32 = 3;
/// The kind of a reply.
const REPLY: u32 = 2;

/// The block that came with a message, where one did.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
pub struct Block {
    // Of the words behind the head; 0 where there is no block.
    first: u32,
    limit: u32,
    used: u32,
    // In use when the message came.
    came: u32,
    // A message has taken it along.
    given: u32,
    generation: u32,
    at: u32,
}

#[device]
impl Block {
    /// The block at `at` of this memory, if the header's flags say that there is one.
    #[must_use]
    pub fn of(arena: &mut [u32], flags: u32, generation: u32, at: u32) -> Block {
        let mut block = Block {
            first: 0,
            limit: 0,
            used: 0,
            came: 0,
            given: 0,
            generation,
            at,
        };
        if (flags & (BLOCK_FLAG << 16)) != 0 {
            block.first = at + 4;
            block.limit = arena[at as usize];
            block.used = arena[at as usize + 1];
            block.came = block.used;
        }
        block
    }

    /// Whether there is one that no message has taken along.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.first != 0 && self.given == 0
    }

    /// The handler has faulted: the message that took the block along is not sent, and the words that the handler took are free and
    /// zeros again.
    pub fn take_back(&mut self, arena: &mut [u32]) {
        self.given = 0;
        if self.first != 0 {
            // Another lane of a group may have taken them.
            let taken = arena[self.first as usize - 3].min(self.limit);
            for word in self.came..taken {
                arena[(self.first + word) as usize] = 0;
            }
            self.used = self.came;
            arena[self.first as usize - 3] = self.came;
        }
    }

    /// Whether a message has taken it along.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.given != 0
    }

    /// Words that are free.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.limit - self.used
    }

    /// Where element `i` of a span lies in the memory. A fault where the span has none, or lies outside this block.
    #[must_use]
    pub fn position(&self, offset: u32, len: u32, i: u32) -> usize {
        check_index(i, len);
        let within = offset.wrapping_add(i);
        check_index(within, self.limit);
        self.first as usize + within as usize
    }

    /// Takes so many free words, zeros; gives where they begin, or `u32::MAX` where fewer are free.
    pub fn alloc(&mut self, arena: &mut [u32], len: u32) -> u32 {
        let mut offset = u32::MAX;
        if len <= self.limit - self.used && len != 0 {
            offset = self.used;
            self.used += len;
            arena[self.first as usize - 3] = self.used;
        }
        offset
    }

    /// Sends a message that has `spans` spans: then the block goes with it, and false where another has taken it along already, or
    /// where it is for a topic.
    #[allow(
        clippy::too_many_arguments,
        reason = "handlers write `ctx.send(to, message)`, which becomes this"
    )]
    pub fn post(
        &mut self,
        ctx: &mut Context,
        to: u32,
        kind: u32,
        type_id: u32,
        words: u32,
        spans: u32,
        payload: [u32; PAYLOAD_WORDS],
    ) -> bool {
        let mut payload = payload;
        let mut words = words;
        if spans != 0 && self.first != 0 {
            if self.given != 0 || kind == PUBLISH {
                ctx.refuse();
                return false;
            }
            words |= BLOCK_FLAG;
            payload[14] = self.generation;
            payload[15] = self.at;
        }
        let sent = ctx.put(to, type_id, kind | (words << 16), payload);
        if sent && (words & BLOCK_FLAG) != 0 {
            self.given = 1;
        }
        sent
    }

    /// Replies to the sender, as [`Block::post`].
    pub fn reply(
        &mut self,
        ctx: &mut Context,
        type_id: u32,
        words: u32,
        spans: u32,
        payload: [u32; PAYLOAD_WORDS],
    ) -> bool {
        let to = ctx.sender();
        self.post(ctx, to, REPLY, type_id, words, spans, payload)
    }

    /// What the handler gave back. If it has spans, the block goes with it, unless another message has taken the block along: then
    /// the caller is told that the vectors are not there.
    #[must_use]
    pub fn answer(&mut self, type_id: u32, words: u32, spans: u32, payload: [u32; PAYLOAD_WORDS]) -> Answer {
        let mut payload = payload;
        let mut words = words;
        if spans != 0 && self.first != 0 && self.given == 0 {
            words |= BLOCK_FLAG;
            payload[14] = self.generation;
            payload[15] = self.at;
            self.given = 1;
        }
        Answer::of(type_id, words, payload)
    }
}

/// A vector of `f32` in its message's block.
///
/// `ctx.get(span, i)` and `ctx.set(span, i, value)` reach its elements; an index that it does not have is a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
pub struct SpanF32 {
    offset: u32,
    len: u32,
}

impl SpanF32 {
    /// A span of a block: where it begins behind the head, and how many elements it has. What lies outside the message's block
    /// cannot be reached with it.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(offset: u32, len: u32) -> SpanF32 {
        SpanF32 { offset, len }
    }

    /// Where it begins, and how many elements it has.
    #[doc(hidden)]
    #[must_use]
    pub const fn parts(self) -> (u32, u32) {
        (self.offset, self.len)
    }
}

#[device]
impl SpanF32 {
    /// How many elements it has.
    #[must_use]
    pub fn len(self) -> u32 {
        self.len
    }

    /// Whether it has none: so is what `ctx.alloc` gives where there is no room.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_offset(of: SpanF32) -> u32 {
        of.offset
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_len(of: SpanF32) -> u32 {
        of.len
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_of(offset: u32, len: u32) -> SpanF32 {
        SpanF32 { offset, len }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_alloc(arena: &mut [u32], block: &mut Block, len: u32) -> SpanF32 {
        let offset = block.alloc(arena, len);
        SpanF32 {
            offset,
            len: if offset == u32::MAX { 0 } else { len },
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_get(self, arena: &mut [u32], block: &mut Block, i: u32) -> f32 {
        let bits = arena[block.position(self.offset, self.len, i)];
        f32::from_bits(bits)
    }

    #[doc(hidden)]
    pub fn __perpetua_set(self, arena: &mut [u32], block: &mut Block, i: u32, value: f32) {
        let at = block.position(self.offset, self.len, i);
        arena[at] = value.to_bits();
    }
}

/// A vector of `u32` in its message's block.
///
/// `ctx.get(span, i)` and `ctx.set(span, i, value)` reach its elements; an index that it does not have is a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
pub struct SpanU32 {
    offset: u32,
    len: u32,
}

impl SpanU32 {
    /// A span of a block: where it begins behind the head, and how many elements it has. What lies outside the message's block
    /// cannot be reached with it.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(offset: u32, len: u32) -> SpanU32 {
        SpanU32 { offset, len }
    }

    /// Where it begins, and how many elements it has.
    #[doc(hidden)]
    #[must_use]
    pub const fn parts(self) -> (u32, u32) {
        (self.offset, self.len)
    }
}

#[device]
impl SpanU32 {
    /// How many elements it has.
    #[must_use]
    pub fn len(self) -> u32 {
        self.len
    }

    /// Whether it has none: so is what `ctx.alloc` gives where there is no room.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_offset(of: SpanU32) -> u32 {
        of.offset
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_len(of: SpanU32) -> u32 {
        of.len
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_of(offset: u32, len: u32) -> SpanU32 {
        SpanU32 { offset, len }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_alloc(arena: &mut [u32], block: &mut Block, len: u32) -> SpanU32 {
        let offset = block.alloc(arena, len);
        SpanU32 {
            offset,
            len: if offset == u32::MAX { 0 } else { len },
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_get(self, arena: &mut [u32], block: &mut Block, i: u32) -> u32 {
        arena[block.position(self.offset, self.len, i)]
    }

    #[doc(hidden)]
    pub fn __perpetua_set(self, arena: &mut [u32], block: &mut Block, i: u32, value: u32) {
        let at = block.position(self.offset, self.len, i);
        arena[at] = value;
    }
}

/// A vector of `i32` in its message's block.
///
/// `ctx.get(span, i)` and `ctx.set(span, i, value)` reach its elements; an index that it does not have is a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
pub struct SpanI32 {
    offset: u32,
    len: u32,
}

impl SpanI32 {
    /// A span of a block: where it begins behind the head, and how many elements it has. What lies outside the message's block
    /// cannot be reached with it.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(offset: u32, len: u32) -> SpanI32 {
        SpanI32 { offset, len }
    }

    /// Where it begins, and how many elements it has.
    #[doc(hidden)]
    #[must_use]
    pub const fn parts(self) -> (u32, u32) {
        (self.offset, self.len)
    }
}

#[device]
impl SpanI32 {
    /// How many elements it has.
    #[must_use]
    pub fn len(self) -> u32 {
        self.len
    }

    /// Whether it has none: so is what `ctx.alloc` gives where there is no room.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_offset(of: SpanI32) -> u32 {
        of.offset
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_len(of: SpanI32) -> u32 {
        of.len
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_of(offset: u32, len: u32) -> SpanI32 {
        SpanI32 { offset, len }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_alloc(arena: &mut [u32], block: &mut Block, len: u32) -> SpanI32 {
        let offset = block.alloc(arena, len);
        SpanI32 {
            offset,
            len: if offset == u32::MAX { 0 } else { len },
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn __perpetua_get(self, arena: &mut [u32], block: &mut Block, i: u32) -> i32 {
        let bits = arena[block.position(self.offset, self.len, i)];
        bits as i32
    }

    #[doc(hidden)]
    pub fn __perpetua_set(self, arena: &mut [u32], block: &mut Block, i: u32, value: i32) {
        let at = block.position(self.offset, self.len, i);
        arena[at] = value as u32;
    }
}
