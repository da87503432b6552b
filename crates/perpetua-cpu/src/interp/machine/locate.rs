//! From indices to addresses: where the lanes of one word find a place, and which of them are out of bounds. Sees to it
//! that addresses which follow each other, or are all one, are found as such. Touches no memory.

use super::super::mask;
use super::super::program::{IndexStep, Program};
use super::Machine;
use super::affine::{Form, extended};
use crate::eval::{Line, WORD, view};
use perpetua_ir::ir::Scalar;

/// Where all lanes of a machine find a place, in bytes from its start: the first one's, and steps along the sides.
pub(super) struct Everywhere {
    pub(super) offset: u64,
    pub(super) steps: [i64; 3],
}

/// Where the lanes of a word find a place, in bytes (or registers) from its start.
pub(super) struct Located {
    pub(super) shape: Shape,
    /// For [`Shape::Each`] each lane's offset, for [`Shape::Runs`] that of each run's first lane.
    pub(super) at: [u64; WORD],
    /// Offset from one lane to the next in runs.
    unit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All lanes at one offset.
    Same(u64),
    /// Consecutive lanes, from the first one on, at consecutive units, from this offset on.
    Run { first: usize, offset: u64 },
    /// Runs, which start at these lanes; a run ends before the next start or inactive lane. Of `at` only these lanes
    /// count.
    Runs(u64),
    /// Anyhow.
    Each,
}

impl Default for Located {
    fn default() -> Located {
        Located {
            shape: Shape::Each,
            at: [0; WORD],
            unit: 0,
        }
    }
}

impl Located {
    /// A lane's offset.
    pub(super) fn offset(&self, lane: usize) -> u64 {
        match self.shape {
            Shape::Same(offset) => offset,
            Shape::Run { first, offset } => offset + (lane - first) as u64 * self.unit,
            Shape::Runs(starts) => {
                let first = WORD - 1 - (starts & (u64::MAX >> (WORD - 1 - lane))).leading_zeros() as usize;
                self.at[first] + (lane - first) as u64 * self.unit
            }
            Shape::Each => self.at[lane],
        }
    }
}

/// End of the run of lanes that starts at lane `start`: the next start, inactive lane, or the word's end.
pub(super) fn run_end(starts: u64, m: u64, start: usize) -> usize {
    let ends = (starts | !m) & (u64::MAX << start << 1);
    // A start at the top lane leaves no bit, and there are 64 zeros then.
    ends.trailing_zeros() as usize
}

/// Most indices of a place that are followed without a look at each lane.
const MOST_STEPS: usize = 8;

/// An index type.
trait Index: bytemuck::Pod + PartialEq {
    /// Sign-extended if signed.
    fn wide(self) -> u64;
    fn minus(self, other: Self) -> Self;
    fn of(lane: usize) -> Self;
    fn or(self, other: Self) -> Self;
}

