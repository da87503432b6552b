//! What lanes of proven boxes access and decide, held against what is proven of them: for tests, in builds that have debug
//! assertions. Lanes run one by one and store nothing.

use std::cell::RefCell;

use perpetua_cpu::footprint::{AXES, Reached, Space};
use perpetua_device::native::{NativeArg, NativeLaunch};

use super::decide::Recorded;
use super::launch::Prepared;
use super::mode::{Checked, Position, Shape, Watch};
use super::plan::{How, Part, plan};
use super::program::Program;
use super::stop::{Site, Stop};
use super::view::Extent;

/// Lanes of a launch that are looked at.
const MOST_LANES: usize = 4096;

/// Accesses of a lane: loops that wait for what was stored do not end.
const MOST_ACCESSES: usize = 1 << 12;

/// How many lanes did what is proven of them, or what one did instead; `None` where the arguments do not fit.
pub(super) fn audit<P: Program>(
    launch: &NativeLaunch<'_>,
    args: &[NativeArg<'_>],
) -> Option<Result<usize, String>> {
    let prepared = Prepared::<P>::new(launch, args)?;
    let Some(whole) = prepared.whole else {
        return Some(Ok(0));
    };
    let plan = plan::<P>(launch, args, whole);
    let reaches = plan.reaches.unwrap_or_default();
    let mut lanes = 0;
    for part in plan.parts.iter().filter(|part| part.how != How::Checked) {
        for lane in sample(&part.space) {
            let seen = RefCell::default();
            let watch = Audit {
                known: part.conditions,
                seen: &seen,
            };
            let mode = Checked::new(position::<P>(&lane, &prepared.shape), &prepared.shape, watch);
            // Faults beside those of indices are the lane's own.
            let _ = P::lane(&mode, prepared.args);
            let seen = seen.into_inner();
            let beyond = seen.beyond(part, &lane, &reaches, &prepared.extents);
            if let Some(wrong) = seen.wrong.or(beyond) {
                return Some(Err(format!("lane {lane:?} of {part:?}: {wrong}")));
            }
            lanes += 1;
        }
    }
    Some(Ok(lanes))
}

/// Lanes of a box: all along short axes, the outer ones and one between along others.
fn sample(space: &Space) -> Vec<[i64; AXES]> {
    let mut all = vec![space.from];
    for axis in 0..AXES {
        let (from, to) = (space.from[axis], space.to[axis]);
        let mut along: Vec<i64> = match to - from {
            ..=6 => (from..to).collect(),
            _ => vec![from, from + 1, from + (to - from) / 2, to - 2, to - 1],
        };
        if all.len() * along.len() > MOST_LANES {
            along = vec![from, to - 1];
            along.dedup();
        }
        all = all
            .into_iter()
            .flat_map(|lane| {
                along.iter().map(move |at| {
                    let mut lane = lane;
                    lane[axis] = *at;
                    lane
                })
            })
            .collect();
    }
    all
}

fn position<P: Program>(lane: &[i64; AXES], shape: &Shape) -> Position {
    let at = lane.map(|at| at as usize);
    let (here, block) = ([at[0], at[1], at[2]], [at[3], at[4], at[5]]);
    match P::MERGED {
        true => Position {
            global: here,
            thread: [0; 3],
            block: [0; 3],
        },
        false => Position {
            global: [0, 1, 2].map(|axis| block[axis] * shape.block[axis] + here[axis]),
            thread: here,
            block,
        },
    }
}

/// What a lane did.
#[derive(Default)]
struct Seen {
    /// The address of a buffer, an index, and whether it is stored to.
    accesses: Vec<(usize, usize, bool)>,
    wrong: Option<String>,
}

impl Seen {
    /// An access that nothing foretold.
    fn beyond(
        &self,
        part: &Part,
        lane: &[i64; AXES],
        reaches: &[Reached],
        extents: &[Option<Extent>],
    ) -> Option<String> {
        let foretold = |(start, index, stores): (usize, usize, bool)| {
            part.how != How::Idle
                && reaches.iter().any(|reach| {
                    let here = (0..AXES).all(|axis| {
                        reach.lanes.from[axis] <= lane[axis] && lane[axis] < reach.lanes.to[axis]
                    });
                    let is_it = extents[reach.param as usize].is_some_and(|extent| extent.start == start);
                    let form = reach.elements;
                    let steps = form.strides.iter().zip(lane);
                    let at: i64 = steps.map(|(stride, at)| stride * at).sum();
                    let fits = (at + form.low..=at + form.high).contains(&(index as i64));
                    here && is_it && fits && (reach.stores || !stores)
                })
        };
        let access = self.accesses.iter().find(|access| !foretold(**access));
        access.map(|(_, index, stores)| format!("index {index} (stored to: {stores}) was not foretold"))
    }
}

/// Notes accesses, and conditions that are not as they were proven.
#[derive(Clone, Copy)]
struct Audit<'a> {
    known: Recorded,
    seen: &'a RefCell<Seen>,
}

impl Audit<'_> {
    fn wrong(&self, what: String) {
        self.seen.borrow_mut().wrong.get_or_insert(what);
    }
}

impl Watch for Audit<'_> {
    const STORES: bool = false;

    fn condition(&self, number: u32, value: bool) {
        let Recorded { known, truth } = self.known;
        if known >> number & 1 == 1 && (truth >> number & 1 == 1) != value {
            self.wrong(format!("condition {number} is {value}"));
        }
    }

    fn access(
        &self,
        address: usize,
        len: usize,
        index: usize,
        stores: bool,
        at: &'static Site,
    ) -> Result<(), Stop> {
        if index >= len {
            self.wrong(format!("{at:?}: index {index} of {len}"));
        }
        let mut seen = self.seen.borrow_mut();
        seen.accesses.push((address, index, stores));
        match seen.accesses.len() < MOST_ACCESSES {
            true => Ok(()),
            false => Err(Stop::unreachable(at)),
        }
    }

    fn neighbour(&self, index: Option<usize>, near: usize, at: &'static Site) {
        // A fast body takes this one without looking.
        if index != Some(near) {
            self.wrong(format!("{at:?}: the cell is {index:?} and not {near}"));
        }
    }
}
