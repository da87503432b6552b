//! What a camera sees: keypoints with descriptors, and a cascade of local binary patterns.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 231: oriented keypoints with binary descriptors

const RADIUS: usize = 15;

/// How far a disc reaches to either side, by the distance of a row from its middle.
const fn disc() -> [u32; RADIUS + 1] {
    let mut reach = [0; RADIUS + 1];
    let mut v = 0;
    while v <= RADIUS {
        reach[v] = (RADIUS * RADIUS - v * v).isqrt() as u32;
        v += 1;
    }
    reach
}

const DISC: [u32; RADIUS + 1] = disc();

/// A picture of bytes that has all that is asked of it.
#[device]
fn pixel(picture: &[u8], width: usize, x: i32, y: i32) -> i32 {
    i32::from(picture[y as usize * width + x as usize])
}

/// A block a keypoint: Harris' response in a square of 7 x 7, and the angle to the centroid of a disc.
#[kernel(block_size = 64)]
fn orb_measure(width: usize, picture: &[u8], points: &[[i32; 2]], responses: &mut [f32], angles: &mut [f32]) {
    let sums = shared_array::<[i32; 5]>();
    let lane = local_id_x();
    let [x, y] = points[group_id_x()];
    if lane < sums.len() {
        sums[lane] = 0;
    }
    sync_threads();
    if lane < 49 {
        let (x, y) = (x + (lane % 7) as i32 - 3, y + (lane / 7) as i32 - 3);
        let at = |dx: i32, dy: i32| pixel(picture, width, x + dx, y + dy);
        let gx = (at(1, 0) - at(-1, 0)) * 2 + (at(1, -1) - at(-1, -1)) + (at(1, 1) - at(-1, 1));
        let gy = (at(0, 1) - at(0, -1)) * 2 + (at(-1, 1) - at(-1, -1)) + (at(1, 1) - at(1, -1));
        for (sum, product) in [gx * gx, gy * gy, gx * gy].into_iter().enumerate() {
            atomic_add(&mut sums[sum], product);
        }
    }
    if lane <= 2 * RADIUS {
        let v = lane as i32 - RADIUS as i32;
        let reach = DISC[v.unsigned_abs() as usize] as i32;
        let (mut first, mut total) = (0, 0);
        for u in -reach..=reach {
            let value = pixel(picture, width, x + u, y + v);
            first += u * value;
            total += value;
        }
        atomic_add(&mut sums[3], first);
        atomic_add(&mut sums[4], v * total);
    }
    sync_threads();
    if lane == 0 {
        let [a, b, c] = [sums[0], sums[1], sums[2]].map(|sum| sum as f32);
        let scale = 1.0 / (4.0 * 7.0 * 255.0f32);
        responses[group_id_x()] = (a * b - c * c - 0.04 * (a + b) * (a + b)) * scale.powi(4);
        angles[group_id_x()] = (sums[4] as f32).atan2(sums[3] as f32);
    }
}

/// A lane for a byte: eight comparisons of the picture at two places each, turned by the keypoint's angle.
#[kernel]
fn orb_describe(
    width: usize,
    picture: &[u8],
    points: &[[i32; 2]],
    angles: &[f32],
    pattern: &[[[i32; 2]; 2]],
    descriptors: &mut [u8],
) {
    let i = global_id_x();
    let bytes = pattern.len() / 8;
    if i >= descriptors.len() {
        return;
    }
    let (point, byte) = (i / bytes, i % bytes);
    let (sin, cos) = angles[point].sin_cos();
    let [x, y] = points[point];
    let turned = |[u, v]: [i32; 2]| {
        let (u, v) = (u as f32, v as f32);
        let (right, down) = (
            (u * cos - v * sin).round() as i32,
            (u * sin + v * cos).round() as i32,
        );
        pixel(picture, width, x + right, y + down)
    };
    descriptors[i] = pattern[byte * 8..(byte + 1) * 8]
        .iter()
        .enumerate()
        .fold(0, |bits, (k, [a, b])| {
            bits | u8::from(turned(*a) < turned(*b)) << k
        });
}

