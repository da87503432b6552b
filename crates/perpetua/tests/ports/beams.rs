//! Sums over blocks of complex numbers and of moments.

use std::ops::{Add, Mul, Neg, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Complex<T> {
    re: T,
    im: T,
}

#[device]
impl<T: Copy + Add<Output = T>> Add for Complex<T> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device]
impl<T: Copy + Sub<Output = T>> Sub for Complex<T> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Complex {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

#[device]
impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>> Mul for Complex<T> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

#[device]
impl<T: Copy + Neg<Output = T>> Complex<T> {
    fn conj(self) -> Self {
        Complex {
            re: self.re,
            im: -self.im,
        }
    }
}

/// The sum over a block's lanes, for all of them.
#[device]
fn block_sum<T: GpuType + Add<Output = T>, const N: usize>(own: T) -> T {
    let parts = shared_array::<[T; N]>();
    let lane = local_id_x();
    parts[lane] = own;
    sync_threads();
    let mut half = N / 2;
    while half > 0 {
        if lane < half {
            parts[lane] = parts[lane] + parts[lane + half];
        }
        sync_threads();
        half /= 2;
    }
    let sum = parts[0];
    sync_threads();
    sum
}

// 195: degridding

/// How finely the convolution is tabled between two points of the grid.
const FINE: usize = 4;

/// A block a visibility: the grid around its place, weighted by the table for its part between points.
#[kernel(block_size = 64)]
fn degrid(
    width: usize,
    support: usize,
    places: &[[f64; 2]],
    grid: &[Complex<f64>],
    table: &[Complex<f64>],
    visibilities: &mut [Complex<f64>],
) {
    let i = group_id_x();
    let whole = places[i].map(|p| p.floor());
    let [fx, fy] = std::array::from_fn(|d| ((places[i][d] - whole[d]) * FINE as f64) as usize);
    let weights = &table[(fy * FINE + fx) * support * support..][..support * support];
    let first = whole.map(|w| w as i64 - support as i64 / 2);
    let own = (local_id_x()..support * support)
        .step_by(64)
        .filter_map(|k| {
            let x = usize::try_from(first[0] + (k % support) as i64).ok()?;
            let y = usize::try_from(first[1] + (k / support) as i64).ok()?;
            let inside = x < width && y < grid.len() / width;
            inside.then(|| grid[y * width + x] * weights[k])
        })
        .fold(Complex::default(), |sum, v| sum + v);
    let sum = block_sum::<_, 64>(own);
    if local_id_x() == 0 {
        visibilities[i] = sum;
    }
}

#[test]
fn visibilities_from_a_grid() {
    let mut random = Random(195);
    let mut number = |n: usize| -> Vec<Complex<f64>> {
        (0..n)
            .map(|_| Complex {
                re: random.between(-1.0, 1.0),
                im: random.between(-1.0, 1.0),
            })
            .collect()
    };
    let (width, height, support) = (40usize, 30usize, 9usize);
    let (grid, table) = (number(width * height), number(16 * support * support));
    let places: Vec<[f64; 2]> = (0..50)
        .map(|_| [random.between(-2.0, 42.0), random.between(-2.0, 32.0)])
        .collect();
    let expected: Vec<[f64; 2]> = places
        .iter()
        .map(|[u, v]| {
            let sub = |x: f64| (x.rem_euclid(1.0) * 4.0).floor() as usize;
            let mut sum = [0.0; 2];
            for b in 0..support {
                for a in 0..support {
                    let (x, y) = (u.floor() as i32 + a as i32 - 4, v.floor() as i32 + b as i32 - 4);
                    if (0..40).contains(&x) && (0..30).contains(&y) {
                        let p = grid[y as usize * width + x as usize];
                        let q = table[(sub(*v) * 4 + sub(*u)) * support * support + b * support + a];
                        sum[0] += p.re * q.re - p.im * q.im;
                        sum[1] += p.re * q.im + p.im * q.re;
                    }
                }
            }
            sum
        })
        .collect();
    everywhere(|run| {
        let (p, g, t) = (run.upload(&places), run.upload(&grid), run.upload(&table));
        let v = run.zeros::<Complex<f64>>(50);
        run.launch(
            degrid::kernel(),
            LaunchConfig::new(50, 64),
            args![width, support, &p, &g, &t, &v],
        );
        for (found, expected) in run.read(&v).iter().zip(&expected) {
            let off = (found.re - expected[0]).hypot(found.im - expected[1]);
            assert!(off < 1e-10, "on {}: {found:?}, {expected:?}", run.place());
        }
    });
}

// 197: Householder's reflections

/// A block a matrix, a lane a row; columns lie one behind the other. Reflections replace what is below the
/// diagonal.
#[kernel(block_size = 64)]
fn householder(rows: usize, columns: usize, matrices: &mut [Complex<f32>], taus: &mut [Complex<f32>]) {
    let (matrix, row) = (group_id_x(), local_id_x());
    let a = &mut matrices[matrix * rows * columns..][..rows * columns];
    let one = Complex { re: 1.0, im: 0.0 };
    for k in 0..columns.min(rows) {
        let (below, alpha) = (row > k && row < rows, a[k * rows + k]);
        let own = if below {
            a[k * rows + row]
        } else {
            Complex::default()
        };
        let square = block_sum::<f32, 64>(own.re * own.re + own.im * own.im);
        let (beta, tau, scale) = if square == 0.0 && alpha.im == 0.0 {
            (alpha.re, Complex::default(), one)
        } else {
            let norm = (alpha.re * alpha.re + alpha.im * alpha.im + square).sqrt();
            let beta = -norm.copysign(alpha.re);
            let tau = Complex {
                re: (beta - alpha.re) / beta,
                im: -alpha.im / beta,
            };
            let (re, im) = (alpha.re - beta, alpha.im);
            let length = re * re + im * im;
            (
                beta,
                tau,
                Complex {
                    re: re / length,
                    im: -im / length,
                },
            )
        };
        let v = match row {
            _ if row == k => one,
            _ if below => own * scale,
            _ => Complex::default(),
        };
        for j in k + 1..columns {
            let element = if row < rows {
                a[j * rows + row]
            } else {
                Complex::default()
            };
            let dot = block_sum::<Complex<f32>, 64>(v.conj() * element);
            if row >= k && row < rows {
                a[j * rows + row] = element - tau.conj() * dot * v;
            }
        }
        if row == k {
            a[k * rows + k] = Complex { re: beta, im: 0.0 };
            taus[matrix * columns + k] = tau;
        } else if below {
            a[k * rows + row] = v;
        }
        sync_threads();
    }
}

#[test]
fn reflections_give_the_matrix_back() {
    let mut random = Random(197);
    let (count, rows, columns) = (4, 20usize, 7usize);
    let matrices: Vec<Complex<f32>> = (0..count * rows * columns)
        .map(|_| Complex {
            re: random.between(-1.0, 1.0) as f32,
            im: random.between(-1.0, 1.0) as f32,
        })
        .collect();
    let wide = |c: &Complex<f32>| Complex {
        re: f64::from(c.re),
        im: f64::from(c.im),
    };
    everywhere(|run| {
        let (a, t) = (run.upload(&matrices), run.zeros::<Complex<f32>>(count * columns));
        run.launch(
            householder::kernel(),
            LaunchConfig::new(count as u32, 64),
            args![rows, columns, &a, &t],
        );
        let (a, t) = (run.read(&a), run.read(&t));
        for m in 0..count {
            let packed: Vec<_> = a[m * rows * columns..][..rows * columns]
                .iter()
                .map(wide)
                .collect();
            for j in 0..columns {
                // A column of R, through the reflections from the last to the first.
                let mut x: Vec<Complex<f64>> = (0..rows)
                    .map(|i| {
                        if i <= j {
                            packed[j * rows + i]
                        } else {
                            Complex::default()
                        }
                    })
                    .collect();
                for k in (0..columns).rev() {
                    let v = |i: usize| match i {
                        _ if i < k => Complex::default(),
                        _ if i == k => Complex { re: 1.0, im: 0.0 },
                        _ => packed[k * rows + i],
                    };
                    let dot = (0..rows).fold(Complex::default(), |s, i| s + v(i).conj() * x[i]);
                    let by = wide(&t[m * columns + k]) * dot;
                    for (i, x) in x.iter_mut().enumerate() {
                        *x = *x - by * v(i);
                    }
                }
                for (i, x) in x.iter().enumerate() {
                    let y = wide(&matrices[m * rows * columns + j * rows + i]);
                    let off = (x.re - y.re).hypot(x.im - y.im);
                    assert!(off < 1e-5, "on {}: {x:?}, {y:?}", run.place());
                }
            }
        }
    });
}

// 198: American options by regression

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Right {
    Call,
    Put,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Contract {
    right: Right,
    strike: f64,
    discount: f64,
}

#[device]
impl Contract {
    fn payoff(&self, price: f64) -> f64 {
        match self.right {
            Right::Call => price - self.strike,
            Right::Put => self.strike - price,
        }
        .max(0.0)
    }
}

/// Sums of powers of prices, and of what they are worth later times the first powers.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Moments {
    powers: [f64; 5],
    worths: [f64; 3],
}

#[device]
impl Add for Moments {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Moments {
            powers: std::array::from_fn(|k| self.powers[k] + other.powers[k]),
            worths: std::array::from_fn(|k| self.worths[k] + other.worths[k]),
        }
    }
}

