//! What a kernel accesses, found of its IR alone: the kernel is reduced to its indices and conditions once (`program`,
//! `read`, `slice`), and walked for each launch (`walk`) over forms (`form`) that stand for all lanes of a box (`space`). Here: a
//! launch cut into boxes that all do alike. Knows no device.
//!
//! What is found holds for every run of the kernel with these arguments, whatever its buffers contain; lanes may access less. Where
//! a condition, or the place that an index leads to, changes within a box, it is cut there; so a stencil's inner cells are one box,
//! with a footprint that moves on by strides.
//!
//! There are two views of it. [`Footprint::plan`] tells lanes apart, and says where no index can be out of range and what numbered
//! conditions are; of its pieces, [`Footprint::standing`] says whether lanes race (`standing`). [`Footprint::reaches`] tells apart *rows*: the blocks that differ in no axis but those before the last that has
//! several blocks; their numbers follow one another.

mod form;
mod given;
mod operator;
mod order;
mod program;
mod read;
mod slice;
mod space;
mod standing;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

pub use form::Form;
use given::{Coordinates, state};
pub use given::{Given, Launch};
use program::Program;
pub use space::{AXES, Space};
pub use standing::{Reached, Standing};
pub use walk::Conditions;
use walk::{Seen, Stop, TURNS, Walk};

use crate::interp::{Arg, LaunchConfig};
use perpetua_ir::ir::{Checks, Kernel, LocalId};
use perpetua_ir::verify::Verified;

/// How often a launch is cut at most.
const CUTS: usize = 48;

/// How many blocks make a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRows {
    axis: usize,
    /// Rows of the launch.
    pub count: u64,
    /// Blocks of each.
    pub blocks: u64,
}

impl BlockRows {
    /// The rows of a grid.
    pub fn of(grid: [u32; 3]) -> BlockRows {
        let axis = (0..3).rev().find(|axis| grid[*axis] != 1).unwrap_or(0);
        let blocks = grid.iter().take(axis).map(|n| u64::from(*n)).product();
        BlockRows {
            axis,
            count: grid[axis].into(),
            blocks,
        }
    }
}

/// Bytes that lanes of some rows may access: row `r` those of parameter `param` from `low + r * stride` up to, and without,
/// `high + r * stride`. They lie in the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The parameter's number.
    pub param: u32,
    /// Whether some of the accesses are stores, or atomic updates.
    pub stores: bool,
    /// The rows that make them.
    pub rows: Range<u64>,
    /// First byte for row 0, were there one.
    pub low: i64,
    /// Byte behind the last one.
    pub high: i64,
    /// Bytes from a row's to the next one's.
    pub stride: i64,
}

/// Lanes that do alike, and what they may access.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The lanes.
    pub space: Space,
    /// The accesses.
    pub accesses: Vec<Accessed>,
    /// Whether every index is in range, for every lane.
    pub proven: bool,
    /// Whether a lane may do something beside accesses that may fault, last or be seen.
    pub stops: bool,
    /// The numbered conditions.
    pub conditions: Conditions,
}

/// Accesses of a piece to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// The parameter's number.
    pub param: u32,
    /// Whether some of the accesses are stores, or atomic updates.
    pub stores: bool,
    /// The elements. In a piece that is not proven, those in range of them.
    pub elements: Form,
}

/// What a kernel accesses, to be asked launch by launch.
#[derive(Debug)]
pub struct Footprint {
    program: Program,
    // The last plans, by what they follow from.
    plans: Mutex<HashMap<Vec<i64>, Arc<[Piece]>>>,
}

/// Plans that are kept.
const PLANS: usize = 64;

impl Footprint {
    /// `None` where nothing is known: of kernels whose checks are not all on, and very long ones.
    pub fn of(kernel: &Verified) -> Option<Footprint> {
        Footprint::read(kernel.kernel(), None)
    }

    /// The same with numbered conditions: each time that one is met its value is written to a variable of its own, which nobody
    /// reads.
    pub fn with_conditions(kernel: &Verified, conditions: &[(u32, LocalId)]) -> Option<Footprint> {
        Footprint::read(kernel.kernel(), Some(conditions))
    }

    fn read(kernel: &Kernel, conditions: Option<&[(u32, LocalId)]>) -> Option<Footprint> {
        let is_checked = kernel.checks == Checks::On;
        is_checked
            .then(|| Program::of(kernel, conditions))
            .flatten()
            .map(|program| Footprint {
                program,
                plans: Mutex::default(),
            })
    }

