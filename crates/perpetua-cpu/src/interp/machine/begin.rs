//! A machine before its first operation: registers, masks and memory, and what a launch puts into them.

use super::super::launch::Launch;
use super::super::mask;
use super::super::memory::BufferRef;
use super::super::program::{Fill, Reg, RegionKind};
use super::affine::{Form, Sides};
use super::locate::Located;
use super::register::Register;
use super::{Machine, Part, View};
use crate::eval::{self, Level, Line, WORD};
use perpetua_ir::ir::Builtin;

/// How the lanes of a part lie: as the block does, or along x.
fn sides(launch: &Launch<'_>, part: &Part) -> Sides {
    let [x, y, z] = launch.shape.block;
    match part.team {
        None => [x * part.blocks, y, z],
        Some(_) => [part.lanes as u32, 1, 1],
    }
}

impl Machine {
    /// A machine for the blocks of one launch, or for a part of one block.
    pub(in super::super) fn new(launch: &Launch<'_>, part: Part) -> Machine {
        let program = launch.program;
        let words = part.lanes.div_ceil(WORD);
        let mut constants = vec![Line::ZERO; program.constants.len().div_ceil(size_of::<Line>())];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut constants);
        if let Some(start) = bytes.get_mut(..program.constants.len()) {
            start.copy_from_slice(&program.constants);
        }
        let lines = match part.team {
            Some(_) => 0,
            None => launch.shared_lines(),
        };
        let mut shared = vec![Line::ZERO; lines];
        let dynamic = launch.dynamic_offset();
        let constant_ptr = constants.as_mut_ptr().cast::<u8>();
        let shared_ptr = match &part.team {
            Some(team) => team.memory(),
            None => shared.as_mut_ptr().cast::<u8>(),
        };
        let view = |region: &super::super::program::Region| match region.kind {
            RegionKind::Buffer { param, .. } => {
                let BufferRef { ptr, len, .. } = launch.buffer(param);
                (ptr, len)
            }
            RegionKind::Shared { offset, size } => (shared_ptr.wrapping_add(offset as usize), size as usize),
            RegionKind::Dynamic => (shared_ptr.wrapping_add(dynamic), launch.dynamic_bytes),
            RegionKind::Constant { offset, size } => {
                (constant_ptr.wrapping_add(offset as usize), size as usize)
            }
        };
        let views = program.regions.iter().map(|region| {
            let (ptr, len) = view(region);
            let elements = (len / region.element.max(1) as usize) as u64;
            View { ptr, elements }
        });
        let mut row_heads = vec![0; words];
        let row = (launch.shape.block[0] * part.blocks).max(1) as usize;
        (0..part.lanes)
            .filter(|lane| *lane == 0 || (part.first + lane).is_multiple_of(row))
            .for_each(|lane| mask::insert(&mut row_heads, lane));
        let mut machine = Machine {
            level: Level::detect(),
            regs: program.registers.iter().copied().map(Register::new).collect(),
            sides: sides(launch, &part),
            words,
            all: mask::first(part.lanes),
            active: vec![0; words],
            whole: false,
            dead: vec![0; words],
            masks: vec![0; words * program.masks as usize],
            calls: Vec::new(),
            pc: 0,
            block: [0; 3],
            number: 0,
            views: views.collect(),
            shared,
            _constants: constants,
            located: Located::default(),
            row_heads,
            part,
            waits: None,
            fault: None,
            caught: Vec::new(),
            naps: false,
            shape: launch.shape,
        };
        for (reg, fill) in &program.fills {
            if !matches!(fill, Fill::Builtin(Builtin::BlockIdx(_))) {
                machine.fill(launch, *reg, *fill);
            }
        }
        machine
    }

    fn fill(&mut self, launch: &Launch<'_>, reg: Reg, fill: Fill) {
        let size = launch.program.registers.get(reg as usize).copied().unwrap_or(8);
        let shape = launch.shape;
        let sides = self.sides;
        let [first, last] = [0, self.part.lanes - 1].map(|lane| shape.thread(self.part.first + lane));
        let is_box = self.part.team.is_none() || first[1..] == last[1..];
        let bits = match fill {
            Fill::Constant(bits) => bits,
            Fill::Param { param, offset } => launch.scalar(param, offset, size),
            Fill::Bool { param, offset } => u64::from(launch.scalar(param, offset, 1) != 0),
            Fill::Len(region) => self.views.get(region as usize).map_or(0, |v| v.elements),
            Fill::Builtin(Builtin::BlockIdx(axis)) => self.block[axis as usize].into(),
            Fill::Builtin(Builtin::BlockDim(axis)) => shape.block[axis as usize].into(),
            Fill::Builtin(Builtin::GridDim(axis)) => shape.grid[axis as usize].into(),
            Fill::Builtin(Builtin::SubgroupSize) => launch.subgroup.into(),
            Fill::Builtin(Builtin::ThreadIdx(axis)) if is_box => {
                let mut steps = [0; 3];
                steps[axis as usize] = 1;
                let first = shape.thread(self.part.first)[axis as usize];
                return self.set(reg, Form::growing(size, first.into(), steps, sides));
            }
            Fill::Builtin(b) => {
                let (first, words) = (self.part.first, self.words);
                let lines = self.regs[reg as usize].lanes_mut(sides, words);
                for lane in 0..self.part.lanes {
                    let value = match b {
                        Builtin::ThreadIdx(axis) => shape.thread(first + lane)[axis as usize],
                        _ => lane as u32 % launch.subgroup,
                    };
                    eval::put(lines, size, lane, value.into());
                }
                return;
            }
        };
        self.set(reg, Form::Uniform(bits & (u64::MAX >> (64 - 8 * size))));
    }

    /// Gets ready for block `number`.
    pub(in super::super) fn start(&mut self, launch: &Launch<'_>, number: u64) {
        self.number = number;
        self.block = launch.shape.position(number);
        for (reg, fill) in &launch.program.fills {
            if matches!(fill, Fill::Builtin(Builtin::BlockIdx(_))) {
                self.fill(launch, *reg, *fill);
            }
        }
        self.active.copy_from_slice(&self.all);
        self.whole = true;
        self.dead.fill(0);
        self.masks.fill(0);
        self.shared.fill(Line::ZERO);
        self.calls.clear();
        self.pc = launch.program.entry;
        self.fault = None;
        self.caught.clear();
        self.naps = false;
        self.waits = None;
    }
}
