//! Launches in succession as a wavefront: in which order slabs of several launches may run so that memory is passed over
//! once for many of them ("blocking in time", or temporal tiling). Knows footprints only, not what launches do.
//!
//! Two slabs conflict where their footprints have a byte in common and one of them stores. If slab `r` of a launch conflicts
//! with slabs up to `r + d` of an earlier one only, it may run as soon as the earlier one has ended slab `r + d`. Each
//! launch gets a *delay* in slabs, such that of any two the delays differ by at least their `d`. At tick `t`, launch after
//! launch runs the slabs from `t·R - delay` up to `(t + 1)·R - delay`: every conflict then runs in the order of the
//! launches.

use std::collections::HashMap;
use std::ops::Range;

use crate::native::Footprint;

/// Slabs of a launch that run at a tick, for all threads together: each piece costs hundreds of nanoseconds, whatever its size, and each
/// thread stays a piece behind the one before it. Fewer where one slab fills a good part of the cache.
const ROWS: i64 = 32;

/// Slabs of a launch that run at a tick: so many at least, and at most.
const PIECE: (i64, i64) = (4, 16);

/// Launches that threads run at a tick, at most; the last thread starts when the first has gone so many slabs ahead.
const MOST: i64 = 64;

/// Launches that a thread runs at a tick: so many at most, and so many at least where there are many threads.
const DEPTH: (i64, i64) = (8, 32);

/// Kinds of launches that are compared, at most; the number of pairs grows with the square.
const KINDS: usize = 24;

/// Delays between launches from here on are none: little would be left of the grid.
const FAR: i64 = 16;

/// Launches in an order that is not theirs, with the same result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wavefront {
    /// By launch, in slabs; never falls.
    delays: Vec<i64>,
    /// By launch.
    slabs: Vec<i64>,
    /// Slabs of a launch that run at a tick.
    rows: i64,
    /// Launches that run together, in order.
    pub(super) groups: Vec<Range<usize>>,
}

impl Wavefront {
    /// The order for these launches, each given by its number of slabs and its footprints. `cache`: bytes that a thread
    /// reaches fast. `None` where blocking gains nothing, or a conflict reaches too far.
    pub(super) fn new(launches: &[(u64, &[Footprint])], cache: i64, threads: i64) -> Option<Wavefront> {
        let all = launches.iter().flat_map(|(_, footprints)| *footprints);
        let stored = merged(all.clone().filter(|f| f.stores));
        let reached = merged(all);
        let bytes: i64 = reached.iter().map(|r| r.end - r.start).sum();
        if bytes <= cache.checked_mul(threads)? {
            return None;
        }
        let slabs: Vec<i64> = launches
            .iter()
            .map(|(slabs, _)| i64::try_from(*slabs).ok())
            .collect::<Option<_>>()?;
        let most = *slabs.iter().max()?;
        let a_slab = bytes / most.max(1);
        let (shallow, deep) = DEPTH;
        let (small, large) = PIECE;
        let rows = (cache / 8 / a_slab.max(1)).clamp(1, (ROWS / threads.max(1)).clamp(small, large));
        let depth = (cache / a_slab.max(1) - rows - 2).min((MOST / threads.max(1)).clamp(shallow, deep));
        if depth < 2 || launches.len() < 4 {
            return None;
        }
        let kinds = Kinds::of(launches, &stored)?;
        let delays = kinds.delays()?;
        let depth = depth as usize;
        let groups = (0..launches.len())
            .step_by(depth)
            .map(|from| from..(from + depth).min(launches.len()))
            .collect();
        Some(Wavefront {
            delays,
            slabs,
            rows,
            groups,
        })
    }

    /// The ticks of a group: from the first at which it has slabs to run, to the last at which it, or one before it, has. Who
    /// has seen a group end its ticks has thus seen all groups before end theirs, of whatever sizes their launches are.
    pub(super) fn ticks(&self, group: &Range<usize>) -> Range<i64> {
        let from = self.delays[group.start] / self.rows;
        let ends = (0..group.end).map(|i| self.delays[i] + self.slabs[i]);
        let to = ends.max().map_or(from, |end| (end + self.rows - 1) / self.rows);
        from..to.max(from)
    }

    /// The slabs of a launch that run at a tick; may be none.
    pub(super) fn slabs(&self, launch: usize, tick: i64) -> Range<u64> {
        let (delay, count) = (self.delays[launch], self.slabs[launch]);
        let at = |tick: i64| (tick * self.rows - delay).clamp(0, count) as u64;
        at(tick)..at(tick + 1)
    }
}

/// Launches told apart by what matters for conflicts.
struct Kinds {
    /// By launch.
    kind: Vec<usize>,
    /// By the earlier's kind and the later's; `None` where they do not conflict.
    ahead: Vec<Vec<Option<i64>>>,
}

