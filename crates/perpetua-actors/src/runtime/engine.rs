//! The contract of whatever runs actors: threads of the CPU, a resident grid, batches. Must not know any of them.
//!
//! An engine owns the actors' states, mailboxes and life cycles. It calls back through [`Host`](super::host::Host) when
//! a packet is for the host or for a topic, when one cannot be delivered, and when a handler faulted. Its methods return at
//! once unless they say otherwise; whoever must wait polls [`Engine::settled`] and [`Engine::idle`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use perpetua_device::{BackendKind, Device};

use super::group::Group;
use crate::error::Result;
use crate::lifecycle::ActorState;
use crate::message::{ActorId, Packet};
use crate::telemetry::ActorMetrics;

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No room; later there may be.
    Full,
    /// The actor is terminated, or never was.
    Gone,
}

/// An actor as a checkpoint holds it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ActorImage {
    pub(crate) life: ActorState,
    pub(crate) state: Vec<u8>,
    /// Messages that wait to be handled, first to be handled first.
    pub(crate) mailbox: Vec<Packet>,
    /// What its handler has sent and what has found no room yet.
    pub(crate) unsent: Vec<Packet>,
    pub(crate) processed: u64,
    pub(crate) errors: u64,
}

/// Actors stand still, between two messages, mailboxes take nothing, and what is unsent stays with its sender, until this is dropped.
pub(crate) trait Frozen {
    /// Takes out what has left the actors and is still on its way through the engine; says whether there was some. Asked until no engine has any, then the
    /// actors are as they will be read.
    fn drain(&self) -> bool {
        false
    }

    /// Reads the actors; before it, [`Frozen::image`] knows none.
    fn look(&mut self) -> Result<()> {
        Ok(())
    }

    /// The actor as it stands; `None` where it is gone.
    fn image(&self, actor: ActorId) -> Option<ActorImage>;
}

/// An error where the device is lost. Reports no fault.
pub(crate) fn look_after(device: &Device) -> Result<()> {
    device.default_stream().record()?.is_complete()?;
    Ok(())
}

/// Delivers a packet, and gives back what then has no room.
pub(crate) type Deliver<'a> = &'a mut dyn FnMut(&Packet) -> std::result::Result<Option<Packet>, Refusal>;

/// What runs actors.
pub(crate) trait Engine: Send + Sync {
    /// On what.
    fn kind(&self) -> BackendKind;

    /// An error where the device that actors run on is lost. May wait for a handler that runs.
    fn health(&self) -> Result<()> {
        Ok(())
    }

    /// Whether handlers stay where they run and wait for messages there.
    fn stays(&self) -> bool;

    /// Makes the actors of a group, in [`ActorState::Launched`].
    fn launch(&self, group: &Arc<Group>) -> Result<()>;

    /// Puts a packet into its destination's mailbox. Waits while frozen.
    fn submit(&self, packet: &Packet) -> std::result::Result<(), Refusal>;

    /// As [`Engine::submit`], but does not wait: while frozen there is no room. Gives a mark that [`Engine::has_taken_in`] asks for.
    fn offer(&self, packet: &Packet) -> std::result::Result<u64, Refusal>;

    /// Whether what was offered to this actor with this mark comes before all that reaches it without the host from now on.
    fn has_taken_in(&self, _actor: ActorId, _mark: u64) -> bool {
        true
    }

    /// Delivers a packet that came back, whose sender lives here: behind what the sender has sent before, where that waits. What `deliver` gives back for want of
    /// room waits with the sender; where that is gone, or cannot be held, it is given back.
    fn returned(
        &self,
        packet: &Packet,
        deliver: Deliver<'_>,
    ) -> std::result::Result<Option<Packet>, Refusal> {
        deliver(packet)
    }

    /// As [`Engine::submit`], by somebody who will wait until `answered`: where it pays, the engine runs the actor on the
    /// calling thread.
    fn ask(&self, packet: &Packet, answered: &AtomicBool) -> std::result::Result<(), Refusal>;

    /// Lends the calling thread, which waits until `answered`, to this actor, if nobody runs it.
    fn help(&self, actor: ActorId, answered: &AtomicBool);

