//! Integers of many lanes at once: what is known of a value in all lanes of some rows of blocks, and what operators make of
//! it. Knows no statements.
//!
//! A value is congruent, modulo two to the power of its type's bits, to `stride * row + rest` with a rest from `low` to `high`.
//! Sums, differences and products of such forms need no thought of wrapping; whoever needs the value itself asks
//! [`Form::actual`], which knows it only where the whole form lies in the type's range, or a multiple of the modulus beside it.

use std::ops::Range;

use crate::ir::Scalar;
use crate::ops::eval::{eval_binary, eval_cast, eval_ternary, eval_unary};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// What is known of a value in the lanes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) stride: i64,
    pub(super) low: i64,
    pub(super) high: i64,
}

/// Rows of blocks, never none; whether a condition that holds for some of them only may ask to have them cut.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) range: Range<i64>,
    pub(super) cuts: bool,
}

/// The rows must be cut in front of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut(pub(super) i64);

pub(super) type Result<T> = std::result::Result<T, Cut>;

/// Least and greatest value of an integer type or `bool`; what needs more than 63 bits counts for unbounded.
pub(super) fn limits(s: Scalar) -> (i64, i64) {
    match (s.bits(), s.is_signed_int()) {
        (64, true) => (i64::MIN, i64::MAX),
        (64, false) => (0, i64::MAX),
        (bits, true) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (bits, false) => (0, (1 << bits) - 1),
    }
}

/// Bits of a type as a number.
pub(super) fn number(s: Scalar, bits: u64) -> i64 {
    match s.is_signed_int() {
        true => eval_cast(s, Scalar::I64, bits) as i64,
        false => bits as i64,
    }
}

impl Form {
    /// Anything, of every type.
    pub(super) const ANY: Form = Form::between(i64::MIN, i64::MAX);
    const BOOL: Form = Form::between(0, 1);

    pub(super) const fn between(low: i64, high: i64) -> Form {
        Form { stride: 0, low, high }
    }

    pub(super) const fn constant(value: i64) -> Form {
        Form::between(value, value)
    }

    fn as_constant(self) -> Option<i64> {
        (self.stride == 0 && self.low == self.high).then_some(self.low)
    }

