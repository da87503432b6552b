//! One batch for each launch of actors: messages out of mailboxes, their handlers on the device, what these sent to where it goes.
//! Must not know threads.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use perpetua_ir::pass::OUT_OF_TURNS;

use super::batch::{OF_ALL, OF_ONE, Program, Results, Run};
use super::care::Care;
use super::cell::{Cell, Inside};
use super::{Outcome, Shared, World};
use crate::context::ENTRY_WORDS;
use crate::dead_letters::DeadReason;
use crate::error::ActorError;
use crate::kernels::batched::OUT_WORDS;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::{ActorId, Header, Kind, Packet};
use crate::runtime::arena::Lease;
use crate::runtime::engine::Refusal;
use crate::runtime::mailbox::Push;
use crate::runtime::outbox;
use crate::runtime::vitals::count;
use crate::supervise::OnFault;

impl Shared {
    /// A batch for each program that has messages.
    pub(super) fn round(&self, world: &mut World) -> Outcome {
        let mut outcome = Outcome::default();
        for program in &mut world.programs {
            let mut runs = self.gather(program, &mut outcome);
            if runs.is_empty() {
                continue;
            }
            match self.launch_batch(program, &mut runs) {
                Ok(results) if results.cut && results.counts.len() > 1 => {
                    self.take_apart(program, &mut runs, &results);
                }
                Ok(results) => {
                    program.learn(&runs, &results);
                    self.route(program, &mut runs, &results);
                }
                Err(error) => self.lost(&mut runs, &error),
            }
            runs.iter()
                .for_each(|run| run.cell.busy.store(false, Ordering::Release));
            outcome.more = true;
        }
        outcome
    }

    // Takes messages that may be handled out of their mailboxes.
    fn gather(&self, program: &mut Program, outcome: &mut Outcome) -> Vec<Run> {
        let mut runs = self.gather_careful(program);
        if !runs.is_empty() {
            return runs;
        }
        let mut room = program.most;
        // Where something of a batch may fault, few messages are behind that.
        let of_one = (room * OF_ONE / OF_ALL).max(1);
        let (group, begin) = (Arc::clone(&program.group), program.begin);
        let ids = (begin..group.count).chain(0..begin);
        for (id, actor) in ids.map(|id| (id, ActorId(group.first.0 + id))) {
            let Some(cell) = self.find(actor) else {
                continue;
            };
            if !self.flush(&cell) {
                outcome.stalled = true;
                continue;
            }
            let run = self.take_run(cell, of_one.min(room), program.turns, false);
            room -= run.as_ref().map_or(0, |run| run.packets.len());
            runs.extend(run);
            if room == 0 {
                // The next batch goes on here: no actor waits for others that have ever more messages.
                program.begin = (id + 1) % group.count;
                outcome.more = true;
                break;
            }
        }
        runs
    }

    /// Messages that are not handled with others, if any of them can be now: side by side, but where a driver ends loops, one.
    pub(super) fn gather_careful(&self, program: &mut Program) -> Vec<Run> {
        let mut runs = Vec::new();
        let by_itself = self.device.info().limits.max_loop_turns.is_some();
        program.careful.retain(|actor, care| {
            let Some(cell) = self.find(*actor).filter(|cell| cell.mailbox.len() > 0) else {
                return false;
            };
            let alone = by_itself || matches!(care, Care::Alone(_));
            if alone && !runs.is_empty() || cell.vitals.life() != ActorState::Active || !self.flush(&cell) {
                return true;
            }
            let turns = match care {
                Care::Turns(turns) => *turns,
                Care::Alone(_) => program.turns,
            };
            runs.extend(self.take_run(cell, 1, turns, true));
            true
        });
        runs
    }

    /// Gives back all messages of a batch in which something faulted that may have hidden a cut loop: those of the lane that faulted are handled one by one,
    /// the others in smaller batches.
    pub(super) fn take_apart(&self, program: &mut Program, runs: &mut [Run], results: &Results) {
        program.most = (results.counts.len() / 2).max(1);
        let faulted = results.fault.as_ref().map(|(lane, _)| *lane as usize);
        for (lane, run) in runs.iter_mut().enumerate() {
            run.give_back(0);
            if faulted.is_none_or(|faulted| faulted == lane) {
                program
                    .careful
                    .insert(run.cell.id, Care::Alone(run.packets.len()));
            }
            // Nobody closes it while there is a batch.
            run.cell.mailbox.unpop(run.packets.drain(..));
        }
    }

