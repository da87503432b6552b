//! Integers of many limbs.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 188: Miller and Rabin's test

/// The least limb first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Wide<const N: usize> {
    limbs: [u32; N],
}

#[device]
impl<const N: usize> Wide<N> {
    const ZERO: Self = Wide { limbs: [0; N] };

    fn small(value: u32) -> Self {
        let mut wide = Self::ZERO;
        wide.limbs[0] = value;
        wide
    }

    fn bit(&self, i: usize) -> bool {
        self.limbs[i / 32] >> (i % 32) & 1 == 1
    }

    fn trailing_zeros(&self) -> usize {
        self.limbs
            .iter()
            .position(|l| *l != 0)
            .map_or(32 * N, |i| 32 * i + self.limbs[i].trailing_zeros() as usize)
    }

    /// The difference, and whether it is negative.
    fn minus(mut self, other: &Self) -> (Self, bool) {
        let mut borrow = false;
        for (own, theirs) in self.limbs.iter_mut().zip(&other.limbs) {
            (*own, borrow) = own.borrowing_sub(*theirs, borrow);
        }
        (self, borrow)
    }

    /// Twice this one, below the modulus.
    fn doubled(mut self, modulus: &Self) -> Self {
        let mut carry = 0;
        for limb in &mut self.limbs {
            (*limb, carry) = (*limb << 1 | carry, *limb >> 31);
        }
        match self.minus(modulus) {
            (_, true) if carry == 0 => self,
            (less, _) => less,
        }
    }
}

/// Numbers times `2^(32 N)`, modulo an odd number.
#[derive(Clone, Copy, PartialEq, GpuType)]
#[repr(C)]
struct Montgomery<const N: usize> {
    modulus: Wide<N>,
    one: Wide<N>,
    square: Wide<N>,
    inverse: u32,
}

#[device]
impl<const N: usize> Montgomery<N> {
    fn new(modulus: Wide<N>) -> Self {
        let low = modulus.limbs[0];
        let mut inverse = low;
        for _ in 0..4 {
            inverse = inverse.wrapping_mul(2u32.wrapping_sub(low.wrapping_mul(inverse)));
        }
        let mut one = Wide::small(1);
        for _ in 0..32 * N {
            one = one.doubled(&modulus);
        }
        let mut square = one;
        for _ in 0..32 * N {
            square = square.doubled(&modulus);
        }
        Montgomery {
            modulus,
            one,
            square,
            inverse: inverse.wrapping_neg(),
        }
    }

    fn product(&self, a: &Wide<N>, b: &Wide<N>) -> Wide<N> {
        let mut sum = Wide::<N>::ZERO;
        let mut high = 0u32;
        for digit in a.limbs {
            let mut carry = 0;
            for (limb, other) in sum.limbs.iter_mut().zip(b.limbs) {
                let wide = u64::from(digit) * u64::from(other) + u64::from(*limb) + u64::from(carry);
                (*limb, carry) = (wide as u32, (wide >> 32) as u32);
            }
            let (top, over) = high.overflowing_add(carry);
            let factor = sum.limbs[0].wrapping_mul(self.inverse);
            let mut carry = 0;
            for i in 0..N {
                let wide = u64::from(factor) * u64::from(self.modulus.limbs[i])
                    + u64::from(sum.limbs[i])
                    + u64::from(carry);
                carry = (wide >> 32) as u32;
                if i > 0 {
                    sum.limbs[i - 1] = wide as u32;
                }
            }
            let (last, more) = top.overflowing_add(carry);
            sum.limbs[N - 1] = last;
            high = u32::from(over) + u32::from(more);
        }
        match sum.minus(&self.modulus) {
            (_, true) if high == 0 => sum,
            (less, _) => less,
        }
    }
}

#[device]
fn is_probable_prime<const N: usize>(number: Wide<N>, bases: &[u32]) -> bool {
    if !number.bit(0) {
        return number == Wide::small(2);
    }
    let (before, _) = number.minus(&Wide::small(1));
    if before == Wide::ZERO {
        return false;
    }
    let twos = before.trailing_zeros();
    let field = Montgomery::new(number);
    let (minus_one, _) = number.minus(&field.one);
    bases.iter().all(|base| {
        let base = field.product(&Wide::small(*base), &field.square);
        if base == Wide::ZERO {
            return true;
        }
        let mut x = field.one;
        for i in (twos..32 * N).rev() {
            x = field.product(&x, &x);
            if before.bit(i) {
                x = field.product(&x, &base);
            }
        }
        if x == field.one || x == minus_one {
            return true;
        }
        for _ in 1..twos {
            x = field.product(&x, &x);
            if x == minus_one {
                return true;
            }
        }
        false
    })
}

#[kernel]
fn test_primes<const N: usize>(numbers: &[Wide<N>], bases: &[u32], primes: &mut [bool]) {
    let i = global_id_x();
    if let Some(number) = numbers.get(i) {
        primes[i] = is_probable_prime(*number, bases);
    }
}

#[test]
fn primes_are_told_from_products() {
    let mut random = Random(188);
    let small: Vec<u64> = (1..400)
        .chain([561, 1105, 41041, 3_215_031_751, 4_294_967_291])
        .collect();
    let expected: Vec<bool> = small
        .iter()
        .map(|n| *n > 1 && (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0))
        .collect();
    let narrow: Vec<Wide<2>> = small
        .iter()
        .map(|n| Wide {
            limbs: [*n as u32, (n >> 32) as u32],
        })
        .collect();
    // Mersenne's primes up to 2^127 - 1, and products of two numbers.
    let mut large: Vec<(u128, bool)> = [61, 89, 107, 127].map(|p| ((1u128 << p) - 1, true)).to_vec();
    large.extend([67, 71, 101, 103].map(|p| ((1u128 << p) - 1, false)));
    large.extend((0..20).map(|_| {
        let [a, b] = [(); 2].map(|()| u128::from(random.bits() >> 2 | 3));
        (a * b, false)
    }));
    let wide: Vec<Wide<4>> = large
        .iter()
        .map(|(n, _)| Wide {
            limbs: std::array::from_fn(|i| (n >> (32 * i)) as u32),
        })
        .collect();
    let answers: Vec<bool> = large.iter().map(|(_, prime)| *prime).collect();
    everywhere(|run| {
        let bases = run.upload(&[2u32, 3, 5, 7, 11, 13, 17]);
        let (numbers, primes) = (run.upload(&narrow), run.zeros::<bool>(narrow.len()));
        let config = LaunchConfig::linear(narrow.len(), 32);
        run.launch(
            test_primes::kernel::<2>(),
            config,
            args![&numbers, &bases, &primes],
        );
        run.holds(&primes, &expected);
        let (numbers, primes) = (run.upload(&wide), run.zeros::<bool>(wide.len()));
        let config = LaunchConfig::linear(wide.len(), 32);
        run.launch(
            test_primes::kernel::<4>(),
            config,
            args![&numbers, &bases, &primes],
        );
        run.holds(&primes, &answers);
    });
}
