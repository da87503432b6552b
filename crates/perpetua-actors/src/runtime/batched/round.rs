//! One batch for each launch of actors: messages out of mailboxes, their handlers on the device, what these sent to where it goes.
//! Must not know threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perpetua_device::{Device, DynBuffer, Error, Kernel, LaunchConfig, args};
use perpetua_ir::ir::{ParamKind, Type};

use super::{Outcome, Shared, World, first_stall};
use crate::context::ENTRY_WORDS;
use crate::dead_letters::DeadReason;
use crate::error::{ActorError, Result};
use crate::kernels::batched::OUT_WORDS;
use crate::lifecycle::ActorState;
use crate::lock::{lock, read};
use crate::message::{ActorId, Header, Kind, PACKET_WORDS, Packet};
use crate::runtime::arena::{BlockId, Lease};
use crate::runtime::engine::Refusal;
use crate::runtime::group::Group;
use crate::runtime::mailbox::{Mailbox, Push};
use crate::runtime::outbox;
use crate::runtime::vitals::{Vitals, count};
use crate::span::{BLOCK_WORD, HEAD_WORDS};
use crate::supervise::OnFault;

/// Messages of one actor in a batch.
const OF_ONE: usize = 64;
/// Messages of a batch.
const OF_ALL: usize = 4096;
/// Lanes of a block.
const LANES: u32 = 64;

/// One actor.
pub(super) struct Cell {
    pub(super) id: ActorId,
    pub(super) group: Arc<Group>,
    pub(super) mailbox: Mailbox,
    pub(super) vitals: Vitals,
    /// Its messages are in a batch.
    pub(super) busy: AtomicBool,
    pub(super) inside: Mutex<Inside>,
}

/// What batches change.
pub(super) struct Inside {
    pub(super) state: Vec<u8>,
    /// What found its destination full, in order of sending.
    pub(super) unsent: VecDeque<Packet>,
    /// Since when.
    pub(super) stalled: Option<Instant>,
}

impl Cell {
    pub(super) fn new(id: ActorId, group: &Arc<Group>) -> Cell {
        Cell {
            id,
            group: Arc::clone(group),
            mailbox: Mailbox::default(),
            vitals: Vitals::new(id, group),
            busy: AtomicBool::new(false),
            inside: Mutex::new(Inside {
                state: group.initial.clone(),
                unsent: VecDeque::new(),
                stalled: None,
            }),
        }
    }
}

/// What handles the messages of one launch's actors.
pub(super) struct Program {
    pub(super) group: Arc<Group>,
    kernel: Kernel,
    /// The state's type there.
    state: Type,
    /// Whether it reaches vectors.
    vectors: bool,
    /// Whether a fault brings a state back that the handler may have changed.
    undo: bool,
}

impl Program {
    /// Compiles the handler.
    pub(super) fn new(device: &Device, group: &Arc<Group>) -> Result<Program> {
        let kernel = device.kernel(&(group.handler.batched)())?;
        let params = || {
            let signature = kernel.signature().into_iter();
            signature.flat_map(|signature| signature.params())
        };
        let vectors = params().any(|param| param.name == "arena");
        let state = params()
            .filter_map(|param| match &param.kind {
                ParamKind::Buffer { element, .. } if param.name == "states" => Some(element.clone()),
                _ => None,
            })
            .next()
            .ok_or(ActorError::Unsupported {
                backend: device.backend().name(),
                operation: "a handler whose batch kernel has no states",
                remedy: "write the handler with `#[ring_kernel]`",
            })?;
        Ok(Program {
            undo: group.on_fault == OnFault::Transactional
                && group.handler.tears(&(group.handler.batched)())?,
            group: Arc::clone(group),
            kernel,
            state,
            vectors,
        })
    }
}

/// The messages of one actor in a batch.
struct Run {
    cell: Arc<Cell>,
    packets: Vec<Packet>,
    /// The packets' blocks, and where these lie in the batch's arena; none at all where the handler reaches no vectors.
    blocks: Vec<Option<Lent>>,
}

/// A block in a batch.
struct Lent {
    lease: Lease,
    at: usize,
}

impl Run {
    /// The block of packet `i`, as the batch has left it; where its handler faulted without what that took of it.
    fn take_back(&mut self, i: usize, arena: &[u32], faulted: bool) -> Option<Lease> {
        let Lent { mut lease, at } = self.blocks.get_mut(i)?.take()?;
        let (limit, used) = lease.extent();
        let part = match faulted {
            true => HEAD_WORDS..HEAD_WORDS + used,
            false => 0..HEAD_WORDS + limit,
        };
        let left = arena.get(at + part.start..at + part.end)?;
        lease.words_mut().get_mut(part)?.copy_from_slice(left);
        Some(lease)
    }

    /// The blocks of the packets from `i` on belong to these again.
    fn give_back(&mut self, i: usize) {
        for lent in self.blocks.iter_mut().skip(i).filter_map(Option::take) {
            lent.lease.keep();
        }
    }
}

