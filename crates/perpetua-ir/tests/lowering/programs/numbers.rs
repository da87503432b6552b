//! Arithmetic, casts, comparisons, methods of numbers.

use super::super::lanes::*;

#[cfg_attr(any(), kernel)]
pub fn int_methods(x: &[i32], out: &mut [i64]) {
    let i = global_id_x();
    let a = x[i];
    let b = x[(i + 7) % x.len()];
    let u = a as u32;
    let mut s: i64 = 0;
    s ^= a.wrapping_add(b) as i64;
    s = s.wrapping_mul(31) ^ a.wrapping_sub(b) as i64;
    s = s.wrapping_mul(31) ^ a.wrapping_mul(b) as i64;
    s = s.wrapping_mul(31) ^ a.saturating_add(b) as i64;
    s = s.wrapping_mul(31) ^ a.saturating_sub(b) as i64;
    s = s.wrapping_mul(31) ^ a.saturating_mul(b) as i64;
    s = s.wrapping_mul(31) ^ a.wrapping_neg() as i64;
    s = s.wrapping_mul(31) ^ u.wrapping_neg() as i64;
    s = s.wrapping_mul(31) ^ a.wrapping_abs() as i64;
    s = s.wrapping_mul(31) ^ a.unsigned_abs() as i64;
    s = s.wrapping_mul(31) ^ a.signum() as i64;
    s = s.wrapping_mul(31) ^ a.abs_diff(b) as i64;
    s = s.wrapping_mul(31) ^ a.leading_zeros() as i64;
    s = s.wrapping_mul(31) ^ a.trailing_zeros() as i64;
    s = s.wrapping_mul(31) ^ a.count_ones() as i64;
    s = s.wrapping_mul(31) ^ a.count_zeros() as i64;
    s = s.wrapping_mul(31) ^ a.leading_ones() as i64;
    s = s.wrapping_mul(31) ^ a.trailing_ones() as i64;
    s = s.wrapping_mul(31) ^ a.rotate_left(5) as i64;
    s = s.wrapping_mul(31) ^ u.rotate_right(9) as i64;
    s = s.wrapping_mul(31) ^ a.swap_bytes() as i64;
    s = s.wrapping_mul(31) ^ a.reverse_bits() as i64;
    s = s.wrapping_mul(31) ^ a.min(b) as i64;
    s = s.wrapping_mul(31) ^ i32::max(a, b) as i64;
    s = s.wrapping_mul(31) ^ a.clamp(-100, 100) as i64;
    s = s.wrapping_mul(31) ^ a.wrapping_pow(5) as i64;
    s = s.wrapping_mul(31) ^ a.wrapping_pow(u % 9) as i64;
    s = s.wrapping_mul(31) ^ a.is_negative() as i64;
    s = s.wrapping_mul(31) ^ a.is_positive() as i64;
    s = s.wrapping_mul(31) ^ u.is_power_of_two() as i64;
    let (sum, over) = a.overflowing_add(b);
    let (difference, under) = a.overflowing_sub(b);
    let (product, wide) = u.overflowing_mul(b as u32);
    let (signed, far) = a.overflowing_mul(b);
    s = s.wrapping_mul(31) ^ (sum as i64 + over as i64);
    s = s.wrapping_mul(31) ^ (difference as i64 + under as i64);
    s = s.wrapping_mul(31) ^ (product as i64 + wide as i64);
    s = s.wrapping_mul(31) ^ (signed as i64 + far as i64);
    let (usum, uover) = u.overflowing_add(b as u32);
    let (udiff, uunder) = u.overflowing_sub(b as u32);
    s = s.wrapping_mul(31) ^ (usum as i64 + uover as i64);
    s = s.wrapping_mul(31) ^ (udiff as i64 + uunder as i64);
    if b != 0 {
        s = s.wrapping_mul(31) ^ a.wrapping_div(b) as i64;
        s = s.wrapping_mul(31) ^ a.wrapping_rem(b) as i64;
        if b != -1 {
            s = s.wrapping_mul(31) ^ (a / b) as i64;
            s = s.wrapping_mul(31) ^ (a % b) as i64;
            s = s.wrapping_mul(31) ^ a.rem_euclid(b) as i64;
            s = s.wrapping_mul(31) ^ a.div_euclid(b) as i64;
        }
        s = s.wrapping_mul(31) ^ (u / 2).div_ceil(b as u32) as i64;
        s = s.wrapping_mul(31) ^ (u / 4 % 1000).next_multiple_of(b.unsigned_abs() / 4 + 1) as i64;
    }
    s = s.wrapping_mul(31) ^ (a << (u & 31)) as i64;
    s = s.wrapping_mul(31) ^ (a >> (u & 31)) as i64;
    s = s.wrapping_mul(31) ^ (u >> 3u8) as i64;
    s = s.wrapping_mul(31) ^ a.wrapping_shl(u) as i64;
    s = s.wrapping_mul(31) ^ (!a & b | a ^ b) as i64;
    out[i] = s;
}

