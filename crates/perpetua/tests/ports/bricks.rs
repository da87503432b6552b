//! What pictures are drawn from: tags of paths, and a texture of bricks.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 236: tags of paths

/// What may be summed up in front of a place in a stream.
#[device]
trait Summary: GpuType {
    const NOTHING: Self;
    fn of(word: u32) -> Self;
    fn with(self, other: Self) -> Self;
}

/// How many transforms, segments, words of their points, styles and paths there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct TagCounts {
    transforms: u32,
    segments: u32,
    words: u32,
    styles: u32,
    paths: u32,
}

#[device]
impl Summary for TagCounts {
    const NOTHING: Self = TagCounts {
        transforms: 0,
        segments: 0,
        words: 0,
        styles: 0,
        paths: 0,
    };

    /// Four tags side by side: the points of a segment in bits 0 and 1, whether it ends its path in 2, has floats in 3;
    /// a path, a transform or a style in 4 to 6.
    fn of(word: u32) -> Self {
        let kinds = word & 0x0303_0303;
        let points = kinds + (word >> 2 & 0x0101_0101);
        // Points of two halves are a word, those of floats two.
        let floats = (word >> 3 & 0x0101_0101) * 15;
        let words = points + (points & floats);
        TagCounts {
            transforms: (word & 0x2020_2020).count_ones(),
            segments: (kinds * 7 & 0x0404_0404).count_ones(),
            words: words.to_le_bytes().into_iter().map(u32::from).sum(),
            styles: (word & 0x4040_4040).count_ones(),
            paths: (word & 0x1010_1010).count_ones(),
        }
    }

    fn with(self, other: Self) -> Self {
        TagCounts {
            transforms: self.transforms + other.transforms,
            segments: self.segments + other.segments,
            words: self.words + other.words,
            styles: self.styles + other.styles,
            paths: self.paths + other.paths,
        }
    }
}

#[kernel(block_size = 64)]
fn path_tags_reduce<S: Summary>(tags: &[u32], sums: &mut [S]) {
    let part = shared_array::<[S; 64]>();
    let lane = local_id_x();
    part[lane] = tags.get(global_id_x()).map_or(S::NOTHING, |word| S::of(*word));
    let mut half = 32;
    while half > 0 {
        sync_threads();
        if lane < half {
            part[lane] = part[lane].with(part[lane + half]);
        }
        half /= 2;
    }
    if lane == 0 {
        sums[group_id_x()] = part[0];
    }
}

/// What stands in front of each word: of the blocks before by the sums of up to 64 of them, then of the own block.
#[kernel(block_size = 64)]
fn path_tags<S: Summary>(tags: &[u32], sums: &[S], out: &mut [S]) {
    let part = shared_array::<[S; 64]>();
    let (i, lane) = (global_id_x(), local_id_x());
    part[lane] = if lane < group_id_x() {
        sums[lane]
    } else {
        S::NOTHING
    };
    for step in [32, 16, 8, 4, 2, 1] {
        sync_threads();
        if lane < step {
            part[lane] = part[lane].with(part[lane + step]);
        }
    }
    sync_threads();
    let before = part[0];
    sync_threads();
    let mut own = tags.get(i).map_or(S::NOTHING, |word| S::of(*word));
    part[lane] = own;
    for step in (0..6).map(|k| 1 << k) {
        sync_threads();
        let other = lane.checked_sub(step).map(|left| part[left]);
        sync_threads();
        if let Some(other) = other {
            own = other.with(own);
            part[lane] = own;
        }
    }
    sync_threads();
    if let Some(out) = out.get_mut(i) {
        *out = if lane == 0 {
            before
        } else {
            before.with(part[lane - 1])
        };
    }
}

#[test]
fn tags_are_counted_in_front_of_each_word() {
    let mut random = Random(236);
    let kinds = [0u8, 1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 0x10, 0x20, 0x40];
    let tags: Vec<u8> = (0..4 * 701)
        .map(|_| kinds[(random.bits() % 16) as usize])
        .collect();
    let mut sum = TagCounts::default();
    let mut expected = vec![];
    for (i, tag) in tags.iter().enumerate() {
        if i % 4 == 0 {
            expected.push(sum);
        }
        let points = u32::from(tag & 3) + u32::from(tag >> 2 & 1);
        sum.segments += u32::from(tag & 3 != 0);
        sum.words += if tag & 8 != 0 { 2 * points } else { points };
        match tag >> 4 {
            1 => sum.paths += 1,
            2 => sum.transforms += 1,
            4 => sum.styles += 1,
            _ => {}
        }
    }
    let words: Vec<u32> = tags
        .chunks(4)
        .map(|t| u32::from_le_bytes([t[0], t[1], t[2], t[3]]))
        .collect();
    everywhere(|run| {
        let blocks = words.len().div_ceil(64);
        let tags = run.upload(&words);
        let sums = run.upload(&vec![TagCounts::default(); blocks]);
        let out = run.upload(&vec![TagCounts::default(); words.len()]);
        let config = || LaunchConfig::linear(words.len(), 64);
        run.launch(
            path_tags_reduce::kernel::<TagCounts>(),
            config(),
            args![&tags, &sums],
        );
        run.launch(
            path_tags::kernel::<TagCounts>(),
            config(),
            args![&tags, &sums, &out],
        );
        run.holds(&out, &expected);
    });
}

// 237: a texture of bricks

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Wall {
    width: f32,
    height: f32,
    /// Every so many rows are moved by a part of a brick, or have wider bricks.
    offset: f32,
    offset_rows: i32,
    squash: f32,
    squash_rows: i32,
    mortar: f32,
    smooth: f32,
    bias: f32,
}