    /// A launch's lanes in pieces; `None` where that takes too long to find. The launch's arguments are such as the kernel takes.
    ///
    /// `merged`: the kernel asks for places in the grid only, so that blocks need not be told apart. Then the first three
    /// coordinates are those in the grid, and each lane is in the first block. Else they are those in the block.
    pub fn plan(&self, launch: &Launch<'_>, merged: bool) -> Option<Arc<[Piece]>> {
        // Places in the grid are numbers of 32 bits in the IR.
        let mut axes = launch.grid.iter().zip(launch.block);
        let fits = axes.all(|(grid, block)| u64::from(*grid) * u64::from(block) <= 1 << 32);
        let coordinates = match merged {
            true => Coordinates::Grid,
            false => Coordinates::Blocks,
        };
        let mut pieces = Vec::new();
        fits.then_some(())?;
        let key = given::decisive(&self.program, launch, merged);
        let plans = || self.plans.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = plans().get(&key) {
            return Some(Arc::clone(known));
        }
        self.pieces(launch, coordinates, |space, seen| {
            let accessed = |touch: &walk::Touch| Accessed {
                param: touch.param,
                stores: touch.stores,
                elements: coordinates.of_lanes(touch.elements, space),
            };
            pieces.push(Piece {
                space: coordinates.lanes(space),
                accesses: seen.touches.iter().map(accessed).collect(),
                proven: seen.proven,
                stops: seen.stops,
                conditions: seen.conditions,
            });
        })?;
        let pieces: Arc<[Piece]> = pieces.into();
        let mut plans = plans();
        if plans.len() >= PLANS {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&pieces));
        Some(pieces)
    }

    /// What a launch's rows of blocks may access of its buffers; `None` where that takes too long to find. The launch's arguments
    /// are such as the kernel takes.
    pub fn reaches(&self, launch: &LaunchConfig<'_>) -> Option<Vec<Reach>> {
        let given = launch
            .args
            .iter()
            .zip(&self.program.elements)
            .map(|(arg, size)| match arg {
                Arg::Buffer(buffer) => Given::Elements(buffer.len() as u64 / u64::from((*size).max(1))),
                Arg::Value(bytes) => Given::Value(bytes),
            });
        let launch = Launch {
            grid: launch.grid,
            block: launch.block,
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            subgroup_size: launch.subgroup_size,
            args: &given.collect::<Vec<_>>(),
        };
        let axis = BlockRows::of(launch.grid).axis;
        let mut reaches = Vec::new();
        self.pieces(&launch, Coordinates::Row(axis), |space, seen| {
            let axis = axis + 3;
            reaches.extend(seen.touches.iter().map(|touch| Reach {
                param: touch.param,
                stores: touch.stores,
                rows: space.from[axis] as u64..space.to[axis] as u64,
                low: touch.bytes.low,
                high: touch.bytes.high,
                stride: touch.bytes.strides[axis],
            }));
        })?;
        Some(reaches)
    }

    /// Cuts a launch into boxes, and shows each.
    fn pieces(
        &self,
        launch: &Launch<'_>,
        coordinates: Coordinates,
        mut found: impl FnMut(&Space, &Seen),
    ) -> Option<()> {
        // `Reader::builtin` relies on it.
        let mut sizes = launch.grid.iter().chain(&launch.block);
        sizes.all(|size| i32::try_from(*size).is_ok()).then_some(())?;
        let lengths: Vec<u64> = launch.args.iter().map(Given::elements).collect();
        let mut left: Vec<Space> = coordinates.space(launch).into_iter().collect();
        let [mut turns, fewer] = TURNS;
        let mut cuts = 0;
        while let Some(space) = left.pop() {
            let state = state(&self.program, launch, coordinates, &space);
            let mut last = space;
            if cuts >= CUTS {
                (last.cuts, last.chooses) = ([false; AXES], false);
            }
            match Walk::run(&self.program, last, &lengths, state, turns) {
                Err(Stop::Long) if turns > fewer => {
                    turns = fewer;
                    left.push(space);
                }
                Err(Stop::Long) => return None,
                Err(Stop::Cut(at)) => {
                    let (below, above) = space.cut(at);
                    left.extend([above, below]);
                    cuts += 1;
                }
                Ok(seen) => found(&space, &seen),
            }
        }
        Some(())
    }
}
