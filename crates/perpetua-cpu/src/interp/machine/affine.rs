//! What is known of a value without a look at every lane: that lanes share it, or that it grows evenly from lane to lane.
//! Operators on such values, as [`ops::eval`](crate::eval) has them, without lanes. Knows no registers.

use crate::eval::{combine, eval_cast, eval_ternary, eval_unary};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

/// How many lanes a machine has along x, y and z; their numbers count x fastest.
pub(super) type Sides = [u32; 3];

/// What is known of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The same bits in all lanes, zero-extended.
    Uniform(u64),
    /// An integer that grows along the sides.
    Affine(Affine),
    /// Each lane has its own.
    Lanes,
}

/// An integer in the first lane, and what it grows by along each side, modulo the type. Steps are sign-extended, and zero
/// along sides of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Affine {
    pub(super) first: u64,
    pub(super) steps: [i64; 3],
}

/// The values of an integer that does not wrap around anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) first: i64,
    pub(super) steps: [i64; 3],
    pub(super) low: i64,
    pub(super) high: i64,
}

/// Bits of an integer, extended by its sign if it has one.
pub(super) fn extended(s: Scalar, bits: u64) -> u64 {
    let shift = 64 - s.bits();
    if s.is_signed_int() {
        (((bits << shift) as i64) >> shift) as u64
    } else {
        bits << shift >> shift
    }
}

impl Form {
    /// An integer of `size` bytes that grows so.
    pub(super) fn growing(size: u32, first: u64, steps: [i64; 3], sides: Sides) -> Form {
        let shift = 64 - 8 * size;
        let first = first << shift >> shift;
        let mut normal = [0; 3];
        for axis in 0..3 {
            if sides[axis] > 1 {
                normal[axis] = steps[axis] << shift >> shift;
            }
        }
        match normal {
            [0, 0, 0] => Form::Uniform(first),
            steps => Form::Affine(Affine { first, steps }),
        }
    }

    /// What lanes share, or what grows with them.
    fn affine(self) -> Option<Affine> {
        match self {
            Form::Uniform(first) => Some(Affine { first, steps: [0; 3] }),
            Form::Affine(affine) => Some(affine),
            Form::Lanes => None,
        }
    }

    /// The values of an integer of type `s`, where they are known and none wraps around.
    pub(super) fn exact(self, s: Scalar, sides: Sides) -> Option<Exact> {
        let Affine { first, steps } = self.affine()?;
        let first = extended(s, first) as i64;
        let (mut low, mut high) = (first, first);
        for axis in 0..3 {
            if steps[axis] != 0 {
                let most = steps[axis].checked_mul(i64::from(sides[axis]) - 1)?;
                if most < 0 {
                    low = low.checked_add(most)?;
                } else {
                    high = high.checked_add(most)?;
                }
            }
        }
        let (least, most) = match s {
            Scalar::I64 => (i64::MIN, i64::MAX),
            Scalar::U64 => (0, i64::MAX),
            _ if s.is_signed_int() => (-1 << (s.bits() - 1), (1 << (s.bits() - 1)) - 1),
            _ => (0, (1 << s.bits()) - 1),
        };
        (low >= least && high <= most).then_some(Exact {
            first,
            steps,
            low,
            high,
        })
    }
}

/// The result of an operator of one operand, if it is known without lanes.
pub(super) fn unary(op: UnaryOp, s: Scalar, a: Form, sides: Sides) -> Option<Form> {
    match a {
        Form::Uniform(bits) => Some(Form::Uniform(eval_unary(op, s, bits))),
        Form::Affine(Affine { first, steps }) if s.is_int() => {
            let first = match op {
                UnaryOp::Neg => first.wrapping_neg(),
                UnaryOp::Not => !first,
                _ => return None,
            };
            Some(Form::growing(
                s.size(),
                first,
                steps.map(i64::wrapping_neg),
                sides,
            ))
        }
        _ => None,
    }
}

