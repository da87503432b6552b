//! Proofs of work and of knowledge: memory-hard functions, curves and fields.

use std::ops::{Add, Mul, Neg, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 106: Argon2d

/// A block of 1 KiB.
type Words = [u64; 128];

#[device]
fn blamka(x: u64, y: u64) -> u64 {
    let product = u64::from(x as u32) * u64::from(y as u32);
    x.wrapping_add(y).wrapping_add(product.wrapping_mul(2))
}

#[device]
fn quarter([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    for (first, second) in [(32, 24), (16, 63)] {
        a = blamka(a, b);
        d = (d ^ a).rotate_right(first);
        c = blamka(c, d);
        b = (b ^ c).rotate_right(second);
    }
    [a, b, c, d]
}

/// One round of the permutation: lane `k % 4` of a group of four mixes a column, then a diagonal. `at` says where word `w` of a
/// group is.
#[device]
fn permute(block: &mut Words, lane: usize, at: impl Fn(usize, usize) -> usize) {
    let (group, k) = (lane / 4, lane % 4);
    for turn in 0..2 {
        let places: [usize; 4] = std::array::from_fn(|row| at(group, row * 4 + (k + turn * row) % 4));
        let mixed = quarter(places.map(|p| block[p]));
        for (place, word) in places.into_iter().zip(mixed) {
            block[place] = word;
        }
        sync_threads();
    }
}

/// Which block of those so far, as Argon2d chooses for one lane.
#[device]
fn reference(random: u64, pass: u32, slice: u32, index: u32, segment: u32) -> u32 {
    let blocks = 4 * segment;
    let area = match pass {
        0 => slice * segment + index - 1,
        _ => blocks - segment + index - 1,
    };
    let x = random & 0xffff_ffff;
    let square = (x * x) >> 32;
    let back = (u64::from(area) * square) >> 32;
    let start = if pass == 0 || slice == 3 { 0 } else { (slice + 1) * segment };
    (start + area - 1 - back as u32) % blocks
}

#[kernel(block_size = 32)]
fn fill(passes: u32, segment: u32, memory: &mut [Words]) {
    let block = shared_array::<Words>();
    let lane = local_id_x();
    let blocks = 4 * segment as usize;
    let memory = &mut memory[group_id_x() * blocks..][..blocks];
    for pass in 0..passes {
        for slice in 0..4 {
            let first = if pass == 0 && slice == 0 { 2 } else { 0 };
            for index in first..segment {
                let current = (slice * segment + index) as usize;
                let previous = (current + blocks - 1) % blocks;
                let other = reference(memory[previous][0], pass, slice, index, segment) as usize;
                let mut mixed = [0u64; 4];
                for (k, word) in mixed.iter_mut().enumerate() {
                    let w = lane + 32 * k;
                    *word = memory[previous][w] ^ memory[other][w];
                    block[w] = *word;
                }
                sync_threads();
                permute(block, lane, |group, word| group * 16 + word);
                permute(block, lane, |group, word| group * 2 + word / 2 * 16 + word % 2);
                for (k, word) in mixed.iter().enumerate() {
                    let w = lane + 32 * k;
                    let fresh = block[w] ^ word;
                    memory[current][w] = if pass == 0 { fresh } else { memory[current][w] ^ fresh };
                }
                sync_threads();
            }
        }
    }
}

/// BLAKE2's round with multiplications, on sixteen words.
fn blake_round(v: &mut [u64; 16]) {
    let mut g = |a: usize, b: usize, c: usize, d: usize| {
        let f = |x: u64, y: u64| x.wrapping_add(y).wrapping_add(2u64.wrapping_mul((x & 0xffff_ffff) * (y & 0xffff_ffff)));
        for (r, s) in [(32, 24), (16, 63)] {
            v[a] = f(v[a], v[b]);
            v[d] = (v[d] ^ v[a]).rotate_right(r);
            v[c] = f(v[c], v[d]);
            v[b] = (v[b] ^ v[c]).rotate_right(s);
        }
    };
    (0..4).for_each(|k| g(k, 4 + k, 8 + k, 12 + k));
    (0..4).for_each(|k| g(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4));
}

#[test]
fn argon2_fills_memory_as_its_specification() {
    let (instances, segment, passes) = (3usize, 5usize, 3u32);
    let blocks = 4 * segment;
    let mut random = Random(106);
    let mut memory = vec![[0u64; 128]; instances * blocks];
    for instance in memory.chunks_mut(blocks) {
        for block in &mut instance[..2] {
            block.iter_mut().for_each(|w| *w = random.bits());
        }
    }
    let mut expected = memory.clone();
    for memory in expected.chunks_mut(blocks) {
        for step in 2..blocks * passes as usize {
            let (pass, current) = (step / blocks, step % blocks);
            let previous = (current + blocks - 1) % blocks;
            let j1 = memory[previous][0] & 0xffff_ffff;
            let (slice, index) = (current / segment, current % segment);
            let area = (if pass == 0 { slice } else { 3 }) * segment + index - 1;
            let relative = area as u64 - 1 - ((area as u64 * (j1 * j1 >> 32)) >> 32);
            let start = if pass == 0 { 0 } else { (slice + 1) % 4 * segment };
            let other = (start + relative as usize) % blocks;
            let r: [u64; 128] = std::array::from_fn(|w| memory[previous][w] ^ memory[other][w]);
            let mut z = r;
            for row in 0..8 {
                let mut v: [u64; 16] = std::array::from_fn(|w| z[16 * row + w]);
                blake_round(&mut v);
                z[16 * row..16 * row + 16].copy_from_slice(&v);
            }
            for column in 0..8 {
                let at = |w: usize| 2 * column + 16 * (w / 2) + w % 2;
                let mut v: [u64; 16] = std::array::from_fn(|w| z[at(w)]);
                blake_round(&mut v);
                (0..16).for_each(|w| z[at(w)] = v[w]);
            }
            for w in 0..128 {
                memory[current][w] = if pass == 0 { 0 } else { memory[current][w] } ^ z[w] ^ r[w];
            }
        }
    }
    everywhere(|run| {
        let memory = run.upload(&memory);
        let config = LaunchConfig::new(instances as u32, 32);
        run.launch(fill::kernel(), config, args![passes, segment as u32, &memory]);
        run.holds(&memory, &expected);
    });
}

// 107: secp256k1

/// Modulo 2^256 - 2^32 - 977, the lowest limb first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Fe {
    limbs: [u64; 4],
}

const FOLD: u64 = 0x1_0000_03d1;

#[device]
impl Fe {
    const PRIME: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

    fn small(value: u64) -> Self {
        Self { limbs: [value, 0, 0, 0] }
    }

    fn is_zero(&self) -> bool {
        self.limbs.iter().all(|limb| *limb == 0)
    }

    /// Takes the prime away once where the sum reaches it.
    fn reduced(limbs: [u64; 4], carry: bool) -> Self {
        let mut rest = [0; 4];
        let mut borrow = false;
        for (rest, (limb, prime)) in rest.iter_mut().zip(limbs.into_iter().zip(Self::PRIME)) {
            let (first, one) = limb.overflowing_sub(prime);
            let (second, two) = first.overflowing_sub(borrow as u64);
            *rest = second;
            borrow = one || two;
        }
        Self { limbs: if carry || !borrow { rest } else { limbs } }
    }

    fn square(self) -> Self {
        self * self
    }

    /// To the power of p - 2.
    fn inverse(self) -> Self {
        let [low, ..] = Self::PRIME;
        let mut result = Self::small(1);
        for limb in [u64::MAX, u64::MAX, u64::MAX, low - 2] {
            for bit in (0..64).rev() {
                result = result.square();
                if limb >> bit & 1 == 1 {
                    result = result * self;
                }
            }
        }
        result
    }
}

#[device]
impl Add for Fe {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let mut carry = 0u128;
        let limbs = std::array::from_fn(|k| {
            carry += u128::from(self.limbs[k]) + u128::from(other.limbs[k]);
            let limb = carry as u64;
            carry >>= 64;
            limb
        });
        Self::reduced(limbs, carry != 0)
    }
}

