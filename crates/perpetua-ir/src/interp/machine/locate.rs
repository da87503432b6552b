//! From indices to addresses: where the lanes of one word find a place, and which of them are out of bounds. Sees to it
//! that addresses which follow each other, or are all one, are found as such. Touches no memory.

use super::super::mask;
use super::super::program::{IndexStep, Length, Program};
use super::{Machine, extended};
use crate::ir::Scalar;
use crate::ops::eval::{self, Line, WORD, view};

/// Where the lanes of a word find a place, in bytes (or registers) from its start.
pub(super) struct Located {
    pub(super) shape: Shape,
    /// For [`Shape::Each`] and [`Shape::Runs`]: each lane's offset.
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
    /// Runs, which start at these lanes; a run ends before the next start or inactive lane.
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
            Shape::Runs(_) | Shape::Each => self.at[lane],
        }
    }
}

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

/// How the indices of neighbouring lanes relate.
enum Pattern {
    /// Each is one more than the one before; first lane and its index.
    Ascending(usize, u64),
    /// All are this one.
    Equal(u64),
    Mixed,
}

/// Whether indices ascend by one from `start` on, and whether they all equal it.
#[inline(always)]
fn relation<'i, T: Index + 'i>(start: T, indices: impl Iterator<Item = &'i T>) -> (bool, bool) {
    let zero = T::of(0);
    let (mut ascends, mut equals) = (zero, zero);
    for (i, index) in indices.enumerate() {
        let step = index.minus(start);
        ascends = ascends.or(step.minus(T::of(i)));
        equals = equals.or(step);
    }
    (ascends == zero, equals == zero)
}

/// Compares the indices of the lanes `m`, which must not be empty. Ascending ones are of consecutive lanes, all of
/// them below `len`, or they are mixed.
fn pattern<T: Index>(index: &[T; WORD], m: u64, len: u64) -> Pattern {
    let (lo, hi) = (m.trailing_zeros() as usize, WORD - m.leading_zeros() as usize);
    let start = index[lo];
    let (ascends, equals) = if m == u64::MAX {
        relation(start, index.iter())
    } else {
        let gaps = (m >> lo).count_zeros() as usize != WORD - (hi - lo);
        let (ascends, equals) = relation(start, index[lo..hi].iter());
        (ascends && !gaps, equals)
    };
    if equals && start.wide() < len {
        return Pattern::Equal(start.wide());
    }
    // In a narrow type the last index may have wrapped around, and then it is not this much more.
    let last = start.wide().wrapping_add((hi - lo - 1) as u64);
    let whole = index[hi - 1].wide() == last && start.wide() <= last;
    if ascends && whole && last < len {
        return Pattern::Ascending(lo, start.wide());
    }
    Pattern::Mixed
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

fn pattern_of(s: Scalar, lines: &[Line], w: usize, m: u64, len: u64) -> Option<Pattern> {
    by_index!(s, lines, w, pattern(; m, len))
}

fn add_of(s: Scalar, lines: &[Line], w: usize, at: &mut [u64; WORD], len: u64, stride: u64) -> Option<u64> {
    by_index!(s, lines, w, add(at; len, stride))
}

impl Machine {
    /// Finds the place that `steps` lead to, `start` beyond their sum, for the active lanes of word `w`; the answer is
    /// in `self.located`. Lanes that are out of bounds fault. `run` is how many elements a [`Length::Region`] has,
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
        let length = |step: &IndexStep| match step.length {
            Length::Fixed(n) => n.into(),
            Length::Region => run,
        };
        if let [step] = steps {
            let (stride, lines) = (u64::from(step.stride), &self.regs[step.index as usize]);
            match pattern_of(step.ty, lines, w, m, length(step)) {
                Some(Pattern::Equal(index)) => {
                    self.located.shape = Shape::Same(start + index * stride);
                    return m;
                }
                Some(Pattern::Ascending(first, index)) if stride == unit => {
                    let offset = start + index * stride;
                    self.located.shape = Shape::Run { first, offset };
                    return m;
                }
                _ => {}
            }
        }
        self.located.at = [start; WORD];
        let mut beyond = 0;
        for step in steps {
            let (at, lines) = (&mut self.located.at, &self.regs[step.index as usize]);
            let stride = step.stride.into();
            beyond |= add_of(step.ty, lines, w, at, length(step), stride).unwrap_or(u64::MAX);
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

    /// What the offsets of lanes `m` have in common.
    fn shape_of(&self, m: u64, unit: u64) -> Shape {
        let at = &self.located.at;
        match pattern(at, m, u64::MAX) {
            Pattern::Equal(offset) => return Shape::Same(offset),
            Pattern::Ascending(first, offset) if unit == 1 => return Shape::Run { first, offset },
            _ => {}
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
            let len = match step.length {
                Length::Fixed(n) => n.into(),
                Length::Region => run,
            };
            let bits = eval::get(&self.regs[step.index as usize], step.ty.size(), lane);
            let index = extended(step.ty, bits);
            if index >= len {
                return self.raise(program, step.site, lane, [index, len]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_active_lanes() {
        let describe = |p: Pattern| match p {
            Pattern::Ascending(lane, index) => format!("from {index} at lane {lane}"),
            Pattern::Equal(index) => format!("all {index}"),
            Pattern::Mixed => "mixed".into(),
        };
        let mut index: [u8; WORD] = std::array::from_fn(|i| 200u8.wrapping_add(i as u8));
        let check = |index: &[u8; WORD], m: u64, len: u64, expect: &str| {
            assert_eq!(describe(pattern(index, m, len)), expect, "{m:#x} {len}");
        };
        check(&index, 0xff, 256, "from 200 at lane 0");
        check(&index, 0xff0, 256, "from 204 at lane 4");
        check(&index, 0xff0, 212, "from 204 at lane 4");
        check(&index, 0xff0, 211, "mixed");
        check(&index, 0xef0, 256, "mixed");
        // 255 is followed by 0.
        check(&index, u64::MAX, 1000, "mixed");
        check(&index, 0x100, 209, "all 208");
        check(&index, 0x100, 208, "mixed");
        index = [7; WORD];
        check(&index, 0x8001, 8, "all 7");
        check(&index, u64::MAX, 7, "mixed");
        let negative: [i32; WORD] = std::array::from_fn(|i| i as i32 - 3);
        assert_eq!(describe(pattern(&negative, 0xff, u64::MAX)), "mixed");
        assert_eq!(describe(pattern(&negative, 0xf8, 100)), "from 0 at lane 3");
    }
}
