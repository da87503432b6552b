//! What lanes of proven boxes access and decide, held against what is proven of them: for tests, in builds that have debug
//! assertions. Lanes run one by one and store nothing.

use std::cell::RefCell;

use perpetua_device::native::{NativeArg, NativeLaunch};
use perpetua_ir::pass::footprint::{AXES, Space};

use super::launch::Prepared;
use super::mode::{Mode, Position, Shape, offset_of};
use super::plan::{How, Part, Reach, plan};
use super::program::{Program, Usual};
use super::stencil::Grid;
use super::stop::{Site, Stop};
use super::view::{Extent, View};
use crate::kernel::element::Element;

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
    let plan = plan::<P>(launch, args, &prepared.extents, whole);
    let reaches = plan.reaches.unwrap_or_default();
    let mut lanes = 0;
    for part in plan.parts.iter().filter(|part| part.how != How::Checked) {
        let known = match part.how {
            How::Settled(which) => P::USUAL[which],
            _ => Usual {
                known: part.conditions.known,
                truth: part.conditions.truth,
            },
        };
        for lane in sample(&part.space) {
            let seen = RefCell::default();
            let mode = Audit {
                position: position::<P>(&lane, &prepared.shape),
                shape: &prepared.shape,
                known,
                seen: &seen,
            };
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
        reaches: &[Reach],
        extents: &[Option<Extent>],
    ) -> Option<String> {
        let foretold = |(start, index, stores): (usize, usize, bool)| {
            part.how != How::Idle
                && reaches.iter().any(|reach| {
                    let here = (0..AXES).all(|axis| {
                        reach.lanes.from[axis] <= lane[axis] && lane[axis] < reach.lanes.to[axis]
                    });
                    let is_it = extents[reach.slot].is_some_and(|extent| extent.start == start);
                    let fits = reach.form.is_none_or(|form| {
                        let at: i64 = form
                            .strides
                            .iter()
                            .zip(lane)
                            .map(|(stride, at)| stride * at)
                            .sum();
                        (at + form.low..=at + form.high).contains(&(index as i64))
                    });
                    here && is_it && fits && (reach.stores || !stores)
                })
        };
        let access = self.accesses.iter().find(|access| !foretold(**access));
        access.map(|(_, index, stores)| format!("index {index} (stored to: {stores}) was not foretold"))
    }
}

/// Accesses that are noted; nothing is stored.
#[derive(Clone, Copy)]
struct Audit<'a> {
    position: Position,
    shape: &'a Shape,
    known: Usual,
    seen: &'a RefCell<Seen>,
}

impl Audit<'_> {
    fn wrong(&self, what: String) {
        self.seen.borrow_mut().wrong.get_or_insert(what);
    }

    fn note<T: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        stores: bool,
        at: &'static Site,
    ) -> Result<(), Stop> {
        if index >= view.len {
            self.wrong(format!("{at:?}: index {index} of {}", view.len));
            return Err(Stop::index(at, index, view.len));
        }
        let mut seen = self.seen.borrow_mut();
        seen.accesses.push((view.ptr.addr(), index, stores));
        match seen.accesses.len() < MOST_ACCESSES {
            true => Ok(()),
            false => Err(Stop::unreachable(at)),
        }
    }
}

impl Mode for Audit<'_> {
    fn position(&self) -> &Position {
        &self.position
    }

    fn shape(&self) -> &Shape {
        self.shape
    }

    fn guard(&self, number: u32, value: bool) -> bool {
        let Usual { known, truth } = self.known;
        if known >> number & 1 == 1 && (truth >> number & 1 == 1) != value {
            self.wrong(format!("condition {number} is {value}"));
        }
        value
    }

    fn load<T: Element>(&self, view: View<'_, T>, index: usize, at: &'static Site) -> Result<T, Stop> {
        self.note(view, index, false, at)?;
        // SAFETY: the index was checked; the buffer is aligned and initialised by `NativeKernel::run`'s contract.
        unsafe { T::load(view.ptr.add(index)) }.map_err(|invalid| Stop::invalid(at, invalid))
    }

    fn store<T: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        _: T,
        at: &'static Site,
    ) -> Result<(), Stop> {
        self.note(view, index, true, at)
    }

    fn store_part<T: Element, F: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        part: impl FnOnce(&mut T) -> Result<&mut F, Stop>,
        _: F,
        at: &'static Site,
    ) -> Result<(), Stop> {
        self.note(view, index, true, at)?;
        offset_of(part).map(|_| ())
    }

    fn neighbour<T: Element>(
        &self,
        grid: &Grid,
        view: View<'_, T>,
        offset: [i32; 3],
        at: &'static Site,
    ) -> Result<T, Stop> {
        // A fast body takes this one without looking.
        let near = grid.near(self.position.global, offset);
        if grid.neighbour(self.position.global, offset, at).ok() != Some(Ok(near)) {
            self.wrong(format!("{at:?}: no cell at {offset:?}"));
        }
        self.load(view, near, at)
    }
}
