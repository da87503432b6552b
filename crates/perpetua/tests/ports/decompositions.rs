//! Factors and singular values of small matrices.

use std::ops::{Index, IndexMut, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::Vec3;

// 131: MAGMA's getf2

const SIDE: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Complex {
    re: f64,
    im: f64,
}

#[device]
impl Complex {
    /// LAPACK's cheap magnitude.
    fn magnitude(self) -> f64 {
        self.re.abs() + self.im.abs()
    }

    fn recip(self) -> Self {
        let square = self.re * self.re + self.im * self.im;
        Complex {
            re: self.re / square,
            im: -self.im / square,
        }
    }
}

#[device]
impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

#[device]
impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Complex {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

#[kernel(block_size = (16, 16))]
fn lu(n: usize, matrices: &mut [[[Complex; SIDE]; SIDE]], pivots: &mut [[u32; SIDE]], info: &mut [u32]) {
    let a = shared_array::<[[Complex; SIDE]; SIDE]>();
    let pivot = shared_array::<[u32; 1]>();
    let (column, row, block) = (local_id_x(), local_id_y(), group_id_x());
    a[row][column] = matrices[block][row][column];
    sync_threads();
    let mut singular = 0;
    for k in 0..n {
        if row == 0 && column == 0 {
            let best = (k..n).max_by(|i, j| {
                let order = a[*i][k].magnitude().total_cmp(&a[*j][k].magnitude());
                order.then(j.cmp(i))
            });
            pivot[0] = best.unwrap_or(k) as u32;
            pivots[block][k] = pivot[0];
        }
        sync_threads();
        let chosen = pivot[0] as usize;
        if row == k && chosen != k {
            (a[k][column], a[chosen][column]) = (a[chosen][column], a[k][column]);
        }
        sync_threads();
        let top = a[k][k];
        if top.magnitude() == 0.0 && singular == 0 {
            singular = k as u32 + 1;
        }
        let inside = row > k && row < n && column < n;
        let factor = if top.magnitude() > 0.0 {
            a[row][k] * top.recip()
        } else {
            a[row][k]
        };
        let change = factor * a[k][column];
        sync_threads();
        if inside && column == k {
            a[row][k] = factor;
        } else if inside && column > k {
            a[row][column] = a[row][column] - change;
        }
        sync_threads();
    }
    matrices[block][row][column] = a[row][column];
    if row == 0 && column == 0 {
        info[block] = singular;
    }
}

#[test]
fn lu_multiplies_back() {
    let mut random = Random(131);
    let (count, n) = (7, 13);
    let mut matrices = vec![[[Complex::default(); SIDE]; SIDE]; count];
    for (m, matrix) in matrices.iter_mut().enumerate() {
        for row in matrix.iter_mut() {
            for entry in row.iter_mut() {
                *entry = Complex {
                    re: random.between(-1.0, 1.0),
                    im: random.between(-1.0, 1.0),
                };
            }
        }
        if m == 3 {
            for row in matrix.iter_mut() {
                row[5] = Complex::default();
            }
        }
    }
    everywhere(|run| {
        let (factors, pivots, info) = (
            run.upload(&matrices),
            run.zeros::<[u32; SIDE]>(count),
            run.zeros::<u32>(count),
        );
        run.launch(
            lu::kernel(),
            LaunchConfig::new(count as u32, (16, 16)),
            args![n, &factors, &pivots, &info],
        );
        run.holds(&info, &[0, 0, 0, 6, 0, 0, 0]);
        let (factors, pivots) = (run.read(&factors), run.read(&pivots));
        for m in 0..count {
            let mut rows: Vec<usize> = (0..n).collect();
            for k in 0..n {
                rows.swap(k, pivots[m][k] as usize);
            }
            for i in 0..n {
                for j in 0..n {
                    let (mut re, mut im) = (0.0, 0.0);
                    for k in 0..=i.min(j) {
                        let u = factors[m][k][j];
                        let l = if k == i {
                            Complex { re: 1.0, im: 0.0 }
                        } else {
                            factors[m][i][k]
                        };
                        re += l.re * u.re - l.im * u.im;
                        im += l.re * u.im + l.im * u.re;
                        let size = l.re.abs() + l.im.abs();
                        assert!(m == 3 || k == i || size <= 2.0 + 1e-12, "on {}", run.place());
                    }
                    let wanted = matrices[m][rows[i]][j];
                    let off = (re - wanted.re).abs() + (im - wanted.im).abs();
                    assert!(off < 1e-12, "{m} {i} {j}: {off} on {}", run.place());
                }
            }
        }
    });
}

// 133: HeCBench's svd3x3

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Mat3 {
    columns: [Vec3; 3],
}

#[device]
impl Mat3 {
    const IDENTITY: Self = Self {
        columns: [
            Vec3::new(1.0, 0.0, 0.0),
            Vec3::new(0.0, 1.0, 0.0),
            Vec3::new(0.0, 0.0, 1.0),
        ],
    };

    fn rotate(&mut self, p: usize, q: usize, (s, c): (f32, f32)) {
        let (a, b) = (self[p], self[q]);
        self[p] = a * c - b * s;
        self[q] = a * s + b * c;
    }
}

#[device]
impl Index<usize> for Mat3 {
    type Output = Vec3;

    fn index(&self, column: usize) -> &Vec3 {
        &self.columns[column]
    }
}

#[device]
impl IndexMut<usize> for Mat3 {
    fn index_mut(&mut self, column: usize) -> &mut Vec3 {
        &mut self.columns[column]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Svd {
    u: Mat3,
    s: [f32; 3],
    v: Mat3,
}

#[kernel]
fn svd3(matrices: &[Mat3], out: &mut [Svd]) {
    let id = global_id_x();
    let Some(&a) = matrices.get(id) else { return };
    let (mut work, mut v) = (a, Mat3::IDENTITY);
    for _sweep in 0..8 {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            let (pp, qq, pq) = (
                work[p].length_squared(),
                work[q].length_squared(),
                work[p].dot(work[q]),
            );
            if pq.abs() <= 1e-7 * (pp * qq).sqrt() {
                continue;
            }
            let zeta = (qq - pp) / (2.0 * pq);
            let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
            let c = (1.0 + t * t).sqrt().recip();
            work.rotate(p, q, (c * t, c));
            v.rotate(p, q, (c * t, c));
        }
    }
    let lengths = work.columns.map(|column| column.length());
    let mut order = [0, 1, 2];
    order.sort_by(|a: &usize, b| lengths[*b].total_cmp(&lengths[*a]));
    let u = order.map(|k| {
        if lengths[k] > 0.0 {
            work[k] * lengths[k].recip()
        } else {
            Vec3::ZERO
        }
    });
    out[id] = Svd {
        u: Mat3 { columns: u },
        s: order.map(|k| lengths[k]),
        v: Mat3 {
            columns: order.map(|k| v[k]),
        },
    };
}

#[test]
fn svd3_multiplies_back() {
    let mut random = Random(133);
    let matrices: Vec<Mat3> = (0..100)
        .map(|_| Mat3 {
            columns: std::array::from_fn(|_| random.place(2.0)),
        })
        .collect();
    let flat = |m: &Mat3| m.columns.map(|c| [c.x, c.y, c.z].map(f64::from));
    everywhere(|run| {
        let out = run.zeros::<Svd>(matrices.len());
        run.launch(
            svd3::kernel(),
            LaunchConfig::linear(matrices.len(), 32),
            args![&run.upload(&matrices), &out],
        );
        for (svd, a) in run.read(&out).iter().zip(&matrices) {
            let (u, v, a, s) = (flat(&svd.u), flat(&svd.v), flat(a), svd.s.map(f64::from));
            assert!(s[0] >= s[1] && s[1] >= s[2], "on {}", run.place());
            for i in 0..3 {
                for j in 0..3 {
                    let back: f64 = (0..3).map(|k| u[k][j] * s[k] * v[k][i]).sum();
                    assert!((back - a[i][j]).abs() < 1e-5, "on {}", run.place());
                    for m in [&u, &v] {
                        let dot: f64 = (0..3).map(|k| m[i][k] * m[j][k]).sum();
                        let wanted = if i == j { 1.0 } else { 0.0 };
                        assert!((dot - wanted).abs() < 1e-4, "on {}", run.place());
                    }
                }
            }
        }
    });
}
