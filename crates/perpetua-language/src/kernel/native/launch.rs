//! A launch made ready: its arguments, its plan, and what it reaches; and how a part of it runs.

use std::ops::Range;
use std::sync::Arc;

use perpetua_cpu::footprint::{AXES, Space};
use perpetua_device::native::{Footprint, NativeArg, NativeLaunch, PreparedLaunch, Sharing};
use perpetua_ir::fault::{Fault, FaultSite};

use super::decide::Told;
use super::mode::{Position, Shape};
use super::plan::{How, Part, plan};
use super::program::Program;
use super::rows::{Found, Lanes, checked, fast, told};
use super::stop::Stop;
use super::view::{Arguments, Extent};

/// Lanes of a slab that is a piece of a row.
const PIECE: i64 = 64;

/// Slabs that are enough to divide a launch along its outermost axis.
const ENOUGH: i64 = 256;

/// A launch made ready.
pub(super) struct Prepared<P: Program> {
    pub(super) args: P::Args<'static>,
    /// By slot; `None` for values.
    pub(super) extents: Vec<Option<Extent>>,
    pub(super) shape: Shape,
    /// All lanes; `None` where there are none.
    pub(super) whole: Option<Space>,
    parts: Vec<Part>,
    slabs: Slabs,
    /// `None` where it is not known.
    footprints: Option<Vec<Footprint>>,
}

/// How a launch is divided: along which axis, and how many lanes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slabs {
    pub(super) axis: usize,
    pub(super) lanes: i64,
    pub(super) count: i64,
}

impl<P: Program> Prepared<P> {
    /// `None` where the arguments do not fit.
    pub(super) fn new(launch: &NativeLaunch<'_>, given: &[NativeArg<'_>]) -> Option<Prepared<P>> {
        let mut arguments = Arguments::new(given);
        let args = P::decode(&mut arguments)?;
        let extents = arguments.extents()?;
        let shape = Shape {
            block: launch.block.to_array().map(|n| n as usize),
            grid: launch.grid.to_array().map(|n| n as usize),
        };
        let mut prepared = Prepared {
            args,
            extents,
            shape,
            whole: whole::<P>(&shape),
            parts: Vec::new(),
            slabs: Slabs {
                axis: 0,
                lanes: 1,
                count: 0,
            },
            footprints: None,
        };
        if let Some(whole) = prepared.whole {
            let plan = plan::<P>(launch, given, whole);
            prepared.slabs = Slabs::of(&whole, P::MERGED);
            prepared.footprints = plan.footprints(&prepared.extents, &prepared.slabs);
            prepared.parts = plan.parts;
        }
        Some(prepared)
    }

    /// The lanes that run without checks.
    pub(super) fn proven(&self) -> u64 {
        let proven = self.parts.iter().filter(|part| part.how != How::Checked);
        proven.map(|part| part.space.lanes()).sum()
    }

    /// Runs a box of a part.
    fn part(&self, part: &Part, space: &Space, sharing: Sharing) -> Found {
        let lanes = Lanes::<P> {
            args: &self.args,
            shape: &self.shape,
            space,
        };
        match part.how {
            How::Idle => None,
            How::Checked => checked(&lanes),
            // What is proven of lanes says nothing of other streams.
            _ if sharing == Sharing::Shared => checked(&lanes),
            // SAFETY: `plan` has proven the box under these conditions.
            How::Fast => unsafe { fast(&lanes, part.conditions) },
            How::Told(open) => {
                // What is open by two numbers is compiled for the first.
                let (one, two) = const { (Told::<P, 1>::IS_NEW, Told::<P, 2>::IS_NEW) };
                // SAFETY: `plan` has proven the box, in which the conditions are as it says but for those that are open by this
                // number; and no buffer that is stored to has a byte in common with another.
                unsafe {
                    match open {
                        0 => told::<P, 0>(&lanes, part.conditions),
                        1 if one => told::<P, 1>(&lanes, part.conditions),
                        _ if two => told::<P, 2>(&lanes, part.conditions),
                        // Not reached: `plan` asks for what is new.
                        _ => fast(&lanes, part.conditions),
                    }
                }
            }
        }
    }
}

