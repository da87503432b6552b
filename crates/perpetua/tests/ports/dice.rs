//! Random numbers: Threefry's counters, and XORWOW that skips ahead.

use std::ops::BitXor;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 241: Threefry with four words, of 32 or 64 bits

#[device]
trait Word: GpuType + Copy + BitXor<Output = Self> {
    const PARITY: Self;
    const TURNS: [[u32; 2]; 8];

    fn of(number: u32) -> Self;
    fn plus(self, other: Self) -> Self;
    fn plus_with_carry(self, other: Self) -> (Self, bool);
    fn turned(self, by: u32) -> Self;
}

#[device]
impl Word for u32 {
    const PARITY: u32 = 0x1bd1_1bda;
    const TURNS: [[u32; 2]; 8] = [
        [10, 26],
        [11, 21],
        [13, 27],
        [23, 5],
        [6, 20],
        [17, 11],
        [25, 10],
        [18, 20],
    ];

    fn of(number: u32) -> u32 {
        number
    }

    fn plus(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }

    fn plus_with_carry(self, other: u32) -> (u32, bool) {
        self.overflowing_add(other)
    }

    fn turned(self, by: u32) -> u32 {
        self.rotate_left(by)
    }
}

#[device]
impl Word for u64 {
    const PARITY: u64 = 0x1bd1_1bda_a9fc_1a22;
    const TURNS: [[u32; 2]; 8] = [
        [14, 16],
        [52, 57],
        [23, 40],
        [5, 37],
        [25, 33],
        [46, 12],
        [58, 22],
        [32, 32],
    ];

    fn of(number: u32) -> u64 {
        u64::from(number)
    }

    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }

    fn plus_with_carry(self, other: u64) -> (u64, bool) {
        self.overflowing_add(other)
    }

    fn turned(self, by: u32) -> u64 {
        self.rotate_left(by)
    }
}

#[device]
fn mixed<W: Word, const ROUNDS: usize>(key: [W; 4], counter: [W; 4]) -> [W; 4] {
    let [a, b, c, d] = key;
    let keys = [a, b, c, d, W::PARITY ^ a ^ b ^ c ^ d];
    let mut x: [W; 4] = std::array::from_fn(|i| counter[i].plus(key[i]));
    for round in 0..ROUNDS {
        let [left, right] = W::TURNS[round % 8];
        let (p, q) = if round % 2 == 0 { (1, 3) } else { (3, 1) };
        x[0] = x[0].plus(x[p]);
        x[p] = x[p].turned(left) ^ x[0];
        x[2] = x[2].plus(x[q]);
        x[q] = x[q].turned(right) ^ x[2];
        if round % 4 == 3 {
            let injection = round / 4 + 1;
            for (i, word) in x.iter_mut().enumerate() {
                *word = word.plus(keys[(injection + i) % 5]);
            }
            x[3] = x[3].plus(W::of(injection as u32));
        }
    }
    x
}

#[kernel]
fn threefry<W: Word, const ROUNDS: usize>(key: [W; 4], first: [W; 4], out: &mut [[W; 4]]) {
    let i = global_id_x();
    let Some(slot) = out.get_mut(i) else {
        return;
    };
    let mut counter = first;
    let mut add = W::of(i as u32);
    for word in &mut counter {
        let (sum, carry) = word.plus_with_carry(add);
        *word = sum;
        add = W::of(u32::from(carry));
    }
    *slot = mixed::<W, ROUNDS>(key, counter);
}

/// Threefry as Threefish's authors write it: pairs mixed, then words permuted. Words of `bits` bits.
fn threefry_by_pairs(
    bits: u32,
    parity: u64,
    turns: [[u32; 2]; 8],
    rounds: usize,
    key: [u64; 4],
    counter: u128,
) -> [u64; 4] {
    let mask = u64::MAX >> (64 - bits);
    let turn = |x: u64, by: u32| (x << by | x >> (bits - by)) & mask;
    let keys = [
        key[0],
        key[1],
        key[2],
        key[3],
        parity ^ key[0] ^ key[1] ^ key[2] ^ key[3],
    ];
    let mut x = [0u64; 4];
    for i in 0..4 {
        // All carries of these tests end within 128 bits.
        let word = if bits * i as u32 >= 128 {
            0
        } else {
            (counter >> (bits * i as u32)) as u64 & mask
        };
        x[i] = word.wrapping_add(key[i]) & mask;
    }
    for round in 0..rounds {
        for pair in 0..2 {
            x[2 * pair] = x[2 * pair].wrapping_add(x[2 * pair + 1]) & mask;
            x[2 * pair + 1] = turn(x[2 * pair + 1], turns[round % 8][pair]) ^ x[2 * pair];
        }
        x.swap(1, 3);
        if (round + 1) % 4 == 0 {
            let s = (round + 1) / 4;
            for i in 0..4 {
                x[i] = x[i].wrapping_add(keys[(s + i) % 5]) & mask;
            }
            x[3] = x[3].wrapping_add(s as u64) & mask;
        }
    }
    if rounds % 2 == 1 {
        x.swap(1, 3);
    }
    x
}

