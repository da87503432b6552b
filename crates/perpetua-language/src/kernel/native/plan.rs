//! A launch cut into boxes of lanes, each with what the IR proves of it, and the proof for the launch as a whole: that no
//! two lanes touch an element that one of them stores to.

use std::sync::Arc;

use perpetua_device::Overlap;
use perpetua_device::native::{Footprint, NativeArg, NativeLaunch};
use perpetua_ir::front::rust::{COMPUTED, INSIDE};
use perpetua_ir::pass::footprint::{AXES, Accessed, Conditions, Form, Given, Launch, Piece, Space};

use super::decide::{Recorded, opening};
use super::launch::Slabs;
use super::program::Program;
use super::view::Extent;

/// A box of lanes and what was proven of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) space: Space,
    pub(super) how: How,
    /// What the conditions are there.
    pub(super) conditions: Recorded,
}

/// How the lanes of a box run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Not all accesses are proven.
    Checked,
    /// There are none, nor anything else to be seen.
    Idle,
    /// All are, under the conditions.
    Fast,
    /// All are, the conditions are known but for those that are open by this number, a stencil's cell is computed, and no
    /// buffer that is stored to has bytes of another.
    Told(usize),
}

/// A launch as boxes.
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    /// All accesses; `None` where they are not known.
    pub(super) reaches: Option<Vec<Reach>>,
}

/// Cuts `whole`, all lanes of a launch, into boxes.
pub(super) fn plan<P: Program>(
    launch: &NativeLaunch<'_>,
    args: &[NativeArg<'_>],
    extents: &[Option<Extent>],
    whole: Space,
) -> Plan {
    let Some(pieces) = pieces::<P>(launch, args) else {
        return Plan {
            parts: vec![Part {
                space: whole,
                how: How::Checked,
                conditions: Recorded { known: 0, truth: 0 },
            }],
            reaches: None,
        };
    };
    let mut parts: Vec<Part> = pieces.iter().map(part::<P>).collect();
    let reaches: Vec<Reach> = pieces.iter().flat_map(reaches_of).collect();
    match standing(&reaches, extents, launch.overlaps) {
        Standing::Shared => {
            for part in parts.iter_mut().filter(|part| part.how != How::Idle) {
                part.how = How::Checked;
            }
        }
        // What is told apart must be apart.
        Standing::Overlapping => {
            for part in &mut parts {
                if let How::Told(_) = part.how {
                    part.how = How::Fast;
                }
            }
        }
        Standing::Apart => {}
    }
    Plan {
        parts,
        reaches: Some(reaches),
    }
}

/// The launch as the IR's analysis sees it; `None` where that does not know the kernel.
fn pieces<P: Program>(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<[Piece]>> {
    let footprint = P::kernel().footprint(P::CONDITIONS, P::ACCESSES)?;
    let given = args.iter().map(|arg| match *arg {
        NativeArg::Buffer { len, .. } => Given::Elements(len as u64),
        NativeArg::Value(bytes) => Given::Value(bytes),
    });
    let launch = Launch {
        grid: launch.grid.to_array(),
        block: launch.block.to_array(),
        dynamic_shared_bytes: launch.shared_bytes,
        // No native body asks for it.
        subgroup_size: 1,
        args: &given.collect::<Vec<_>>(),
    };
    footprint.plan(&launch, P::MERGED)
}

/// A piece with how it runs.
fn part<P: Program>(piece: &Piece) -> Part {
    let Conditions { met, known, truth } = piece.conditions;
    let holds = |condition: u32| met & !(known & truth) & 1 << condition == 0;
    // Fast bodies look for neighbours where they are without an edge's rule.
    let inside = holds(INSIDE);
    let how = match opening(P::CONDITIONS, met & !known) {
        _ if !piece.proven || !inside => How::Checked,
        _ if piece.accesses.is_empty() && !piece.stops => How::Idle,
        Some(open) if holds(COMPUTED) => How::Told(open),
        _ => How::Fast,
    };
    Part {
        space: piece.space,
        how,
        conditions: Recorded { known, truth },
    }
}

/// What the accesses of a buffer that is stored to have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The parameter's number.
    pub(super) slot: usize,
    /// Whether one of them is a store.
    pub(super) stores: bool,
    /// The form of all indices: the same strides, and the hull of the intervals.
    pub(super) form: Option<Form>,
    /// The lanes that make them.
    pub(super) lanes: Space,
}

/// What a piece reaches.
fn reaches_of(piece: &Piece) -> Vec<Reach> {
    let mut reaches: Vec<Reach> = Vec::new();
    for Accessed {
        param,
        stores,
        elements,
    } in piece.accesses.iter().copied()
    {
        let reach = Reach {
            slot: param as usize,
            stores,
            form: elements.range(&piece.space).map(|_| elements),
            lanes: piece.space,
        };
        match reaches.iter_mut().find(|known| known.is_like(&reach)) {
            Some(known) => *known = known.with(reach),
            None => reaches.push(reach),
        }
    }
    reaches
}

/// How the lanes of a launch stand to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Some element may be reached by several lanes, one of which stores to it.
    Shared,
    /// None is, but a buffer that is stored to has bytes of another.
    Overlapping,
    /// None is, and none has.
    Apart,
}

