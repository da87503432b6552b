//! One batch: what travels to the device and back, and the kernel that handles it there. Must not know mailboxes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perpetua_device::{Device, DynBuffer, Error, Kernel, KernelSpec, LaunchConfig, args};
use perpetua_ir::ir::{ParamKind, Type};
use perpetua_ir::pass::limit_turns;

use super::Shared;
use super::care::{Care, FIRST_TURNS, MOST_TURNS, more};
use super::cell::Cell;
use crate::error::{ActorError, Result};
use crate::kernels::batched::OUT_WORDS;
use crate::lock::lock;
use crate::message::{ActorId, PACKET_WORDS, Packet};
use crate::runtime::arena::{BlockId, Lease};
use crate::runtime::group::Group;
use crate::span::{BLOCK_WORD, HEAD_WORDS};
use crate::supervise::OnFault;

/// Messages of one actor in a batch.
pub(super) const OF_ONE: usize = 64;
/// Messages of a batch.
pub(super) const OF_ALL: usize = 4096;
/// Lanes of a block.
const LANES: u32 = 64;

/// What handles the messages of one launch's actors.
pub(super) struct Program {
    pub(super) group: Arc<Group>,
    kernel: Kernel,
    /// The state's type there.
    state: Type,
    /// Whether it reaches vectors.
    vectors: bool,
    /// Whether the state before the message at which a run stops may be wanted.
    pub(super) undo: bool,
    /// How long a handler may take, if that is said.
    pub(super) limit: Option<Duration>,
    /// Turns that loops of a lane may make in a batch, where there is a limit: handlers have made so many in time.
    pub(super) turns: u32,
    /// Actors whose messages are not handled with others'.
    pub(super) careful: BTreeMap<ActorId, Care>,
    /// Messages of a batch, at most.
    pub(super) most: usize,
    /// The first actor of the next batch, from the launch's first on.
    pub(super) begin: u32,
}

impl Program {
    /// Compiles the handler.
    pub(super) fn new(device: &Device, group: &Arc<Group>) -> Result<Program> {
        let spec = (group.handler.batched)();
        let kernel = match group.run_limit {
            None => device.kernel(&spec)?,
            Some(_) => {
                let verified = spec.verified(device.info().pointer_width())?;
                let limited = limit_turns(&verified, "done");
                let limited = limited.ok_or_else(|| {
                    no_buffer(device, "a handler whose batch kernel has no words to limit it by")
                })?;
                device.compile_ir(&limited)?
            }
        };
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
            .ok_or_else(|| no_buffer(device, "a handler whose batch kernel has no states"))?;
        Ok(Program {
            undo: group.run_limit.is_some()
                || group.on_fault == OnFault::Transactional && group.handler.tears(&spec)?,
            limit: group.run_limit,
            turns: group.run_limit.map_or(0, |_| FIRST_TURNS),
            careful: BTreeMap::new(),
            most: OF_ALL,
            begin: 0,
            group: Arc::clone(group),
            kernel,
            state,
            vectors,
        })
    }
}

fn no_buffer(device: &Device, operation: &'static str) -> ActorError {
    ActorError::Unsupported {
        backend: device.backend().name(),
        operation,
        remedy: "write the handler with `#[ring_kernel]`",
    }
}

/// The messages of one actor in a batch.
pub(super) struct Run {
    pub(super) cell: Arc<Cell>,
    pub(super) packets: Vec<Packet>,
    /// The packets' blocks, and where these lie in the batch's arena; none at all where the handler reaches no vectors.
    pub(super) blocks: Vec<Option<Lent>>,
    /// Turns that its handlers' loops may make together, where that is limited.
    pub(super) turns: u32,
    /// Its message comes alone, and was in a batch before.
    pub(super) careful: bool,
}

/// A block in a batch.
pub(super) struct Lent {
    lease: Lease,
    at: usize,
}

