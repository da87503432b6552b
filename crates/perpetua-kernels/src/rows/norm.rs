//! Layer norm and RMS norm. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::row::{Place, TURN, fetch, fetch_alone, place, store};
use crate::element::Piece;
use crate::lanes::across;

/// The sum over a row's lanes of `term` of each of its numbers: of those that the lane holds, and of those from the piece `rest` on, which it reads. The lane has
/// no others; what `term` makes of `absent` is nothing.
#[device]
#[allow(clippy::too_many_arguments, reason = "where a row is, and who works on it")]
fn sum<M: Piece, const N: usize, const LANES: usize, const HELD: usize, const MEETS: bool>(
    part: &mut [f32; 512],
    lane: usize,
    x: &[M],
    from: usize,
    end: usize,
    held: [f32; HELD],
    absent: f32,
    term: impl Fn(f32) -> f32,
) -> f32 {
    let mut sum = 0.0;
    for i in 0..HELD {
        sum += term(held[i]);
    }
    let mut at = HELD / N * LANES + lane % LANES;
    while at < end {
        let numbers = fetch::<M, N, LANES, TURN>(x, from, at, end, absent);
        for i in 0..TURN {
            sum += term(numbers[i]);
        }
        at += TURN / N * LANES;
    }
    across::<f32, LANES, MEETS>(part, lane, sum, |a, b| a + b)
}

/// The mean of a row, or 0 where it is not `CENTRED`, and what its numbers are scaled by: one over the root of the mean of their squares. What a lane holds of what is not there becomes the mean.
#[device]
#[allow(clippy::too_many_arguments, reason = "where a row is, and who works on it")]
pub(super) fn moments<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
    const CENTRED: bool,
>(
    part: &mut [f32; 512],
    lane: usize,
    x: &[M],
    from: usize,
    end: usize,
    held: &mut [f32; HELD],
    columns: f32,
    epsilon: f32,
) -> (f32, f32) {
    let mut mean = 0.0;
    if CENTRED {
        mean = sum::<M, N, LANES, HELD, MEETS>(part, lane, x, from, end, *held, 0.0, |x| x) / columns;
        // What is not there is as far from the mean as the mean itself.
        if (HELD / N - 1) * LANES + lane % LANES >= end {
            for i in 0..HELD {
                if i / N * LANES + lane % LANES >= end {
                    held[i] = mean;
                }
            }
        }
    }
    let squares =
        sum::<M, N, LANES, HELD, MEETS>(part, lane, x, from, end, *held, mean, |x| (x - mean) * (x - mean));
    (mean, (squares / columns + epsilon).sqrt().recip())
}

/// The layer norm of each row.
#[kernel(interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn layer_norm<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[M],
    weight: &[M],
    bias: &[M],
    y: &mut [M],
) {
    let at = place::<LANES>(rows, pieces);
    let held = fetch_alone::<M, N, LANES, HELD>(x, at.row * x_pitch, at.within, at.end, 0.0);
    norm::<M, N, LANES, HELD, MEETS, true>(at, pieces, x_pitch, y_pitch, epsilon, held, x, weight, bias, y);
}

/// The RMS norm of each row.
#[kernel(interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn rms_norm<M: Piece, const N: usize, const LANES: usize, const HELD: usize, const MEETS: bool>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[M],
    weight: &[M],
    y: &mut [M],
) {
    let at = place::<LANES>(rows, pieces);
    let held = fetch_alone::<M, N, LANES, HELD>(x, at.row * x_pitch, at.within, at.end, 0.0);
    norm::<M, N, LANES, HELD, MEETS, false>(
        at, pieces, x_pitch, y_pitch, epsilon, held, x, weight, weight, y,
    );
}

/// The RMS norm of each row of a sum, which is stored, too.
#[kernel(interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn rms_norm_of_sum<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[M],
    residual: &[M],
    weight: &[M],
    all: &mut [M],
    y: &mut [M],
) {
    let at = place::<LANES>(rows, pieces);
    let (from, to) = (at.row * x_pitch, at.row * y_pitch);
    let mut held = fetch::<M, N, LANES, HELD>(x, from, at.within, at.end, 0.0);
    let other = fetch::<M, N, LANES, HELD>(residual, from, at.within, at.end, 0.0);
    for i in 0..HELD {
        held[i] += other[i];
    }
    store::<M, N, LANES, HELD>(all, to, at.within, at.end, held);
    let mut next = HELD / N * LANES + at.within;
    while next < at.end {
        let mut numbers = fetch::<M, N, LANES, TURN>(x, from, next, at.end, 0.0);
        let other = fetch::<M, N, LANES, TURN>(residual, from, next, at.end, 0.0);
        for i in 0..TURN {
            numbers[i] += other[i];
        }
        store::<M, N, LANES, TURN>(all, to, next, at.end, numbers);
        next += TURN / N * LANES;
    }
    // What does not stay in registers a lane reads again, as it has stored it.
    norm::<M, N, LANES, HELD, MEETS, false>(
        at, pieces, y_pitch, y_pitch, epsilon, held, all, weight, weight, y,
    );
}

/// `LANES` lanes for a row, each with `HELD` numbers of it in registers, `held`; what is longer is read again. Sizes and pitches count pieces of `N` numbers. Without
/// `CENTRED` it is the RMS norm, which has no bias.
#[device]
#[allow(clippy::too_many_arguments, reason = "what the kernels are given")]
fn norm<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
    const CENTRED: bool,
>(
    at: Place,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    mut held: [f32; HELD],
    x: &[M],
    weight: &[M],
    bias: &[M],
    y: &mut [M],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x();
    let Place { row, within, end } = at;
    let (from, to) = (row * x_pitch, row * y_pitch);
    let columns = (pieces * N) as f32;

    let (mean, scale) =
        moments::<M, N, LANES, HELD, MEETS, CENTRED>(part, lane, x, from, end, &mut held, columns, epsilon);

    for turn in 0..HELD / TURN {
        let mut numbers = [0.0f32; TURN];
        for i in 0..TURN {
            numbers[i] = held[turn * TURN + i];
        }
        let at = turn * (TURN / N * LANES) + within;
        let normed = scaled::<M, N, LANES, CENTRED>(numbers, mean, scale, weight, bias, at, end);
        store::<M, N, LANES, TURN>(y, to, at, end, normed);
    }
    let mut at = HELD / N * LANES + within;
    while at < end {
        let numbers = fetch::<M, N, LANES, TURN>(x, from, at, end, 0.0);
        let normed = scaled::<M, N, LANES, CENTRED>(numbers, mean, scale, weight, bias, at, end);
        store::<M, N, LANES, TURN>(y, to, at, end, normed);
        at += TURN / N * LANES;
    }
}

/// The numbers from the piece `at` on, normed.
#[device]
#[allow(clippy::too_many_arguments, reason = "numbers, and what they are scaled by")]
fn scaled<M: Piece, const N: usize, const LANES: usize, const CENTRED: bool>(
    mut numbers: [f32; TURN],
    mean: f32,
    scale: f32,
    weight: &[M],
    bias: &[M],
    at: usize,
    end: usize,
) -> [f32; TURN] {
    let weights = fetch_alone::<M, N, LANES, TURN>(weight, 0, at, end, 0.0);
    if CENTRED {
        let biases = fetch_alone::<M, N, LANES, TURN>(bias, 0, at, end, 0.0);
        for i in 0..TURN {
            numbers[i] = ((numbers[i] - mean) * scale).mul_add(weights[i], biases[i]);
        }
    } else {
        for i in 0..TURN {
            numbers[i] = numbers[i] * scale * weights[i];
        }
    }
    numbers
}