#[test]
fn threefry_mixes_counters() {
    let turns32 = <u32 as Word>::TURNS;
    let turns64 = <u64 as Word>::TURNS;
    let known = threefry_by_pairs(32, 0x1bd1_1bda, turns32, 20, [0; 4], 0);
    assert_eq!(known, [0x9c6c_a96a, 0xe17e_ae66, 0xfc10_ecd4, 0x5256_a7d8]);

    let mut random = Random(241);
    let n = 301;
    let key32: [u32; 4] = std::array::from_fn(|_| random.bits() as u32);
    let key64: [u64; 4] = std::array::from_fn(|_| random.bits());
    // Counters that carry over two words.
    let first32 = [u32::MAX - 99, u32::MAX, 7, 0];
    let first64 = [u64::MAX - 200, 5, 0, 0];
    let start32 = (u128::from(u32::MAX - 99)) | u128::from(u32::MAX) << 32 | 7 << 64;
    let start64 = u128::from(u64::MAX - 200) | 5 << 64;
    let wide = key32.map(u64::from);
    let expected32: Vec<[u32; 4]> = (0..n)
        .map(|i| threefry_by_pairs(32, 0x1bd1_1bda, turns32, 20, wide, start32 + i as u128).map(|w| w as u32))
        .collect();
    let expected64: Vec<[u64; 4]> = (0..n)
        .map(|i| threefry_by_pairs(64, 0x1bd1_1bda_a9fc_1a22, turns64, 13, key64, start64 + i as u128))
        .collect();
    everywhere(|run| {
        let out = run.zeros::<[u32; 4]>(n);
        run.launch(
            threefry::kernel::<u32, 20>(),
            LaunchConfig::linear(n, 64),
            args![key32, first32, &out],
        );
        run.holds(&out, &expected32);
        let out = run.zeros::<[u64; 4]>(n);
        run.launch(
            threefry::kernel::<u64, 13>(),
            LaunchConfig::linear(n, 64),
            args![key64, first64, &out],
        );
        run.holds(&out, &expected64);
    });
}

// 242: XORWOW with streams that skip ahead

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Xorwow {
    x: [u32; 5],
    d: u32,
}

#[device]
impl Xorwow {
    const STEP: u32 = 362_437;

    fn seeded(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        let mut x = [123_456_789, 362_436_069, 521_288_629, 88_675_123, 5_783_321];
        for (k, word) in x.iter_mut().enumerate() {
            *word ^= if k % 2 == 0 { low } else { high };
        }
        Xorwow {
            x,
            d: low.wrapping_add(6_615_241),
        }
    }

    /// Goes on by a number of steps, with the powers of the step's matrix by exponents that double.
    fn jump(&mut self, steps: u32, powers: &[[[u32; 5]; 160]]) {
        self.d = self.d.wrapping_add(steps.wrapping_mul(Self::STEP));
        for (bit, matrix) in powers.iter().enumerate() {
            if steps >> bit & 1 == 0 {
                continue;
            }
            let mut product = [0; 5];
            for (row, image) in matrix.iter().enumerate() {
                if self.x[row / 32] >> (row % 32) & 1 == 1 {
                    for (p, word) in product.iter_mut().zip(image) {
                        *p ^= word;
                    }
                }
            }
            self.x = product;
        }
    }
}

#[device]
impl Iterator for Xorwow {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let [a, b, c, d, e] = self.x;
        let t = a ^ (a >> 2);
        let new = e ^ (e << 4) ^ t ^ (t << 1);
        self.x = [b, c, d, e, new];
        self.d = self.d.wrapping_add(Self::STEP);
        Some(self.d.wrapping_add(new))
    }
}

#[kernel]
fn xorwow(seed: u64, stride: u32, each: usize, powers: &[[[u32; 5]; 160]], out: &mut [u32]) {
    let lane = global_id_x();
    if let Some(part) = out.chunks_exact_mut(each).nth(lane) {
        let mut generator = Xorwow::seeded(seed);
        generator.jump(lane as u32 * stride, powers);
        for (slot, value) in part.iter_mut().zip(generator.into_iter()) {
            *slot = value;
        }
    }
}

/// One step of the five words, without the counter.
fn xorwow_step(x: &mut [u32; 5]) {
    let mut t = x[0];
    t ^= t >> 2;
    t ^= t << 1;
    x.rotate_left(1);
    x[4] = x[3] ^ (x[3] << 4) ^ t;
}

#[test]
fn xorwow_skips_ahead() {
    let (lanes, stride, each) = (45usize, 701u32, 9usize);
    let seed = Random(242).bits();

    // The matrix of one step: what becomes of each bit. Then its squares.
    let mut power = [[0u32; 5]; 160];
    for (row, image) in power.iter_mut().enumerate() {
        image[row / 32] = 1 << (row % 32);
        xorwow_step(image);
    }
    let mut powers = vec![];
    for _ in 0..15 {
        powers.push(power);
        let square = power.map(|image| {
            let mut product = [0u32; 5];
            for bit in (0..160).filter(|bit| image[bit / 32] >> (bit % 32) & 1 == 1) {
                for k in 0..5 {
                    product[k] ^= power[bit][k];
                }
            }
            product
        });
        power = square;
    }

    // One long sequence.
    let (low, high) = (seed as u32, (seed >> 32) as u32);
    let mut x = [
        123_456_789 ^ low,
        362_436_069 ^ high,
        521_288_629 ^ low,
        88_675_123 ^ high,
        5_783_321 ^ low,
    ];
    let mut counter = low.wrapping_add(6_615_241);
    let sequence: Vec<u32> = (0..lanes * stride as usize + each)
        .map(|_| {
            xorwow_step(&mut x);
            counter = counter.wrapping_add(362_437);
            x[4].wrapping_add(counter)
        })
        .collect();
    let expected: Vec<u32> = (0..lanes)
        .flat_map(|lane| sequence[lane * stride as usize..][..each].to_vec())
        .collect();
    everywhere(|run| {
        let (table, out) = (run.upload(&powers), run.zeros::<u32>(lanes * each));
        run.launch(
            xorwow::kernel(),
            LaunchConfig::linear(lanes, 16),
            args![seed, stride, each, &table, &out],
        );
        run.holds(&out, &expected);
    });
}
