//! Blocks in turns: handed to machines, on one thread or several, until none is left. Must not know what they do.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::InterpError;
use super::launch::{Launch, LaunchConfig, Parallel, RaceMode};
use super::machine::team::Team;
use super::machine::{Machine, Part, Turn};
use super::program::Program;
use super::race::Detector;
use perpetua_ir::fault::Fault;
use perpetua_ir::ir::Stages;

/// Operations that a block executes before others get their turn, if it loops that long.
const TURN: u64 = 1 << 16;

/// Of how many shares of what is left a thread takes one.
#[cfg(machine_code)]
const SHARES: u64 = 4;

/// How long a thread sleeps when all its blocks wait for others.
#[cfg(not(target_arch = "wasm32"))]
const NAP: std::time::Duration = std::time::Duration::from_micros(20);

/// Memory for blocks that wait for their turn, in bytes.
const PARKED_BYTES: usize = 256 << 20;

impl Launch<'_> {
    /// Lanes that have a machine of their own where not all of a block go in step: a subgroup's, or a team's that multiply in stages.
    fn apart(&self) -> usize {
        match self.program.stages {
            Some(_) => Stages::TEAM as usize,
            None => self.subgroup as usize,
        }
    }

    /// Whether a block has several machines.
    fn is_split(&self) -> bool {
        (self.program.stays || self.program.stages.is_some()) && self.shape.lanes() > self.apart()
    }

    /// Machines for the parts of a block, ready to run.
    fn team(&self, number: u64) -> impl Iterator<Item = Machine> {
        let (lanes, apart) = (self.shape.lanes(), self.apart());
        let stages = self.program.stages.as_ref();
        let team = Arc::new(Team::new(lanes.div_ceil(apart), self.shared_lines(), stages));
        (0..lanes).step_by(apart).map(move |first| {
            let part = Part {
                first,
                lanes: apart.min(lanes - first),
                blocks: 1,
                team: Some(Arc::clone(&team)),
            };
            let mut machine = Machine::new(self, part);
            machine.start(self, number);
            machine
        })
    }
}

/// What blocks came to, over all threads.
#[derive(Default)]
struct Outcome {
    /// The fault of the lowest block.
    fault: Option<(u64, Box<Fault>)>,
    error: Option<InterpError>,
}

impl Outcome {
    /// A block has faulted.
    fn add(&mut self, number: u64, fault: Box<Fault>) {
        if self.fault.as_ref().is_none_or(|(first, _)| number < *first) {
            self.fault = Some((number, fault));
        }
    }

    /// A block has met an error.
    fn fail(&mut self, error: InterpError) {
        self.error.get_or_insert(error);
    }

    /// A fault is the better explanation.
    fn into_result(self) -> Result<(), InterpError> {
        match (self.fault, self.error) {
            (Some((_, fault)), _) => Err(InterpError::Fault(fault)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(()),
        }
    }
}

/// The blocks of a launch that nobody has started yet, shared by all threads that run them, and what came of the others.
pub(super) struct Blocks<'l> {
    pub(super) launch: &'l Launch<'l>,
    /// How many there are; where several run as one, that counts.
    count: u64,
    /// Number of the next one.
    next: AtomicU64,
    /// Threads that have begun to run them.
    #[cfg(machine_code)]
    threads: AtomicU64,
    /// Somebody met an error.
    stop: AtomicBool,
    outcome: Mutex<Outcome>,
}

