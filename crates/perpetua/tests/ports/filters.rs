//! Pictures that are sampled, sharpened and convolved.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 201: cubic B-splines

/// sqrt(3) - 2
const POLE: f32 = -0.267_949_2;
const GAIN: f32 = 6.0;
/// Where the pole's powers do not count any more.
const HORIZON: usize = 14;

/// Values to coefficients, each `stride` behind the last one, mirrored at both ends.
#[device]
fn to_coefficients(line: &mut [f32], stride: usize, len: usize) {
    let powers = std::iter::successors(Some(1.0f32), |p| Some(p * POLE));
    let first: f32 = line
        .iter()
        .step_by(stride)
        .take(len.min(HORIZON))
        .zip(powers)
        .map(|(v, p)| v * p)
        .sum();
    let mut before = GAIN * first;
    line[0] = before;
    for value in line.iter_mut().step_by(stride).take(len).skip(1) {
        before = GAIN * *value + POLE * before;
        *value = before;
    }
    let mut behind = POLE / (POLE * POLE - 1.0) * (before + POLE * line[(len - 2) * stride]);
    line[(len - 1) * stride] = behind;
    for k in (0..len - 1).rev() {
        let value = &mut line[k * stride];
        behind = POLE * (behind - *value);
        *value = behind;
    }
}

/// A lane a row, or a column.
#[kernel]
fn prefilter(width: usize, columns: bool, picture: &mut [f32]) {
    let i = global_id_x();
    let height = picture.len() / width;
    if columns && i < width {
        to_coefficients(&mut picture[i..], width, height);
    } else if !columns && i < height {
        to_coefficients(&mut picture[i * width..(i + 1) * width], 1, width);
    }
}

#[device]
fn spline(t: f32) -> [f32; 4] {
    let s = 1.0 - t;
    [
        s * s * s / 6.0,
        2.0 / 3.0 - 0.5 * t * t * (2.0 - t),
        2.0 / 3.0 - 0.5 * s * s * (2.0 - s),
        t * t * t / 6.0,
    ]
}

#[device]
fn mirrored(i: i32, len: usize) -> usize {
    let last = len as i32 - 1;
    (last - (last - i.abs()).abs()) as usize
}

#[kernel]
fn sample(width: usize, coefficients: &[f32], places: &[[f32; 2]], values: &mut [f32]) {
    let i = global_id_x();
    let Some([x, y]) = places.get(i) else {
        return;
    };
    let height = coefficients.len() / width;
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (spline(x - left), spline(y - top));
    values[i] = (-1..)
        .zip(down)
        .map(|(dy, wy)| {
            let row = &coefficients[mirrored(top as i32 + dy, height) * width..][..width];
            let sum: f32 = (-1..)
                .zip(across)
                .map(|(dx, wx)| wx * row[mirrored(left as i32 + dx, width)])
                .sum();
            wy * sum
        })
        .sum();
}

/// Coefficients of a line, as the solution of their equations.
fn solved(line: &[f64]) -> Vec<f64> {
    let n = line.len();
    let (mut upper, mut right) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        let lower = if i == 0 {
            0.0
        } else if i == n - 1 {
            2.0
        } else {
            1.0
        };
        let above = if i == 0 { 2.0 } else { 1.0 };
        let (u, r) = if i == 0 {
            (0.0, 0.0)
        } else {
            (upper[i - 1], right[i - 1])
        };
        let middle = 4.0 - lower * u;
        upper[i] = above / middle;
        right[i] = (6.0 * line[i] - lower * r) / middle;
    }
    for i in (0..n - 1).rev() {
        right[i] -= upper[i] * right[i + 1];
    }
    right
}

#[test]
fn splines_go_through_the_picture() {
    let mut random = Random(201);
    let (width, height) = (37usize, 29usize);
    let picture: Vec<f32> = (0..width * height)
        .map(|_| random.between(0.0, 1.0) as f32)
        .collect();
    let mut grid: Vec<Vec<f64>> = picture
        .chunks(width)
        .map(|row| solved(&row.iter().map(|v| f64::from(*v)).collect::<Vec<_>>()))
        .collect();
    for x in 0..width {
        let column: Vec<f64> = grid.iter().map(|row| row[x]).collect();
        for (row, v) in grid.iter_mut().zip(solved(&column)) {
            row[x] = v;
        }
    }
    let places: Vec<[f32; 2]> = (0..200)
        .map(|i| match i {
            0..50 => [(i % 36) as f32, (i % 28) as f32],
            _ => [random.between(0.0, 36.0) as f32, random.between(0.0, 28.0) as f32],
        })
        .collect();
    let base = |x: f64| match x.abs() {
        x if x < 1.0 => 2.0 / 3.0 - x * x + x * x * x / 2.0,
        x if x < 2.0 => (2.0 - x).powi(3) / 6.0,
        _ => 0.0,
    };
    let expected: Vec<f64> = places
        .iter()
        .map(|[x, y]| {
            let mut sum = 0.0;
            for j in -3..height as i32 + 3 {
                for i in -3..width as i32 + 3 {
                    let fold = |i: i32, n: i32| {
                        (if i < 0 {
                            -i
                        } else if i >= n {
                            2 * n - 2 - i
                        } else {
                            i
                        }) as usize
                    };
                    sum += base(f64::from(*x) - f64::from(i))
                        * base(f64::from(*y) - f64::from(j))
                        * grid[fold(j, height as i32)][fold(i, width as i32)];
                }
            }
            sum
        })
        .collect();
    everywhere(|run| {
        let (p, at, out) = (run.upload(&picture), run.upload(&places), run.zeros::<f32>(200));
        run.launch(
            prefilter::kernel(),
            LaunchConfig::linear(height, 32),
            args![width, false, &p],
        );
        run.launch(
            prefilter::kernel(),
            LaunchConfig::linear(width, 32),
            args![width, true, &p],
        );
        run.near(&p, &grid.concat(), 1e-4);
        run.launch(
            sample::kernel(),
            LaunchConfig::linear(200, 32),
            args![width, &p, &at, &out],
        );
        run.near(&out, &expected, 1e-4);
    });
}

