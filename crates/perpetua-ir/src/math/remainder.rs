//! The floating-point remainder, `x - trunc(x / y) * y` without rounding, as IR: long division on the significands.
//! Rust computes it natively as `%`, so only targets need this form.

use crate::ir::{Function, Inst, KernelBuilder, Op, Place, Scalar, Type, TypeError, Value};
use crate::ops::{BinaryOp, UnaryOp};

type Result<T> = std::result::Result<T, TypeError>;

/// Widths of a float type.
struct Format {
    float: Scalar,
    word: Scalar,
    /// Bits of the stored significand.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
}

impl Format {
    #[inline(always)]
    fn of(float: Scalar) -> Option<Format> {
        match float {
            Scalar::F32 => Some(Format {
                float,
                word: Scalar::U32,
                fraction: 23,
                exponent: 8,
            }),
            Scalar::F64 => Some(Format {
                float,
                word: Scalar::U64,
                fraction: 52,
                exponent: 11,
            }),
            _ => None,
        }
    }
    #[inline(always)]
    fn max_exponent(&self) -> u64 {
        (1 << self.exponent) - 1
    }
    #[inline(always)]
    fn hidden(&self) -> u64 {
        1 << self.fraction
    }
    #[inline(always)]
    fn sign(&self) -> u64 {
        1 << (self.fraction + self.exponent)
    }
    /// Leading zeros of a word whose top bit is the hidden one.
    #[inline(always)]
    fn excess(&self) -> u64 {
        u64::from(self.word.bits() - self.fraction - 1)
    }
}

/// The function `perpetua_rem_f32` or `perpetua_rem_f64`; `None` for other types.
#[inline(always)]
pub(super) fn function(float: Scalar) -> Option<Function> {
    let format = Format::of(float)?;
    let ty = Type::from(float);
    let mut builder = KernelBuilder::new("library");
    let params = vec![("x".to_owned(), ty.clone()), ("y".to_owned(), ty.clone())];
    builder
        .function(format!("perpetua_rem_{float}"), params, Some(ty), |b| {
            body(b, &format)
        })
        .ok()?;
    builder.finish().functions.into_iter().next()
}