#[test]
fn keypoints_are_measured_and_described() {
    let mut random = Random(231);
    let (width, height, pairs) = (71usize, 57usize, 128usize);
    // Slopes and noise, so that angles differ.
    let picture: Vec<u8> = (0..width * height)
        .map(|i| ((i % width) * (i / width) / 29 + (random.bits() % 90) as usize) as u8)
        .collect();
    let mut offset = || (random.bits() % 27) as i32 - 13;
    let pattern: Vec<[[i32; 2]; 2]> = (0..pairs)
        .map(|_| [[offset(), offset()], [offset(), offset()]])
        .collect();
    let at = |x: i64, y: i64| i64::from(picture[(y * width as i64 + x) as usize]);
    let (mut points, mut responses, mut angles, mut descriptors) = (vec![], vec![], vec![], vec![]);
    while points.len() < 23 {
        let (x, y) = (20 + (random.bits() % 31) as i64, 20 + (random.bits() % 17) as i64);
        let (mut a, mut b, mut c) = (0i64, 0i64, 0i64);
        for py in y - 3..=y + 3 {
            for px in x - 3..=x + 3 {
                let (mut gx, mut gy) = (0, 0);
                for k in -1..=1 {
                    let weight = 2 - k * k;
                    gx += weight * (at(px + 1, py + k) - at(px - 1, py + k));
                    gy += weight * (at(px + k, py + 1) - at(px + k, py - 1));
                }
                a += gx * gx;
                b += gy * gy;
                c += gx * gy;
            }
        }
        let (mut m10, mut m01) = (0i64, 0i64);
        for v in -15..=15i64 {
            for u in -15..=15i64 {
                if u * u + v * v <= 225 {
                    m10 += u * at(x + u, y + v);
                    m01 += v * at(x + u, y + v);
                }
            }
        }
        let angle = (m01 as f64).atan2(m10 as f64);
        let turned: Vec<[f64; 2]> = pattern
            .iter()
            .flatten()
            .map(|[u, v]| {
                let (u, v) = (f64::from(*u), f64::from(*v));
                [
                    u * angle.cos() - v * angle.sin(),
                    u * angle.sin() + v * angle.cos(),
                ]
            })
            .collect();
        // An angle in f32 moves places by less than 1e-4: leave out keypoints where that may decide which pixel is meant.
        if turned
            .iter()
            .flatten()
            .any(|t| (t.abs().fract() - 0.5).abs() < 1e-4)
        {
            continue;
        }
        let scale = 1.0 / (4.0 * 7.0 * 255.0f64);
        let (a, b, c) = (a as f64, b as f64, c as f64);
        responses.push((a * b - c * c - 0.04 * (a + b) * (a + b)) * scale.powi(4));
        angles.push(angle);
        points.push([x as i32, y as i32]);
        let values: Vec<i64> = turned
            .iter()
            .map(|[u, v]| at(x + u.round() as i64, y + v.round() as i64))
            .collect();
        for byte in 0..pairs / 8 {
            let mut bits = 0u8;
            for k in 0..8 {
                let pair = byte * 8 + k;
                if values[2 * pair] < values[2 * pair + 1] {
                    bits |= 1 << k;
                }
            }
            descriptors.push(bits);
        }
    }
    everywhere(|run| {
        let count = points.len();
        let (picture, points, pattern) = (run.upload(&picture), run.upload(&points), run.upload(&pattern));
        let (r, a) = (run.zeros::<f32>(count), run.zeros::<f32>(count));
        let config = LaunchConfig::new(count as u32, 64);
        run.launch(
            orb_measure::kernel(),
            config,
            args![width, &picture, &points, &r, &a],
        );
        // The sums are exact; the products are below 1e-3 once scaled, and rounded a few times.
        run.near(&r, &responses, 1e-9);
        run.near(&a, &angles, 2e-6);
        let d = run.zeros::<u8>(descriptors.len());
        let config = LaunchConfig::linear(descriptors.len(), 64);
        run.launch(
            orb_describe::kernel(),
            config,
            args![width, &picture, &points, &a, &pattern, &d],
        );
        run.holds(&d, &descriptors);
    });
}

// 232: a cascade of local binary patterns

/// Sums along lines: how many there are, how far apart, how long, and how far their elements are apart.
#[kernel]
fn lbp_prefix(lines: usize, apart: usize, len: usize, step: usize, x: &mut [u32]) {
    let line = global_id_x();
    if line < lines {
        let mut sum = 0;
        for v in x[line * apart..].iter_mut().step_by(step).take(len) {
            sum += *v;
            *v = sum;
        }
    }
}

/// A weak classifier: the first of 3 x 3 cells, and the patterns that speak for an object.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Stump {
    cell: [u8; 4],
    patterns: [u32; 8],
    has: f32,
    lacks: f32,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Stage {
    first: u32,
    count: u32,
    threshold: f32,
}

/// The cells around the middle one, clockwise.
const RING: [[usize; 2]; 8] = [[0, 0], [1, 0], [2, 0], [2, 1], [2, 2], [1, 2], [0, 2], [0, 1]];

#[device]
impl Stump {
    fn pattern(self, stride: usize, integral: &[u32], left: usize, top: usize) -> usize {
        let [x, y, w, h] = self.cell.map(usize::from);
        let sum = |column: usize, row: usize| {
            let (x, y) = (left + x + column * w, top + y + row * h);
            let (above, below) = (&integral[y * stride + x..], &integral[(y + h) * stride + x..]);
            below[w] + above[0] - below[0] - above[w]
        };
        let middle = sum(1, 1);
        RING.iter().fold(0, |bits, [column, row]| {
            bits << 1 | usize::from(sum(*column, *row) >= middle)
        })
    }

