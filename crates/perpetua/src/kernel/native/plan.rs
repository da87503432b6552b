//! A launch cut into boxes of lanes, each with what was proven of it, and the proof for the launch as a whole: that no
//! two lanes touch an element that one of them stores to.

use super::affine::AXES;
use super::mode::Shape;
use super::probe::{Exit, Probe, Reach, Space};
use super::run::Program;
use super::view::Extent;

/// How often a launch is cut at most. Conditions beyond that are taken for unknown.
const MOST_CUTS: usize = 48;

/// A box of lanes and what was proven of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) space: Space,
    /// Whether all its accesses are proven.
    pub(super) fast: bool,
    /// Conditions that are known there: bit `i` of `known`, and what it is.
    pub(super) known: u64,
    pub(super) truth: u64,
}

/// Cuts `whole`, which has lanes, into boxes.
pub(super) fn plan<P: Program>(
    args: &P::Args<'_>,
    extents: &[Option<Extent>],
    shape: &Shape,
    whole: Space,
) -> Vec<Part> {
    let mut parts = Vec::new();
    if !P::FAST {
        parts.push(Part {
            space: whole,
            fast: false,
            known: 0,
            truth: 0,
        });
        return parts;
    }
    let mut reaches = vec![None; extents.len()];
    let mut left = vec![whole];
    let mut cuts = 0;
    while let Some(space) = left.pop() {
        let mut probe = Probe::new(space, shape, extents.len(), cuts < MOST_CUTS);
        match P::probe(&mut probe, args) {
            Err(Exit::Cut(axis, at)) => {
                let (below, above) = space.cut(axis, at);
                left.extend([above, below]);
                cuts += 1;
            }
            Ok(()) | Err(Exit::Return) => {
                parts.push(Part {
                    space,
                    fast: probe.proven,
                    known: probe.known.get(),
                    truth: probe.truth.get(),
                });
                merge(&mut reaches, &probe.reaches);
            }
        }
    }
    if !is_private(reaches, extents) {
        parts.iter_mut().for_each(|part| part.fast = false);
    }
    parts
}

fn merge(all: &mut [Option<Reach>], more: &[Option<Reach>]) {
    for (known, more) in all.iter_mut().zip(more) {
        *known = match (*known, *more) {
            (Some(a), Some(b)) => Some(a.with(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Whether each element that a lane stores to is reached by that lane only. `reaches` by slot, of all lanes.
fn is_private(mut reaches: Vec<Option<Reach>>, extents: &[Option<Extent>]) -> bool {
    // The same buffer under two names is one.
    for second in 1..extents.len() {
        for first in 0..second {
            let (Some(a), Some(b)) = (&extents[first], &extents[second]) else {
                continue;
            };
            if let (Some(x), Some(y)) = (reaches[first], reaches[second])
                && (x.stores || y.stores)
                && a.meets(b)
            {
                if a != b {
                    return false;
                }
                reaches[first] = Some(x.with(y));
                reaches[second] = None;
            }
        }
    }
    reaches
        .iter()
        .flatten()
        .filter(|reach| reach.stores)
        .all(is_injective)
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
    use super::super::affine::Form;
    use super::*;

    fn reach(low: i64, high: i64, strides: [i64; 3], counts: [i64; 3]) -> Reach {
        let wide = |v: [i64; 3], rest: i64| [v[0], v[1], v[2], rest, rest, rest];
        Reach {
            stores: true,
            form: Some(Form {
                low,
                high,
                strides: wide(strides, 0),
            }),
            lanes: Space {
                from: [0; AXES],
                to: wide(counts, 1),
            },
        }
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
