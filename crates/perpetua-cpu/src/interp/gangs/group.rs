//! Blocks that machine code runs: the state that the code works on, and how it is entered.

use super::serve::word;
use super::*;

/// Blocks that machine code runs, one after the other or row by row.
pub(super) struct Group {
    pub(super) state: Vec<Line>,
    /// Of kernels whose gangs meet: each gang's frame, its entry first.
    pub(super) frames: Vec<Line>,
    /// Entries of the gangs; what they do stands in their frames, where they have such.
    pub(super) gangs: Vec<Gang>,
    /// Lanes of each gang of a block that have faulted, and the block's number.
    pub(super) dead: (u64, Vec<u64>),
    pub(super) shared: Vec<Line>,
    pub(super) exchanged: Exchanged,
    pub(super) _constants: Vec<Line>,
    pub(super) level: Level,
    /// The first fault of the lowest block, with its number, and when it was.
    pub(super) fault: Option<(u64, Moment, Box<Fault>)>,
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
    pub(super) fn new(installed: &Installed, launch: &Launch<'_>, abreast: u64) -> Box<Group> {
        let (program, code) = (&installed.program, &installed.code);
        let mut constants = vec![Line::ZERO; program.constants.len().div_ceil(size_of::<Line>())];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut constants);
        if let Some(start) = bytes.get_mut(..program.constants.len()) {
            start.copy_from_slice(&program.constants);
        }
        let gangs = gangs(launch, abreast, code.lanes);
        let count = gangs.len();
        let mut group = Box::new(Group {
            state: vec![Line::ZERO; code.layout.bytes.div_ceil(size_of::<Line>()) + 1],
            frames: Vec::new(),
            dead: (0, vec![0; count]),
            gangs,
            shared: vec![Line::ZERO; launch.shared_lines()],
            exchanged: Exchanged::default(),
            _constants: constants,
            level: Level::detect(),
            fault: None,
            error: None,
            panic: None,
            since: 0,
        });
        let (mut table, mut stride) = (group.gangs.as_mut_ptr() as usize, GANG_BYTES);
        if code.meets {
            stride = code.layout.frame;
            group.frames = vec![Line::ZERO; (count * stride).div_ceil(size_of::<Line>())];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut group.frames);
            for (frame, gang) in bytes.chunks_exact_mut(stride).zip(&group.gangs) {
                let words = [gang.x, gang.y, gang.z, gang.first, gang.mask, gang.resume];
                for (to, word) in frame.chunks_exact_mut(8).zip(words) {
                    to.copy_from_slice(&word.to_ne_bytes());
                }
            }
            table = group.frames.as_mut_ptr() as usize;
        }
        let in_row = abreast as usize * (launch.shape.block[0] as usize).div_ceil(code.lanes as usize);
        let shared = group.shared.as_mut_ptr() as usize;
        let shared_end = shared + group.shared.len() * size_of::<Line>();
        let header = group.header();
        header.stride = stride;
        header.gangs = table;
        header.gangs_end = table + count * stride;
        header.row_bytes = if code.by_rows { in_row } else { count } * stride;
        header.count = count as u64;
        header.x_step = abreast;
        header.grid_y = launch.shape.grid[1].into();
        (header.shared, header.shared_end) = (shared, shared_end);
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
                // Of each gang and block its own.
                Builtin::ThreadIdx(_) | Builtin::SubgroupLane | Builtin::BlockIdx(_) => 0,
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

    /// Gets ready for a run of blocks: neighbours along x, or whole rows of the grid.
    pub(super) fn start(&mut self, launch: &Launch<'_>, run: &Run) {
        let block = launch.shape.position(run.first).map(u64::from);
        self.fault = None;
        // The number of no block.
        self.dead.0 = u64::MAX;
        let header = self.header();
        header.block = block;
        header.x_first = block[0];
        header.x_end = block[0] + run.along_x;
        header.rows = run.rows;
        header.row = header.gangs;
        // Of a run that is shorter than the table's, the first gangs.
        let used = run.along_x.min(header.x_step) as usize;
        header.row_used = header.row_bytes / header.x_step as usize * used;
        header.row_end = header.gangs + header.row_used;
        header.entering = START;
    }

    /// Index and number of the block that runs: of several side by side, that of the gang.
    pub(super) fn block(&mut self, launch: &Launch<'_>) -> ([u32; 3], u64) {
        let [mut x, y, z] = self.header().block;
        if self.header().x_step > 1 {
            let gang = self.gang();
            x += self.gangs[gang].x / u64::from(launch.shape.block[0]);
        }
        let [columns, rows, _] = launch.shape.grid.map(u64::from);
        ([x, y, z].map(|i| i as u32), x + columns * (y + rows * z))
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
                DONE => return Ok(Turn::Done),
                MEETING => {
                    self.meet(installed, launch)?;
                    let header = self.header();
                    (header.done, header.arrived) = (0, 0);
                    header.phase += 1;
                    header.entering = MET;
                }
                PAUSED => {
                    self.header().entering = GO_ON;
                    return Ok(Turn::Paused);
                }
                _ => return Err(self.stopped(launch)),
            }
        }
    }

    pub(super) fn stopped(&mut self, launch: &Launch<'_>) -> InterpError {
        self.error.take().unwrap_or_else(|| InterpError::Cancelled {
            kernel: launch.program.name.clone(),
        })
    }

    /// Index of the gang that runs.
    pub(super) fn gang(&mut self) -> usize {
        let header = self.header();
        (header.gang - header.gangs) / header.stride
    }
}
