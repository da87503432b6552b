//! How alike two pictures are.

use std::ops::{AddAssign, Mul};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 173: structural similarity

const WINDOW: [f32; 11] = [
    0.001_028_38,
    0.007_598_758,
    0.036_000_773,
    0.109_360_69,
    0.213_005_53,
    0.266_011_72,
    0.213_005_53,
    0.109_360_69,
    0.036_000_773,
    0.007_598_758,
    0.001_028_38,
];
const HALO: usize = WINDOW.len() / 2;
const SIDE: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Moments {
    x: f32,
    y: f32,
    xx: f32,
    yy: f32,
    xy: f32,
}

#[device]
impl Moments {
    fn of([x, y]: [f32; 2]) -> Self {
        let (xx, yy, xy) = (x * x, y * y, x * y);
        Moments { x, y, xx, yy, xy }
    }

    fn similarity(&self) -> f32 {
        let Moments { x, y, xx, yy, xy } = *self;
        let (c1, c2) = (0.01f32.powi(2), 0.03f32.powi(2));
        let (variance_x, variance_y, covariance) = (xx - x * x, yy - y * y, xy - x * y);
        (2.0 * x * y + c1) * (2.0 * covariance + c2) / ((x * x + y * y + c1) * (variance_x + variance_y + c2))
    }
}

#[device]
impl Mul<f32> for Moments {
    type Output = Self;

    fn mul(self, by: f32) -> Self {
        Moments {
            x: self.x * by,
            y: self.y * by,
            xx: self.xx * by,
            yy: self.yy * by,
            xy: self.xy * by,
        }
    }
}

#[device]
impl AddAssign for Moments {
    fn add_assign(&mut self, other: Self) {
        self.x += other.x;
        self.y += other.y;
        self.xx += other.xx;
        self.yy += other.yy;
        self.xy += other.xy;
    }
}

/// A block computes a tile of one channel; what lies outside the pictures is black.
#[kernel(block_size = (16, 16, 1))]
fn similarity(width: usize, height: usize, first: &[f32], second: &[f32], map: &mut [f32]) {
    let tile = shared_array::<[[[f32; 2]; SIDE + 2 * HALO]; SIDE + 2 * HALO]>();
    let rows = shared_array::<[[Moments; SIDE]; SIDE + 2 * HALO]>();
    let (column, row) = (local_id_x(), local_id_y());
    let channel = group_id_z() * width * height;
    let (left, top) = (group_id_x() * SIDE, group_id_y() * SIDE);
    for (y, line) in tile.iter_mut().enumerate().skip(row).step_by(SIDE) {
        for (x, both) in line.iter_mut().enumerate().skip(column).step_by(SIDE) {
            let (px, py) = ((left + x).wrapping_sub(HALO), (top + y).wrapping_sub(HALO));
            *both = if px < width && py < height {
                let i = channel + py * width + px;
                [first[i], second[i]]
            } else {
                [0.0; 2]
            };
        }
    }
    sync_threads();
    for y in (row..SIDE + 2 * HALO).step_by(SIDE) {
        let mut sum = Moments::default();
        for (weight, both) in WINDOW.iter().zip(&tile[y][column..]) {
            sum += Moments::of(*both) * *weight;
        }
        rows[y][column] = sum;
    }
    sync_threads();
    let (x, y) = (left + column, top + row);
    if x < width && y < height {
        let mut sum = Moments::default();
        for (k, weight) in WINDOW.into_iter().enumerate() {
            sum += rows[row + k][column] * weight;
        }
        map[channel + y * width + x] = sum.similarity();
    }
}

#[test]
fn similarity_is_that_of_weighted_neighbourhoods() {
    let mut random = Random(173);
    let (width, height, channels) = (37usize, 21usize, 2usize);
    let count = width * height * channels;
    let first: Vec<f32> = (0..count).map(|_| random.unit() as f32).collect();
    let second: Vec<f32> = first
        .iter()
        .map(|v| (f64::from(*v) * 0.8 + random.between(0.0, 0.2)) as f32)
        .collect();
    let bell: Vec<f64> = (-5..=5).map(|d| (-f64::from(d * d) / 4.5).exp()).collect();
    let norm: f64 = bell.iter().sum();
    let expected: Vec<f64> = (0..count)
        .map(|i| {
            let (c, y, x) = (
                i / (width * height),
                (i / width % height) as i32,
                (i % width) as i32,
            );
            let mean = |f: &dyn Fn(f64, f64) -> f64| {
                let mut sum = 0.0;
                for dy in -5i32..=5 {
                    for dx in -5i32..=5 {
                        let (u, v) = (x + dx, y + dy);
                        if (0..width as i32).contains(&u) && (0..height as i32).contains(&v) {
                            let at = c * width * height + v as usize * width + u as usize;
                            let weight = bell[(dx + 5) as usize] * bell[(dy + 5) as usize] / (norm * norm);
                            sum += weight * f(first[at].into(), second[at].into());
                        }
                    }
                }
                sum
            };
            let (mx, my) = (mean(&|a, _| a), mean(&|_, b| b));
            let (vx, vy) = (mean(&|a, _| a * a) - mx * mx, mean(&|_, b| b * b) - my * my);
            let cov = mean(&|a, b| a * b) - mx * my;
            (2.0 * mx * my + 1e-4) * (2.0 * cov + 9e-4) / ((mx * mx + my * my + 1e-4) * (vx + vy + 9e-4))
        })
        .collect();
    everywhere(|run| {
        let (a, b, map) = (run.upload(&first), run.upload(&second), run.zeros::<f32>(count));
        let config = LaunchConfig::new((3, 2, channels as u32), (16, 16, 1));
        run.launch(similarity::kernel(), config, args![width, height, &a, &b, &map]);
        run.near(&map, &expected, 1e-4);
    });
}
