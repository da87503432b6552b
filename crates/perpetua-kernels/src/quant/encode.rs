//! Blocks from weights, as ggml's reference quantiser makes them: for each part of a block a search for the scale that fits best. A lane
//! makes two blocks, which begin and end with a word, so that no two lanes write to one.

use perpetua::prelude::*;

use super::decode::{Q4_0, Q4_K, Q5_K, Q8_0, bytes_of, weights_of};

/// Puts bits into the blocks, whose words were zeros before.
#[device]
fn put(blocks: &mut [u32], byte: usize, bits: u32) {
    blocks[byte / 4] |= bits << (8 * (byte as u32 % 4));
}

/// An `f16` as bits, and what it is worth.
#[device]
fn in_half(x: f32) -> (u32, f32) {
    let half = f16::from_f32(x);
    (half.to_bits() as u32, half.to_f32())
}

/// `1 / x`, or 0 for 0.
#[device]
fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// The nearest integer, halves to even, between `low` and `high`.
#[device]
fn nearest(x: f32, low: i32, high: i32) -> i32 {
    (x.round_ties_even() as i32).clamp(low, high)
}

/// What a search has found: a weight is about `scale * q + least`, with `q` the nearest to `inverse * (x - from)`.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Fit {
    scale: f32,
    least: f32,
    inverse: f32,
    from: f32,
}

/// The best scale and minimum for the 32 weights of `x`, where `q` is at most `most`: steps of 0.1 from `first` on are tried beside
/// the one that the range gives, and each is mended by least squares. Large weights count more.
#[device]
fn fit_with_minimum(x: &[f32], most: f32, first: f32, steps: u32) -> Fit {
    let mut squares = 0.0f32;
    for v in x {
        squares += *v * *v;
    }
    let average = (squares / 32.0).sqrt();
    let (mut low, mut high) = (x[0], x[0]);
    let (mut sum_w, mut sum_x) = (0.0f32, 0.0f32);
    for v in x {
        low = low.min(*v);
        high = high.max(*v);
        let w = average + v.abs();
        sum_w += w;
        sum_x += w * *v;
    }
    low = low.min(0.0);
    if high == low {
        return Fit {
            scale: 0.0,
            least: low,
            inverse: 0.0,
            from: low,
        };
    }
    let mut best = Fit {
        scale: (high - low) / most,
        least: low,
        inverse: most / (high - low),
        from: low,
    };
    best.scale = 1.0 / best.inverse;
    let mut best_error = 0.0f32;
    for v in x {
        let q = nearest(best.inverse * (*v - low), 0, most as i32) as f32;
        let off = best.scale * q + low - *v;
        best_error += (average + v.abs()) * (off * off);
    }
    for step in 0..=steps {
        let inverse = (first + 0.1 * step as f32 + most) / (high - low);
        let (mut sum_l, mut sum_l2, mut sum_xl) = (0.0f32, 0.0f32, 0.0f32);
        for v in x {
            let q = nearest(inverse * (*v - low), 0, most as i32) as f32;
            let w = average + v.abs();
            sum_l += w * q;
            sum_l2 += w * q * q;
            sum_xl += w * q * *v;
        }
        let determinant = sum_w * sum_l2 - sum_l * sum_l;
        if determinant > 0.0 {
            let mut scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
            let mut least = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
            if least > 0.0 {
                least = 0.0;
                scale = sum_xl / sum_l2;
            }
            let mut error = 0.0f32;
            for v in x {
                let q = nearest(inverse * (*v - low), 0, most as i32) as f32;
                let off = scale * q + least - *v;
                error += (average + v.abs()) * (off * off);
            }
            if error < best_error {
                best_error = error;
                best = Fit {
                    scale,
                    least,
                    inverse,
                    from: low,
                };
            }
        }
    }
    best
}

/// The best scale for the 16 weights of `x`, where `q` is between -32 and 31; 0 where all are next to nothing. The other number is that
/// by which `q` was found.
#[device]
fn fit_signed(x: &[f32]) -> (f32, f32) {
    let (mut most, mut size) = (0.0f32, 0.0f32);
    for v in x {
        if v.abs() > size {
            size = v.abs();
            most = *v;
        }
    }
    if size < 1e-15 {
        return (0.0, 0.0);
    }
    let (mut scale, mut best, mut found) = (0.0f32, 0.0f32, -32.0 / most);
    for turn in 0..19 {
        // The one that the range gives comes first.
        let step = if turn == 0 {
            0
        } else if turn <= 9 {
            turn - 10
        } else {
            turn - 9
        };
        let inverse = if step == 0 {
            -32.0 / most
        } else {
            -(32.0 + 0.1 * step as f32) / most
        };
        let (mut sum_lx, mut sum_l2) = (0.0f32, 0.0f32);
        for v in x {
            let q = nearest(inverse * *v, -32, 31) as f32;
            let w = *v * *v;
            sum_lx += w * *v * q;
            sum_l2 += w * q * q;
        }
        if turn == 0 {
            scale = if sum_l2 == 0.0 { 0.0 } else { sum_lx / sum_l2 };
            best = scale * sum_lx;
        } else if sum_l2 > 0.0 && sum_lx * sum_lx > best * sum_l2 {
            scale = sum_lx / sum_l2;
            best = scale * sum_lx;
            found = inverse;
        }
    }
    (scale, found)
}