    /// What is known of a condition.
    pub(super) fn truth(self) -> Option<bool> {
        match self.as_constant() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        }
    }

    fn of_truth(truth: Option<bool>) -> Form {
        truth.map_or(Form::BOOL, |truth| Form::constant(truth.into()))
    }

    /// Least and greatest number over the rows.
    pub(super) fn range(self, rows: &Rows) -> Option<(i64, i64)> {
        let first = self.stride.checked_mul(rows.range.start)?;
        let last = self.stride.checked_mul(rows.range.end - 1)?;
        let low = self.low.checked_add(first.min(last))?;
        Some((low, self.high.checked_add(first.max(last))?))
    }

    /// The same without a stride.
    pub(super) fn flat(self, rows: &Rows) -> Form {
        match self.range(rows) {
            _ if self.stride == 0 => self,
            Some((low, high)) => Form::between(low, high),
            None => Form::ANY,
        }
    }

    /// A form of the values themselves, where it is one; else what their type says.
    pub(super) fn actual(self, s: Scalar, rows: &Rows) -> Form {
        let (least, most) = limits(s);
        let all = Form::between(least, most);
        let beside = || {
            let (low, high) = self.range(rows).filter(|_| self != Form::ANY)?;
            let by = match s.bits() {
                64 => 0,
                bits => low.checked_sub(least)?.div_euclid(1 << bits) << bits,
            };
            let fits = low.checked_sub(by)? >= least && high.checked_sub(by)? <= most;
            let back = Form::constant(by.checked_neg()?);
            fits.then(|| self.plus(back))
        };
        beside().unwrap_or(all)
    }

    /// The same as a form of type `s`: what is unbounded may be anything.
    fn sealed(self, s: Scalar, rows: &Rows) -> Form {
        match self.range(rows) {
            Some((_, high)) if s != Scalar::U64 || high < i64::MAX => self,
            _ => Form::ANY,
        }
    }

    pub(super) fn plus(self, b: Form) -> Form {
        let sum = || {
            Some(Form {
                stride: self.stride.checked_add(b.stride)?,
                low: self.low.checked_add(b.low)?,
                high: self.high.checked_add(b.high)?,
            })
        };
        sum().unwrap_or(Form::ANY)
    }

    fn minus(self, b: Form) -> Form {
        b.scaled(-1).map_or(Form::ANY, |b| self.plus(b))
    }

    pub(super) fn scaled(self, by: i64) -> Option<Form> {
        let (low, high) = (self.low.checked_mul(by)?, self.high.checked_mul(by)?);
        Some(Form {
            stride: self.stride.checked_mul(by)?,
            low: low.min(high),
            high: low.max(high),
        })
    }

    fn times(self, b: Form, rows: &Rows) -> Form {
        let product = match (self.as_constant(), b.as_constant()) {
            (_, Some(by)) => self.scaled(by),
            (Some(by), _) => b.scaled(by),
            _ => self.range(rows).zip(b.range(rows)).and_then(|((a, b), (c, d))| {
                let corners = [
                    a.checked_mul(c)?,
                    a.checked_mul(d)?,
                    b.checked_mul(c)?,
                    b.checked_mul(d)?,
                ];
                let (low, high) = (corners.iter().min()?, corners.iter().max()?);
                Some(Form::between(*low, *high))
            }),
        };
        product.unwrap_or(Form::ANY)
    }

    /// What holds of both.
    pub(super) fn join(self, b: Form, rows: &Rows) -> Form {
        let (a, b) = match self.stride == b.stride {
            true => (self, b),
            false => (self.flat(rows), b.flat(rows)),
        };
        Form {
            stride: a.stride,
            low: a.low.min(b.low),
            high: a.high.max(b.high),
        }
    }

    /// Floor of a quotient by a positive constant; of numbers that are not negative Rust's.
    fn floor_by(self, by: i64, rows: &Rows) -> Form {
        let a = match self.stride % by {
            0 => self,
            _ => self.flat(rows),
        };
        Form {
            stride: a.stride / by,
            low: a.low.div_euclid(by),
            high: a.high.div_euclid(by),
        }
    }
}

/// Whether `a < b`, of actual values; may ask for a cut.
pub(super) fn less(a: Form, b: Form, rows: &Rows) -> Result<Option<bool>> {
    let (Some((low, high)), Some((low_b, high_b))) = (a.range(rows), b.range(rows)) else {
        return Ok(None);
    };
    // A greatest value counts for unbounded.
    if high < low_b {
        return Ok(Some(true));
    }
    if high_b <= low && high_b < i64::MAX {
        return Ok(Some(false));
    }
    if high == i64::MAX || high_b == i64::MAX {
        return Ok(None);
    }
    let difference = a.minus(b);
    let Some((low, high)) = difference.range(rows).filter(|_| difference != Form::ANY) else {
        return Ok(None);
    };
    match (low, high) {
        (_, ..0) => return Ok(Some(true)),
        (0.., _) => return Ok(Some(false)),
        _ => {}
    }
    let Form { stride, low, high } = difference;
    if !rows.cuts || stride == 0 {
        return Ok(None);
    }
    // Rows below one are all less and rows from another on are none, or the other way round.
    let up = |n: i64, by: i64| n.div_euclid(by) + i64::from(n.rem_euclid(by) != 0);
    let at = |end: i64| match stride > 0 {
        true => Some(up(end.checked_neg()?, stride)),
        false => end.div_euclid(stride.checked_neg()?).checked_add(1),
    };
    let inside = |at: &i64| rows.range.start < *at && *at < rows.range.end;
    let mut cuts = [high, low].into_iter().filter_map(at);
    cuts.find(inside).map_or(Ok(None), |at| Err(Cut(at)))
}