/// Whether each element that a lane stores to is reached by that lane only.
fn standing(reaches: &[Reach], extents: &[Option<Extent>], overlaps: &[Overlap]) -> Standing {
    let slots = extents.len();
    let (mut reached, mut stored) = (vec![false; slots], vec![false; slots]);
    for reach in reaches {
        reached[reach.slot] = true;
        stored[reach.slot] |= reach.stores;
    }
    let mut found = Standing::Apart;
    // A buffer under several names is one, that of its first.
    let mut name: Vec<usize> = (0..slots).collect();
    for Overlap { first, second, same } in overlaps.iter().copied() {
        let element = |slot: usize| extents[slot].map(|extent| extent.element);
        let one = same && element(first) == element(second);
        if one {
            // Overlaps come in order, so that a buffer's first name is met first.
            name[second] = name[first].min(name[second]);
        }
        if reached[first] && reached[second] && (stored[first] || stored[second]) {
            if !one {
                return Standing::Shared;
            }
            found = Standing::Overlapping;
        }
    }
    let mut all: Vec<Option<Reach>> = vec![None; slots];
    for reach in reaches {
        let known = &mut all[name[reach.slot]];
        *known = Some(known.map_or(*reach, |known| known.with(*reach)));
    }
    let is_proven = |(slot, reach): (usize, &Option<Reach>)| {
        let of_slot = || reaches.iter().filter(|reach| name[reach.slot] == slot);
        reach.is_none_or(|reach| !reach.stores || is_injective(&reach) || are_apart(of_slot()))
    };
    if all.iter().enumerate().all(is_proven) {
        found
    } else {
        Standing::Shared
    }
}

/// Whether each of a buffer's accesses has elements of its own, and its lanes have: as where single lanes store to single elements.
fn are_apart<'a>(reaches: impl Iterator<Item = &'a Reach>) -> bool {
    let elements = |reach: &Reach| {
        let range = reach.form.and_then(|form| form.range(&reach.lanes))?;
        is_injective(reach).then_some(range)
    };
    let Some(mut ranges) = reaches.map(elements).collect::<Option<Vec<_>>>() else {
        return false;
    };
    ranges.sort_unstable();
    ranges.is_sorted_by(|(_, last), (first, _)| last < first)
}

impl Plan {
    /// What the launch reaches, by slab; `None` where that is not known.
    pub(super) fn footprints(&self, extents: &[Option<Extent>], slabs: &Slabs) -> Option<Vec<Footprint>> {
        let footprint = |reach: &Reach| reach.footprint(extents.get(reach.slot)?.as_ref()?, slabs);
        self.reaches.as_ref()?.iter().map(footprint).collect()
    }
}