/// The result of an operator of two operands, if it is known without lanes; of a division that faults it is 0.
pub(super) fn binary(op: BinaryOp, s: Scalar, a: Form, b: Form, sides: Sides) -> Option<Form> {
    if let (Form::Uniform(a), Form::Uniform(b)) = (a, b) {
        return Some(Form::Uniform(combine(op, s, a, b)));
    }
    if !s.is_int() {
        return None;
    }
    let (x, y) = (a.affine()?, b.affine()?);
    let grown = |first: u64, step: &dyn Fn(usize) -> i64| {
        Some(Form::growing(s.size(), first, [step(0), step(1), step(2)], sides))
    };
    let scaled =
        |x: Affine, by: u64| grown(x.first.wrapping_mul(by), &|i| x.steps[i].wrapping_mul(by as i64));
    match (op, a, b) {
        (BinaryOp::Add, ..) => grown(x.first.wrapping_add(y.first), &|i| {
            x.steps[i].wrapping_add(y.steps[i])
        }),
        (BinaryOp::Sub, ..) => grown(x.first.wrapping_sub(y.first), &|i| {
            x.steps[i].wrapping_sub(y.steps[i])
        }),
        (BinaryOp::Mul, _, Form::Uniform(by)) => scaled(x, by),
        (BinaryOp::Mul, Form::Uniform(by), _) => scaled(y, by),
        (BinaryOp::Shl, _, Form::Uniform(by)) => scaled(x, 1 << (by & u64::from(s.bits() - 1))),
        _ => by_ranges(op, s, (a, b), sides),
    }
}

/// Where the ranges of two integers say it all.
fn by_ranges(op: BinaryOp, s: Scalar, (a, b): (Form, Form), sides: Sides) -> Option<Form> {
    let (x, y) = (a.exact(s, sides)?, b.exact(s, sides)?);
    let is = |is: bool| Some(Form::Uniform(is.into()));
    let below = x.high < y.low;
    let above = x.low > y.high;
    // Of a divisor that all lanes share: what the first lane's quotient is, if all lanes have the same.
    let quotient = |by: i64| (x.low >= 0 && by > 0 && x.low / by == x.high / by).then(|| x.low / by);
    let rest = |by: i64, quotient: i64| {
        let Affine { first, steps } = a.affine()?;
        let first = first.wrapping_sub(quotient.wrapping_mul(by) as u64);
        Some(Form::growing(s.size(), first, steps, sides))
    };
    match op {
        BinaryOp::Lt | BinaryOp::Le if below => is(true),
        BinaryOp::Gt | BinaryOp::Ge if above => is(true),
        BinaryOp::Lt if x.low >= y.high => is(false),
        BinaryOp::Le if above => is(false),
        BinaryOp::Gt if x.high <= y.low => is(false),
        BinaryOp::Ge if below => is(false),
        BinaryOp::Le if x.high <= y.low => is(true),
        BinaryOp::Ge if x.low >= y.high => is(true),
        BinaryOp::Eq if below || above => is(false),
        BinaryOp::Ne if below || above => is(true),
        BinaryOp::Min if x.high <= y.low => Some(a),
        BinaryOp::Min if y.high <= x.low => Some(b),
        BinaryOp::Max if x.high <= y.low => Some(b),
        BinaryOp::Max if y.high <= x.low => Some(a),
        BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shr | BinaryOp::And => {
            let Form::Uniform(by) = b else { return None };
            match op {
                BinaryOp::Div => quotient(y.first).map(|q| Form::Uniform(q as u64)),
                BinaryOp::Rem => rest(y.first, quotient(y.first)?),
                BinaryOp::Shr => {
                    let by = by & u64::from(s.bits() - 1);
                    let same = x.low >= 0 && x.low >> by == x.high >> by;
                    same.then_some(Form::Uniform((x.low >> by) as u64))
                }
                // A mask of the lowest bits is a remainder.
                _ => {
                    let by = y.first.checked_add(1).filter(|n| *n > 0 && n & (n - 1) == 0)?;
                    rest(by, quotient(by)?)
                }
            }
        }
        _ => None,
    }
}

/// The result of an operator of three operands, if it is known without lanes. (What is selected may be lanes.)
pub(super) fn ternary(op: TernaryOp, s: Scalar, a: Form, b: Form, c: Form) -> Option<Form> {
    match (a, b, c) {
        (Form::Uniform(a), Form::Uniform(b), Form::Uniform(c)) => {
            Some(Form::Uniform(eval_ternary(op, s, a, b, c)))
        }
        _ => None,
    }
}

