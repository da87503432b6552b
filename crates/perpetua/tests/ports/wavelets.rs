//! Pictures to fewer bits.

use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 171: the reversible 5/3 wavelet

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Axis {
    Rows,
    Columns,
}

#[device]
impl Axis {
    /// How long a line is, where it begins and how far its samples are apart.
    fn line(self, [width, height]: [usize; 2], number: usize) -> (usize, usize, usize) {
        match self {
            Axis::Rows => (width, number * width, 1),
            Axis::Columns => (height, number, width),
        }
    }
}

const LONGEST: usize = 512;

/// An index behind the end is mirrored at the last sample.
#[device]
fn mirrored(i: usize, length: usize) -> usize {
    if i < length { i } else { 2 * (length - 1) - i }
}

#[kernel(block_size = 64)]
fn analyse(axis: Axis, size: [usize; 2], samples: &mut [i32]) {
    let line = shared_array::<[i32; LONGEST]>();
    let lane = local_id_x();
    let (length, start, step) = axis.line(size, group_id_x());
    if length < 2 {
        return;
    }
    for i in (lane..length).step_by(64) {
        line[i] = samples[start + i * step];
    }
    sync_threads();
    for i in (2 * lane + 1..length).step_by(128) {
        line[i] -= (line[i - 1] + line[mirrored(i + 1, length)]) >> 1;
    }
    sync_threads();
    for i in (2 * lane..length).step_by(128) {
        line[i] += (line[i.abs_diff(1)] + line[mirrored(i + 1, length)] + 2) >> 2;
    }
    sync_threads();
    let low = length.div_ceil(2);
    for i in (lane..length).step_by(64) {
        samples[start + (i % 2 * low + i / 2) * step] = line[i];
    }
}

#[kernel(block_size = 64)]
fn synthesise(axis: Axis, size: [usize; 2], samples: &mut [i32]) {
    let line = shared_array::<[i32; LONGEST]>();
    let lane = local_id_x();
    let (length, start, step) = axis.line(size, group_id_x());
    if length < 2 {
        return;
    }
    let low = length.div_ceil(2);
    for i in (lane..length).step_by(64) {
        line[i] = samples[start + (i % 2 * low + i / 2) * step];
    }
    sync_threads();
    for i in (2 * lane..length).step_by(128) {
        line[i] -= (line[i.abs_diff(1)] + line[mirrored(i + 1, length)] + 2) >> 2;
    }
    sync_threads();
    for i in (2 * lane + 1..length).step_by(128) {
        line[i] += (line[i - 1] + line[mirrored(i + 1, length)]) >> 1;
    }
    sync_threads();
    for i in (lane..length).step_by(64) {
        samples[start + i * step] = line[i];
    }
}

/// Low and high parts by the formulas of the standard, with a sample wherever one is asked for.
fn split(line: &[i32]) -> Vec<i32> {
    let n = line.len() as i32;
    if n == 1 {
        return line.to_vec();
    }
    let period = 2 * (n - 1);
    let x = |i: i32| {
        let i = i.rem_euclid(period);
        line[i.min(period - i) as usize]
    };
    let high = |k: i32| x(2 * k + 1) - (x(2 * k) + x(2 * k + 2)).div_euclid(2);
    let low = |k: i32| x(2 * k) + (high(k - 1) + high(k) + 2).div_euclid(4);
    (0..(n + 1) / 2).map(low).chain((0..n / 2).map(high)).collect()
}