#[device]
impl Neg for Fe {
    type Output = Self;

    fn neg(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let mut borrow = 0;
        let mut limbs = Self::PRIME;
        for (limb, own) in limbs.iter_mut().zip(&self.limbs) {
            let wide = i128::from(*limb) - i128::from(*own) - borrow;
            *limb = wide as u64;
            borrow = (wide < 0) as i128;
        }
        Self { limbs }
    }
}

#[device]
impl Sub for Fe {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

#[device]
impl Mul for Fe {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let mut wide = [0u64; 8];
        for (i, a) in self.limbs.iter().enumerate() {
            let mut carry = 0u64;
            for (j, b) in other.limbs.iter().enumerate() {
                let sum = u128::from(*a) * u128::from(*b) + u128::from(wide[i + j]) + u128::from(carry);
                wide[i + j] = sum as u64;
                carry = (sum >> 64) as u64;
            }
            wide[i + 4] = carry;
        }
        let (low, high) = wide.split_at(4);
        let mut limbs = [0u64; 4];
        let mut carry = 0u128;
        for k in 0..4 {
            carry += u128::from(low[k]) + u128::from(high[k]) * u128::from(FOLD);
            limbs[k] = carry as u64;
            carry >>= 64;
        }
        // What is left above is less than 2^34: folded once more, and once more for a last carry.
        carry *= u128::from(FOLD);
        for limb in &mut limbs {
            carry += u128::from(*limb);
            *limb = carry as u64;
            carry >>= 64;
        }
        if carry != 0 {
            limbs[0] += FOLD;
        }
        Self::reduced(limbs, false)
    }
}

