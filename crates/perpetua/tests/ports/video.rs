//! Colours, and fields of a video.

use perpetua::prelude::*;

use crate::harness::everywhere;
use crate::images::{noise, tiles};
use crate::transformers::reals;

// 76: hue, saturation, lightness

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Hsl {
    hue: f32,
    saturation: f32,
    lightness: f32,
}

#[device]
impl From<[f32; 3]> for Hsl {
    fn from([r, g, b]: [f32; 3]) -> Self {
        let most = r.max(g).max(b);
        let least = r.min(g).min(b);
        let chroma = most - least;
        let lightness = (most + least) / 2.0;
        if chroma == 0.0 {
            return Hsl {
                hue: 0.0,
                saturation: 0.0,
                lightness,
            };
        }
        let sector = if most == r {
            (g - b) / chroma + if g < b { 6.0 } else { 0.0 }
        } else if most == g {
            2.0 + (b - r) / chroma
        } else {
            4.0 + (r - g) / chroma
        };
        let range = if lightness <= 0.5 {
            2.0 * lightness
        } else {
            2.0 - 2.0 * lightness
        };
        Hsl {
            hue: sector / 6.0,
            saturation: chroma / range,
            lightness,
        }
    }
}

#[device]
impl From<Hsl> for [f32; 3] {
    fn from(
        Hsl {
            hue,
            saturation,
            lightness,
        }: Hsl,
    ) -> Self {
        let chroma = (1.0 - (2.0 * lightness - 1.0).abs()) * saturation;
        let least = lightness - 0.5 * chroma;
        let sector = (hue - hue.floor()) * 6.0;
        let middle = chroma * (1.0 - (sector % 2.0 - 1.0).abs());
        let (r, g, b) = match sector as u32 {
            0 => (chroma, middle, 0.0),
            1 => (middle, chroma, 0.0),
            2 => (0.0, chroma, middle),
            3 => (0.0, middle, chroma),
            4 => (middle, 0.0, chroma),
            _ => (chroma, 0.0, middle),
        };
        [r + least, g + least, b + least]
    }
}

#[kernel]
fn modulate(brightness: f32, saturation: f32, hue: f32, pixels: &mut [[u8; 4]]) {
    let Some(pixel) = pixels.get_mut(global_id_x()) else {
        return;
    };
    let [r, g, b, alpha] = *pixel;
    let mut hsl = Hsl::from([r, g, b].map(|v| f32::from(v) / 255.0));
    hsl.hue = (hsl.hue + hue / 360.0).rem_euclid(1.0);
    hsl.saturation = (hsl.saturation * saturation).min(1.0);
    hsl.lightness *= brightness;
    let rgb: [f32; 3] = hsl.into();
    let [r, g, b] = rgb.map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8);
    *pixel = [r, g, b, alpha];
}

#[test]
fn modulate_scales_colours() {
    let mut pixels: Vec<[u8; 4]> = noise(4 * 400, 76)
        .chunks(4)
        .map(|c| c.try_into().unwrap())
        .collect();
    pixels.extend([[7, 7, 7, 1], [255; 4], [0; 4], [255, 0, 0, 3]]);
    let (brightness, saturation, hue) = (0.75f64, 1.25f64, 100.0f64);
    let expected: Vec<[f64; 4]> = pixels
        .iter()
        .map(|p| {
            let rgb: Vec<f64> = p[..3].iter().map(|v| f64::from(*v) / 255.0).collect();
            let (most, least) = (
                rgb.iter().copied().fold(0.0, f64::max),
                rgb.iter().copied().fold(1.0, f64::min),
            );
            let angle = (3f64.sqrt() * (rgb[1] - rgb[2])).atan2(2.0 * rgb[0] - rgb[1] - rgb[2]);
            // The hexagon's angle from the circle's: each sixth is linear in the middle component.
            let sixth = (angle.to_degrees().rem_euclid(360.0) / 60.0).floor();
            let middle = rgb.iter().sum::<f64>() - most - least;
            let part = if most > least {
                (middle - least) / (most - least)
            } else {
                0.0
            };
            let turns = (sixth + if sixth as i32 % 2 == 0 { part } else { 1.0 - part }) / 6.0 + hue / 360.0;
            let light = (most + least) / 2.0;
            let s = if most > least {
                (most - least) / (1.0 - (2.0 * light - 1.0).abs())
            } else {
                0.0
            };
            let (s, light) = ((s * saturation).min(1.0), light * brightness);
            let reach = s * light.min(1.0 - light);
            let channel = |n: f64| {
                let k = (n + turns * 12.0).rem_euclid(12.0);
                255.0 * (light - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)).clamp(0.0, 1.0)
            };
            [channel(0.0), channel(8.0), channel(4.0), f64::from(p[3])]
        })
        .collect();
    everywhere(|run| {
        let out = run.upload(&pixels);
        let args = args![brightness as f32, saturation as f32, hue as f32, &out];
        run.launch(modulate::kernel(), LaunchConfig::linear(pixels.len(), 64), args);
        for ((found, expected), from) in run.read(&out).iter().zip(&expected).zip(&pixels) {
            for (x, y) in found.iter().zip(expected) {
                assert!(
                    (f64::from(*x) - y).abs() < 0.51,
                    "{from:?}: {found:?}, {expected:?}"
                );
            }
        }
    });
}

