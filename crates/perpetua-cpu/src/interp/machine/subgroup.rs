//! Exchanges among the lanes of a subgroup: consecutive lanes of the block, the last subgroup perhaps short.

use std::ops::Range;

use super::super::mask;
use super::super::program::Reg;
use super::Machine;
use super::matrix::{self, Lanes};
use crate::eval::{self, Line, combine, reduce_identity};
use perpetua_ir::ir::{DeviceOp, ReduceOp, Scalar, SubgroupOp};
use perpetua_ir::ops::Gives;

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

/// Calls `put` with what each active lane gets: for each word of the result (a ballot has four), lane and bits. `operands` are the scalars
/// that lanes bring, `s` the type of the first.
pub(in super::super) fn exchange(
    here: Lanes<'_>,
    op: DeviceOp,
    s: Scalar,
    operands: &[&[Line]],
    put: impl FnMut(usize, usize, u64),
) {
    match op {
        DeviceOp::Subgroup(op) => {
            let values = operands.first().copied().unwrap_or_default();
            let args = operands.get(1).copied().unwrap_or_default();
            among(here, op, s, values, args, put);
        }
        DeviceOp::Matrix(op) => matrix::exchange(here, op, operands, put),
        _ => {}
    }
}

fn among(
    Lanes {
        of_subgroup: lanes,
        all,
        active,
    }: Lanes<'_>,
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
    pub(super) fn exchange_values(
        &mut self,
        of_subgroup: usize,
        op: DeviceOp,
        s: Scalar,
        args: &[Reg],
        out: &[Reg],
    ) {
        let size = match op.row().gives {
            Gives::First => s.size(),
            Gives::Exactly(s) | Gives::Array(s, _) => s.size(),
            Gives::Nothing => return,
        };
        let mut results: Vec<Vec<Line>> = out.iter().map(|reg| self.take(*reg)).collect();
        for reg in args {
            self.regs[*reg as usize].lanes(self.sides, self.words);
        }
        let operands: Vec<&[Line]> = args
            .iter()
            .map(|reg| self.regs[*reg as usize].written())
            .collect();
        let put = |word: usize, lane: usize, bits: u64| {
            if let Some(result) = results.get_mut(word) {
                eval::put(result, size, lane, bits);
            }
        };
        let here = Lanes {
            of_subgroup,
            all: self.part.lanes,
            active: &self.active,
        };
        exchange(here, op, s, &operands, put);
        for (result, reg) in results.into_iter().zip(out) {
            self.put(*reg, result);
        }
    }
}
