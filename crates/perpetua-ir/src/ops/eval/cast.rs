//! What casts mean: Rust's `as`. f16 and bf16 reach and leave every other type by way of f32, so a cast to them
//! rounds to f32 first.

use half::{bf16, f16};

use super::lanes::{Line, WORD, WordLines, map1, view, view_mut};
use crate::ir::Scalar;

macro_rules! from_int {
    ($to:ty, $from:expr, $m:ident, $a:ident, $out:ident) => {
        match $from {
            Scalar::I8 => map1::<i8, $to>($m, $a, $out, |x| x as $to),
            Scalar::I16 => map1::<i16, $to>($m, $a, $out, |x| x as $to),
            Scalar::I32 => map1::<i32, $to>($m, $a, $out, |x| x as $to),
            Scalar::I64 => map1::<i64, $to>($m, $a, $out, |x| x as $to),
            Scalar::Bool | Scalar::U8 => map1::<u8, $to>($m, $a, $out, |x| x as $to),
            Scalar::U16 => map1::<u16, $to>($m, $a, $out, |x| x as $to),
            Scalar::U32 => map1::<u32, $to>($m, $a, $out, |x| x as $to),
            _ => map1::<u64, $to>($m, $a, $out, |x| x as $to),
        }
    };
}

macro_rules! to_int {
    ($from:ty, $to:expr, $m:ident, $a:ident, $out:ident) => {
        match $to {
            Scalar::I8 => map1::<$from, i8>($m, $a, $out, |x| x as i8),
            Scalar::I16 => map1::<$from, i16>($m, $a, $out, |x| x as i16),
            Scalar::I32 => map1::<$from, i32>($m, $a, $out, |x| x as i32),
            Scalar::I64 => map1::<$from, i64>($m, $a, $out, |x| x as i64),
            Scalar::U8 => map1::<$from, u8>($m, $a, $out, |x| x as u8),
            Scalar::U16 => map1::<$from, u16>($m, $a, $out, |x| x as u16),
            Scalar::U32 => map1::<$from, u32>($m, $a, $out, |x| x as u32),
            Scalar::U64 => map1::<$from, u64>($m, $a, $out, |x| x as u64),
            _ => {}
        }
    };
}

/// Integer to integer. Narrowing keeps the low bits whatever the sign; widening extends by the source's.
#[inline(always)]
fn int_to_int(from: Scalar, to: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) {
    let narrows = to.size() <= from.size();
    let from = if narrows { from.to_unsigned() } else { from };
    match (from, to.size()) {
        (Scalar::I8, 2) => map1::<i8, i16>(m, a, out, i16::from),
        (Scalar::I8, 4) => map1::<i8, i32>(m, a, out, i32::from),
        (Scalar::I8, _) => map1::<i8, i64>(m, a, out, i64::from),
        (Scalar::I16, 4) => map1::<i16, i32>(m, a, out, i32::from),
        (Scalar::I16, _) => map1::<i16, i64>(m, a, out, i64::from),
        (Scalar::I32, _) => map1::<i32, i64>(m, a, out, i64::from),
        (Scalar::Bool | Scalar::U8, 1) => map1::<u8, u8>(m, a, out, |x| x),
        (Scalar::Bool | Scalar::U8, 2) => map1::<u8, u16>(m, a, out, u16::from),
        (Scalar::Bool | Scalar::U8, 4) => map1::<u8, u32>(m, a, out, u32::from),
        (Scalar::Bool | Scalar::U8, _) => map1::<u8, u64>(m, a, out, u64::from),
        (Scalar::U16, 1) => map1::<u16, u8>(m, a, out, |x| x as u8),
        (Scalar::U16, 2) => map1::<u16, u16>(m, a, out, |x| x),
        (Scalar::U16, 4) => map1::<u16, u32>(m, a, out, u32::from),
        (Scalar::U16, _) => map1::<u16, u64>(m, a, out, u64::from),
        (Scalar::U32, 1) => map1::<u32, u8>(m, a, out, |x| x as u8),
        (Scalar::U32, 2) => map1::<u32, u16>(m, a, out, |x| x as u16),
        (Scalar::U32, 4) => map1::<u32, u32>(m, a, out, |x| x),
        (Scalar::U32, _) => map1::<u32, u64>(m, a, out, u64::from),
        (_, 1) => map1::<u64, u8>(m, a, out, |x| x as u8),
        (_, 2) => map1::<u64, u16>(m, a, out, |x| x as u16),
        (_, 4) => map1::<u64, u32>(m, a, out, |x| x as u32),
        _ => map1::<u64, u64>(m, a, out, |x| x),
    }
}

