//! Runs blocks by machine code: makes the state that the code works on, enters it for runs of blocks, and answers its calls as the
//! interpreter's own operations would. Generates no code, and knows nothing of where it lies.

mod cache;
mod group;
mod meet;
mod serve;

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::AssertUnwindSafe;

use group::{Group, Host};
use meet::Exchanged;

use super::error::InterpError;
use super::flatten;
use super::launch::{Launch, LaunchConfig, Printed, RaceMode};
use super::machine::{Turn, exchange, perform_access};
use super::memory::{BufferRef, Cell};
use super::program::{Code, Fill, Program, RegionKind};
use super::turns::Blocks;
use crate::eval::{self, Level, Line, WordLines, division_fault, result_scalar};
use crate::interp::code::layout::*;
use crate::interp::code::notes::{self, Note};
use crate::interp::code::tree::{AccessKind, AtomicKind};
use crate::interp::code::{Generated, Refusal, Width, generate};
use perpetua_ir::fault::{Fault, record};
use perpetua_ir::ir::{Builtin, FaultKind, Scalar};
use perpetua_ir::ops::{BinaryOp, Second};
use perpetua_ir::pass::{Operation, expand};
use perpetua_ir::verify::Verified;

/// Turns of loops between two looks at budget and clock.
const TURNS: i64 = 1 << 12;

/// Turns of loops after which a block that may wait for others lets them run.
const PATIENCE: u64 = 1 << 16;

/// What a turn of a loop counts for in a step budget.
const STEPS_A_TURN: u64 = 8;

/// Most blocks that a thread takes at once.
const CHUNK: u64 = 1 << 10;

/// Lanes that a thread takes at once, or more, where there are enough.
const CHUNK_LANES: u64 = 1 << 12;

/// Lanes of a row of the blocks that code takes for one. More of them need a longer table of gangs, which goes through the first cache
/// beside the data.
const ABREAST: u32 = 1 << 9;

/// Memory for blocks that wait for their turn, in bytes.
const PARKED_BYTES: usize = 256 << 20;

/// A kernel's machine code, not yet where it can run.
pub struct MachineCode {
    program: Program,
    code: Generated,
}

impl MachineCode {
    /// Generates code of a kernel, for a processor that has vectors of this width.
    ///
    /// # Errors
    /// Why the kernel stays in the interpreter.
    pub fn generate(kernel: &Verified, width: Width) -> Result<MachineCode, Refusal> {
        let program = MachineCode::program(kernel)?;
        let code = generate(&program, width)?;
        Ok(MachineCode { program, code })
    }

    fn program(kernel: &Verified) -> Result<Program, Refusal> {
        let expanded =
            perpetua_ir::pass::expand_library(kernel.kernel().clone(), perpetua_ir::pass::Sums::Rearranged);
        // Vectors have no upper halves of products; made of lower ones they stay out of the host's hands.
        let expanded = expand(expanded, &|operation| match operation {
            Operation::Binary(BinaryOp::MulHigh, s) => s.bits() > 32,
            _ => true,
        });
        let mut program =
            flatten::flatten(&expanded).map_err(|_| Refusal::Unknown("an ill-typed operation"))?;
        program.ends_together = kernel.facts().relies_on_shared();
        Ok(program)
    }

    /// What code for such a processor makes of each line.
    ///
    /// # Errors
    /// Why the kernel stays in the interpreter.
    pub fn notes(kernel: &Verified, width: Width) -> Result<Vec<Note>, Refusal> {
        notes::notes(&MachineCode::program(kernel)?, width)
    }

    /// What the code leaves to the host, by source line: operators without instructions of their own, and accesses of rare shapes.
    pub fn calls(&self) -> Vec<(u32, String)> {
        let line = |site: &Site| self.program.lines.get(site.pc as usize).copied().unwrap_or(0);
        let always = self.code.sites.iter().filter(|site| site.always);
        always
            .map(|site| (line(site), notes::name(&self.program, site)))
            .collect()
    }

    /// The instructions as text, with the lines of `source`, which the kernel was made of, before what they have become.
    #[cfg(feature = "assembly")]
    pub fn assembly(&self, source: &str) -> String {
        let line = |pc: u32| self.program.lines.get(pc as usize).copied().unwrap_or(0);
        let marks: Vec<(u32, u32)> = self.code.marks.iter().map(|(at, pc)| (*at, line(*pc))).collect();
        super::code::listing::listing(&self.code.bytes, &marks, source)
    }

    /// The instructions. They may lie anywhere.
    pub fn bytes(&self) -> &[u8] {
        &self.code.bytes
    }
}

