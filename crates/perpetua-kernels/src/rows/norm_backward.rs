//! Gradients of norms: of the rows, and then of what columns are weighed by. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::norm::moments;
use super::row::{TURN, fetch, store};
use crate::element::Piece;
use crate::lanes::across;

/// `scale (g - mean(g) - n mean(g n))` with `n` the normed row and `g` its gradient, `dy weight`; of the RMS norm, which is not `CENTRED`, without the mean of `g`. With `RESIDUAL` what is `beside` is added. `LANES` lanes for a row, each with
/// `HELD` numbers of `x` and of `dy` in registers. With `SUMS` those are all of it: then lanes go on with further rows, `turns` in all, and leave the sums of `dy` times the normed rows by column, and those of `dy`. Without them what is longer is read again, and
/// the mean and the scale of each row are left. Sizes and pitches count pieces of `N` numbers.
#[kernel(block_size = 512, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn norm_backward<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
    const CENTRED: bool,
    const RESIDUAL: bool,
    const SUMS: bool,
>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    y_pitch: usize,
    turns: usize,
    epsilon: f32,
    x: &[M],
    weight: &[M],
    dy: &[M],
    beside: &[M],
    dx: &mut [M],
    sums: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x();
    let within = lane % LANES;
    let team = group_id_x() * (block_dim_x() as usize / LANES) + lane / LANES;
    let teams = grid_dim_x() as usize * (block_dim_x() as usize / LANES);
    let columns = (pieces * N) as f32;
    let rest = HELD / N * LANES + within;
    let mut of_weights = [0.0f32; HELD];
    let mut of_biases = [0.0f32; HELD];

    for turn in 0..turns {
        let row = turn * teams + team;
        let end = if row < rows { pieces } else { 0 };
        let (from, to) = (row * x_pitch, row * y_pitch);
        let mut held = fetch::<M, N, LANES, HELD>(x, from, within, end, 0.0);
        let slopes = fetch::<M, N, LANES, HELD>(dy, from, within, end, 0.0);
        let (mean, scale) = moments::<M, N, LANES, HELD, MEETS, CENTRED>(
            part, lane, x, from, end, &mut held, columns, epsilon,
        );

        let (mut plain, mut along) = (0.0f32, 0.0f32);
        for turn in 0..HELD / TURN {
            let at = turn * (TURN / N * LANES) + within;
            let weights = fetch::<M, N, LANES, TURN>(weight, 0, at, end, 0.0);
            for j in 0..TURN {
                let i = turn * TURN + j;
                held[i] = (held[i] - mean) * scale;
                let slope = slopes[i] * weights[j];
                plain += slope;
                along += slope * held[i];
                if SUMS && i / N * LANES + within < end {
                    of_weights[i] += slopes[i] * held[i];
                    of_biases[i] += slopes[i];
                }
            }
        }
        if !SUMS {
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
        }
        if CENTRED {
            plain = across::<f32, LANES, MEETS>(part, lane, plain, |a, b| a + b) / columns;
        } else {
            plain = 0.0;
        }
        let along = across::<f32, LANES, MEETS>(part, lane, along, |a, b| a + b) / columns;

        for turn in 0..HELD / TURN {
            let at = turn * (TURN / N * LANES) + within;
            let weights = fetch::<M, N, LANES, TURN>(weight, 0, at, end, 0.0);
            let mut numbers = [0.0f32; TURN];
            if RESIDUAL {
                numbers = fetch::<M, N, LANES, TURN>(beside, from, at, end, 0.0);
            }
            for j in 0..TURN {
                let i = turn * TURN + j;
                numbers[j] += scale * (slopes[i] * weights[j] - plain - held[i] * along);
            }
            store::<M, N, LANES, TURN>(dx, to, at, end, numbers);
        }
        if !SUMS {
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
                sums[2 * row] = mean;
                sums[2 * row + 1] = scale;
            }
        }
    }
    if SUMS {
        let width = if CENTRED { 2 } else { 1 };
        let first = team * width * pieces * N;
        for i in 0..HELD {
            let piece = i / N * LANES + within;
            if piece < pieces {
                sums[first + piece * N + i % N] = of_weights[i];
                if CENTRED {
                    sums[first + (pieces + piece) * N + i % N] = of_biases[i];
                }
            }
        }
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
    let width = if CENTRED { 2 } else { 1 };
    for which in 0..2 {
        if which < width {
            part[lane] = if which == 0 { weights } else { biases };
            sync_threads();
            if down == 0 && piece < pieces {
                let first = ((width * slice + which) * pieces + piece) * N;
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
