//! Moving pictures: transitions from one to another, and keys of colour.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 228: transitions

#[derive(Clone, Copy, PartialEq, GpuType)]
#[repr(u32)]
enum Side {
    Left,
    Right,
    Up,
    Down,
}

#[device]
impl Side {
    /// Where a picture goes that leaves by this side.
    fn step(self) -> [i32; 2] {
        match self {
            Side::Left => [-1, 0],
            Side::Right => [1, 0],
            Side::Up => [0, -1],
            Side::Down => [0, 1],
        }
    }
}

#[derive(Clone, Copy, PartialEq, GpuType)]
enum Transition {
    Fade,
    Wipe(Side),
    Slide { step: [i32; 2] },
}

#[device]
impl Transition {
    fn of(kind: u32, side: Side) -> Option<Transition> {
        match kind {
            0 => Some(Transition::Fade),
            1 => Some(Transition::Wipe(side)),
            2 => Some(Transition::Slide { step: side.step() }),
            _ => None,
        }
    }
}

#[device]
fn mixed(a: [u8; 4], b: [u8; 4], share: u32) -> [u8; 4] {
    std::array::from_fn(|c| ((u32::from(a[c]) * share + u32::from(b[c]) * (256 - share) + 128) >> 8) as u8)
}

/// `share` is how much of the first picture is left, of 256.
#[kernel]
fn xfade(
    kind: u32,
    side: Side,
    share: u32,
    size: [u32; 2],
    first: &[[u8; 4]],
    second: &[[u8; 4]],
    out: &mut [[u8; 4]],
) {
    let (x, y) = (global_id_x() as u32, global_id_y() as u32);
    let [width, height] = size;
    if x >= width || y >= height {
        return;
    }
    let Some(transition) = Transition::of(kind, side) else {
        return;
    };
    let place = (y * width + x) as usize;
    out[place] = match transition {
        Transition::Fade => mixed(first[place], second[place], share),
        Transition::Wipe(side) => {
            let is_second = match side {
                Side::Left => x > width * share / 256,
                Side::Right => x <= width * (256 - share) / 256,
                Side::Up => y > height * share / 256,
                Side::Down => y <= height * (256 - share) / 256,
            };
            if is_second { second[place] } else { first[place] }
        }
        Transition::Slide { step: [dx, dy] } => {
            let [from_x, from_y] =
                [(x, dx, width), (y, dy, height)].map(|(at, d, n)| at as i32 + d * (n * share / 256) as i32);
            let (w, h) = (width as i32, height as i32);
            let place = (from_y.rem_euclid(h) * w + from_x.rem_euclid(w)) as usize;
            let inside = from_x >= 0 && from_x < w && from_y >= 0 && from_y < h;
            if inside { second[place] } else { first[place] }
        }
    };
}

#[test]
fn pictures_fade_wipe_and_slide() {
    let mut random = Random(228);
    let (width, height) = (37usize, 23usize);
    let mut picture = || -> Vec<[u8; 4]> {
        random
            .bytes(width * height * 4)
            .chunks(4)
            .map(|p| [p[0], p[1], p[2], p[3]])
            .collect()
    };
    let (first, second) = (picture(), picture());
    let sides = [Side::Left, Side::Right, Side::Up, Side::Down];
    let mut cases = vec![];
    for kind in 0..3u32 {
        for (s, side) in sides.into_iter().enumerate() {
            for share in [0usize, 100, 256] {
                let (left, gone) = (
                    [width * share / 256, height * share / 256],
                    [width * (256 - share) / 256, height * (256 - share) / 256],
                );
                let mut expected = vec![];
                for y in 0..height {
                    for x in 0..width {
                        let (a, b) = (first[y * width + x], second[y * width + x]);
                        expected.push(match (kind, s) {
                            (0, _) => {
                                let mut pixel = [0u8; 4];
                                for c in 0..4 {
                                    let sum = a[c] as usize * share + b[c] as usize * (256 - share);
                                    pixel[c] = ((sum + 128) / 256) as u8;
                                }
                                pixel
                            }
                            (1, 0) => {
                                if x > left[0] {
                                    b
                                } else {
                                    a
                                }
                            }
                            (1, 1) => {
                                if x > gone[0] {
                                    a
                                } else {
                                    b
                                }
                            }
                            (1, 2) => {
                                if y > left[1] {
                                    b
                                } else {
                                    a
                                }
                            }
                            (1, _) => {
                                if y > gone[1] {
                                    a
                                } else {
                                    b
                                }
                            }
                            (_, s) => {
                                // Whole turns of the wrapped picture keep everything positive.
                                let (mut u, mut v) = (x + width, y + height);
                                match s {
                                    0 => u -= left[0],
                                    1 => u += left[0],
                                    2 => v -= left[1],
                                    _ => v += left[1],
                                }
                                let from = if u / width == 1 && v / height == 1 {
                                    &second
                                } else {
                                    &first
                                };
                                from[v % height * width + u % width]
                            }
                        });
                    }
                }
                cases.push((kind, side, share as u32, expected));
            }
        }
    }
    everywhere(|run| {
        let (first, second) = (run.upload(&first), run.upload(&second));
        let size = [width as u32, height as u32];
        for (kind, side, share, expected) in &cases {
            let out = run.zeros::<[u8; 4]>(width * height);
            let config = LaunchConfig::tiled(size[0], size[1], (16, 4));
            run.launch(
                xfade::kernel(),
                config,
                args![*kind, *side, *share, size, &first, &second, &out],
            );
            run.holds(&out, expected);
        }
    });
}

// 229: a key of colour

