//! Means of what is alike: pixels and points.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 202: non-local means

/// Reflected about the first and the last element.
#[device]
fn reflected(i: i32, len: usize) -> usize {
    let last = len as i32 - 1;
    match i.abs() {
        i if i > last => (2 * last - i) as usize,
        i => i as usize,
    }
}

#[device]
fn difference<const C: usize>(a: [u8; C], b: [u8; C]) -> u32 {
    a.iter()
        .zip(&b)
        .map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2))
        .sum()
}

#[kernel(block_size = (16, 8))]
fn denoise<const C: usize>(
    width: usize,
    search: i32,
    block: i32,
    strength: f32,
    picture: &[[u8; C]],
    out: &mut [[u8; C]],
) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = picture.len() / width;
    if x >= width || y >= height {
        return;
    }
    let (x, y) = (x as i32, y as i32);
    let pixel = |x: i32, y: i32| picture[reflected(y, height) * width + reflected(x, width)];
    let side = (2 * block + 1) as f32;
    let scale = -1.0 / (strength * strength * side * side * C as f32);
    let mut sums = [0.0f32; C];
    let mut total = 0.0;
    for dy in -search..=search {
        for dx in -search..=search {
            let mut apart = 0;
            for by in -block..=block {
                for bx in -block..=block {
                    apart += difference(pixel(x + bx, y + by), pixel(x + dx + bx, y + dy + by));
                }
            }
            let weight = (apart as f32 * scale).exp();
            for (sum, channel) in sums.iter_mut().zip(pixel(x + dx, y + dy)) {
                *sum += weight * f32::from(channel);
            }
            total += weight;
        }
    }
    out[y as usize * width + x as usize] = sums.map(|sum| (sum / total).round() as u8);
}

fn denoised<const C: usize>(seed: u64)
where
    [u8; C]: GpuType,
{
    let mut random = Random(seed);
    let (width, height) = (25usize, 18usize);
    let picture: Vec<[u8; C]> = (0..width * height)
        .map(|i| {
            let edge = if i % width > 12 { 150 } else { 40 };
            std::array::from_fn(|c| (edge + 10 * c + random.below(40)) as u8)
        })
        .collect();
    let at = |x: i32, y: i32| {
        let fold = |i: i32, n: usize| {
            let n = n as i32 - 1;
            if i < 0 {
                -i
            } else if i > n {
                n - (i - n)
            } else {
                i
            }
        };
        picture[(fold(y, height) * width as i32 + fold(x, width)) as usize]
    };
    let mut expected = Vec::new();
    for i in 0..(width * height) as i32 {
        let (x, y) = (i % width as i32, i / width as i32);
        let mut sums = [0.0f64; C];
        let mut total = 0.0;
        for s in 0..49 {
            let (dx, dy) = (s % 7 - 3, s / 7 - 3);
            let apart: i64 = (0..9)
                .map(|b| (b % 3 - 1, b / 3 - 1))
                .flat_map(|(bx, by)| (0..C).map(move |c| (bx, by, c)))
                .map(|(bx, by, c)| {
                    (i64::from(at(x + bx, y + by)[c]) - i64::from(at(x + dx + bx, y + dy + by)[c])).pow(2)
                })
                .sum();
            let weight = (-(apart as f64) / (400.0 * 9.0 * C as f64)).exp();
            total += weight;
            for c in 0..C {
                sums[c] += weight * f64::from(at(x + dx, y + dy)[c]);
            }
        }
        expected.push(sums.map(|s| s / total));
    }
    everywhere(|run| {
        let (p, out) = (run.upload(&picture), run.zeros::<[u8; C]>(width * height));
        run.launch(
            denoise::kernel::<C>(),
            LaunchConfig::tiled(width, height, (16, 8)),
            args![width, 3i32, 1i32, 20.0f32, &p, &out],
        );
        for (found, expected) in run.read(&out).iter().zip(&expected) {
            for (x, y) in found.iter().zip(expected) {
                assert!(
                    (f64::from(*x) - y).abs() < 0.51,
                    "on {}: {found:?}, {expected:?}",
                    run.place()
                );
            }
        }
    });
}

#[test]
fn noise_is_averaged_away() {
    denoised::<1>(202);
    denoised::<3>(2020);
}

// 203: mean shift

const TILE: usize = 64;

/// Moves each point to the weighted mean of the data around it.
#[kernel(block_size = 64)]
fn mean_shift<const D: usize>(radius: f32, bandwidth: f32, data: &[[f32; D]], points: &mut [[f32; D]]) {
    let tile = shared_array::<[[f32; D]; TILE]>();
    let (i, lane) = (global_id_x(), local_id_x());
    let own = points.get(i).copied().unwrap_or([0.0; D]);
    let mut sums = [0.0; D];
    let mut total = 0.0;
    for first in (0..data.len()).step_by(TILE) {
        if let Some(point) = data.get(first + lane) {
            tile[lane] = *point;
        }
        sync_threads();
        for other in &tile[..TILE.min(data.len() - first)] {
            let apart: f32 = own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
            if apart < radius * radius {
                let weight = (-apart / (2.0 * bandwidth * bandwidth)).exp();
                for (sum, x) in sums.iter_mut().zip(other) {
                    *sum += weight * x;
                }
                total += weight;
            }
        }
        sync_threads();
    }
    if i < points.len() && total > 0.0 {
        points[i] = sums.map(|sum| sum / total);
    }
}

#[test]
fn points_find_their_modes() {
    let mut random = Random(203);
    let centres = [[0.0, 0.0, 0.0], [6.0, 1.0, -2.0], [-4.0, 5.0, 3.0]];
    let data: Vec<[f32; 3]> = (0..150)
        .map(|i| centres[i % 3].map(|c| (c + random.between(-1.0, 1.0)) as f32))
        .collect();
    let mut expected: Vec<[f64; 3]> = data.iter().map(|p| p.map(f64::from)).collect();
    for _ in 0..5 {
        for point in &mut expected {
            let mut sums = [0.0; 4];
            for other in &data {
                let d: f64 = (0..3).map(|k| (point[k] - f64::from(other[k])).powi(2)).sum();
                if d < 9.0 {
                    let w = (-d / 2.0).exp();
                    for k in 0..3 {
                        sums[k] += w * f64::from(other[k]);
                    }
                    sums[3] += w;
                }
            }
            *point = std::array::from_fn(|k| sums[k] / sums[3]);
        }
    }
    everywhere(|run| {
        let (d, p) = (run.upload(&data), run.upload(&data));
        for _ in 0..5 {
            run.launch(
                mean_shift::kernel::<3>(),
                LaunchConfig::linear(150, 64),
                args![3.0f32, 1.0f32, &d, &p],
            );
        }
        for (found, expected) in run.read(&p).iter().zip(&expected) {
            for (x, y) in found.iter().zip(expected) {
                assert!(
                    (f64::from(*x) - y).abs() < 1e-4,
                    "on {}: {found:?}, {expected:?}",
                    run.place()
                );
            }
        }
    });
}
