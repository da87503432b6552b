//! Integers over all lanes of a box at once: a form `u + Σ s·c` in the lanes' coordinates `c`, with a `u` that lies in an
//! interval. Indices, bounds of loops and conditions of kernels are mostly such forms.
//!
//! Arithmetic is exact. Rust's wraps; since sums, differences and products of wrapped numbers are those of the exact ones,
//! wrapped, it is enough to ask whether a form lies in its type's range where it is used for anything else: compared,
//! cast, divided, or as an index.
//!
//! A number that only literals gave a type may have another type in the function, where inference knows more: it is
//! trusted only while it fits every type that it can have (`Trust`).

use std::any::{Any, TypeId};
use std::marker::PhantomData;

use super::number::Integer;
use super::probe::Space;

/// Coordinates of a lane: three in the grid, or three in the block and three of the block.
pub(super) const AXES: usize = 6;

/// A type of which something may be known: an integer's range, and its value. Constants of kernels may have any type;
/// of those that are no integers nothing is known.
pub trait Known: Copy + 'static {}

impl<T: Copy + 'static> Known for T {}

/// What is known of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// The least value, where it does not exceed [`i64`].
    least: i64,
    /// The greatest value; that of [`i64`] for wider types. Less than the least where the type is no integer.
    greatest: i64,
    /// Bits of an integer.
    bits: i64,
}

macro_rules! integers {
    ($($ty:ident)*) => {
        impl Kind {
            #[inline(always)]
            fn of<T: 'static>() -> Kind {
                $(if TypeId::of::<T>() == TypeId::of::<$ty>() {
                    return Kind {
                        least: <$ty as Integer>::MIN,
                        greatest: <$ty as Integer>::MAX,
                        bits: $ty::BITS as i64,
                    };
                })*
                Kind { least: 0, greatest: -1, bits: 0 }
            }
        }

        /// The value, where it is an integer and [`i64`] holds it.
        #[inline(always)]
        pub(super) fn exact<T: Known>(value: T) -> Option<i64> {
            let value: &dyn Any = &value;
            $(if let Some(value) = value.downcast_ref::<$ty>() {
                return Integer::exact(*value);
            })*
            None
        }
    };
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// How sure a number's type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    /// Something with a type stands in the number's expression.
    Typed,
    /// Only literals do, one of them negative: the type is a signed one.
    Signed,
    /// Only literals do.
    Literal,
}

impl Trust {
    /// Of what two numbers of one type give.
    fn with(self, other: Trust) -> Trust {
        match (self, other) {
            (Trust::Typed, _) | (_, Trust::Typed) => Trust::Typed,
            (Trust::Signed, _) | (_, Trust::Signed) => Trust::Signed,
            _ => Trust::Literal,
        }
    }
}

/// What is known of an integer of type `T`.
pub struct Affine<T> {
    /// `None`: nothing.
    pub(super) form: Option<Form>,
    pub(super) trust: Trust,
    ty: PhantomData<T>,
}

/// The number with the type that its binding says.
pub fn typed<T: Known>(number: Affine<T>) -> Affine<T> {
    number.trusted(Trust::Typed)
}

/// `u + Σ strides·coordinates`, `low <= u <= high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) low: i64,
    pub(super) high: i64,
    pub(super) strides: [i64; AXES],
}

/// A form with its least and greatest number.
pub(super) type Ranged = (Form, i64, i64);

impl<T> Clone for Affine<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Affine<T> {}

impl<T> Affine<T> {
    pub(super) fn of(form: Option<Form>) -> Affine<T> {
        Affine {
            form,
            trust: Trust::Typed,
            ty: PhantomData,
        }
    }

    /// Another form of the same type.
    pub(super) fn replaced(self, form: Form) -> Affine<T> {
        Affine {
            form: Some(form),
            ..self
        }
    }

    pub(super) fn trusted(self, trust: Trust) -> Affine<T> {
        Affine { trust, ..self }
    }
}

impl Form {
    pub(super) fn interval(low: i64, high: i64) -> Form {
        Form {
            low,
            high,
            strides: [0; AXES],
        }
    }

    pub(super) fn constant(value: i64) -> Form {
        Form::interval(value, value)
    }

    pub(super) fn coordinate(axis: usize, stride: i64) -> Form {
        let mut form = Form::constant(0);
        form.strides[axis] = stride;
        form
    }

    /// Whether every lane has the number that the strides say.
    pub(super) fn is_exact(&self) -> bool {
        self.low == self.high
    }

    fn is_uniform(&self) -> bool {
        self.strides == [0; AXES]
    }

    /// The number, where all lanes have the same and it is known.
    fn value(&self) -> Option<i64> {
        (self.is_exact() && self.is_uniform()).then_some(self.low)
    }

    pub(super) fn plus(&self, other: &Form) -> Option<Form> {
        let mut strides = self.strides;
        for (s, o) in strides.iter_mut().zip(other.strides) {
            *s = s.checked_add(o)?;
        }
        Some(Form {
            low: self.low.checked_add(other.low)?,
            high: self.high.checked_add(other.high)?,
            strides,
        })
    }