impl Kinds {
    fn of(launches: &[(u64, &[Footprint])], stored: &[Range<i64>]) -> Option<Kinds> {
        let mut known: HashMap<Vec<Footprint>, usize> = HashMap::new();
        let mut kind = Vec::with_capacity(launches.len());
        let shared = shared(launches);
        for (_, footprints) in launches {
            // What nobody stores to conflicts with nothing, nor what no other launch reaches.
            let matters = |f: &&Footprint| meets(stored, &hull(f)) && meets(&shared, &hull(f));
            let relevant: Vec<Footprint> = footprints.iter().filter(matters).cloned().collect();
            let next = known.len();
            kind.push(*known.entry(relevant).or_insert(next));
            if known.len() > KINDS {
                return None;
            }
        }
        let mut by_number: Vec<(Vec<Footprint>, usize)> = known.into_iter().collect();
        by_number.sort_unstable_by_key(|(_, number)| *number);
        let row = |earlier: &[Footprint]| by_number.iter().map(|(later, _)| ahead(earlier, later)).collect();
        let ahead = by_number.iter().map(|(earlier, _)| row(earlier)).collect();
        Some(Kinds { kind, ahead })
    }

    /// The least delays; `None` where one reaches too far.
    fn delays(&self) -> Option<Vec<i64>> {
        // Of the launches of a kind the last has the greatest delay: no other needs to be looked at.
        let mut last: Vec<Option<i64>> = vec![None; self.ahead.len()];
        let mut delays: Vec<i64> = Vec::with_capacity(self.kind.len());
        for kind in &self.kind {
            let before = delays.last().copied().unwrap_or(0);
            let mut delay = before;
            for (earlier, last) in self.ahead.iter().zip(&last) {
                if let (Some(ahead), Some(last)) = (earlier[*kind], last) {
                    delay = delay.max(last.saturating_add(ahead));
                }
            }
            if delay - before > FAR {
                return None;
            }
            last[*kind] = Some(delay);
            delays.push(delay);
        }
        Some(delays)
    }
}

/// All bytes of a footprint, and some between.
fn hull(f: &Footprint) -> Range<i64> {
    if f.slabs.is_empty() {
        return 0..0;
    }
    let (from, to) = (f.slabs.start as i64, f.slabs.end as i64 - 1);
    let (a, b) = (f.stride.saturating_mul(from), f.stride.saturating_mul(to));
    f.low.saturating_add(a.min(b))..f.high.saturating_add(a.max(b))
}

/// The footprints' bytes as ranges in order that have none in common.
fn merged<'a>(footprints: impl Iterator<Item = &'a Footprint>) -> Vec<Range<i64>> {
    let mut hulls: Vec<Range<i64>> = footprints.map(hull).filter(|hull| !hull.is_empty()).collect();
    hulls.sort_unstable_by_key(|hull| (hull.start, hull.end));
    let mut merged: Vec<Range<i64>> = Vec::new();
    for hull in hulls {
        match merged.last_mut() {
            Some(last) if hull.start <= last.end => last.end = last.end.max(hull.end),
            _ => merged.push(hull),
        }
    }
    merged
}

/// Ranges in order that have none in common, with all bytes that several launches reach.
fn shared(launches: &[(u64, &[Footprint])]) -> Vec<Range<i64>> {
    let of = |(launch, (_, footprints)): (usize, &(u64, &[Footprint]))| {
        let hulls: Vec<_> = footprints
            .iter()
            .map(hull)
            .filter(|hull| !hull.is_empty())
            .collect();
        hulls.into_iter().map(move |hull| (hull, launch))
    };
    let mut hulls: Vec<(Range<i64>, usize)> = launches.iter().enumerate().flat_map(of).collect();
    hulls.sort_unstable_by_key(|(hull, launch)| (hull.start, hull.end, *launch));
    // Ranges that have bytes in common, together, and the launch that they are of where it is one.
    let mut together: Vec<(Range<i64>, Option<usize>)> = Vec::new();
    for (hull, launch) in hulls {
        match together.last_mut() {
            Some((last, of)) if hull.start < last.end => {
                last.end = last.end.max(hull.end);
                *of = of.filter(|of| *of == launch);
            }
            _ => together.push((hull, Some(launch))),
        }
    }
    let shared = together.into_iter().filter(|(_, of)| of.is_none());
    shared.map(|(range, _)| range).collect()
}

/// Whether a range has a byte in common with one of several in order.
fn meets(ranges: &[Range<i64>], range: &Range<i64>) -> bool {
    let from = ranges.partition_point(|known| known.end <= range.start);
    ranges.get(from).is_some_and(|known| known.start < range.end)
}