#[inline(always)]
fn body(b: &mut KernelBuilder, f: &Format) -> Result<()> {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Ne, Or, Shl, Shr, Sub};
    let (x, y) = (Value(0), Value(1));
    let word = |b: &mut KernelBuilder, v: u64| b.constant(f.word, v);
    let int = |b: &mut KernelBuilder, v: i32| b.i32(v);
    let magnitude_mask = word(b, f.sign() - 1);
    let sign_mask = word(b, f.sign());
    let zero = word(b, 0);
    let (bits_x, bits_y) = (b.op(Op::Bitcast(f.word, x))?, b.op(Op::Bitcast(f.word, y))?);
    let sign = b.binary(And, bits_x, sign_mask)?;
    let (mx, my) = (
        b.binary(And, bits_x, magnitude_mask)?,
        b.binary(And, bits_y, magnitude_mask)?,
    );
    let infinity = word(b, f.max_exponent() << f.fraction);

    // NaN for x infinite or NaN, y zero or NaN.
    let bad_x = b.binary(Ge, mx, infinity)?;
    let bad_y = b.binary(Gt, my, infinity)?;
    let zero_y = b.binary(Eq, my, zero)?;
    let bad = b.binary(Or, bad_x, bad_y)?;
    let bad = b.binary(Or, bad, zero_y)?;
    b.if_(bad, |b| {
        let nan = word(b, (f.max_exponent() << f.fraction) | (f.hidden() >> 1));
        let nan = b.op(Op::Bitcast(f.float, nan))?;
        b.push(Inst::Return(Some(nan)));
        Ok(())
    })?;
    let less = b.binary(BinaryOp::Lt, mx, my)?;
    b.if_(less, |b| {
        b.push(Inst::Return(Some(x)));
        Ok(())
    })?;

    let (ux, ex) = split(b, f, mx)?;
    let (uy, ey) = split(b, f, my)?;
    let rest = b.local("rest", f.word.into());
    let exponent = b.local("exponent", Scalar::I32.into());
    b.store(Place::local(rest), ux)?;
    b.store(Place::local(exponent), ex)?;
    let one = word(b, 1);
    let int_one = int(b, 1);
    // Long division, a bit a turn.
    b.loop_(|b| {
        let r = b.load(Place::local(rest))?;
        let fits = b.binary(Ge, r, uy)?;
        b.if_(fits, |b| {
            let d = b.binary(Sub, r, uy)?;
            b.store(Place::local(rest), d)
        })?;
        let e = b.load(Place::local(exponent))?;
        let done = b.binary(Le, e, ey)?;
        b.if_(done, |b| {
            b.break_(0);
            Ok(())
        })?;
        let r = b.load(Place::local(rest))?;
        let r = b.binary(Shl, r, one)?;
        b.store(Place::local(rest), r)?;
        let e = b.binary(Sub, e, int_one)?;
        b.store(Place::local(exponent), e)
    })?;

    // Back to a float: a zero keeps x's sign.
    let r = b.load(Place::local(rest))?;
    let some = b.binary(Ne, r, zero)?;
    b.if_(some, |b| {
        let zeros = b.unary(UnaryOp::LeadingZeros, r)?;
        let zeros = b.cast(Scalar::I32, zeros)?;
        let excess = int(b, f.excess() as i32);
        let up = b.binary(Sub, zeros, excess)?;
        let e = b.load(Place::local(exponent))?;
        let e = b.binary(Sub, e, up)?;
        let r = b.binary(Shl, r, up)?;
        let int_zero = int(b, 0);
        let normal = b.binary(Gt, e, int_zero)?;
        b.if_else(
            normal,
            |b| {
                let hidden = word(b, f.hidden());
                let fraction = b.binary(Sub, r, hidden)?;
                let e = b.cast(f.word, e)?;
                let width = int(b, f.fraction as i32);
                let e = b.binary(Shl, e, width)?;
                let r = b.binary(Or, fraction, e)?;
                b.store(Place::local(rest), r)
            },
            |b| {
                let down = b.binary(Sub, int_one, e)?;
                let r = b.binary(Shr, r, down)?;
                b.store(Place::local(rest), r)
            },
        )
    })?;
    let r = b.load(Place::local(rest))?;
    let r = b.binary(Or, r, sign)?;
    let r = b.op(Op::Bitcast(f.float, r))?;
    b.push(Inst::Return(Some(r)));
    Ok(())
}

/// Significand with its hidden bit, and biased exponent, of a finite nonzero magnitude or of zero.
#[inline(always)]
fn split(b: &mut KernelBuilder, f: &Format, magnitude: Value) -> Result<(Value, Value)> {
    let width = b.i32(f.fraction as i32);
    let e = b.binary(BinaryOp::Shr, magnitude, width)?;
    let e = b.cast(Scalar::I32, e)?;
    let mask = b.constant(f.word, f.hidden() - 1);
    let fraction = b.binary(BinaryOp::And, magnitude, mask)?;
    let hidden = b.constant(f.word, f.hidden());
    let full = b.binary(BinaryOp::Or, fraction, hidden)?;
    // Subnormal: shift up until the hidden bit stands.
    let zeros = b.unary(UnaryOp::LeadingZeros, fraction)?;
    let zeros = b.cast(Scalar::I32, zeros)?;
    let excess = b.i32(f.excess() as i32);
    let up = b.binary(BinaryOp::Sub, zeros, excess)?;
    let shifted = b.binary(BinaryOp::Shl, fraction, up)?;
    let one = b.i32(1);
    let low = b.binary(BinaryOp::Sub, one, up)?;
    let zero = b.i32(0);
    let subnormal = b.binary(BinaryOp::Eq, e, zero)?;
    let select = crate::ops::TernaryOp::Select;
    Ok((
        b.ternary(select, subnormal, shifted, full)?,
        b.ternary(select, subnormal, low, e)?,
    ))
}
