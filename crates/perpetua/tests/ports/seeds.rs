//! A sponge over a field, and random numbers by counting.

use std::ops::{Add, AddAssign, Mul, MulAssign};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 155: RISC Zero's Poseidon2

const P: u32 = 15 * (1 << 27) + 1;
/// `-1 / P` modulo `2^32`.
const M: u32 = 0x77ff_ffff;
const WIDTH: usize = 24;
const RATE: usize = 16;
const FULL: usize = 8;
const PARTIAL: usize = 21;

/// A number times `2^32`, modulo `P`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Fp(u32);

#[device]
impl Fp {
    const ZERO: Self = Fp(0);

    fn double(self) -> Self {
        self + self
    }

    fn pow7(self) -> Self {
        let square = self * self;
        square * square * square * self
    }
}

#[device]
impl Add for Fp {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        Fp(if sum >= P { sum - P } else { sum })
    }
}

#[device]
impl AddAssign for Fp {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[device]
impl Mul for Fp {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let product = u64::from(self.0) * u64::from(other.0);
        let low = (product as u32).wrapping_mul(M);
        let reduced = ((product + u64::from(low) * u64::from(P)) >> 32) as u32;
        Fp(if reduced >= P { reduced - P } else { reduced })
    }
}

#[device]
impl MulAssign for Fp {
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

/// The matrix of circulant blocks, of which each is a fixed one of 4 x 4.
#[device]
fn external(state: &mut [Fp; WIDTH]) {
    for part in state.chunks_exact_mut(4) {
        let (ab, cd) = (part[0] + part[1], part[2] + part[3]);
        let (low, high) = (part[1].double() + cd, part[3].double() + ab);
        let (second, fourth) = (ab.double().double() + low, cd.double().double() + high);
        part.copy_from_slice(&[high + second, second, low + fourth, fourth]);
    }
    let sums: [Fp; 4] = std::array::from_fn(|k| {
        state
            .iter()
            .skip(k)
            .step_by(4)
            .copied()
            .fold(Fp::ZERO, |a, b| a + b)
    });
    for (i, value) in state.iter_mut().enumerate() {
        *value += sums[i % 4];
    }
}

#[device]
fn internal(state: &mut [Fp; WIDTH], diagonal: &[Fp; WIDTH]) {
    let sum = state.iter().fold(Fp::ZERO, |sum, x| sum + *x);
    for (value, factor) in state.iter_mut().zip(diagonal) {
        *value = sum + *value * *factor;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Constants {
    full: [[Fp; WIDTH]; FULL],
    partial: [Fp; PARTIAL],
    diagonal: [Fp; WIDTH],
}

#[device]
fn permute(state: &mut [Fp; WIDTH], constants: &Constants) {
    let full_round = |state: &mut [Fp; WIDTH], added: &[Fp; WIDTH]| {
        for (value, constant) in state.iter_mut().zip(added) {
            *value = (*value + *constant).pow7();
        }
        external(state);
    };
    external(state);
    for added in &constants.full[..FULL / 2] {
        full_round(state, added);
    }
    for added in constants.partial {
        state[0] = (state[0] + added).pow7();
        internal(state, &constants.diagonal);
    }
    for added in &constants.full[FULL / 2..] {
        full_round(state, added);
    }
}

#[kernel]
fn poseidon2_rows(constants: &Constants, rows: usize, matrix: &[Fp], digests: &mut [[Fp; 8]]) {
    let row = global_id_x();
    if row >= rows {
        return;
    }
    let mut state = [Fp::ZERO; WIDTH];
    let mut used = 0;
    for value in matrix.iter().skip(row).step_by(rows) {
        state[used] = *value;
        used += 1;
        if used == RATE {
            permute(&mut state, constants);
            used = 0;
        }
    }
    if used > 0 {
        state[used..RATE].fill(Fp::ZERO);
        permute(&mut state, constants);
    }
    digests[row] = std::array::from_fn(|k| state[k]);
}

#[test]
fn poseidon2_is_the_permutation_by_matrices() {
    let mut random = Random(155);
    let p = u64::from(P);
    let mut number = || random.bits() % p;
    let full: [[u64; WIDTH]; FULL] = std::array::from_fn(|_| std::array::from_fn(|_| number()));
    let partial: [u64; PARTIAL] = std::array::from_fn(|_| number());
    let diagonal: [u64; WIDTH] = std::array::from_fn(|_| number());
    let (rows, columns) = (40usize, 37usize);
    let matrix: Vec<u64> = (0..rows * columns).map(|_| number()).collect();
    let m4 = [[5u64, 7, 1, 3], [4, 6, 1, 1], [1, 3, 5, 7], [1, 1, 4, 6]];
    let outer = |s: &[u64; WIDTH]| -> [u64; WIDTH] {
        std::array::from_fn(|i| {
            let weight = |j: usize| m4[i % 4][j % 4] * if i / 4 == j / 4 { 2 } else { 1 };
            (0..WIDTH).map(|j| weight(j) * s[j]).sum::<u64>() % p
        })
    };
    let power = |x: u64| (0..7).fold(1, |y, _| y * (x % p) % p);
    let permuted = |start: [u64; WIDTH]| {
        let mut s = outer(&start);
        for (r, added) in full.iter().enumerate() {
            if r == FULL / 2 {
                for c in partial {
                    s[0] = power(s[0] + c);
                    let sum = s.iter().sum::<u64>();
                    s = std::array::from_fn(|i| (sum + s[i] * diagonal[i]) % p);
                }
            }
            s = outer(&std::array::from_fn(|i| power(s[i] + added[i])));
        }
        s
    };
    let expected: Vec<u64> = (0..rows)
        .flat_map(|row| {
            let values: Vec<u64> = (0..columns).map(|c| matrix[c * rows + row]).collect();
            let mut s = [0; WIDTH];
            for chunk in values.chunks(RATE) {
                (0..RATE).for_each(|k| s[k] = chunk.get(k).copied().unwrap_or(0));
                s = permuted(s);
            }
            s.into_iter().take(8)
        })
        .collect();
    let inside = |x: u64| Fp(((x << 32) % p) as u32);
    let constants = Constants {
        full: full.map(|r| r.map(inside)),
        partial: partial.map(inside),
        diagonal: diagonal.map(inside),
    };
    let matrix: Vec<Fp> = matrix.iter().map(|x| inside(*x)).collect();
    let expected: Vec<u32> = expected.iter().map(|x| inside(*x).0).collect();
    everywhere(|run| {
        let digests = run.zeros::<[Fp; 8]>(rows);
        run.launch(
            poseidon2_rows::kernel(),
            LaunchConfig::linear(rows, 32),
            args![&run.upload(&[constants]), rows, &run.upload(&matrix), &digests],
        );
        run.holds(&digests.cast::<u32>().unwrap(), &expected);
    });
}

// 156: PyTorch's Philox

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Philox {
    counter: [u32; 4],
    key: [u32; 2],
}

#[device]
impl Philox {
    fn new(seed: u64, subsequence: u64, offset: u64) -> Self {
        let words = |x: u64| [x as u32, (x >> 32) as u32];
        let ([a, b], [c, d]) = (words(offset), words(subsequence));
        Self {
            counter: [a, b, c, d],
            key: words(seed),
        }
    }

    fn advance(&mut self) {
        for word in &mut self.counter {
            let (next, carried) = word.overflowing_add(1);
            *word = next;
            if !carried {
                break;
            }
        }
    }

    fn next(&mut self) -> [u32; 4] {
        let mut key = self.key;
        let mut x = self.counter;
        for _ in 0..10 {
            let wide = |a: u32, b: u32| {
                let product = u64::from(a) * u64::from(b);
                ((product >> 32) as u32, product as u32)
            };
            let (high0, low0) = wide(0xd251_1f53, x[0]);
            let (high1, low1) = wide(0xcd9e_8d57, x[2]);
            x = [high1 ^ x[1] ^ key[0], low1, high0 ^ x[3] ^ key[1], low0];
            key[0] = key[0].wrapping_add(0x9e37_79b9);
            key[1] = key[1].wrapping_add(0xbb67_ae85);
        }
        self.advance();
        x
    }
}

/// From above zero to one.
#[device]
fn unit(bits: u32) -> f32 {
    (bits >> 8) as f32 / (1 << 24) as f32 + f32::EPSILON / 4.0
}

#[device]
fn box_muller([a, b]: [u32; 2]) -> [f32; 2] {
    let radius = (-2.0 * unit(a).ln()).sqrt();
    let (sin, cos) = (std::f32::consts::TAU * unit(b)).sin_cos();
    [radius * cos, radius * sin]
}

#[kernel]
fn philox(seed: u64, offset: u64, mean: f32, deviation: f32, bits: &mut [[u32; 4]], normal: &mut [f32]) {
    let id = global_id_x();
    let mut random = Philox::new(seed, id as u64, offset);
    for (round, out) in bits.iter_mut().skip(id).step_by(global_size_x()).enumerate() {
        *out = random.next();
        let [a, b, c, d] = *out;
        let first = 4 * (id + round * global_size_x());
        let values = [box_muller([a, b]), box_muller([c, d])];
        for (slot, value) in normal[first..first + 4].iter_mut().zip(values.iter().flatten()) {
            *slot = mean + deviation * value;
        }
    }
}

#[test]
fn philox_is_that_of_random123() {
    let plain = |key: u64, counter: u128| -> [u32; 4] {
        let (mut l0, mut r0, mut l1, mut r1) = (
            counter as u32,
            (counter >> 32) as u32,
            (counter >> 64) as u32,
            (counter >> 96) as u32,
        );
        for round in 0..10u32 {
            let k0 = (key as u32).wrapping_add(round.wrapping_mul(0x9e37_79b9));
            let k1 = ((key >> 32) as u32).wrapping_add(round.wrapping_mul(0xbb67_ae85));
            let (p0, p1) = (0xd251_1f53u64 * u64::from(l0), 0xcd9e_8d57u64 * u64::from(l1));
            (l0, r0, l1, r1) = (
                (p1 >> 32) as u32 ^ r0 ^ k0,
                p1 as u32,
                (p0 >> 32) as u32 ^ r1 ^ k1,
                p0 as u32,
            );
        }
        [l0, r0, l1, r1]
    };
    assert_eq!(plain(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    let (seed, offset, lanes, count) = (0x1234_5678_9abc_def0u64, u64::MAX - 1, 64usize, 300usize);
    let expected: Vec<[u32; 4]> = (0..count)
        .map(|i| {
            let start = u128::from(offset) | ((i % lanes) as u128) << 64;
            plain(seed, start + (i / lanes) as u128)
        })
        .collect();
    let normal: Vec<f64> = expected
        .iter()
        .flatten()
        .collect::<Vec<_>>()
        .chunks(2)
        .flat_map(|pair| {
            let [u, v] =
                [0, 1].map(|k| f64::from(*pair[k] >> 8) / 16_777_216.0 + f64::from(f32::EPSILON) / 4.0);
            let r = (-2.0 * u.ln()).sqrt();
            let angle = std::f64::consts::TAU * v;
            [5.0 + 2.0 * r * angle.cos(), 5.0 + 2.0 * r * angle.sin()]
        })
        .collect();
    everywhere(|run| {
        let (bits, values) = (run.zeros::<[u32; 4]>(count), run.zeros::<f32>(4 * count));
        run.launch(
            philox::kernel(),
            LaunchConfig::new(2, 32),
            args![seed, offset, 5.0f32, 2.0f32, &bits, &values],
        );
        run.holds(&bits, &expected);
        run.near(&values, &normal, 1e-4);
    });
}