    /// Where in its life an actor is; `None` where it is gone.
    fn life(&self, actor: ActorId) -> Option<ActorState>;

    /// Moves an actor on in its life; the error names an illegal move. A handler that runs meanwhile runs on. May wait while frozen.
    fn transition(&self, actor: ActorId, to: ActorState) -> Result<()>;

    /// Waits until whatever hosts these actors knows where they are in their lives: from then on nothing that others send them comes back because they are not active
    /// yet.
    fn await_lives(&self, _actors: &mut dyn Iterator<Item = ActorId>) {}

    /// Whether no handler of this actor runs.
    fn settled(&self, actor: ActorId) -> bool;

    /// Takes a terminated actor away, once it is settled, and gives back what it has not handled.
    fn remove(&self, actor: ActorId) -> Vec<Packet>;

    /// Gives a faulted actor this state. Waits for a handler that runs.
    fn write_state(&self, actor: ActorId, state: &[u8]) -> Result<()>;

    /// The state's bytes. Waits for a handler that runs.
    fn read_state(&self, actor: ActorId) -> Result<Vec<u8>>;

    /// Makes the launched actors of a group what their images say, but for their lives: they stay launched until [`Engine::revive`].
    /// Nothing may have been sent to them.
    fn restore(&self, group: &Group, images: &BTreeMap<ActorId, ActorImage>) -> Result<()>;

    /// Lets a restored actor go on where its image says.
    fn revive(&self, actor: ActorId, life: ActorState);

    /// Figures, read without stopping the actor; latencies may be left out where the group has them
    /// ([`Group::shares_latencies`]).
    fn metrics(&self, actor: ActorId) -> Option<ActorMetrics>;

    /// Those of all actors of a group together, where it pays read at once.
    fn metrics_of(&self, group: &Group) -> ActorMetrics {
        let mut all = ActorMetrics::default();
        for mut one in group.actors().filter_map(|actor| self.metrics(actor)) {
            if group.shares_latencies() && all.latency.count() > 0 {
                one.latency = Default::default();
            }
            all.merge(&one);
        }
        all
    }

    /// Counts a message to this actor that ends before it reaches it.
    fn count_dropped(&self, actor: ActorId);

    /// Since when whatever hosts this actor has given no sign of life, where that is known: it gives one every few milliseconds unless
    /// a handler runs.
    fn silence(&self, _actor: ActorId) -> Option<std::time::Duration> {
        None
    }

    /// There is room again for what this actor could not deliver.
    fn resume(&self, actor: ActorId);

    /// Whether this actor handles nothing because what it has sent finds no room.
    fn is_held(&self, actor: ActorId) -> bool;

    /// What this actor has not been able to deliver for long is undeliverable.
    fn give_up(&self, actor: ActorId);

    /// Ends handlers that have run for longer than their actors' limit: they are faulted. When to look again, if ever.
    fn enforce_limits(&self) -> Option<std::time::Duration>;

    /// Whether nothing waits for an active actor and no handler runs.
    fn idle(&self) -> bool;

    /// How many handlers have run, if nothing waits as far as one look tells; where another engine's actors send to these without the host, both are looked at
    /// twice.
    fn handled_if_idle(&self) -> Option<u64> {
        self.idle().then_some(0)
    }

    /// Whether its devices' actors reach each other without the host.
    fn reaches_peers(&self) -> bool {
        false
    }

    /// Packets that went from device to device through the host.
    fn through_host(&self) -> u64 {
        0
    }

    /// What its grids share, where it has such.
    #[cfg(target_arch = "x86_64")]
    fn commons(&self) -> Option<&Arc<crate::grid::Commons>> {
        None
    }

    /// Runs an actor that has asked for its turn ([`Simulator::queue`](super::simulation::Simulator::queue)), for at most so many messages.
    fn run(&self, _actor: ActorId, _most: u32) {}

    /// Stops all actors between two messages. Waits for handlers that run.
    fn freeze(&self) -> Result<Box<dyn Frozen + '_>>;

    /// Ends all threads or grids; nothing is handled any more. Waits for them.
    fn stop(&self);
}
