//! Pictures: filters of a pixel's neighbourhood.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

/// A grid of lanes for a picture.
pub(crate) fn tiles(width: usize, height: usize) -> LaunchConfig {
    LaunchConfig::tiled(width as u32, height as u32, (8, 8))
}

pub(crate) fn noise(count: usize, seed: u64) -> Vec<u8> {
    Random(seed).bytes(count)
}

// 34: bilateral filter

#[kernel(block_size = (8, 8))]
fn bilateral(
    width: usize,
    height: usize,
    radius: i32,
    near: f32,
    alike: f32,
    image: &[f32],
    out: &mut [f32],
) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height {
        return;
    }
    let own = image[y * width + x];
    let (mut sum, mut total) = (0.0, 0.0);
    for dy in -radius..=radius {
        for dx in -radius..=radius {
            let sx = (x as i32 + dx).clamp(0, width as i32 - 1) as usize;
            let sy = (y as i32 + dy).clamp(0, height as i32 - 1) as usize;
            let value = image[sy * width + sx];
            let apart = (dx * dx + dy * dy) as f32;
            let weight = (-apart / (2.0 * near * near) - (value - own).powi(2) / (2.0 * alike * alike)).exp();
            sum += weight * value;
            total += weight;
        }
    }
    out[y * width + x] = sum / total;
}

#[test]
fn bilateral_smooths() {
    let (width, height, radius) = (37usize, 21usize, 3i32);
    let image: Vec<f32> = noise(width * height, 34)
        .iter()
        .map(|v| f32::from(*v) / 255.0)
        .collect();
    let at = |x: i32, y: i32| {
        let (x, y) = (x.max(0).min(width as i32 - 1), y.max(0).min(height as i32 - 1));
        f64::from(image[y as usize * width + x as usize])
    };
    let mut expected = Vec::new();
    for y in 0..height as i32 {
        for x in 0..width as i32 {
            let (mut sum, mut total) = (0.0, 0.0);
            for i in 0..(2 * radius + 1).pow(2) {
                let (dx, dy) = (i % (2 * radius + 1) - radius, i / (2 * radius + 1) - radius);
                let value = at(x + dx, y + dy);
                let space = f64::from(dx).hypot(f64::from(dy)) / 2.0;
                let range = (value - at(x, y)) / 0.2;
                let weight = (-0.5 * (space * space + range * range)).exp();
                sum += weight * value;
                total += weight;
            }
            expected.push(sum / total);
        }
    }
    everywhere(|run| {
        let (image, out) = (run.upload(&image), run.zeros::<f32>(image.len()));
        run.launch(
            bilateral::kernel(),
            tiles(width, height),
            args![width, height, radius, 2.0f32, 0.2f32, &image, &out],
        );
        run.near(&out, &expected, 1e-5);
    });
}

// 35: median of nine

#[device]
fn order(v: &mut [u8; 9], i: usize, j: usize) {
    let (a, b) = (v[i].min(v[j]), v[i].max(v[j]));
    v[i] = a;
    v[j] = b;
}

#[device]
fn median(mut v: [u8; 9]) -> u8 {
    const NETWORK: [(usize, usize); 19] = [
        (1, 2),
        (4, 5),
        (7, 8),
        (0, 1),
        (3, 4),
        (6, 7),
        (1, 2),
        (4, 5),
        (7, 8),
        (0, 3),
        (5, 8),
        (4, 7),
        (3, 6),
        (1, 4),
        (2, 5),
        (4, 7),
        (4, 2),
        (6, 4),
        (4, 2),
    ];
    for (i, j) in NETWORK {
        order(&mut v, i, j);
    }
    v[4]
}

#[kernel(block_size = (8, 8))]
fn median_filter(width: usize, image: &[[u8; 4]], out: &mut [[u8; 4]]) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = image.len() / width;
    if x >= width || y >= height {
        return;
    }
    let mut pixels = [[0u8; 4]; 9];
    for (k, pixel) in pixels.iter_mut().enumerate() {
        let sx = (x + k % 3).saturating_sub(1).min(width - 1);
        let sy = (y + k / 3).saturating_sub(1).min(height - 1);
        *pixel = image[sy * width + sx];
    }
    out[y * width + x] = std::array::from_fn(|channel| median(pixels.map(|pixel| pixel[channel])));
}

#[test]
fn median_is_the_middle() {
    let (width, height) = (29usize, 18usize);
    let image: Vec<[u8; 4]> = noise(4 * width * height, 35)
        .chunks(4)
        .map(|c| c.try_into().unwrap())
        .collect();
    let expected: Vec<[u8; 4]> = (0..width * height)
        .map(|i| {
            std::array::from_fn(|channel| {
                let mut around: Vec<u8> = (0..9)
                    .map(|k| {
                        let x = (i % width + k % 3).max(1).min(width) - 1;
                        let y = (i / width + k / 3).max(1).min(height) - 1;
                        image[y * width + x][channel]
                    })
                    .collect();
                around.sort();
                around[4]
            })
        })
        .collect();
    everywhere(|run| {
        let (image, out) = (run.upload(&image), run.zeros::<[u8; 4]>(image.len()));
        run.launch(
            median_filter::kernel(),
            tiles(width, height),
            args![width, &image, &out],
        );
        run.holds(&out, &expected);
    });
}

