//! What operators make of forms. Knows no statements.

use super::form::{Form, Result, number};
use super::order::{Take, take};
use super::space::Space;
use crate::eval::{eval_binary, eval_ternary, eval_unary, result_scalar};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

/// An operator of one operand.
pub(super) fn unary(op: UnaryOp, s: Scalar, a: Form, space: &Space) -> Form {
    if s.is_float() {
        return Form::ANY;
    }
    let actual = a.actual(s, space);
    if let Some(a) = actual.as_constant() {
        return Form::constant(number(
            result_scalar(op.row().result, s),
            eval_unary(op, s, cut(s, a)),
        ));
    }
    match op {
        UnaryOp::Neg => Form::constant(0).minus(a),
        UnaryOp::Not if s == Scalar::Bool => Form::constant(1).minus(actual),
        UnaryOp::Not => Form::constant(-1).minus(a),
        UnaryOp::Abs if actual.range(space).is_some_and(|(low, _)| low >= 0) => actual,
        UnaryOp::CountOnes | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros => {
            Form::between(0, s.bits().into())
        }
        _ => Form::ANY,
    }
}

/// An operator of two operands; of shifts and rotations the second has type `t`.
pub(super) fn binary(op: BinaryOp, s: Scalar, a: Form, t: Scalar, b: Form, space: &Space) -> Result<Form> {
    if s.is_float() {
        return Ok(Form::ANY);
    }
    let (x, y) = (a.actual(s, space), b.actual(t, space));
    if let (Some(x), Some(y)) = (x.as_constant(), y.as_constant()) {
        let found = eval_binary(op, s, cut(s, x), cut(t, y)).unwrap_or(0);
        return Ok(Form::constant(number(result_scalar(op.row().result, s), found)));
    }
    let flat = (x.flat(space), y.flat(space));
    let positive = flat.0.low >= 0 && flat.1.low >= 0;
    let shift = y.as_constant().map(|y| y & i64::from(s.bits() - 1));
    Ok(match op {
        BinaryOp::Add => a.plus(b),
        BinaryOp::Sub => a.minus(b),
        BinaryOp::Mul => a.times(b, space),
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
            Some(by @ ..63) => x.floor_by(1 << by, space),
            _ => Form::ANY,
        },
        BinaryOp::Div if positive && flat.0.high < i64::MAX => match y.as_constant() {
            Some(by @ 1..) => x.floor_by(by, space),
            _ => Form::between(0, flat.0.high),
        },
        BinaryOp::Rem if positive => match (y.as_constant(), flat) {
            (Some(by @ 1..), (flat, _)) if flat.high < i64::MAX && flat.low / by == flat.high / by => {
                x.minus(Form::constant(flat.low - flat.low % by))
            }
            (_, (x, y)) => Form::between(0, x.high.min(y.high.saturating_sub(1)).max(0)),
        },
        BinaryOp::Div | BinaryOp::Rem if flat.0.high == i64::MAX => Form::ANY,
        BinaryOp::Div => match y.as_constant() {
            Some(by @ 1..) => Form::between(flat.0.low / by, flat.0.high / by),
            _ => Form::ANY,
        },
        BinaryOp::Rem => match y.as_constant() {
            Some(by @ 1..) => Form::between(flat.0.low.clamp(1 - by, 0), flat.0.high.clamp(0, by - 1)),
            _ => Form::ANY,
        },
        // With all bits below the mask's highest in it, small numbers stay.
        BinaryOp::And if positive && is_mask(y, flat.0.high) => x,
        BinaryOp::And if positive && is_mask(x, flat.1.high) => y,
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
        BinaryOp::Min => take(Take::Lesser, x, y, space)?.sealed(s, space),
        BinaryOp::Max => take(Take::Greater, x, y, space)?.sealed(s, space),
        BinaryOp::SaturatingSub if s.is_unsigned_int() && flat.0.high < i64::MAX => {
            take(Take::Greater, x.minus(y), Form::constant(0), space)?
        }
        _ => Form::ANY,
    })
}

/// An operator of three operands.
pub(super) fn ternary(op: TernaryOp, s: Scalar, [a, b, c]: [Form; 3], space: &Space) -> Result<Form> {
    Ok(match op {
        TernaryOp::Select => match a.truth() {
            Some(true) => b,
            Some(false) => c,
            None => b.join(c, space),
        },
        _ if s.is_float() => Form::ANY,
        _ => {
            let all = [a, b, c].map(|form| form.actual(s, space));
            if let [Some(a), Some(b), Some(c)] = all.map(Form::as_constant) {
                return Ok(Form::constant(number(
                    s,
                    eval_ternary(op, s, cut(s, a), cut(s, b), cut(s, c)),
                )));
            }
            let raised = take(Take::Greater, all[0], all[1], space)?;
            take(Take::Lesser, raised, all[2], space)?.sealed(s, space)
        }
    })
}

/// Whether all numbers from zero to this one stay what they are under the mask.
fn is_mask(mask: Form, high: i64) -> bool {
    let covers = |mask: i64| mask < i64::MAX && high <= mask && (mask as u64 + 1).is_power_of_two();
    mask.as_constant().is_some_and(covers)
}

/// Rust's `as`.
pub(super) fn cast(from: Scalar, to: Scalar, a: Form, space: &Space) -> Form {
    match () {
        _ if from.is_float() || to.is_float() => Form::ANY,
        // What is congruent stays so.
        _ if to.bits() <= from.bits() => a,
        _ => a.actual(from, space),
    }
}

fn cut(s: Scalar, value: i64) -> u64 {
    value as u64 & u64::MAX >> (64 - s.bits())
}