/// A block of Q4_0 or Q8_0.
#[device]
fn encode_plain<const FORMAT: u32>(x: &[f32], blocks: &mut [u32], byte: usize) {
    let (mut most, mut size) = (0.0f32, 0.0f32);
    for v in x {
        if v.abs() > size {
            size = v.abs();
            most = *v;
        }
    }
    let d = if FORMAT == Q4_0 { most / -8.0 } else { size / 127.0 };
    let by = inverse(d);
    put(blocks, byte, in_half(d).0);
    for i in 0..32 {
        if FORMAT == Q4_0 {
            let q = ((x[i] * by + 8.5) as i32).min(15) as u32 & 15;
            put(blocks, byte + 2 + i % 16, q << (i as u32 / 16 * 4));
        } else {
            let q = (x[i] * by).round() as i32 as u32 & 255;
            put(blocks, byte + 2 + i, q);
        }
    }
}

/// A block of Q4_K or Q5_K.
#[device]
fn encode_with_minima<const FORMAT: u32>(x: &[f32], blocks: &mut [u32], byte: usize) {
    let most = if FORMAT == Q4_K { 15.0f32 } else { 31.0 };
    let (first, steps) = if FORMAT == Q4_K { (-1.0f32, 20) } else { (-0.5, 15) };
    let none = Fit {
        scale: 0.0,
        least: 0.0,
        inverse: 0.0,
        from: 0.0,
    };
    let mut fits = [none; 8];
    let (mut scale, mut least) = (0.0f32, 0.0f32);
    for j in 0..8 {
        let fit = fit_with_minimum(&x[32 * j..32 * j + 32], most, first, steps);
        fits[j] = fit;
        scale = scale.max(fit.scale);
        least = least.max(-fit.least);
    }
    let (by_scale, by_least) = (
        if scale > 0.0 { 63.0 / scale } else { 0.0 },
        if least > 0.0 { 63.0 / least } else { 0.0 },
    );
    let (d_bits, d) = in_half(scale / 63.0);
    let (least_bits, d_least) = in_half(least / 63.0);
    put(blocks, byte, d_bits);
    put(blocks, byte + 2, least_bits);
    for j in 0..8 {
        let fit = fits[j];
        let s = nearest(by_scale * fit.scale, 0, 63) as u32;
        let m = nearest(by_least * -fit.least, 0, 63) as u32;
        if j < 4 {
            put(blocks, byte + 4 + j, s);
            put(blocks, byte + 8 + j, m);
        } else {
            put(blocks, byte + 8 + j, s & 15 | (m & 15) << 4);
            put(blocks, byte + j, s >> 4 << 6);
            put(blocks, byte + 4 + j, m >> 4 << 6);
        }
        let (ds, dm) = (d * s as f32, d_least * m as f32);
        for l in 0..32 {
            let v = x[32 * j + l];
            // Where the scale became nothing, what the search had found stands.
            let exact = if ds == 0.0 {
                fit.inverse * (v - fit.from)
            } else {
                (v + dm) / ds
            };
            let q = nearest(exact, 0, most as i32) as u32;
            let low = if FORMAT == Q4_K { 16 } else { 48 };
            put(
                blocks,
                byte + low + j / 2 * 32 + l,
                (q & 15) << (j as u32 % 2 * 4),
            );
            if FORMAT == Q5_K {
                put(blocks, byte + 16 + l, (q >> 4) << j as u32);
            }
        }
    }
}

/// A block of Q6_K.
#[device]
fn encode_six(x: &[f32], blocks: &mut [u32], byte: usize) {
    let mut scales = [0.0f32; 16];
    let mut found = [0.0f32; 16];
    let (mut most, mut size) = (0.0f32, 0.0f32);
    for j in 0..16 {
        let (scale, by) = fit_signed(&x[16 * j..16 * j + 16]);
        scales[j] = scale;
        found[j] = by;
        if scale.abs() > size {
            size = scale.abs();
            most = scale;
        }
    }
    if size >= 1e-15 {
        let by = -128.0 / most;
        let (bits, d) = in_half(1.0 / by);
        put(blocks, byte + 208, bits);
        for j in 0..16 {
            let s = nearest(by * scales[j], -128, 127);
            put(blocks, byte + 192 + j, s as u32 & 255);
            let ds = d * s as f32;
            for l in 0..16 {
                let v = x[16 * j + l];
                let exact = if ds == 0.0 { found[j] * v } else { v / ds };
                let q = (nearest(exact, -32, 31) + 32) as u32;
                let at = 16 * j + l;
                let (half, quarter, column) = (at / 128, at % 128 / 32, at % 32);
                let low = byte + 64 * half + column + quarter % 2 * 32;
                put(blocks, low, (q & 15) << (quarter as u32 / 2 * 4));
                put(
                    blocks,
                    byte + 128 + 32 * half + column,
                    (q >> 4) << (2 * quarter as u32),
                );
            }
        }
    }
}

/// Two blocks a lane, from `count` blocks' weights.
#[kernel(block_size = 64, interpret)]
pub(super) fn quantize<const FORMAT: u32>(count: usize, x: &[f32], blocks: &mut [u32]) {
    let first = 2 * global_id_x();
    let (weights, bytes) = (weights_of(FORMAT), bytes_of(FORMAT));
    let end = (first + 2).min(count);
    if first < end {
        for at in first * bytes / 4..(end * bytes).div_ceil(4) {
            blocks[at] = 0;
        }
        for block in first..end {
            let part = &x[block * weights..block * weights + weights];
            if FORMAT == Q4_0 || FORMAT == Q8_0 {
                encode_plain::<FORMAT>(part, blocks, block * bytes);
            } else if FORMAT == Q4_K || FORMAT == Q5_K {
                encode_with_minima::<FORMAT>(part, blocks, block * bytes);
            } else {
                encode_six(part, blocks, block * bytes);
            }
        }
    }
}
