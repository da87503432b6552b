//! The math library's arithmetic as IR: each step appends a statement. Types are right by construction, so
//! nothing here can fail.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::Sums;
use super::real::{Condition, Real, Word};
use crate::ir::{Inst, KernelBuilder, Op, Place, Scalar, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// A value in the function being built. `T` marks what it is: [`F`], [`I`] or [`B`], or one of their wide kin.
pub(super) struct Emitted<'a, T> {
    builder: &'a RefCell<KernelBuilder>,
    value: Value,
    sums: Sums,
    kind: std::marker::PhantomData<T>,
}

/// Marks an f32.
pub(super) struct F;
/// Marks an i32.
pub(super) struct I;
/// Marks what holds of an f32.
pub(super) struct B;
/// Marks an f64.
pub(super) struct Wide;
/// Marks an i64.
pub(super) struct WideInt;
/// Marks what holds of an f64.
pub(super) struct WideCond;

impl<T> Clone for Emitted<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Emitted<'_, T> {}

impl<'a, T> Emitted<'a, T> {
    /// Wraps a value, which must have the type that `T` marks.
    pub(super) fn new(builder: &'a RefCell<KernelBuilder>, value: Value, sums: Sums) -> Self {
        Emitted {
            builder,
            value,
            sums,
            kind: std::marker::PhantomData,
        }
    }

    /// The value.
    pub(super) fn value(self) -> Value {
        self.value
    }

    fn emit<U>(self, ty: impl Into<Type>, op: Op) -> Emitted<'a, U> {
        let value = self.builder.borrow_mut().define(ty.into(), op);
        Emitted::new(self.builder, value, self.sums)
    }
    fn unary<U>(self, ty: impl Into<Type>, op: UnaryOp) -> Emitted<'a, U> {
        self.emit(ty, Op::Unary(op, self.value))
    }
    fn binary<U, V>(self, ty: impl Into<Type>, op: BinaryOp, other: Emitted<'a, V>) -> Emitted<'a, U> {
        self.emit(ty, Op::Binary(op, self.value, other.value))
    }
    fn cast<U>(self, to: Scalar) -> Emitted<'a, U> {
        self.emit(to, Op::Cast(to, self.value))
    }
    fn bitcast<U>(self, to: Scalar) -> Emitted<'a, U> {
        self.emit(to, Op::Bitcast(to, self.value))
    }
}

