//! Running an actor: message after message out of its mailbox, and where what its handler sends goes. Must not know threads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Shared;
use super::cell::{Cell, Inside, Running};
use super::faults;
use super::overrun::{Until, Vectors};
use crate::context::Context;
use crate::dead_letters::DeadReason;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::{ActorId, Header, Kind, Packet};
use crate::runtime::arena::Lease;
use crate::runtime::engine::Refusal;
use crate::runtime::mailbox::Push;
use crate::runtime::outbox;
use crate::runtime::simulation::Traced;
use crate::runtime::vitals::count;

/// Messages of one actor that are handled before others have their turn.
pub(super) const TURN: u32 = 64;

/// Why a run ends.
#[derive(PartialEq, Eq)]
enum End {
    /// There is nothing to do, or nothing that may be done.
    Rest,
    /// There is more, for another turn.
    More,
}

impl Shared {
    /// Runs the actor for a while. False: its handler took so long that the actor was taken away, and this thread is to end.
    pub(super) fn run(&self, mut running: Running, until: Until<'_>) -> bool {
        let cell = Arc::clone(running.cell());
        let mut context = Context::new(cell.id.0, 0, 1);
        let began = self.host.time.now();
        let most = match until {
            Until::Steps(most) => most,
            _ => TURN,
        };
        let mut handled = 0;
        let end = loop {
            if !self.flush(&cell, running.inside()) || cell.vitals.life() != ActorState::Active {
                break End::Rest;
            }
            if handled == most || matches!(until, Until::Answered(done) if done.load(Ordering::Acquire)) {
                break if cell.mailbox.len() > 0 {
                    End::More
                } else {
                    End::Rest
                };
            }
            let Some(packet) = cell.mailbox.pop() else {
                break End::Rest;
            };
            handled += 1;
            if !self.handle(&cell, running.inside(), &mut context, &packet, until) {
                // The cell belongs to nobody now: its bit stays set.
                return false;
            }
        };
        if handled > 0 {
            let each = self.host.time.since(began).as_nanos() / u128::from(handled);
            if cell.note_run_time(u32::try_from(each).unwrap_or(u32::MAX)) {
                lock(&self.paces).insert(cell.group.handler.name, cell.run_time());
            }
            self.wake_waiting(&cell);
        }
        self.end(running, end == End::More);
        true
    }

    /// Ends a run; queues the actor where there is more to do.
    pub(super) fn end(&self, running: Running, again: bool) {
        let cell = Arc::clone(running.cell());
        if running.end(again) {
            self.enqueue(cell);
        }
    }

    /// Lets those go on that waited for room in this actor's mailbox.
    pub(super) fn wake_waiting(&self, cell: &Cell) {
        for other in cell.take_waiting() {
            self.notify(&other);
        }
    }

    fn handle(
        &self,
        cell: &Arc<Cell>,
        inside: &mut Inside,
        context: &mut Context,
        packet: &Packet,
        until: Until<'_>,
    ) -> bool {
        let head = &packet.header;
        let stamp = self.host.now();
        let now = *stamp.as_ref().unwrap_or(&u64::MAX);
        if outbox::is_late(head, now) {
            cell.vitals.drop_some(1);
            self.host.undelivered(&cell.group, packet, DeadReason::Expired);
            return true;
        }
        let message = head.sent;
        self.host.note(cell.id, Traced::Begun { message });
        let before = inside.before(cell);
        let (low, high) = (now as u32, (now >> 32) as u32);
        context.begin(cell.id.0, head.sender.0, head.correlation, low, high);
        context.of_message(head.sent as u32, (head.sent >> 32) as u32, head.flags());
        let mut lease = self.host.arena.claim(packet);
        let used = lease.as_ref().map_or(0, |lease| lease.extent().1);
        let vectors = cell.group.run_limit.and(lease.as_ref()).map(Vectors::of);
        let block = lease.as_mut().map_or(&mut [][..], Lease::words_mut);
        let native = cell.group.handler.native;
        let state = inside.state.pointer();
        // SAFETY: the state was made for this handler, with its first state's bytes (checked at launch to be a value); `inside` is
        // borrowed mutably from the only `Running`, so nobody else reaches it.
        let run =
            AssertUnwindSafe(|| unsafe { native(context, state, head.type_id, &packet.payload, block) });
        let outcome = match (stamp, until) {
            (Err(error), _) => Some(Err(error.to_string())),
            (_, Until::Turn(slot)) => {
                slot.watched(cell, packet, vectors, before.as_ref(), || faults::caught(run))
            }
            (_, Until::Answered(_)) => Some(faults::caught(run)),
            (_, Until::Steps(_)) => Some(self.disturbed(cell, faults::caught(run))),
        };
        let Some(outcome) = outcome else {
            return false;
        };
        match outcome {
            Ok(true) => {
                self.host.note(cell.id, Traced::Handled { message });
                count(&cell.vitals.processed, 1);
                cell.vitals.note_latency(&self.host, head.sent);
                self.route(cell, inside, context, packet, &mut lease);
            }
            Ok(false) => {
                count(&cell.vitals.errors, 1);
                lease.map(Lease::keep);
                self.host.undelivered(&cell.group, packet, DeadReason::Foreign);
            }
            Err(fault) => {
                count(&cell.vitals.errors, 1);
                inside.undo(cell, before.as_ref());
                // What it put into its outbox goes nowhere; the vectors stay with the message, and what it took of their block is free.
                if let Some(mut lease) = lease {
                    lease.take_back(used);
                    lease.keep();
                }
                let again = cell.group.again(packet);
                let letter = !again.is_some_and(|again| cell.mailbox.unpop([again].into_iter()));
                self.host.note(cell.id, Traced::Faulted { message });
                let (letter, stop) = (letter.then_some(packet), || cell.vitals.fault());
                self.host.faulted(&cell.group, cell.id, letter, fault, stop);
            }
        }
        true
    }

