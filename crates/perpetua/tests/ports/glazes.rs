//! What makes pictures: spherical harmonics, transparent layers in any order, tags of paths, a texture of bricks.

use std::f32::consts::{PI, SQRT_2};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 234: colours from spherical harmonics

/// What the harmonic of this degree and order is scaled by, but for the root of 2 of orders above 0.
#[device]
fn harmonic_scale(degree: usize, order: usize) -> f32 {
    let ratio: f32 = (degree - order + 1..=degree + order).map(|k| k as f32).product();
    ((2 * degree + 1) as f32 / (4.0 * PI * ratio)).sqrt()
}

/// The real harmonics of a direction, as many degrees as `K` is the square of.
#[device]
fn harmonic_basis<const K: usize>([x, y, z]: [f32; 3]) -> [f32; K] {
    let length = (x * x + y * y + z * z).sqrt();
    let (x, y, z) = (x / length, y / length, z / length);
    let degrees = K.isqrt();
    let mut basis = [0.0; K];
    // The powers of x + i y, and Legendre's functions of z without their part in x and y.
    let (mut re, mut im, mut first) = (1.0, 0.0, 1.0);
    for order in 0..degrees {
        let (mut before, mut now) = (0.0, first);
        for degree in order..degrees {
            let value = harmonic_scale(degree, order) * now;
            let middle = degree * (degree + 1);
            if order == 0 {
                basis[middle] = value;
            } else {
                basis[middle + order] = SQRT_2 * value * re;
                basis[middle - order] = SQRT_2 * value * im;
            }
            let next = (2 * degree + 1) as f32 * z * now - (degree + order) as f32 * before;
            (before, now) = (now, next / (degree + 1 - order) as f32);
        }
        (re, im) = (x * re - y * im, x * im + y * re);
        first *= -((2 * order + 1) as f32);
    }
    basis
}

#[device]
fn seen<const K: usize>(basis: &[f32; K], coefficients: &[[f32; 3]; K], channel: usize) -> f32 {
    0.5 + basis.iter().zip(coefficients).map(|(b, c)| b * c[channel]).sum::<f32>()
}

#[kernel]
fn harmonics<const K: usize>(directions: &[[f32; 3]], coefficients: &[[[f32; 3]; K]], colours: &mut [f32]) {
    let i = global_id_x();
    let Some(direction) = directions.get(i) else {
        return;
    };
    let basis = harmonic_basis::<K>(*direction);
    for (channel, colour) in colours[3 * i..3 * i + 3].iter_mut().enumerate() {
        *colour = seen(&basis, &coefficients[i], channel).max(0.0);
    }
}

/// A lane a splat: what its coefficients gain from the gradient of its colour, where that is not cut off.
#[kernel]
fn harmonics_back<const K: usize>(
    directions: &[[f32; 3]],
    coefficients: &[[[f32; 3]; K]],
    by_colour: &[[f32; 3]],
    gradient: &mut [f32],
) {
    let i = global_id_x();
    if i >= directions.len() {
        return;
    }
    let basis = harmonic_basis::<K>(directions[i]);
    let by_colour: [f32; 3] = std::array::from_fn(|channel| {
        let is_cut = seen(&basis, &coefficients[i], channel) < 0.0;
        if is_cut { 0.0 } else { by_colour[i][channel] }
    });
    let own = &mut gradient[i * K * 3..(i + 1) * K * 3];
    for (gain, b) in own.chunks_exact_mut(3).zip(basis) {
        for (gain, by_colour) in gain.iter_mut().zip(by_colour) {
            *gain = b * by_colour;
        }
    }
}