macro_rules! operator {
    ($trait:ident $method:ident $F:ident $float:ident) => {
        impl<'a> $trait for Emitted<'a, $F> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.binary(Scalar::$float, BinaryOp::$trait, other)
            }
        }
    };
}
macro_rules! emitted {
    ($F:ident $I:ident $B:ident $float:ident $int:ident $unsigned:ident $native:ident $word:ident) => {
        operator!(Add add $F $float);
        operator!(Sub sub $F $float);
        operator!(Mul mul $F $float);
        operator!(Div div $F $float);

        impl<'a> Emitted<'a, $I> {
            /// The operation on both operands as `u32`, its result as `ty`.
            fn unsigned<U>(self, op: BinaryOp, other: Self) -> Emitted<'a, U> {
                let (a, b): (Self, Self) = (self.cast(Scalar::$unsigned), other.cast(Scalar::$unsigned));
                match op {
                    BinaryOp::Lt => a.binary(Scalar::Bool, op, b),
                    _ => a.binary::<$I, $I>(Scalar::$unsigned, op, b).cast(Scalar::$int),
                }
            }
        }

        impl Neg for Emitted<'_, $F> {
            type Output = Self;
            fn neg(self) -> Self {
                self.unary(Scalar::$float, UnaryOp::Neg)
            }
        }

        impl<'a> Real for Emitted<'a, $F> {
            type Int = Emitted<'a, $I>;
            type Cond = Emitted<'a, $B>;

            fn lit(self, v: f32) -> Self {
                self.wide(v.into())
            }
            fn wide(self, v: f64) -> Self {
                let bits = (v as $native).to_bits();
                self.emit(Scalar::$float, Op::Const(Scalar::$float, bits.into()))
            }
            fn int(self, v: i32) -> Self::Int {
                self.word(v.into())
            }
            fn word(self, v: i64) -> Self::Int {
                let bits = (v as $word).into();
                self.emit(Scalar::$int, Op::Const(Scalar::$int, bits))
            }
            fn fma(self, a: Self, b: Self) -> Self {
                self.emit(
                    Scalar::$float,
                    Op::Ternary(TernaryOp::Fma, self.value, a.value, b.value),
                )
            }
            fn abs(self) -> Self {
                self.unary(Scalar::$float, UnaryOp::Abs)
            }
            fn sqrt(self) -> Self {
                self.unary(Scalar::$float, UnaryOp::Sqrt)
            }
            fn nearest(self) -> Self {
                self.unary(Scalar::$float, UnaryOp::RoundTiesEven)
            }
            fn trunc(self) -> Self {
                self.unary(Scalar::$float, UnaryOp::Trunc)
            }
            fn copysign(self, sign: Self) -> Self {
                self.binary(Scalar::$float, BinaryOp::Copysign, sign)
            }
            fn bits(self) -> Self::Int {
                self.bitcast(Scalar::$int)
            }
            fn to_int(self) -> Self::Int {
                self.cast(Scalar::$int)
            }
            fn lt(self, other: Self) -> Self::Cond {
                self.binary(Scalar::Bool, BinaryOp::Lt, other)
            }
            fn eq(self, other: Self) -> Self::Cond {
                self.binary(Scalar::Bool, BinaryOp::Eq, other)
            }
            fn limit(self, low: f32, high: f32) -> Self {
                let (low, high) = (self.lit(low), self.lit(high));
                if self.sums == Sums::AsWritten {
                    let x: Self = self.binary(Scalar::$float, BinaryOp::Max, low);
                    return x.binary(Scalar::$float, BinaryOp::Min, high);
                }
                let x = Real::lt(self, low).select(low, self);
                x.gt(high).select(high, x)
            }
            fn nearest_int(self) -> (Self, Self::Int) {
                if self.sums == Sums::AsWritten {
                    // In the binade of 1.5 * 2^(digits - 1) the last place is 1, so the sum rounds to an integer, which its bits count.
                    let large = self.lit(($native::MANTISSA_DIGITS as f32 - 2.0).exp2() * 3.0);
                    let shifted = self + large;
                    return (shifted - large, Word::sub(shifted.bits(), large.bits()));
                }
                let k = self.nearest();
                (k, k.to_int())
            }
            fn is_nan(self) -> Self::Cond {
                if self.sums == Sums::AsWritten {
                    return self.unary(Scalar::Bool, UnaryOp::IsNan);
                }
                let infinite = self.word($native::INFINITY.to_bits() as i64);
                let magnitude = self.bits().and(self.word(($word::MAX >> 1) as i64));
                infinite.lt(magnitude)
            }
        }

        impl<'a> Word for Emitted<'a, $I> {
            type Real = Emitted<'a, $F>;
            fn add(self, other: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::Add, other)
            }
            fn sub(self, other: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::Sub, other)
            }
            fn mul(self, other: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::Mul, other)
            }
            fn mul_high_unsigned(self, other: Self) -> Self {
                self.unsigned(BinaryOp::MulHigh, other)
            }
            fn and(self, other: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::And, other)
            }
            fn or(self, other: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::Or, other)
            }
            fn xor(self, other: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::Xor, other)
            }
            fn shl(self, amount: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::Shl, amount)
            }
            fn shr(self, amount: Self) -> Self {
                self.binary(Scalar::$int, BinaryOp::Shr, amount)
            }
            fn shr_unsigned(self, amount: Self) -> Self {
                self.unsigned(BinaryOp::Shr, amount)
            }
            fn lt(self, other: Self) -> Emitted<'a, $B> {
                self.binary(Scalar::Bool, BinaryOp::Lt, other)
            }
            fn lt_unsigned(self, other: Self) -> Emitted<'a, $B> {
                self.unsigned(BinaryOp::Lt, other)
            }
            fn eq(self, other: Self) -> Emitted<'a, $B> {
                self.binary(Scalar::Bool, BinaryOp::Eq, other)
            }
            fn to_real(self) -> Emitted<'a, $F> {
                self.cast(Scalar::$float)
            }
            fn to_real_unsigned(self) -> Emitted<'a, $F> {
                self.cast::<$I>(Scalar::$unsigned).cast(Scalar::$float)
            }
            fn to_bits(self) -> Emitted<'a, $F> {
                self.bitcast(Scalar::$float)
            }
        }

        impl<'a> Condition for Emitted<'a, $B> {
            type Real = Emitted<'a, $F>;
            fn not(self) -> Self {
                self.unary(Scalar::Bool, UnaryOp::Not)
            }
            fn and(self, other: Self) -> Self {
                self.binary(Scalar::Bool, BinaryOp::And, other)
            }
            fn or(self, other: Self) -> Self {
                self.binary(Scalar::Bool, BinaryOp::Or, other)
            }
            fn select(self, a: Emitted<'a, $F>, b: Emitted<'a, $F>) -> Emitted<'a, $F> {
                self.emit(
                    Scalar::$float,
                    Op::Ternary(TernaryOp::Select, self.value, a.value, b.value),
                )
            }
            fn select_int(self, a: Emitted<'a, $I>, b: Emitted<'a, $I>) -> Emitted<'a, $I> {
                self.emit(
                    Scalar::$int,
                    Op::Ternary(TernaryOp::Select, self.value, a.value, b.value),
                )
            }
            fn branch(
                self,
                then: impl FnOnce() -> (Emitted<'a, $F>, Emitted<'a, $I>),
                otherwise: impl FnOnce() -> (Emitted<'a, $F>, Emitted<'a, $I>),
            ) -> (Emitted<'a, $F>, Emitted<'a, $I>) {
                let (real, int) = {
                    let mut b = self.builder.borrow_mut();
                    (
                        b.local("real", Scalar::$float.into()),
                        b.local("word", Scalar::$int.into()),
                    )
                };
                let finish = |(r, i): (Emitted<'a, $F>, Emitted<'a, $I>)| {
                    let mut b = self.builder.borrow_mut();
                    b.push_store(Place::local(real), r.value);
                    b.push_store(Place::local(int), i.value);
                    b.close_block()
                };
                self.builder.borrow_mut().open_block();
                let then = finish(then());
                self.builder.borrow_mut().open_block();
                let otherwise = finish(otherwise());
                self.builder
                    .borrow_mut()
                    .push(Inst::If(self.value, then, otherwise));
                (
                    self.emit(Scalar::$float, Op::Load(Place::local(real), None)),
                    self.emit(Scalar::$int, Op::Load(Place::local(int), None)),
                )
            }
        }
    };
}

emitted!(F I B F32 I32 U32 f32 u32);
emitted!(Wide WideInt WideCond F64 I64 U64 f64 u64);