/// The signatures of the code, which takes the state and gives what became of the gangs, and of what it calls.
macro_rules! calling {
    ($convention:literal) => {
        type Entry = unsafe extern $convention fn(*mut u8) -> u32;

        /// What code calls about a site.
        unsafe extern $convention fn call(state: *mut u8, site: u64) -> u64 {
            // SAFETY: code passes the state that `enter` gave it.
            unsafe { serve_site(state, site) }
        }

        /// What code asks when its loops have turned for long.
        unsafe extern $convention fn poll(state: *mut u8) -> u64 {
            // SAFETY: as in `call`.
            unsafe { look_up(state) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
calling!("sysv64");
#[cfg(target_arch = "aarch64")]
calling!("C");

/// All blocks of the run are done.
const DONE: u32 = 0;
/// Gangs wait for each other.
const MEETING: u32 = 1;
/// The host wished to go on later.
const PAUSED: u32 = 2;
/// The host wished to stop.
const STOPPED: u32 = 3;

/// Code that can run.
pub(super) struct Installed {
    program: Program,
    code: Generated,
    entry: Entry,
    /// Whether its blocks may wait for each other.
    may_wait: bool,
    _keep: Box<dyn Any + Send + Sync>,
}

impl Installed {
    /// See [`Interpreter::install`](super::Interpreter::install), which passes its contract on.
    pub(super) fn new(code: MachineCode, entry: *const u8, keep: Box<dyn Any + Send + Sync>) -> Installed {
        let MachineCode { program, code } = code;
        // SAFETY: the caller of `install` guarantees that the code lies there.
        unsafe { cache::make_visible(entry, code.bytes.len()) };
        // A loop that looks at what others write: an atomic operation on a buffer, or a load of one that is no constant.
        let waits = |c: &Code| {
            let (access, load) = match c {
                Code::Atomic { access, .. } => (access, false),
                Code::Load { access } => (access, true),
                _ => return false,
            };
            let region = program.accesses.get(*access as usize).map(|a| a.region as usize);
            let region = region.and_then(|region| program.regions.get(region));
            region.is_none_or(|r| matches!(r.kind, RegionKind::Buffer { writable, .. } if writable || !load))
        };
        let may_wait = code.loops && (program.synchronises || program.code.iter().any(waits));
        Installed {
            program,
            code,
            // SAFETY: the caller of `install` guarantees that the address is that of the generated code, which has this signature.
            entry: unsafe { std::mem::transmute::<*const u8, Entry>(entry) },
            may_wait,
            _keep: keep,
        }
    }

    /// Whether blocks of a launch may wait for each other.
    pub(super) fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Whether the code's assumptions hold for a launch.
    pub(super) fn allows(&self, config: &LaunchConfig<'_>) -> bool {
        let axes = config.grid.iter().zip(config.block);
        let small = |(grid, block): (&u32, u32)| u64::from(*grid) * u64::from(block) < (1 << 31) - (1 << 16);
        let mut buffers = self.program.regions.iter().zip(&self.code.limits);
        config.races == RaceMode::Off
            && axes.into_iter().all(small)
            && buffers.all(|(region, limit)| match region.kind {
                RegionKind::Buffer { param, .. } => match config.args.get(param as usize) {
                    Some(super::Arg::Buffer(buffer)) => (buffer.len() as u64) < *limit,
                    _ => true,
                },
                _ => true,
            })
    }

    pub(super) fn launch(&self, config: &LaunchConfig<'_>) -> Result<(), InterpError> {
        let launch = Launch::new(&self.program, config)?;
        Blocks::of(&launch).run(config.parallel, |blocks| work(self, blocks))
    }
}

/// When a lane does something, as the interpreter would order it: meetings, turns of loops, operation, lane.
type Moment = (u64, u64, u32, u32);

/// Blocks that code runs in one go: neighbours along x, in one row of the grid or in several whole ones.
struct Run {
    first: u64,
    along_x: u64,
    rows: u64,
}

impl Run {
    /// The first of these blocks that are one.
    /// `abreast` blocks run side by side, or all that are left of a row.
    fn take(launch: &Launch<'_>, abreast: u64, from: &mut Range<u64>) -> Option<Run> {
        let (first, left) = (from.start, from.end.saturating_sub(from.start));
        let columns = u64::from(launch.shape.grid[0].max(1));
        let rest = columns - first % columns;
        let (along_x, rows) = match rest == columns && left >= columns && columns.is_multiple_of(abreast) {
            true => (columns, left / columns),
            false => {
                let some = rest.min(left);
                (
                    if some > abreast {
                        some - some % abreast
                    } else {
                        some
                    },
                    1,
                )
            }
        };
        from.start += along_x * rows;
        (left > 0).then_some(Run { first, along_x, rows })
    }
}

/// Runs blocks until none is left.
fn work(installed: &Installed, blocks: &Blocks<'_>) {
    let launch = blocks.launch;
    let (mut parked, mut spare) = (VecDeque::<Box<Group>>::new(), Vec::<Box<Group>>::new());
    let mut most = usize::MAX;
    let enough = CHUNK_LANES / launch.shape.lanes().max(1) as u64;
    let least = (launch.groups / 128)
        .max(enough.min(launch.groups / 32))
        .clamp(1, CHUNK);
    blocks.join();
    let mut mine = 0..0;
    let abreast = abreast(installed, launch);
    while !blocks.has_failed() {
        if mine.is_empty() && parked.len() < most {
            mine = blocks.take(match installed.may_wait {
                // A block that waits for another must not keep this from starting.
                true => 1,
                false => evened(blocks.share().clamp(least, CHUNK), launch, abreast),
            });
        }
        let run = (parked.len() < most)
            .then(|| Run::take(launch, abreast, &mut mine))
            .flatten();
        let mut group = match run {
            Some(run) => {
                if let Err(error) = launch.charge(run.along_x * run.rows) {
                    blocks.fail(error);
                    break;
                }
                let mut group = spare
                    .pop()
                    .unwrap_or_else(|| Group::new(installed, launch, abreast));
                group.start(launch, &run);
                group
            }
            None => match parked.pop_front() {
                Some(group) => group,
                None => break,
            },
        };
        let turn = group.run(installed, launch);
        if !matches!(turn, Ok(Turn::Paused | Turn::Napped))
            && let Some((number, _, fault)) = group.fault.take()
        {
            blocks.add(number, fault);
        }
        match turn {
            Ok(Turn::Done) => spare.push(group),
            Ok(Turn::Paused | Turn::Napped) => {
                most = (PARKED_BYTES / group.bytes().max(1)).max(2);
                parked.push_back(group);
            }
            Err(error) => blocks.fail(error),
        }
    }
    for mut group in parked {
        if let Some((number, _, fault)) = group.fault.take() {
            blocks.add(number, fault);
        }
    }
}

/// So many blocks or fewer: whole rows of the grid, or as many as code takes for one.
fn evened(blocks: u64, launch: &Launch<'_>, abreast: u64) -> u64 {
    let columns = u64::from(launch.shape.grid[0].max(1));
    let even = if blocks < columns { abreast } else { columns };
    if blocks < even {
        blocks
    } else {
        blocks - blocks % even
    }
}

/// How many blocks along x code takes for one.
fn abreast(installed: &Installed, launch: &Launch<'_>) -> u64 {
    let ([columns, ..], [width, ..]) = (launch.shape.grid, launch.shape.block);
    let can = installed.program.mergeable && installed.code.by_rows && width % installed.code.lanes == 0;
    match can {
        true => (ABREAST / width).clamp(1, columns.max(1)).into(),
        false => 1,
    }
}

/// The gangs of so many blocks: rows in runs of `lanes`.
fn gangs(launch: &Launch<'_>, abreast: u64, lanes: u32) -> Vec<Gang> {
    let [width, height, depth] = launch.shape.block;
    let mut gangs = Vec::new();
    for z in 0..depth {
        for y in 0..height {
            for x in (0..width * abreast as u32).step_by(lanes as usize) {
                // Of several blocks each has whole gangs.
                let inside = x % width;
                let count = (width - inside).min(lanes);
                gangs.push(Gang {
                    x: x.into(),
                    y: y.into(),
                    z: z.into(),
                    first: (inside + width * (y + height * z)).into(),
                    mask: u64::MAX >> (64 - count),
                    resume: 0,
                    unused: [0; 2],
                });
            }
        }
    }
    gangs
}

/// Does what a site is about.
///
/// # Safety
/// The state must be that of a group that is entered.
unsafe fn serve_site(state: *mut u8, site: u64) -> u64 {
    // SAFETY: code passes the state that `enter` gave it, whose `host` outlives the run; code waits meanwhile, and touches the group
    // through the state alone, so this is the only reference to it.
    let (host, mask) = unsafe {
        let header = &*state.cast::<Header>();
        (&*(header.host as *const Host<'_>), header.mask)
    };
    // SAFETY: as above.
    let group = unsafe { &mut *host.group };
    let Some(site) = host.installed.code.sites.get(site as usize) else {
        return mask;
    };
    // Code has no frames that unwinding could pass: what a printer panics with goes on when the code has come to its end.
    let serve = AssertUnwindSafe(|| group.serve(host.installed, host.launch, site, mask));
    match std::panic::catch_unwind(serve) {
        Ok(left) => left,
        Err(panic) => {
            // SAFETY: as above; the closure's reference is gone.
            unsafe { (*host.group).panic = Some(panic) };
            0
        }
    }
}

/// Counts turns of loops; tells whether to go on.
///
/// # Safety
/// As for [`serve_site`].
unsafe fn look_up(state: *mut u8) -> u64 {
    // SAFETY: as in `serve_site`.
    let host = unsafe { &*((*state.cast::<Header>()).host as *const Host<'_>) };
    // SAFETY: as in `serve_site`.
    let group = unsafe { &mut *host.group };
    let header = group.header();
    let done = TURNS - header.budget;
    header.budget = TURNS;
    header.budget_before += done;
    group.since += done as u64;
    if let Err(error) = host.launch.charge(done as u64 * STEPS_A_TURN) {
        group.error = Some(error);
        return STOPPED.into();
    }
    if host.installed.may_wait && group.since >= PATIENCE {
        return PAUSED.into();
    }
    0
}
