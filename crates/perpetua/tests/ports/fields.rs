//! Towers of fields, and hashes of large memory.

use std::ops::{Add, Mul, Neg, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 108: folding, as FRI does

const P: u32 = (1 << 31) - 1;

#[device]
trait Field:
    GpuType + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;

    fn inverse(self) -> Self;

    fn square(self) -> Self {
        self * self
    }

    fn pow(self, mut exponent: u64) -> Self {
        let (mut result, mut base) = (Self::ONE, self);
        while exponent != 0 {
            if exponent & 1 == 1 {
                result = result * base;
            }
            base = base.square();
            exponent >>= 1;
        }
        result
    }
}

/// A field that may be extended by a root of `NON_RESIDUE`.
#[device]
trait Base: Field {
    const NON_RESIDUE: Self;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct M31(u32);

#[device]
impl M31 {
    fn reduced(value: u64) -> Self {
        let once = (value & u64::from(P)) + (value >> 31);
        let twice = (once & u64::from(P)) + (once >> 31);
        Self(if twice == u64::from(P) { 0 } else { twice as u32 })
    }
}

#[device]
impl Add for M31 {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        Self(if sum >= P { sum - P } else { sum })
    }
}

#[device]
impl Neg for M31 {
    type Output = Self;

    fn neg(self) -> Self {
        if self.0 == 0 { self } else { Self(P - self.0) }
    }
}

#[device]
impl Sub for M31 {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

#[device]
impl Mul for M31 {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::reduced(u64::from(self.0) * u64::from(other.0))
    }
}

#[device]
impl Field for M31 {
    const ZERO: Self = M31(0);
    const ONE: Self = M31(1);

    fn inverse(self) -> Self {
        self.pow(u64::from(P) - 2)
    }
}

#[device]
impl Base for M31 {
    const NON_RESIDUE: Self = M31(P - 1);
}

/// `real + root * imaginary`, where the root's square is the base's non-residue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Extension<F> {
    real: F,
    imaginary: F,
}

#[device]
impl<F: Field> Extension<F> {
    fn new(real: F, imaginary: F) -> Self {
        Self { real, imaginary }
    }

    fn scaled(self, by: F) -> Self {
        Self::new(self.real * by, self.imaginary * by)
    }
}

#[device]
impl<F: Field> Add for Extension<F> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.real + other.real, self.imaginary + other.imaginary)
    }
}

#[device]
impl<F: Field> Sub for Extension<F> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::new(self.real - other.real, self.imaginary - other.imaginary)
    }
}

#[device]
impl<F: Field> Neg for Extension<F> {
    type Output = Self;

    fn neg(self) -> Self {
        Self::new(-self.real, -self.imaginary)
    }
}

#[device]
impl<F: Base> Mul for Extension<F> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::new(
            self.real * other.real + F::NON_RESIDUE * self.imaginary * other.imaginary,
            self.real * other.imaginary + self.imaginary * other.real,
        )
    }
}

#[device]
impl<F: Base> Field for Extension<F> {
    const ZERO: Self = Self {
        real: F::ZERO,
        imaginary: F::ZERO,
    };
    const ONE: Self = Self {
        real: F::ONE,
        imaginary: F::ZERO,
    };

    fn inverse(self) -> Self {
        let norm = self.real.square() - F::NON_RESIDUE * self.imaginary.square();
        let Self { real, imaginary } = self;
        Self::new(real, -imaginary).scaled(norm.inverse())
    }
}

type Cm31 = Extension<M31>;
type Qm31 = Extension<Cm31>;

#[device]
impl Base for Cm31 {
    const NON_RESIDUE: Self = Extension {
        real: M31(2),
        imaginary: M31(1),
    };
}