#[test]
fn wavelets_are_those_of_the_standard_and_come_back() {
    let mut random = Random(171);
    for size in [[37usize, 22], [64, 1], [2, 301], [1, 5]] {
        let [width, height] = size;
        let picture: Vec<i32> = (0..width * height)
            .map(|i| (i % width * 3) as i32 - 90 + random.below(60) as i32)
            .collect();
        let rows: Vec<i32> = picture.chunks(width).flat_map(split).collect();
        let mut expected = rows.clone();
        for x in 0..width {
            let column: Vec<i32> = (0..height).map(|y| rows[y * width + x]).collect();
            for (y, v) in split(&column).into_iter().enumerate() {
                expected[y * width + x] = v;
            }
        }
        everywhere(|run| {
            let samples = run.upload(&picture);
            let (rows, columns) = (
                LaunchConfig::new(height as u32, 64),
                LaunchConfig::new(width as u32, 64),
            );
            run.launch(analyse::kernel(), rows, args![Axis::Rows, size, &samples]);
            run.launch(analyse::kernel(), columns, args![Axis::Columns, size, &samples]);
            run.holds(&samples, &expected);
            run.launch(
                synthesise::kernel(),
                columns,
                args![Axis::Columns, size, &samples],
            );
            run.launch(synthesise::kernel(), rows, args![Axis::Rows, size, &samples]);
            run.holds(&samples, &picture);
        });
    }
}

// 172: BC1

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Rgb {
    r: f32,
    g: f32,
    b: f32,
}

#[device]
impl Rgb {
    fn dot(self, other: Self) -> f32 {
        self.r * other.r + self.g * other.g + self.b * other.b
    }

    /// To 5, 6 and 5 bits.
    fn packed(self) -> u16 {
        let part = |v: f32, most: f32| (v.clamp(0.0, 255.0) * most / 255.0).round() as u16;
        (part(self.r, 31.0) << 11) | (part(self.g, 63.0) << 5) | part(self.b, 31.0)
    }
}

#[device]
impl From<[u8; 4]> for Rgb {
    fn from([r, g, b, _]: [u8; 4]) -> Self {
        Rgb {
            r: r.into(),
            g: g.into(),
            b: b.into(),
        }
    }
}

#[device]
impl Add for Rgb {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Rgb {
            r: self.r + other.r,
            g: self.g + other.g,
            b: self.b + other.b,
        }
    }
}

#[device]
impl Sub for Rgb {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

#[device]
impl Mul<f32> for Rgb {
    type Output = Self;

