//! Integers of many lanes at once: what is known of a value in all lanes of a box. Knows neither operators nor
//! statements.
//!
//! A value is congruent, modulo two to the power of its type's bits, to the sum of `strides` times the lane's coordinates and a rest
//! from `low` to `high`. Sums, differences and products of such forms need no thought of wrapping; whoever needs the value itself
//! asks [`Form::actual`], which knows it only where the whole form lies in the type's range, or a multiple of the modulus beside it.

use super::space::{AXES, Cut, Space};
use crate::eval::eval_cast;
use perpetua_ir::ir::Scalar;

/// What is known of a value in the lanes of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// By coordinate of the lane.
    pub strides: [i64; AXES],
    /// Least rest.
    pub low: i64,
    /// Greatest rest.
    pub high: i64,
}

/// What may ask for the box to be cut, so that more is known in each part.
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

    /// A number in an interval.
    pub const fn between(low: i64, high: i64) -> Form {
        Form {
            strides: [0; AXES],
            low,
            high,
        }
    }

    pub(super) const fn constant(value: i64) -> Form {
        Form::between(value, value)
    }

    /// A coordinate of the lane, `stride` times.
    pub(super) fn coordinate(axis: usize, stride: i64) -> Form {
        let mut form = Form::constant(0);
        form.strides[axis] = stride;
        form
    }

    /// A number, where all lanes share the coordinate.
    pub(super) fn settled(self, axis: usize, space: &Space) -> Form {
        match space.to[axis] - space.from[axis] {
            1 => self.flat(space),
            _ => self,
        }
    }

    pub(super) fn is_flat(self) -> bool {
        self.strides == [0; AXES]
    }

    pub(super) fn as_constant(self) -> Option<i64> {
        (self.is_flat() && self.low == self.high).then_some(self.low)
    }

    /// What is known of a condition.
    pub(super) fn truth(self) -> Option<bool> {
        match self.as_constant() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        }
    }

    pub(super) fn of_truth(truth: Option<bool>) -> Form {
        truth.map_or(Form::BOOL, |truth| Form::constant(truth.into()))
    }

    /// Least and greatest number in a box; `None` beyond 64 bits.
    pub fn range(self, space: &Space) -> Option<(i64, i64)> {
        let (mut low, mut high) = (self.low, self.high);
        for (axis, stride) in self.strides.into_iter().enumerate() {
            if stride != 0 {
                let first = stride.checked_mul(space.from[axis])?;
                let last = stride.checked_mul(space.to[axis] - 1)?;
                low = low.checked_add(first.min(last))?;
                high = high.checked_add(first.max(last))?;
            }
        }
        Some((low, high))
    }

    /// The same without strides.
    pub(super) fn flat(self, space: &Space) -> Form {
        match self.range(space) {
            _ if self.is_flat() => self,
            Some((low, high)) => Form::between(low, high),
            None => Form::ANY,
        }
    }

    /// The same without the strides that another form does not share.
    pub(super) fn like(self, b: &Form, space: &Space) -> Option<Form> {
        if self.strides == b.strides {
            return Some(self);
        }
        let mut rest = Form {
            strides: [0; AXES],
            ..self
        };
        let mut all = self;
        for axis in 0..AXES {
            rest.strides[axis] = match self.strides[axis] == b.strides[axis] {
                true => 0,
                false => std::mem::take(&mut all.strides[axis]),
            };
        }
        let (low, high) = rest.range(space)?;
        Some(Form { low, high, ..all })
    }

    /// A form of the values themselves, where it is one; else what their type says.
    pub(super) fn actual(self, s: Scalar, space: &Space) -> Form {
        let (least, most) = limits(s);
        if self.is_flat() && least <= self.low && self.high <= most && self != Form::ANY {
            return self;
        }
        let all = Form::between(least, most);
        let beside = || {
            let (low, high) = self.range(space).filter(|_| self != Form::ANY)?;
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
    pub(super) fn sealed(self, s: Scalar, space: &Space) -> Form {
        match self.range(space) {
            Some((_, high)) if s != Scalar::U64 || high < i64::MAX => self,
            _ => Form::ANY,
        }
    }

    pub(super) fn plus(self, b: Form) -> Form {
        let sum = || {
            let mut strides = self.strides;
            for (stride, by) in strides.iter_mut().zip(b.strides) {
                *stride = stride.checked_add(by)?;
            }
            Some(Form {
                strides,
                low: self.low.checked_add(b.low)?,
                high: self.high.checked_add(b.high)?,
            })
        };
        sum().unwrap_or(Form::ANY)
    }

    pub(super) fn minus(self, b: Form) -> Form {
        b.scaled(-1).map_or(Form::ANY, |b| self.plus(b))
    }

    pub(super) fn scaled(self, by: i64) -> Option<Form> {
        let (low, high) = (self.low.checked_mul(by)?, self.high.checked_mul(by)?);
        let mut strides = self.strides;
        for stride in &mut strides {
            *stride = stride.checked_mul(by)?;
        }
        Some(Form {
            strides,
            low: low.min(high),
            high: low.max(high),
        })
    }

    pub(super) fn times(self, b: Form, space: &Space) -> Form {
        let product = match (self.as_constant(), b.as_constant()) {
            (_, Some(by)) => self.scaled(by),
            (Some(by), _) => b.scaled(by),
            _ => self
                .range(space)
                .zip(b.range(space))
                .and_then(|((a, b), (c, d))| {
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
    pub(super) fn join(self, b: Form, space: &Space) -> Form {
        if self == b {
            return self;
        }
        let (Some(a), Some(b)) = (self.like(&b, space), b.like(&self, space)) else {
            return Form::ANY;
        };
        Form {
            strides: a.strides,
            low: a.low.min(b.low),
            high: a.high.max(b.high),
        }
    }

    /// Floor of a quotient by a positive constant; of numbers that are not negative Rust's.
    pub(super) fn floor_by(self, by: i64, space: &Space) -> Form {
        let mut multiple = self;
        for stride in &mut multiple.strides {
            *stride -= *stride % by;
        }
        let mut a = self.like(&multiple, space).unwrap_or(Form::ANY);
        for stride in &mut a.strides {
            *stride /= by;
        }
        Form {
            strides: a.strides,
            low: a.low.div_euclid(by),
            high: a.high.div_euclid(by),
        }
    }
}