/// `(x / z², y / z³)`; none at infinity.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Jacobian {
    x: Fe,
    y: Fe,
    z: Fe,
}

#[device]
impl Jacobian {
    fn doubled(self) -> Self {
        let Self { x, y, z } = self;
        let (a, b) = (x.square(), y.square());
        let c = b.square();
        let d = ((x + b).square() - a - c) * Fe::small(2);
        let e = a * Fe::small(3);
        let x3 = e.square() - d - d;
        Self { x: x3, y: e * (d - x3) - c * Fe::small(8), z: y * z * Fe::small(2) }
    }

    fn plus(self, (x, y): (Fe, Fe)) -> Option<Self> {
        let zz = self.z.square();
        let h = x * zz - self.x;
        let r = y * zz * self.z - self.y;
        if h.is_zero() {
            return r.is_zero().then(|| self.doubled());
        }
        let (hh, v) = (h.square(), self.x * h.square());
        let hhh = hh * h;
        let x3 = r.square() - hhh - v - v;
        Some(Self { x: x3, y: r * (v - x3) - self.y * hhh, z: self.z * h })
    }

    fn affine(self) -> (Fe, Fe) {
        let inverse = self.z.inverse();
        let square = inverse.square();
        (self.x * square, self.y * square * inverse)
    }
}

#[kernel]
fn multiples(base: [Fe; 2], scalars: &[[u64; 4]], points: &mut [[Fe; 2]]) {
    let i = global_id_x();
    let Some(scalar) = scalars.get(i) else { return };
    let [x, y] = base;
    let mut sum: Option<Jacobian> = None;
    for limb in scalar.iter().rev() {
        for bit in (0..64).rev() {
            sum = sum.map(Jacobian::doubled);
            if (limb >> bit) & 1 == 1 {
                sum = match sum {
                    Some(point) => point.plus((x, y)),
                    None => Some(Jacobian { x, y, z: Fe::small(1) }),
                };
            }
        }
    }
    points[i] = sum.map(Jacobian::affine).map_or([Fe::default(); 2], |(x, y)| [x, y]);
}