// 36: a Bayer mosaic

#[kernel(block_size = (8, 8))]
fn debayer(width: usize, height: usize, mosaic: &[u8], out: &mut [[u8; 3]]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height {
        return;
    }
    // Mirrored at the edges, so that a neighbour's colour stays its colour.
    let at = |dx: isize, dy: isize| {
        let mirrored = |v: usize, d: isize, n: usize| {
            let moved = v as isize + d;
            if moved < 0 || moved >= n as isize {
                (v as isize - d) as usize
            } else {
                moved as usize
            }
        };
        u32::from(mosaic[mirrored(y, dy, height) * width + mirrored(x, dx, width)])
    };
    let own = at(0, 0);
    let beside = (at(-1, 0) + at(1, 0)).div_ceil(2);
    let above = (at(0, -1) + at(0, 1)).div_ceil(2);
    let cross = (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) + 2) / 4;
    let diagonal = (at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1) + 2) / 4;
    let colour = match (y % 2, x % 2) {
        (0, 0) => [own, cross, diagonal],
        (0, _) => [beside, own, above],
        (_, 0) => [above, own, beside],
        _ => [diagonal, cross, own],
    };
    out[y * width + x] = colour.map(|v| v as u8);
}

#[test]
fn debayer_interpolates() {
    let (width, height) = (22usize, 14usize);
    let mosaic = noise(width * height, 36);
    let colour_of = |x: usize, y: usize| [[0, 1], [1, 2]][y % 2][x % 2];
    let mirror = |v: i32, n: usize| {
        if v < 0 {
            -v
        } else if v >= n as i32 {
            2 * (n as i32 - 1) - v
        } else {
            v
        }
    };
    let expected: Vec<[u8; 3]> = (0..width * height)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            std::array::from_fn(|channel| {
                if colour_of(x, y) == channel {
                    return mosaic[i];
                }
                // The mean of all neighbours that have the colour.
                let (mut sum, mut count) = (0u32, 0u32);
                for k in 0..9 {
                    let sx = mirror(x as i32 + k % 3 - 1, width) as usize;
                    let sy = mirror(y as i32 + k / 3 - 1, height) as usize;
                    if colour_of(sx, sy) == channel {
                        sum += u32::from(mosaic[sy * width + sx]);
                        count += 1;
                    }
                }
                ((sum + count / 2) / count) as u8
            })
        })
        .collect();
    everywhere(|run| {
        let (mosaic, out) = (run.upload(&mosaic), run.zeros::<[u8; 3]>(mosaic.len()));
        run.launch(
            debayer::kernel(),
            tiles(width, height),
            args![width, height, &mosaic, &out],
        );
        run.holds(&out, &expected);
    });
}

// 39: morphology

#[kernel(block_size = (8, 8))]
fn morphology<const DILATE: bool>(
    width: usize,
    height: usize,
    reach_x: usize,
    reach_y: usize,
    image: &[u8],
    out: &mut [u8],
) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height {
        return;
    }
    let columns = x.saturating_sub(reach_x)..(x + reach_x + 1).min(width);
    let rows = y.saturating_sub(reach_y)..(y + reach_y + 1).min(height);
    let mut extreme = image[y * width + x];
    for value in rows.flat_map(|row| &image[row * width..][columns.clone()]) {
        extreme = if DILATE {
            extreme.max(*value)
        } else {
            extreme.min(*value)
        };
    }
    out[y * width + x] = extreme;
}

#[test]
fn morphology_takes_extremes() {
    let (width, height) = (27usize, 19usize);
    let image = noise(width * height, 39);
    let extreme = |dilate: bool| -> Vec<u8> {
        (0..width * height)
            .map(|i| {
                let (x, y) = ((i % width) as i32, (i / width) as i32);
                let near = (0..width * height).filter(|j| {
                    let (a, b) = ((j % width) as i32, (j / width) as i32);
                    (a - x).abs() <= 2 && (b - y).abs() <= 1
                });
                let values = near.map(|j| image[j]);
                if dilate { values.max() } else { values.min() }.unwrap()
            })
            .collect()
    };
    let (dilated, eroded) = (extreme(true), extreme(false));
    everywhere(|run| {
        let (image, out) = (run.upload(&image), run.zeros::<u8>(image.len()));
        for (kernel, expected) in [
            (morphology::kernel::<true>(), &dilated),
            (morphology::kernel::<false>(), &eroded),
        ] {
            run.launch(
                kernel,
                tiles(width, height),
                args![width, height, 2usize, 1usize, &image, &out],
            );
            run.holds(&out, expected);
        }
    });
}