    fn mul(self, by: f32) -> Self {
        Rgb {
            r: self.r * by,
            g: self.g * by,
            b: self.b * by,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Bc1 {
    ends: [u16; 2],
    indices: u32,
}

#[device]
fn unpacked(color: u16) -> [i32; 3] {
    let [r, g, b] = [color >> 11, (color >> 5) & 63, color & 31].map(i32::from);
    [(r << 3) | (r >> 2), (g << 2) | (g >> 4), (b << 3) | (b >> 2)]
}

/// The direction in which colours differ most, by powers of their covariance.
#[device]
fn principal(colors: &[Rgb; 16], mean: Rgb) -> Rgb {
    let mut axis = Rgb {
        r: 1.0,
        g: 1.0,
        b: 1.0,
    };
    for _ in 0..8 {
        let next = colors
            .iter()
            .map(|c| *c - mean)
            .map(|d| d * d.dot(axis))
            .fold(Rgb::default(), |sum, d| sum + d);
        let largest = next.r.abs().max(next.g.abs()).max(next.b.abs());
        if largest < 1e-6 {
            break;
        }
        axis = next * largest.recip();
    }
    axis
}

#[kernel]
fn compress(width: usize, pixels: &[[u8; 4]], blocks: &mut [Bc1]) {
    let (x, y) = (global_id_x(), global_id_y());
    let across = width / 4;
    if x >= across || y * across + x >= blocks.len() {
        return;
    }
    let texels: [[u8; 4]; 16] = std::array::from_fn(|i| pixels[(4 * y + i / 4) * width + 4 * x + i % 4]);
    let colors = texels.map(Rgb::from);
    let mean = colors.iter().fold(Rgb::default(), |sum, c| sum + *c) * (1.0 / 16.0);
    let axis = principal(&colors, mean);
    let place = |c: &Rgb| (*c - mean).dot(axis);
    let (mut least, mut most) = (colors[0], colors[0]);
    for color in &colors {
        if place(color) < place(&least) {
            least = *color;
        }
        if place(color) > place(&most) {
            most = *color;
        }
    }
    let mut ends = [most.packed(), least.packed()];
    if ends[0] < ends[1] {
        ends.swap(0, 1);
    }
    let [a, b] = ends.map(unpacked);
    let between = |near: [i32; 3], far: [i32; 3]| std::array::from_fn(|c| (2 * near[c] + far[c]) / 3);
    let palette: [[i32; 3]; 4] = [a, b, between(a, b), between(b, a)];
    let mut indices = 0;
    if ends[0] != ends[1] {
        for (i, texel) in texels.iter().enumerate() {
            let distance = |entry: &[i32; 3]| -> i32 {
                entry
                    .iter()
                    .zip(texel)
                    .map(|(e, t)| (e - i32::from(*t)).pow(2))
                    .sum()
            };
            let (nearest, _) = palette
                .iter()
                .enumerate()
                .min_by_key(|(_, entry)| distance(entry))
                .unwrap();
            indices |= (nearest as u32) << (2 * i);
        }
    }
    blocks[y * across + x] = Bc1 { ends, indices };
}

fn decoded(block: &Bc1) -> [[f64; 3]; 16] {
    let full = |c: u16| {
        let (r, g, b) = (c / 2048, c / 32 % 64, c % 32);
        [
            f64::from(r * 8 + r / 4),
            f64::from(g * 4 + g / 16),
            f64::from(b * 8 + b / 4),
        ]
    };
    let (a, b) = (full(block.ends[0]), full(block.ends[1]));
    std::array::from_fn(|i| {
        let part = [0.0, 1.0, 1.0 / 3.0, 2.0 / 3.0][(block.indices >> (2 * i)) as usize % 4];
        std::array::from_fn(|c| a[c] + part * (b[c] - a[c]))
    })
}

#[test]
fn blocks_of_colours_keep_what_two_ends_can() {
    let mut random = Random(172);
    let (width, height) = (32usize, 16usize);
    let ends: Vec<[[f64; 3]; 2]> = (0..32)
        .map(|_| [(); 2].map(|()| [(); 3].map(|()| random.between(0.0, 255.0))))
        .collect();
    let pixels: Vec<[u8; 4]> = (0..width * height)
        .map(|i| {
            let block = (i / width / 4) * (width / 4) + i % width / 4;
            // One block has one colour; the others lie about a line.
            let (t, noise) = (random.unit(), if block == 5 { 0.0 } else { 6.0 });
            let t = if block == 5 { 0.5 } else { t };
            let [a, b] = ends[block];
            let [r, g, b] =
                std::array::from_fn(|c| (a[c] + t * (b[c] - a[c]) + random.between(-noise, noise)) as u8);
            [r, g, b, 255]
        })
        .collect();
    everywhere(|run| {
        let (uploaded, blocks) = (run.upload(&pixels), run.zeros::<Bc1>(32));
        let config = LaunchConfig::tiled(8, 4, (4, 4));
        run.launch(compress::kernel(), config, args![width, &uploaded, &blocks]);
        for (b, block) in run.read(&blocks).iter().enumerate() {
            assert!(
                block.ends[0] > block.ends[1] || block.indices == 0,
                "on {}: {block:?}",
                run.place()
            );
            let texels = decoded(block);
            let mut sum = 0.0;
            for i in 0..16 {
                let pixel = pixels[(b / 8 * 4 + i / 4) * width + b % 8 * 4 + i % 4];
                sum += (0..3)
                    .map(|c| (texels[i][c] - f64::from(pixel[c])).powi(2))
                    .sum::<f64>();
            }
            // The noise, a third of the line's length to the nearest entry, and five bits of a colour.
            let long: f64 = (0..3).map(|c| (ends[b][0][c] - ends[b][1][c]).powi(2)).sum();
            let bound = 3.0 * 12.0 + long / 90.0 + 3.0 * 12.0;
            assert!(
                sum / 16.0 < bound,
                "on {}: {b} {} {bound}",
                run.place(),
                sum / 16.0
            );
        }
    });
}
