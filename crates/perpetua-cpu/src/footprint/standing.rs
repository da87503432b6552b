//! How the lanes of a launch stand to one another: whether one reaches an element that another stores to. Told of pieces, and of
//! arguments that share bytes. Knows no statements.

use super::form::Form;
use super::space::{AXES, Space};
use super::{Footprint, Piece, Reach};

/// How the lanes of a launch stand to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Some element may be reached by several lanes, one of which stores to it.
    Shared,
    /// None is, but a buffer that is stored to has bytes of another.
    Overlapping,
    /// None is, and none has.
    Apart,
}

/// Lanes of a piece, and what they may access of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The parameter's number.
    pub param: u32,
    /// Whether some of the accesses are stores, or atomic updates.
    pub stores: bool,
    /// The form of all indices: the same strides, and the hull of the intervals.
    pub elements: Form,
    /// The lanes that make them.
    pub lanes: Space,
}

impl Reached {
    /// What pieces reach.
    pub fn of(pieces: &[Piece]) -> Vec<Reached> {
        pieces.iter().flat_map(Reached::of_piece).collect()
    }

    fn of_piece(piece: &Piece) -> Vec<Reached> {
        let mut all: Vec<Reached> = Vec::new();
        for accessed in &piece.accesses {
            let bounded = accessed.elements.range(&piece.space).is_some();
            let next = Reached {
                param: accessed.param,
                stores: accessed.stores,
                elements: if bounded { accessed.elements } else { Form::ANY },
                lanes: piece.space,
            };
            match all.iter_mut().find(|known| known.is_like(&next)) {
                Some(known) => *known = known.with(next),
                None => all.push(next),
            }
        }
        all
    }

    /// Whether one form can say where both go without saying more than they reach by much.
    fn is_like(&self, other: &Reached) -> bool {
        let key = |of: &Reached| (of.param, of.stores, of.elements.strides);
        key(self) == key(other)
    }

    /// The same with another access.
    fn with(self, other: Reached) -> Reached {
        let (a, b) = (self.elements, other.elements);
        let elements = match a.strides == b.strides {
            true => Form {
                low: a.low.min(b.low),
                high: a.high.max(b.high),
                ..a
            },
            false => Form::ANY,
        };
        Reached {
            param: self.param,
            stores: self.stores || other.stores,
            elements,
            lanes: self.lanes.hull(&other.lanes),
        }
    }

    /// The same for slabs of `lanes` lanes along an axis, in place of rows, of elements of `size` bytes; all of the buffer's `bytes`
    /// where elements cannot be told.
    pub fn by_slab(&self, axis: usize, lanes: i64, size: usize, bytes: usize) -> Option<Reach> {
        let slab = |lane: i64| u64::try_from(lane / lanes).ok();
        let rows = slab(self.lanes.from[axis])?..slab(self.lanes.to[axis] + lanes - 1)?;
        let exact = || {
            let size = i64::try_from(size).ok()?;
            let mut rest = self.elements;
            let stride = std::mem::take(&mut rest.strides[axis]).checked_mul(size)?;
            let (low, high) = rest.range(&self.lanes)?;
            // The lanes of a slab that is a piece of a row.
            let spread = stride.checked_mul(lanes - 1)?;
            Some((
                low.checked_mul(size)?.checked_add(spread.min(0))?,
                high.checked_add(1)?
                    .checked_mul(size)?
                    .checked_add(spread.max(0))?,
                stride.checked_mul(lanes)?,
            ))
        };
        let (low, high, stride) = match exact() {
            Some(exact) => exact,
            None => (0, i64::try_from(bytes).ok()?, 0),
        };
        Some(Reach {
            param: self.param,
            stores: self.stores,
            rows,
            low,
            high,
            stride,
        })
    }

