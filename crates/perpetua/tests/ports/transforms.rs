//! Transforms.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::images::{noise, tiles};

// 11: a number-theoretic transform

/// 2^64 - 2^32 + 1.
const P: u64 = 0xffff_ffff_0000_0001;
/// 2^64 modulo P.
const EPSILON: u64 = 0xffff_ffff;

#[device]
fn add_mod(a: u64, b: u64) -> u64 {
    let (sum, over) = a.overflowing_add(b);
    if over || sum >= P {
        sum.wrapping_sub(P)
    } else {
        sum
    }
}

#[device]
fn sub_mod(a: u64, b: u64) -> u64 {
    if a >= b {
        a - b
    } else {
        a.wrapping_sub(b).wrapping_add(P)
    }
}

#[device]
fn mul_mod(a: u64, b: u64) -> u64 {
    let (low, high) = a.carrying_mul(b, 0);
    let (mut rest, borrow) = low.overflowing_sub(high >> 32);
    if borrow {
        rest -= EPSILON;
    }
    add_mod(rest % P, (high & EPSILON) * EPSILON)
}

#[kernel(block_size = 256)]
fn ntt(x: &[u64], roots: &[u64], y: &mut [u64]) {
    let points = shared_array::<[u64; 512]>();
    let (lane, base) = (local_id_x(), 512 * group_id_x());
    for i in [lane, lane + 256] {
        let at = (i as u32).reverse_bits() >> 23;
        points[at as usize] = x[base + i];
    }
    sync_threads();
    for log in 0..9 {
        let half = 1usize << log;
        let k = lane % half;
        let at = 2 * (lane - k) + k;
        let turned = mul_mod(points[at + half], roots[k << (8 - log)]);
        let even = points[at];
        points[at] = add_mod(even, turned);
        points[at + half] = sub_mod(even, turned);
        sync_threads();
    }
    for i in [lane, lane + 256] {
        y[base + i] = points[i];
    }
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1u128, u128::from(base));
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % u128::from(P);
        }
        square = square * square % u128::from(P);
        exponent >>= 1;
    }
    result as u64
}

#[test]
fn ntt_equals_the_sum() {
    let mut random = Random(11);
    let blocks = 3;
    let mut x: Vec<u64> = (0..512 * blocks).map(|_| random.bits() % P).collect();
    x[..4].copy_from_slice(&[P - 1, P - 1, 0, EPSILON]);
    let root = power(7, (P - 1) / 512);
    let roots: Vec<u64> = (0..512).map(|k| power(root, k)).collect();
    let sum = |block: &[u64], k: usize| {
        let terms = block.iter().enumerate();
        let term = |(i, v): (usize, &u64)| u128::from(*v) * u128::from(roots[i * k % 512]) % u128::from(P);
        (terms.map(term).sum::<u128>() % u128::from(P)) as u64
    };
    let expected: Vec<u64> = x
        .chunks(512)
        .flat_map(|block| (0..512).map(move |k| sum(block, k)))
        .collect();
    everywhere(|run| {
        let (x, roots, y) = (run.upload(&x), run.upload(&roots[..256]), run.zeros(x.len()));
        let config = LaunchConfig::linear(256 * blocks, 256);
        run.launch(ntt::kernel(), config, args![&x, &roots, &y]);
        run.holds(&y, &expected);
    });
}

// 38: JPEG's cosine transform

const QUANTA: [u8; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17,
    22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78,
    87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];

/// Which coefficient stands at which place of the sequence.
const fn zigzag() -> [u8; 64] {
    let mut order = [0; 64];
    let (mut x, mut y, mut up) = (0i32, 0i32, true);
    let mut i = 0;
    while i < 64 {
        order[i] = (8 * y + x) as u8;
        if up {
            if x == 7 {
                y += 1;
                up = false;
            } else if y == 0 {
                x += 1;
                up = false;
            } else {
                x += 1;
                y -= 1;
            }
        } else if y == 7 {
            x += 1;
            up = true;
        } else if x == 0 {
            y += 1;
            up = true;
        } else {
            x -= 1;
            y += 1;
        }
        i += 1;
    }
    order
}

const ORDER: [u8; 64] = zigzag();

#[device]
fn cosine(point: usize, frequency: usize) -> f32 {
    let scale = if frequency == 0 {
        std::f32::consts::FRAC_1_SQRT_2
    } else {
        1.0
    };
    let angle = (2 * point + 1) as f32 * frequency as f32 * std::f32::consts::PI / 16.0;
    0.5 * scale * angle.cos()
}

#[kernel(block_size = (8, 8))]
fn dct(width: usize, image: &[u8], out: &mut [i16]) {
    let block = shared_array::<[[f32; 8]; 8]>();
    let (u, v) = (local_id_x(), local_id_y());
    let pixel = image[global_id_y() * width + global_id_x()];
    block[v][u] = f32::from(pixel) - 128.0;
    sync_threads();
    let rows: f32 = (0..8).map(|k| block[v][k] * cosine(k, u)).sum();
    sync_threads();
    block[v][u] = rows;
    sync_threads();
    let value: f32 = (0..8).map(|k| block[k][u] * cosine(k, v)).sum();
    sync_threads();
    block[v][u] = (value / f32::from(QUANTA[8 * v + u])).round();
    sync_threads();
    let from = ORDER[8 * v + u] as usize;
    let number = group_id_y() * (width / 8) + group_id_x();
    out[64 * number + 8 * v + u] = block[from / 8][from % 8] as i16;
}

#[test]
fn dct_transforms_blocks() {
    let (width, height) = (32usize, 24usize);
    let image = noise(width * height, 38);
    let mut zigzag: Vec<(usize, usize)> = (0..64).map(|i| (i % 8, i / 8)).collect();
    zigzag.sort_by_key(|(x, y)| (x + y, if (x + y) % 2 == 0 { *x } else { *y }));
    let mut exact = Vec::new();
    for by in 0..height / 8 {
        for bx in 0..width / 8 {
            for (u, v) in &zigzag {
                let mut sum = 0.0;
                for i in 0..64 {
                    let (x, y) = (i % 8, i / 8);
                    let value = f64::from(image[(8 * by + y) * width + 8 * bx + x]) - 128.0;
                    let wave = |p: usize, f: usize| {
                        (std::f64::consts::PI / 8.0 * (p as f64 + 0.5) * f as f64).cos()
                            * if f == 0 { 0.125f64.sqrt() } else { 0.5 }
                    };
                    sum += value * wave(x, *u) * wave(y, *v);
                }
                exact.push(sum / f64::from(QUANTA[8 * v + u]));
            }
        }
    }
    everywhere(|run| {
        let (image, out) = (run.upload(&image), run.zeros::<i16>(image.len()));
        run.launch(dct::kernel(), tiles(width, height), args![width, &image, &out]);
        for (i, (found, exact)) in run.read(&out).iter().zip(&exact).enumerate() {
            assert!(
                (f64::from(*found) - exact).abs() < 0.5001,
                "{i}: {found}, {exact}"
            );
        }
    });
}
