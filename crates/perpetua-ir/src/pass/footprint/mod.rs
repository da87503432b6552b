//! Which bytes a kernel accesses, found of its IR alone: the kernel is reduced to its indices and conditions once (`program`,
//! `read`, `slice`), and walked for each launch (`walk`) over forms that stand for many lanes (`form`). Here: a launch cut into rows of
//! blocks that all do alike. Knows no device.
//!
//! A *row* is the blocks that differ in no axis but those before the last that has several blocks: their numbers follow one
//! another. What is found holds for every run of the kernel with these arguments, whatever its buffers contain; lanes may access
//! less. Where a condition, or the place that an index leads to, changes from one row to another, the rows are cut there; so a
//! stencil's inner rows are one piece, with a footprint that moves on by a stride.

mod form;
mod program;
mod read;
mod slice;
mod walk;

#[cfg(test)]
mod tests;

use std::ops::Range;

use form::{Form, Rows, limits, number};
use program::{Fill, Program};
use walk::{Stop, Walk};

use crate::interp::{Arg, LaunchConfig};
use crate::ir::{Axis, Builtin, Checks, Scalar};
use crate::verify::Verified;

/// How often a launch's rows are cut at most.
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

/// What a kernel accesses, to be asked launch by launch.
#[derive(Debug)]
pub struct Footprint(Program);

impl Footprint {
    /// `None` where nothing is known: of kernels whose checks are not all on, and very long ones.
    pub fn of(kernel: &Verified) -> Option<Footprint> {
        let kernel = kernel.kernel();
        let is_checked = kernel.checks == Checks::On;
        is_checked.then(|| Program::of(kernel)).flatten().map(Footprint)
    }

    /// What a launch's rows may access of its buffers; `None` where that takes too long to find. The launch's arguments are such
    /// as the kernel takes.
    pub fn reaches(&self, launch: &LaunchConfig<'_>) -> Option<Vec<Reach>> {
        let all = BlockRows::of(launch.grid);
        let lengths = self.lengths(launch);
        let state = self.state(launch, &all, &lengths);
        let mut left = vec![(0, i64::try_from(all.count).ok()?)];
        let (mut cuts, mut reaches) = (0, Vec::new());
        while let Some((from, to)) = left.pop().filter(|(from, to)| from < to) {
            let rows = Rows {
                range: from..to,
                cuts: cuts < CUTS,
            };
            // Of a single row every number is one, and can be narrowed by conditions.
            let single = to - from == 1;
            let known = |form: &Form| if single { form.flat(&rows) } else { *form };
            let state = state.iter().map(known).collect();
            match Walk::run(&self.0, rows, &lengths, state) {
                Err(Stop::Long) => return None,
                Err(Stop::Cut(at)) => {
                    left.extend([(at, to), (from, at)]);
                    cuts += 1;
                }
                Ok(touches) => reaches.extend(touches.iter().map(|touch| Reach {
                    param: touch.param,
                    stores: touch.stores,
                    rows: from as u64..to as u64,
                    low: touch.form.low,
                    high: touch.form.high,
                    stride: touch.form.stride,
                })),
            }
        }
        Some(reaches)
    }

    /// Elements of each buffer.
    fn lengths(&self, launch: &LaunchConfig<'_>) -> Vec<u64> {
        let length = |(arg, size): (&Arg<'_>, &u32)| match arg {
            Arg::Buffer(buffer) => buffer.len() as u64 / u64::from((*size).max(1)),
            Arg::Value(_) => 0,
        };
        launch.args.iter().zip(&self.0.elements).map(length).collect()
    }

    /// What is known when lanes begin.
    fn state(&self, launch: &LaunchConfig<'_>, all: &BlockRows, lengths: &[u64]) -> Vec<Form> {
        let mut state = vec![Form::ANY; self.0.types.len()];
        for (slot, fill) in &self.0.fills {
            let s = self.0.types[*slot as usize];
            let below = |n: u32| Form::between(0, i64::from(n) - 1);
            let count = |n: u64| Form::constant(number(s, n & u64::MAX >> (64 - s.bits())));
            state[*slot as usize] = match *fill {
                Fill::Constant(value) => Form::constant(value),
                Fill::Param(param, offset) => scalar(launch, s, param, offset),
                Fill::Len(param) => count(lengths.get(param as usize).copied().unwrap_or(0)),
                Fill::DynamicLen(size) => count((launch.dynamic_shared_bytes / size.max(1)).into()),
                Fill::Builtin(builtin) => match builtin {
                    Builtin::ThreadIdx(axis) => below(launch.block[axis as usize]),
                    Builtin::BlockIdx(axis) if is_row(all, axis) => Form {
                        stride: 1,
                        low: 0,
                        high: 0,
                    },
                    Builtin::BlockIdx(axis) => below(launch.grid[axis as usize]),
                    Builtin::BlockDim(axis) => Form::constant(launch.block[axis as usize].into()),
                    Builtin::GridDim(axis) => Form::constant(launch.grid[axis as usize].into()),
                    Builtin::SubgroupSize => Form::constant(launch.subgroup_size.into()),
                    Builtin::SubgroupLane => below(launch.subgroup_size),
                },
            };
        }
        state
    }
}

fn is_row(all: &BlockRows, axis: Axis) -> bool {
    all.axis == axis as usize
}

/// The scalar at a byte of a value.
fn scalar(launch: &LaunchConfig<'_>, s: Scalar, param: u32, offset: u32) -> Form {
    let (from, size) = (offset as usize, s.size() as usize);
    let bytes = match launch.args.get(param as usize) {
        Some(Arg::Value(bytes)) => bytes.get(from..from + size),
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