    /// Takes at most so many messages of an actor out of its mailbox, if any may be handled.
    pub(super) fn take_run(&self, cell: Arc<Cell>, most: usize, turns: u32, careful: bool) -> Option<Run> {
        cell.busy.store(true, Ordering::Relaxed);
        // Pairs with the fence in `settled`.
        fence(Ordering::SeqCst);
        let now = self.host.clock.tick().packed;
        let mut packets = Vec::new();
        while packets.len() < most && cell.vitals.life() == ActorState::Active {
            let Some(packet) = cell.mailbox.pop() else {
                break;
            };
            // The handler of one that is handled with care had begun in time.
            if !careful && outbox::is_late(&packet.header, now) {
                cell.vitals.drop_some(1);
                self.host.undelivered(&cell.group, &packet, DeadReason::Expired);
                continue;
            }
            packets.push(packet);
        }
        if packets.is_empty() {
            cell.busy.store(false, Ordering::Release);
            return None;
        }
        Some(Run {
            cell,
            packets,
            blocks: Vec::new(),
            turns,
            careful,
        })
    }

    // Gives each actor its state, and what its handlers sent to where it goes.
    fn route(&self, program: &mut Program, runs: &mut [Run], results: &Results) {
        let mut first = 0;
        let lanes = runs.len();
        for (lane, run) in runs.iter_mut().enumerate() {
            let (cell, packets) = (Arc::clone(&run.cell), std::mem::take(&mut run.packets));
            let cell = &cell;
            let word = results.done[lane];
            // One message alone: what faulted was its handler.
            let done = match results.cut {
                true => 0,
                false => ((word & !OUT_OF_TURNS) as usize).min(packets.len()),
            };
            let stopped = done < packets.len();
            let out_of_turns = word & OUT_OF_TURNS != 0;
            let again = stopped && out_of_turns && program.tries_again(run, done, results.took);
            let mut inside = lock(&cell.inside);
            let size = inside.state.len();
            let before = again || cell.group.on_fault == OnFault::Transactional;
            let at = match stopped && before && program.undo {
                true => lanes + lane,
                false => lane,
            };
            let state = match cell.group.on_fault {
                OnFault::Restart if stopped && !again => &cell.group.initial,
                _ => &results.states[at * size..][..size],
            };
            inside.state.copy_from_slice(state);
            for (i, packet) in packets[..done].iter().enumerate() {
                let counts = results.counts[first + i];
                let mut brought = run.take_back(i, &results.arena, false);
                if counts & 256 == 0 {
                    brought.map(Lease::keep);
                    count(&cell.vitals.errors, 1);
                    self.host.undelivered(&cell.group, packet, DeadReason::Foreign);
                    continue;
                }
                count(&cell.vitals.processed, 1);
                cell.vitals.drop_some(u64::from(counts >> 16));
                cell.vitals.note_latency(&self.host, packet.header.sent);
                let out = &results.out[(first + i) * OUT_WORDS..][..OUT_WORDS];
                let out = out.get(..(counts as usize & 255) * ENTRY_WORDS).unwrap_or(out);
                self.route_entries(cell, &mut inside, packet, out, &mut brought);
                // What no message took along is freed: here, or, where the handler reaches no vectors, as it came.
                if brought.take().is_none() && run.blocks.is_empty() {
                    self.host.arena.release(packet);
                }
            }
            drop(inside);
            if stopped && !again {
                run.take_back(done, &results.arena, true).map(Lease::keep);
            }
            run.give_back(done);
            if again {
                cell.mailbox.unpop(packets[done..].iter().copied());
            } else if let [faulted, rest @ ..] = &packets[done..] {
                let again = cell.group.again(faulted);
                // Nobody closes it while there is a batch.
                cell.mailbox.unpop(again.into_iter().chain(rest.iter().copied()));
                count(&cell.vitals.errors, 1);
                let text = match &results.fault {
                    Some((of, text)) if *of as usize == lane => text.clone(),
                    _ if out_of_turns => "a loop that ran on when its time was over".into(),
                    Some((_, text)) => format!("not recorded, since another of its batch did first ({text})"),
                    None => "not recorded by the device".into(),
                };
                let letter = again.is_none().then_some(faulted);
                let stop = || cell.vitals.fault();
                self.host.faulted(&cell.group, cell.id, letter, text, stop);
            }
            first += packets.len();
        }
    }