impl<'l> Blocks<'l> {
    /// All blocks of a launch.
    #[cfg(machine_code)]
    pub(super) fn of(launch: &'l Launch<'l>) -> Blocks<'l> {
        Blocks::counted(launch, launch.groups)
    }

    fn counted(launch: &'l Launch<'l>, count: u64) -> Blocks<'l> {
        Blocks {
            launch,
            count,
            next: AtomicU64::new(0),
            #[cfg(machine_code)]
            threads: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            outcome: Mutex::default(),
        }
    }

    /// Counts the calling thread among those that run blocks.
    #[cfg(machine_code)]
    pub(super) fn join(&self) {
        // Relaxed: shares are a guess.
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    /// A part of what is left for a thread to take at once: much while there is much, so that threads seldom jump in memory, and less towards the
    /// end, so that they end together.
    #[cfg(machine_code)]
    pub(super) fn share(&self) -> u64 {
        let threads = self.threads.load(Ordering::Relaxed).max(2);
        self.count.saturating_sub(self.next.load(Ordering::Relaxed)) / (SHARES * threads)
    }

    /// Calls `work`, which runs blocks until none is left, on as many threads as `parallel` says. Gives what came of the blocks.
    pub(super) fn run(self, parallel: Parallel<'_>, work: impl Fn(&Self) + Sync) -> Result<(), InterpError> {
        match parallel {
            Parallel::Off => work(&self),
            Parallel::Spread(spread) => {
                spread(&|| work(&self));
                // Nothing is left, or the pool never called.
                work(&self);
            }
            Parallel::Threads(n) => std::thread::scope(|scope| {
                for _ in 1..n.get().min(self.count.max(1) as usize) {
                    let thread = std::thread::Builder::new().name("perpetua-interp".into());
                    // A thread less is slower, and no error.
                    if thread.spawn_scoped(scope, || work(&self)).is_err() {
                        break;
                    }
                }
                work(&self);
            }),
        }
        self.end()
    }

    /// What came of the blocks, when nobody runs any more.
    fn end(self) -> Result<(), InterpError> {
        let outcome = self.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.into_result()
    }

    /// Takes so many blocks, or what is left of them.
    pub(super) fn take(&self, count: u64) -> Range<u64> {
        // Relaxed: only the number matters.
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let at = |n: u64| self.launch.first + n.min(self.count);
        at(first)..at(first.saturating_add(count))
    }

    /// Whether somebody has met an error.
    pub(super) fn has_failed(&self) -> bool {
        // Relaxed: those that see it late do more than they need to.
        self.stop.load(Ordering::Relaxed)
    }

    /// A block has faulted.
    pub(super) fn add(&self, number: u64, fault: Box<Fault>) {
        self.outcome().add(number, fault);
    }

    /// A block has met an error.
    pub(super) fn fail(&self, error: InterpError) {
        self.outcome().fail(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs blocks until none is left.
fn work(blocks: &Blocks<'_>, mut races: Option<&mut Detector>) {
    let launch = blocks.launch;
    let turn = if launch.program.may_wait() { TURN } else { u64::MAX };
    let (mut parked, mut spare) = (VecDeque::<Machine>::new(), Vec::<Machine>::new());
    let mut most = usize::MAX;
    // Blocks that have napped one after another.
    let mut naps = 0;
    while !blocks.has_failed() {
        // New blocks go before those that have had a turn: one may be waiting for them.
        let fresh = (parked.len() < most).then(|| blocks.take(1).next()).flatten();
        let fresh = fresh.map(|strip| launch.strip(strip));
        if let Some((number, _)) = fresh
            && launch.is_split()
        {
            parked.extend(launch.team(number));
            continue;
        }
        let mut machine = match fresh {
            Some((number, count)) => {
                let fits = spare.iter().position(|machine| machine.part.blocks == count);
                let mut machine = match fits {
                    Some(at) => spare.swap_remove(at),
                    None => Machine::new(launch, Part::whole(launch, count)),
                };
                machine.start(launch, number);
                machine
            }
            None => match parked.pop_front() {
                Some(machine) => machine,
                None => break,
            },
        };
        let number = machine.number();
        if let Some(races) = races.as_deref_mut() {
            races.enter(number);
        }
        let turn = machine.run(launch, races.as_deref_mut(), turn);
        naps = if matches!(turn, Ok(Turn::Napped)) {
            naps + 1
        } else {
            0
        };
        if !matches!(turn, Ok(Turn::Paused | Turn::Napped))
            && let Some((number, fault)) = machine.fault.take()
        {
            blocks.add(number, fault);
        }
        match turn {
            Ok(Turn::Done) => {
                let team = machine.part.team.take();
                let is_last = team.as_ref().is_none_or(|team| team.leave());
                if is_last && let Some(races) = races.as_deref_mut() {
                    races.leave(number);
                }
                if team.is_none() {
                    spare.push(machine);
                }
            }
            Ok(Turn::Paused | Turn::Napped) => {
                most = (PARKED_BYTES / machine.bytes().max(1)).max(2);
                parked.push_back(machine);
                if naps > parked.len() {
                    // Nobody has anything to do.
                    naps = 0;
                    rest();
                }
            }
            Err(error) => blocks.fail(error),
        }
    }
    // Those that an error stopped may have faulted before; it is the better explanation.
    for mut machine in parked {
        if let Some((number, fault)) = machine.fault.take() {
            blocks.add(number, fault);
        }
    }
}

/// Leaves the processor to others for a moment.
fn rest() {
    #[cfg(not(target_arch = "wasm32"))]
    std::thread::sleep(NAP);
}

/// Runs a program.
pub(super) fn launch(program: &Program, config: &LaunchConfig<'_>) -> Result<(), InterpError> {
    let launch = Launch::new(program, config)?;
    let blocks = Blocks::counted(&launch, launch.strips());
    if config.races == RaceMode::Detect {
        work(&blocks, Some(&mut Detector::new(&launch)));
        return blocks.end();
    }
    blocks.run(config.parallel, |blocks| work(blocks, None))
}
