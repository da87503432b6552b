//! Launches: what the caller gives, checked.

use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::error::{AccessKind, InterpError, Race, RacingAccess, Space};
use super::memory::BufferRef;
use super::program::{ParameterKind, Program, RegionKind};
use super::race::{Found, Stamp};
use crate::eval::Line;
use perpetua_ir::fault::Fault;

/// Most lanes of a block.
pub const MAX_LANES: u32 = 1 << 16;

/// One argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// For a buffer parameter: its memory. Its length in elements is as many as its bytes hold.
    Buffer(BufferRef<'a>),
    /// For a value parameter: its bytes as in memory.
    Value(&'a [u8]),
}

/// Whether races are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum RaceMode {
    /// No.
    #[default]
    Off,
    /// Yes: the launch stops at the first race, with [`InterpError::Race`]. Blocks run on one thread then, and an
    /// access costs some hundred nanoseconds.
    Detect,
}

/// A line that a lane printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed<'a> {
    /// The line, without its end.
    pub text: &'a str,
    /// Source line, 0 when unknown.
    pub line: u32,
    /// Block index.
    pub block: [u32; 3],
    /// Lane index in the block.
    pub thread: [u32; 3],
}

/// Takes what kernels print; called from the threads that run them.
pub type PrintSink<'a> = &'a (dyn Fn(&Printed<'_>) + Sync);

/// Takes faults that kernels catch; called as a [`PrintSink`] is.
pub type FaultSink<'a> = &'a (dyn Fn(Box<Fault>) + Sync);

/// Calls the function that it is given on as many threads as it likes, once at least on each, and returns when
/// all calls have returned: for example rayon's `broadcast`.
pub type Spread<'a> = &'a (dyn Fn(&(dyn Fn() + Sync)) + Sync);

/// On which threads blocks run.
#[derive(Clone, Copy, Default)]
pub enum Parallel<'a> {
    /// On the caller's, one after another.
    #[default]
    Off,
    /// On so many, the caller's among them.
    Threads(NonZero<usize>),
    /// On the caller's own pool.
    Spread(Spread<'a>),
}

impl fmt::Debug for Parallel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parallel::Off => f.write_str("Off"),
            Parallel::Threads(n) => write!(f, "Threads({n})"),
            Parallel::Spread(_) => f.write_str("Spread"),
        }
    }
}

/// What a launch is given.
#[derive(Clone, Copy)]
pub struct LaunchConfig<'a> {
    /// Blocks, x, y, z. None along an axis: nothing runs.
    pub grid: [u32; 3],
    /// Lanes per block, x, y, z.
    pub block: [u32; 3],
    /// Only these of the grid's blocks run: the number of the first, and how many. Blocks are numbered along x, then y, then z.
    pub blocks: Option<(u64, u64)>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// Lanes of a subgroup: a power of two, 128 at most.
    pub subgroup_size: u32,
    /// Arguments, in the order of the kernel's parameters.
    pub args: &'a [Arg<'a>],
    /// Whether races are looked for.
    pub races: RaceMode,
    /// Where prints go; nowhere if there is none.
    pub print: Option<PrintSink<'a>>,
    /// Most operations that all blocks together may execute, looked at every thousand or so.
    pub step_budget: Option<u64>,
    /// Stops the launch soon after it turns true.
    pub cancel: Option<&'a AtomicBool>,
    /// On which threads blocks run.
    pub parallel: Parallel<'a>,
    /// What the numbers of fault sites begin with that the kernel itself gets to see.
    pub site_base: u32,
    /// Who hears of faults that the kernel catches, while it goes on.
    pub caught: Option<FaultSink<'a>>,
}

impl<'a> LaunchConfig<'a> {
    /// A launch on the caller's thread, with subgroups of 32 lanes and everything else off.
    pub fn new(grid: [u32; 3], block: [u32; 3], args: &'a [Arg<'a>]) -> LaunchConfig<'a> {
        LaunchConfig {
            grid,
            block,
            blocks: None,
            dynamic_shared_bytes: 0,
            subgroup_size: 32,
            args,
            races: RaceMode::Off,
            print: None,
            step_budget: None,
            cancel: None,
            parallel: Parallel::Off,
            site_base: 0,
            caught: None,
        }
    }
}

impl fmt::Debug for LaunchConfig<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchConfig")
            .field("grid", &self.grid)
            .field("block", &self.block)
            .field("blocks", &self.blocks)
            .field("dynamic_shared_bytes", &self.dynamic_shared_bytes)
            .field("subgroup_size", &self.subgroup_size)
            .field("args", &self.args)
            .field("races", &self.races)
            .field("step_budget", &self.step_budget)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// Grid and block.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
}

impl Shape {
    /// Lanes of a block.
    pub(super) fn lanes(&self) -> usize {
        self.block.iter().map(|n| *n as usize).product()
    }