    fn route_entries(
        &self,
        cell: &Cell,
        inside: &mut Inside,
        packet: &Packet,
        out: &[u32],
        brought: &mut Option<Lease>,
    ) {
        let mut replied = false;
        let word_of = |entry: usize, at: usize| out[entry * ENTRY_WORDS + at];
        for entry in outbox::in_order(out.len() / ENTRY_WORDS, |entry| word_of(entry, 3)) {
            let Some(out) = outbox::packet(&self.host, cell.id, |at| word_of(entry, at), brought) else {
                cell.vitals.drop_some(1);
                continue;
            };
            replied |= out.header.kind == Kind::Reply && out.header.destination == packet.header.sender.0;
            self.dispatch(cell, inside, out, Some(&packet.header));
        }
        count(&cell.vitals.sent, (out.len() / ENTRY_WORDS) as u64);
        if packet.header.kind == Kind::Ask && !replied {
            let done = outbox::done(&self.host, packet);
            self.dispatch(cell, inside, done, Some(&packet.header));
        }
    }

    // The device failed: what the handlers have done is nowhere.
    fn lost(&self, runs: &mut [Run], error: &ActorError) {
        for run in runs {
            run.give_back(0);
            count(&run.cell.vitals.errors, run.packets.len() as u64);
            let (group, actor) = (&run.cell.group, run.cell.id);
            let again: Vec<Packet> = run.packets.iter().filter_map(|one| group.again(one)).collect();
            run.cell.mailbox.unpop(again.into_iter());
            for packet in &run.packets {
                let letter = group.again(packet).is_none().then_some(packet);
                let text = format!("the batch failed: {error}");
                self.host
                    .faulted(group, actor, letter, text, || run.cell.vitals.fault());
            }
        }
    }

    fn dispatch(&self, cell: &Cell, inside: &mut Inside, out: Packet, cause: Option<&Header>) {
        if inside.unsent.is_empty() {
            match self.deliver(cell, &out, cause) {
                Ok(()) => return,
                Err(Refusal::Gone) => return self.host.undelivered(&cell.group, &out, DeadReason::Unknown),
                Err(Refusal::Full) => {}
            }
        }
        inside.unsent.keep(out);
    }

    fn deliver(&self, from: &Cell, out: &Packet, cause: Option<&Header>) -> std::result::Result<(), Refusal> {
        if let Some(taken) = outbox::to_host(&self.host, &from.group, out) {
            return taken;
        }
        let to = ActorId(out.header.destination);
        let Some(to) = self.find(to) else {
            return outbox::to_elsewhere(&self.host, out, cause).map(drop);
        };
        if outbox::is_unclaimed(&out.header, cause, &to.group) {
            to.vitals.drop_some(1);
            self.host.arena.release(out);
            return Ok(());
        }
        match to.mailbox.push(out, to.group.capacity) {
            Push::Taken => Ok(()),
            // Nothing is sealed while there is a batch.
            Push::Full | Push::Sealed => Err(Refusal::Full),
            Push::Closed => Err(Refusal::Gone),
        }
    }

    // Delivers what found no room before; false while something still finds none.
    pub(super) fn flush(&self, cell: &Cell) -> bool {
        let unsent = &mut lock(&cell.inside).unsent;
        if unsent.flush(&self.host, &cell.group, |out, _| self.deliver(cell, out, None)) {
            // It may have gone to an actor that this round has passed.
            self.notify();
        }
        if !unsent.is_empty() {
            unsent.wait(&self.host, cell.id);
        }
        unsent.is_empty()
    }
}
