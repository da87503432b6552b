//! The probe: a kernel's control flow run once for a box of lanes, to see which indices and conditions they have.
//!
//! A probe's body ends in one of three ways: it has seen all accesses of the box; a condition or an index holds in a part
//! of the box only, and the box must be [cut](Exit::Cut) there; or all lanes have [returned](Exit::Return).

use std::cell::Cell;

use super::affine::{AXES, Affine, Form, Known, Trust, exact};
use super::mode::Shape;
use super::stencil::Grid;
use super::view::View;

/// A box of lanes: each coordinate from `from` up to, and without, `to`. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub(super) from: [i64; AXES],
    pub(super) to: [i64; AXES],
}

impl Space {
    /// The lanes that both have; `None` where there are none.
    #[inline]
    pub(super) fn common(&self, other: &Space) -> Option<Space> {
        let mut both = *self;
        for axis in 0..AXES {
            both.from[axis] = self.from[axis].max(other.from[axis]);
            both.to[axis] = self.to[axis].min(other.to[axis]);
            if both.from[axis] >= both.to[axis] {
                return None;
            }
        }
        Some(both)
    }

    /// The number of lanes.
    pub(super) fn lanes(&self) -> u64 {
        let extents = self.from.iter().zip(self.to).map(|(from, to)| (to - from) as u64);
        extents.product()
    }

    /// The smallest box with both.
    pub(super) fn hull(&self, other: &Space) -> Space {
        let mut hull = *self;
        for axis in 0..AXES {
            hull.from[axis] = self.from[axis].min(other.from[axis]);
            hull.to[axis] = self.to[axis].max(other.to[axis]);
        }
        hull
    }

    /// The parts below and from `at` on; both have lanes.
    pub(super) fn cut(&self, axis: usize, at: i64) -> (Space, Space) {
        let (mut below, mut above) = (*self, *self);
        below.to[axis] = at;
        above.from[axis] = at;
        (below, above)
    }
}

/// Why a probe's body ends before it has seen all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The box must be cut: along this axis, at this coordinate.
    Cut(usize, i64),
    /// Every lane has returned.
    Return,
}

impl Exit {
    /// Of two cuts that along the axis farther out.
    fn outermost(self, other: Option<Exit>) -> Exit {
        match (self, other) {
            (Exit::Cut(axis, _), Some(Exit::Cut(further, at))) if further >= axis => Exit::Cut(further, at),
            _ => self,
        }
    }
}

/// A condition without accesses, to be looked at when it matters.
pub type Condition<'c> = dyn Fn(&Probe<'_>) -> Result<Truth, Exit> + 'c;

/// What is known of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds for every lane.
    Always,
    /// It holds for none.
    Never,
    /// Unknown.
    Perhaps,
}

impl Truth {
    /// Of a `bool` that is the same for all lanes.
    pub fn of(value: bool) -> Truth {
        if value { Truth::Always } else { Truth::Never }
    }

    /// `!a`.
    #[allow(clippy::should_implement_trait, reason = "generated code calls it by path")]
    pub fn not(self) -> Truth {
        match self {
            Truth::Always => Truth::Never,
            Truth::Never => Truth::Always,
            Truth::Perhaps => Truth::Perhaps,
        }
    }

    /// `a && b`.
    pub fn both(self, b: Truth) -> Truth {
        match (self, b) {
            (Truth::Never, _) | (_, Truth::Never) => Truth::Never,
            (Truth::Always, Truth::Always) => Truth::Always,
            _ => Truth::Perhaps,
        }
    }

    /// Whether it may hold.
    pub fn may_hold(self) -> bool {
        self != Truth::Never
    }

    /// Whether it may not hold.
    pub fn may_fail(self) -> bool {
        self != Truth::Always
    }
}

/// What the accesses of a buffer that is stored to have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The parameter's number.
    pub(super) slot: usize,
    /// Whether one of them is a store.
    pub(super) stores: bool,
    /// The form of all indices: the same strides, and the hull of the intervals.
    pub(super) form: Option<Form>,
    /// The lanes that make them.
    pub(super) lanes: Space,
}

impl Reach {
    /// Whether one form can say where both go without saying more than they reach by much.
    fn is_like(&self, other: &Reach) -> bool {
        let strides = |reach: &Reach| reach.form.map(|form| form.strides);
        self.slot == other.slot && self.stores == other.stores && strides(self) == strides(other)
    }

