//! What casts mean: Rust's `as`. f16 and bf16 reach and leave every other type by way of f32, so a cast to them
//! rounds to f32 first.

use half::{bf16, f16};

use super::is_half;
use super::map::{Map, One};
use crate::ir::Scalar;

macro_rules! from_int {
    ($to:ty, $from:expr, $x:ident) => {
        match $from {
            Scalar::I8 => $x.map1::<i8, $to>(|x| x as $to),
            Scalar::I16 => $x.map1::<i16, $to>(|x| x as $to),
            Scalar::I32 => $x.map1::<i32, $to>(|x| x as $to),
            Scalar::I64 => $x.map1::<i64, $to>(|x| x as $to),
            Scalar::Bool | Scalar::U8 => $x.map1::<u8, $to>(|x| x as $to),
            Scalar::U16 => $x.map1::<u16, $to>(|x| x as $to),
            Scalar::U32 => $x.map1::<u32, $to>(|x| x as $to),
            _ => $x.map1::<u64, $to>(|x| x as $to),
        }
    };
}

macro_rules! to_int {
    ($from:ty, $to:expr, $x:ident) => {
        match $to {
            Scalar::I8 => $x.map1::<$from, i8>(|x| x as i8),
            Scalar::I16 => $x.map1::<$from, i16>(|x| x as i16),
            Scalar::I32 => $x.map1::<$from, i32>(|x| x as i32),
            Scalar::I64 => $x.map1::<$from, i64>(|x| x as i64),
            Scalar::U8 => $x.map1::<$from, u8>(|x| x as u8),
            Scalar::U16 => $x.map1::<$from, u16>(|x| x as u16),
            Scalar::U32 => $x.map1::<$from, u32>(|x| x as u32),
            Scalar::U64 => $x.map1::<$from, u64>(|x| x as u64),
            _ => {}
        }
    };
}

/// Integer to integer. Narrowing keeps the low bits whatever the sign; widening extends by the source's.
#[inline(always)]
fn int_to_int(from: Scalar, to: Scalar, x: impl Map) {
    let narrows = to.size() <= from.size();
    let from = if narrows { from.to_unsigned() } else { from };
    match (from, to.size()) {
        (Scalar::I8, 2) => x.map1::<i8, i16>(i16::from),
        (Scalar::I8, 4) => x.map1::<i8, i32>(i32::from),
        (Scalar::I8, _) => x.map1::<i8, i64>(i64::from),
        (Scalar::I16, 4) => x.map1::<i16, i32>(i32::from),
        (Scalar::I16, _) => x.map1::<i16, i64>(i64::from),
        (Scalar::I32, _) => x.map1::<i32, i64>(i64::from),
        (Scalar::Bool | Scalar::U8, 1) => x.map1::<u8, u8>(|x| x),
        (Scalar::Bool | Scalar::U8, 2) => x.map1::<u8, u16>(u16::from),
        (Scalar::Bool | Scalar::U8, 4) => x.map1::<u8, u32>(u32::from),
        (Scalar::Bool | Scalar::U8, _) => x.map1::<u8, u64>(u64::from),
        (Scalar::U16, 1) => x.map1::<u16, u8>(|x| x as u8),
        (Scalar::U16, 2) => x.map1::<u16, u16>(|x| x),
        (Scalar::U16, 4) => x.map1::<u16, u32>(u32::from),
        (Scalar::U16, _) => x.map1::<u16, u64>(u64::from),
        (Scalar::U32, 1) => x.map1::<u32, u8>(|x| x as u8),
        (Scalar::U32, 2) => x.map1::<u32, u16>(|x| x as u16),
        (Scalar::U32, 4) => x.map1::<u32, u32>(|x| x),
        (Scalar::U32, _) => x.map1::<u32, u64>(u64::from),
        (_, 1) => x.map1::<u64, u8>(|x| x as u8),
        (_, 2) => x.map1::<u64, u16>(|x| x as u16),
        (_, 4) => x.map1::<u64, u32>(|x| x as u32),
        _ => x.map1::<u64, u64>(|x| x),
    }
}

/// f16 or bf16 to f32: exact.
#[inline(always)]
pub(super) fn half_to_f32(from: Scalar, x: impl Map) {
    if from == Scalar::F16 {
        x.map1::<f16, f32>(f16::to_f32)
    } else {
        x.map1::<bf16, f32>(bf16::to_f32)
    }
}

/// f32 to f16 or bf16, to nearest even.
#[inline(always)]
pub(super) fn f32_to_half(to: Scalar, x: impl Map) {
    if to == Scalar::F16 {
        x.map1::<f32, f16>(f16::from_f32)
    } else {
        x.map1::<f32, bf16>(bf16::from_f32)
    }
}

/// Casts that f16 and bf16 have no part in.
#[inline(always)]
fn direct(from: Scalar, to: Scalar, x: impl Map) {
    match (from, to) {
        (Scalar::F32, Scalar::F32) => x.map1::<u32, u32>(|x| x),
        (Scalar::F64, Scalar::F64) => x.map1::<u64, u64>(|x| x),
        (Scalar::F32, Scalar::F64) => x.map1::<f32, f64>(f64::from),
        (Scalar::F64, Scalar::F32) => x.map1::<f64, f32>(|x| x as f32),
        (Scalar::F32, _) => to_int!(f32, to, x),
        (Scalar::F64, _) => to_int!(f64, to, x),
        (_, Scalar::F32) => from_int!(f32, from, x),
        (_, Scalar::F64) => from_int!(f64, from, x),
        _ => int_to_int(from, to, x),
    }
}

/// One step of a cast; `to` or `from` is f32 where the other is f16 or bf16.
#[inline(always)]
pub fn cast_of(from: Scalar, to: Scalar, x: impl Map) {
    match (is_half(from), is_half(to)) {
        (true, _) => half_to_f32(from, x),
        (_, true) => f32_to_half(to, x),
        _ => direct(from, to, x),
    }
}

/// Whether a cast takes two steps, by way of f32.
pub fn takes_two(from: Scalar, to: Scalar) -> bool {
    (is_half(from) && to != Scalar::F32) || (is_half(to) && from != Scalar::F32)
}

/// A cast of one lane's bits.
pub(super) fn one(from: Scalar, to: Scalar, bits: u64) -> u64 {
    let once = |from, to, bits| {
        let mut out = 0;
        cast_of(
            from,
            to,
            One {
                operands: [bits],
                out: &mut out,
            },
        );
        out
    };
    if is_half(from) && from == to {
        bits & 0xffff
    } else if takes_two(from, to) {
        once(Scalar::F32, to, once(from, Scalar::F32, bits))
    } else {
        once(from, to, bits)
    }
}

/// Copies scalars of `size` bytes.
#[inline(always)]
pub fn copy_of(size: u32, x: impl Map) {
    match size {
        1 => x.map1::<u8, u8>(|x| x),
        2 => x.map1::<u16, u16>(|x| x),
        4 => x.map1::<u32, u32>(|x| x),
        _ => x.map1::<u64, u64>(|x| x),
    }
}

/// The first of two scalars of `size` bytes where the condition (a `bool`) holds, else the second.
#[inline(always)]
pub(super) fn select(size: u32, x: impl Map) {
    macro_rules! of {
        ($t:ty) => {
            x.map3::<u8, $t, $t, $t>(|c, a, b| if c != 0 { a } else { b })
        };
    }
    match size {
        1 => of!(u8),
        2 => of!(u16),
        4 => of!(u32),
        _ => of!(u64),
    }
}