    // What comes of a handler that has run in a simulation, where it may fault for no reason of its own.
    fn disturbed(&self, cell: &Cell, outcome: Result<bool, String>) -> Result<bool, String> {
        let disturbed = self.host.simulator.as_ref().map(|s| s.ran(cell.group.run_limit));
        outcome.and_then(|known| disturbed.unwrap_or(Ok(())).map(|()| known))
    }

    /// Delivers what the handler has put into its outbox, and tells whoever asked where nothing was replied.
    fn route(
        &self,
        cell: &Arc<Cell>,
        inside: &mut Inside,
        context: &Context,
        packet: &Packet,
        lease: &mut Option<Lease>,
    ) {
        let mut replied = false;
        let word_of = |entry: usize, at: usize| context.outbox_word(entry as u32, at as u32);
        for entry in outbox::in_order(context.entries() as usize, |entry| word_of(entry, 3)) {
            let word = |at| word_of(entry, at);
            let Some(out) = outbox::packet(&self.host, cell.id, word, lease) else {
                cell.vitals.drop_some(1);
                continue;
            };
            replied |= out.header.kind == Kind::Reply && out.header.destination == packet.header.sender.0;
            self.dispatch(cell, inside, out, &packet.header);
        }
        count(&cell.vitals.sent, u64::from(context.entries()));
        cell.vitals.drop_some(u64::from(context.refused()));
        let head = &packet.header;
        if head.kind == Kind::Ask && !replied {
            self.dispatch(cell, inside, outbox::done(&self.host, packet), head);
        }
    }

    // Delivers a packet, or keeps it for later where its destination is full. `cause` is what the handler ran for.
    fn dispatch(&self, cell: &Arc<Cell>, inside: &mut Inside, out: Packet, cause: &Header) {
        if inside.unsent.is_empty() {
            match self.deliver(cell, &out, Some(cause)) {
                Ok(()) => return,
                Err(Refusal::Gone) => return self.host.undelivered(&cell.group, &out, DeadReason::Unknown),
                Err(Refusal::Full) => {}
            }
        }
        inside.unsent.keep(out);
    }

    fn deliver(&self, from: &Arc<Cell>, out: &Packet, cause: Option<&Header>) -> Result<(), Refusal> {
        if let Some(taken) = outbox::to_host(&self.host, &from.group, out) {
            return taken;
        }
        let Some(to) = self.find(ActorId(out.header.destination)) else {
            return outbox::to_elsewhere(&self.host, out, cause).map(drop);
        };
        if outbox::is_unclaimed(&out.header, cause, &to.group) {
            to.vitals.drop_some(1);
            self.host.arena.release(out);
            return Ok(());
        }
        match self.offer(&to, out) {
            Push::Taken => {
                self.notify(&to);
                Ok(())
            }
            // Sealed: not while an actor runs. Closed: gone, or replaced, which the next try will find out.
            Push::Full | Push::Sealed | Push::Closed => Err(Refusal::Full),
        }
    }

    /// Delivers what found its destination full before; false while something still does.
    pub(super) fn flush(&self, cell: &Arc<Cell>, inside: &mut Inside) -> bool {
        let unsent = &mut inside.unsent;
        unsent.flush(&self.host, &cell.group, |out, looks| {
            let sent = self.deliver(cell, out, None);
            if sent != Err(Refusal::Full) {
                return sent;
            }
            self.wait_for_room(cell, looks, out);
            // There may have been room between the two.
            self.deliver(cell, out, None)
        });
        let stalled = !unsent.is_empty();
        if stalled {
            unsent.wait(&self.host, cell.id);
        }
        if stalled != cell.is_stalled() {
            cell.set_stalled(stalled);
        }
        !stalled
    }

    // Arranges that this actor is notified when the packet's destination has room. The host's queues do so by themselves.
    fn wait_for_room(&self, cell: &Arc<Cell>, looks: &mut Option<Instant>, out: &Packet) {
        let to = ActorId(out.header.destination);
        if out.header.kind == Kind::Publish || to == ActorId::HOST {
            return;
        }
        match self.find(to) {
            Some(to) => to.wait_for_room(cell),
            None => self.host.look_again(cell.id, looks),
        }
    }

    /// Gives up what has found no room for long.
    pub(super) fn give_up(&self, cell: &Arc<Cell>, patience: std::time::Duration) {
        let Some(mut running) = cell.begin() else {
            // Whoever runs it may find no room, and would not come here again.
            return self.host.stalled_in_a_moment(cell.id);
        };
        let unsent = &mut running.inside().unsent;
        let given_up = unsent.give_up(&self.host, &cell.group, cell.id, patience);
        cell.vitals.drop_some(given_up);
        cell.set_stalled(!unsent.is_empty());
        self.end(running, true);
    }
}
