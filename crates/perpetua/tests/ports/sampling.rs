//! Images and feature maps read between their pixels, and painted over.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::images::{noise, tiles};
use crate::transformers::reals;

// 64: pooled regions

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Region {
    image: u32,
    low: [f32; 2],
    high: [f32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pooling {
    channels: u32,
    width: u32,
    height: u32,
    scale: f32,
    /// Samples along each side of a bin; none: as many as there are pixels.
    samples: u32,
    aligned: bool,
}

/// A plane's value between its pixels, 0 outside.
#[device]
fn between(plane: &[f32], width: usize, height: usize, x: f32, y: f32) -> f32 {
    let inside = |v: f32, size: usize| (-1.0..=size as f32).contains(&v);
    if !inside(x, width) || !inside(y, height) {
        return 0.0;
    }
    let split = |v: f32, size: usize| {
        let v = v.max(0.0);
        let low = (v as usize).min(size - 1);
        let high = (low + 1).min(size - 1);
        (low, high, if low == size - 1 { 0.0 } else { v.fract() })
    };
    let (x0, x1, fx) = split(x, width);
    let (y0, y1, fy) = split(y, height);
    let row = |y: usize| plane[y * width + x0] * (1.0 - fx) + plane[y * width + x1] * fx;
    row(y0) * (1.0 - fy) + row(y1) * fy
}

#[kernel]
fn roi_align<const W: usize, const H: usize>(
    pooling: Pooling,
    regions: &[Region],
    x: &[f32],
    out: &mut [f32],
) {
    let (column, row) = (global_id_x(), global_id_y());
    let Pooling {
        channels,
        width,
        height,
        scale,
        samples,
        aligned,
    } = pooling;
    let (width, height) = (width as usize, height as usize);
    let (region, channel) = (
        global_id_z() / channels as usize,
        global_id_z() % channels as usize,
    );
    if column >= W || row >= H || region >= regions.len() {
        return;
    }
    let Region { image, low, high } = regions[region];
    let shift = if aligned { 0.5 } else { 0.0 };
    let low = low.map(|v| v * scale - shift);
    let high = high.map(|v| v * scale - shift);
    let mut size = [high[0] - low[0], high[1] - low[1]];
    if !aligned {
        size = size.map(|s| s.max(1.0));
    }
    let bin = [size[0] / W as f32, size[1] / H as f32];
    let count = bin.map(|b| if samples > 0 { samples } else { b.ceil() as u32 });
    let plane = width * height;
    let start = (image * channels) as usize * plane + channel * plane;
    let plane = &x[start..start + plane];
    let mut sum = 0.0;
    for iy in 0..count[1] {
        let y = low[1] + (row as f32 + (iy as f32 + 0.5) / count[1] as f32) * bin[1];
        for ix in 0..count[0] {
            let x = low[0] + (column as f32 + (ix as f32 + 0.5) / count[0] as f32) * bin[0];
            sum += between(plane, width, height, x, y);
        }
    }
    out[(global_id_z() * H + row) * W + column] = sum / (count[0] * count[1]).max(1) as f32;
}

#[test]
fn regions_are_pooled() {
    let (images, channels, width, height) = (2usize, 3usize, 17usize, 13usize);
    let x = reals(images * channels * width * height, 64);
    let mut random = Random(64);
    let regions: Vec<Region> = (0..9)
        .map(|_| {
            let mut place = |range: u64| (random.bits() % (range * 8)) as f32 / 4.0 - 4.0;
            let low = [place(16), place(12)];
            let high = [low[0] + place(8).abs() + 1.0, low[1] + place(8).abs() + 1.0];
            Region {
                image: random.bits() as u32 % 2,
                low,
                high,
            }
        })
        .collect();
    for (samples, aligned) in [(2, true), (0, true), (3, false)] {
        let pooling = Pooling {
            channels: channels as u32,
            width: width as u32,
            height: height as u32,
            scale: 0.5,
            samples,
            aligned,
        };
        let mut expected = Vec::new();
        for region in &regions {
            let edge = |v: f32| f64::from(v) * 0.5 - if aligned { 0.5 } else { 0.0 };
            let side = |k: usize| {
                let s = edge(region.high[k]) - edge(region.low[k]);
                if aligned { s } else { s.max(1.0) }
            };
            let (bw, bh) = (side(0) / 4.0, side(1) / 2.0);
            let count = |bin: f64| {
                if samples == 0 {
                    bin.ceil() as usize
                } else {
                    samples as usize
                }
            };
            for c in 0..channels {
                let plane = &x[(region.image as usize * channels + c) * width * height..];
                // A tent around each pixel, those at the edges reaching one pixel out.
                let tent = |v: f64, p: usize, size: usize| {
                    let v = if v < -1.0 || v > size as f64 {
                        return 0.0;
                    } else {
                        v.clamp(0.0, size as f64 - 1.0)
                    };
                    (1.0 - (v - p as f64).abs()).max(0.0)
                };
                for bin in 0..8 {
                    let (px, py) = ((bin % 4) as f64, (bin / 4) as f64);
                    let mut sum = 0.0;
                    for s in 0..count(bw) * count(bh) {
                        let (sx, sy) = ((s % count(bw)) as f64 + 0.5, (s / count(bw)) as f64 + 0.5);
                        let at_x = edge(region.low[0]) + px * bw + sx * bw / count(bw) as f64;
                        let at_y = edge(region.low[1]) + py * bh + sy * bh / count(bh) as f64;
                        for i in 0..width * height {
                            let weight = tent(at_x, i % width, width) * tent(at_y, i / width, height);
                            sum += weight * f64::from(plane[i]);
                        }
                    }
                    expected.push(sum / (count(bw) * count(bh)) as f64);
                }
            }
        }
        everywhere(|run| {
            let out = run.zeros::<f32>(expected.len());
            let config = LaunchConfig::new((2, 1, (regions.len() * channels) as u32), (2, 2, 1));
            let (regions, x) = (run.upload(&regions), run.upload(&x));
            let args = args![pooling, &regions, &x, &out];
            run.launch(roi_align::kernel::<4, 2>(), config, args);
            run.near(&out, &expected, 1e-4);
        });
    }
}

// 65: an image sampled at given places

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(i32)]
enum Filter {
    Nearest,
    Bilinear,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(i32)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// `x` mirrored at `low` and `high` until it lies between them.
#[device]
fn reflect(x: f32, low: f32, high: f32) -> f32 {
    if low == high {
        return 0.0;
    }
    let span = high - low;
    let from = (x - low).abs();
    let (flips, extra) = ((from / span).floor() as i32, from % span);
    match flips % 2 {
        0 => low + extra,
        _ => high - extra,
    }
}

#[device]
impl Padding {
    /// The place in pixels of a place in [-1, 1].
    fn place(self, place: f32, size: usize, corners: bool) -> f32 {
        let last = (size - 1) as f32;
        let (x, low, high) = match corners {
            true => ((place + 1.0) / 2.0 * last, 0.0, last),
            false => (((place + 1.0) * size as f32 - 1.0) / 2.0, -0.5, last + 0.5),
        };
        match self {
            Padding::Zeros => x,
            Padding::Border => x.clamp(0.0, last),
            Padding::Reflection => reflect(x, low, high).clamp(0.0, last),
        }
    }
}

#[kernel(block_size = (4, 4, 2))]
fn grid_sample(
    filter: Filter,
    padding: Padding,
    corners: bool,
    size: [usize; 2],
    out_size: [usize; 2],
    image: &[f32],
    grid: &[[f32; 2]],
    out: &mut [f32],
) {
    let [width, height] = size;
    let [out_width, out_height] = out_size;
    let (column, row, channel) = (global_id_x(), global_id_y(), global_id_z());
    if column >= out_width || row >= out_height || channel * width * height >= image.len() {
        return;
    }
    let plane = &image[channel * width * height..(channel + 1) * width * height];
    let [x, y] = grid[row * out_width + column];
    let (x, y) = (
        padding.place(x, width, corners),
        padding.place(y, height, corners),
    );
    let pixel = |x: i32, y: i32| -> f32 {
        let inside = (0..width as i32).contains(&x) && (0..height as i32).contains(&y);
        if inside {
            plane[y as usize * width + x as usize]
        } else {
            0.0
        }
    };
    let value = match filter {
        Filter::Nearest => pixel(x.round_ties_even() as i32, y.round_ties_even() as i32),
        Filter::Bilinear => {
            let (left, top) = (x.floor(), y.floor());
            let corners = [(0, 0), (1, 0), (0, 1), (1, 1)];
            corners
                .iter()
                .map(|&(dx, dy)| {
                    let weight = |v: f32, low: f32, d: i32| if d == 0 { low + 1.0 - v } else { v - low };
                    pixel(left as i32 + dx, top as i32 + dy) * weight(x, left, dx) * weight(y, top, dy)
                })
                .sum()
        }
    };
    out[(channel * out_height + row) * out_width + column] = value;
}

#[test]
fn grid_sample_pads_and_filters() {
    let (width, height, channels) = (9usize, 6usize, 3usize);
    let (out_width, out_height) = (11usize, 7usize);
    let image = reals(width * height * channels, 65);
    let grid: Vec<[f32; 2]> = reals(out_width * out_height * 2, 66)
        .chunks(2)
        .map(|p| [p[0] * 2.3 + 0.0003, p[1] * 3.1 + 0.0007])
        .collect();
    for filter in [Filter::Nearest, Filter::Bilinear] {
        for padding in [Padding::Zeros, Padding::Border, Padding::Reflection] {
            for corners in [true, false] {
                // Where a place lies, folded by trying all images of the mirror.
                let place = |p: f32, size: usize| {
                    let last = size as f64 - 1.0;
                    let (mut x, margin) = match corners {
                        true => ((f64::from(p) + 1.0) * 0.5 * last, 0.0),
                        false => ((f64::from(p) + 1.0) * 0.5 * size as f64 - 0.5, 0.5),
                    };
                    while padding == Padding::Reflection && (x < -margin || x > last + margin) {
                        x = if x < -margin {
                            -2.0 * margin - x
                        } else {
                            2.0 * (last + margin) - x
                        };
                    }
                    if padding == Padding::Zeros {
                        x
                    } else {
                        x.max(0.0).min(last)
                    }
                };
                let weight = |x: f64, pixel: usize| {
                    let far = (x - pixel as f64).abs();
                    match filter {
                        Filter::Nearest => f64::from(u8::from(far < 0.5)),
                        Filter::Bilinear => (1.0 - far).max(0.0),
                    }
                };
                let mut expected = Vec::new();
                for plane in image.chunks(width * height) {
                    for [x, y] in &grid {
                        let (x, y) = (place(*x, width), place(*y, height));
                        let of = |(i, v): (usize, &f32)| {
                            weight(x, i % width) * weight(y, i / width) * f64::from(*v)
                        };
                        expected.push(plane.iter().enumerate().map(of).sum());
                    }
                }
                everywhere(|run| {
                    let out = run.zeros::<f32>(expected.len());
                    let (image, grid) = (run.upload(&image), run.upload(&grid));
                    let (size, to) = ([width, height], [out_width, out_height]);
                    let config = LaunchConfig::new((3, 2, 2), (4, 4, 2));
                    let args = args![filter, padding, corners, size, to, &image, &grid, &out];
                    run.launch(grid_sample::kernel(), config, args);
                    run.near(&out, &expected, 1e-5);
                });
            }
        }
    }
}

// 77: oil paint

const TONES: usize = 16;

#[kernel(block_size = (8, 8))]
fn oilify(width: usize, height: usize, radius: i32, exponent: i32, image: &[[u8; 4]], out: &mut [[f32; 3]]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height {
        return;
    }
    let mut counts = [0u32; TONES];
    let mut sums = [[0.0; 3]; TONES];
    for (dx, dy) in (-radius..=radius)
        .flat_map(|dy| (-radius..=radius).map(move |dx| (dx, dy)))
        .filter(|(dx, dy)| dx * dx + dy * dy <= radius * radius)
    {
        let sx = (x as i32 + dx).clamp(0, width as i32 - 1) as usize;
        let sy = (y as i32 + dy).clamp(0, height as i32 - 1) as usize;
        let [r, g, b, _] = image[sy * width + sx];
        let tone = (u32::from(r) + u32::from(g) + u32::from(b)) as usize * TONES / (3 * 255 + 1);
        counts[tone] += 1;
        for (sum, v) in sums[tone].iter_mut().zip([r, g, b]) {
            *sum += f32::from(v) / 255.0;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(1) as f32;
    let mut color = [0.0; 3];
    let mut total = 0.0;
    for (count, sum) in counts.into_iter().zip(sums).filter(|(count, _)| *count > 0) {
        let weight = (count as f32 / most).powi(exponent);
        total += weight;
        color = std::array::from_fn(|k| color[k] + weight * sum[k] / count as f32);
    }
    out[y * width + x] = color.map(|c| c / total);
}

#[test]
fn oilify_takes_the_commonest() {
    let (width, height, radius, exponent) = (30usize, 22usize, 3i32, 5i32);
    let image: Vec<[u8; 4]> = noise(width * height * 4, 77)
        .chunks(4)
        .map(|c| [c[0] / 3, c[1] / 2, c[2], c[3]])
        .collect();
    let mut expected = Vec::new();
    for y in 0..height as i32 {
        for x in 0..width as i32 {
            let mut groups = vec![Vec::new(); TONES];
            for sy in y - radius..=y + radius {
                for sx in x - radius..=x + radius {
                    if (sx - x).pow(2) + (sy - y).pow(2) <= radius * radius {
                        let (cx, cy) = (sx.clamp(0, 29), sy.clamp(0, 21));
                        let pixel = image[(cy * 30 + cx) as usize];
                        let bright: usize = pixel[..3].iter().map(|v| usize::from(*v)).sum();
                        groups[bright * TONES / 766].push(pixel);
                    }
                }
            }
            let most = groups.iter().map(Vec::len).max().unwrap() as f64;
            let weight = |group: &Vec<[u8; 4]>| (group.len() as f64 / most).powi(exponent);
            let total: f64 = groups.iter().map(weight).sum();
            for channel in 0..3 {
                let mean = |group: &Vec<[u8; 4]>| {
                    let sum: u32 = group.iter().map(|p| u32::from(p[channel])).sum();
                    f64::from(sum) / 255.0 / group.len().max(1) as f64
                };
                expected.push(groups.iter().map(|g| weight(g) * mean(g)).sum::<f64>() / total);
            }
        }
    }
    everywhere(|run| {
        let (image, out) = (run.upload(&image), run.zeros::<[f32; 3]>(image.len()));
        let args = args![width, height, radius, exponent, &image, &out];
        run.launch(oilify::kernel(), tiles(width, height), args);
        run.near(&out.cast::<f32>().unwrap(), &expected, 1e-5);
    });
}