    /// Index of a lane in its block.
    pub(super) fn thread(&self, lane: usize) -> [u32; 3] {
        let [x, y, _] = self.block.map(|n| n.max(1) as usize);
        [(lane % x) as u32, (lane / x % y) as u32, (lane / (x * y)) as u32]
    }

    fn groups(&self) -> Option<u64> {
        let [x, y, z] = self.grid.map(u64::from);
        (x * y).checked_mul(z)
    }

    /// Index of the block with a number.
    pub(super) fn position(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(|n| u64::from(n.max(1)));
        [
            (number % x) as u32,
            (number / x % y) as u32,
            (number / x / y) as u32,
        ]
    }
}

/// Most lanes of blocks that run side by side: so many that an operation's own cost is shared, and what they compute stays in the
/// second cache.
const STRIP: u32 = 2048;

/// Strips that there should be, at least, where several threads may run them.
const STRIPS: u64 = 32;

/// A launch whose arguments are checked.
pub(super) struct Launch<'a> {
    pub(super) program: &'a Program,
    pub(super) shape: Shape,
    pub(super) subgroup: u32,
    pub(super) dynamic_bytes: usize,
    pub(super) print: Option<PrintSink<'a>>,
    args: &'a [Arg<'a>],
    /// Number of the first block that runs.
    pub(super) first: u64,
    /// How many do.
    pub(super) groups: u64,
    /// Most blocks that run side by side as one, along x.
    strip: u32,
    /// Operations that are left.
    budget: Option<(u64, AtomicU64)>,
    cancel: Option<&'a AtomicBool>,
    pub(super) site_base: u32,
    pub(super) caught: Option<FaultSink<'a>>,
}

impl<'a> Launch<'a> {
    pub(super) fn new(program: &'a Program, config: &LaunchConfig<'a>) -> Result<Launch<'a>, InterpError> {
        let shape = Shape {
            grid: config.grid,
            block: config.block,
        };
        let wrong = |problem: String| InterpError::Shape {
            kernel: program.name.clone(),
            problem,
        };
        let [x, y, z] = config.block.map(u64::from);
        let lanes = (x * y).saturating_mul(z);
        if lanes == 0 || lanes > u64::from(MAX_LANES) {
            let block = config.block;
            return Err(wrong(format!(
                "a block of {block:?} has {lanes} lanes, at least 1 and at most {MAX_LANES} are possible"
            )));
        }
        if let Some(fixed) = program.block_size.filter(|fixed| *fixed != config.block) {
            return Err(wrong(format!(
                "the block is {:?}, the kernel fixes it at {fixed:?}",
                config.block
            )));
        }
        if !config.subgroup_size.is_power_of_two() || config.subgroup_size > 128 {
            return Err(wrong(format!(
                "subgroups of {} lanes are not possible: use a power of two up to 128",
                config.subgroup_size
            )));
        }
        let groups = shape
            .groups()
            .filter(|n| config.races == RaceMode::Off || *n <= u64::from(u32::MAX));
        let groups =
            groups.ok_or_else(|| wrong(format!("a grid of {:?} has too many blocks", config.grid)))?;
        let (first, groups) = config.blocks.map_or((0, groups), |(first, count)| {
            let first = first.min(groups);
            (first, count.min(groups - first))
        });
        check_args(program, config.args)?;
        // A part of the blocks need not be whole strips.
        let whole = config.races == RaceMode::Off && config.blocks.is_none();
        let mut strip = match program.mergeable && whole && config.grid[0] < 1 << 31 {
            true => (STRIP / lanes as u32).clamp(1, config.grid[0].max(1)),
            false => 1,
        };
        if !matches!(config.parallel, Parallel::Off) {
            strip = u64::from(strip).min(groups / STRIPS).max(1) as u32;
        }
        // As many strips, of about one length.
        strip = config.grid[0]
            .div_ceil(config.grid[0].div_ceil(strip).max(1))
            .max(1);
        Ok(Launch {
            strip,
            program,
            shape,
            subgroup: config.subgroup_size,
            dynamic_bytes: config.dynamic_shared_bytes as usize,
            print: config.print,
            args: config.args,
            first,
            groups,
            budget: config.step_budget.map(|n| (n, AtomicU64::new(n))),
            cancel: config.cancel,
            site_base: config.site_base,
            caught: config.caught,
        })
    }

    /// Strips of the launch: runs of blocks along x that run side by side.
    pub(super) fn strips(&self) -> u64 {
        let [x, y, z] = self.shape.grid.map(u64::from);
        match self.strip {
            1 => self.groups,
            strip => x.div_ceil(strip.into()) * y * z,
        }
    }

    /// The blocks of a strip: number of the first, and how many.
    pub(super) fn strip(&self, number: u64) -> (u64, u32) {
        let x = self.shape.grid[0];
        let in_row = u64::from(x.div_ceil(self.strip)).max(1);
        let first = (number % in_row) as u32 * self.strip;
        (
            number / in_row * u64::from(x) + u64::from(first),
            self.strip.min(x - first),
        )
    }

    /// Nanoseconds, since a moment that is the same for all launches of the process.
    pub(super) fn clock(&self) -> u64 {
        // Browsers have no such clock for WebAssembly without their library.
        #[cfg(target_arch = "wasm32")]
        return 0;
        #[cfg(not(target_arch = "wasm32"))]
        {
            static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
            START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
        }
    }

    /// The memory of a buffer parameter.
    pub(super) fn buffer(&self, param: u32) -> BufferRef<'a> {
        match self.args.get(param as usize) {
            Some(Arg::Buffer(buffer)) => *buffer,
            _ => BufferRef::empty(),
        }
    }

    /// A scalar of a value parameter.
    pub(super) fn scalar(&self, param: u32, offset: u32, size: u32) -> u64 {
        let Some(Arg::Value(bytes)) = self.args.get(param as usize) else {
            return 0;
        };
        let (offset, size) = (offset as usize, size as usize);
        let bytes = bytes.get(offset..offset + size).unwrap_or_default();
        match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// A parameter that is an unsigned number.
    pub(super) fn number(&self, param: u32) -> u64 {
        match self.args.get(param as usize) {
            Some(Arg::Value(bytes)) => self.scalar(param, 0, bytes.len() as u32),
            _ => 0,
        }
    }

    /// Where dynamic shared memory starts.
    pub(super) fn dynamic_offset(&self) -> usize {
        let align = self.program.dynamic_align.max(1);
        self.program.shared_bytes.next_multiple_of(align) as usize
    }

    /// Bytes of shared memory.
    pub(super) fn shared_bytes(&self) -> usize {
        self.dynamic_offset() + self.dynamic_bytes
    }

    /// Lines of shared memory.
    pub(super) fn shared_lines(&self) -> usize {
        self.shared_bytes().div_ceil(size_of::<Line>())
    }

    /// Takes operations off the budget.
    pub(super) fn charge(&self, steps: u64) -> Result<(), InterpError> {
        let kernel = || self.program.name.clone();
        if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(InterpError::Cancelled { kernel: kernel() });
        }
        if let Some((budget, left)) = &self.budget {
            let spent = |left: u64| left.checked_sub(steps);
            if left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
                .is_err()
            {
                left.store(0, Ordering::Relaxed);
                return Err(InterpError::Deadline {
                    kernel: kernel(),
                    budget: *budget,
                });
            }
        }
        Ok(())
    }

    /// A race as the user reads it.
    pub(super) fn race(&self, found: Found) -> Race {
        let region = &self.program.regions[found.region as usize];
        let access = |stamp: Stamp| RacingAccess {
            kind: match stamp.kind {
                // It was no update after all.
                AccessKind::AtomicUpdate if !stamp.writes => AccessKind::AtomicLoad,
                kind => kind,
            },
            line: self.program.lines[stamp.pc as usize],
            block: self.shape.position(stamp.block.into()),
            thread: self.shape.thread(stamp.lane as usize),
        };
        Race {
            kernel: self.program.name.clone(),
            source: self.program.source.clone(),
            space: match region.kind {
                RegionKind::Buffer { .. } | RegionKind::Constant { .. } => Space::Global,
                RegionKind::Shared { .. } | RegionKind::Dynamic => Space::Shared,
            },
            subject: region.name.clone(),
            element: found.byte / u64::from(region.element.max(1)),
            byte: found.byte,
            first: access(found.first),
            second: access(found.second),
        }
    }
}