// 79: deinterlacing

#[device]
trait Pixel: GpuType {
    fn level(self) -> i32;
    fn of(level: i32) -> Self;
}

#[device]
impl Pixel for u8 {
    fn level(self) -> i32 {
        self.into()
    }

    fn of(level: i32) -> Self {
        level as u8
    }
}

#[device]
impl Pixel for u16 {
    fn level(self) -> i32 {
        self.into()
    }

    fn of(level: i32) -> Self {
        level as u16
    }
}

/// The mean along the direction in which the lines above and below differ least.
#[device]
fn along_edge([a, b, c, d, e, f, g]: [i32; 7], [h, i, j, k, l, m, n]: [i32; 7]) -> i32 {
    let apart =
        |x: i32, y: i32, z: i32, u: i32, v: i32, w: i32| (x - y).abs() + (z - u).abs() + (v - w).abs();
    let mut best = (apart(c, j, d, k, e, l), (d + k) / 2);
    for (near, far) in [
        (
            (apart(b, k, c, l, d, m), (c + l) / 2),
            (apart(a, l, b, m, c, n), (b + m) / 2),
        ),
        (
            (apart(d, i, e, j, f, k), (e + j) / 2),
            (apart(e, h, f, i, g, j), (f + i) / 2),
        ),
    ] {
        if near.0 < best.0 {
            best = near;
            if far.0 < best.0 {
                best = far;
            }
        }
    }
    best.1
}

#[kernel(block_size = (8, 8))]
fn yadif<T: Pixel>(
    size: [i32; 2],
    parity: i32,
    second: bool,
    checked: bool,
    previous: &[T],
    current: &[T],
    next: &[T],
    out: &mut [T],
) {
    let [width, height] = size;
    let (x, y) = (global_id_x() as i32, global_id_y() as i32);
    if x >= width || y >= height {
        return;
    }
    let at = |frame: &[T], dx: i32, dy: i32| -> i32 {
        let (x, y) = ((x + dx).clamp(0, width - 1), (y + dy).clamp(0, height - 1));
        frame[(y * width + x) as usize].level()
    };
    let own = (y * width + x) as usize;
    if y % 2 == parity {
        out[own] = current[own];
        return;
    }
    let above: [i32; 7] = std::array::from_fn(|k| at(current, k as i32 - 3, -1));
    let below: [i32; 7] = std::array::from_fn(|k| at(current, k as i32 - 3, 1));
    let guess = along_edge(above, below);
    let (earlier, later) = if second {
        (current, next)
    } else {
        (previous, current)
    };
    let mean = |dy: i32| (at(earlier, 0, dy) + at(later, 0, dy)) / 2;
    let [f, g] = [at(current, 0, -1), at(current, 0, 1)];
    let moved = |frame: &[T]| ((at(frame, 0, -1) - f).abs() + (at(frame, 0, 1) - g).abs()) / 2;
    let own_change = (at(earlier, 0, 0) - at(later, 0, 0)).abs();
    let mut reach = [own_change, moved(previous), moved(next)]
        .into_iter()
        .max()
        .unwrap();
    let center = mean(0);
    if checked {
        let (outer, inner) = ([mean(-2) - f, mean(2) - g], [center - g, center - f]);
        let [p, q] = outer;
        let highest = inner[0].max(inner[1]).max(p.min(q));
        let lowest = inner[0].min(inner[1]).min(p.max(q));
        reach = reach.max(lowest).max(-highest);
    }
    out[own] = T::of(guess.clamp(center - reach, center + reach));
}

