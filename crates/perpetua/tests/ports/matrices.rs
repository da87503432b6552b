//! Matrices in f64.

use std::ops::{Add, AddAssign, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 50: Thomas' algorithm

#[kernel]
fn thomas(n: usize, lower: &[f64], diagonal: &[f64], upper: &mut [f64], x: &mut [f64]) {
    let system = global_id_x();
    let systems = x.len() / n;
    if system >= systems {
        return;
    }
    let at = |row: usize| row * systems + system;
    upper[at(0)] /= diagonal[at(0)];
    x[at(0)] /= diagonal[at(0)];
    for row in 1..n {
        let i = at(row);
        let scale = 1.0 / (diagonal[i] - lower[i] * upper[at(row - 1)]);
        upper[i] *= scale;
        x[i] = (x[i] - lower[i] * x[at(row - 1)]) * scale;
    }
    for row in (0..n - 1).rev() {
        x[at(row)] -= upper[at(row)] * x[at(row + 1)];
    }
}

#[test]
fn thomas_solves() {
    let (n, systems) = (20usize, 90usize);
    let mut random = Random(50);
    let mut draw = |base: f64| -> Vec<f64> {
        (0..n * systems)
            .map(|_| base + (random.bits() % 1000) as f64 / 1000.0)
            .collect()
    };
    let (lower, diagonal, upper, exact) = (draw(-0.5), draw(3.0), draw(-0.5), draw(-1.0));
    let right: Vec<f64> = (0..n * systems)
        .map(|i| {
            let mut sum = diagonal[i] * exact[i];
            if i >= systems {
                sum += lower[i] * exact[i - systems];
            }
            if i + systems < n * systems {
                sum += upper[i] * exact[i + systems];
            }
            sum
        })
        .collect();
    everywhere(|run| {
        let (lower, diagonal) = (run.upload(&lower), run.upload(&diagonal));
        let (upper, x) = (run.upload(&upper), run.upload(&right));
        run.launch(
            thomas::kernel(),
            LaunchConfig::linear(systems, 64),
            args![n, &lower, &diagonal, &upper, &x],
        );
        for (found, exact) in run.read(&x).iter().zip(&exact) {
            assert!((found - exact).abs() < 1e-13, "{found} {exact}");
        }
    });
}

// 51: SU(3)

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Complex<T> {
    re: T,
    im: T,
}

#[device]
impl<T: Copy + Mul<Output = T> + Sub<Output = T> + Add<Output = T>> Mul for Complex<T> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

#[device]
impl<T: Copy + AddAssign> AddAssign for Complex<T> {
    fn add_assign(&mut self, other: Self) {
        self.re += other.re;
        self.im += other.im;
    }
}

type C64 = Complex<f64>;

#[kernel]
fn products(a: &[[[C64; 3]; 3]], b: &[[[C64; 3]; 3]], out: &mut [[[C64; 3]; 3]]) {
    let i = global_id_x();
    if i >= out.len() {
        return;
    }
    let mut product = [[C64 { re: 0.0, im: 0.0 }; 3]; 3];
    for row in 0..3 {
        for column in 0..3 {
            for k in 0..3 {
                product[row][column] += a[i][row][k] * b[i][k][column];
            }
        }
    }
    out[i] = product;
}

#[test]
fn su3_matrices_multiply() {
    let mut random = Random(51);
    let n = 100usize;
    let mut draw = || -> Vec<[[C64; 3]; 3]> {
        let mut number = || (random.bits() % 64) as f64 - 32.0;
        (0..n)
            .map(|_| {
                [[0; 3]; 3].map(|row| {
                    row.map(|_| C64 {
                        re: number(),
                        im: number(),
                    })
                })
            })
            .collect()
    };
    let (a, b) = (draw(), draw());
    let expected: Vec<[[C64; 3]; 3]> = (0..n)
        .map(|i| {
            std::array::from_fn(|r| {
                std::array::from_fn(|c| {
                    let terms = || (0..3).map(|k| (a[i][r][k], b[i][k][c]));
                    C64 {
                        re: terms().map(|(x, y)| x.re * y.re - x.im * y.im).sum(),
                        im: terms().map(|(x, y)| x.re * y.im + x.im * y.re).sum(),
                    }
                })
            })
        })
        .collect();
    everywhere(|run| {
        let (a, b, out) = (run.upload(&a), run.upload(&b), run.upload(&a));
        let config = LaunchConfig::linear(n, 64);
        run.launch(products::kernel(), config, args![&a, &b, &out]);
        run.holds(&out, &expected);
    });
}
