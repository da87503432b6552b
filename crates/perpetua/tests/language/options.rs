//! `Option` and `Result` as values: variants, patterns, `?`, methods.

use perpetua::prelude::*;

use crate::harness::{check, floats};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Fault {
    Small = 1,
    Large = 7,
}

/// Exact, so that no driver can round it otherwise.
#[device]
fn half(x: f32) -> Option<f32> {
    if x < 0.0 {
        return None;
    }
    Some(x * 0.5)
}

#[device]
fn halves(a: f32, b: f32) -> Option<(f32, u32)> {
    let (a, b) = (half(a)?, half(b)?);
    let scaled = (a * 4.0) as u32;
    Some((a + b, scaled.checked_sub(3)?))
}

#[device]
fn bounded(x: f32) -> Result<u32, Fault> {
    match x {
        x if x < -6.0 => Err(Fault::Small),
        x if x > 6.0 => Err(Fault::Large),
        x => Ok((x + 6.0) as u32),
    }
}

#[device]
fn summed(x: &[f32], from: usize) -> Result<u32, Fault> {
    let mut sum = 0;
    for k in 0..3 {
        sum += bounded(x[from + k])?;
    }
    let extra = half(x[from]).ok_or(Fault::Small)?;
    Ok(sum + extra as u32)
}

#[kernel]
fn options(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut sum = match halves(x[i], x[i + 1]) {
        Some((a, 0..=4)) => a,
        Some((a, n)) => a * n as f32,
        None => -1.0,
    };
    sum += match summed(x, i) {
        Ok(n) => n as f32,
        Err(Fault::Small) => 0.25,
        Err(fault) => fault as u32 as f32 * 0.5,
    };
    sum += half(x[i]).unwrap_or(8.0) + half(x[i + 2]).map_or(1.0, |v| v * 2.0);
    if let Some(v) = half(x[i + 1]).map(|v| v + 0.5).and_then(|v| half(v - 1.0)) {
        sum += v;
    }
    let mut best: Option<f32> = None;
    for k in 0..4 {
        let v = x[i + k];
        match best {
            Some(b) if b >= v => {}
            _ => best = Some(v),
        }
    }
    sum += best.unwrap();
    let mut at = 0;
    while let Some(v) = x.get(i + at) {
        if at == 3 || *v > 7.0 {
            break;
        }
        at += 1;
    }
    let last = x.last().copied().unwrap_or(0.0) + *x.first().unwrap();
    let beyond = x.get(x.len() + i).copied().unwrap_or_default();
    let Some(kept) = half(x[i] + 8.0) else {
        return;
    };
    y[i] = sum + at as f32 + last + beyond + kept + bounded(x[i]).ok().unwrap_or(3) as f32;
}

#[test]
fn options_and_results_are_values() {
    let x = floats(68);
    check(options::kernel(), options, &x, &[0.0f32; 64]);
}

#[kernel]
fn integers(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() {
        let v = x[i];
        let half = (v >> 7) as u16;
        let mut all = v.isqrt() + half.isqrt() as u32 + (v | 1).ilog2() * 3 + (half as i32 + 1).ilog2();
        all += (((v >> 1) as i32).isqrt() + (v as i16 & 0x7fff).isqrt() as i32) as u32;
        all ^= (v >> 2).next_power_of_two() + (v as u8 / 2).next_power_of_two() as u32;
        all = all.wrapping_add((v % 3 == 2).then_some(v).unwrap_or(7));
        all = all.wrapping_add((v % 5 == 1).then(|| v ^ 9).unwrap_or(1));
        y[i] = all;
    }
}

#[test]
fn methods_of_integers() {
    let mut input: Vec<u32> = (0..64u32)
        .map(|i| (i * i).wrapping_mul(2_654_435) ^ (i << 26))
        .collect();
    input.extend([0, 1, 2, 3, u32::MAX, u32::MAX - 1, 0xfffe_0001, 0xfffe_0000]);
    check(integers::kernel(), integers, &input, &[0; 72]);
}

#[kernel]
fn looped(x: &[f32], y: &mut [[f32; 4]]) {
    let i = global_id_x();
    let (own, next) = (half(x[i]), half(x[(i + 1) % x.len()]));
    let mut sum = 0.0;
    own.into_iter().for_each(|v| sum += v);
    next.iter().for_each(|v| sum += 2.0 * v);
    let found = [own, None, next];
    let bounds = [bounded(x[i]), bounded(x[0])];
    y[i] = [
        sum,
        found.into_iter().flatten().fold(1.0, |all, v| all * 0.5 + v),
        x.iter().take(5).flat_map(|v| half(*v)).sum::<f32>()
            + own.iter().zip(x).map(|(a, b)| a * b).sum::<f32>(),
        bounds.into_iter().flatten().count() as f32 + found.iter().flatten().copied().fold(0.0, f32::max),
    ];
}

#[test]
fn options_are_gone_over() {
    let x: Vec<f32> = (0..64).map(|i| (i * 37 % 64) as f32 * 0.125 - 4.0).collect();
    check(looped::kernel(), looped, &x, &[[0.0f32; 4]; 64]);
}

/// References to elements that are not there, in what branches give.
#[kernel]
fn elements(x: &[f32], y: &mut [[f32; 4]]) {
    let i = global_id_x();
    let behind = (2 * i).checked_sub(5).and_then(|at| x.get(at));
    let (beside, by) = if i % 3 == 0 {
        (x.get(i + 40), 2.0)
    } else {
        (x.get(i), 3.0)
    };
    let pair = match i % 4 {
        1 => [x.get(3 * i), x.first()],
        2 => [x.last(), None],
        _ => [None, x.get(i + 3)],
    };
    let found = (i > 7).then(|| x.get(i * i)).ok_or(i);
    y[i] = [
        behind.map_or(-1.0, |v| *v),
        beside.copied().unwrap_or(by),
        pair.into_iter().flatten().sum(),
        match found {
            Ok(Some(v)) => *v,
            Ok(None) => 0.25,
            Err(at) => at as f32,
        },
    ];
}

#[test]
fn elements_that_are_not_there_are_not_looked_at() {
    let x: Vec<f32> = (0..64).map(|i| (i * 37 % 64) as f32 * 0.125 - 4.0).collect();
    check(elements::kernel(), elements, &x, &[[0.0f32; 4]; 64]);
}
