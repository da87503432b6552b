//! Points of elliptic curves.

use std::ops::{Add, Mul, Neg, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
        Self {
            limbs: [value, 0, 0, 0],
        }
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
        Self {
            limbs: if carry || !borrow { rest } else { limbs },
        }
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
        Self {
            x: x3,
            y: e * (d - x3) - c * Fe::small(8),
            z: y * z * Fe::small(2),
        }
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
        Some(Self {
            x: x3,
            y: r * (v - x3) - self.y * hhh,
            z: self.z * h,
        })
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
                    None => Some(Jacobian {
                        x,
                        y,
                        z: Fe::small(1),
                    }),
                };
            }
        }
    }
    points[i] = sum
        .map(Jacobian::affine)
        .map_or([Fe::default(); 2], |(x, y)| [x, y]);
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
        if carry != 0 || !less(&out, &Fe::PRIME) {
            wrap(out, Fe::PRIME)
        } else {
            out
        }
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
    let x = [
        0x59f2_815b_16f8_1798,
        0x029b_fcdb_2dce_28d9,
        0x55a0_6295_ce87_0b07,
        0x79be_667e_f9dc_bbac,
    ];
    let y = [
        0x9c47_d08f_fb10_d4b8,
        0xfd17_b448_a685_5419,
        0x5da4_fbfc_0e11_08a8,
        0x483a_da77_26a3_c465,
    ];
    let mut random = Random(107);
    let mut scalars: Vec<[u64; 4]> = (0..4).map(|k| [k, 0, 0, 0]).collect();
    scalars.extend((0..3).map(|_| [random.bits() >> 34, 0, 0, 0]));
    let powers: Vec<_> = (0..30)
        .scan((x, y), |power, _| {
            Some(std::mem::replace(power, plain::plus(*power, *power)))
        })
        .collect();
    let mut expected = Vec::new();
    for scalar in &scalars {
        let set = powers
            .iter()
            .enumerate()
            .filter(|(bit, _)| scalar[0] >> bit & 1 == 1);
        let sum = set.map(|(_, power)| *power).reduce(plain::plus);
        let (x, y) = sum.unwrap_or(([0; 4], [0; 4]));
        expected.push([Fe { limbs: x }, Fe { limbs: y }]);
    }
    // The order less one, of which the multiple is the negative.
    scalars.push([
        0xbfd2_5e8c_d036_4140,
        0xbaae_dce6_af48_a03b,
        u64::MAX - 1,
        u64::MAX,
    ]);
    expected.push([
        Fe { limbs: x },
        Fe {
            limbs: plain::sub([0; 4], y),
        },
    ]);
    // As published.
    assert_eq!(expected[2][0].limbs[3], 0xc604_7f94_41ed_7d6d);
    everywhere(|run| {
        let (scalars, points) = (run.upload(&scalars), run.zeros::<[Fe; 2]>(expected.len()));
        let base = [Fe { limbs: x }, Fe { limbs: y }];
        run.launch(
            multiples::kernel(),
            LaunchConfig::linear(expected.len(), 4),
            args![base, &scalars, &points],
        );
        run.holds(&points, &expected);
    });
}