    pub(super) fn minus(&self, other: &Form) -> Option<Form> {
        self.plus(&other.scaled_by(-1)?)
    }

    pub(super) fn scaled_by(&self, by: i64) -> Option<Form> {
        let mut strides = self.strides;
        for s in &mut strides {
            *s = s.checked_mul(by)?;
        }
        let (a, b) = (self.low.checked_mul(by)?, self.high.checked_mul(by)?);
        Some(Form {
            low: a.min(b),
            high: a.max(b),
            strides,
        })
    }

    fn times(&self, other: &Form) -> Option<Form> {
        if let Some(by) = other.value() {
            return self.scaled_by(by);
        }
        if let Some(by) = self.value() {
            return other.scaled_by(by);
        }
        if !self.is_uniform() || !other.is_uniform() {
            return None;
        }
        let mut ends = [0; 4];
        for (end, (a, b)) in ends.iter_mut().zip([
            (self.low, other.low),
            (self.low, other.high),
            (self.high, other.low),
            (self.high, other.high),
        ]) {
            *end = a.checked_mul(b)?;
        }
        Some(Form::interval(*ends.iter().min()?, *ends.iter().max()?))
    }

    /// The least and the greatest number over a box.
    pub(super) fn range(&self, space: &Space) -> Option<(i64, i64)> {
        let (mut low, mut high) = (self.low, self.high);
        for (axis, stride) in self.strides.into_iter().enumerate() {
            if stride != 0 {
                let a = stride.checked_mul(space.from[axis])?;
                let b = stride.checked_mul(space.to[axis] - 1)?;
                low = low.checked_add(a.min(b))?;
                high = high.checked_add(a.max(b))?;
            }
        }
        Some((low, high))
    }

    /// The smallest form that holds both: exact only where they are equal.
    fn hull(&self, other: &Form, space: &Space) -> Option<Form> {
        if self.strides == other.strides {
            return Some(Form {
                low: self.low.min(other.low),
                high: self.high.max(other.high),
                strides: self.strides,
            });
        }
        let (a, b) = (self.range(space)?, other.range(space)?);
        Some(Form::interval(a.0.min(b.0), a.1.max(b.1)))
    }
}

impl<T: Known> Affine<T> {
    /// Any number of the type; nothing where that is not an integer that `i64` holds.
    pub(super) fn any() -> Affine<T> {
        let kind = Kind::of::<T>();
        let held = kind.bits < 64 && kind.least <= kind.greatest;
        Affine::of(held.then(|| Form::interval(kind.least, kind.greatest)))
    }

    /// The form, where its numbers lie in the type's range, so that Rust's wrapped number is the exact one.
    pub(super) fn proper(&self, space: &Space) -> Option<Ranged> {
        let form = self.form?;
        let (low, high) = form.range(space)?;
        let kind = Kind::of::<T>();
        let (least, greatest) = match self.trust {
            Trust::Typed => (kind.least, kind.greatest),
            Trust::Signed => (i8::MIN.into(), i8::MAX.into()),
            Trust::Literal => (0, i8::MAX.into()),
        };
        (low >= least && high <= greatest).then_some((form, low, high))
    }

    /// Both forms, as numbers of one type.
    pub(super) fn both(self, other: Affine<T>, space: &Space) -> Option<(Ranged, Ranged)> {
        let trust = self.trust.with(other.trust);
        self.trusted(trust)
            .proper(space)
            .zip(other.trusted(trust).proper(space))
    }

    /// What follows from the exact numbers, whatever they wrap to.
    fn ring(self, other: Affine<T>, f: impl FnOnce(Form, Form) -> Option<Form>) -> Affine<T> {
        let form = self.form.zip(other.form).and_then(|(a, b)| f(a, b));
        Affine::of(form).trusted(self.trust.with(other.trust))
    }

    /// What follows from numbers that are what they seem.
    fn binary(
        self,
        other: Affine<T>,
        space: &Space,
        f: impl FnOnce(Ranged, Ranged) -> Option<Form>,
    ) -> Affine<T> {
        let form = self.both(other, space).and_then(|(a, b)| f(a, b));
        Affine::of(form).trusted(self.trust.with(other.trust))
    }

    /// `a + b`.
    pub fn plus(self, other: Affine<T>) -> Affine<T> {
        self.ring(other, |a, b| a.plus(&b))
    }

    /// `a - b`.
    pub fn minus(self, other: Affine<T>) -> Affine<T> {
        self.ring(other, |a, b| a.minus(&b))
    }

    /// `a * b`.
    pub fn times(self, other: Affine<T>) -> Affine<T> {
        self.ring(other, |a, b| a.times(&b))
    }

    /// `-a`.
    pub fn negated(self) -> Affine<T> {
        Affine::of(self.form.and_then(|a| a.scaled_by(-1))).trusted(self.trust)
    }