#[device]
impl Moments {
    /// The parabola of least squares, if there is one.
    fn parabola(&self) -> Option<[f64; 3]> {
        let mut rows: [[f64; 4]; 3] = std::array::from_fn(|i| {
            std::array::from_fn(|j| if j < 3 { self.powers[i + j] } else { self.worths[i] })
        });
        for k in 0..3 {
            let pivot = (k..3).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs()))?;
            if rows[pivot][k].abs() < 1e-12 {
                return None;
            }
            rows.swap(k, pivot);
            let chosen = rows[k];
            for (_, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
                let by = row[k] / chosen[k];
                for (x, y) in row.iter_mut().zip(chosen) {
                    *x -= by * y;
                }
            }
        }
        Some(std::array::from_fn(|k| rows[k][3] / rows[k][k]))
    }
}

#[kernel(block_size = 128)]
fn moments(contract: Contract, prices: &[f64], cash: &[f64], sums: &mut [Moments]) {
    let mut own = Moments::default();
    for (price, cash) in prices
        .iter()
        .zip(cash)
        .skip(global_id_x())
        .step_by(global_size_x())
    {
        if contract.payoff(*price) > 0.0 {
            let x = price / contract.strike;
            for (k, power) in own.powers.iter_mut().enumerate() {
                *power += x.powi(k as i32);
            }
            for (k, worth) in own.worths.iter_mut().enumerate() {
                *worth += cash * contract.discount * x.powi(k as i32);
            }
        }
    }
    let sum = block_sum::<Moments, 128>(own);
    if local_id_x() == 0 {
        sums[group_id_x()] = sum;
    }
}

