//! What the pass finds, as data: the sites that can fault, and of each index and division whether its check stands and why not.

use crate::fault::FaultSite;

/// Why a check is superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proof {
    /// A comparison in this line holds here.
    Compared(u32),
    /// An earlier access, in this line, was checked for the same.
    Checked(u32),
    /// The value is at most this, by its type, by masks and the like, or by comparisons with constants.
    AtMost(i128),
    /// It is a remainder by that length.
    Remainder,
    /// The divisor is a constant that divides every number.
    Constant,
    /// Unsigned, or never negative: it cannot overflow.
    NotNegative,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Checked {
    /// The index of a load.
    Load,
    /// The index of a store.
    Store,
    /// The index of an atomic operation.
    Atomic,
    /// A divisor, for zero.
    Divisor,
    /// A division, for the one quotient that no type has.
    Overflow,
}

/// A check, or the proof that there need be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Source line, 0 when unknown.
    pub line: u32,
    /// Number of the statement in its body: an access with several indices has several checks.
    pub statement: usize,
    /// What is checked.
    pub what: Checked,
    /// The buffer or variable that an index is for, or the operation.
    pub subject: String,
    /// Why no check is made; `None`: it is made.
    pub proof: Option<Proof>,
}

/// What is found of a kernel.
#[derive(Default)]
pub(super) struct Found {
    pub(super) sites: Vec<FaultSite>,
    pub(super) checks: Vec<Check>,
    /// Whether lanes of a block tell each other that one of them is dead.
    pub(super) told: bool,
}
