//! Iterators and parts of slices.

use perpetua::prelude::*;

use crate::harness::{check, floats};

const SIZE: usize = 96;

fn run(kernel: KernelFn, host: fn(&[f32], &mut [f32])) {
    check(kernel, host, &floats(SIZE), &[0.0; SIZE]);
}

#[device]
fn mean(part: &[f32]) -> f32 {
    part.iter().sum::<f32>() / part.len() as f32
}

#[device]
fn tail(all: &[f32], from: usize) -> &[f32] {
    &all[from..]
}

#[device]
fn scale(part: &mut [f32], by: f32) {
    for v in part {
        *v *= by;
    }
}

#[kernel]
fn loops(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let mut all = 0.0;
    for v in x {
        all += v;
    }
    for (k, v) in x.iter().enumerate() {
        if k % 3 == 1 {
            continue;
        }
        all += *v * k as f32;
    }
    for (k, &v) in x.iter().rev().skip(2).step_by(5).enumerate() {
        all -= v * k as f32;
    }
    'outer: for a in x.iter().take(4) {
        for b in x.iter().skip(90) {
            if *a > *b {
                continue 'outer;
            }
            all += a * b;
        }
    }
    let weights = [0.5, 0.25, 0.125];
    for w in weights {
        all += w;
    }
    for (w, v) in weights.iter().zip(&x[i..]) {
        all += w * v;
    }
    for (w, k) in weights.iter().zip(3u32..) {
        all += w * k as f32;
    }
    for (k, v) in (0..5).zip(x.iter()) {
        all += v * k as f32;
    }
    y[i] = all;
}

#[kernel]
fn chains(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let total: f32 = x.iter().map(|v| v * 2.0).filter(|v| *v > 1.0).sum();
    let product = x[..4].iter().product::<f32>();
    let largest = x.iter().copied().fold(f32::MIN, f32::max);
    let (low, high) = x
        .iter()
        .fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    let near = x.iter().position(|v| (*v - x[i]).abs() < 0.5).unwrap_or(0);
    let any = x.iter().any(|v| (*v - 7.5).abs() < 0.5);
    let all = x.iter().take_while(|v| **v < 7.0).all(|v| v.abs() <= 8.0);
    let count = x.iter().filter(|v| v.is_sign_negative()).count();
    let squares: u32 = (1..=i as u32 % 9).map(|k| k * k).sum();
    let least = (0..20u32).map(|k| (k * 7 + i as u32) % 20).min().unwrap();
    let greatest = x.iter().map(|v| *v as i32).max().unwrap();
    let found = x.iter().copied().find(|v| *v > 3.0).unwrap_or(-1.0);
    let last = x.iter().copied().last().unwrap_or(0.0);
    let odd = (0..10)
        .filter_map(|k: i32| if k % 2 == 1 { Some(k * 3) } else { None })
        .sum::<i32>();
    let late = x
        .iter()
        .map(|v| v + 1.0)
        .enumerate()
        .skip(3)
        .take(5)
        .map(|(k, v)| v * k as f32)
        .sum::<f32>();
    let reduced = x.iter().copied().reduce(|a, b| a.max(b)).unwrap();
    let mut seen = 0.0;
    x.iter().rev().for_each(|v| seen = seen * 0.5 + v);
    let inside = (2..=5).contains(&i) || (0..x.len()).contains(&(i + 90));
    y[i] = total + product + largest + low * high + near as f32 + count as f32 + squares as f32
        - least as f32
        + greatest as f32
        + found
        + last
        + odd as f32
        + late
        + reduced
        + seen
        + if any { 1.0 } else { 0.0 }
        + if all { 2.0 } else { 0.0 }
        + if inside { 4.0 } else { 0.0 };
}