#[cfg_attr(any(), kernel)]
pub fn casts(x: &[f64], out: &mut [i64]) {
    let i = global_id_x();
    let v = x[i];
    let f = v as f32;
    let mut s = v as i64;
    s = s.wrapping_mul(33).wrapping_add(v as i8 as i64);
    s = s.wrapping_mul(33).wrapping_add(v as u8 as i64);
    s = s.wrapping_mul(33).wrapping_add(v as i16 as i64);
    s = s.wrapping_mul(33).wrapping_add(v as u16 as i64);
    s = s.wrapping_mul(33).wrapping_add(v as i32 as i64);
    s = s.wrapping_mul(33).wrapping_add(v as u32 as i64);
    s = s.wrapping_mul(33).wrapping_add(v as u64 as i64);
    s = s.wrapping_mul(33).wrapping_add(f as i32 as i64);
    s = s.wrapping_mul(33).wrapping_add(f as u64 as i64);
    s = s.wrapping_mul(33).wrapping_add((v as i64 as i8) as i64);
    s = s.wrapping_mul(33).wrapping_add((v as i64 as u16) as i64);
    s = s
        .wrapping_mul(33)
        .wrapping_add((v as i64 as f32).to_bits() as i64);
    s = s
        .wrapping_mul(33)
        .wrapping_add((v as u64 as f64).to_bits() as i64);
    s = s.wrapping_mul(33).wrapping_add((v > 1.0) as i64);
    s = s
        .wrapping_mul(33)
        .wrapping_add(f32::from_bits(f.to_bits() ^ 1).to_bits() as i64);
    s = s
        .wrapping_mul(33)
        .wrapping_add(i64::from(v as i32) + i64::from(v < 0.0));
    let widened: i64 = (v as i16).into();
    s = s.wrapping_mul(33).wrapping_add(widened);
    out[i] = s;
}

#[cfg_attr(any(), kernel)]
pub fn float_methods(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let a = x[i];
    let b = x[(i + 3) % x.len()];
    let n = 20;
    let o = i * n;
    out[o] = a + b * 2.0 - 1.5;
    out[o + 1] = a / b;
    out[o + 2] = a % b;
    out[o + 3] = a.mul_add(b, 0.25);
    out[o + 4] = a.abs().sqrt();
    out[o + 5] = a.floor() + b.ceil() + a.trunc() + b.round();
    out[o + 6] = if a.is_nan() { 1.0 } else { a.signum() };
    out[o + 7] = a.copysign(b);
    out[o + 8] = a.fract();
    out[o + 9] = -a;
    out[o + 10] = a.max(b).min(100.0);
    out[o + 11] = (a < b) as u8 as f32 + (a >= b) as i32 as f32 * 2.0;
    out[o + 12] = a.powi(3);
    out[o + 13] = if b != 0.0 { a.rem_euclid(b) } else { 0.0 };
    out[o + 14] = if b != 0.0 { a.div_euclid(b) } else { 0.0 };
    out[o + 15] = if a.is_finite() && !b.is_sign_negative() || b.is_infinite() {
        1.0
    } else {
        0.0
    };
    out[o + 16] = 1.0 / 3.0 * a;
    out[o + 17] = (std::f32::consts::PI * a) as f64 as f32;
    out[o + 18] = f32::MAX.min(a) + f32::EPSILON;
    out[o + 19] = a.round_ties_even().clamp(-2.0, 2.0);
}

#[cfg_attr(any(), kernel)]
pub fn narrow(x: &[u8], out: &mut [u8]) {
    let i = global_id_x();
    let a = x[i];
    let b = x[(i + 1) % x.len()];
    let mut t = a.wrapping_mul(b) ^ (a >> 3) ^ (b << 2);
    t = t.saturating_add(a).wrapping_sub(b / 3);
    t ^= (a as i8 >> 2) as u8;
    t = t.wrapping_add((a as u32 * 77 + b as u32 * 150 >> 8) as u8);
    t |= u8::from(a > b) << 7;
    out[i] = !t;
}

#[cfg_attr(any(), kernel)]
pub fn inference(x: &[u32], out: &mut [u64]) {
    let i = global_id_x();
    // Literals take their types from what is done with them, before and after.
    let mut at = 0;
    let mut total = 1;
    for k in 0..5 {
        at += k;
        total += x[i] as u64 >> k;
    }
    let mask = (1 << 12) - 1;
    let shifted = 1 << (x[i] & 7);
    let half = x[at % x.len()] / 2;
    let small = 200 as u8 as u64;
    let deep = (1 + 2) as u64 + 3;
    let mut best;
    if half & mask > 3 {
        best = half;
    } else {
        best = 17;
    }
    best += shifted;
    let ready: bool;
    ready = best % 2 == 0;
    let picked = match ready {
        true => 3,
        false => 4,
    };
    out[i] = total + u64::from(best) * picked + small + deep;
}