/// Slow and plain: bits, one by one.
mod plain {
    use super::Fe;

    pub(super) type N = [u64; 4];

    fn less(a: &N, b: &N) -> bool {
        a.iter().rev().lt(b.iter().rev())
    }

    pub(super) fn sub(a: N, b: N) -> N {
        if less(&a, &b) {
            // a - b + p = a + (p - b)
            return add(a, wrap(Fe::PRIME, b));
        }
        wrap(a, b)
    }

    fn wrap(a: N, b: N) -> N {
        let mut out = [0; 4];
        let mut borrow = 0i128;
        for k in 0..4 {
            let d = i128::from(a[k]) - i128::from(b[k]) + borrow;
            out[k] = d as u64;
            borrow = d >> 64;
        }
        out
    }

    pub(super) fn add(a: N, b: N) -> N {
        let mut out = [0; 4];
        let mut carry = 0u128;
        for k in 0..4 {
            carry += u128::from(a[k]) + u128::from(b[k]);
            out[k] = carry as u64;
            carry >>= 64;
        }
        if carry != 0 || !less(&out, &Fe::PRIME) { wrap(out, Fe::PRIME) } else { out }
    }

    pub(super) fn mul(a: N, b: N) -> N {
        let mut out = [0; 4];
        for bit in (0..256).rev() {
            out = add(out, out);
            if b[bit / 64] >> (bit % 64) & 1 == 1 {
                out = add(out, a);
            }
        }
        out
    }

    pub(super) fn inverse(a: N) -> N {
        let exponent = wrap(Fe::PRIME, [2, 0, 0, 0]);
        let mut out = [1, 0, 0, 0];
        for bit in (0..256).rev() {
            out = mul(out, out);
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                out = mul(out, a);
            }
        }
        out
    }

    /// The sum of two points that are not each other's negative.
    pub(super) fn plus(p: (N, N), q: (N, N)) -> (N, N) {
        let slope = if p == q {
            let square = mul(p.0, p.0);
            mul(add(add(square, square), square), inverse(add(p.1, p.1)))
        } else {
            mul(sub(q.1, p.1), inverse(sub(q.0, p.0)))
        };
        let x = sub(sub(mul(slope, slope), p.0), q.0);
        (x, sub(mul(slope, sub(p.0, x)), p.1))
    }
}

#[test]
fn secp256k1_multiplies_the_generator() {
    let x = [0x59f2_815b_16f8_1798, 0x029b_fcdb_2dce_28d9, 0x55a0_6295_ce87_0b07, 0x79be_667e_f9dc_bbac];
    let y = [0x9c47_d08f_fb10_d4b8, 0xfd17_b448_a685_5419, 0x5da4_fbfc_0e11_08a8, 0x483a_da77_26a3_c465];
    let mut random = Random(107);
    let mut scalars: Vec<[u64; 4]> = vec![[0; 4], [1, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]];
    scalars.extend((0..8).map(|_| [0; 4].map(|_: u64| random.bits())));
    let mut expected = Vec::new();
    for scalar in &scalars {
        let (mut sum, mut power) = (None, (x, y));
        for bit in 0..256 {
            if scalar[bit / 64] >> (bit % 64) & 1 == 1 {
                sum = Some(sum.map_or(power, |s| plain::plus(s, power)));
            }
            power = plain::plus(power, power);
        }
        let (x, y) = sum.unwrap_or(([0; 4], [0; 4]));
        expected.push([Fe { limbs: x }, Fe { limbs: y }]);
    }
    // As published.
    assert_eq!(expected[2][0].limbs[3], 0xc604_7f94_41ed_7d6d);
    everywhere(|run| {
        let (scalars, points) = (run.upload(&scalars), run.zeros::<[Fe; 2]>(expected.len()));
        let base = [Fe { limbs: x }, Fe { limbs: y }];
        run.launch(multiples::kernel(), LaunchConfig::linear(expected.len(), 4), args![base, &scalars, &points]);
        run.holds(&points, &expected);
    });
}
