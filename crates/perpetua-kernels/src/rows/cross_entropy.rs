//! Cross entropy of rows of scores with a label each. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::row::{Place, fetch, place, store};
use super::softmax::seen;
use crate::element::{Piece, near_power};
use crate::lanes::across;

/// Where a row lies, in numbers and in pieces of `N`, which may begin before it and end behind it.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Span {
    /// Its first piece, and how many it has.
    first: usize,
    pieces: usize,
    /// Numbers of the first piece that are in front of it, and of the last one those up to its end.
    skipped: u32,
    left: u32,
}

/// Whether a number of a piece is the row's.
#[device]
fn is_own(span: Span, piece: usize, number: u32) -> bool {
    !(piece == 0 && number < span.skipped || piece + 1 == span.pieces && number >= span.left)
}

/// What a lane has seen of a row, `TURN` numbers at a time: their maximum, the sum of the exponentials against it, and where it `adds` their sum.
#[device]
fn all_seen<M: Piece, const N: usize, const LANES: usize, const TURN: usize>(
    x: &[M],
    span: Span,
    within: usize,
    adds: bool,
) -> [f32; 3] {
    let (mut highest, mut sum, mut all) = (f32::NEG_INFINITY, 0.0f32, 0.0f32);
    let is_ragged = span.skipped > 0 || span.left < N as u32;
    let mut at = within;
    // The next numbers are on their way while these are worked on.
    let mut next = fetch::<M, N, LANES, TURN>(x, span.first, at, span.pieces, f32::NEG_INFINITY);
    while at < span.pieces {
        let mut numbers = next;
        let behind = at + TURN / N * LANES;
        next = fetch::<M, N, LANES, TURN>(x, span.first, behind, span.pieces, f32::NEG_INFINITY);
        // Of others' numbers in the row's first and last piece nothing is known.
        if N > 1 && is_ragged && (at == 0 || behind >= span.pieces) {
            for i in 0..TURN {
                if !is_own(span, at + i / N * LANES, (i % N) as u32) {
                    numbers[i] = f32::NEG_INFINITY;
                }
            }
        }
        (highest, sum) = seen::<TURN>(numbers, highest, sum, near_power);
        if adds {
            for i in 0..TURN {
                let piece = at + i / N * LANES;
                if piece < span.pieces && is_own(span, piece, (i % N) as u32) {
                    all += numbers[i];
                }
            }
        }
        at = behind;
    }
    [highest, sum, all]
}

/// The loss of each row, and the logarithm of the sum of its exponentials, in one pass: a lane keeps the maximum of what it has seen, and the sum of the exponentials against
/// it. Sizes and pitches count numbers: rows need not begin where pieces do.
#[kernel(interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn cross_entropy<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
>(
    rows: usize,
    columns: usize,
    x_pitch: usize,
    _y_pitch: usize,
    ignored: i32,
    smoothing: f32,
    x: &[M],
    labels: &[i32],
    losses: &mut [f32],
    logs: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x();
    let Place { row, within, .. } = place::<LANES>(rows, columns);
    let from = row * x_pitch;
    let skipped = from % N;
    let pieces = (skipped + columns).div_ceil(N);
    let span = Span {
        first: from / N,
        pieces: if row < rows { pieces } else { 0 },
        skipped: skipped as u32,
        left: (skipped + columns + N - pieces * N) as u32,
    };

    // What the label's score takes to come is no time behind the rest.
    let (mut label, mut score) = (ignored, f32::NAN);
    if row < rows && within == 0 {
        label = labels[row];
        if label >= 0 && (label as usize) < columns {
            let place = from + label as usize;
            let numbers = x[place / N].spread();
            for j in 0..N {
                if j == place % N {
                    score = numbers[j];
                }
            }
        }
    }
    // Without pieces each number takes a register for its place, too.
    let [highest, mut sum, all] = if N == 1 {
        all_seen::<M, N, LANES, 8>(x, span, within, smoothing > 0.0)
    } else {
        all_seen::<M, N, LANES, 16>(x, span, within, smoothing > 0.0)
    };
    let most = across::<f32, LANES, MEETS>(part, lane, highest, |a, b| a.max(b));
    if highest > f32::NEG_INFINITY {
        sum *= near_power(highest - most);
    }
    let sum = across::<f32, LANES, MEETS>(part, lane, sum, |a, b| a + b);
    let mut all = all;
    if smoothing > 0.0 {
        all = across::<f32, LANES, MEETS>(part, lane, all, |a, b| a + b);
    }
    if row < rows && within == 0 {
        let log = most + sum.ln();
        let mut loss = 0.0f32;
        if label != ignored {
            loss = log - (1.0 - smoothing) * score;
            if smoothing > 0.0 {
                loss -= smoothing * (all / columns as f32);
            }
        }
        losses[row] = loss;
        logs[row] = log;
    }
}

/// What a batch's losses are together: their sum, or its mean over the rows that count, and then how many those are. One block, so that the order is the same each
/// time.
#[kernel(block_size = 512, interpret)]
pub(super) fn cross_entropy_total<const MEAN: bool>(
    rows: usize,
    ignored: i32,
    losses: &[f32],
    labels: &[i32],
    total: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x() % 512;
    let (mut sum, mut count) = (0.0f32, 0.0f32);
    let mut row = lane;
    while row < rows {
        sum += losses[row];
        if labels[row] != ignored {
            count += 1.0;
        }
        row += 512;
    }
    let sum = across::<f32, 512, false>(part, lane, sum, |a, b| a + b);
    let count = across::<f32, 512, false>(part, lane, count, |a, b| a + b);
    if lane == 0 {
        total[0] = if MEAN { sum / count } else { sum };
        total[1] = count;
    }
}

/// The gradient of each row's scores by the logarithm that the loss has left: `softmax(x)`, less what the label asks for, times the loss's gradient.
#[kernel(interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn cross_entropy_backward<
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
    ignored: i32,
    smoothing: f32,
    step: usize,
    x: &[M],
    labels: &[i32],
    logs: &[f32],
    slopes: &[f32],
    total: &[f32],
    dx: &mut [M],
) {
    let Place { row, within, end } = place::<LANES>(rows, pieces);
    if row < rows {
        let (from, to) = (row * x_pitch, row * y_pitch);
        let (label, log) = (labels[row], logs[row]);
        // Of one loss for all rows there is one gradient: then the step is none.
        let mut slope = slopes[row * step];
        if !total.is_empty() {
            slope /= total[1];
        }
        let columns = pieces * N;
        if label < 0 || label as usize >= columns {
            slope = f32::NAN;
        }
        let everywhere = smoothing / columns as f32;
        let mut at = within;
        while at < end {
            let mut numbers = fetch::<M, N, LANES, 8>(x, from, at, end, 0.0);
            for i in 0..8 {
                let column = (at + i / N * LANES) * N + i % N;
                let mut wanted = everywhere;
                if column as i32 == label {
                    wanted += 1.0 - smoothing;
                }
                numbers[i] = if label == ignored {
                    0.0
                } else {
                    (M::power(numbers[i] - log) - wanted) * slope
                };
            }
            store::<M, N, LANES, 8>(dx, to, at, end, numbers);
            at += 8 / N * LANES;
        }
    }
}