/// The result of a cast, if it is known without lanes.
pub(super) fn cast(from: Scalar, to: Scalar, a: Form, sides: Sides) -> Option<Form> {
    match a {
        Form::Uniform(bits) => Some(Form::Uniform(eval_cast(from, to, bits))),
        Form::Affine(Affine { first, steps }) if from.is_int() && to.is_int() => {
            if to.size() <= from.size() {
                return Some(Form::growing(to.size(), first, steps, sides));
            }
            let exact = a.exact(from, sides)?;
            Some(Form::growing(to.size(), exact.first as u64, exact.steps, sides))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::division_fault;
    use crate::eval::eval_binary;

    const INTS: [Scalar; 8] = [
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
    ];
    const SIDES: Sides = [5, 3, 2];

    fn at(form: Form, size: u32, lane: u32) -> u64 {
        let (x, y, z) = (lane % 5, lane / 5 % 3, lane / 15);
        match form {
            Form::Uniform(bits) => bits,
            Form::Affine(Affine { first, steps }) => {
                let grown = [x, y, z].into_iter().zip(steps).fold(first, |sum, (i, step)| {
                    sum.wrapping_add(u64::from(i).wrapping_mul(step as u64))
                });
                grown << (64 - 8 * size) >> (64 - 8 * size)
            }
            Form::Lanes => panic!("no form"),
        }
    }

    /// Firsts and steps around which types end.
    fn forms(s: Scalar) -> Vec<Form> {
        let top = 1u64 << (s.bits() - 1);
        let mut forms = Vec::new();
        for first in [
            0,
            1,
            3,
            7,
            40,
            top - 9,
            top - 1,
            top,
            top + 3,
            top.wrapping_mul(2).wrapping_sub(6),
        ] {
            for steps in [
                [0; 3],
                [1, 0, 0],
                [1, 5, 15],
                [-1, 0, 4],
                [0, 2, 0],
                [3, -7, 1],
                [0, 0, i64::MAX / 3],
            ] {
                forms.push(Form::growing(s.size(), first, steps, SIDES));
            }
        }
        forms
    }

    #[test]
    fn results_without_lanes_are_those_of_each_lane() {
        let mut known = 0;
        for s in INTS {
            for a in forms(s) {
                for op in [UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs, UnaryOp::ReverseBits] {
                    let Some(found) = unary(op, s, a, SIDES) else {
                        continue;
                    };
                    for lane in 0..30 {
                        let expect = eval_unary(op, s, at(a, s.size(), lane));
                        assert_eq!(at(found, s.size(), lane), expect, "{} {s} {a:?}", op.name());
                    }
                }
                for to in INTS {
                    let Some(found) = cast(s, to, a, SIDES) else {
                        continue;
                    };
                    for lane in 0..30 {
                        let expect = eval_cast(s, to, at(a, s.size(), lane));
                        assert_eq!(at(found, to.size(), lane), expect, "{s} as {to} {a:?}");
                    }
                }
                for b in forms(s) {
                    for op in BinaryOp::ALL.iter().copied() {
                        if !op.row().domain.contains(s) {
                            continue;
                        }
                        let shifts = op.row().second == perpetua_ir::ops::Second::Amount;
                        let Some(found) = binary(op, s, a, b, SIDES) else {
                            continue;
                        };
                        let size = crate::eval::result_scalar(op.row().result, s).size();
                        for lane in 0..30 {
                            let [a, b] = [a, b].map(|form| at(form, s.size(), lane));
                            if !shifts && division_fault(op, s, a, b).is_some() {
                                continue;
                            }
                            known += 1;
                            let expect = eval_binary(op, s, a, b).unwrap();
                            assert_eq!(at(found, size, lane), expect, "{} {s} {a:#x} {b:#x}", op.name());
                        }
                    }
                }
            }
        }
        assert!(known > 100_000, "{known}");
    }

    #[test]
    fn what_wraps_around_is_not_exact() {
        let form = |first| Form::growing(4, first, [1, 0, 0], SIDES);
        let exact = form(u64::from(u32::MAX) - 4).exact(Scalar::U32, SIDES);
        assert_eq!(exact.map(|e| e.high), Some(i64::from(u32::MAX)));
        assert_eq!(form(u64::from(u32::MAX) - 3).exact(Scalar::U32, SIDES), None);
        assert_eq!(
            form(u64::from(u32::MAX) - 3)
                .exact(Scalar::I32, SIDES)
                .map(|e| e.low),
            Some(-4)
        );
        assert_eq!(
            cast(Scalar::U32, Scalar::U64, form(u64::from(u32::MAX) - 3), SIDES),
            None
        );
    }
}
