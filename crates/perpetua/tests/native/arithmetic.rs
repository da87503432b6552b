//! Operators and methods on all scalar types, bit for bit.

#![allow(
    clippy::needless_range_loop,
    clippy::manual_is_multiple_of,
    reason = "kernels are written as users write them"
)]

use perpetua::prelude::*;

use crate::harness::{B, Proven, V, agree, numbers};

#[kernel]
fn wraps(x: &[i32], y: &[i32], out: &mut [i32]) {
    let i = global_id_x();
    let (a, b) = (x[i], y[i]);
    let mut v = a + b * 3 - (a << (b & 31)) + -(a >> 2);
    v ^= a & !b | 5;
    v += b;
    v -= a * a;
    v *= 7;
    v <<= 3;
    v >>= 1;
    out[i] = v;
}

#[kernel]
fn small(x: &[u8], y: &[i16], out: &mut [i64]) {
    let i = global_id_x();
    let a = x[i] + 200;
    let b = y[i] * 31 - 5;
    let c = (a as i8) as i64 + b as i64;
    out[i] = c + (a >> (x[i] as u32)) as i64 + (b as u16 % 1000) as i64 - (i as i64 - 7) / 3;
}

#[kernel]
fn integer_methods(x: &[i32], y: &[i32], out: &mut [i64]) {
    let i = global_id_x();
    let (a, b) = (x[i], y[i] | 1);
    let mut s = 0i64;
    s += a.abs() as i64 + a.signum() as i64 + a.min(b) as i64 + a.max(b) as i64;
    s += a.count_ones() as i64 + a.leading_zeros() as i64 + (a | 1).trailing_zeros() as i64;
    s += a.rotate_left(7) as i64 + a.swap_bytes() as i64 + a.reverse_bits() as i64;
    s += a.saturating_add(b) as i64 + a.saturating_sub(b) as i64 + a.saturating_mul(b) as i64;
    s += a.wrapping_mul(b) as i64 + a.wrapping_div(b) as i64 + a.wrapping_rem(b) as i64;
    s += a.abs_diff(b) as i64 + a.unsigned_abs() as i64 + a.clamp(-5, 1000) as i64;
    s += (a % 1000).rem_euclid(b) as i64 + (a % 1000).div_euclid(b) as i64;
    s += (a % 7).pow(3) as i64 + (a as u32 % 100).next_multiple_of(8) as i64 + (a as u32).div_ceil(3) as i64;
    let (sum, over) = a.overflowing_add(b);
    s += sum as i64 + over as i64 + i32::max(a, b) as i64 + a.is_negative() as i64;
    out[i] = s;
}

#[kernel]
fn float_methods(x: &[f32], y: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let (a, b) = (x[i], y[i]);
    let mut s = a.floor() + a.ceil() * 2.0 + a.round() * 3.0 + a.trunc() * 5.0 + a.fract() * 7.0;
    s += a.abs().sqrt() + a.signum() + a.min(b) + a.max(b) + a.clamp(-1.0, 1.0) + a.copysign(b);
    s += a.mul_add(b, 1.0) + a.powi(3) + (a % 3.5) + a.rem_euclid(2.5) + a.to_radians() + a.recip();
    s += a.round_ties_even() + f32::max(a, 0.5) + f32::from_bits(a.to_bits() ^ 1);
    if a.is_nan() || b.is_infinite() || !a.is_finite() {
        s = 0.0;
    }
    out[i] = s - b / 3.0;
}

#[kernel]
fn transcendental(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let a = x[i];
    let small = a * 0.01;
    let (sin, cos) = a.sin_cos();
    let mut s = sin + cos * 3.0 + a.tan() + small.exp() + (a.abs() + 1.0).ln() + a.atan2(2.0);
    s += small.sinh() + small.tanh() + (a.abs() + 0.5).log2() + small.cosh() + a.cbrt() + a.hypot(3.0);
    s += (a.abs() + 0.1).powf(1.7) + small.exp2() + small.exp_m1() + a.abs().ln_1p() + small.sin().asin();
    out[i] = s;
}

#[kernel]
fn halves(x: &[f16], y: &[bf16], out: &mut [f32]) {
    let i = global_id_x();
    let a = x[i] * x[i] + f16::from_f32(0.3);
    let b = y[i] / bf16::from_f32(3.0) - y[i];
    out[i] = a.to_f32() + b.to_f32() + (-a).min(x[i]).to_f32();
}

#[kernel]
fn doubles(x: &[f64], out: &mut [f64], k: f64) {
    let i = global_id_x();
    out[i] = (x[i] * k + 1.0).sqrt().max(2.0) + x[i].floor() % 3.0 + (x[i] as i32 as u8) as f64 + 1e300 * k;
}

