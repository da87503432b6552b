//! Gradients of norms: of the rows, and then of what columns are weighed by. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::norm::sum;
use super::reduce::{Place, TURN, across, fetch, place, store};
use crate::element::{Piece, Storage};

/// Columns of pieces, and rows at a time, of a block that adds up columns.
pub(super) const SIDES: [usize; 2] = [32, 8];

/// The gradient of the layer norm of each row, and the mean and the scale of each.
#[kernel(block_size = 512, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn layer_norm_backward<
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
    dy: &[M],
    dx: &mut [M],
    scales: &mut [f32],
) {
    norm_backward::<M, N, LANES, HELD, MEETS, true, false>(
        rows, pieces, x_pitch, y_pitch, epsilon, x, weight, dy, dy, dx, scales,
    );
}

/// The gradient of the RMS norm of each row, and the scale of each.
#[kernel(block_size = 512, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn rms_norm_backward<
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
    dy: &[M],
    dx: &mut [M],
    scales: &mut [f32],
) {
    norm_backward::<M, N, LANES, HELD, MEETS, false, false>(
        rows, pieces, x_pitch, y_pitch, epsilon, x, weight, dy, dy, dx, scales,
    );
}

/// The same of a sum that goes on beside its norm, with a gradient of its own.
#[kernel(block_size = 512, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn rms_norm_of_sum_backward<
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
    dy: &[M],
    beside: &[M],
    dx: &mut [M],
    scales: &mut [f32],
) {
    norm_backward::<M, N, LANES, HELD, MEETS, false, true>(
        rows, pieces, x_pitch, y_pitch, epsilon, x, weight, dy, beside, dx, scales,
    );
}

/// `scale (g - mean(g) - n mean(g n))` with `n` the normed row and `g` its gradient, `dy weight`; of the RMS norm without the mean of `g`. `LANES` lanes for a row, each with
/// `HELD` numbers of `x` and of `g` in registers; what is longer is read again. Sizes and pitches count pieces of `N` numbers. With `RESIDUAL` what is `beside` is added.
#[device]
#[allow(clippy::too_many_arguments, reason = "what the kernels are given")]
fn norm_backward<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
    const CENTRED: bool,
    const RESIDUAL: bool,
>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[M],
    weight: &[M],
    dy: &[M],
    beside: &[M],
    dx: &mut [M],
    scales: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x();
    let Place { row, within, end } = place::<LANES>(rows, pieces);
    let (from, to) = (row * x_pitch, row * y_pitch);
    let columns = (pieces * N) as f32;
    let rest = HELD / N * LANES + within;

    let mut held = fetch::<M, N, LANES, HELD>(x, from, within, end, 0.0);
    let mut slopes = fetch::<M, N, LANES, HELD>(dy, from, within, end, 0.0);
    for turn in 0..HELD / TURN {
        let at = turn * (TURN / N * LANES) + within;
        let weights = fetch::<M, N, LANES, TURN>(weight, 0, at, end, 0.0);
        for i in 0..TURN {
            slopes[turn * TURN + i] *= weights[i];
        }
    }
    let mut mean = 0.0;
    if CENTRED {
        mean = sum::<M, N, LANES, HELD, MEETS>(part, lane, x, from, end, held, 0.0, |x| x) / columns;
        // What is not there is as far from the mean as the mean itself.
        for i in 0..HELD {
            if i / N * LANES + within >= end {
                held[i] = mean;
            }
        }
    }
    let squares =
        sum::<M, N, LANES, HELD, MEETS>(part, lane, x, from, end, held, mean, |x| (x - mean) * (x - mean));
    let scale = (squares / columns + epsilon).sqrt().recip();

    let (mut plain, mut along) = (0.0f32, 0.0f32);
    for i in 0..HELD {
        held[i] = (held[i] - mean) * scale;
        plain += slopes[i];
        along += slopes[i] * held[i];
    }
    let mut at = rest;
    while at < end {
        let numbers = fetch::<M, N, LANES, TURN>(x, from, at, end, 0.0);
        let slopes = weighed::<M, N, LANES>(dy, from, weight, at, end);
        for i in 0..TURN {
            plain += slopes[i];
            along += slopes[i] * ((numbers[i] - mean) * scale);
        }
        at += TURN / N * LANES;
    }
    if CENTRED {
        plain = across::<f32, LANES, MEETS>(part, lane, plain, |a, b| a + b) / columns;
    } else {
        plain = 0.0;
    }
    let along = across::<f32, LANES, MEETS>(part, lane, along, |a, b| a + b) / columns;

    for turn in 0..HELD / TURN {
        let at = turn * (TURN / N * LANES) + within;
        let mut numbers = [0.0f32; TURN];
        if RESIDUAL {
            numbers = fetch::<M, N, LANES, TURN>(beside, from, at, end, 0.0);
        }
        for i in 0..TURN {
            let normed = held[turn * TURN + i];
            numbers[i] += scale * (slopes[turn * TURN + i] - plain - normed * along);
        }
        store::<M, N, LANES, TURN>(dx, to, at, end, numbers);
    }
    let mut at = rest;
    while at < end {
        let numbers = fetch::<M, N, LANES, TURN>(x, from, at, end, 0.0);
        let mut slopes = weighed::<M, N, LANES>(dy, from, weight, at, end);
        for i in 0..TURN {
            slopes[i] = scale * (slopes[i] - plain - (numbers[i] - mean) * scale * along);
        }
        if RESIDUAL {
            let further = fetch::<M, N, LANES, TURN>(beside, from, at, end, 0.0);
            for i in 0..TURN {
                slopes[i] += further[i];
            }
        }
        store::<M, N, LANES, TURN>(dx, to, at, end, slopes);
        at += TURN / N * LANES;
    }
    if row < rows && within == 0 {
        scales[2 * row] = mean;
        scales[2 * row + 1] = scale;
    }
}