// 204: robust contrast-adaptive sharpening

#[device]
fn luma([r, g, b]: [f16; 3]) -> f16 {
    let half = f16::from_f32(0.5);
    r * half + g + b * half
}

/// `sharpness` is 1 for the most.
#[kernel]
fn sharpen(width: usize, sharpness: f32, denoise: bool, picture: &[[f16; 3]], out: &mut [[f16; 3]]) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = picture.len() / width;
    if x >= width || y >= height {
        return;
    }
    let at = |x: usize, y: usize| picture[y.min(height - 1) * width + x.min(width - 1)];
    let own = at(x, y);
    let around = [
        at(x, y.saturating_sub(1)),
        at(x.saturating_sub(1), y),
        at(x + 1, y),
        at(x, y + 1),
    ];
    let (zero, one, four) = (f16::from_f32(0.0), f16::from_f32(1.0), f16::from_f32(4.0));

    let mut lobe = f16::NEG_INFINITY;
    for c in 0..3 {
        let ring = around.map(|p| p[c]);
        let least = ring.into_iter().fold(ring[0], f16::min);
        let most = ring.into_iter().fold(ring[0], f16::max);
        let low = least.min(own[c]) / (four * most);
        let high = (one - most.max(own[c])) / (four * least - four);
        lobe = lobe.max(high.max(-low));
    }
    lobe = lobe.min(zero).max(f16::from_f32(-0.1875)) * f16::from_f32(sharpness);
    if denoise {
        let lumas = around.map(luma);
        let middle = luma(own);
        let mean = lumas.iter().fold(zero, |sum, l| sum + *l) / four;
        let least = lumas.iter().fold(middle, |a, b| a.min(*b));
        let most = lumas.iter().fold(middle, |a, b| a.max(*b));
        let noise = ((mean - middle).abs() / (most - least)).clamp(zero, one);
        lobe = lobe * (one - noise / (one + one));
    }
    let total = four * lobe + one;
    out[y * width + x] = std::array::from_fn(|c| {
        let ring = around.iter().fold(zero, |sum, p| sum + p[c]);
        (lobe * ring + own[c]) / total
    });
}

#[test]
fn pictures_are_sharpened() {
    let mut random = Random(204);
    let (width, height) = (30usize, 20usize);
    let picture: Vec<[f16; 3]> = (0..width * height)
        .map(|i| {
            let base = if (i % width) * 2 > i / width * 3 { 0.7 } else { 0.3 };
            std::array::from_fn(|_| f16::from_f32((base + random.between(-0.2, 0.2)) as f32))
        })
        .collect();
    for denoise in [false, true] {
        let mut expected = Vec::new();
        for i in 0..width * height {
            let (x, y) = (i % width, i / width);
            let get = |x: usize, y: usize| picture[y * width + x].map(f32::from);
            let e = get(x, y);
            let n = [
                get(x, y.max(1) - 1),
                get(x.max(1) - 1, y),
                get((x + 1).min(width - 1), y),
                get(x, (y + 1).min(height - 1)),
            ];
            let mut lobe = f32::MIN;
            for c in 0..3 {
                let v = n.map(|p| p[c]);
                let (low, high) = (
                    v.into_iter().fold(9.0, f32::min),
                    v.into_iter().fold(-9.0, f32::max),
                );
                lobe = lobe
                    .max(-low.min(e[c]) / (4.0 * high))
                    .max((1.0 - high.max(e[c])) / (4.0 * low - 4.0));
            }
            lobe = lobe.clamp(-0.1875, 0.0) * 0.9;
            if denoise {
                let l = |p: [f32; 3]| p[1] + 0.5 * (p[0] + p[2]);
                let all = [l(n[0]), l(n[1]), l(n[2]), l(n[3]), l(e)];
                let range = all.into_iter().fold(-9.0, f32::max) - all.into_iter().fold(9.0, f32::min);
                let off = all[..4].iter().sum::<f32>() / 4.0 - all[4];
                lobe *= 1.0 - 0.5 * (off.abs() / range).min(1.0);
            }
            for c in 0..3 {
                let ring: f32 = n.iter().map(|p| p[c]).sum();
                expected.push(f64::from((lobe * ring + e[c]) / (4.0 * lobe + 1.0)));
            }
        }
        everywhere(|run| {
            let (p, out) = (run.upload(&picture), run.zeros::<[f16; 3]>(width * height));
            run.launch(
                sharpen::kernel(),
                LaunchConfig::tiled(width, height, (8, 8)),
                args![width, 0.9f32, denoise, &p, &out],
            );
            for (found, expected) in run.read(&out).as_flattened().iter().zip(&expected) {
                let off = (f64::from(*found) - expected).abs();
                assert!(off < 0.03, "on {}: {found}, {expected}", run.place());
            }
        });
    }
}