impl Reach {
    /// Whether one form can say where both go without saying more than they reach by much.
    fn is_like(&self, other: &Reach) -> bool {
        let strides = |reach: &Reach| reach.form.map(|form| form.strides);
        self.slot == other.slot && self.stores == other.stores && strides(self) == strides(other)
    }

    /// The same with another access.
    fn with(self, other: Reach) -> Reach {
        let form = self.form.zip(other.form).and_then(|(a, b)| {
            (a.strides == b.strides).then_some(Form {
                low: a.low.min(b.low),
                high: a.high.max(b.high),
                strides: a.strides,
            })
        });
        Reach {
            slot: self.slot,
            stores: self.stores || other.stores,
            form,
            lanes: self.lanes.hull(&other.lanes),
        }
    }

    /// The bytes that it reaches, by slab.
    fn footprint(&self, extent: &Extent, slabs: &Slabs) -> Option<Footprint> {
        let Slabs { axis, lanes, .. } = *slabs;
        let slab = |lane: i64| u64::try_from(lane / lanes).ok();
        let (from, to) = (
            slab(self.lanes.from[axis])?,
            slab(self.lanes.to[axis] + lanes - 1)?,
        );
        let start = i64::try_from(extent.start).ok()?;
        let size = i64::try_from(extent.element).ok()?;
        let whole = (start, start.checked_add(i64::try_from(extent.bytes).ok()?)?, 0);
        let exact = || {
            let form = self.form?;
            let mut rest = form;
            rest.strides[axis] = 0;
            let mut lanes_of_slab = self.lanes;
            (lanes_of_slab.from[axis], lanes_of_slab.to[axis]) = (0, 1);
            let (low, high) = rest.range(&lanes_of_slab)?;
            let stride = form.strides[axis].checked_mul(size)?;
            // The lanes of a slab that is a piece of a row.
            let spread = stride.checked_mul(lanes - 1)?;
            Some((
                low.checked_mul(size)?
                    .checked_add(start)?
                    .checked_add(spread.min(0))?,
                high.checked_add(1)?
                    .checked_mul(size)?
                    .checked_add(start)?
                    .checked_add(spread.max(0))?,
                stride.checked_mul(lanes)?,
            ))
        };
        let (low, high, stride) = exact().unwrap_or(whole);
        Some(Footprint {
            stores: self.stores,
            slabs: from..to,
            low,
            high,
            stride,
        })
    }
}