#[test]
fn harmonics_are_those_of_the_books() {
    let mut random = Random(234);
    let count = 137usize;
    let mut number = || (random.bits() % 2001) as f32 / 1000.0 - 1.0;
    let directions: Vec<[f32; 3]> = (0..count).map(|_| [number(), number(), number() + 1.5]).collect();
    let coefficients: Vec<[[f32; 3]; 16]> = (0..count).map(|_| [0; 16].map(|_: u8| [number(), number(), number()])).collect();
    let by_colour: Vec<[f32; 3]> = (0..count).map(|_| [number(), number(), number()]).collect();
    let few: Vec<[[f32; 3]; 4]> = coefficients.iter().map(|c| [c[0], c[1], c[2], c[3]]).collect();
    let basis = |d: &[f32; 3]| -> [f64; 16] {
        let [x, y, z] = d.map(f64::from);
        let length = (x * x + y * y + z * z).sqrt();
        let (x, y, z) = (x / length, y / length, z / length);
        let (xx, yy, zz) = (x * x, y * y, z * z);
        [
            0.28209479177387814,
            -0.4886025119029199 * y,
            0.4886025119029199 * z,
            -0.4886025119029199 * x,
            1.0925484305920792 * x * y,
            -1.0925484305920792 * y * z,
            0.31539156525252005 * (2.0 * zz - xx - yy),
            -1.0925484305920792 * x * z,
            0.5462742152960396 * (xx - yy),
            -0.5900435899266435 * y * (3.0 * xx - yy),
            2.890611442640554 * x * y * z,
            -0.4570457994644658 * y * (4.0 * zz - xx - yy),
            0.3731763325901154 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy),
            -0.4570457994644658 * x * (4.0 * zz - xx - yy),
            1.445305721320277 * z * (xx - yy),
            -0.5900435899266435 * x * (xx - 3.0 * yy),
        ]
    };
    let sums = |terms: usize| -> Vec<f64> {
        let mut all = vec![];
        for (direction, coefficients) in directions.iter().zip(&coefficients) {
            let basis = basis(direction);
            for channel in 0..3 {
                all.push(0.5 + (0..terms).map(|k| basis[k] * f64::from(coefficients[k][channel])).sum::<f64>());
            }
        }
        all
    };
    let clear = |terms: usize| -> Vec<f64> { sums(terms).into_iter().map(|v| v.max(0.0)).collect() };
    let (all, some) = (clear(16), clear(4));
    // No colour is so near to zero that a rounding decides.
    assert!(sums(16).iter().all(|v| v.abs() > 1e-5));
    let mut gradient = vec![];
    for i in 0..count {
        for b in basis(&directions[i]) {
            for channel in 0..3 {
                let passes = all[3 * i + channel] > 0.0;
                gradient.push(if passes { b * f64::from(by_colour[i][channel]) } else { 0.0 });
            }
        }
    }
    everywhere(|run| {
        let (directions, coefficients, few) = (run.upload(&directions), run.upload(&coefficients), run.upload(&few));
        let colours = run.zeros::<f32>(count * 3);
        let config = || LaunchConfig::linear(count, 64);
        run.launch(harmonics::kernel::<16>(), config(), args![&directions, &coefficients, &colours]);
        // Sixteen terms below 3, each rounded some ten times.
        run.near(&colours, &all, 1e-5);
        run.launch(harmonics::kernel::<4>(), config(), args![&directions, &few, &colours]);
        run.near(&colours, &some, 1e-5);
        let by_colour = run.upload(&by_colour);
        let gain = run.zeros::<f32>(count * 48);
        run.launch(harmonics_back::kernel::<16>(), config(), args![&directions, &coefficients, &by_colour, &gain]);
        run.near(&gain, &gradient, 1e-5);
    });
}

// 235: transparency in any order

const LAYERS: usize = 6;

#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
struct Fragment {
    colour: [f32; 3],
    alpha: f32,
    depth: f32,
    /// The pixel of a fragment that comes; one more than the index of the next fragment in a list.
    link: u32,
}

/// Fragments in front of what is opaque go to their pixels' lists.
#[kernel]
fn a_buffer_insert(
    fragments: &[Fragment],
    opaque: &[f32],
    count: &mut u32,
    heads: &mut [u32],
    nodes: &mut [Fragment],
) {
    let Some(fragment) = fragments.get(global_id_x()) else {
        return;
    };
    let pixel = fragment.link as usize;
    if fragment.depth >= opaque[pixel] {
        return;
    }
    let slot = atomic_add(count, 1);
    if let Some(node) = nodes.get_mut(slot as usize) {
        let link = atomic_exchange(&mut heads[pixel], slot + 1);
        *node = Fragment { link, ..*fragment };
    }
}

/// The nearest layers of each pixel, blended from behind.
#[kernel]
fn a_buffer(heads: &[u32], nodes: &[Fragment], background: [f32; 3], out: &mut [f32]) {
    let pixel = global_id_x();
    if pixel >= heads.len() {
        return;
    }
    let node = |link: u32| link.checked_sub(1).map(|index| nodes[index as usize]);
    let mut layers = [Fragment::default(); LAYERS];
    let mut count = 0;
    for fragment in std::iter::successors(node(heads[pixel]), |fragment| node(fragment.link)) {
        let place = layers[..count].partition_point(|layer| layer.depth < fragment.depth);
        if place < LAYERS {
            count = (count + 1).min(LAYERS);
            layers.copy_within(place..count - 1, place + 1);
            layers[place] = fragment;
        }
    }
    let colour = layers[..count].iter().rev().fold(background, |below, layer| {
        std::array::from_fn(|c| layer.colour[c] * layer.alpha + below[c] * (1.0 - layer.alpha))
    });
    for (out, c) in out[3 * pixel..].iter_mut().zip(colour) {
        *out = c;
    }
}