fn fields<T: Pixel + std::fmt::Debug + PartialEq>(kernel: KernelFn, scale: i32) {
    let (width, height) = (29i32, 18i32);
    let count = (width * height) as usize;
    let frame = |seed: u64| -> Vec<T> {
        let dots = noise(count, seed);
        let value = |i: usize| {
            (i as i32 % width * 7 + i as i32 / width * 3 + seed as i32 * 5) % 220 + i32::from(dots[i]) % 32
        };
        (0..count).map(|i| T::of(value(i) * scale)).collect()
    };
    let frames = [frame(79), frame(80), frame(81)];
    let levels: Vec<Vec<i32>> = frames
        .iter()
        .map(|f| f.iter().map(|p| p.level()).collect())
        .collect();
    for (parity, second, checked) in [(0, false, true), (1, true, false), (1, true, true)] {
        let get = |frame: usize, x: i32, y: i32| {
            levels[frame][(y.clamp(0, height - 1) * width + x.clamp(0, width - 1)) as usize]
        };
        let (e, l) = if second { (1, 2) } else { (0, 1) };
        let mut expected = frames[1].clone();
        for y in (0..height).filter(|y| y % 2 != parity) {
            for x in 0..width {
                let score = |s: i32| -> i32 {
                    (-1..2)
                        .map(|k| (get(1, x + s + k, y - 1) - get(1, x - s + k, y + 1)).abs())
                        .sum()
                };
                let mut slope = 0;
                for sign in [-1, 1] {
                    for by in [sign, 2 * sign] {
                        if score(by) < score(slope) && (by.abs() == 1 || slope == sign) {
                            slope = by;
                        }
                    }
                }
                let guess = (get(1, x + slope, y - 1) + get(1, x - slope, y + 1)) / 2;
                let mean = |dy: i32| (get(e, x, y + dy) + get(l, x, y + dy)) / 2;
                let (up, down) = (get(1, x, y - 1), get(1, x, y + 1));
                let moved = |f: usize| ((get(f, x, y - 1) - up).abs() + (get(f, x, y + 1) - down).abs()) / 2;
                let mut reach = (get(e, x, y) - get(l, x, y)).abs().max(moved(0)).max(moved(2));
                if checked {
                    let (p, q) = (mean(-2) - up, mean(2) - down);
                    let (r, s) = (mean(0) - up, mean(0) - down);
                    let most = *[r, s, p.min(q)].iter().max().unwrap();
                    let least = *[r, s, p.max(q)].iter().min().unwrap();
                    reach = *[reach, least, -most].iter().max().unwrap();
                }
                let value = guess.min(mean(0) + reach).max(mean(0) - reach);
                expected[(y * width + x) as usize] = T::of(value);
            }
        }
        everywhere(|run| {
            let [p, c, n] = [0, 1, 2].map(|k| run.upload(&frames[k]));
            let out = run.upload(&vec![T::of(0); count]);
            let args = args![[width, height], parity, second, checked, &p, &c, &n, &out];
            run.launch(kernel, tiles(width as usize, height as usize), args);
            run.holds(&out, &expected);
        });
    }
}

#[test]
fn yadif_fills_the_other_field() {
    fields::<u8>(yadif::kernel::<u8>(), 1);
    fields::<u16>(yadif::kernel::<u16>(), 200);
}

// 80: tones

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Tone {
    Linear,
    Clip,
    Gamma,
    Reinhard,
    Hable,
    Mobius,
}

#[device]
fn hable(x: f32) -> f32 {
    const A: f32 = 0.15;
    const B: f32 = 0.50;
    const C: f32 = 0.10;
    const D: f32 = 0.20;
    const E: f32 = 0.02;
    const F: f32 = 0.30;
    (x * (A * x + C * B) + D * E) / (x * (A * x + B) + D * F) - E / F
}

#[device]
impl Tone {
    fn map(self, signal: f32, peak: f32, param: f32) -> f32 {
        match self {
            Self::Linear => signal * param / peak,
            Self::Clip => (signal * param).clamp(0.0, 1.0),
            Self::Gamma if signal > 0.05 => (signal / peak).powf(1.0 / param),
            Self::Gamma => signal * (0.05 / peak).powf(1.0 / param) / 0.05,
            Self::Reinhard => signal / (signal + param) * (peak + param) / peak,
            Self::Hable => hable(signal) / hable(peak),
            Self::Mobius if signal <= param => signal,
            Self::Mobius => {
                let j = param;
                let a = -j * j * (peak - 1.0) / (j * j - 2.0 * j + peak);
                let b = (j * j - 2.0 * j * peak + peak) / (peak - 1.0).max(1e-6);
                (b * b + 2.0 * b * j + j * j) / (b - a) * (signal + a) / (signal + b)
            }
        }
    }
}

const LUMA: [f32; 3] = [0.2627, 0.6780, 0.0593];