/// What the device gave back.
struct Results {
    /// Each run's, and behind them what each was before the message that its run is at, where the launch wants that.
    states: Vec<u8>,
    out: Vec<u32>,
    counts: Vec<u32>,
    done: Vec<u32>,
    arena: Vec<u32>,
    fault: Option<(u32, String)>,
}

impl Shared {
    /// A batch for each program that has messages.
    pub(super) fn round(&self, world: &mut World) -> Outcome {
        let mut outcome = Outcome::default();
        for program in &world.programs {
            let mut runs = self.gather(program, &mut outcome);
            if runs.is_empty() {
                continue;
            }
            match self.launch_batch(program, &mut runs) {
                Ok(results) => self.route(&mut runs, &results, program.undo),
                Err(error) => self.lost(&mut runs, &error),
            }
            runs.iter()
                .for_each(|run| run.cell.busy.store(false, Ordering::Release));
            outcome.more = true;
        }
        outcome
    }

    // Takes messages that may be handled out of their mailboxes.
    fn gather(&self, program: &Program, outcome: &mut Outcome) -> Vec<Run> {
        let now = self.host.now();
        let mut runs = Vec::new();
        let mut all = 0;
        for actor in program.group.actors() {
            let Some(cell) = self.find(actor) else {
                continue;
            };
            if !self.flush(&cell) {
                outcome.stalled = true;
                continue;
            }
            if all >= OF_ALL {
                outcome.more |= cell.mailbox.len() > 0;
                continue;
            }
            cell.busy.store(true, Ordering::Relaxed);
            // Pairs with the fence in `settled`.
            fence(Ordering::SeqCst);
            let mut packets = Vec::new();
            while packets.len() < OF_ONE && cell.vitals.life() == ActorState::Active {
                let Some(packet) = cell.mailbox.pop() else {
                    break;
                };
                if outbox::is_late(&packet.header, now) {
                    cell.vitals.drop_some(1);
                    self.host.undelivered(&cell.group, &packet, DeadReason::Expired);
                    continue;
                }
                packets.push(packet);
            }
            if packets.is_empty() {
                cell.busy.store(false, Ordering::Release);
                continue;
            }
            all += packets.len();
            runs.push(Run {
                cell,
                packets,
                blocks: Vec::new(),
            });
        }
        runs
    }

    // Words of a packet, its block in the batch's arena, where it brings one.
    fn pack(&self, packet: &Packet, arena: &mut Vec<u32>) -> ([u32; PACKET_WORDS], Option<Lent>) {
        let mut packet = *packet;
        let lent = self.host.arena.claim(&packet).map(|lease| Lent {
            at: arena.len(),
            lease,
        });
        match &lent {
            Some(lent) => {
                let (limit, _) = lent.lease.extent();
                arena.extend(lent.lease.words().iter().take(HEAD_WORDS + limit));
                packet.payload[BLOCK_WORD + 1] = lent.at as u32;
            }
            // Somebody else has it: its spans lead nowhere.
            None => BlockId::detach(&mut packet),
        }
        (packet.to_words(), lent)
    }

    fn launch_batch(&self, program: &Program, runs: &mut [Run]) -> Result<Results> {
        let all: usize = runs.iter().map(|run| run.packets.len()).sum();
        let mut packets = Vec::with_capacity(all * PACKET_WORDS);
        let mut table = Vec::with_capacity(runs.len() * 4);
        let (mut states, mut arena) = (Vec::new(), Vec::new());
        for (index, run) in runs.iter_mut().enumerate() {
            let first = (packets.len() / PACKET_WORDS) as u32;
            table.extend([first, run.packets.len() as u32, run.cell.id.0, index as u32]);
            for packet in &run.packets {
                if !program.vectors {
                    packets.extend(packet.to_words());
                    continue;
                }
                let (words, lent) = self.pack(packet, &mut arena);
                packets.extend(words);
                run.blocks.push(lent);
            }
            states.extend_from_slice(&lock(&run.cell.inside).state);
        }
        if program.undo {
            states.extend_from_within(..);
        }
        let undo = u32::from(program.undo);
        // Handlers count on from here: no stamp of theirs may cross into the upper half.
        let mut now = self.host.now();
        if now as u32 > u32::MAX - 2 * OF_ONE as u32 {
            now = (now | u64::from(u32::MAX)) + 1;
        }
        let device = &self.device;
        let packets = device.upload(&packets)?;
        let table = device.upload(&table)?;
        let states = DynBuffer::upload(device, &program.state, &states)?;
        let out = device.zeros::<u32>(all * OUT_WORDS)?;
        let counts = device.zeros::<u32>(all)?;
        let done = device.zeros::<u32>(runs.len())?;
        let lanes = runs.len() as u32;
        let (low, high) = (now as u32, (now >> 32) as u32);
        let config = LaunchConfig::new([lanes.div_ceil(LANES), 1, 1], [LANES, 1, 1]);
        let arena = match program.vectors {
            false => {
                let arguments = args![
                    &packets, &table, &states, &out, &counts, &done, low, high, lanes, undo
                ];
                device.launch(&program.kernel, config, arguments)?;
                None
            }
            true => {
                // No buffer is empty.
                arena.push(0);
                let arena = device.upload(&arena)?;
                let arguments = args![
                    &packets, &table, &states, &out, &counts, &done, low, high, lanes, undo, &arena
                ];
                device.launch(&program.kernel, config, arguments)?;
                Some(arena)
            }
        };
        let fault = match device.synchronize() {
            Ok(()) => None,
            Err(Error::Fault(fault)) => {
                let lane = fault.block[0] * LANES + fault.thread[0];
                Some((lane, fault.to_string()))
            }
            Err(other) => return Err(other.into()),
        };
        self.host.go_on_from(now + OF_ONE as u64)?;
        Ok(Results {
            states: states.read()?,
            out: out.read()?,
            counts: counts.read()?,
            done: done.read()?,
            arena: arena.map(|arena| arena.read()).transpose()?.unwrap_or_default(),
            fault,
        })
    }