/// `f(x) + f(-x)` and `(f(x) - f(-x)) / x`, combined by a random element.
#[kernel]
fn fold_line(alpha: Qm31, domain: &[M31], values: &[Qm31], folded: &mut [Qm31]) {
    let i = global_id_x();
    let (Some(out), [even, odd]) = (folded.get_mut(i), [values.get(2 * i), values.get(2 * i + 1)]) else {
        return;
    };
    if let (Some(even), Some(odd)) = (even, odd) {
        let slope =
            (*even - *odd) * Extension::new(Extension::new(domain[i].inverse(), M31::ZERO), Cm31::ZERO);
        *out = *even + *odd + alpha * slope;
    }
}

/// The same for any field, with the inverses of a batch by one division.
#[kernel]
fn inverses<F: Field, const N: usize>(values: &[[F; N]], out: &mut [[F; N]]) {
    let i = global_id_x();
    if i >= out.len() {
        return;
    }
    let batch = values[i];
    let mut products = [F::ONE; N];
    let mut all = F::ONE;
    for (product, value) in products.iter_mut().zip(batch) {
        *product = all;
        all = all * value;
    }
    let mut rest = all.inverse();
    for k in (0..N).rev() {
        out[i][k] = products[k] * rest;
        rest = rest * batch[k];
    }
}

/// Modulo p in polynomials: i² = -1, u² = 2 + i.
fn product(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let p = u64::from(P);
    let complex = |a: [u64; 2], b: [u64; 2]| {
        [
            (a[0] * b[0] % p + p - a[1] * b[1] % p) % p,
            (a[0] * b[1] % p + a[1] * b[0] % p) % p,
        ]
    };
    let sum = |a: [u64; 2], b: [u64; 2]| [(a[0] + b[0]) % p, (a[1] + b[1]) % p];
    let ([a, c], [b, d]) = ([[a[0], a[1]], [a[2], a[3]]], [[b[0], b[1]], [b[2], b[3]]]);
    let real = sum(complex(a, b), complex([2, 1], complex(c, d)));
    let imaginary = sum(complex(a, d), complex(c, b));
    [real[0], real[1], imaginary[0], imaginary[1]]
}

fn q(v: [u64; 4]) -> Qm31 {
    let [a, b, c, d] = v.map(|x| M31(x as u32));
    Extension {
        real: Extension {
            real: a,
            imaginary: b,
        },
        imaginary: Extension {
            real: c,
            imaginary: d,
        },
    }
}

#[test]
fn fri_folds_and_inverts_in_towers_of_fields() {
    let mut random = Random(108);
    let p = u64::from(P);
    let count = 150usize;
    let mut element = || std::array::from_fn::<u64, 4, _>(|_| random.bits() % p);
    let values: Vec<[u64; 4]> = (0..2 * count).map(|_| element()).collect();
    let alpha = element();
    let domain: Vec<u64> = (0..count).map(|_| element()[0].max(1)).collect();
    let mut expected = Vec::new();
    for i in 0..count {
        let (a, b) = (values[2 * i], values[2 * i + 1]);
        let inverse = (0..p.ilog2() + 1).rev().fold(1, |r, bit| {
            let square = r * r % p;
            if (p - 2) >> bit & 1 == 1 {
                square * domain[i] % p
            } else {
                square
            }
        });
        assert_eq!(inverse * domain[i] % p, 1);
        let slope = std::array::from_fn(|k| (a[k] + p - b[k]) % p * inverse % p);
        let turned = product(alpha, slope);
        expected.push(q(std::array::from_fn(|k| (a[k] + b[k] + turned[k]) % p)));
    }
    let batches: Vec<[Qm31; 5]> = values
        .chunks_exact(5)
        .map(|c| std::array::from_fn(|k| q(c[k])))
        .collect();
    let domain: Vec<M31> = domain.iter().map(|x| M31(*x as u32)).collect();
    everywhere(|run| {
        let inputs: Vec<Qm31> = values.iter().map(|v| q(*v)).collect();
        let (line, inputs, out) = (run.upload(&domain), run.upload(&inputs), run.zeros::<Qm31>(count));
        let config = LaunchConfig::linear(count, 64);
        run.launch(fold_line::kernel(), config, args![q(alpha), &line, &inputs, &out]);
        run.holds(&out, &expected);
        let (from, to) = (run.upload(&batches), run.zeros::<[Qm31; 5]>(batches.len()));
        let config = LaunchConfig::linear(batches.len(), 64);
        run.launch(inverses::kernel::<Qm31, 5>(), config, args![&from, &to]);
        for (batch, inverses) in batches.iter().zip(run.read(&to)) {
            for (a, b) in batch.iter().zip(inverses) {
                let numbers = |v: Qm31| {
                    [
                        v.real.real,
                        v.real.imaginary,
                        v.imaginary.real,
                        v.imaginary.imaginary,
                    ]
                    .map(|m| u64::from(m.0))
                };
                assert_eq!(
                    product(numbers(*a), numbers(b)),
                    [1, 0, 0, 0],
                    "on {}",
                    run.place()
                );
            }
        }
    });
}

