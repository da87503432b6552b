//! What fast bodies take for the conditions of `if`s: how much of them a body knows while it is compiled. Knows no memory and no rows.

use std::marker::PhantomData;

use perpetua_ir::front::rust::{COMPUTED, INSIDE};

use super::program::Program;

/// The conditions of `if`s.
const BRANCHES: u64 = (1 << INSIDE) - 1;

/// How many conditions of `if`s there are.
pub(super) const fn branches(conditions: u64) -> u32 {
    (conditions & BRANCHES).count_ones()
}

/// What a fast body takes for its conditions.
pub(super) trait Decide: Copy {
    /// Whether rows may be so short that columns are run instead, as at a grid's left border.
    const COLUMNS: bool = false;

    /// Whether so few kernels need it that a body for the longest vectors would cost builds more than it gives.
    const RARE: bool = false;

    /// The condition number `number`, whose value is `value`.
    fn decide(&self, number: u32, value: bool) -> bool;
}

/// Conditions as they are in a box: bit `i` of `known` says whether condition `i` is known there, bit `i`
/// of `truth` what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) known: u64,
    pub(super) truth: u64,
}

impl Recorded {
    /// Those that hold of conditions of `if`s.
    pub(super) fn holding(self) -> u64 {
        self.truth & self.known & BRANCHES
    }
}

impl Decide for Recorded {
    #[inline(always)]
    fn decide(&self, number: u32, value: bool) -> bool {
        if self.known >> number & 1 == 1 {
            self.truth >> number & 1 == 1
        } else {
            value
        }
    }
}

/// Conditions of a function's `if`s that all hold, or of which none does, as the compiler knows: none does in the middle of a grid
/// whose lanes at the border leave early.
#[derive(Clone, Copy)]
pub(super) struct Alike<const HOLD: bool>;

impl<const HOLD: bool> Decide for Alike<HOLD> {
    #[inline(always)]
    fn decide(&self, number: u32, _: bool) -> bool {
        HOLD || number == COMPUTED
    }
}

/// The last condition holds whose `if` ends with `return`, and no other does, as the compiler knows: such as at a grid's border.
pub(super) struct Last<P>(PhantomData<fn() -> P>);

impl<P> Clone for Last<P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Last<P> {}

impl<P: Program> Last<P> {
    /// The condition, as its bit; 0 where there is none, or it is the only one.
    pub(super) const BIT: u64 = match branches(P::CONDITIONS) {
        0 | 1 => 0,
        _ => (1 << (P::LEAVING | 1).ilog2()) & P::LEAVING,
    };

    #[inline(always)]
    pub(super) fn new() -> Self {
        Last(PhantomData)
    }
}

impl<P: Program> Decide for Last<P> {
    const COLUMNS: bool = true;

    #[inline(always)]
    fn decide(&self, number: u32, _: bool) -> bool {
        number == COMPUTED || Self::BIT >> number & 1 == 1
    }
}

/// Conditions of a function's `if`s as the plan tells them, but for some of the last, which each lane looks at itself. What is told
/// is the same for all lanes, so LLVM decides it in front of the loop over a row. It does so for few conditions only, and hence
/// must know while it compiles which ones are told.
pub(super) struct Told<P, const OPEN: usize> {
    truth: u64,
    program: PhantomData<fn() -> P>,
}

impl<P, const OPEN: usize> Clone for Told<P, OPEN> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, const OPEN: usize> Copy for Told<P, OPEN> {}

/// How many sets of conditions there are that a body can be told of.
pub(super) const OPENINGS: usize = 3;

impl<P: Program, const OPEN: usize> Told<P, OPEN> {
    /// The first condition that it is not told of.
    const FROM: u32 = first_open(P::CONDITIONS, OPEN);

    /// Whether there is such a set of less conditions, and no smaller `OPEN` is the same.
    pub(super) const IS_NEW: bool = OPEN == 0 || Self::FROM < first_open(P::CONDITIONS, OPEN - 1);

    #[inline(always)]
    pub(super) fn new(conditions: Recorded) -> Self {
        Told {
            truth: conditions.truth,
            program: PhantomData,
        }
    }
}

/// The first condition that a body is not told of: none, the last but one, or the second.
const fn first_open(conditions: u64, open: usize) -> u32 {
    let count = u64::BITS - (conditions & BRANCHES).leading_zeros();
    let but_two = count.saturating_sub(2);
    match open {
        _ if count == 0 => u64::BITS,
        0 => u64::BITS,
        1 => but_two,
        _ if but_two == 0 => 0,
        _ => 1,
    }
}

/// Which `OPEN` leaves the conditions `open` to the lanes, and fewest others; `None` where none does.
pub(super) fn opening(conditions: u64, open: u64) -> Option<usize> {
    let is_left = |which: &usize| open & below(first_open(conditions, *which)) == 0;
    (0..OPENINGS).find(is_left)
}

/// The bits below one.
const fn below(bit: u32) -> u64 {
    match 1u64.checked_shl(bit) {
        Some(bit) => bit - 1,
        None => u64::MAX,
    }
}

impl<P: Program, const OPEN: usize> Decide for Told<P, OPEN> {
    const RARE: bool = OPEN == OPENINGS - 1;

    #[inline(always)]
    fn decide(&self, number: u32, value: bool) -> bool {
        if number == COMPUTED {
            true
        } else if number < Self::FROM {
            self.truth >> number & 1 == 1
        } else {
            value
        }
    }
}
