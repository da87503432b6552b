//! Exchanges among the lanes of a subgroup: consecutive lanes of the block, the last subgroup perhaps short.

use std::ops::Range;

use super::super::mask;
use super::super::program::Reg;
use super::Machine;
use crate::ir::{ReduceOp, Scalar, SubgroupOp};
use crate::ops::eval::{self, Line, combine, reduce_identity};

/// One subgroup: its lanes, and what is known of them.
struct Group<'a> {
    lanes: Range<usize>,
    active: &'a [u64],
    values: &'a [Line],
    size: u32,
}

impl Group<'_> {
    fn value(&self, lane: usize) -> u64 {
        eval::get(self.values, self.size, lane)
    }

    fn active(&self) -> impl Iterator<Item = usize> {
        self.lanes.clone().filter(|lane| mask::has(self.active, *lane))
    }

    /// Value of the lane at `index` in the subgroup, if that lane is there and active.
    fn at(&self, index: Option<usize>) -> Option<u64> {
        let lane = self.lanes.start.checked_add(index?)?;
        (self.lanes.contains(&lane) && mask::has(self.active, lane)).then(|| self.value(lane))
    }

    /// The combination of the lanes up to each active one, that one included or not.
    fn scan(&self, op: ReduceOp, s: Scalar, inclusive: bool, mut put: impl FnMut(usize, u64)) {
        let mut sum = reduce_identity(op, s);
        let mut first = true;
        for lane in self.active() {
            let v = self.value(lane);
            // The first value stands as it is: identity and value might differ in the sign of a zero.
            let next = if first { v } else { combine(op.binary(), s, sum, v) };
            put(lane, if inclusive { next } else { sum });
            (sum, first) = (next, false);
        }
    }

    fn reduced(&self, op: ReduceOp, s: Scalar) -> u64 {
        let mut values = self.active().map(|lane| self.value(lane));
        let first = values.next().unwrap_or_default();
        values.fold(first, |sum, v| combine(op.binary(), s, sum, v))
    }
}

/// Calls `put` with what each active lane gets: for each word of the result (a ballot has four), lane and bits. Subgroups have `lanes`
/// lanes, the block `all`; `args` are the second operand, where there is one.
#[expect(clippy::too_many_arguments, reason = "the parts of one operation")]
pub(in super::super) fn exchange(
    lanes: usize,
    all: usize,
    active: &[u64],
    op: SubgroupOp,
    s: Scalar,
    values: &[Line],
    args: &[Line],
    mut put: impl FnMut(usize, usize, u64),
) {
    for start in (0..all).step_by(lanes) {
        let group = Group {
            lanes: start..(start + lanes).min(all),
            active,
            values,
            size: s.size(),
        };
        let arg = |lane: usize| eval::get(args, 4, lane) as usize;
        let mut put_one = |lane: usize, bits: u64| put(0, lane, bits);
        match op {
            // An absent or inactive lane's value is unspecified: zero here.
            SubgroupOp::Shuffle => {
                for lane in group.active() {
                    put_one(lane, group.at(Some(arg(lane))).unwrap_or(0));
                }
            }
            SubgroupOp::ShuffleUp | SubgroupOp::ShuffleDown | SubgroupOp::ShuffleXor => {
                for lane in group.active() {
                    let (here, by) = (lane - start, arg(lane));
                    let from = match op {
                        SubgroupOp::ShuffleUp => here.checked_sub(by),
                        SubgroupOp::ShuffleDown => here.checked_add(by),
                        _ => Some(here ^ by),
                    };
                    put_one(lane, group.at(from).unwrap_or_else(|| group.value(lane)));
                }
            }
            SubgroupOp::BroadcastFirst => {
                let first = group.active().next().map_or(0, |lane| group.value(lane));
                group.active().for_each(|lane| put_one(lane, first));
            }
            SubgroupOp::Any => {
                let any = group.active().any(|lane| group.value(lane) != 0);
                group.active().for_each(|lane| put_one(lane, any.into()));
            }
            SubgroupOp::All => {
                let every = group.active().all(|lane| group.value(lane) != 0);
                group.active().for_each(|lane| put_one(lane, every.into()));
            }
            SubgroupOp::Ballot => {
                let votes = group.active().filter(|lane| group.value(*lane) != 0);
                let bits = votes.fold(0u128, |bits, lane| bits | 1 << (lane - start));
                for word in 0..4 {
                    let bits = (bits >> (32 * word)) as u32;
                    group.active().for_each(|lane| put(word, lane, bits.into()));
                }
            }
            SubgroupOp::Reduce(r) => {
                let sum = group.reduced(r, s);
                group.active().for_each(|lane| put_one(lane, sum));
            }
            SubgroupOp::InclusiveScan(r) => group.scan(r, s, true, put_one),
            SubgroupOp::ExclusiveScan(r) => group.scan(r, s, false, put_one),
        }
    }
}

impl Machine {
    pub(super) fn subgroup(
        &mut self,
        lanes: usize,
        op: SubgroupOp,
        s: Scalar,
        [a, arg]: [Reg; 2],
        out: [Reg; 4],
    ) {
        let (words, size) = match op {
            SubgroupOp::Ballot => (4, 4),
            _ => (1, s.size()),
        };
        let mut results: [Vec<Line>; 4] = Default::default();
        for (result, reg) in results.iter_mut().zip(out).take(words) {
            *result = self.take(reg);
        }
        for reg in [a, arg] {
            self.regs[reg as usize].lanes(self.sides, self.words);
        }
        let (values, args) = (self.regs[a as usize].written(), self.regs[arg as usize].written());
        let put = |word: usize, lane: usize, bits: u64| {
            if let Some(result) = results.get_mut(word) {
                eval::put(result, size, lane, bits);
            }
        };
        exchange(lanes, self.part.lanes, &self.active, op, s, values, args, put);
        for (result, reg) in results.into_iter().zip(out).take(words) {
            self.put(reg, result);
        }
    }
}