macro_rules! index {
    ($($t:ty)*) => { $(
        impl Index for $t {
            #[inline(always)]
            fn wide(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn minus(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn of(lane: usize) -> $t {
                lane as $t
            }

            #[inline(always)]
            fn or(self, other: $t) -> $t {
                self | other
            }
        }
    )* };
}

index!(i8 i16 i32 i64 u8 u16 u32 u64);

/// How the indices of the lanes of a word relate, looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// All are the same.
    Equal,
    /// Each is one more than the one before, modulo the type.
    Ascending,
    Mixed,
}

/// Whether an index of a lane between the first and the last one of `m` is not `start` plus what `by` says for its
/// distance from the first.
#[inline(always)]
fn unlike<T: Index>(index: &[T; WORD], m: u64, start: T, by: impl Fn(usize) -> T) -> bool {
    let mut unlike = T::of(0);
    if m == u64::MAX {
        for (i, index) in index.iter().enumerate() {
            unlike = unlike.or(index.minus(start).minus(by(i)));
        }
    } else {
        let (lo, hi) = (m.trailing_zeros() as usize, WORD - m.leading_zeros() as usize);
        for (i, index) in index[lo..hi].iter().enumerate() {
            unlike = unlike.or(index.minus(start).minus(by(i)));
        }
    }
    unlike != T::of(0)
}

/// Compares the indices of the lanes `m`, which must not be empty. Ascending ones are of consecutive lanes.
fn relation<T: Index>(index: &[T; WORD], m: u64) -> Relation {
    let (lo, hi) = (m.trailing_zeros() as usize, WORD - m.leading_zeros() as usize);
    if lo + 1 == hi {
        return Relation::Equal;
    }
    // The first two lanes tell what to look for.
    let (start, step) = (index[lo], index[lo + 1].minus(index[lo]));
    let zero = T::of(0);
    let gapless = (m >> lo).count_ones() as usize == hi - lo;
    if step == zero {
        if unlike(index, m, start, |_| zero) {
            Relation::Mixed
        } else {
            Relation::Equal
        }
    } else if step == T::of(1) && gapless {
        if unlike(index, m, start, T::of) {
            Relation::Mixed
        } else {
            Relation::Ascending
        }
    } else {
        Relation::Mixed
    }
}

/// Adds one step's offsets to `at`; gives the lanes that are out of bounds, among them inactive ones.
fn add<T: Index>(at: &mut [u64; WORD], index: &[T; WORD], len: u64, stride: u64) -> u64 {
    let mut beyond = [0u8; WORD];
    for i in 0..WORD {
        let wide = index[i].wide();
        beyond[i] = u8::from(wide >= len);
        at[i] = at[i].wrapping_add(wide.wrapping_mul(stride));
    }
    mask::from_bools(&beyond)
}

macro_rules! by_index {
    ($s:expr, $lines:expr, $w:expr, $f:ident ( $($before:expr),*; $($after:expr),* )) => {
        match $s {
            Scalar::I8 => view::<i8>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
            Scalar::I16 => view::<i16>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
            Scalar::I32 => view::<i32>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
            Scalar::I64 => view::<i64>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
            Scalar::U8 => view::<u8>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
            Scalar::U16 => view::<u16>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
            Scalar::U32 => view::<u32>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
            _ => view::<u64>($lines).get($w).map(|index| $f($($before,)* index, $($after),*)),
        }
    };
}

fn relation_of(s: Scalar, lines: &[Line], w: usize, m: u64) -> Relation {
    by_index!(s, lines, w, relation(; m)).unwrap_or(Relation::Mixed)
}

fn add_of(s: Scalar, lines: &[Line], w: usize, at: &mut [u64; WORD], len: u64, stride: u64) -> Option<u64> {
    by_index!(s, lines, w, add(at; len, stride))
}

impl Machine {
    /// Finds the place that `steps` lead to, `start` beyond their sum, for the active lanes of word `w`; the answer is
    /// in `self.located`. Lanes that are out of bounds fault. `run` is how many elements a `Length::Region` has,
    /// `unit` what makes a run (0: look for none). Gives the lanes that found it: each of their indices was below its
    /// length.
    pub(super) fn locate(
        &mut self,
        program: &Program,
        steps: &[IndexStep],
        start: u64,
        run: u64,
        unit: u64,
        w: usize,
    ) -> u64 {
        let m = self.active[w];
        self.located.unit = unit;
        if steps.is_empty() {
            self.located.shape = Shape::Same(start);
            return m;
        }
        if self.by_segments(steps, start, run, w) {
            return m;
        }
        self.located.at = [start; WORD];
        let mut beyond = 0;
        for step in steps {
            self.regs[step.index as usize].lanes(self.sides, self.words);
            let (at, lines) = (&mut self.located.at, self.regs[step.index as usize].written());
            let stride = step.stride.into();
            beyond |= add_of(step.ty, lines, w, at, step.length.of(run), stride).unwrap_or(u64::MAX);
        }
        for i in mask::bits(m & beyond) {
            self.out_of_bounds(program, steps, run, w * WORD + i);
        }
        let m = m & !beyond;
        self.located.shape = if m == 0 {
            Shape::Each
        } else {
            self.shape_of(m, unit)
        };
        m
    }

    /// Finds the place for all lanes of the machine, active or not, without a look at any: where indices are known to grow evenly,
    /// and all of them, everywhere, are in bounds.
    pub(super) fn everywhere(&self, steps: &[IndexStep], start: u64, run: u64) -> Option<Everywhere> {
        let mut found = Everywhere {
            offset: start,
            steps: [0; 3],
        };
        for step in steps {
            let exact = self.form(step.index).exact(step.ty, self.sides)?;
            if exact.low < 0 || exact.high as u64 >= step.length.of(run) {
                return None;
            }
            found.offset += exact.first as u64 * u64::from(step.stride);
            for (sum, by) in found.steps.iter_mut().zip(exact.steps) {
                *sum += by * i64::from(step.stride);
            }
        }
        Some(found)
    }

    /// The place, if it is one for all lanes.
    pub(super) fn found_by_all(&self, steps: &[IndexStep], start: u64, run: u64) -> Option<u64> {
        let found = self.everywhere(steps, start, run)?;
        (found.steps == [0; 3]).then_some(found.offset)
    }

    /// An index of a lane, sign-extended.
    fn index(&self, step: &IndexStep, lane: usize) -> u64 {
        extended(step.ty, self.value(step.index, lane))
    }

    /// Finds the place without a look at every lane, where lanes are known to be, or look, orderly: in each stretch of
    /// active lanes of a row, steps that grow evenly. Whether that is so and all lanes are in bounds; if not, nothing is decided.
    fn by_segments(&mut self, steps: &[IndexStep], start: u64, run: u64, w: usize) -> bool {
        let (m, unit) = (self.active[w], self.located.unit);
        let mut rows = false;
        let mut total = 0i64;
        // How much each index grows by from lane to lane.
        let mut growth = [0i64; MOST_STEPS];
        if steps.len() > MOST_STEPS {
            return false;
        }
        for (step, growth) in steps.iter().zip(&mut growth) {
            *growth = match self.form(step.index) {
                Form::Uniform(_) => 0,
                Form::Affine(affine) => {
                    rows = true;
                    affine.steps[0]
                }
                Form::Lanes => match relation_of(step.ty, self.regs[step.index as usize].written(), w, m) {
                    Relation::Equal => 0,
                    Relation::Ascending => 1,
                    Relation::Mixed => return false,
                },
            };
            total = total.wrapping_add(growth.wrapping_mul(step.stride.into()));
        }
        let heads = if rows { self.row_heads[w] } else { 0 };
        let starts = m & (!(m << 1) | heads);
        for first in mask::bits(starts) {
            let last = run_end(starts, m, first) - 1;
            let mut offset = start;
            for (step, growth) in steps.iter().zip(growth) {
                let index = self.index(step, w * WORD + first);
                let most = match growth {
                    0 => index,
                    _ => self.index(step, w * WORD + last),
                };
                // It may have wrapped around in between, and then it is not this much more.
                let len = step.length.of(run);
                let more = i128::from(most) - i128::from(index);
                if index >= len || most >= len || more != i128::from(growth) * (last - first) as i128 {
                    return false;
                }
                offset += index * u64::from(step.stride);
            }
            // Whole lanes only where somebody looks at them.
            if total as u64 == unit && unit != 0 {
                self.located.at[first] = offset;
            } else {
                let lanes = self.located.at[first..=last].iter_mut();
                lanes
                    .zip(0i64..)
                    .for_each(|(at, i)| *at = offset.wrapping_add((i * total) as u64));
            }
        }
        let one = starts.is_power_of_two();
        let first = starts.trailing_zeros() as usize;
        let offset = self.located.at[first];
        self.located.shape = match total {
            0 if !rows || one => Shape::Same(offset),
            _ if total as u64 == unit && unit != 0 && one => Shape::Run { first, offset },
            _ if total as u64 == unit && unit != 0 => Shape::Runs(starts),
            _ => Shape::Each,
        };
        true
    }

    /// What the offsets of lanes `m` have in common.
    fn shape_of(&self, m: u64, unit: u64) -> Shape {
        let at = &self.located.at;
        if relation(at, m) == Relation::Equal {
            return Shape::Same(at[m.trailing_zeros() as usize]);
        }
        if unit == 0 {
            return Shape::Each;
        }
        let mut follows = [0u8; WORD];
        for i in 1..WORD {
            follows[i] = u8::from(at[i].wrapping_sub(at[i - 1]) == unit);
        }
        let starts = m & !(mask::from_bools(&follows) & (m << 1));
        if starts.count_ones() * 4 <= m.count_ones() {
            Shape::Runs(starts)
        } else {
            Shape::Each
        }
    }

    /// Reports the first step of a lane that is out of bounds.
    fn out_of_bounds(&mut self, program: &Program, steps: &[IndexStep], run: u64, lane: usize) {
        for step in steps {
            let (index, len) = (self.index(step, lane), step.length.of(run));
            if index >= len {
                return self.raise(program, step.site, lane, [index, len, 0, 0]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_those_of_active_lanes() {
        use Relation::{Ascending, Equal, Mixed};
        let mut index: [u8; WORD] = std::array::from_fn(|i| 200u8.wrapping_add(i as u8));
        let check = |index: &[u8; WORD], m: u64, expect: Relation| {
            assert_eq!(relation(index, m), expect, "{m:#x}");
        };
        check(&index, 0xff, Ascending);
        check(&index, 0xff0, Ascending);
        check(&index, 0xef0, Mixed);
        // 255 is followed by 0.
        check(&index, u64::MAX, Ascending);
        check(&index, 0x100, Equal);
        index[63] = 9;
        check(&index, u64::MAX, Mixed);
        index = [7; WORD];
        check(&index, 0x8001, Equal);
        index[15] = 8;
        check(&index, 0x8001, Mixed);
        check(&index, u64::MAX, Mixed);
        check(&index, 0x7fff, Equal);
        let negative: [i32; WORD] = std::array::from_fn(|i| i as i32 - 3);
        assert_eq!(relation(&negative, 0xff), Ascending);
    }
}