/// f16 or bf16 to f32: exact.
#[inline(always)]
pub(super) fn half_to_f32(from: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) {
    if from == Scalar::F16 {
        map1::<f16, f32>(m, a, out, f16::to_f32)
    } else {
        map1::<bf16, f32>(m, a, out, bf16::to_f32)
    }
}

/// f32 to f16 or bf16, to nearest even.
#[inline(always)]
pub(super) fn f32_to_half(to: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) {
    if to == Scalar::F16 {
        map1::<f32, f16>(m, a, out, f16::from_f32)
    } else {
        map1::<f32, bf16>(m, a, out, bf16::from_f32)
    }
}

/// Casts that f16 and bf16 have no part in.
#[inline(always)]
fn direct(from: Scalar, to: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) {
    match (from, to) {
        (Scalar::F32, Scalar::F32) => map1::<u32, u32>(m, a, out, |x| x),
        (Scalar::F64, Scalar::F64) => map1::<u64, u64>(m, a, out, |x| x),
        (Scalar::F32, Scalar::F64) => map1::<f32, f64>(m, a, out, f64::from),
        (Scalar::F64, Scalar::F32) => map1::<f64, f32>(m, a, out, |x| x as f32),
        (Scalar::F32, _) => to_int!(f32, to, m, a, out),
        (Scalar::F64, _) => to_int!(f64, to, m, a, out),
        (_, Scalar::F32) => from_int!(f32, from, m, a, out),
        (_, Scalar::F64) => from_int!(f64, from, m, a, out),
        _ => int_to_int(from, to, m, a, out),
    }
}

#[inline(always)]
pub(super) fn cast(from: Scalar, to: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) {
    let is_half = |s| matches!(s, Scalar::F16 | Scalar::BF16);
    match (is_half(from), is_half(to)) {
        (false, false) => direct(from, to, m, a, out),
        _ if from == to => map1::<u16, u16>(m, a, out, |x| x),
        (from_half, to_half) => {
            let (wide_in, wide_out) = (from.size() as usize, to.size() as usize);
            let words = m.iter().zip(a.chunks_exact(wide_in));
            for ((m, a), out) in words.zip(out.chunks_exact_mut(wide_out)) {
                let m = std::slice::from_ref(m);
                let mut single: WordLines = [Line::ZERO; 8];
                let single = &mut single[..4];
                if from_half {
                    half_to_f32(from, m, a, single);
                } else {
                    direct(from, Scalar::F32, m, a, single);
                }
                if to_half {
                    f32_to_half(to, m, single, out);
                } else {
                    direct(Scalar::F32, to, m, single, out);
                }
            }
        }
    }
}

/// Copies scalars of `size` bytes: all lanes of the words that the mask touches.
#[inline(always)]
pub(super) fn copy(size: u32, m: &[u64], a: &[Line], out: &mut [Line]) {
    let size = size as usize;
    for ((m, a), out) in m.iter().zip(a.chunks_exact(size)).zip(out.chunks_exact_mut(size)) {
        if *m != 0 {
            out.copy_from_slice(a);
        }
    }
}

macro_rules! select_of {
    ($t:ty, $m:ident, $c:ident, $a:ident, $b:ident, $out:ident) => {{
        let operands = view::<u8>($c).iter().zip(view::<$t>($a)).zip(view::<$t>($b));
        for ((m, ((c, a), b)), o) in $m.iter().zip(operands).zip(view_mut::<$t>($out)) {
            if *m != 0 {
                for i in 0..WORD {
                    o[i] = if c[i] != 0 { a[i] } else { b[i] };
                }
            }
        }
    }};
}

/// The first of two scalars of `size` bytes where the condition (a `bool`) holds, else the second.
#[inline(always)]
pub(super) fn select(size: u32, m: &[u64], (c, a, b): (&[Line], &[Line], &[Line]), out: &mut [Line]) {
    match size {
        1 => select_of!(u8, m, c, a, b, out),
        2 => select_of!(u16, m, c, a, b, out),
        4 => select_of!(u32, m, c, a, b, out),
        _ => select_of!(u64, m, c, a, b, out),
    }
}
