//! A block that machine code runs: the state that the code works on, and how its gangs are entered and meet.

use super::serve::word;
use super::*;

/// When a lane does something, as the interpreter would order it: meetings, turns of loops, operation, lane.
pub(super) type Moment = (u64, u64, u32, u32);

/// A block that machine code runs.
pub(super) struct Group {
    pub(super) state: Vec<Line>,
    /// Of kernels whose gangs meet one for each gang, else one.
    pub(super) frames: Vec<Line>,
    pub(super) frame_lines: usize,
    pub(super) gangs: Vec<Gang>,
    /// Lanes of each gang that have faulted.
    pub(super) dead: Vec<u32>,
    /// Meetings that the block has passed.
    pub(super) phase: u64,
    pub(super) block: [u32; 3],
    pub(super) number: u64,
    pub(super) shared: Vec<Line>,
    pub(super) exchanged: Exchanged,
    pub(super) _constants: Vec<Line>,
    pub(super) level: Level,
    /// The first fault, and when it was.
    pub(super) fault: Option<(Moment, Box<Fault>)>,
    pub(super) error: Option<InterpError>,
    /// What a printer panicked with, while code was running.
    pub(super) panic: Option<Box<dyn Any + Send>>,
    /// Turns of loops since the group began its turn.
    pub(super) since: u64,
}

// SAFETY: the addresses in the state are those of the group's own vectors, and of buffers, which `BufferRef` allows any thread.
unsafe impl Send for Group {}

/// What the functions that code calls find behind the state's `host`.
pub(super) struct Host<'a> {
    pub(super) group: *mut Group,
    pub(super) installed: &'a Installed,
    pub(super) launch: &'a Launch<'a>,
}