/// Whether different lanes have different indices: as digits of a number whose places are worth the strides.
fn is_injective(reach: &Reach) -> bool {
    let Some(form) = reach.form else {
        return false;
    };
    let mut digits = [(0i64, 0i64); AXES];
    for (axis, digit) in digits.iter_mut().enumerate() {
        let count = reach.lanes.to[axis] - reach.lanes.from[axis];
        *digit = (form.strides[axis].saturating_abs(), count - 1);
    }
    digits.sort_unstable();
    let mut reached = form.high.saturating_sub(form.low);
    for (stride, last) in digits {
        if last == 0 {
            continue;
        }
        if stride <= reached {
            return false;
        }
        reached = reached.saturating_add(stride.saturating_mul(last));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(low: i64, high: i64, strides: [i64; 3], counts: [i64; 3]) -> Reach {
        let wide = |v: [i64; 3], rest: i64| [v[0], v[1], v[2], rest, rest, rest];
        Reach {
            slot: 0,
            stores: true,
            form: Some(Form {
                low,
                high,
                strides: wide(strides, 0),
            }),
            lanes: Space::new([0; AXES], wide(counts, 1)).unwrap(),
        }
    }

    #[test]
    fn names_of_one_buffer_are_compared_with_all_others() {
        let buffer = |start: usize| {
            Some(Extent {
                start,
                bytes: 400,
                element: 4,
            })
        };
        let load = |slot: usize, low: i64| Reach {
            slot,
            stores: false,
            ..reach(low, low, [1, 0, 0], [50, 1, 1])
        };
        let store = |slot: usize| Reach {
            stores: true,
            ..load(slot, 0)
        };
        let overlap = |first, second, same| Overlap { first, second, same };
        let three = |same| [overlap(0, 1, true), overlap(0, 2, same), overlap(1, 2, same)];
        let check = |reaches: &[Reach], overlaps: &[Overlap], expect: Standing| {
            let extents = [buffer(0), buffer(0), buffer(0)];
            assert_eq!(
                standing(reaches, &extents, overlaps),
                expect,
                "{reaches:?} {overlaps:?}"
            );
        };
        check(&[load(0, 0), load(1, 1), store(2)], &[], Standing::Apart);
        check(
            &[load(0, 0), load(1, 0), store(2)],
            &three(true),
            Standing::Overlapping,
        );
        // The second name's neighbour is what the third stores to.
        check(
            &[load(0, 0), load(1, 1), store(2)],
            &three(true),
            Standing::Shared,
        );
        check(
            &[load(0, 1), load(1, 0), store(2)],
            &three(true),
            Standing::Shared,
        );
        check(
            &[load(0, 0), load(1, 0), store(2)],
            &three(false),
            Standing::Shared,
        );
        // What is not reached does not matter, nor what is not stored to.
        check(&[load(0, 0), store(1)], &[overlap(0, 2, false)], Standing::Apart);
        check(
            &[load(0, 0), load(1, 1), load(2, 2)],
            &three(false),
            Standing::Apart,
        );
    }

    #[test]
    fn single_lanes_are_told_apart_by_their_elements() {
        let lane = |element: i64, y: i64| {
            let mut reach = reach(element, element, [0, 0, 0], [1, 1, 1]);
            (reach.lanes.from[1], reach.lanes.to[1]) = (y, y + 1);
            reach
        };
        let check = |reaches: &[Reach], expect: Standing| {
            let extent = Some(Extent {
                start: 0,
                bytes: 400,
                element: 4,
            });
            assert_eq!(standing(reaches, &[extent], &[]), expect, "{reaches:?}");
        };
        check(&[lane(3, 7), lane(4, 2)], Standing::Apart);
        check(&[lane(3, 7), lane(3, 2)], Standing::Shared);
        // Ten lanes store to one element.
        check(
            &[lane(3, 7), reach(5, 5, [0, 0, 0], [1, 10, 1])],
            Standing::Shared,
        );
        check(
            &[lane(3, 7), reach(0, 3, [4, 0, 0], [10, 1, 1])],
            Standing::Shared,
        );
        check(&[lane(3, 7), reach(4, 7, [4, 0, 0], [10, 1, 1])], Standing::Apart);
    }

    #[test]
    fn lanes_are_told_apart_by_their_indices() {
        let check = |reach: Reach, expect: bool| assert_eq!(is_injective(&reach), expect, "{reach:?}");
        check(reach(0, 0, [1, 0, 0], [100, 1, 1]), true);
        check(reach(0, 0, [-1, 0, 0], [100, 1, 1]), true);
        // All lanes store to one element.
        check(reach(5, 5, [0, 0, 0], [100, 1, 1]), false);
        check(reach(5, 5, [0, 0, 0], [1, 1, 1]), true);
        // Two elements a lane, then with a stride that has no room for them.
        check(reach(0, 1, [2, 0, 0], [100, 1, 1]), true);
        check(reach(0, 2, [2, 0, 0], [100, 1, 1]), false);
        // Rows of a picture: as wide as it, narrower, wider.
        check(reach(0, 0, [1, 64, 0], [64, 10, 1]), true);
        check(reach(0, 0, [1, 64, 0], [65, 10, 1]), false);
        check(reach(0, 0, [64, 1, 0], [64, 64, 1]), true);
        // Rows of y are not told apart.
        check(reach(0, 0, [1, 0, 0], [64, 2, 1]), false);
    }
}