const TO_709: [[f32; 3]; 3] = [
    [1.660_491, -0.587_641_1, -0.072_849_9],
    [-0.124_550_5, 1.132_9, -0.008_349_4],
    [-0.018_150_8, -0.100_578_9, 1.118_729_7],
];

/// Light in units of 100 candela per square metre.
#[device]
fn light(x: f32) -> f32 {
    let power = x.max(0.0).powf(1.0 / 78.84375);
    let base = (power - 0.8359375).max(0.0) / (18.851_563 - 18.6875 * power);
    100.0 * base.powf(1.0 / 0.159_301_76)
}

#[device]
fn dot(a: &[f32; 3], b: &[f32; 3]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[kernel]
fn tonemap(tone: Tone, param: f32, peak: f32, desaturate: f32, pixels: &mut [[f32; 3]]) {
    let Some(pixel) = pixels.get_mut(global_id_x()) else {
        return;
    };
    let mut rgb = pixel.map(light);
    let luma = dot(&LUMA, &rgb);
    if desaturate > 0.0 {
        let over = ((luma - desaturate).max(0.0) / luma.max(1e-6)).powf(1.5);
        rgb = rgb.map(|c| c + (luma - c) * over);
    }
    let signal = rgb.iter().fold(1e-6f32, |most, c| most.max(*c));
    let gain = tone.map(signal, peak, param) / signal;
    let linear = TO_709.map(|row| dot(&row, &rgb) * gain);
    *pixel = linear.map(|c| c.clamp(0.0, 1.0).powf(1.0 / 2.4));
}

#[test]
fn tones_fit_the_screen() {
    let pixels: Vec<[f32; 3]> = reals(3 * 300, 81)
        .chunks(3)
        .map(|c| [c[0], c[1], c[2]].map(|v| 0.1 + 0.6 * v.abs()))
        .collect();
    let (peak, desaturate) = (10.0f64, 0.5f64);
    let curve = |tone: Tone, x: f64, p: f64| match tone {
        Tone::Linear => x * p / peak,
        Tone::Clip => (x * p).min(1.0),
        Tone::Gamma if x <= 0.05 => x / 0.05 * (0.05 / peak).powf(p.recip()),
        Tone::Gamma => (x / peak).powf(p.recip()),
        Tone::Reinhard => (1.0 + p / peak) / (1.0 + p / x),
        Tone::Hable => {
            let h = |x: f64| (0.15 * x * x + 0.05 * x + 0.004) / (0.15 * x * x + 0.5 * x + 0.06) - 1.0 / 15.0;
            h(x) / h(peak)
        }
        Tone::Mobius if x <= p => x,
        Tone::Mobius => {
            let d = p * p - 2.0 * p + peak;
            let (a, b) = (
                -p * p * (peak - 1.0) / d,
                (p * p - 2.0 * p * peak + peak) / (peak - 1.0),
            );
            (b + p).powi(2) / (b - a) * (x + a) / (x + b)
        }
    };
    for (tone, param) in [
        (Tone::Linear, 1.0f64),
        (Tone::Clip, 0.5),
        (Tone::Gamma, 1.8),
        (Tone::Reinhard, 0.5),
        (Tone::Hable, 0.0),
        (Tone::Mobius, 0.3),
    ] {
        let mut expected = Vec::new();
        for pixel in &pixels {
            let light = |v: &f32| {
                let p = f64::from(*v).powf(32.0 / 2523.0);
                100.0 * ((p - 0.8359375).max(0.0) / (18.8515625 - 18.6875 * p)).powf(8192.0 / 1305.0)
            };
            let c: Vec<f64> = pixel.iter().map(light).collect();
            let luma = 0.2627 * c[0] + 0.678 * c[1] + 0.0593 * c[2];
            let over = ((luma - desaturate).max(0.0) / luma.max(1e-6)).powf(1.5);
            let c: Vec<f64> = c.iter().map(|c| c * (1.0 - over) + luma * over).collect();
            let most = c[0].max(c[1]).max(c[2]).max(1e-6);
            let gain = curve(tone, most, param) / most;
            for row in TO_709 {
                let sum: f64 = (0..3).map(|k| f64::from(row[k]) * c[k]).sum();
                expected.push((sum * gain).clamp(0.0, 1.0).powf(1.0 / 2.4));
            }
        }
        everywhere(|run| {
            let x = run.upload(&pixels);
            let args = args![tone, param as f32, peak as f32, desaturate as f32, &x];
            run.launch(tonemap::kernel(), LaunchConfig::linear(pixels.len(), 64), args);
            run.near(&x.cast::<f32>().unwrap(), &expected, 2e-3);
        });
    }
}
