//! What an actor sends to the host without being asked, one message after the other. Must not know handles, nor engines by their type.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::core::Core;
use super::output::Received;
use super::outputs::Output;
use crate::lifecycle::ActorState;
use crate::message::ActorId;

/// All that an actor sends to the host without being asked.
pub struct OutputStream {
    core: Arc<Core>,
    actor: ActorId,
}

impl OutputStream {
    pub(super) fn new(core: &Arc<Core>, actor: ActorId) -> OutputStream {
        OutputStream {
            core: Arc::clone(core),
            actor,
        }
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        match self.core.host.outputs(self.actor).poll(Some(cx.waker())) {
            Output::Empty if self.core.life(self.actor) == ActorState::Terminated => Poll::Ready(None),
            Output::Empty => {
                self.core.step_for(cx.waker());
                Poll::Pending
            }
            other => Poll::Ready(self.core.received(self.actor, other)),
        }
    }
}

impl Stream for OutputStream {
    type Item = Received;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        self.poll(cx)
    }
}

impl Core {
    /// What came out of an actor's queue; an actor that waited for room there goes on.
    pub(super) fn received(&self, actor: ActorId, output: Output) -> Option<Received> {
        let Output::Packet(packet, waits) = output else {
            return None;
        };
        if waits {
            self.engine.resume(actor);
        }
        Some(Received::new(packet, &self.host.arena))
    }
}
