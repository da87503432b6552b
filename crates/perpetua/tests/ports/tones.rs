//! Sounds: other sample rates, and prediction of what comes next.

use std::ops::{Add, Mul};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 177: polyphase resampling

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device]
impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device]
impl Mul<f32> for Complex {
    type Output = Self;

    fn mul(self, by: f32) -> Self {
        Complex {
            re: self.re * by,
            im: self.im * by,
        }
    }
}

/// Each row gets `up - 1` zeros behind each sample, is filtered, and keeps each `down`-th sample.
#[kernel]
fn resample<T>(
    up: usize,
    down: usize,
    taps: &[f32],
    length: usize,
    rows: &[T],
    results: &mut [T],
    width: usize,
) where
    T: GpuType + Default + Add<Output = T> + Mul<f32, Output = T>,
{
    let (n, row) = (global_id_x(), global_id_y());
    if n >= width || row >= rows.len() / length {
        return;
    }
    let row_of = &rows[row * length..][..length];
    let (newest, phase) = (n * down / up, n * down % up);
    // What would come from behind the row's end is zero.
    let missing = (newest + 1).saturating_sub(length);
    let heard = &row_of[..(newest + 1).min(length)];
    results[row * width + n] = taps
        .iter()
        .skip(phase + missing * up)
        .step_by(up)
        .zip(heard.iter().rev())
        .fold(T::default(), |sum, (tap, sample)| sum + *sample * *tap);
}

#[test]
fn rows_are_resampled_as_with_zeros_between() {
    let mut random = Random(177);
    let taps: Vec<f32> = (0..23).map(|_| random.between(-1.0, 1.0) as f32).collect();
    let (length, rows) = (50usize, 3usize);
    let samples: Vec<Complex> = (0..length * rows)
        .map(|_| Complex {
            re: random.between(-1.0, 1.0) as f32,
            im: random.between(-1.0, 1.0) as f32,
        })
        .collect();
    let real: Vec<f32> = samples.iter().map(|s| s.re).collect();
    for (up, down) in [(3usize, 2usize), (1, 4), (5, 1)] {
        let width = ((length - 1) * up + taps.len()).div_ceil(down);
        let filtered = |part: fn(&Complex) -> f32| -> Vec<f64> {
            let mut results = Vec::new();
            for row in samples.chunks(length) {
                let mut dense = vec![0.0f64; (length - 1) * up + taps.len()];
                for (i, sample) in row.iter().enumerate() {
                    for (k, tap) in taps.iter().enumerate() {
                        dense[i * up + k] += f64::from(part(sample)) * f64::from(*tap);
                    }
                }
                results.extend(dense.iter().step_by(down));
            }
            results
        };
        let (re, im) = (filtered(|s| s.re), filtered(|s| s.im));
        everywhere(|run| {
            let config = LaunchConfig::tiled(width as u32, rows as u32, (32, 2));
            let h = run.upload(&taps);
            let (x, y) = (run.upload(&real), run.zeros::<f32>(width * rows));
            run.launch(
                resample::kernel::<f32>(),
                config,
                args![up, down, &h, length, &x, &y, width],
            );
            run.near(&y, &re, 1e-5);
            let (x, y) = (run.upload(&samples), run.zeros::<Complex>(width * rows));
            run.launch(
                resample::kernel::<Complex>(),
                config,
                args![up, down, &h, length, &x, &y, width],
            );
            for (i, found) in run.read(&y).iter().enumerate() {
                let apart = (f64::from(found.re) - re[i]).hypot(f64::from(found.im) - im[i]);
                assert!(apart < 1e-5, "on {}: {i}", run.place());
            }
        });
    }
}

// 178: FLAC's linear prediction