impl Group {
    pub(super) fn new(installed: &Installed, launch: &Launch<'_>) -> Box<Group> {
        let (program, code) = (&installed.program, &installed.code);
        let mut constants = vec![Line::ZERO; program.constants.len().div_ceil(size_of::<Line>())];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut constants);
        if let Some(start) = bytes.get_mut(..program.constants.len()) {
            start.copy_from_slice(&program.constants);
        }
        let gangs = gangs(launch, code.lanes);
        let frame_lines = code.layout.frame.div_ceil(size_of::<Line>());
        let frames = if code.meets { gangs.len() } else { 1 };
        let mut group = Box::new(Group {
            state: vec![Line::ZERO; code.layout.bytes.div_ceil(size_of::<Line>()) + 1],
            frames: vec![Line::ZERO; frames * frame_lines],
            frame_lines,
            dead: vec![0; gangs.len()],
            gangs,
            phase: 0,
            block: [0; 3],
            number: 0,
            shared: vec![Line::ZERO; launch.shared_lines()],
            exchanged: Exchanged::default(),
            _constants: constants,
            level: Level::detect(),
            fault: None,
            error: None,
            panic: None,
            since: 0,
        });
        for (i, gang) in group.gangs.iter_mut().enumerate() {
            let own = if frames > 1 { i * frame_lines } else { 0 };
            gang.frame = group.frames.as_mut_ptr().wrapping_add(own) as usize;
        }
        let shared = group.shared.as_mut_ptr().cast::<u8>();
        let constants = group._constants.as_mut_ptr().cast::<u8>();
        for (number, region) in program.regions.iter().enumerate() {
            let (ptr, len) = match region.kind {
                RegionKind::Buffer { param, .. } => {
                    let BufferRef { ptr, len, .. } = launch.buffer(param);
                    (ptr, len)
                }
                RegionKind::Shared { offset, size } => (shared.wrapping_add(offset as usize), size as usize),
                RegionKind::Dynamic => (shared.wrapping_add(launch.dynamic_offset()), launch.dynamic_bytes),
                RegionKind::Constant { offset, size } => {
                    (constants.wrapping_add(offset as usize), size as usize)
                }
            };
            let elements = (len / region.element.max(1) as usize) as u64;
            let at = VIEWS + number * VIEW_BYTES;
            group.set(at, ptr as u64);
            group.set(at + 8, elements);
            group.set(at + 16, elements.saturating_sub(u64::from(code.lanes) - 1));
        }
        let data = &code.layout.data;
        let at = code.layout.constants;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut group.state);
        if let Some(to) = bytes.get_mut(at..at + data.len()) {
            to.copy_from_slice(data);
        }
        for number in 0..program.fills.len() {
            group.fill(installed, launch, number);
        }
        let header = group.header();
        header.call = call as *const () as usize;
        header.poll = poll as *const () as usize;
        header.subgroup_mask = u64::from(launch.subgroup - 1);
        group
    }

    pub(super) fn header(&mut self) -> &mut Header {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.state);
        // SAFETY: the state is longer than a header and aligned to 64 bytes; any bits are a header.
        unsafe { &mut *bytes.as_mut_ptr().cast::<Header>() }
    }

    pub(super) fn set(&mut self, at: usize, bits: u64) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.state);
        if let Some(to) = bytes.get_mut(at..at + 8) {
            to.copy_from_slice(&bits.to_ne_bytes());
        }
    }

    pub(super) fn get(&self, at: usize) -> u64 {
        word(bytemuck::cast_slice(&self.state), at)
    }

    pub(super) fn fill(&mut self, installed: &Installed, launch: &Launch<'_>, number: usize) {
        let program = &installed.program;
        let Some((reg, fill)) = program.fills.get(number) else {
            return;
        };
        let size = program.registers.get(*reg as usize).copied().unwrap_or(8);
        let shape = launch.shape;
        let bits = match *fill {
            Fill::Constant(bits) => bits & u64::MAX >> (64 - 8 * size),
            Fill::Param { param, offset } => launch.scalar(param, offset, size),
            Fill::Bool { param, offset } => u64::from(launch.scalar(param, offset, 1) != 0),
            Fill::Len(region) => self.get(VIEWS + region as usize * VIEW_BYTES + 8),
            Fill::Builtin(b) => u64::from(match b {
                // Of each gang its own.
                Builtin::ThreadIdx(_) | Builtin::SubgroupLane => 0,
                Builtin::BlockIdx(axis) => self.block[axis as usize],
                Builtin::BlockDim(axis) => shape.block[axis as usize],
                Builtin::GridDim(axis) => shape.grid[axis as usize],
                Builtin::SubgroupSize => launch.subgroup,
            }),
        };
        self.set(installed.code.layout.fills + 8 * number, bits);
    }

    pub(super) fn bytes(&self) -> usize {
        (self.state.len() + self.frames.len() + self.shared.len()) * size_of::<Line>()
    }

    /// Gets ready for block `number`.
    pub(super) fn start(&mut self, installed: &Installed, launch: &Launch<'_>, number: u64) {
        self.number = number;
        self.block = launch.shape.position(number);
        for (i, (_, fill)) in installed.program.fills.iter().enumerate() {
            if let Fill::Builtin(Builtin::BlockIdx(axis)) = fill {
                let index: u32 = self.block[*axis as usize];
                self.set(installed.code.layout.fills + 8 * i, index.into());
            }
        }
        self.shared.fill(Line::ZERO);
        self.dead.fill(0);
        self.fault = None;
        self.phase = 0;
        self.gangs.iter_mut().for_each(|gang| gang.resume = 0);
        self.rewind();
    }

    /// The first gang is next.
    pub(super) fn rewind(&mut self) {
        let first = self.gangs.as_mut_ptr() as usize;
        let all = self.gangs.len() * GANG_BYTES as usize;
        let header = self.header();
        header.gang = first;
        header.gang_end = first + all;
    }

    /// Enters the code; gives what it came to.
    pub(super) fn enter(&mut self, installed: &Installed, launch: &Launch<'_>) -> u32 {
        let host = Host {
            group: self,
            installed,
            launch,
        };
        let header = self.header();
        header.host = &raw const host as usize;
        header.budget = TURNS;
        let state = self.state.as_mut_ptr().cast::<u8>();
        // SAFETY: the code is that of the program whose layout made the state and the frames (`install`'s contract); the launch's
        // arguments have been checked against it, and `allows` against its assumptions. It reaches memory through views, after it
        // has compared each index with the length, and calls back through `call` and `poll` with this state.
        let became = unsafe { (installed.entry)(state) };
        if let Some(panic) = self.panic.take() {
            std::panic::resume_unwind(panic);
        }
        became
    }

    pub(super) fn run(&mut self, installed: &Installed, launch: &Launch<'_>) -> Result<Turn, InterpError> {
        self.since = 0;
        loop {
            match self.enter(installed, launch) {
                DONE if !installed.code.meets => return Ok(Turn::Done),
                DONE => {}
                PAUSED => return Ok(Turn::Paused),
                _ => return Err(self.stopped(launch)),
            }
            if self.gangs.iter().all(|gang| gang.resume == GANG_DONE) {
                return Ok(Turn::Done);
            }
            self.meet(installed, launch)?;
            self.phase += 1;
            self.rewind();
        }
    }

    pub(super) fn stopped(&mut self, launch: &Launch<'_>) -> InterpError {
        self.error.take().unwrap_or_else(|| InterpError::Cancelled {
            kernel: launch.program.name.clone(),
        })
    }

    /// Index of the gang that runs.
    pub(super) fn gang(&mut self) -> usize {
        let first = self.gangs.as_ptr() as usize;
        (self.header().gang - first) / GANG_BYTES as usize
    }
}
