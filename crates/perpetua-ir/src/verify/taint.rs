//! Why values and lanes may differ within a block, as the analysis of uniformity carries it along. Knows no statements.

use super::error::Parting;
use crate::ir::Stmt;

/// How a value may differ between the lanes of a block.
#[derive(Clone, Copy, Default)]
pub(super) struct Taint {
    /// Parameters of the function on which it depends, as bits.
    pub(super) params: u128,
    /// Buffers of the kernel that must not change for it to be uniform, as bits, and whether it depends on the block's memory: see
    /// [`buffer_bit`] and [`SHARED_BIT`].
    pub(super) buffers: u128,
    /// The first reason that is no parameter, by index into the analysis's list.
    pub(super) why: Option<usize>,
}

impl Taint {
    /// Adds another taint; gives whether that changed anything.
    pub(super) fn join(&mut self, other: Taint) -> bool {
        let before = (self.params, self.buffers, self.why.is_some());
        self.params |= other.params;
        self.buffers |= other.buffers;
        self.why = self.why.or(other.why);
        before != (self.params, self.buffers, self.why.is_some())
    }
}

/// The bit of a kernel's parameter. Parameters from 127 on share bits with earlier ones: more is relied on then than need be.
pub(super) fn buffer_bit(param: u32) -> u128 {
    1 << (param % 127)
}

/// The bit of what lanes have written to the block's memory.
pub(super) const SHARED_BIT: u128 = 1 << 127;

/// How lanes came to be at different points.
#[derive(Clone, Copy, Default)]
pub(super) struct Flow {
    /// Parameters of the function on which it depends, as bits.
    pub(super) params: u128,
    /// Buffers that must not change for it to be uniform, as in [`Taint`].
    pub(super) buffers: u128,
    /// Where lanes part for the first reason that is no parameter, by number of the statement and reason.
    pub(super) parting: Option<(Point, usize)>,
}

/// A statement where lanes part.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) how: Parting,
    pub(super) line: u32,
    pub(super) number: u32,
}

impl Flow {
    pub(super) fn join(&mut self, other: Flow) -> bool {
        let before = (self.params, self.buffers, self.parting.is_some());
        self.params |= other.params;
        self.buffers |= other.buffers;
        self.parting = self.parting.or(other.parting);
        before != (self.params, self.buffers, self.parting.is_some())
    }

    /// This flow where `taint` decides who goes on.
    pub(super) fn split(mut self, taint: Taint, point: Point) -> Flow {
        self.params |= taint.params;
        self.buffers |= taint.buffers;
        self.parting = self.parting.or(taint.why.map(|why| (point, why)));
        self
    }

    /// The taint of what is written here.
    pub(super) fn taint(self) -> Taint {
        Taint {
            params: self.params,
            buffers: self.buffers,
            why: self.parting.map(|(_, why)| why),
        }
    }

    /// The same flow, named after the statement by which lanes leave.
    pub(super) fn leaving(mut self, how: Parting, stmt: &Stmt, number: u32) -> Flow {
        if let Some((point, _)) = &mut self.parting {
            *point = Point {
                how,
                line: stmt.line,
                number,
            };
        }
        self
    }
}