    // Gives each actor its state, and what its handlers sent to where it goes.
    fn route(&self, runs: &mut [Run], results: &Results, undo: bool) {
        let mut first = 0;
        let lanes = runs.len();
        for (lane, run) in runs.iter_mut().enumerate() {
            let (cell, packets) = (Arc::clone(&run.cell), std::mem::take(&mut run.packets));
            let cell = &cell;
            let mut inside = lock(&cell.inside);
            let size = inside.state.len();
            let done = (results.done[lane] as usize).min(packets.len());
            let at = match done < packets.len() && undo {
                true => lanes + lane,
                false => lane,
            };
            let state = match cell.group.on_fault {
                OnFault::Restart if done < packets.len() => &cell.group.initial,
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
            if done < packets.len() {
                run.take_back(done, &results.arena, true).map(Lease::keep);
                run.give_back(done);
            }
            if let [faulted, rest @ ..] = &packets[done..] {
                let again = cell.group.again(faulted);
                // Nobody closes it while there is a batch.
                cell.mailbox.unpop(again.into_iter().chain(rest.iter().copied()));
                count(&cell.vitals.errors, 1);
                cell.vitals.fault();
                let text = match &results.fault {
                    Some((of, text)) if *of as usize == lane => text.clone(),
                    Some((_, text)) => format!("not recorded, since another of its batch did first ({text})"),
                    None => "not recorded by the device".into(),
                };
                let letter = again.is_none().then_some(faulted);
                self.host.faulted(&cell.group, cell.id, letter, text);
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
        for words in out.chunks_exact(ENTRY_WORDS) {
            let Some(out) = outbox::packet(&self.host, cell.id, |at| words[at], brought) else {
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
            run.cell.vitals.fault();
            count(&run.cell.vitals.errors, run.packets.len() as u64);
            let (group, actor) = (&run.cell.group, run.cell.id);
            let again: Vec<Packet> = run.packets.iter().filter_map(|one| group.again(one)).collect();
            run.cell.mailbox.unpop(again.into_iter());
            for packet in &run.packets {
                let letter = group.again(packet).is_none().then_some(packet);
                self.host
                    .faulted(group, actor, letter, format!("the batch failed: {error}"));
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
        inside.unsent.push_back(out);
    }

    fn deliver(&self, from: &Cell, out: &Packet, cause: Option<&Header>) -> std::result::Result<(), Refusal> {
        if let Some(taken) = outbox::to_host(&self.host, &from.group, out) {
            return taken;
        }
        let to = ActorId(out.header.destination);
        let to = read(&self.cells).get(to.0 as usize).cloned().flatten();
        let to = to.ok_or(Refusal::Gone)?;
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
        let mut inside = lock(&cell.inside);
        while let Some(out) = inside.unsent.front().copied() {
            match self.deliver(cell, &out, None) {
                Ok(()) => {}
                Err(Refusal::Gone) => self.host.undelivered(&cell.group, &out, DeadReason::Unknown),
                Err(Refusal::Full) => {
                    if first_stall(&mut inside.stalled) {
                        self.host.stalled(cell.id);
                    }
                    return false;
                }
            }
            inside.unsent.pop_front();
            // The next one waits from now on.
            inside.stalled = inside.stalled.map(|_| Instant::now());
        }
        inside.stalled = None;
        true
    }

    /// What the actor could not deliver is undeliverable.
    pub(super) fn give_up(&self, cell: &Cell, inside: &mut Inside) {
        for out in std::mem::take(&mut inside.unsent) {
            cell.vitals.drop_some(1);
            self.host.undelivered(&cell.group, &out, DeadReason::Full);
        }
    }
}
