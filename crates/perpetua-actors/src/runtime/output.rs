//! Messages from actors to the host, as users get them. Must not know engines.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::handle::KernelHandle;
use crate::error::{ActorError, Result};
use crate::message::{ActorId, Packet, RingMessage};

/// A message that an actor has sent to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    packet: Packet,
}

impl Received {
    pub(super) fn new(packet: Packet) -> Received {
        Received { packet }
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

    /// The message.
    ///
    /// # Errors
    /// [`ActorError::WrongReply`] where it is of another type.
    pub fn get<M: RingMessage>(&self) -> Result<M> {
        if self.type_id() == M::TYPE_ID {
            return Ok(M::from_payload(&self.packet.payload));
        }
        Err(ActorError::WrongReply {
            actor: self.sender().to_string(),
            found: self.type_id(),
            expected: M::NAME,
        })
    }
}

/// All that an actor sends to the host without being asked.
pub struct OutputStream {
    handle: KernelHandle,
}

impl OutputStream {
    pub(super) fn new(handle: KernelHandle) -> OutputStream {
        OutputStream { handle }
    }
}

impl Stream for OutputStream {
    type Item = Received;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        self.handle.poll_output(cx)
    }
}
