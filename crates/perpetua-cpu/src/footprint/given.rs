//! What a launch knows before its lanes run, as forms of their coordinates. Knows no statements.

use super::form::{Form, limits, number};
use super::program::{Fill, Program};
use super::space::{AXES, Space};
use perpetua_ir::ir::{Builtin, Scalar};

/// A launch: its shape and its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Blocks.
    pub grid: [u32; 3],
    /// Lanes of each.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub dynamic_shared_bytes: u32,
    /// Lanes of a subgroup.
    pub subgroup_size: u32,
    /// By parameter.
    pub args: &'a [Given<'a>],
}

/// What is known of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// Elements of a buffer.
    Elements(u64),
    /// A value's bytes.
    Value(&'a [u8]),
}

impl Given<'_> {
    pub(super) fn elements(&self) -> u64 {
        match self {
            Given::Elements(n) => *n,
            Given::Value(_) => 0,
        }
    }
}

/// What tells lanes apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coordinates {
    /// The block's index along this axis.
    Row(usize),
    /// The lane's in its block, and the block's.
    Blocks,
    /// The lane's in the grid. The block's stand beside them, as if any lane could be in any block: with them the lane's in its
    /// block are said, whose sum with the block's place does not depend on them.
    Grid,
}

impl Coordinates {
    /// All lanes; `None` where there are none.
    pub(super) fn space(self, launch: &Launch<'_>) -> Option<Space> {
        let (mut to, mut cuts) = ([1; AXES], [false; AXES]);
        let mut lanes = 1u64;
        for axis in 0..3 {
            let (block, grid) = (i64::from(launch.block[axis]), i64::from(launch.grid[axis]));
            lanes = lanes.saturating_mul((block as u64).saturating_mul(grid as u64));
            match self {
                Coordinates::Row(row) if row == axis => (to[axis + 3], cuts[axis + 3]) = (grid, true),
                Coordinates::Row(_) => {}
                Coordinates::Blocks => {
                    (to[axis], to[axis + 3]) = (block, grid);
                    (cuts[axis], cuts[axis + 3]) = (true, true);
                }
                Coordinates::Grid => {
                    (to[axis], to[axis + 3]) = (block * grid, grid);
                    cuts[axis] = true;
                }
            }
        }
        let all = Space::new([0; AXES], to).filter(|_| lanes > 0)?;
        let chooses = matches!(self, Coordinates::Row(_));
        Some(Space { cuts, chooses, ..all })
    }

    /// The lanes of a box.
    pub(super) fn lanes(self, space: &Space) -> Space {
        let mut lanes = Space {
            cuts: [false; AXES],
            chooses: false,
            ..*space
        };
        if let Coordinates::Grid = self {
            lanes.to[3..].fill(1);
        }
        lanes
    }

    /// A form by the coordinates of [`lanes`](Coordinates::lanes).
    pub(super) fn of_lanes(self, form: Form, space: &Space) -> Form {
        let Coordinates::Grid = self else {
            return form;
        };
        let mut told = form;
        told.strides[3..].fill(0);
        form.like(&told, space).unwrap_or(Form::ANY)
    }

    /// What is known of a lane's index in its block, and of the block's.
    fn place(self, launch: &Launch<'_>, space: &Space, builtin: Builtin) -> Form {
        let below = |n: u32| Form::between(0, i64::from(n) - 1);
        let coordinate = Form::coordinate;
        match (builtin, self) {
            (Builtin::ThreadIdx(axis), Coordinates::Row(_)) => below(launch.block[axis as usize]),
            (Builtin::ThreadIdx(axis), Coordinates::Blocks) => coordinate(axis as usize, 1),
            (Builtin::ThreadIdx(axis), Coordinates::Grid) => {
                let axis = axis as usize;
                coordinate(axis, 1).plus(coordinate(axis + 3, -i64::from(launch.block[axis])))
            }
            (Builtin::BlockIdx(axis), Coordinates::Row(row)) if row != axis as usize => {
                below(launch.grid[axis as usize])
            }
            // Of a single row every number is one, and can be narrowed by conditions.
            (Builtin::BlockIdx(axis), Coordinates::Row(_)) => {
                coordinate(axis as usize + 3, 1).settled(axis as usize + 3, space)
            }
            (Builtin::BlockIdx(axis), _) => coordinate(axis as usize + 3, 1),
            (Builtin::BlockDim(axis), _) => Form::constant(launch.block[axis as usize].into()),
            (Builtin::GridDim(axis), _) => Form::constant(launch.grid[axis as usize].into()),
            (Builtin::SubgroupSize, _) => Form::constant(launch.subgroup_size.into()),
            (Builtin::SubgroupLane, _) => below(launch.subgroup_size),
        }
    }
}

/// All that a plan follows from: the launch's shape, and what is needed of its arguments.
pub(super) fn decisive(program: &Program, launch: &Launch<'_>, merged: bool) -> Vec<i64> {
    let shape = launch.grid.iter().chain(&launch.block);
    let rest = [launch.dynamic_shared_bytes, launch.subgroup_size, merged.into()];
    let mut all: Vec<i64> = shape.chain(&rest).map(|n| i64::from(*n)).collect();
    all.extend(launch.args.iter().map(|arg| arg.elements() as i64));
    for (slot, fill) in &program.fills {
        if let Fill::Param(param, offset) = *fill {
            let form = scalar(launch, program.types[*slot as usize], param, offset);
            all.extend([form.low, form.high]);
        }
    }
    all
}

/// What is known when the lanes of a box begin, by slot.
pub(super) fn state(
    program: &Program,
    launch: &Launch<'_>,
    coordinates: Coordinates,
    space: &Space,
) -> Vec<Form> {
    let mut state = vec![Form::ANY; program.types.len()];
    for (slot, fill) in &program.fills {
        let s = program.types[*slot as usize];
        let count = |n: u64| Form::constant(number(s, n & u64::MAX >> (64 - s.bits())));
        state[*slot as usize] = match *fill {
            Fill::Constant(value) => Form::constant(value),
            Fill::Param(param, offset) => scalar(launch, s, param, offset),
            Fill::Len(param) => count(launch.args.get(param as usize).map_or(0, Given::elements)),
            Fill::DynamicLen(size) => count((launch.dynamic_shared_bytes / size.max(1)).into()),
            Fill::Builtin(builtin) => coordinates.place(launch, space, builtin),
        };
    }
    state
}

/// The scalar at a byte of a value.
fn scalar(launch: &Launch<'_>, s: Scalar, param: u32, offset: u32) -> Form {
    let (from, size) = (offset as usize, s.size() as usize);
    let bytes = match launch.args.get(param as usize) {
        Some(Given::Value(bytes)) => bytes.get(from..from + size),
        _ => None,
    };
    let mut word = [0; 8];
    match bytes {
        Some(bytes) if s == Scalar::Bool => Form::constant(bytes.iter().any(|byte| *byte != 0).into()),
        Some(bytes) if cfg!(target_endian = "little") => {
            word[..size].copy_from_slice(bytes);
            Form::constant(number(s, u64::from_le_bytes(word)))
        }
        _ => {
            let (least, most) = limits(s);
            match s {
                Scalar::U64 => Form::ANY,
                _ => Form::between(least, most),
            }
        }
    }
}