    /// The bits that a shift moves by, where all lanes move by the same, and it needs no mask.
    fn amount<U: Known>(amount: Affine<U>, space: &Space) -> Option<i64> {
        let (form, ..) = amount.proper(space)?;
        form.value()
            .filter(|by| (0..62).contains(by) && *by < Kind::of::<T>().bits)
    }

    /// `a << b`.
    pub(super) fn left<U: Known>(self, other: Affine<U>, space: &Space) -> Affine<T> {
        let by = Self::amount(other, space).filter(|_| self.trust == Trust::Typed);
        Affine::of(self.form.zip(by).and_then(|(a, by)| a.scaled_by(1 << by))).trusted(self.trust)
    }

    /// `a >> b`.
    pub(super) fn right<U: Known>(self, other: Affine<U>, space: &Space) -> Affine<T> {
        let by = Self::amount(other, space).filter(|_| self.trust == Trust::Typed);
        let form = self
            .proper(space)
            .zip(by)
            .map(|((form, low, high), by)| match form.value() {
                Some(value) => Form::constant(value >> by),
                None => Form::interval(low >> by, high >> by),
            });
        Affine::of(form).trusted(self.trust)
    }

    /// `a / b`, of which only a known positive divisor is looked at.
    pub(super) fn quotient(self, other: Affine<T>, space: &Space) -> Affine<T> {
        self.binary(other, space, |(a, low, high), (b, ..)| {
            let by = b.value().filter(|by| *by > 0)?;
            Some(match a.value() {
                Some(value) => Form::constant(value / by),
                None => Form::interval(low / by, high / by),
            })
        })
    }

    /// `a % b`, likewise.
    pub(super) fn rest(self, other: Affine<T>, space: &Space) -> Affine<T> {
        self.binary(other, space, |(a, low, high), (b, ..)| {
            let by = b.value().filter(|by| *by > 0)?;
            Some(match a.value() {
                Some(value) => Form::constant(value % by),
                None if low >= 0 && high < by => a,
                None => Form::interval(
                    if low < 0 { 1 - by } else { 0 },
                    if high > 0 { by - 1 } else { 0 },
                ),
            })
        })
    }

    /// `a & b`, of which only a known mask that is not negative is looked at.
    pub(super) fn masked(self, other: Affine<T>, space: &Space) -> Affine<T> {
        self.binary(other, space, |a, b| {
            let (value, mask) = match (a.0.value(), b.0.value()) {
                (Some(a), Some(b)) => return Some(Form::constant(a & b)),
                (None, Some(mask)) => (a, mask),
                (Some(mask), None) => (b, mask),
                (None, None) => return None,
            };
            if mask < 0 {
                return None;
            }
            let (form, low, high) = value;
            // With all bits below the mask's highest in it, small numbers stay.
            let all = (mask as u64 + 1).is_power_of_two();
            Some(if all && low >= 0 && high <= mask {
                form
            } else {
                Form::interval(0, mask)
            })
        })
    }

    /// The lesser.
    pub(super) fn lesser(self, other: Affine<T>, space: &Space) -> Affine<T> {
        self.binary(other, space, |(a, a_low, a_high), (b, b_low, b_high)| {
            Some(if a_high <= b_low {
                a
            } else if b_high <= a_low {
                b
            } else {
                Form::interval(a_low.min(b_low), a_high.min(b_high))
            })
        })
    }

    /// The greater.
    pub(super) fn greater(self, other: Affine<T>, space: &Space) -> Affine<T> {
        self.binary(other, space, |(a, a_low, a_high), (b, b_low, b_high)| {
            Some(if a_low >= b_high {
                a
            } else if b_low >= a_high {
                b
            } else {
                Form::interval(a_low.max(b_low), a_high.max(b_high))
            })
        })
    }

    /// `a.saturating_sub(b)`.
    pub(super) fn saturating_minus(self, other: Affine<T>, space: &Space) -> Affine<T> {
        let typed = self.trust.with(other.trust) == Trust::Typed;
        self.binary(other, space, |(a, ..), (b, ..)| {
            let difference = a.minus(&b)?;
            let (low, high) = difference.range(space)?;
            let Kind { least, greatest, .. } = Kind::of::<T>();
            Some(if !typed {
                return None;
            } else if low >= least && high <= greatest {
                difference
            } else {
                Form::interval(low.clamp(least, greatest), high.clamp(least, greatest))
            })
        })
    }

    /// `a as U`.
    pub(super) fn cast<U: Known>(self, space: &Space) -> Affine<U> {
        let form = self.proper(space).map(|(form, ..)| form);
        // What `U` cannot hold wraps: nothing is known of that.
        let cast = Affine::<U>::of(form);
        Affine::of(cast.proper(space).map(|(form, ..)| form))
    }

    /// What is known of a number that is one or the other.
    pub(super) fn or(self, other: Affine<T>, space: &Space) -> Affine<T> {
        self.binary(other, space, |(a, ..), (b, ..)| a.hull(&b, space))
    }
}