/// Gradients of a normed row from the piece `at` on.
#[device]
fn weighed<M: Piece, const N: usize, const LANES: usize>(
    dy: &[M],
    from: usize,
    weight: &[M],
    at: usize,
    end: usize,
) -> [f32; TURN] {
    let mut slopes = fetch::<M, N, LANES, TURN>(dy, from, at, end, 0.0);
    let weights = fetch::<M, N, LANES, TURN>(weight, 0, at, end, 0.0);
    for i in 0..TURN {
        slopes[i] *= weights[i];
    }
    slopes
}

/// Of `each` rows the sums of `dy` times the normed rows, by column, and with `CENTRED` then those of `dy`: a block has 32 pieces of a row, and eight rows at a time.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn norm_columns<M: Piece, const N: usize, const CENTRED: bool>(
    rows: usize,
    pieces: usize,
    pitch: usize,
    each: usize,
    x: &[M],
    dy: &[M],
    scales: &[f32],
    sums: &mut [f32],
) {
    let part = shared_array::<[[f32; 8]; 256]>();
    let lane = local_id_x() % 256;
    let (over, down) = (lane % 32, lane / 32);
    let piece = group_id_x() * 32 + over;
    let slice = group_id_y();
    let end = (slice * each + each).min(rows);
    let mut weights = [0.0f32; 8];
    let mut biases = [0.0f32; 8];
    if piece < pieces {
        let mut row = slice * each + down;
        while row < end {
            let (numbers, slopes) = (x[row * pitch + piece].spread(), dy[row * pitch + piece].spread());
            let (mean, scale) = (scales[2 * row], scales[2 * row + 1]);
            for j in 0..N {
                weights[j] += slopes[j] * ((numbers[j] - mean) * scale);
                biases[j] += slopes[j];
            }
            row += 8;
        }
    }
    for which in 0..2 {
        if which == 0 || CENTRED {
            part[lane] = if which == 0 { weights } else { biases };
            sync_threads();
            if down == 0 && piece < pieces {
                let first = ((2 * slice + which) * pieces + piece) * N;
                for j in 0..N {
                    let mut sum = 0.0f32;
                    for i in 0..8 {
                        sum += part[i * 32 + over][j];
                    }
                    sums[first + j] = sum;
                }
            }
            // Nobody writes the next sums before these have been read.
            sync_threads();
        }
    }
}

/// Adds up what slices of the rows have, in their order, from the number `from` on.
#[kernel(block_size = 256, interpret)]
pub(super) fn norm_columns_total<T: Storage>(
    columns: usize,
    slices: usize,
    from: usize,
    sums: &[f32],
    total: &mut [T],
) {
    let column = global_id_x();
    if column < columns {
        let mut sum = 0.0f32;
        for slice in 0..slices {
            sum += sums[from + 2 * slice * columns + column];
        }
        total[column] = T::narrow(sum);
    }
}
