//! Messages from actors to the host, as users get them. Must not know engines.

use std::sync::Arc;

use super::arena::{Arena, Lease};
use crate::error::{ActorError, Result};
use crate::message::{ActorId, Packet, RingMessage};
use crate::vectors::{BlockReader, Message};

/// A message that an actor has sent to the host, with its vectors, where it has some: they are freed when the last of its clones and
/// of what was got out of it is dropped.
#[derive(Clone)]
pub struct Received {
    packet: Packet,
    brought: Brought,
}

/// The block that came with a message.
#[doc(hidden)]
#[derive(Clone, Default)]
pub struct Brought(Option<Arc<Lease>>);

impl Brought {
    fn reader(&self) -> BlockReader<'_> {
        BlockReader::new(self.0.as_ref().map_or(&[], |lease| lease.data()))
    }
}

impl Received {
    /// Takes the block of the packet, where it brings one.
    #[inline]
    pub(super) fn new(packet: Packet, arena: &Arc<Arena>) -> Received {
        let brought = Brought(arena.claim(&packet).map(Arc::new));
        Received { packet, brought }
    }

    /// The packet as it was, its block with it.
    pub(super) fn into_packet(self) -> Packet {
        if let Some(lease) = self.brought.0.and_then(Arc::into_inner) {
            lease.keep();
        }
        self.packet
    }

    /// Who sent it.
    pub fn sender(&self) -> ActorId {
        self.packet.header.sender
    }

    /// Its type ([`RingMessage::TYPE_ID`]).
    pub fn type_id(&self) -> u32 {
        self.packet.header.type_id
    }

    /// As it travelled.
    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    /// The message: owned, or where it lies ([`Borrowed`]).
    ///
    /// # Errors
    /// [`ActorError::WrongReply`] where it is of another type; [`ActorError::NoVectors`] where its vectors are not there.
    pub fn get<M: Receive>(&self) -> Result<M> {
        self.open(|| self.sender().to_string())
    }

    pub(super) fn open<M: Receive>(&self, actor: impl FnOnce() -> String) -> Result<M> {
        let (found, expected) = (self.type_id(), M::NAME);
        if found != M::TYPE_ID {
            let actor = actor();
            return Err(ActorError::WrongReply {
                actor,
                found,
                expected,
            });
        }
        M::open(&self.packet, &self.brought).ok_or_else(|| ActorError::NoVectors {
            actor: actor(),
            message: expected,
        })
    }
}

impl std::fmt::Debug for Received {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Received").field("packet", &self.packet).finish()
    }
}

impl PartialEq for Received {
    fn eq(&self, other: &Received) -> bool {
        self.packet == other.packet
    }
}

/// What can be got out of an answer: a [`Message`], its vectors copied once, or a [`Borrowed`] one, which copies nothing.
pub trait Receive: Sized {
    /// The message's type.
    const TYPE_ID: u32;
    /// The message's name.
    const NAME: &'static str;

    /// The message; `None` where its vectors are not there.
    #[doc(hidden)]
    fn open(packet: &Packet, brought: &Brought) -> Option<Self>;
}

impl<M: Message> Receive for M {
    const TYPE_ID: u32 = <M::View as RingMessage>::TYPE_ID;
    const NAME: &'static str = <M::View as RingMessage>::NAME;

    fn open(packet: &Packet, brought: &Brought) -> Option<M> {
        M::load(&M::View::from_payload(&packet.payload), brought.reader())
    }
}

impl<M: Message> Receive for Borrowed<M> {
    const TYPE_ID: u32 = <M::View as RingMessage>::TYPE_ID;
    const NAME: &'static str = <M::View as RingMessage>::NAME;

    fn open(packet: &Packet, brought: &Brought) -> Option<Borrowed<M>> {
        let view = M::View::from_payload(&packet.payload);
        M::borrow(&view, brought.reader())?;
        Some(Borrowed {
            view,
            brought: brought.clone(),
        })
    }
}

/// A message where it lies: its vectors are slices of the memory in which it came. That is freed when this is dropped.
pub struct Borrowed<M: Message> {
    view: M::View,
    brought: Brought,
}

impl<M: Message> Borrowed<M> {
    /// The message; its vectors are slices.
    ///
    /// # Errors
    /// None in practice: the vectors were there when it was received, and stay. [`ActorError::NoVectors`] otherwise.
    pub fn get(&self) -> Result<M::Ref<'_>> {
        M::borrow(&self.view, self.brought.reader()).ok_or_else(Self::missing)
    }

    /// The message as handlers see it: its vectors are spans.
    pub fn view(&self) -> &M::View {
        &self.view
    }

    /// The message, its vectors copied.
    ///
    /// # Errors
    /// As [`Borrowed::get`].
    pub fn into_owned(self) -> Result<M> {
        M::load(&self.view, self.brought.reader()).ok_or_else(Self::missing)
    }

    fn missing() -> ActorError {
        ActorError::NoVectors {
            actor: "an actor".into(),
            message: <M::View as RingMessage>::NAME,
        }
    }
}