/// What each path is worth a step earlier.
#[kernel]
fn decide(contract: Contract, prices: &[f64], sums: &[Moments], cash: &mut [f64]) {
    let i = global_id_x();
    if i >= cash.len() {
        return;
    }
    let parabola = sums
        .iter()
        .copied()
        .reduce(|a, b| a + b)
        .and_then(|all| all.parabola());
    let now = contract.payoff(prices[i]);
    let x = prices[i] / contract.strike;
    let exercised = now > 0.0 && parabola.is_some_and(|[a, b, c]| now > a + x * (b + x * c));
    cash[i] = if exercised {
        now
    } else {
        cash[i] * contract.discount
    };
}

#[test]
fn options_are_exercised_early() {
    let mut random = Random(198);
    let (paths, steps) = (500usize, 12usize);
    let mut prices = vec![vec![100.0f64; paths]];
    for step in 0..steps {
        let next = prices[step]
            .iter()
            .map(|p| p * (0.002 + 0.12 * (random.unit() + random.unit() - 1.0)).exp());
        let next = next.collect();
        prices.push(next);
    }
    for (right, strike) in [(Right::Put, 102.0), (Right::Call, 99.0)] {
        let discount = 0.995;
        let payoff = |p: f64| {
            if right == Right::Put {
                (strike - p).max(0.0)
            } else {
                (p - strike).max(0.0)
            }
        };
        let mut expected: Vec<f64> = prices[steps].iter().map(|p| payoff(*p)).collect();
        for step in (1..steps).rev() {
            let inside: Vec<usize> = (0..paths).filter(|i| payoff(prices[step][*i]) > 0.0).collect();
            let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
                inside
                    .iter()
                    .map(|i| f(prices[step][*i] / strike, expected[*i] * discount))
                    .sum()
            };
            let m: Vec<f64> = (0..5).map(|k| sum(&|x, _| x.powi(k))).collect();
            let r: Vec<f64> = (0..3).map(|k| sum(&|x, y| y * x.powi(k))).collect();
            // Cramer's rule.
            let det = |c: [[f64; 3]; 3]| {
                c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1])
                    - c[0][1] * (c[1][0] * c[2][2] - c[1][2] * c[2][0])
                    + c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0])
            };
            let matrix: [[f64; 3]; 3] = std::array::from_fn(|i| std::array::from_fn(|j| m[i + j]));
            let b: [f64; 3] = std::array::from_fn(|k| {
                let mut with = matrix;
                for i in 0..3 {
                    with[i][k] = r[i];
                }
                det(with) / det(matrix)
            });
            for i in 0..paths {
                let x = prices[step][i] / strike;
                let now = payoff(prices[step][i]);
                let stay = b[0] + b[1] * x + b[2] * x * x;
                expected[i] = if now > 0.0 && now > stay {
                    now
                } else {
                    expected[i] * discount
                };
            }
        }
        everywhere(|run| {
            let contract = Contract {
                right,
                strike,
                discount,
            };
            let last: Vec<f64> = prices[steps].iter().map(|p| payoff(*p)).collect();
            let (cash, sums) = (run.upload(&last), run.zeros::<Moments>(3));
            for step in (1..steps).rev() {
                let p = run.upload(&prices[step]);
                run.launch(
                    moments::kernel(),
                    LaunchConfig::new(3, 128),
                    args![contract, &p, &cash, &sums],
                );
                run.launch(
                    decide::kernel(),
                    LaunchConfig::linear(paths, 64),
                    args![contract, &p, &sums, &cash],
                );
            }
            run.near(&cash, &expected, 1e-8);
        });
    }
}