#[test]
fn integers() {
    let x: Vec<i32> = numbers(256, 1, |bits| bits as i32);
    let y: Vec<i32> = numbers(256, 2, |bits| (bits >> 9) as i32);
    let config = LaunchConfig::new(4, 64);
    agree(wraps::kernel(), config, &[&B(&x), &B(&y), &B(&x)], Proven::All);
    let a: Vec<u8> = numbers(256, 3, |bits| bits as u8);
    let b: Vec<i16> = numbers(256, 4, |bits| bits as i16);
    agree(
        small::kernel(),
        config,
        &[&B(&a), &B(&b), &B(&vec![0i64; 256])],
        Proven::All,
    );
    agree(
        integer_methods::kernel(),
        config,
        &[&B(&x), &B(&y), &B(&vec![0i64; 256])],
        Proven::All,
    );
}

#[test]
fn floats() {
    let x: Vec<f32> = numbers(256, 5, |bits| (bits % 100_003) as f32 / 977.0 - 40.0);
    let y: Vec<f32> = numbers(256, 6, |bits| (bits % 1009) as f32 / 31.0 - 9.0);
    let config = LaunchConfig::new(4, 64);
    agree(
        float_methods::kernel(),
        config,
        &[&B(&x), &B(&y), &B(&x)],
        Proven::All,
    );
    agree(transcendental::kernel(), config, &[&B(&x), &B(&y)], Proven::All);
    let a: Vec<f16> = x.iter().map(|v| f16::from_f32(*v)).collect();
    let b: Vec<bf16> = y.iter().map(|v| bf16::from_f32(*v)).collect();
    agree(halves::kernel(), config, &[&B(&a), &B(&b), &B(&x)], Proven::All);
    let d: Vec<f64> = x.iter().map(|v| f64::from(*v) * 1.37).collect();
    agree(
        doubles::kernel(),
        config,
        &[&B(&d), &B(&d), &V(0.75f64)],
        Proven::All,
    );
}

#[kernel]
fn control(x: &[u32], out: &mut [u32], limit: u32) {
    let i = global_id_x();
    let mut n = x[i] % 1000;
    let mut steps = 0;
    let found = 'search: loop {
        for k in (0..10).rev().step_by(3) {
            if n == k {
                break 'search k * 100;
            }
        }
        if n > limit {
            break steps;
        }
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
        if steps > 200 {
            return;
        }
    };
    let kind = match (found % 7, n) {
        (0, _) => 1,
        (1 | 2, 0..=50) => 2,
        (a, b) if a + b > 100 => a + b,
        _ => 9,
    };
    let mut history = [0u32; 8];
    while steps > 0 && history[(steps % 8) as usize] == 0 {
        history[(steps % 8) as usize] += steps;
        steps -= 1;
    }
    let mut sum = 0;
    for k in 0..history.len() {
        sum += history[k];
    }
    history.swap(0, 7);
    let (a, b) = (history[7], history[0]);
    out[i] = sum * 1_000_000 + kind + a + b;
}

#[test]
fn control_flow() {
    let x: Vec<u32> = numbers(200, 7, |bits| bits as u32);
    let out = vec![0u32; 200];
    agree(
        control::kernel(),
        LaunchConfig::new(2, 100),
        &[&B(&x), &B(&out), &V(900u32)],
        Proven::All,
    );
}

#[kernel]
fn generic<T: Copy + std::ops::Add<Output = T> + std::ops::Mul<Output = T> + PartialOrd, const N: usize>(
    x: &[T],
    out: &mut [T],
) {
    let i = global_id_x();
    let mut sum = x[i];
    for k in 1..N {
        let v = x[i + k] * x[i];
        sum = if v > sum { v } else { sum + v };
    }
    out[i] = sum;
}

#[kernel]
fn copies<T: Copy>(x: &[T], out: &mut [T]) {
    out[global_id_x()] = x[global_id_x()];
}

#[test]
fn generic_kernels() {
    let x: Vec<f32> = numbers(72, 8, |bits| (bits % 100) as f32 / 8.0);
    let y: Vec<i64> = numbers(72, 9, |bits| bits as i64);
    let config = LaunchConfig::new(4, 16);
    agree(
        generic::kernel::<f32, 8>(),
        config,
        &[&B(&x), &B(&x.clone())],
        Proven::All,
    );
    agree(
        generic::kernel::<i64, 3>(),
        config,
        &[&B(&y), &B(&y.clone())],
        Proven::All,
    );
    agree(
        copies::kernel::<i64>(),
        config,
        &[&B(&y), &B(&y.clone())],
        Proven::All,
    );
}