fn equal(a: Form, b: Form, rows: &Rows) -> Result<Option<bool>> {
    if let (Some(a), Some(b)) = (a.as_constant(), b.as_constant())
        && a != i64::MAX
    {
        return Ok(Some(a == b));
    }
    let apart = less(a, b, rows)? == Some(true) || less(b, a, rows)? == Some(true);
    Ok(apart.then_some(false))
}

fn lesser(a: Form, b: Form, rows: &Rows) -> Result<Form> {
    if a.stride == b.stride {
        return Ok(Form {
            stride: a.stride,
            low: a.low.min(b.low),
            high: a.high.min(b.high),
        });
    }
    Ok(match (less(a, b, rows)?, less(b, a, rows)?) {
        (Some(true), _) | (_, Some(false)) => a,
        (Some(false), _) | (_, Some(true)) => b,
        _ => lesser(a.flat(rows), b.flat(rows), rows)?,
    })
}

fn greater(a: Form, b: Form, rows: &Rows) -> Result<Form> {
    if a.stride == b.stride {
        return Ok(Form {
            stride: a.stride,
            low: a.low.max(b.low),
            high: a.high.max(b.high),
        });
    }
    Ok(match (less(a, b, rows)?, less(b, a, rows)?) {
        (Some(true), _) | (_, Some(false)) => b,
        (Some(false), _) | (_, Some(true)) => a,
        _ => greater(a.flat(rows), b.flat(rows), rows)?,
    })
}

/// An operator of one operand.
pub(super) fn unary(op: UnaryOp, s: Scalar, a: Form, rows: &Rows) -> Form {
    if s.is_float() {
        return Form::ANY;
    }
    let actual = a.actual(s, rows);
    if let Some(a) = actual.as_constant() {
        return Form::constant(number(result(op.row().result, s), eval_unary(op, s, cut(s, a))));
    }
    match op {
        UnaryOp::Neg => Form::constant(0).minus(a),
        UnaryOp::Not if s == Scalar::Bool => Form::constant(1).minus(actual),
        UnaryOp::Not => Form::constant(-1).minus(a),
        UnaryOp::Abs if actual.range(rows).is_some_and(|(low, _)| low >= 0) => actual,
        UnaryOp::CountOnes | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros => {
            Form::between(0, s.bits().into())
        }
        _ => Form::ANY,
    }
}

