//! Transforms.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