/// How chroma lies in memory.
#[device]
trait ChromaLayout: Copy {
    fn at(u: &[u8], v: &[u8], place: usize) -> [u8; 2];
}

/// In two planes.
#[derive(Clone, Copy, GpuType)]
struct Planes;

/// In one plane of pairs, which both slices are.
#[derive(Clone, Copy, GpuType)]
struct Pairs;

#[device]
impl ChromaLayout for Planes {
    fn at(u: &[u8], v: &[u8], place: usize) -> [u8; 2] {
        [u[place], v[place]]
    }
}

#[device]
impl ChromaLayout for Pairs {
    fn at(u: &[u8], _v: &[u8], place: usize) -> [u8; 2] {
        [u[2 * place], u[2 * place + 1]]
    }
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct ColourKey {
    chroma: [u8; 2],
    similarity: f32,
    blend: f32,
}

#[device]
impl ColourKey {
    fn distance(self, chroma: [u8; 2]) -> f32 {
        let squares = self.chroma.iter().zip(chroma).map(|(key, c)| {
            let difference = f32::from(*key) - f32::from(c);
            difference * difference
        });
        (squares.sum::<f32>() / (2.0 * 255.0 * 255.0)).sqrt()
    }

    fn alpha(self, distance: f32) -> u8 {
        if self.blend > 1e-4 {
            let share = (distance - self.similarity) / self.blend;
            (share.clamp(0.0, 1.0) * 255.0).round() as u8
        } else if distance > self.similarity {
            255
        } else {
            0
        }
    }
}

/// A lane for each sample of chroma and the 2 x 2 pixels that have it.
#[kernel]
fn chromakey<L: ChromaLayout>(
    width: usize,
    height: usize,
    key: ColourKey,
    u: &[u8],
    v: &[u8],
    alpha: &mut [u8],
) {
    let (x, y) = (global_id_x(), global_id_y());
    let (columns, rows) = (width.div_ceil(2), height.div_ceil(2));
    if x >= columns || y >= rows {
        return;
    }
    let mut sum = 0.0;
    for near_y in [y.saturating_sub(1), y, (y + 1).min(rows - 1)] {
        for near_x in [x.saturating_sub(1), x, (x + 1).min(columns - 1)] {
            sum += key.distance(L::at(u, v, near_y * columns + near_x));
        }
    }
    let value = key.alpha(sum / 9.0);
    for row in alpha.chunks_exact_mut(width).skip(2 * y).take(2) {
        for pixel in row.iter_mut().skip(2 * x).take(2) {
            *pixel = value;
        }
    }
}

#[test]
fn alpha_follows_the_distance_from_a_key() {
    let mut random = Random(229);
    let (width, height) = (45usize, 31usize);
    let (columns, rows) = (23usize, 16usize);
    // Neighbours alike, so that means are not all the same.
    let chroma: Vec<[u8; 2]> = (0..columns * rows)
        .map(|i| [(i % columns * 9) as u8, (i / columns * 13) as u8].map(|c| c + (random.bits() % 30) as u8))
        .collect();
    let key = [90u8, 110];
    let (similarity, blend) = (0.12f32, 0.2f32);
    let distances: Vec<f64> = (0..columns * rows)
        .map(|i| {
            let (x, y) = ((i % columns) as i64, (i / columns) as i64);
            let mut sum = 0.0;
            for dy in -1..=1 {
                for dx in -1..=1 {
                    let near_x = (x + dx).clamp(0, columns as i64 - 1);
                    let near_y = (y + dy).clamp(0, rows as i64 - 1);
                    let [u, v] = chroma[(near_y * columns as i64 + near_x) as usize].map(f64::from);
                    let (du, dv) = (u - f64::from(key[0]), v - f64::from(key[1]));
                    sum += ((du * du + dv * dv) / 130050.0).sqrt();
                }
            }
            sum / 9.0
        })
        .collect();
    let of =
        |pixel: usize| distances[pixel / width / 2 * columns + pixel % width / 2] - f64::from(similarity);
    let u: Vec<u8> = chroma.iter().map(|c| c[0]).collect();
    let v: Vec<u8> = chroma.iter().map(|c| c[1]).collect();
    everywhere(|run| {
        let (u, v, pairs) = (run.upload(&u), run.upload(&v), run.upload(&chroma.concat()));
        let config = || LaunchConfig::tiled(columns as u32, rows as u32, (8, 8));
        let alpha = run.zeros::<u8>(width * height);
        let soft = ColourKey {
            chroma: key,
            similarity,
            blend,
        };
        run.launch(
            chromakey::kernel::<Planes>(),
            config(),
            args![width, height, soft, &u, &v, &alpha],
        );
        for (pixel, found) in run.read(&alpha).into_iter().enumerate() {
            let exact = (of(pixel) / f64::from(blend)).clamp(0.0, 1.0) * 255.0;
            // Half of the last place, and the error of the mean, which is below 1e-6 of 1 / 0.2 times 255.
            assert!(
                (f64::from(found) - exact).abs() < 0.502,
                "on {}: {pixel} {found} {exact}",
                run.place()
            );
        }
        let hard = ColourKey {
            chroma: key,
            similarity,
            blend: 0.0,
        };
        run.launch(
            chromakey::kernel::<Pairs>(),
            config(),
            args![width, height, hard, &pairs, &pairs, &alpha],
        );
        for (pixel, found) in run.read(&alpha).into_iter().enumerate() {
            let side = if of(pixel) > 0.0 { 255 } else { 0 };
            assert!(
                found == side || of(pixel).abs() < 1e-6,
                "on {}: {pixel} {found}",
                run.place()
            );
        }
    });
}
