//! Softmax and its logarithm. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::row::{Place, TURN, fetch, fetch_alone, place, store};
use crate::element::Piece;
use crate::lanes::across;

/// The maximum of what has been seen and of further numbers, and the sum of the exponentials against it.
#[device]
pub(super) fn seen<const COUNT: usize>(
    numbers: [f32; COUNT],
    highest: f32,
    sum: f32,
    power: impl Fn(f32) -> f32,
) -> (f32, f32) {
    let mut most = highest;
    for i in 0..COUNT {
        most = most.max(numbers[i]);
    }
    let mut sum = sum;
    if most > f32::NEG_INFINITY {
        sum *= power(highest - most);
        for i in 0..COUNT {
            sum += power(numbers[i] - most);
        }
    } else {
        // So far there is nothing but -inf, which adds nothing, and what is no number, which makes the row none.
        for i in 0..COUNT {
            if numbers[i] > f32::NEG_INFINITY || numbers[i].is_nan() {
                sum += numbers[i];
            }
        }
    }
    (most, sum)
}

/// `LANES` lanes for a row, each with `HELD` numbers of it in registers. What is longer is read again, from the cache where it holds it: a lane keeps the
/// maximum of what it has seen of that, and the sum of the exponentials against it. Sizes and pitches count pieces of `N` numbers.
#[kernel(interpret)]
pub(super) fn softmax<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
    const LOGARITHM: bool,
>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    x: &[M],
    y: &mut [M],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x();
    let Place { row, within, end } = place::<LANES>(rows, pieces);
    let (from, to) = (row * x_pitch, row * y_pitch);
    let rest = HELD / N * LANES + within;

    let mut held = fetch_alone::<M, N, LANES, HELD>(x, from, within, end, f32::NEG_INFINITY);
    let (mut highest, mut sum) = (f32::NEG_INFINITY, 0.0f32);
    let mut at = rest;
    while at < end {
        let numbers = fetch::<M, N, LANES, TURN>(x, from, at, end, f32::NEG_INFINITY);
        (highest, sum) = seen::<TURN>(numbers, highest, sum, |x| M::power(x));
        at += TURN / N * LANES;
    }

    let mut most = highest;
    for i in 0..HELD {
        most = most.max(held[i]);
    }
    let most = across::<f32, LANES, MEETS>(part, lane, most, |a, b| a.max(b));
    // A lane that met nothing but -inf adds nothing; +inf less itself is no number, and makes the row none.
    if highest > f32::NEG_INFINITY {
        sum *= M::power(highest - most);
    }
    for i in 0..HELD {
        let power = M::power(held[i] - most);
        sum += power;
        if !LOGARITHM {
            held[i] = power;
        }
    }
    let sum = across::<f32, LANES, MEETS>(part, lane, sum, |a, b| a + b);

    let (share, less) = (sum.recip(), sum.ln());
    for i in 0..HELD {
        held[i] = if LOGARITHM {
            held[i] - most - less
        } else {
            held[i] * share
        };
    }
    store::<M, N, LANES, HELD>(y, to, within, end, held);
    let mut at = rest;
    while at < end {
        let mut numbers = fetch::<M, N, LANES, TURN>(x, from, at, end, 0.0);
        for i in 0..TURN {
            let below = numbers[i] - most;
            numbers[i] = if LOGARITHM {
                below - less
            } else {
                M::power(below) * share
            };
        }
        store::<M, N, LANES, TURN>(y, to, at, end, numbers);
        at += TURN / N * LANES;
    }
}

/// The gradient of the softmax, or of its logarithm, by its result `y`: `y (dy - sum(y dy))`, or `dy - exp(y) sum(dy)`. Lanes as for the softmax; so many that each has 128 registers.
#[kernel(block_size = 512, interpret)]
pub(super) fn softmax_backward<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
    const LOGARITHM: bool,
>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    y: &[M],
    dy: &[M],
    dx: &mut [M],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x();
    let Place { row, within, end } = place::<LANES>(rows, pieces);
    let (from, to) = (row * x_pitch, row * y_pitch);
    let rest = HELD / N * LANES + within;

    let results = fetch::<M, N, LANES, HELD>(y, from, within, end, 0.0);
    let mut slopes = fetch::<M, N, LANES, HELD>(dy, from, within, end, 0.0);
    let mut sum = 0.0f32;
    for i in 0..HELD {
        sum += if LOGARITHM {
            slopes[i]
        } else {
            slopes[i] * results[i]
        };
    }
    let mut at = rest;
    while at < end {
        let results = fetch::<M, N, LANES, TURN>(y, from, at, end, 0.0);
        let slopes = fetch::<M, N, LANES, TURN>(dy, from, at, end, 0.0);
        for i in 0..TURN {
            sum += if LOGARITHM {
                slopes[i]
            } else {
                slopes[i] * results[i]
            };
        }
        at += TURN / N * LANES;
    }
    let sum = across::<f32, LANES, MEETS>(part, lane, sum, |a, b| a + b);

    for i in 0..HELD {
        slopes[i] = slope::<M, LOGARITHM>(results[i], slopes[i], sum);
    }
    store::<M, N, LANES, HELD>(dx, to, within, end, slopes);
    let mut at = rest;
    while at < end {
        let results = fetch::<M, N, LANES, TURN>(y, from, at, end, 0.0);
        let mut slopes = fetch::<M, N, LANES, TURN>(dy, from, at, end, 0.0);
        for i in 0..TURN {
            slopes[i] = slope::<M, LOGARITHM>(results[i], slopes[i], sum);
        }
        store::<M, N, LANES, TURN>(dx, to, at, end, slopes);
        at += TURN / N * LANES;
    }
}

/// The gradient of an element, by its result, the result's gradient, and the row's sum.
#[device]
fn slope<M: Piece, const LOGARITHM: bool>(result: f32, slope: f32, sum: f32) -> f32 {
    if LOGARITHM {
        slope - M::power(result) * sum
    } else {
        result * (slope - sum)
    }
}