    /// The same with another access.
    pub(super) fn with(self, other: Reach) -> Reach {
        let form = self.form.zip(other.form).and_then(|(a, b)| {
            (a.strides == b.strides).then_some(Form {
                low: a.low.min(b.low),
                high: a.high.max(b.high),
                strides: a.strides,
            })
        });
        Reach {
            slot: self.slot,
            stores: self.stores || other.stores,
            form,
            lanes: self.lanes.hull(&other.lanes),
        }
    }
}

/// The state of a probe of one box.
pub struct Probe<'a> {
    space: Space,
    shape: &'a Shape,
    /// Whether the box may still be cut.
    cuts: bool,
    /// Whether all accesses so far are proven.
    pub(super) proven: bool,
    /// Conditions: bit `i` of `known`, and what it is.
    pub(super) known: Cell<u64>,
    pub(super) truth: Cell<u64>,
    /// Conditions that were met, known or not.
    pub(super) met: Cell<u64>,
    /// The accesses.
    pub(super) reaches: Vec<Reach>,
    /// Whether something was met that may fault, or never end, without an access.
    stops: Cell<bool>,
    /// How many statements around the present one may not be reached by all lanes.
    doubt: u32,
}

impl<'a> Probe<'a> {
    pub(super) fn new(space: Space, shape: &'a Shape, cuts: bool) -> Probe<'a> {
        Probe {
            space,
            shape,
            cuts,
            proven: true,
            known: Cell::new(0),
            truth: Cell::new(0),
            met: Cell::new(0),
            reaches: Vec::new(),
            stops: Cell::new(false),
            doubt: 0,
        }
    }

    /// A number that all lanes share.
    pub fn uniform<T: Known>(&self, value: T) -> Affine<T> {
        Affine::of(exact(value).map(Form::constant))
    }

    /// A literal without a suffix, whose type the function may know better. The probe's type is that of `_like`, where
    /// inference finds one; the number need not fit it.
    pub fn literal<T: Known>(&self, _like: T, value: i128) -> Affine<T> {
        Affine::of(i64::try_from(value).ok().map(Form::constant)).trusted(Trust::Literal)
    }

    /// The same with a sign.
    pub fn negative_literal<T: Known>(&self, like: T, value: i128) -> Affine<T> {
        self.literal(like, value).trusted(Trust::Signed)
    }

    /// A lane's index in a space that counts lanes of the grid; `axis` of the grid.
    pub fn global(&self, axis: usize) -> Affine<usize> {
        Affine::of(Some(Form::coordinate(axis, 1)))
    }

    /// The index in the grid, in a space of blocks and lanes.
    pub fn global_of_group(&self, axis: usize) -> Affine<usize> {
        let form = i64::try_from(self.shape.block[axis])
            .ok()
            .and_then(|lanes| Form::coordinate(axis, 1).plus(&Form::coordinate(axis + 3, lanes)));
        Affine::of(form)
    }

    /// The lane's index in its block.
    pub fn thread(&self, axis: usize) -> Affine<usize> {
        Affine::of(Some(Form::coordinate(axis, 1)))
    }

    /// The block's index.
    pub fn block(&self, axis: usize) -> Affine<usize> {
        Affine::of(Some(Form::coordinate(axis + 3, 1)))
    }

    /// Lanes per block.
    pub fn block_dim(&self, axis: usize) -> Affine<usize> {
        self.uniform(self.shape.block[axis])
    }

    /// Blocks.
    pub fn grid_dim(&self, axis: usize) -> Affine<usize> {
        self.uniform(self.shape.grid[axis])
    }

    /// Lanes in the grid.
    pub fn global_size(&self, axis: usize) -> Affine<usize> {
        self.uniform(self.shape.grid[axis].saturating_mul(self.shape.block[axis]))
    }

    /// `a as U`.
    pub fn cast<T: Known, U: Known>(&self, a: Affine<T>) -> Affine<U> {
        a.cast(&self.space)
    }

    /// `a << b`.
    pub fn shl<T: Known, U: Known>(&self, a: Affine<T>, b: Affine<U>) -> Affine<T> {
        a.left(b, &self.space)
    }

    /// `a >> b`.
    pub fn shr<T: Known, U: Known>(&self, a: Affine<T>, b: Affine<U>) -> Affine<T> {
        a.right(b, &self.space)
    }

    /// `a / b`.
    pub fn div<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Affine<T> {
        self.may_stop();
        a.quotient(b, &self.space)
    }

    /// `a % b`.
    pub fn rem<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Affine<T> {
        self.may_stop();
        a.rest(b, &self.space)
    }

    /// `a & b`.
    pub fn and<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Affine<T> {
        a.masked(b, &self.space)
    }

    /// `a.min(b)`.
    pub fn min<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Affine<T> {
        a.lesser(b, &self.space)
    }

    /// `a.max(b)`.
    pub fn max<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Affine<T> {
        a.greater(b, &self.space)
    }

    /// `a.clamp(low, high)`.
    pub fn clamp<T: Known>(&self, a: Affine<T>, low: Affine<T>, high: Affine<T>) -> Affine<T> {
        self.min(self.max(a, low), high)
    }

    /// `a.saturating_sub(b)`.
    pub fn saturating_sub<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Affine<T> {
        a.saturating_minus(b, &self.space)
    }

    /// A number that is one or the other.
    pub fn either<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Affine<T> {
        a.or(b, &self.space)
    }

    /// `a < b`.
    ///
    /// # Errors
    /// The box must be cut.
    pub fn lt<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Result<Truth, Exit> {
        match self.difference(a, b) {
            Some(difference) => self.negative(difference),
            None => Ok(Truth::Perhaps),
        }
    }

    /// `a >= b`.
    ///
    /// # Errors
    /// As [`Probe::lt`].
    pub fn ge<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Result<Truth, Exit> {
        Ok(self.lt(a, b)?.not())
    }

    /// `a == b`.
    ///
    /// # Errors
    /// As [`Probe::lt`].
    pub fn eq<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Result<Truth, Exit> {
        Ok(match self.ge(a, b)? {
            Truth::Never => Truth::Never,
            above => above.both(self.ge(b, a)?),
        })
    }

    /// `a && b && …` of conditions without accesses, which may be looked at in any order. Where one is false for all lanes the
    /// others do not matter; where several cut the box, it is cut along its outermost axis, which leaves rows long.
    ///
    /// # Errors
    /// The box must be cut.
    pub fn all(&self, conditions: &[&Condition<'_>]) -> Result<Truth, Exit> {
        let (mut all, mut cut) = (Truth::Always, None);
        for condition in conditions {
            match condition(self) {
                Ok(Truth::Never) => return Ok(Truth::Never),
                Ok(truth) => all = all.both(truth),
                Err(exit) => cut = Some(exit.outermost(cut)),
            }
        }
        cut.map_or(Ok(all), Err)
    }

    /// `a || b || …`, likewise.
    ///
    /// # Errors
    /// The box must be cut.
    pub fn any(&self, conditions: &[&Condition<'_>]) -> Result<Truth, Exit> {
        let (mut none, mut cut) = (Truth::Always, None);
        for condition in conditions {
            match condition(self) {
                Ok(Truth::Always) => return Ok(Truth::Always),
                Ok(truth) => none = none.both(truth.not()),
                Err(exit) => cut = Some(exit.outermost(cut)),
            }
        }
        cut.map_or(Ok(none.not()), Err)
    }

    /// `a - b`, exact, where both are what they seem.
    fn difference<T: Known>(&self, a: Affine<T>, b: Affine<T>) -> Option<Form> {
        let ((a, ..), (b, ..)) = a.both(b, &self.space)?;
        a.minus(&b)
    }

    /// Whether a number is negative. Where it is for some lanes only, and they make a box, the space is cut.
    fn negative(&self, form: Form) -> Result<Truth, Exit> {
        let Some((low, high)) = form.range(&self.space) else {
            return Ok(Truth::Perhaps);
        };
        if high < 0 {
            return Ok(Truth::Always);
        }
        if low >= 0 {
            return Ok(Truth::Never);
        }
        if self.cuts
            && let Some((axis, at)) = self.boundary(&form)
        {
            return Err(Exit::Cut(axis, at));
        }
        Ok(Truth::Perhaps)
    }

    /// Where to cut so that one part is all negative, or all not: along the axis on which the form grows most.
    fn boundary(&self, form: &Form) -> Option<(usize, i64)> {
        let mut best: Option<(i64, usize, i64)> = None;
        for (axis, stride) in form.strides.into_iter().enumerate() {
            let (from, to) = (self.space.from[axis], self.space.to[axis]);
            if stride == 0 || to - from < 2 {
                continue;
            }
            let mut rest = *form;
            rest.strides[axis] = 0;
            let (low, high) = rest.range(&self.space)?;
            // With a positive stride lanes below a coordinate are all negative: those with stride·c + high < 0; and from
            // one on none is: stride·c + low >= 0.
            let (sure, never) = if stride > 0 {
                let up = low.checked_neg()?;
                (
                    (-1i64).checked_sub(high)?.div_euclid(stride).checked_add(1)?,
                    up.div_euclid(stride) + i64::from(up.rem_euclid(stride) != 0),
                )
            } else {
                let back = stride.checked_neg()?;
                (
                    high.div_euclid(back).checked_add(1)?,
                    low.div_euclid(back).checked_add(1)?,
                )
            };
            for at in [sure, never] {
                if at > from && at < to {
                    let spread = stride.saturating_abs().saturating_mul(to - from);
                    if best.is_none_or(|(most, ..)| spread > most) {
                        best = Some((spread, axis, at));
                    }
                }
            }
        }
        best.map(|(_, axis, at)| (axis, at))
    }

    /// The condition number `number`, as the fast body may take it for known.
    pub fn __guard(&self, number: u32, truth: Truth) -> Truth {
        self.met.set(self.met.get() | 1 << number);
        if truth != Truth::Perhaps {
            self.known.set(self.known.get() | 1 << number);
            let holds = u64::from(truth == Truth::Always) << number;
            self.truth.set(self.truth.get() | holds);
        }
        truth
    }

    /// Something that may fault, or never end, and is no access.
    pub fn may_stop(&self) {
        self.stops.set(true);
    }

    /// Whether the lanes do nothing that anybody could see.
    pub(super) fn is_idle(&self) -> bool {
        self.proven && self.reaches.is_empty() && !self.stops.get()
    }

    /// Enters statements that are reached where `truth` may hold.
    pub fn enter(&mut self, truth: Truth) {
        self.doubt += u32::from(truth == Truth::Perhaps);
    }

    /// Leaves them.
    pub fn leave(&mut self, truth: Truth) {
        self.doubt -= u32::from(truth == Truth::Perhaps);
    }

    /// `return`.
    ///
    /// # Errors
    /// Where every lane gets here.
    pub fn returns(&self) -> Result<(), Exit> {
        if self.doubt == 0 {
            Err(Exit::Return)
        } else {
            Ok(())
        }
    }

    /// The variable of `for i in start..end`; `None` where the loop has no turn.
    pub fn counted<T: Known>(&self, start: Affine<T>, end: Affine<T>, inclusive: bool) -> Option<Affine<T>> {
        let Some(((_, low, _), (_, _, high))) = start.both(end, &self.space) else {
            return Some(Affine::of(None));
        };
        let last = high.saturating_sub(i64::from(!inclusive));
        // As sure of the type as a sum of the two would be.
        (low <= last).then(|| start.plus(end).replaced(Form::interval(low, last)))
    }

    /// What a load gives: any number of the type.
    pub fn loaded<T: Known>(&self, view: &View<'_, T>) -> Affine<T> {
        let _ = view;
        Affine::any()
    }

    /// A load of `view[index]`.
    ///
    /// # Errors
    /// The box must be cut.
    pub fn load<T>(&mut self, view: &View<'_, T>, index: Affine<usize>) -> Result<(), Exit> {
        self.access(view, index, false)
    }

    /// A store to `view[index]`.
    ///
    /// # Errors
    /// The box must be cut.
    pub fn store<T>(&mut self, view: &View<'_, T>, index: Affine<usize>) -> Result<(), Exit> {
        self.access(view, index, true)
    }

    fn access<T>(&mut self, view: &View<'_, T>, index: Affine<usize>, stores: bool) -> Result<(), Exit> {
        // An index is a `usize`, whatever its literals look like.
        let index = index.trusted(Trust::Typed);
        if let Some(form) = index.form.filter(Form::is_exact)
            && self.negative(form)? == Truth::Always
        {
            // A wrapped index lies beyond every length: the access faults and does not happen.
            self.proven = false;
            return Ok(());
        }
        let form = match index.proper(&self.space) {
            Some((form, low, high)) => {
                if !self.inside(&form, (low, high), view.len)? {
                    return Ok(());
                }
                Some(form)
            }
            None => {
                self.proven = false;
                None
            }
        };
        let reach = Reach {
            slot: view.slot,
            stores,
            form,
            lanes: self.space,
        };
        match self.reaches.iter_mut().find(|known| known.is_like(&reach)) {
            Some(known) => *known = known.with(reach),
            None => self.reaches.push(reach),
        }
        Ok(())
    }

    /// Sees whether an index is less than a length. Gives whether it is for any lane.
    fn inside(&mut self, form: &Form, (low, high): (i64, i64), len: usize) -> Result<bool, Exit> {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        if high < len {
            return Ok(true);
        }
        self.proven = false;
        if form.is_exact() && low < len {
            // Lanes beyond the end fault; the others need not suffer for it.
            if let Some(past) = form.minus(&Form::constant(len)) {
                self.negative(past)?;
            }
        }
        Ok(low < len)
    }

    /// The neighbour at an offset of the lane's cell.
    ///
    /// # Errors
    /// The box must be cut.
    pub fn neighbour<T>(
        &mut self,
        grid: &Grid,
        view: &View<'_, T>,
        offset: [Affine<i32>; 3],
    ) -> Result<(), Exit> {
        let halo = i64::from(grid.halo);
        let mut index = Some(Form::constant(0));
        let mut row = 1i64;
        let mut outside = false;
        for (axis, by) in offset.into_iter().enumerate().take(grid.axes()) {
            let size = i64::try_from(grid.size[axis]).unwrap_or(i64::MAX);
            let to = by
                .trusted(Trust::Typed)
                .proper(&self.space)
                .and_then(|(by, low, high)| {
                    let near = low >= -halo && high <= halo;
                    Form::coordinate(axis, 1).plus(&by).filter(|_| near)
                });
            let Some(to) = to else {
                self.proven = false;
                index = None;
                break;
            };
            let inside = self.negative(to)?.not();
            let inside = match to.minus(&Form::constant(size)) {
                Some(past) => inside.both(self.negative(past)?),
                None => Truth::Perhaps,
            };
            let mut at = Some(to);
            if inside != Truth::Always {
                // The lane asks the edge's rule; where that leads is an access, too.
                self.proven = false;
                let range = to.range(&self.space);
                at = range.and_then(|range| grid.at_edge(axis, &to, range));
                outside |= range.is_some() && at.is_none();
            }
            index = index
                .zip(at.and_then(|at| at.scaled_by(row)))
                .and_then(|(index, at)| index.plus(&at));
            row = row.saturating_mul(size);
        }
        if outside {
            return Ok(());
        }
        self.access(view, Affine::of(index), false)
    }

    /// The index of the lane's cell.
    pub fn idx(&self, grid: &Grid) -> Affine<usize> {
        let mut index = Some(Form::constant(0));
        let mut row = 1i64;
        for axis in 0..grid.axes() {
            let part = Form::coordinate(axis, 1).scaled_by(row);
            index = index.zip(part).and_then(|(index, part)| index.plus(&part));
            row = row.saturating_mul(i64::try_from(grid.size[axis]).unwrap_or(i64::MAX));
        }
        Affine::of(index)
    }

    /// Whether the lane's cell is computed.
    ///
    /// # Errors
    /// The box must be cut; or no lane's is.
    pub fn computes(&self, grid: &Grid) -> Result<Truth, Exit> {
        let halo = grid.inner_halo();
        let mut all = Truth::Always;
        for axis in 0..grid.axes() {
            let at = self.global(axis);
            let from = self.uniform(halo);
            let to = self.uniform(grid.size[axis]);
            all = all.both(self.ge(at, from)?);
            if all == Truth::Never {
                break;
            }
            all = all.both(self.lt(at.plus(from), to)?);
            if all == Truth::Never {
                break;
            }
        }
        Ok(all)
    }
}
