//! Neutrons: cross-sections of complex poles, in floats of 64 bits.

use std::ops::{Add, Div, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 92: RSBench's resonances

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Complex {
    re: f64,
    im: f64,
}

#[device]
impl Complex {
    const ONE: Self = Self { re: 1.0, im: 0.0 };
    const I: Self = Self { re: 0.0, im: 1.0 };

    fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    /// e to the power, roughly: (1 + x / 4096) squared twelve times.
    fn exp(self) -> Self {
        let scale = (0..12).fold(1.0 + self.re / 4096.0, |x, _| x * x);
        let (sin, cos) = self.im.sin_cos();
        Self { re: cos, im: sin } * scale
    }
}

#[device]
impl From<f64> for Complex {
    fn from(re: f64) -> Self {
        Self { re, im: 0.0 }
    }
}

#[device]
impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device]
impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

#[device]
impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

#[device]
impl Mul<f64> for Complex {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        Self {
            re: self.re * by,
            im: self.im * by,
        }
    }
}

#[device]
impl Div for Complex {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let norm = other.re * other.re + other.im * other.im;
        Self {
            re: (self.re * other.re + self.im * other.im) / norm,
            im: (self.im * other.re - self.re * other.im) / norm,
        }
    }
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Pole {
    at: Complex,
    total: Complex,
    absorption: Complex,
    fission: Complex,
    momentum: u32,
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Window {
    total: f64,
    absorption: f64,
    fission: f64,
    start: u32,
    end: u32,
}

const WEIGHTS: [f64; 10] = [
    2.758402e-01,
    2.245740e-01,
    1.594149e-01,
    9.866577e-02,
    5.324414e-02,
    2.505215e-02,
    1.027747e-02,
    3.676164e-03,
    1.146494e-03,
    3.117570e-04,
];

/// The Faddeeva function: a series near the middle, two fractions elsewhere.
#[device]
fn faddeeva(z: Complex) -> Complex {
    if z.abs() < 6.0 {
        let wave = (Complex::I * z * 12.0).exp();
        let mut sum = Complex::default();
        for (n, weight) in (1..).zip(WEIGHTS) {
            let sign = if n % 2 == 1 { -1.0 } else { 1.0 };
            let left = std::f64::consts::PI.powi(2) * (n * n) as f64;
            sum = sum + (wave * sign - Complex::ONE) / (Complex::from(left) - z * z * 144.0) * weight;
        }
        Complex::I * (Complex::ONE - wave) / (z * 12.0)
            + Complex {
                re: 0.0,
                im: 81.24330,
            } * z
                * sum
    } else {
        let square = z * z;
        let fraction = |a: f64, b: f64| Complex::from(a) / (square - b.into());
        z * Complex::I
            * (fraction(0.512_424_224_754_768_5, 0.275_255_128_608_410_95)
                + fraction(0.051_765_358_792_987_82, 2.724_744_871_391_589))
    }
}

#[device]
fn phase_factors(radii: &[f64; 4], energy: f64) -> [Complex; 4] {
    std::array::from_fn(|l| {
        let phi = radii[l] * energy.sqrt();
        let shift = match l {
            1 => -phi.atan(),
            2 => (3.0 * phi / (3.0 - phi * phi)).atan(),
            3 => (phi * (15.0 - phi * phi) / (15.0 - 6.0 * phi * phi)).atan(),
            _ => 0.0,
        };
        let (sin, cos) = (2.0 * (phi - shift)).sin_cos();
        Complex { re: cos, im: -sin }
    })
}

/// Total, absorption, fission, elastic.
#[kernel]
fn resonances(
    energies: &[f64],
    radii: &[[f64; 4]],
    windows: &[Window],
    poles: &[Pole],
    densities: &[f64],
    sums: &mut [[f64; 4]],
) {
    let i = global_id_x();
    let Some(&energy) = energies.get(i) else { return };
    let each = windows.len() / radii.len();
    let mut sum = [0.0; 4];
    for (nuclide, (radii, density)) in radii.iter().zip(densities).enumerate() {
        let factors = phase_factors(radii, energy);
        let slot = ((energy * each as f64) as usize).min(each - 1);
        let window = windows[nuclide * each + slot];
        let [mut total, mut absorption, mut fission] =
            [window.total, window.absorption, window.fission].map(|background| energy * background);
        for pole in &poles[window.start as usize..window.end as usize] {
            let broad = faddeeva((Complex::from(energy) - pole.at) * 0.5);
            total += (pole.total * broad * factors[pole.momentum as usize]).re;
            absorption += (pole.absorption * broad).re;
            fission += (pole.fission * broad).re;
        }
        for (sum, part) in sum
            .iter_mut()
            .zip([total, absorption, fission, total - absorption])
        {
            *sum += density * part;
        }
    }
    sums[i] = sum;
}

/// In pairs of floats, without operators.
mod pairs {
    pub(super) type C = (f64, f64);

    pub(super) fn mul(a: C, b: C) -> C {
        (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
    }

    pub(super) fn div(a: C, b: C) -> C {
        let n = b.0 * b.0 + b.1 * b.1;
        let c = mul(a, (b.0, -b.1));
        (c.0 / n, c.1 / n)
    }

    pub(super) fn w(z: C) -> C {
        let z2 = mul(z, z);
        if z.0 * z.0 + z.1 * z.1 < 36.0 {
            let size = (1.0 - 12.0 * z.1 / 4096.0).powi(4096);
            let e = (size * (12.0 * z.0).cos(), size * (12.0 * z.0).sin());
            let mut sum = (0.0, 0.0);
            for n in 1..=10 {
                let sign = (-1f64).powi(n);
                let pi = std::f64::consts::PI * f64::from(n);
                let q = div(
                    (sign * e.0 - 1.0, sign * e.1),
                    (pi * pi - 144.0 * z2.0, -144.0 * z2.1),
                );
                let a = super::WEIGHTS[n as usize - 1];
                sum = (sum.0 + a * q.0, sum.1 + a * q.1);
            }
            let first = div(mul((0.0, 1.0), (1.0 - e.0, -e.1)), (12.0 * z.0, 12.0 * z.1));
            let second = mul(mul((0.0, 81.24330), z), sum);
            (first.0 + second.0, first.1 + second.1)
        } else {
            let a = div(
                (0.512_424_224_754_768_5, 0.0),
                (z2.0 - 0.275_255_128_608_410_95, z2.1),
            );
            let b = div(
                (0.051_765_358_792_987_82, 0.0),
                (z2.0 - 2.724_744_871_391_589, z2.1),
            );
            mul(mul(z, (0.0, 1.0)), (a.0 + b.0, a.1 + b.1))
        }
    }
}

#[test]
fn resonances_are_broadened_as_in_pairs_of_floats() {
    let (nuclides, slots, lookups) = (4, 5, 200);
    let mut random = Random(92);
    let complex = |random: &mut Random, reach: f64| Complex {
        re: random.between(-reach, reach),
        im: random.between(-reach, reach),
    };
    let (mut windows, mut poles) = (Vec::new(), Vec::new());
    for _ in 0..nuclides * slots {
        let start = poles.len() as u32;
        for _ in 0..1 + random.below(4) {
            poles.push(Pole {
                at: complex(&mut random, 20.0),
                total: complex(&mut random, 1.0),
                absorption: complex(&mut random, 1.0),
                fission: complex(&mut random, 1.0),
                momentum: random.below(4) as u32,
            });
            // Below the axis the series grows without bound.
            let at = &mut poles.last_mut().unwrap().at;
            at.im = -at.im.abs();
        }
        let [total, absorption, fission] = std::array::from_fn(|_| random.unit());
        windows.push(Window {
            total,
            absorption,
            fission,
            start,
            end: poles.len() as u32,
        });
    }
    let radii: Vec<[f64; 4]> = (0..nuclides)
        .map(|_| std::array::from_fn(|_| random.unit()))
        .collect();
    let densities: Vec<f64> = (0..nuclides).map(|_| random.unit()).collect();
    let energies: Vec<f64> = (0..lookups).map(|_| random.unit()).collect();
    let mut expected = Vec::new();
    for energy in &energies {
        let mut sums = [0.0; 4];
        for n in 0..nuclides {
            let window = windows[n * slots + (energy * slots as f64) as usize];
            let mut parts = [
                window.total * energy,
                window.absorption * energy,
                window.fission * energy,
            ];
            for pole in &poles[window.start as usize..window.end as usize] {
                let w = pairs::w(((energy - pole.at.re) / 2.0, -pole.at.im / 2.0));
                let phi = radii[n][pole.momentum as usize] * energy.sqrt();
                let p2 = phi * phi;
                let phi = match pole.momentum {
                    0 => phi,
                    1 => phi + phi.atan(),
                    2 => phi - (3.0 * phi / (3.0 - p2)).atan(),
                    _ => phi - (phi * (15.0 - p2) / (15.0 - 6.0 * p2)).atan(),
                };
                let turned = pairs::mul(w, ((2.0 * phi).cos(), -(2.0 * phi).sin()));
                parts[0] += pairs::mul((pole.total.re, pole.total.im), turned).0;
                parts[1] += pairs::mul((pole.absorption.re, pole.absorption.im), w).0;
                parts[2] += pairs::mul((pole.fission.re, pole.fission.im), w).0;
            }
            for (sum, part) in sums
                .iter_mut()
                .zip([parts[0], parts[1], parts[2], parts[0] - parts[1]])
            {
                *sum += densities[n] * part;
            }
        }
        expected.extend(sums);
    }
    everywhere(|run| {
        // WGSL has no sine of f64.
        if run.is_wgpu() {
            return;
        }
        let (energies, radii, windows) = (run.upload(&energies), run.upload(&radii), run.upload(&windows));
        let (poles, densities) = (run.upload(&poles), run.upload(&densities));
        let y = run.zeros::<[f64; 4]>(lookups);
        let config = LaunchConfig::linear(lookups, 64);
        run.launch(
            resonances::kernel(),
            config,
            args![&energies, &radii, &windows, &poles, &densities, &y],
        );
        run.near(&y.cast::<f64>().unwrap(), &expected, 1e-7);
    });
}