impl Run {
    /// The block of packet `i`, as the batch has left it; where its handler faulted without what that took of it.
    pub(super) fn take_back(&mut self, i: usize, arena: &[u32], faulted: bool) -> Option<Lease> {
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
    pub(super) fn give_back(&mut self, i: usize) {
        for lent in self.blocks.iter_mut().skip(i).filter_map(Option::take) {
            lent.lease.keep();
        }
    }
}

/// What the device gave back.
pub(super) struct Results {
    /// Each run's, and behind them what each was before the message that its run is at, where the program wants that.
    pub(super) states: Vec<u8>,
    pub(super) out: Vec<u32>,
    pub(super) counts: Vec<u32>,
    /// For each run how many packets were handled, and whether it is out of turns.
    pub(super) done: Vec<u32>,
    pub(super) arena: Vec<u32>,
    /// The first fault, and its lane.
    pub(super) fault: Option<(u32, String)>,
    /// Lanes may have gone on wrongly behind a loop that the driver has ended, so `done` may say too much.
    pub(super) cut: bool,
    /// How long the launch took.
    pub(super) took: Duration,
}

impl Program {
    /// Whether the message number `at` of a run that is out of turns is handled once more.
    pub(super) fn tries_again(&mut self, run: &Run, at: usize, took: Duration) -> bool {
        let Some(limit) = self.limit else {
            return false;
        };
        // Those before it had some of its turns; and a first launch may take long for other reasons.
        let turns = match at {
            0 if run.careful && (took >= limit || run.turns == MOST_TURNS) => return false,
            0 => more(run.turns, took, limit),
            _ => run.turns,
        };
        self.careful.insert(run.cell.id, Care::Turns(turns));
        true
    }

    /// The batch is done: what it tells of how its actors' next messages are handled.
    pub(super) fn learn(&mut self, runs: &[Run], results: &Results) {
        if results.fault.is_none() && runs.iter().all(|run| !run.careful) {
            self.most = (2 * self.most).min(OF_ALL);
        }
        for run in runs.iter().filter(|run| run.careful) {
            match self.careful.remove(&run.cell.id) {
                Some(Care::Alone(several @ 2..)) => {
                    self.careful.insert(run.cell.id, Care::Alone(several - 1));
                }
                Some(Care::Turns(turns)) if self.limit.is_some_and(|limit| results.took < limit / 2) => {
                    self.turns = self.turns.max(turns);
                }
                _ => {}
            }
        }
    }
}

impl Shared {
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

    pub(super) fn launch_batch(&self, program: &Program, runs: &mut [Run]) -> Result<Results> {
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
        let mut now = self.host.now()?;
        if now as u32 > u32::MAX - 2 * OF_ONE as u32 {
            now = (now | u64::from(u32::MAX)) + 1;
        }
        let device = &self.device;
        let packets = device.upload(&packets)?;
        let table = device.upload(&table)?;
        let states = DynBuffer::upload(device, &program.state, &states)?;
        let out = device.zeros::<u32>(all * OUT_WORDS)?;
        let counts = device.zeros::<u32>(all)?;
        let lanes = runs.len() as u32;
        let mut turns: Vec<u32> = runs.iter().map(|run| run.turns).collect();
        // Each lane of the launch has a word.
        turns.resize(lanes.next_multiple_of(LANES) as usize, 0);
        let done = device.upload(&turns)?;
        let began = Instant::now();
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
            Err(Error::Fault(fault)) => Some(fault),
            Err(other) => return Err(other.into()),
        };
        let took = began.elapsed();
        self.host.go_on_from(now + OF_ONE as u64)?;
        Ok(Results {
            states: states.read()?,
            out: out.read()?,
            counts: counts.read()?,
            done: done.read()?,
            arena: arena.map(|arena| arena.read()).transpose()?.unwrap_or_default(),
            // One fault is told: behind another's may be that of a loop which was cut.
            cut: fault.is_some() && device.info().limits.max_loop_turns.is_some(),
            fault: fault.map(|fault| (fault.block[0] * LANES + fault.thread[0], fault.to_string())),
            took,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::echo;
    use crate::runtime::RuntimeBuilder;
    use crate::runtime::batched::start;
    use crate::runtime::engine::Engine;
    use crate::runtime::host::Host;
    use crate::runtime::options::LaunchOptions;

    #[test]
    fn batches_grow_where_nothing_faults() {
        let settings = RuntimeBuilder::default().settings;
        let host = Arc::new(Host::new(&settings));
        let engine = start(&host, &settings).unwrap();
        let group = LaunchOptions::default().group("one", echo::handler()).unwrap();
        let mut program = Program::new(&engine.shared.device, &Arc::new(group)).unwrap();
        program.most = 1;
        let mut results = Results {
            states: Vec::new(),
            out: Vec::new(),
            counts: Vec::new(),
            done: Vec::new(),
            arena: Vec::new(),
            fault: Some((0, "a fault".into())),
            cut: false,
            took: Duration::ZERO,
        };
        program.learn(&[], &results);
        assert_eq!(program.most, 1);
        results.fault = None;
        program.learn(&[], &results);
        assert_eq!(program.most, 2);
        engine.stop();
    }
}