fn check_args(program: &Program, args: &[Arg<'_>]) -> Result<(), InterpError> {
    let wrong = |index: usize, problem: String| InterpError::Argument {
        kernel: program.name.clone(),
        index,
        parameter: program
            .params
            .get(index)
            .map_or_else(String::new, |p| p.name.clone()),
        problem,
    };
    if args.len() != program.params.len() {
        let (given, taken) = (args.len(), program.params.len());
        let index = given.min(taken);
        return Err(wrong(
            index,
            format!("{given} arguments are given, the kernel takes {taken}"),
        ));
    }
    for (i, (param, arg)) in program.params.iter().zip(args).enumerate() {
        match (&param.kind, arg) {
            (ParameterKind::Buffer { align }, Arg::Buffer(buffer)) => {
                let address = buffer.ptr.addr();
                if buffer.len > 0 && !address.is_multiple_of(*align as usize) {
                    return Err(wrong(
                        i,
                        format!("the address {address:#x} is not a multiple of {align}"),
                    ));
                }
            }
            (ParameterKind::Value { size }, Arg::Value(bytes)) => {
                if bytes.len() != *size as usize {
                    let n = bytes.len();
                    return Err(wrong(i, format!("{n} bytes are given, the value has {size}")));
                }
            }
            (ParameterKind::Buffer { .. }, Arg::Value(_)) => {
                return Err(wrong(i, "a value is given, the parameter is a buffer".into()));
            }
            (ParameterKind::Value { .. }, Arg::Buffer(_)) => {
                return Err(wrong(i, "a buffer is given, the parameter is a value".into()));
            }
        }
    }
    Ok(())
}