    /// Whether different lanes have different elements: as digits of a number whose places are worth the strides.
    fn is_injective(&self) -> bool {
        let form = self.elements;
        let mut digits = [(0i64, 0i64); AXES];
        for (axis, digit) in digits.iter_mut().enumerate() {
            let count = self.lanes.to[axis] - self.lanes.from[axis];
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
}

impl Footprint {
    /// How lanes stand to one another that reach all this. `overlaps`: which two arguments share bytes, all pairs in the order of
    /// their second, then of their first, and whether each pair is the same bytes.
    pub fn standing(
        &self,
        reached: &[Reached],
        overlaps: impl IntoIterator<Item = ([usize; 2], bool)>,
    ) -> Standing {
        standing(reached, &self.program.elements, overlaps)
    }
}

/// The same; `sizes`: bytes of each parameter's elements.
fn standing(
    reached: &[Reached],
    sizes: &[u32],
    overlaps: impl IntoIterator<Item = ([usize; 2], bool)>,
) -> Standing {
    let touches = |param: usize| reached.iter().filter(move |of| of.param as usize == param);
    let is_touched = |param: usize| touches(param).next().is_some();
    let is_stored = |param: usize| touches(param).any(|of| of.stores);
    let mut found = Standing::Apart;
    // A buffer under several names is one, that of its first.
    let mut name: Vec<usize> = (0..sizes.len()).collect();
    for ([first, second], same) in overlaps {
        let (Some(size), Some(other)) = (sizes.get(first), sizes.get(second)) else {
            return Standing::Shared;
        };
        let one = same && size == other;
        if one {
            // Overlaps come in order, so that a buffer's first name is met first.
            name[second] = name[first].min(name[second]);
        }
        if is_touched(first) && is_touched(second) && (is_stored(first) || is_stored(second)) {
            if !one {
                return Standing::Shared;
            }
            found = Standing::Overlapping;
        }
    }
    let is_proven = |buffer: usize| {
        let of_buffer = || {
            reached
                .iter()
                .filter(|of| name.get(of.param as usize) == Some(&buffer))
        };
        let all = of_buffer().copied().reduce(Reached::with);
        all.is_none_or(|all| !all.stores || all.is_injective() || are_apart(of_buffer()))
    };
    match (0..sizes.len()).all(is_proven) {
        true => found,
        false => Standing::Shared,
    }
}

/// Whether each of a buffer's accesses has elements of its own, and its lanes have: as where single lanes store to single elements.
fn are_apart<'a>(reached: impl Iterator<Item = &'a Reached>) -> bool {
    let elements = |of: &Reached| of.elements.range(&of.lanes).filter(|_| of.is_injective());
    let Some(mut ranges) = reached.map(elements).collect::<Option<Vec<_>>>() else {
        return false;
    };
    ranges.sort_unstable();
    ranges.is_sorted_by(|(_, last), (first, _)| last < first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(low: i64, high: i64, strides: [i64; 3], counts: [i64; 3]) -> Reached {
        let wide = |v: [i64; 3], rest: i64| [v[0], v[1], v[2], rest, rest, rest];
        Reached {
            param: 0,
            stores: true,
            elements: Form {
                low,
                high,
                strides: wide(strides, 0),
            },
            lanes: Space::new([0; AXES], wide(counts, 1)).unwrap(),
        }
    }

    #[test]
    fn names_of_one_buffer_are_compared_with_all_others() {
        let load = |param: u32, low: i64| Reached {
            param,
            stores: false,
            ..reached(low, low, [1, 0, 0], [50, 1, 1])
        };
        let store = |param: u32| Reached {
            stores: true,
            ..load(param, 0)
        };
        let three = |same| [([0, 1], true), ([0, 2], same), ([1, 2], same)];
        let check = |reached: &[Reached], overlaps: &[([usize; 2], bool)], expect: Standing| {
            let found = standing(reached, &[4; 3], overlaps.iter().copied());
            assert_eq!(found, expect, "{reached:?} {overlaps:?}");
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
        check(&[load(0, 0), store(1)], &[([0, 2], false)], Standing::Apart);
        check(
            &[load(0, 0), load(1, 1), load(2, 2)],
            &three(false),
            Standing::Apart,
        );
    }

    #[test]
    fn names_with_elements_of_two_sizes_are_no_names_of_one_buffer() {
        let load = Reached {
            param: 1,
            stores: false,
            ..reached(0, 0, [1, 0, 0], [50, 1, 1])
        };
        let store = reached(0, 0, [1, 0, 0], [50, 1, 1]);
        let check = |sizes: [u32; 2], expect: Standing| {
            assert_eq!(standing(&[store, load], &sizes, [([0, 1], true)]), expect);
        };
        check([4, 4], Standing::Overlapping);
        check([4, 2], Standing::Shared);
    }

    #[test]
    fn single_lanes_are_told_apart_by_their_elements() {
        let lane = |element: i64, y: i64| {
            let mut lane = reached(element, element, [0, 0, 0], [1, 1, 1]);
            (lane.lanes.from[1], lane.lanes.to[1]) = (y, y + 1);
            lane
        };
        let check = |all: &[Reached], expect: Standing| {
            assert_eq!(standing(all, &[4], []), expect, "{all:?}");
        };
        check(&[lane(3, 7), lane(4, 2)], Standing::Apart);
        check(&[lane(3, 7), lane(3, 2)], Standing::Shared);
        // Ten lanes store to one element.
        check(
            &[lane(3, 7), reached(5, 5, [0, 0, 0], [1, 10, 1])],
            Standing::Shared,
        );
        check(
            &[lane(3, 7), reached(0, 3, [4, 0, 0], [10, 1, 1])],
            Standing::Shared,
        );
        check(
            &[lane(3, 7), reached(4, 7, [4, 0, 0], [10, 1, 1])],
            Standing::Apart,
        );
        // Nobody knows what the second reaches.
        let any = Reached {
            elements: Form::ANY,
            ..lane(9, 2)
        };
        check(&[lane(3, 7), any], Standing::Shared);
    }

    #[test]
    fn lanes_are_told_apart_by_their_indices() {
        let check = |of: Reached, expect: bool| assert_eq!(of.is_injective(), expect, "{of:?}");
        check(reached(0, 0, [1, 0, 0], [100, 1, 1]), true);
        check(reached(0, 0, [-1, 0, 0], [100, 1, 1]), true);
        // All lanes store to one element.
        check(reached(5, 5, [0, 0, 0], [100, 1, 1]), false);
        check(reached(5, 5, [0, 0, 0], [1, 1, 1]), true);
        // Two elements a lane, then with a stride that has no room for them.
        check(reached(0, 1, [2, 0, 0], [100, 1, 1]), true);
        check(reached(0, 2, [2, 0, 0], [100, 1, 1]), false);
        // Rows of a picture: as wide as it, narrower, wider.
        check(reached(0, 0, [1, 64, 0], [64, 10, 1]), true);
        check(reached(0, 0, [1, 64, 0], [65, 10, 1]), false);
        check(reached(0, 0, [64, 1, 0], [64, 64, 1]), true);
        // Rows of y are not told apart.
        check(reached(0, 0, [1, 0, 0], [64, 2, 1]), false);
    }
}
