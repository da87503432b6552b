//! Signals over time: cepstra of speech, and channels of a wide band.

use std::f32::consts::PI;
use std::ops::{Add, AddAssign, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Phasor {
    re: f32,
    im: f32,
}

#[device]
impl Phasor {
    /// Of length 1, turned by this part of a circle.
    fn turned(part: f32) -> Self {
        let (im, re) = (2.0 * PI * part).sin_cos();
        Phasor { re, im }
    }

    fn power(self) -> f32 {
        self.re * self.re + self.im * self.im
    }
}

#[device]
impl Add for Phasor {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Phasor {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device]
impl AddAssign for Phasor {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[device]
impl Sub for Phasor {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Phasor {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

#[device]
impl Mul for Phasor {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Phasor {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

// 238: cepstra of speech

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct MelShape {
    rate: f32,
    low: f32,
    high: f32,
    emphasis: f32,
    lifter: f32,
    len: u32,
    shift: u32,
    bands: u32,
    cepstra: u32,
}

#[device]
fn mel_of(frequency: f32) -> f32 {
    1127.0 * (frequency / 700.0).ln_1p()
}

#[device]
impl MelShape {
    /// How much of a band a frequency has: a triangle over three neighbouring marks on the scale of mels.
    fn weight(&self, band: usize, frequency: f32) -> f32 {
        let (low, high) = (mel_of(self.low), mel_of(self.high));
        let step = (high - low) / (self.bands + 1) as f32;
        let place = (mel_of(frequency) - low) / step - band as f32;
        (1.0 - (place - 1.0).abs()).max(0.0)
    }

    /// Povey's window.
    fn window(&self, i: usize) -> f32 {
        let turn = 2.0 * PI * i as f32 / (self.len - 1) as f32;
        (0.5 - 0.5 * turn.cos()).max(0.0).powf(0.85)
    }
}

/// The transform of what the block holds, which stands in the order of reversed bits.
#[device]
fn transform<const N: usize>(x: &mut [Phasor; N]) {
    let mut span = 1;
    while span < N {
        sync_threads();
        for pair in (local_id_x()..N / 2).step_by(64) {
            let (group, k) = (pair / span, pair % span);
            let (first, second) = (group * 2 * span + k, (group * 2 + 1) * span + k);
            let turned = x[second] * Phasor::turned(-(k as f32) / (2 * span) as f32);
            (x[first], x[second]) = (x[first] + turned, x[first] - turned);
        }
        span *= 2;
    }
    sync_threads();
}

/// A block a frame, padded to `N` samples.
#[kernel(block_size = 64)]
fn mel<const N: usize>(shape: MelShape, signal: &[f32], energies: &mut [f32], cepstra: &mut [f32]) {
    let samples = shared_array::<[f32; N]>();
    let spectrum = shared_array::<[Phasor; N]>();
    let logs = shared_array::<[f32; 64]>();
    let (frame, lane) = (group_id_x(), local_id_x());
    let len = shape.len as usize;
    let own = &signal[frame * shape.shift as usize..][..len];

    logs[lane] = own.iter().skip(lane).step_by(64).sum();
    sync_threads();
    let mean = logs.iter().sum::<f32>() / len as f32;
    for (i, v) in own.iter().enumerate().skip(lane).step_by(64) {
        samples[i] = v - mean;
    }
    sync_threads();
    for i in (lane..N).step_by(64) {
        let reversed = (i as u32).reverse_bits() >> (32 - N.ilog2());
        let emphasized = (i < len).then(|| samples[i] - shape.emphasis * samples[i.saturating_sub(1)]);
        let re = emphasized.map_or(0.0, |v| v * shape.window(i));
        spectrum[reversed as usize] = Phasor { re, im: 0.0 };
    }
    transform(spectrum);

    let (bands, count) = (shape.bands as usize, shape.cepstra as usize);
    if lane < bands {
        let bins = spectrum[..N / 2].iter().enumerate();
        let energy: f32 = bins
            .map(|(k, v)| v.power() * shape.weight(lane, k as f32 * shape.rate / N as f32))
            .sum();
        let log = energy.max(f32::EPSILON).ln();
        logs[lane] = log;
        energies[frame * bands + lane] = log;
    }
    sync_threads();
    if lane < count {
        let cosines = logs[..bands].iter().enumerate().map(|(band, log)| {
            let angle = PI / bands as f32 * (band as f32 + 0.5) * lane as f32;
            log * angle.cos()
        });
        let parts = if lane == 0 { 1.0 } else { 2.0 };
        let scale = (parts / bands as f32).sqrt();
        let lift = 1.0 + 0.5 * shape.lifter * (PI * lane as f32 / shape.lifter).sin();
        cepstra[frame * count + lane] = scale * lift * cosines.sum::<f32>();
    }
}

#[test]
fn cepstra_are_cosines_of_logarithms() {
    let mut random = Random(238);
    let (frames, shift, len, bands, count) = (5usize, 40usize, 100usize, 15usize, 9usize);
    let (rate, low, high, emphasis, lifter) = (8000.0f64, 200.0f64, 3700.0f64, 0.97f64, 22.0f64);
    let signal: Vec<f32> = (0..frames * shift + len)
        .map(|i| 700.0 * (i as f32 * 0.37).sin() + (random.bits() % 2001) as f32 - 1000.0)
        .collect();
    let mel = |f: f64| 1127.0 * (1.0 + f / 700.0).ln();
    let (mut energies, mut cepstra) = (vec![], vec![]);
    for frame in 0..frames {
        let own: Vec<f64> = signal[frame * shift..][..len]
            .iter()
            .map(|v| f64::from(*v))
            .collect();
        let mean = own.iter().sum::<f64>() / len as f64;
        let windowed: Vec<f64> = (0..len)
            .map(|i| {
                let before = if i == 0 { own[0] } else { own[i - 1] };
                let window = 0.5 - 0.5 * (std::f64::consts::TAU * i as f64 / (len as f64 - 1.0)).cos();
                (own[i] - mean - emphasis * (before - mean)) * window.powf(0.85)
            })
            .collect();
        let power: Vec<f64> = (0..64)
            .map(|k| {
                let (mut re, mut im) = (0.0, 0.0);
                for (i, v) in windowed.iter().enumerate() {
                    let angle = std::f64::consts::TAU * (k * i) as f64 / 128.0;
                    re += v * angle.cos();
                    im -= v * angle.sin();
                }
                re * re + im * im
            })
            .collect();
        let mark = |m: usize| mel(low) + (mel(high) - mel(low)) * m as f64 / (bands + 1) as f64;
        let logs: Vec<f64> = (0..bands)
            .map(|b| {
                let mut energy = 0.0;
                for (k, power) in power.iter().enumerate() {
                    let place = mel(k as f64 * rate / 128.0);
                    let (left, middle, right) = (mark(b), mark(b + 1), mark(b + 2));
                    if place > left && place <= middle {
                        energy += power * (place - left) / (middle - left);
                    } else if place > middle && place < right {
                        energy += power * (right - place) / (right - middle);
                    }
                }
                energy.ln()
            })
            .collect();
        for c in 0..count {
            let sum: f64 = (0..bands)
                .map(|b| logs[b] * (std::f64::consts::PI * c as f64 * (b as f64 + 0.5) / bands as f64).cos())
                .sum();
            let scale = if c == 0 {
                (1.0 / bands as f64).sqrt()
            } else {
                (2.0 / bands as f64).sqrt()
            };
            let lift = 1.0 + lifter / 2.0 * (std::f64::consts::PI * c as f64 / lifter).sin();
            cepstra.push(scale * lift * sum);
        }
        energies.extend(logs);
    }
    everywhere(|run| {
        let shape = MelShape {
            rate: rate as f32,
            low: low as f32,
            high: high as f32,
            emphasis: emphasis as f32,
            lifter: lifter as f32,
            len: len as u32,
            shift: shift as u32,
            bands: bands as u32,
            cepstra: count as u32,
        };
        let signal = run.upload(&signal);
        let (e, c) = (run.zeros::<f32>(frames * bands), run.zeros::<f32>(frames * count));
        run.launch(
            mel::kernel::<128>(),
            LaunchConfig::new(frames as u32, 64),
            args![shape, &signal, &e, &c],
        );
        // Bins have at least a hundredth of the greatest one's size, of which the transform leaves them off by some 1e-6.
        run.near(&e, &energies, 1e-4);
        // Sums of fifteen such logarithms, lifted up to twelve times.
        run.near(&c, &cepstra, 2e-3);
    });
}

// 239: channels of a wide band

/// What a filter may be applied to.
#[device]
trait Sample: Copy {
    fn weighted(self, by: f32) -> Phasor;
}

#[device]
impl Sample for f32 {
    fn weighted(self, by: f32) -> Phasor {
        Phasor {
            re: self * by,
            im: 0.0,
        }
    }
}

#[device]
impl Sample for Phasor {
    fn weighted(self, by: f32) -> Phasor {
        Phasor {
            re: self.re * by,
            im: self.im * by,
        }
    }
}

/// Lanes along x are the channels, those along y times; the block shares what the filter's branches give.
#[kernel]
fn channelizer<S: Sample>(taps: &[f32], signal: &[S], out: &mut [Phasor]) {
    let branches = shared_slice::<Phasor>();
    let (channels, channel, row) = (block_dim_x() as usize, local_id_x(), local_id_y());
    let time = global_id_y();
    let mut sum = Phasor::default();
    for (k, tap) in taps.iter().enumerate().skip(channel).step_by(channels) {
        let sample = (time * channels)
            .checked_sub(k)
            .and_then(|place| signal.get(place));
        if let Some(sample) = sample {
            sum += sample.weighted(*tap);
        }
    }
    branches[row * channels + channel] = sum;
    sync_threads();
    let mut sum = Phasor::default();
    for (k, branch) in branches[row * channels..(row + 1) * channels].iter().enumerate() {
        sum += *branch * Phasor::turned((k * channel % channels) as f32 / channels as f32);
    }
    if let Some(place) = out.get_mut(time * channels + channel) {
        *place = sum;
    }
}

#[test]
fn channels_are_filtered_and_shifted() {
    let mut random = Random(239);
    let (channels, times, len) = (12usize, 41usize, 481usize);
    let mut number = || (random.bits() % 2001) as f32 / 1000.0 - 1.0;
    let taps: Vec<f32> = (0..59).map(|_| number() / 8.0).collect();
    let complex: Vec<Phasor> = (0..len)
        .map(|_| Phasor {
            re: number(),
            im: number(),
        })
        .collect();
    let real: Vec<f32> = complex.iter().map(|v| v.re).collect();
    let expected = |imaginary: f64| -> Vec<[f64; 2]> {
        let mut all = vec![];
        for time in 0..times {
            for channel in 0..channels {
                let (mut re, mut im) = (0.0, 0.0);
                for (n, tap) in taps.iter().enumerate() {
                    let place = (time * channels) as i64 - n as i64;
                    if place < 0 || place >= len as i64 {
                        continue;
                    }
                    let sample = complex[place as usize];
                    let (a, b) = (f64::from(sample.re * tap), imaginary * f64::from(sample.im * tap));
                    let (sin, cos) =
                        (std::f64::consts::TAU * (channel * n) as f64 / channels as f64).sin_cos();
                    re += a * cos - b * sin;
                    im += a * sin + b * cos;
                }
                all.push([re, im]);
            }
        }
        all
    };
    let (of_complex, of_real) = (expected(1.0), expected(0.0));
    everywhere(|run| {
        let near = |out: Vec<Phasor>, expected: &[[f64; 2]]| {
            for (i, (found, [re, im])) in out.iter().zip(expected).enumerate() {
                // Fifty-nine terms below 1/8 with sines that are off by some 1e-6.
                let far = (f64::from(found.re) - re)
                    .abs()
                    .max((f64::from(found.im) - im).abs());
                assert!(far < 1e-5, "on {}: {i} {found:?} [{re}, {im}]", run.place());
            }
        };
        let config = || {
            let blocks = times.div_ceil(4) as u32;
            LaunchConfig::new((1, blocks), (channels as u32, 4))
                .with_shared_bytes((channels * 4 * size_of::<Phasor>()) as _)
        };
        let (taps, complex, real) = (run.upload(&taps), run.upload(&complex), run.upload(&real));
        let out = run.zeros::<Phasor>(channels * times);
        run.launch(
            channelizer::kernel::<Phasor>(),
            config(),
            args![&taps, &complex, &out],
        );
        near(run.read(&out), &of_complex);
        run.launch(channelizer::kernel::<f32>(), config(), args![&taps, &real, &out]);
        near(run.read(&out), &of_real);
    });
}