// SAFETY: `footprints` says what the IR accesses, whose accesses are the body's, rounded up; where that is not known, all of the
// buffer.
unsafe impl<P: Program> PreparedLaunch for Prepared<P> {
    fn slabs(&self) -> u64 {
        self.slabs.count as u64
    }

    fn footprints(&self) -> Option<&[Footprint]> {
        self.footprints.as_deref()
    }

    unsafe fn run(&self, slabs: Range<u64>, sharing: Sharing) -> Result<(), Box<Fault>> {
        let Slabs { axis, lanes, .. } = self.slabs;
        let (from, to) = (slabs.start as i64 * lanes, slabs.end as i64 * lanes);
        let mut found = None;
        for part in self.parts.iter().filter(|part| part.how != How::Idle) {
            if let Some(space) = part.space.between(axis, from, to) {
                found = found.or(self.part(part, &space, sharing));
            }
        }
        found.map_or(Ok(()), |(stop, position)| {
            Err(report::<P>(&stop, &position, &self.shape))
        })
    }
}

/// The lanes of a launch.
fn whole<P: Program>(shape: &Shape) -> Option<Space> {
    let mut to = [1; AXES];
    for axis in 0..3 {
        let (lanes, groups) = (shape.block[axis] as i64, shape.grid[axis] as i64);
        if P::MERGED {
            to[axis] = lanes * groups;
        } else {
            (to[axis], to[axis + 3]) = (lanes, groups);
        }
    }
    Space::new([0; AXES], to)
}

impl Slabs {
    /// The outermost axis that gives enough slabs, else the one that gives most.
    fn of(whole: &Space, merged: bool) -> Slabs {
        let axes = if merged { [2, 1, 0] } else { [5, 4, 3] };
        let along = |axis: usize| {
            let lanes = if axis == 0 { PIECE } else { 1 };
            let count = (whole.to[axis] - whole.from[axis] + lanes - 1) / lanes;
            Slabs { axis, lanes, count }
        };
        let mut best = along(axes[0]);
        for axis in &axes[1..] {
            let other = along(*axis);
            if best.count < ENOUGH && other.count > best.count {
                best = other;
            }
        }
        best
    }
}

/// A lane's fault as a user reads it.
#[cold]
fn report<P: Program>(stop: &Stop, position: &Position, shape: &Shape) -> Box<Fault> {
    let (block, thread) = if P::MERGED {
        let axes = [0, 1, 2];
        (
            axes.map(|a| position.global[a] / shape.block[a]),
            axes.map(|a| position.global[a] % shape.block[a]),
        )
    } else {
        (position.block, position.thread)
    };
    Box::new(Fault {
        kernel: P::NAME.to_owned(),
        source: Arc::from(P::FILE),
        site: FaultSite::new(
            stop.kind,
            stop.site.line,
            stop.subject(),
            stop.types.into_iter().flatten().collect(),
        ),
        block: block.map(|n| n as u32),
        thread: thread.map(|n| n as u32),
        operands: [stop.operands[0], stop.operands[1], 0, 0],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_divided_along_an_axis_with_many_slabs() {
        let check = |to: [i64; 3], expect: (usize, i64)| {
            let [x, y, z] = to;
            let space = Space::new([0; AXES], [x, y, z, 1, 1, 1]).unwrap();
            let slabs = Slabs::of(&space, true);
            assert_eq!((slabs.axis, slabs.count), expect, "{to:?}");
        };
        check([1 << 20, 1, 1], (0, 1 << 14));
        check([100, 1, 1], (0, 2));
        check([4096, 4096, 1], (1, 4096));
        check([4096, 40, 1], (0, 64));
        check([256, 256, 256], (2, 256));
        check([256, 300, 2], (1, 300));
    }
}