/// How far ahead of slab `r` of the later launch slabs of the earlier one conflict with it: the greatest `q - r`; `None`
/// where none does.
fn ahead(earlier: &[Footprint], later: &[Footprint]) -> Option<i64> {
    let pairs = earlier.iter().flat_map(|a| later.iter().map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| ahead_of_pair(a, b)).max()
}

fn ahead_of_pair(a: &Footprint, b: &Footprint) -> Option<i64> {
    if !(a.stores || b.stores) || a.slabs.is_empty() || b.slabs.is_empty() {
        return None;
    }
    if !meets(&[hull(a)], &hull(b)) {
        return None;
    }
    let first = |f: &Footprint| f.slabs.start as i64;
    let last = |f: &Footprint| f.slabs.end as i64 - 1;
    let (most, least) = (last(a) - first(b), first(a) - last(b));
    // A single slab's bytes are the same with any stride.
    let with = |f: &Footprint, stride: i64| Footprint {
        low: f.low + (f.stride - stride) * first(f),
        high: f.high + (f.stride - stride) * first(f),
        stride,
        ..f.clone()
    };
    let (a, b) = match (first(a) == last(a), first(b) == last(b)) {
        (true, _) => (with(a, b.stride), b.clone()),
        (_, true) => (a.clone(), with(b, a.stride)),
        _ => (a.clone(), b.clone()),
    };
    if a.stride != b.stride || a.stride == 0 {
        // Of equal strides that are zero the hulls are exact: they meet. Of others too little is known.
        return Some(most);
    }
    // Bytes in common: a.low + s·q < b.high + s·r and b.low + s·r < a.high + s·q.
    let s = a.stride.abs();
    let (above, below) = if a.stride > 0 {
        (b.high - a.low, b.low - a.high)
    } else {
        (a.high - b.low, a.low - b.high)
    };
    // below < s·(q - r) < above
    let greatest = most.min((above - 1).div_euclid(s));
    (greatest >= least.max(below.div_euclid(s) + 1)).then_some(greatest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows `slabs` of a grid at `at` with rows of `row` bytes, and their neighbours up to `halo` rows off.
    fn rows(stores: bool, at: i64, row: i64, halo: i64, slabs: Range<u64>) -> Footprint {
        Footprint {
            stores,
            slabs,
            low: at - halo * row,
            high: at + (halo + 1) * row,
            stride: row,
        }
    }

    /// A time step from `from` to `to`.
    fn step(from: i64, to: i64, halo: i64) -> Vec<Footprint> {
        let h = halo as u64;
        vec![
            rows(false, from, 100, halo, h..1000 - h),
            rows(true, to, 100, 0, h..1000 - h),
            // A border that reads its own row only.
            rows(false, from, 100, 0, 0..1),
            rows(true, to, 100, 0, 0..1),
        ]
    }

    #[test]
    fn conflicts_reach_as_far_as_footprints_do() {
        let check = |a: &Footprint, b: &Footprint, expect: Option<i64>| {
            assert_eq!(ahead_of_pair(a, b), expect, "{a:?} {b:?}");
        };
        // What a step writes, the next reads a row off.
        check(
            &rows(true, 0, 100, 0, 0..50),
            &rows(false, 0, 100, 1, 1..49),
            Some(1),
        );
        // What a step reads a row off, the next overwrites.
        check(
            &rows(false, 0, 100, 2, 2..48),
            &rows(true, 0, 100, 0, 0..50),
            Some(2),
        );
        check(
            &rows(false, 0, 100, 2, 2..48),
            &rows(false, 0, 100, 0, 0..50),
            None,
        );
        check(
            &rows(true, 0, 100, 0, 0..50),
            &rows(true, 9000, 100, 0, 0..50),
            None,
        );
        // One row against all.
        check(
            &rows(true, 700, 100, 0, 0..1),
            &rows(false, 0, 100, 0, 0..50),
            Some(-7),
        );
        check(
            &rows(true, 0, 100, 0, 0..50),
            &rows(false, 700, 100, 0, 0..1),
            Some(7),
        );
        // Backwards.
        let back = Footprint {
            stride: -100,
            ..rows(true, 5000, 100, 0, 0..50)
        };
        check(&back, &back, Some(0));
        check(&rows(true, 0, 100, 0, 0..50), &back, Some(49));
        let all = Footprint {
            stores: false,
            slabs: 0..50,
            low: 0,
            high: 5000,
            stride: 0,
        };
        check(&all, &rows(true, 0, 100, 0, 0..50), Some(49));
    }

    #[test]
    fn every_conflict_runs_in_the_order_of_the_launches() {
        let steps: Vec<Vec<Footprint>> = (0..37)
            .map(|i| {
                let (a, b) = if i % 2 == 0 { (0, 1 << 20) } else { (1 << 20, 0) };
                step(a, b, 1 + i64::from(i % 3 == 0))
            })
            .collect();
        let launches: Vec<(u64, &[Footprint])> = steps.iter().map(|f| (1000, f.as_slice())).collect();
        let Some(front) = Wavefront::new(&launches, 4000, 1) else {
            panic!("the steps can be blocked");
        };
        // When each slab runs, by the order of groups and ticks that threads keep to.
        let mut turn = vec![vec![usize::MAX; 1000]; steps.len()];
        let mut order: Vec<(i64, usize)> = Vec::new();
        for (g, group) in front.groups.iter().enumerate() {
            order.extend(front.ticks(group).map(|tick| (tick, g)));
        }
        order.sort_unstable();
        for (now, (tick, g)) in order.into_iter().enumerate() {
            for i in front.groups[g].clone() {
                for slab in front.slabs(i, tick) {
                    assert_eq!(turn[i][slab as usize], usize::MAX, "twice");
                    turn[i][slab as usize] = now * 64 + i - front.groups[g].start;
                }
            }
        }
        assert!(turn.iter().flatten().all(|t| *t != usize::MAX), "never");
        let bytes = |f: &Footprint, slab: i64| f.low + f.stride * slab..f.high + f.stride * slab;
        for i in 0..steps.len() {
            for j in i + 1..(i + 4).min(steps.len()) {
                for (a, b) in steps[i].iter().flat_map(|a| steps[j].iter().map(move |b| (a, b))) {
                    if !(a.stores || b.stores) {
                        continue;
                    }
                    for r in b.slabs.clone() {
                        let near = r.saturating_sub(4)..(r + 5).min(a.slabs.end);
                        for q in near.filter(|q| a.slabs.contains(q)) {
                            let (x, y) = (bytes(a, q as i64), bytes(b, r as i64));
                            if x.start < y.end && y.start < x.end {
                                assert!(turn[i][q as usize] < turn[j][r as usize], "{i}:{q} {j}:{r}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_each_launch_stores_for_itself_tells_none_apart() {
        let steps: Vec<Vec<Footprint>> = (0..40)
            .map(|i| {
                let (a, b) = if i % 2 == 0 { (0, 1 << 20) } else { (1 << 20, 0) };
                let mut step = step(a, b, 1);
                // A number of each step's own, beside the others'.
                step.push(rows(true, (1 << 21) + 4 * i, 4, 0, 7..8));
                step
            })
            .collect();
        let launches: Vec<(u64, &[Footprint])> = steps.iter().map(|f| (1000, f.as_slice())).collect();
        let front = Wavefront::new(&launches, 4000, 1);
        assert!(front.is_some_and(|front| front.delays.is_sorted() && front.delays[39] == 39));
    }

    #[test]
    fn a_group_of_small_launches_ends_no_sooner_than_those_before_it() {
        let (large, small) = (step(0, 1 << 20, 1), vec![rows(true, 1 << 20, 100, 0, 0..8)]);
        let launches: Vec<(u64, &[Footprint])> = (0..60)
            .map(|i| {
                if i % 20 < 10 {
                    (1000, large.as_slice())
                } else {
                    (8, small.as_slice())
                }
            })
            .collect();
        let Some(front) = Wavefront::new(&launches, 1800, 1) else {
            panic!("the steps can be blocked");
        };
        let ends: Vec<i64> = front.groups.iter().map(|group| front.ticks(group).end).collect();
        assert!(ends.len() > 5 && ends.is_sorted(), "{ends:?}");
    }

    #[test]
    fn what_reaches_far_or_fits_is_not_blocked() {
        let launch = |f: Vec<Footprint>| vec![f; 40];
        let check = |steps: &[Vec<Footprint>], cache: i64, expect: bool| {
            let launches: Vec<(u64, &[Footprint])> = steps.iter().map(|f| (1000, f.as_slice())).collect();
            assert_eq!(Wavefront::new(&launches, cache, 2).is_some(), expect);
        };
        check(&launch(step(0, 1 << 20, 1)), 4000, true);
        check(&launch(step(0, 1 << 20, 1)), 400_000, false);
        check(&launch(step(0, 1 << 20, 20)), 4000, true);
        // In place, far off.
        check(&launch(step(0, 0, 20)), 4000, false);
        let all = Footprint {
            stores: false,
            slabs: 999..1000,
            low: 1 << 20,
            high: (1 << 20) + 100_000,
            stride: 0,
        };
        let mut whole = step(0, 1 << 20, 1);
        whole.push(all);
        check(&launch(whole), 4000, false);
    }
}