#[kernel]
fn parts(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let (left, right) = x.split_at(i);
    let mut all = left.len() as f32 - right.len() as f32;
    for pair in x.chunks_exact(2) {
        all += pair[0] * pair[1];
    }
    for part in x.chunks(7) {
        all += part[part.len() - 1];
    }
    for w in x.windows(3).skip(i) {
        all += w[0] - 2.0 * w[1] + w[2];
    }
    let part = &x[i / 2..=i];
    all += mean(part) + mean(&x[..3]) + mean(tail(&x[i..], 0)) + tail(part, part.len() - 1)[0];
    let mut own = [1.0; 8];
    scale(&mut own[2..6], 3.0);
    for half in own.chunks_exact_mut(4) {
        half[0] += 1.0;
        half.swap(0, 3);
    }
    for v in own.iter_mut().take(2) {
        *v += all;
    }
    let (a, b) = own.split_at_mut(4);
    a[0] += b[1];
    b[2..].fill(0.5);
    y[i] = own
        .iter()
        .enumerate()
        .map(|(k, v)| v * (k + 1) as f32)
        .sum::<f32>()
        + right.len() as f32;
}

#[test]
fn loops_over_elements() {
    run(loops::kernel(), loops);
}

#[test]
fn chains_of_iterators() {
    run(chains::kernel(), chains);
}

#[test]
fn parts_of_slices() {
    run(parts::kernel(), parts);
}

#[kernel]
fn inner_items(x: &[f32], y: &mut [f32]) {
    const TAPS: usize = 3;
    const WEIGHTS: [f32; TAPS] = [0.25, 0.5, 0.25];
    use std::f32::consts::PI;

    #[device]
    fn clamped(i: usize, len: usize) -> usize {
        std::cmp::min(i, len - 1)
    }

    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    struct Pair {
        low: f32,
        high: f32,
    }

    let i = global_id_x();
    if i < y.len() {
        let mut sum = [0.0; TAPS];
        for (k, weight) in WEIGHTS.iter().enumerate() {
            sum[k] = weight * x[clamped(i + k, x.len())];
        }
        let mut pair = Pair {
            low: sum[0],
            high: sum[1] + sum[2],
        };
        if pair.low > pair.high {
            std::mem::swap(&mut pair.low, &mut pair.high);
        }
        let old = std::mem::replace(&mut pair.low, PI);
        y[i] = (old * pair.low).max(pair.high);
    }
}

#[test]
fn items_inside_a_function() {
    run(inner_items::kernel(), inner_items);
}

#[device]
fn odd(v: u32) -> Option<u32> {
    (v % 2 == 1).then_some(v * 3)
}

#[kernel]
fn zipped_in_step(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let own = &x[i..i + 20];
    let mut all = 0u32;
    // Neither side's items are known by their places.
    for (a, b) in own
        .iter()
        .filter(|v| **v % 3 != 0)
        .zip(own.iter().filter_map(|v| odd(*v)))
    {
        all = all.wrapping_mul(7) ^ a ^ b << 3;
    }
    all ^= own[1..]
        .iter()
        .flat_map(|v| [*v, v + 1])
        .zip(own.iter().skip_while(|v| **v % 5 != 0))
        .map(|(a, b)| a * b)
        .fold(1, |all: u32, v| all.rotate_left(5) ^ v);
    all ^= own[..9]
        .iter()
        .take_while(|v| **v != 7)
        .zip(own.iter().map_while(|v| (*v < 190).then_some(v + 1)))
        .zip(own.iter().rev().filter(|v| **v > 20))
        .map(|((a, b), c)| a ^ b << 2 ^ c << 4)
        .sum::<u32>();
    // What is asked for, and in which order, is seen.
    let (mut left, mut right) = (0u32, 0u32);
    let pairs = own
        .iter()
        .filter(|v| {
            left = left.wrapping_mul(3) + 1;
            **v % 2 == 0
        })
        .zip(own.iter().filter(|v| {
            right = right.wrapping_mul(5) + 1;
            **v % 4 == 1
        }))
        .count();
    let mut it = own.iter();
    it.next();
    all ^= u32::from(it.by_ref().take(3).last().is_some()) << 3 ^ it.next().map_or(9, |v| v << 5);
    y[i] = all ^ (pairs as u32) << 9 ^ left.wrapping_mul(31) ^ right;
}

#[test]
fn iterators_wait_for_each_other() {
    let x: Vec<u32> = (0..100).map(|i| i * 37 % 211).collect();
    check(zipped_in_step::kernel(), zipped_in_step, &x, &[0; 64]);
}
