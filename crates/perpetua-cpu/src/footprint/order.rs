//! Which of two forms is less: in all lanes of a box, in none, or where to cut it so that this is known. Knows no statements.

use super::form::{Form, Result};
use super::space::{Cut, Space};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::BinaryOp;

/// Whether `a < b`, of actual values, and where to cut the box so that it is known of one part.
pub(super) fn less(a: Form, b: Form, space: &Space) -> (Option<bool>, Option<Cut>) {
    let (Some((low, high)), Some((low_b, high_b))) = (a.range(space), b.range(space)) else {
        return (None, None);
    };
    // A greatest value counts for unbounded.
    if high < low_b {
        return (Some(true), None);
    }
    if high_b <= low && high_b < i64::MAX {
        return (Some(false), None);
    }
    if high == i64::MAX || high_b == i64::MAX {
        return (None, None);
    }
    let difference = a.minus(b);
    match difference.range(space).filter(|_| difference != Form::ANY) {
        Some((_, ..0)) => (Some(true), None),
        Some((0.., _)) => (Some(false), None),
        Some(_) => (None, boundary(difference, space)),
        None => (None, None),
    }
}

/// Where to cut so that one part is all negative, or has nothing negative: along the axis on which the form grows most.
fn boundary(form: Form, space: &Space) -> Option<Cut> {
    let mut best: Option<(i64, Cut)> = None;
    for (axis, stride) in form.strides.into_iter().enumerate() {
        let (from, to) = (space.from[axis], space.to[axis]);
        if stride == 0 || to - from < 2 || !space.cuts[axis] {
            continue;
        }
        let mut rest = form;
        rest.strides[axis] = 0;
        let (low, high) = rest.range(space)?;
        // Coordinates below one are all negative and from another on none is, or the other way round.
        let up = |n: i64, by: i64| n.div_euclid(by) + i64::from(n.rem_euclid(by) != 0);
        let at = |end: i64| match stride > 0 {
            true => Some(up(end.checked_neg()?, stride)),
            false => end.div_euclid(stride.checked_neg()?).checked_add(1),
        };
        let spread = stride.saturating_abs().saturating_mul(to - from);
        for at in [high, low].into_iter().filter_map(at) {
            if from < at && at < to && best.is_none_or(|(most, _)| spread > most) {
                best = Some((spread, Cut { axis, at }));
            }
        }
    }
    best.map(|(_, cut)| cut)
}

/// Whether `a == b`.
fn equal(a: Form, b: Form, space: &Space) -> (Option<bool>, Option<Cut>) {
    if let (Some(a), Some(b)) = (a.as_constant(), b.as_constant())
        && a != i64::MAX
    {
        return (Some(a == b), None);
    }
    let (below, cut) = less(a, b, space);
    let (above, other) = less(b, a, space);
    match (below, above) {
        (Some(true), _) | (_, Some(true)) => (Some(false), None),
        (Some(false), Some(false)) => (Some(true), None),
        _ => (None, cut.or(other)),
    }
}

/// Whether `a < b`, to choose one of them; where a cut tells, that must be made first.
fn chosen(a: Form, b: Form, space: &Space) -> Result<Option<bool>> {
    let (truth, cut) = less(a, b, space);
    cut.filter(|_| space.chooses).map_or(Ok(truth), Err)
}

/// Which of two numbers is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    Lesser,
    Greater,
}

/// The lesser or the greater of two forms.
pub(super) fn take(which: Take, a: Form, b: Form, space: &Space) -> Result<Form> {
    if a.strides == b.strides {
        let end = |a: i64, b: i64| match which {
            Take::Lesser => a.min(b),
            Take::Greater => a.max(b),
        };
        return Ok(Form {
            strides: a.strides,
            low: end(a.low, b.low),
            high: end(a.high, b.high),
        });
    }
    let is_below = match (chosen(a, b, space)?, chosen(b, a, space)?) {
        (Some(true), _) | (_, Some(false)) => true,
        (Some(false), _) | (_, Some(true)) => false,
        _ => return take(which, a.flat(space), b.flat(space), space),
    };
    Ok(if is_below == (which == Take::Lesser) { a } else { b })
}

/// A comparison of actual values, and where to cut the box so that its answer is known of one part; `None` for other operators.
pub(super) fn compare(
    op: BinaryOp,
    s: Scalar,
    a: Form,
    b: Form,
    space: &Space,
) -> Option<(Form, Option<Cut>)> {
    if s.is_float() {
        return None;
    }
    let (x, y) = (a.actual(s, space), b.actual(s, space));
    let ((truth, cut), holds) = match op {
        BinaryOp::Eq => (equal(x, y, space), true),
        BinaryOp::Ne => (equal(x, y, space), false),
        BinaryOp::Lt => (less(x, y, space), true),
        BinaryOp::Ge => (less(x, y, space), false),
        BinaryOp::Gt => (less(y, x, space), true),
        BinaryOp::Le => (less(y, x, space), false),
        _ => return None,
    };
    Some((Form::of_truth(truth.map(|truth| truth == holds)), cut))
}