    fn leaf(self, pattern: usize) -> f32 {
        let has = self.patterns[pattern / 32] >> (pattern % 32) & 1 != 0;
        if has { self.has } else { self.lacks }
    }
}

/// A lane a window; those that pass all stages are appended.
#[kernel]
fn lbp(
    windows: [u32; 2],
    stride: usize,
    integral: &[u32],
    stages: &[Stage],
    stumps: &[Stump],
    count: &mut u32,
    found: &mut [[u32; 2]],
) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= windows[0] as usize || y >= windows[1] as usize {
        return;
    }
    let passes = stages.iter().all(|stage| {
        let stumps = &stumps[stage.first as usize..(stage.first + stage.count) as usize];
        let sum: f32 = stumps
            .iter()
            .map(|stump| stump.leaf(stump.pattern(stride, integral, x, y)))
            .sum();
        sum >= stage.threshold
    });
    if passes {
        let slot = atomic_add(count, 1);
        if let Some(place) = found.get_mut(slot as usize) {
            *place = [x as u32, y as u32];
        }
    }
}

#[test]
fn windows_pass_a_cascade_of_patterns() {
    let mut random = Random(232);
    let (width, height, window) = (41usize, 35usize, 12usize);
    let picture = random.bytes(width * height);
    let stride = width + 1;
    let mut padded = vec![0u32; stride * (height + 1)];
    for (i, v) in picture.iter().enumerate() {
        padded[(i / width + 1) * stride + i % width + 1] = u32::from(*v);
    }
    let mut stages = vec![];
    let mut stumps = vec![];
    for count in [2u32, 3, 4] {
        // Leaves are parts of 1/64: sums are exact.
        stages.push(Stage {
            first: stumps.len() as u32,
            count,
            threshold: 0.25 * count as f32,
        });
        for _ in 0..count {
            let [w, h] = [0, 1].map(|_| 1 + random.bits() % 4);
            let [x, y] = [w, h].map(|n| random.bits() % (window as u64 - 3 * n + 1));
            stumps.push(Stump {
                cell: [x as u8, y as u8, w as u8, h as u8],
                patterns: [0; 8].map(|_: u32| random.bits() as u32 | random.bits() as u32),
                has: (random.bits() % 64) as f32 / 64.0 + 0.25,
                lacks: -((random.bits() % 64) as f32) / 64.0,
            });
        }
    }
    let windows = [(width - window + 1) as u32, (height - window + 1) as u32];
    let mut expected = vec![];
    for top in 0..windows[1] as usize {
        for left in 0..windows[0] as usize {
            let mut passes = true;
            for stage in &stages {
                let mut sum = 0.0f32;
                for stump in &stumps[stage.first as usize..][..stage.count as usize] {
                    let [x, y, w, h] = stump.cell.map(|v| v as usize);
                    let mut cells = [[0u32; 3]; 3];
                    for (dy, row) in (0..3 * h).map(|dy| (dy, top + y + dy)) {
                        for dx in 0..3 * w {
                            cells[dy / h][dx / w] += u32::from(picture[row * width + left + x + dx]);
                        }
                    }
                    let around = [
                        cells[0][0],
                        cells[0][1],
                        cells[0][2],
                        cells[1][2],
                        cells[2][2],
                        cells[2][1],
                        cells[2][0],
                        cells[1][0],
                    ];
                    let mut code = 0;
                    for (k, sum) in around.into_iter().enumerate() {
                        if sum >= cells[1][1] {
                            code += 128 >> k;
                        }
                    }
                    sum += if stump.patterns[code / 32] & 1 << (code % 32) != 0 {
                        stump.has
                    } else {
                        stump.lacks
                    };
                }
                passes &= sum >= stage.threshold;
            }
            if passes {
                expected.push([left as u32, top as u32]);
            }
        }
    }
    assert!(!expected.is_empty() && expected.len() < 800);
    expected.sort();
    everywhere(|run| {
        let integral = run.upload(&padded);
        let config = LaunchConfig::linear(height + 1, 64);
        run.launch(
            lbp_prefix::kernel(),
            config,
            args![height + 1, stride, stride, 1usize, &integral],
        );
        let config = LaunchConfig::linear(stride, 64);
        run.launch(
            lbp_prefix::kernel(),
            config,
            args![stride, 1usize, height + 1, stride, &integral],
        );
        let (stages, stumps) = (run.upload(&stages), run.upload(&stumps));
        let (count, found) = (run.zeros::<u32>(1), run.zeros::<[u32; 2]>(800));
        let config = LaunchConfig::tiled(windows[0], windows[1], (8, 8));
        run.launch(
            lbp::kernel(),
            config,
            args![windows, stride, &integral, &stages, &stumps, &count, &found],
        );
        run.holds(&count, &[expected.len() as u32]);
        let mut found = run.read(&found);
        found.truncate(expected.len());
        found.sort();
        assert_eq!(found, expected, "on {}", run.place());
    });
}