const FRAME: usize = 256;
const ORDER: usize = 8;
const PRECISION: i32 = 12;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Predictor {
    coefficients: [i32; ORDER],
    shift: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Coded {
    predictor: Predictor,
    rice: u32,
    bits: u32,
}

/// Levinson and Durbin's recursion; nothing of silence.
#[device]
fn levinson(correlation: &[f32; ORDER + 1]) -> Option<[f32; ORDER]> {
    let mut error = correlation[0];
    if error <= 0.0 {
        return None;
    }
    let mut coefficients = [0.0; ORDER];
    for order in 0..ORDER {
        let known = &coefficients[..order];
        let predicted: f32 = known
            .iter()
            .zip(correlation[1..=order].iter().rev())
            .map(|(c, r)| c * r)
            .sum();
        let reflection = (correlation[order + 1] - predicted) / error;
        let mut next = coefficients;
        for (i, c) in next[..order].iter_mut().enumerate() {
            *c -= reflection * coefficients[order - 1 - i];
        }
        next[order] = reflection;
        coefficients = next;
        error *= 1.0 - reflection * reflection;
    }
    Some(coefficients)
}

#[device]
impl Predictor {
    /// What rounding leaves is passed on to the next coefficient.
    fn quantised(coefficients: [f32; ORDER]) -> Self {
        let largest = coefficients.iter().map(|c| c.abs()).fold(0.0, f32::max);
        let shift = (PRECISION - 2 - largest.log2().floor() as i32).clamp(0, 15);
        let most = (1 << (PRECISION - 1)) - 1;
        let mut rest = 0.0;
        let coefficients = coefficients.map(|c| {
            rest += c * (1 << shift) as f32;
            let rounded = (rest.round() as i32).clamp(-most - 1, most);
            rest -= rounded as f32;
            rounded
        });
        Predictor { coefficients, shift }
    }

    fn predict(&self, before: &[i32]) -> i32 {
        let sum: i64 = self
            .coefficients
            .iter()
            .zip(before.iter().rev())
            .map(|(c, s)| i64::from(*c) * i64::from(*s))
            .sum();
        (sum >> self.shift) as i32
    }
}

#[kernel(block_size = 64)]
fn encode(samples: &[i32], frames: &mut [Coded], residuals: &mut [i32]) {
    let windowed = shared_array::<[f32; FRAME]>();
    let correlation = shared_array::<[f32; ORDER + 1]>();
    let chosen = shared_array::<[Predictor; 1]>();
    let costs = shared_array::<[u32; 16]>();
    let (lane, frame) = (local_id_x(), group_id_x());
    let own = &samples[frame * FRAME..(frame + 1) * FRAME];
    for (i, sample) in own.iter().enumerate().skip(lane).step_by(64) {
        // Welch's window.
        let x = (2 * i + 1) as f32 / FRAME as f32 - 1.0;
        windowed[i] = *sample as f32 * (1.0 - x * x);
    }
    if let Some(cost) = costs.get_mut(lane) {
        *cost = 0;
    }
    sync_threads();
    if lane <= ORDER {
        correlation[lane] = windowed.iter().zip(&windowed[lane..]).map(|(a, b)| a * b).sum();
    }
    sync_threads();
    if lane == 0 {
        chosen[0] = levinson(correlation).map_or(Predictor::default(), Predictor::quantised);
    }
    sync_threads();
    let predictor = chosen[0];
    for i in (lane..FRAME).step_by(64) {
        let residual = match i.checked_sub(ORDER) {
            Some(start) => own[i] - predictor.predict(&own[start..i]),
            None => own[i],
        };
        residuals[frame * FRAME + i] = residual;
        if i >= ORDER {
            let folded = (residual.unsigned_abs() << 1) - u32::from(residual < 0);
            for (k, cost) in costs[..15].iter_mut().enumerate() {
                atomic_add(cost, (folded >> k) + 1 + k as u32);
            }
        }
    }
    sync_threads();
    if lane == 0 {
        let (rice, bits) = (0u32..15)
            .zip(costs.iter())
            .min_by_key(|(_, bits)| **bits)
            .unwrap();
        frames[frame] = Coded {
            predictor,
            rice,
            bits: *bits,
        };
    }
}

#[test]
fn frames_are_predicted_without_loss() {
    let mut random = Random(178);
    let count = 6usize;
    let samples: Vec<i32> = (0..count * FRAME)
        .map(|i| {
            let t = i as f64;
            let tone = 8000.0 * (t * 0.11).sin() + 3000.0 * (t * 0.37).sin() + random.between(-100.0, 100.0);
            // The last frame is silent.
            if i / FRAME + 1 == count { 0 } else { tone as i32 }
        })
        .collect();
    everywhere(|run| {
        let uploaded = run.upload(&samples);
        let (frames, residuals) = (run.zeros::<Coded>(count), run.zeros::<i32>(count * FRAME));
        let config = LaunchConfig::new(count as u32, 64);
        run.launch(encode::kernel(), config, args![&uploaded, &frames, &residuals]);
        let residuals = run.read(&residuals);
        for (f, coded) in run.read(&frames).iter().enumerate() {
            let residuals = &residuals[f * FRAME..(f + 1) * FRAME];
            let mut decoded = residuals[..ORDER].to_vec();
            for r in &residuals[ORDER..] {
                let n = decoded.len();
                let sum: i64 = (0..ORDER)
                    .map(|k| i64::from(coded.predictor.coefficients[k]) * i64::from(decoded[n - 1 - k]))
                    .sum();
                decoded.push(*r + (sum >> coded.predictor.shift) as i32);
            }
            assert_eq!(
                decoded,
                samples[f * FRAME..(f + 1) * FRAME],
                "on {}: {f}",
                run.place()
            );
            let cost = |k: u32| -> u32 {
                residuals[ORDER..]
                    .iter()
                    .map(|r| {
                        if *r < 0 {
                            (-2 * r - 1) as u32
                        } else {
                            2 * *r as u32
                        }
                    })
                    .map(|folded| folded / (1 << k) + 1 + k)
                    .sum()
            };
            let best = (0..15).map(cost).min().unwrap();
            assert_eq!(
                (coded.bits, cost(coded.rice)),
                (best, best),
                "on {}: {f}",
                run.place()
            );
            // What remains is near the noise.
            let most = if f + 1 == count { 1.0 } else { 10.0 };
            assert!(
                f64::from(best) / 248.0 <= most,
                "on {}: {f} {coded:?}",
                run.place()
            );
        }
    });
}