// 206: Winograd's convolution

#[device]
fn transposed<const R: usize, const C: usize>(m: [[f32; C]; R]) -> [[f32; R]; C] {
    std::array::from_fn(|i| std::array::from_fn(|j| m[j][i]))
}

#[device]
fn data([a, b, c, d]: [f32; 4]) -> [f32; 4] {
    [a - c, b + c, c - b, b - d]
}

#[device]
fn weights([a, b, c]: [f32; 3]) -> [f32; 4] {
    [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c]
}

#[device]
fn results([a, b, c, d]: [f32; 4]) -> [f32; 2] {
    [a + b + c, b - c - d]
}

#[kernel]
fn transform_filters(filters: &[[[f32; 3]; 3]], transformed: &mut [[[f32; 4]; 4]]) {
    let i = global_id_x();
    if let (Some(filter), Some(out)) = (filters.get(i), transformed.get_mut(i)) {
        *out = transposed(transposed(filter.map(weights)).map(weights));
    }
}

/// Two by two results a lane, of the output channel that z says.
#[kernel]
fn winograd(
    width: usize,
    height: usize,
    channels: usize,
    input: &[f32],
    filters: &[[[f32; 4]; 4]],
    out: &mut [f32],
) {
    let (x, y, channel) = (2 * global_id_x(), 2 * global_id_y(), global_id_z());
    let (columns, rows) = (width - 2, height - 2);
    if x >= columns || y >= rows || channel >= filters.len() / channels {
        return;
    }
    let mut sums = [[0.0; 4]; 4];
    for (plane, filter) in input
        .chunks_exact(width * height)
        .zip(&filters[channel * channels..][..channels])
    {
        let tile: [[f32; 4]; 4] = std::array::from_fn(|j| {
            std::array::from_fn(|i| {
                if x + i < width && y + j < height {
                    plane[(y + j) * width + x + i]
                } else {
                    0.0
                }
            })
        });
        let tile = transposed(transposed(tile.map(data)).map(data));
        for ((sums, tile), filter) in sums.iter_mut().zip(&tile).zip(filter) {
            for ((sum, a), b) in sums.iter_mut().zip(tile).zip(filter) {
                *sum += a * b;
            }
        }
    }
    let square = transposed(transposed(sums.map(results)).map(results));
    for (j, row) in square.iter().enumerate().take(rows - y) {
        for (i, value) in row.iter().enumerate().take(columns - x) {
            out[(channel * rows + y + j) * columns + x + i] = *value;
        }
    }
}

#[test]
fn convolutions_by_winograd() {
    let mut random = Random(206);
    let (width, height, channels, outputs) = (17usize, 14usize, 3usize, 4usize);
    let input: Vec<f32> = (0..width * height * channels)
        .map(|_| random.between(-1.0, 1.0) as f32)
        .collect();
    let filters: Vec<[[f32; 3]; 3]> = (0..channels * outputs)
        .map(|_| std::array::from_fn(|_| std::array::from_fn(|_| random.between(-1.0, 1.0) as f32)))
        .collect();
    let mut expected = Vec::new();
    for o in 0..outputs {
        for y in 0..height - 2 {
            for x in 0..width - 2 {
                let mut sum = 0.0;
                for c in 0..channels {
                    for k in 0..9 {
                        let v = input[(c * height + y + k / 3) * width + x + k % 3];
                        sum += f64::from(v) * f64::from(filters[o * channels + c][k / 3][k % 3]);
                    }
                }
                expected.push(sum);
            }
        }
    }
    everywhere(|run| {
        let (i, f) = (run.upload(&input), run.upload(&filters));
        let (t, out) = (
            run.zeros::<[[f32; 4]; 4]>(filters.len()),
            run.zeros::<f32>(expected.len()),
        );
        run.launch(
            transform_filters::kernel(),
            LaunchConfig::linear(filters.len(), 32),
            args![&f, &t],
        );
        run.launch(
            winograd::kernel(),
            LaunchConfig::new((2, 2, 4), (4, 4, 1)),
            args![width, height, channels, &i, &t, &out],
        );
        run.near(&out, &expected, 1e-4);
    });
}
