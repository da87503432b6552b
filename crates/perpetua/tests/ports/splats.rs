//! Gaussians on the screen.

use std::ops::Mul;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 42: Gaussian splats

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Mat3 {
    rows: [[f32; 3]; 3],
}

#[device]
impl Mat3 {
    fn transpose(self) -> Mat3 {
        let mut rows = [[0.0; 3]; 3];
        for (i, row) in self.rows.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                rows[j][i] = *value;
            }
        }
        Mat3 { rows }
    }
}

#[device]
impl Mul for Mat3 {
    type Output = Mat3;

    fn mul(self, other: Mat3) -> Mat3 {
        let columns = other.transpose().rows;
        Mat3 {
            rows: self
                .rows
                .map(|row| columns.map(|column| row.iter().zip(&column).map(|(a, b)| a * b).sum())),
        }
    }
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Gaussian {
    mean: [f32; 3],
    scale: [f32; 3],
    /// w, x, y, z.
    turn: [f32; 4],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Splat {
    center: [f32; 2],
    conic: [f32; 3],
    radius: u32,
}

#[device]
fn rotation(turn: [f32; 4]) -> Mat3 {
    let length = turn.iter().map(|v| v * v).sum::<f32>().sqrt();
    let [w, x, y, z] = turn.map(|v| v / length);
    Mat3 {
        rows: [
            [
                1.0 - 2.0 * (y * y + z * z),
                2.0 * (x * y - w * z),
                2.0 * (x * z + w * y),
            ],
            [
                2.0 * (x * y + w * z),
                1.0 - 2.0 * (x * x + z * z),
                2.0 * (y * z - w * x),
            ],
            [
                2.0 * (x * z - w * y),
                2.0 * (y * z + w * x),
                1.0 - 2.0 * (x * x + y * y),
            ],
        ],
    }
}

#[device]
fn splat(gaussian: &Gaussian, focal: f32, size: [u32; 2]) -> Option<Splat> {
    let [x, y, z] = gaussian.mean;
    if z < 0.2 {
        return None;
    }
    let turn = rotation(gaussian.turn);
    let mut scaled = turn;
    for row in &mut scaled.rows {
        for (value, scale) in row.iter_mut().zip(gaussian.scale) {
            *value *= scale;
        }
    }
    let covariance = scaled * scaled.transpose();
    let project = Mat3 {
        rows: [
            [focal / z, 0.0, -focal * x / (z * z)],
            [0.0, focal / z, -focal * y / (z * z)],
            [0.0; 3],
        ],
    };
    let Mat3 { rows: flat } = project * covariance * project.transpose();
    let (a, b, c) = (flat[0][0] + 0.3, flat[0][1], flat[1][1] + 0.3);
    let determinant = a * c - b * b;
    if determinant <= 0.0 {
        return None;
    }
    let middle = (a + c) / 2.0;
    let largest = middle + (middle * middle - determinant).max(0.1).sqrt();
    let radius = (3.0 * largest.sqrt()).ceil();
    let center = [
        focal * x / z + size[0] as f32 / 2.0,
        focal * y / z + size[1] as f32 / 2.0,
    ];
    let outside = |v: f32, size: u32| v + radius < 0.0 || v - radius > size as f32;
    if center.iter().zip(size).any(|(v, size)| outside(*v, size)) {
        return None;
    }
    Some(Splat {
        center,
        conic: [c / determinant, -b / determinant, a / determinant],
        radius: radius as u32,
    })
}

#[kernel]
fn project(gaussians: &[Gaussian], focal: f32, size: [u32; 2], splats: &mut [Splat]) {
    let i = global_id_x();
    if i < gaussians.len() {
        let nothing = Splat {
            center: [0.0; 2],
            conic: [0.0; 3],
            radius: 0,
        };
        splats[i] = splat(&gaussians[i], focal, size).unwrap_or(nothing);
    }
}

#[test]
fn splats_are_projected() {
    let mut random = Random(42);
    let mut unit = || (random.bits() % 20001) as f32 / 10000.0 - 1.0;
    let gaussians: Vec<Gaussian> = (0..300)
        .map(|_| Gaussian {
            mean: [2.0 * unit(), 2.0 * unit(), 1.7 + 1.6 * unit()],
            scale: [0.06 + 0.05 * unit(), 0.06 + 0.05 * unit(), 0.06 + 0.05 * unit()],
            turn: [1.5 + unit(), unit(), unit(), unit()],
        })
        .collect();
    let (focal, size) = (100.0f32, [160u32, 120]);
    let exact: Vec<Option<([f64; 2], [f64; 3], f64)>> = gaussians
        .iter()
        .map(|g| {
            let [x, y, z] = g.mean.map(f64::from);
            if z < 0.2 {
                return None;
            }
            let f = f64::from(focal);
            let n = g.turn.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            let [w, i, j, k] = g.turn.map(|v| f64::from(v) / n);
            // The unit vectors turned, each as long as its scale, seen by the linear map at the mean.
            let axes = [
                [
                    1. - 2. * (j * j + k * k),
                    2. * (i * j + w * k),
                    2. * (i * k - w * j),
                ],
                [
                    2. * (i * j - w * k),
                    1. - 2. * (i * i + k * k),
                    2. * (j * k + w * i),
                ],
                [
                    2. * (i * k + w * j),
                    2. * (j * k - w * i),
                    1. - 2. * (i * i + j * j),
                ],
            ];
            let (mut a, mut b, mut c) = (0.3, 0.0, 0.3);
            for (axis, scale) in axes.iter().zip(g.scale) {
                let [u, v, d] = axis.map(|part| part * f64::from(scale));
                let (p, q) = (f / z * u - f * x / (z * z) * d, f / z * v - f * y / (z * z) * d);
                (a, b, c) = (a + p * p, b + p * q, c + q * q);
            }
            let determinant = a * c - b * b;
            let largest = (a + c) / 2.0 + (((a + c) / 2.0).powi(2) - determinant).max(0.1).sqrt();
            let radius = 3.0 * largest.sqrt();
            let center = [f * x / z + 80.0, f * y / z + 60.0];
            Some((
                center,
                [c / determinant, -b / determinant, a / determinant],
                radius,
            ))
        })
        .collect();
    everywhere(|run| {
        let (gaussians, splats) = (run.upload(&gaussians), run.zeros::<Splat>(gaussians.len()));
        let config = LaunchConfig::linear(exact.len(), 64);
        run.launch(project::kernel(), config, args![&gaussians, focal, size, &splats]);
        let mut seen = 0;
        for (i, (found, exact)) in run.read(&splats).iter().zip(&exact).enumerate() {
            let Some((center, conic, radius)) = exact else {
                assert_eq!(*found, Splat::default(), "{i}");
                continue;
            };
            let margins = [center[0], 160.0 - center[0], center[1], 120.0 - center[1]];
            let inside = margins.into_iter().fold(f64::INFINITY, f64::min) + radius.ceil();
            if found.radius == 0 {
                assert!(inside < 1.1, "{i}: {inside}");
                continue;
            }
            seen += 1;
            assert!(inside > -1.1, "{i}: {inside}");
            assert!(
                (f64::from(found.radius) - radius.ceil()).abs() < 1.1
                    && radius - f64::from(found.radius) < 1e-3
            );
            let pairs = found
                .center
                .iter()
                .zip(center)
                .chain(found.conic.iter().zip(conic));
            for (found, exact) in pairs {
                assert!(
                    (f64::from(*found) - exact).abs() < 1e-3 * exact.abs().max(1.0),
                    "{i}: {found}, {exact}"
                );
            }
        }
        assert!(seen > 100, "{seen}");
    });
}