/// What is at a place.
#[derive(Clone, Copy, PartialEq, GpuType)]
enum Spot {
    Brick(f32),
    Mortar,
    Edge { tint: f32, mortar: f32 },
}

/// A number in 0..1 of an integer.
#[device]
fn brick_noise(n: u32) -> f32 {
    let n = n.wrapping_add(1013) & 0x7fff_ffff;
    let n = (n >> 13) ^ n;
    let n = (n
        .wrapping_mul(n.wrapping_mul(n).wrapping_mul(60493).wrapping_add(19_990_303))
        .wrapping_add(1_376_312_589))
        & 0x7fff_ffff;
    0.5 * (n as f32 / 1_073_741_824.0)
}

#[device]
impl Wall {
    fn spot(&self, [x, y]: [f32; 2]) -> Spot {
        let row = (y / self.height).floor() as i32;
        let every = |rows: i32| rows > 0 && row.rem_euclid(rows) == 0;
        let width = if every(self.squash_rows) {
            self.width * self.squash
        } else {
            self.width
        };
        let offset = if every(self.offset_rows) {
            width * self.offset
        } else {
            0.0
        };
        let column = ((x + offset) / width).floor() as i32;
        let (u, v) = (x + offset - width * column as f32, y - self.height * row as f32);
        let tint = (brick_noise(((row as u32) << 16) + (column as u32 & 0xffff)) + self.bias).clamp(0.0, 1.0);
        let nearest = [u, v, width - u, self.height - v]
            .into_iter()
            .reduce(f32::min)
            .unwrap();
        match 1.0 - nearest / self.mortar {
            depth if depth <= 0.0 => Spot::Brick(tint),
            depth if depth < self.smooth => {
                let t = depth / self.smooth;
                Spot::Edge {
                    tint,
                    mortar: t * t * (3.0 - 2.0 * t),
                }
            }
            _ => Spot::Mortar,
        }
    }
}

/// The colour of each pixel, mixed from two of bricks and one of mortar.
#[kernel]
fn bricks(wall: Wall, size: [u32; 2], scale: f32, colours: [[f32; 3]; 3], out: &mut [f32]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= size[0] as usize || y >= size[1] as usize {
        return;
    }
    let place = [x, y].map(|v| (v as f32 + 0.5) * scale - 1.0);
    let [light, dark, grey] = colours;
    let brick = |tint: f32| -> [f32; 3] { std::array::from_fn(|c| light[c] * (1.0 - tint) + dark[c] * tint) };
    let colour = match wall.spot(place) {
        Spot::Brick(tint) => brick(tint),
        Spot::Mortar => grey,
        Spot::Edge { tint, mortar } => {
            let brick = brick(tint);
            std::array::from_fn(|c| brick[c] * (1.0 - mortar) + grey[c] * mortar)
        }
    };
    let first = 3 * (y * size[0] as usize + x);
    out[first..first + 3].copy_from_slice(&colour);
}

#[test]
fn bricks_lie_in_rows() {
    let (width, height) = (75usize, 53usize);
    // Places are odd multiples of 1/32, and no edge is: a rounding decides nothing.
    let wall = Wall {
        width: 0.5,
        height: 0.25,
        offset: 0.5,
        offset_rows: 2,
        squash: 1.5,
        squash_rows: 3,
        mortar: 0.07,
        smooth: 0.4,
        bias: -0.1,
    };
    let colours = [[0.8f32, 0.3, 0.2], [0.4, 0.1, 0.05], [0.7, 0.7, 0.65]];
    let noise = |row: i64, column: i64| -> f64 {
        let n = ((row << 16) + (column & 0xffff) + 1013) & 0x7fff_ffff;
        let n = (n >> 13) ^ n;
        let square = (n * n) & 0xffff_ffff;
        let inner = (square * 60493 + 19990303) & 0xffff_ffff;
        let n = (i128::from(n) * i128::from(inner) + 1376312589) & 0x7fff_ffff;
        n as f64 / 2147483648.0
    };
    let mut expected = vec![];
    for py in 0..height {
        for px in 0..width {
            let (x, y) = ((px as f64 + 0.5) / 16.0 - 1.0, (py as f64 + 0.5) / 16.0 - 1.0);
            let row = (y * 4.0).floor();
            let long = if row as i64 % 3 == 0 { 0.75 } else { 0.5 };
            let moved = if row as i64 % 2 == 0 { x + long / 2.0 } else { x };
            let column = (moved / long).floor();
            let (u, v) = (moved - column * long, y - row / 4.0);
            let tint = (noise(row as i64, column as i64) - 0.1).clamp(0.0, 1.0);
            let edge = u.min(long - u).min(v).min(0.25 - v);
            let t = ((1.0 - edge / 0.07) / 0.4).clamp(0.0, 1.0);
            let mortar = t * t * (3.0 - 2.0 * t);
            for c in 0..3 {
                let [light, dark, grey] = colours.map(|colour| f64::from(colour[c]));
                let brick = light + (dark - light) * tint;
                expected.push(brick + (grey - brick) * mortar);
            }
        }
    }
    everywhere(|run| {
        let out = run.zeros::<f32>(width * height * 3);
        let size = [width as u32, height as u32];
        let config = LaunchConfig::tiled(size[0], size[1], (16, 4));
        run.launch(
            bricks::kernel(),
            config,
            args![wall, size, 1.0f32 / 16.0, colours, &out],
        );
        // Distances of 1/32 are off by 1e-7, and divided by 0.07 * 0.4.
        run.near(&out, &expected, 2e-5);
    });
}