#[test]
fn layers_are_blended_in_their_order() {
    let mut random = Random(235);
    let (pixels, count) = (157usize, 1001usize);
    let opaque: Vec<f32> = (0..pixels).map(|_| (random.bits() % 1000) as f32 / 1000.0 + 0.3).collect();
    // All depths differ.
    let fragments: Vec<Fragment> = (0..count)
        .map(|i| Fragment {
            colour: [0; 3].map(|_: u8| (random.bits() % 256) as f32 / 255.0),
            alpha: (random.bits() % 256) as f32 / 255.0,
            depth: (i * 389 % count) as f32 / count as f32,
            link: (random.bits() % pixels as u64) as u32,
        })
        .collect();
    let background = [0.25f32, 0.5, 0.75];
    let mut expected = vec![];
    let mut kept = 0;
    for pixel in 0..pixels {
        let mut own: Vec<&Fragment> =
            fragments.iter().filter(|f| f.link as usize == pixel && f.depth < opaque[pixel]).collect();
        own.sort_by(|a, b| a.depth.total_cmp(&b.depth));
        kept += own.len();
        own.truncate(LAYERS);
        // From the front: what still shines through.
        let mut colour = [0.0f64; 3];
        let mut through = 1.0;
        for f in own {
            for c in 0..3 {
                colour[c] += through * f64::from(f.alpha) * f64::from(f.colour[c]);
            }
            through *= 1.0 - f64::from(f.alpha);
        }
        expected.extend((0..3).map(|c| colour[c] + through * f64::from(background[c])));
    }
    everywhere(|run| {
        let (fragments, opaque) = (run.upload(&fragments), run.upload(&opaque));
        let (found, heads) = (run.zeros::<u32>(1), run.zeros::<u32>(pixels));
        let nodes = run.upload(&vec![Fragment::default(); count]);
        let config = LaunchConfig::linear(count, 64);
        run.launch(a_buffer_insert::kernel(), config, args![&fragments, &opaque, &found, &heads, &nodes]);
        run.holds(&found, &[kept as u32]);
        let out = run.zeros::<f32>(3 * pixels);
        let config = LaunchConfig::linear(pixels, 64);
        run.launch(a_buffer::kernel(), config, args![&heads, &nodes, background, &out]);
        run.near(&out, &expected, 2e-6);
    });
}

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
    const NOTHING: Self = TagCounts { transforms: 0, segments: 0, words: 0, styles: 0, paths: 0 };

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
    part[lane] = if lane < group_id_x() { sums[lane] } else { S::NOTHING };
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
        *out = if lane == 0 { before } else { before.with(part[lane - 1]) };
    }
}

#[test]
fn tags_are_counted_in_front_of_each_word() {
    let mut random = Random(236);
    let kinds = [0u8, 1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 0x10, 0x20, 0x40];
    let tags: Vec<u8> = (0..4 * 701).map(|_| kinds[(random.bits() % 16) as usize]).collect();
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
    let words: Vec<u32> = tags.chunks(4).map(|t| u32::from_le_bytes([t[0], t[1], t[2], t[3]])).collect();
    everywhere(|run| {
        let blocks = words.len().div_ceil(64);
        let tags = run.upload(&words);
        let sums = run.upload(&vec![TagCounts::default(); blocks]);
        let out = run.upload(&vec![TagCounts::default(); words.len()]);
        let config = || LaunchConfig::linear(words.len(), 64);
        run.launch(path_tags_reduce::kernel::<TagCounts>(), config(), args![&tags, &sums]);
        run.launch(path_tags::kernel::<TagCounts>(), config(), args![&tags, &sums, &out]);
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
    let n = (n.wrapping_mul(n.wrapping_mul(n).wrapping_mul(60493).wrapping_add(19_990_303)).wrapping_add(1_376_312_589)) & 0x7fff_ffff;
    0.5 * (n as f32 / 1_073_741_824.0)
}

#[device]
impl Wall {
    fn spot(&self, [x, y]: [f32; 2]) -> Spot {
        let row = (y / self.height).floor() as i32;
        let every = |rows: i32| rows > 0 && row.rem_euclid(rows) == 0;
        let width = if every(self.squash_rows) { self.width * self.squash } else { self.width };
        let offset = if every(self.offset_rows) { width * self.offset } else { 0.0 };
        let column = ((x + offset) / width).floor() as i32;
        let (u, v) = (x + offset - width * column as f32, y - self.height * row as f32);
        let tint = (brick_noise(((row as u32) << 16) + (column as u32 & 0xffff)) + self.bias).clamp(0.0, 1.0);
        let nearest = [u, v, width - u, self.height - v].into_iter().reduce(f32::min).unwrap();
        match 1.0 - nearest / self.mortar {
            depth if depth <= 0.0 => Spot::Brick(tint),
            depth if depth < self.smooth => {
                let t = depth / self.smooth;
                Spot::Edge { tint, mortar: t * t * (3.0 - 2.0 * t) }
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
        run.launch(bricks::kernel(), config, args![wall, size, 1.0f32 / 16.0, colours, &out]);
        // Distances of 1/32 are off by 1e-7, and divided by 0.07 * 0.4.
        run.near(&out, &expected, 2e-5);
    });
}