/// An operator of two operands; of shifts and rotations the second has type `t`.
pub(super) fn binary(op: BinaryOp, s: Scalar, a: Form, t: Scalar, b: Form, rows: &Rows) -> Result<Form> {
    if s.is_float() {
        return Ok(Form::ANY);
    }
    let (x, y) = (a.actual(s, rows), b.actual(t, rows));
    if let (Some(x), Some(y)) = (x.as_constant(), y.as_constant()) {
        let found = eval_binary(op, s, cut(s, x), cut(t, y)).unwrap_or(0);
        return Ok(Form::constant(number(result(op.row().result, s), found)));
    }
    let flat = (x.flat(rows), y.flat(rows));
    let positive = flat.0.low >= 0 && flat.1.low >= 0;
    let shift = y.as_constant().map(|y| y & i64::from(s.bits() - 1));
    let truth = |truth: Option<bool>| Form::of_truth(truth);
    Ok(match op {
        BinaryOp::Add => a.plus(b),
        BinaryOp::Sub => a.minus(b),
        BinaryOp::Mul => a.times(b, rows),
        BinaryOp::Shl => match shift {
            Some(by @ ..63) => a.scaled(1 << by).unwrap_or(Form::ANY),
            _ => Form::ANY,
        },
        // What is not bounded may be a large number.
        BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shr | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor
            if flat.0.high == i64::MAX && flat.1.high == i64::MAX =>
        {
            Form::ANY
        }
        BinaryOp::Shr if flat.0.high < i64::MAX => match shift {
            Some(by @ ..63) => x.floor_by(1 << by, rows),
            _ => Form::ANY,
        },
        BinaryOp::Div if positive && flat.0.high < i64::MAX => match y.as_constant() {
            Some(by @ 1..) => x.floor_by(by, rows),
            _ => Form::between(0, flat.0.high),
        },
        BinaryOp::Rem if positive => match (y.as_constant(), flat) {
            (Some(by @ 1..), (x, _)) if x.high < i64::MAX && x.low / by == x.high / by => {
                Form::between(x.low % by, x.high % by)
            }
            (_, (x, y)) => Form::between(0, x.high.min(y.high.saturating_sub(1)).max(0)),
        },
        BinaryOp::And if positive => Form::between(0, flat.0.high.min(flat.1.high)),
        // Of a number that may be anything, too.
        BinaryOp::And if flat.1.low >= 0 && flat.1.high < i64::MAX => Form::between(0, flat.1.high),
        BinaryOp::And if flat.0.low >= 0 && flat.0.high < i64::MAX => Form::between(0, flat.0.high),
        BinaryOp::Or | BinaryOp::Xor if positive && flat.0.high.max(flat.1.high) < i64::MAX => {
            let bits = 64 - flat.0.high.max(flat.1.high).leading_zeros();
            let low = match op {
                BinaryOp::Or => flat.0.low.max(flat.1.low),
                _ => 0,
            };
            Form::between(low, ((1u64 << bits) - 1) as i64)
        }
        BinaryOp::Min => lesser(x, y, rows)?.sealed(s, rows),
        BinaryOp::Max => greater(x, y, rows)?.sealed(s, rows),
        BinaryOp::Eq => truth(equal(x, y, rows)?),
        BinaryOp::Ne => truth(equal(x, y, rows)?.map(|equal| !equal)),
        BinaryOp::Lt => truth(less(x, y, rows)?),
        BinaryOp::Ge => truth(less(x, y, rows)?.map(|less| !less)),
        BinaryOp::Gt => truth(less(y, x, rows)?),
        BinaryOp::Le => truth(less(y, x, rows)?.map(|less| !less)),
        BinaryOp::SaturatingSub if s.is_unsigned_int() && flat.0.high < i64::MAX => {
            greater(x.minus(y), Form::constant(0), rows)?
        }
        _ => Form::ANY,
    })
}

/// An operator of three operands.
pub(super) fn ternary(op: TernaryOp, s: Scalar, [a, b, c]: [Form; 3], rows: &Rows) -> Result<Form> {
    Ok(match op {
        TernaryOp::Select => match a.truth() {
            Some(true) => b,
            Some(false) => c,
            None => b.join(c, rows),
        },
        _ if s.is_float() => Form::ANY,
        _ => {
            let all = [a, b, c].map(|form| form.actual(s, rows));
            if let [Some(a), Some(b), Some(c)] = all.map(Form::as_constant) {
                return Ok(Form::constant(number(
                    s,
                    eval_ternary(op, s, cut(s, a), cut(s, b), cut(s, c)),
                )));
            }
            lesser(greater(all[0], all[1], rows)?, all[2], rows)?.sealed(s, rows)
        }
    })
}

/// Rust's `as`.
pub(super) fn cast(from: Scalar, to: Scalar, a: Form, rows: &Rows) -> Form {
    match () {
        _ if from.is_float() || to.is_float() => Form::ANY,
        // What is congruent stays so.
        _ if to.bits() <= from.bits() => a,
        _ => a.actual(from, rows),
    }
}

fn cut(s: Scalar, value: i64) -> u64 {
    value as u64 & u64::MAX >> (64 - s.bits())
}

fn result(result: crate::ops::Result, s: Scalar) -> Scalar {
    crate::ops::eval::result_scalar(result, s)
}
