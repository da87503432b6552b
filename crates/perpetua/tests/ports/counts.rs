//! Searching and counting: work expanded along merge paths, permanents, factors of Mersenne numbers.

use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 278: load-balancing search

const TURNS: usize = 4;
const SHARE: usize = 64 * TURNS;

/// Of the first `diagonal` of all items and segments merged, a segment in front of its items: how many are items.
#[device]
fn merge_path(diagonal: usize, count: usize, starts: &[u32]) -> usize {
    let (mut from, mut to) = (diagonal.saturating_sub(starts.len()), diagonal.min(count));
    while from < to {
        let middle = from.midpoint(to);
        if middle < starts[diagonal - 1 - middle] as usize {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

#[kernel]
fn partition(count: usize, starts: &[u32], partitions: &mut [u32]) {
    let p = global_id_x();
    if p < partitions.len() {
        let diagonal = (p * SHARE).min(count + starts.len());
        partitions[p] = merge_path(diagonal, count, starts) as u32;
    }
}

/// Gives each item what `each` makes of its segment's value and of its rank in the segment.
#[kernel(block_size = 64)]
fn expand<T: Copy, F: Fn(T, u32) -> T>(
    each: F,
    count: usize,
    starts: &[u32],
    values: &[T],
    partitions: &[u32],
    out: &mut [T],
) {
    let segments = shared_array::<[u32; SHARE]>();
    let (lane, group) = (local_id_x(), group_id_x());
    let items = partitions[group] as usize..partitions[group + 1] as usize;
    let total = count + starts.len();
    let begin = (group * SHARE + lane * TURNS).min(total);
    let mut item = merge_path(begin, count, starts);
    let mut next = begin - item;
    for _ in begin..(begin + TURNS).min(total) {
        match starts.get(next) {
            Some(start) if item >= *start as usize => next += 1,
            _ => {
                segments[item - items.start] = next as u32 - 1;
                item += 1;
            }
        }
    }
    sync_threads();
    for i in items.clone().skip(lane).step_by(64) {
        let segment = segments[i - items.start] as usize;
        out[i] = each(values[segment], i as u32 - starts[segment]);
    }
}

#[device]
fn strided(value: u32, rank: u32) -> u32 {
    value ^ rank * 3
}

#[device]
fn halved(value: f32, rank: u32) -> f32 {
    value / (1 << rank.min(20)) as f32
}

#[test]
fn segments_are_expanded() {
    let mut random = Random(278);
    // Many empty segments, also in front and behind, and a long one.
    let mut lengths: Vec<usize> = (0..411)
        .map(|_| [0, 0, 0, 1, 2, 9, 17][random.bits() as usize % 7])
        .collect();
    lengths[..3].fill(0);
    lengths[200] = 700;
    lengths[408..].fill(0);
    let count: usize = lengths.iter().sum();
    let mut starts = vec![0u32];
    starts.extend(lengths.iter().scan(0u32, |sum, len| {
        *sum += *len as u32;
        Some(*sum)
    }));
    starts.pop();
    let values: Vec<u32> = lengths.iter().map(|_| random.bits() as u32).collect();
    let floats: Vec<f32> = values.iter().map(|v| (v >> 10) as f32).collect();
    let (mut words, mut parts) = (Vec::new(), Vec::new());
    for (k, len) in lengths.iter().enumerate() {
        words.extend((0..*len as u32).map(|rank| values[k] ^ (3 * rank)));
        // Exact: 22 bits, divided by powers of two.
        parts.extend((0..*len as i32).map(|rank| floats[k] * 0.5f32.powi(rank.min(20))));
    }
    let blocks = (count + lengths.len()).div_ceil(SHARE);
    everywhere(|run| {
        let (x, cuts) = (run.upload(&starts), run.zeros::<u32>(blocks + 1));
        run.launch(
            partition::kernel(),
            LaunchConfig::linear(blocks + 1, 32),
            args![count, &x, &cuts],
        );
        let (y, out) = (run.upload(&values), run.zeros::<u32>(count));
        run.launch(
            expand::kernel::<u32, strided>(),
            LaunchConfig::new(blocks as u32, 64),
            args![count, &x, &y, &cuts, &out],
        );
        run.holds(&out, &words);
        let (y, out) = (run.upload(&floats), run.zeros::<f32>(count));
        run.launch(
            expand::kernel::<f32, halved>(),
            LaunchConfig::new(blocks as u32, 64),
            args![count, &x, &y, &cuts, &out],
        );
        // WGSL lets a quotient be off by 2.5 units in the last place.
        if run.is_wgpu() {
            let parts: Vec<f64> = parts.iter().map(|x| f64::from(*x)).collect();
            run.near(&out, &parts, 4e-7);
        } else {
            run.holds(&out, &parts);
        }
    });
}

// 279: permanents

#[device]
fn gray(k: u32) -> u32 {
    k ^ k >> 1
}

/// Ryser's formula. A lane goes over `part` sets of columns, each of which differs from the one before in one column.
#[kernel(block_size = 32)]
fn permanent<T, const N: usize>(matrix: &[[T; N]; N], part: u32, sums: &mut [T])
where
    T: Copy + GpuType + From<i8> + Add<Output = T> + Sub<Output = T> + Mul<Output = T>,
{
    let totals = shared_array::<[T; 32]>();
    let lane = local_id_x();
    let begin = global_id_x() as u32 * part;
    let mut rows: [T; N] = std::array::from_fn(|i| {
        (0..N)
            .filter(|j| gray(begin) >> j & 1 == 1)
            .fold(T::from(0), |sum, j| sum + matrix[i][j])
    });
    let mut total = T::from(0);
    for k in begin..begin + part {
        if k > begin {
            let column = k.trailing_zeros() as usize;
            let is_added = gray(k) >> column & 1 == 1;
            for (sum, row) in rows.iter_mut().zip(matrix) {
                *sum = if is_added {
                    *sum + row[column]
                } else {
                    *sum - row[column]
                };
            }
        }
        let product = rows.iter().fold(T::from(1), |product, sum| product * *sum);
        // Each step changes whether the number of columns is even.
        total = if (k as usize + N) % 2 == 0 {
            total + product
        } else {
            total - product
        };
    }
    totals[lane] = total;
    sync_threads();
    let mut half = 16;
    while half > 0 {
        if lane < half {
            totals[lane] = totals[lane] + totals[lane + half];
        }
        sync_threads();
        half /= 2;
    }
    if lane == 0 {
        sums[group_id_x()] = totals[0];
    }
}

/// The sum over permutations, row by row, by which columns are taken.
fn permanent_on_host<const N: usize>(matrix: &[[i64; N]; N]) -> i64 {
    let mut sums = vec![0i64; 1 << N];
    sums[0] = 1;
    for taken in 1..1usize << N {
        let row = taken.count_ones() as usize - 1;
        sums[taken] = (0..N)
            .filter(|j| taken >> j & 1 == 1)
            .map(|j| sums[taken ^ (1 << j)] * matrix[row][j])
            .sum();
    }
    sums[(1 << N) - 1]
}

#[test]
fn permanents_of_matrices() {
    let mut random = Random(279);
    let small: [[i64; 7]; 7] =
        std::array::from_fn(|_| std::array::from_fn(|_| (random.bits() % 9) as i64 - 4));
    let large: [[i64; 11]; 11] =
        std::array::from_fn(|_| std::array::from_fn(|_| (random.bits() % 4) as i64 - 1));
    let (first, second) = (permanent_on_host(&small), permanent_on_host(&large));
    // The same numbers as floats: all sums and products are whole and below 2^53.
    let floats = small.map(|row| row.map(|x| x as f64));
    everywhere(|run| {
        let (x, sums) = (run.upload(&[small]), run.zeros::<i64>(2));
        run.launch(
            permanent::kernel::<i64, 7>(),
            LaunchConfig::linear(64, 32),
            args![&x, 2u32, &sums],
        );
        assert_eq!(run.read(&sums).iter().sum::<i64>(), first, "on {}", run.place());
        let (x, sums) = (run.upload(&[floats]), run.zeros::<f64>(2));
        run.launch(
            permanent::kernel::<f64, 7>(),
            LaunchConfig::linear(64, 32),
            args![&x, 2u32, &sums],
        );
        assert_eq!(
            run.read(&sums).iter().sum::<f64>(),
            first as f64,
            "on {}",
            run.place()
        );
        let (x, sums) = (run.upload(&[large]), run.zeros::<i64>(4));
        run.launch(
            permanent::kernel::<i64, 11>(),
            LaunchConfig::linear(128, 32),
            args![&x, 16u32, &sums],
        );
        assert_eq!(run.read(&sums).iter().sum::<i64>(), second, "on {}", run.place());
    });
}

// 280: factors of Mersenne numbers

/// A modulus below 2^62, with what its remainders need.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Barrett {
    modulus: u64,
    /// `4^bits / modulus`.
    inverse: u64,
    bits: u32,
}

#[device]
impl Barrett {
    fn new(modulus: u64) -> Self {
        let bits = modulus.ilog2() + 1;
        let inverse = ((1u128 << (2 * bits)) / u128::from(modulus)) as u64;
        Barrett {
            modulus,
            inverse,
            bits,
        }
    }

    fn squared(&self, x: u64) -> u64 {
        let square = u128::from(x) * u128::from(x);
        let high = square >> (self.bits - 1);
        let quotient = (high * u128::from(self.inverse)) >> (self.bits + 1);
        let mut rest = (square - quotient * u128::from(self.modulus)) as u64;
        while rest >= self.modulus {
            rest -= self.modulus;
        }
        rest
    }

    fn power_of_two(&self, exponent: u32) -> u64 {
        (0..=exponent.ilog2()).rev().fold(1, |power, bit| {
            let power = self.squared(power) << (exponent >> bit & 1);
            if power >= self.modulus {
                power - self.modulus
            } else {
                power
            }
        })
    }
}

/// Tries `2 k p + 1` for 1024 numbers `k` a block; notes how many were left by the sieve, and how many are factors.
#[kernel(block_size = 64)]
fn mersenne(exponent: u32, start: u64, primes: &[u32], factors: &mut [u64], counts: &mut [u32; 2]) {
    let sieve = shared_array::<[u32; 32]>();
    let lane = local_id_x();
    let first = start + group_id_x() as u64 * 1024;
    if let Some(word) = sieve.get_mut(lane) {
        *word = 0;
    }
    sync_threads();
    for &prime in primes.iter().skip(lane).step_by(64) {
        let step = 2 * exponent % prime;
        let Some(root) = (0..prime).find(|k| (k * step + 1) % prime == 0) else {
            continue;
        };
        let behind = (first % u64::from(prime)) as u32;
        for k in ((root + prime - behind) % prime..1024).step_by(prime as usize) {
            atomic_or(&mut sieve[k as usize / 32], 1 << (k % 32));
        }
    }
    sync_threads();
    for k in (lane..1024).step_by(64) {
        let candidate = 2 * u64::from(exponent) * (first + k as u64) + 1;
        let is_left = sieve[k / 32] >> (k % 32) & 1 == 0;
        if is_left && matches!(candidate % 8, 1 | 7) {
            atomic_add(&mut counts[0], 1);
            if Barrett::new(candidate).power_of_two(exponent) == 1 {
                let at = atomic_add(&mut counts[1], 1);
                factors[at as usize] = candidate;
            }
        }
    }
}

#[test]
fn factors_of_mersenne_numbers() {
    let primes: Vec<u32> = (3..62u32).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    for (exponent, start, known) in [
        (239u32, 1u64, 176_383u64),
        (67, 1_444_900, 193_707_721),
        (103, 12_378_700, 2_550_183_799),
        (1_000_003, 400_000_000_000, 0),
    ] {
        let candidates = (start..start + 2048).map(|k| 2 * exponent as u64 * k + 1);
        let left: Vec<u64> = candidates
            .filter(|q| primes.iter().all(|r| q % *r as u64 != 0) && (q % 8 == 1 || q % 8 == 7))
            .collect();
        let power = |modulus: u64| -> u64 {
            let (mut result, mut base, mut exponent) = (1u128, 2u128, exponent);
            while exponent > 0 {
                if exponent % 2 == 1 {
                    result = result * base % modulus as u128;
                }
                base = base * base % modulus as u128;
                exponent /= 2;
            }
            result as u64
        };
        let mut expected: Vec<u64> = left.iter().copied().filter(|q| power(*q) == 1).collect();
        assert!(known == 0 || expected.contains(&known));
        let counts = [left.len() as u32, expected.len() as u32];
        expected.resize(32, 0);
        everywhere(|run| {
            let (list, found) = (run.upload(&primes), run.zeros::<u64>(32));
            let numbers = run.zeros::<[u32; 2]>(1);
            run.launch(
                mersenne::kernel(),
                LaunchConfig::new(2, 64),
                args![exponent, start, &list, &found, &numbers],
            );
            run.holds(&numbers, &[counts]);
            // Lanes note what they find in any order.
            let mut found = run.read(&found);
            found[..counts[1] as usize].sort();
            assert_eq!(found, expected, "on {}", run.place());
        });
    }
}