// 109: Ethash

/// Lanes that mix for one nonce.
const TEAM: usize = 8;

#[device]
fn fnv(a: u32, b: u32) -> u32 {
    a.wrapping_mul(0x0100_0193) ^ b
}

#[kernel(block_size = 32)]
fn mix(accesses: u32, pages: &[[u32; 32]], seeds: &[[u32; 16]], mixes: &mut [[u32; TEAM]]) {
    let team = global_id_x() / TEAM;
    let lane = global_id_x() % TEAM;
    let seed = seeds[team.min(seeds.len() - 1)];
    let first = subgroup_lane() - lane as u32;
    let mut own: [u32; 4] = std::array::from_fn(|k| seed[lane * 4 % 16 + k]);
    for access in 0..accesses {
        let word = own[access as usize % 4];
        let page = fnv(seed[0] ^ access, word) % pages.len() as u32;
        let page = subgroup_shuffle(page, first + access / 4 % TEAM as u32);
        let part = &pages[page as usize][lane * 4..lane * 4 + 4];
        for (word, other) in own.iter_mut().zip(part) {
            *word = fnv(*word, *other);
        }
    }
    let reduced = own.into_iter().reduce(fnv).unwrap();
    if let Some(mix) = mixes.get_mut(team) {
        mix[lane] = reduced;
    }
}

#[test]
fn ethash_mixes_pages_of_a_large_set() {
    let mut random = Random(109);
    let words = |random: &mut Random| random.bits() as u32;
    let pages: Vec<[u32; 32]> = (0..1021)
        .map(|_| std::array::from_fn(|_| words(&mut random)))
        .collect();
    let seeds: Vec<[u32; 16]> = (0..50)
        .map(|_| std::array::from_fn(|_| words(&mut random)))
        .collect();
    let mut expected = Vec::new();
    for seed in &seeds {
        // As the paper has it: a mix of 128 bytes, one after the other.
        let mut all: Vec<u32> = seed.iter().chain(seed).copied().collect();
        let step = |a: u32, b: u32| ((u64::from(a) * 0x0100_0193) as u32) ^ b;
        for i in 0..64u32 {
            let page = step(seed[0] ^ i, all[i as usize % 32]) as usize % pages.len();
            all.iter_mut()
                .zip(pages[page])
                .for_each(|(a, b)| *a = step(*a, b));
        }
        let mut out = [0; 8];
        for (out, w) in out.iter_mut().zip(all.chunks(4)) {
            *out = step(step(step(w[0], w[1]), w[2]), w[3]);
        }
        expected.push(out);
    }
    everywhere(|run| {
        let (pages, seeds) = (run.upload(&pages), run.upload(&seeds));
        let mixes = run.zeros::<[u32; 8]>(50);
        run.launch(
            mix::kernel(),
            LaunchConfig::linear(50 * 8, 32),
            args![64u32, &pages, &seeds, &mixes],
        );
        run.holds(&mixes, &expected);
    });
}
