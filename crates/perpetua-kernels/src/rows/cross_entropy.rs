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

/// What a lane has seen of a row: the maximum, the sum of the exponentials against it, and where it `adds` the sum of the numbers.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Sums {
    highest: f32,
    sum: f32,
    all: f32,
}

/// The same with further numbers.
#[device]
fn with<const COUNT: usize>(before: Sums, numbers: [f32; COUNT], adds: bool) -> Sums {
    let (highest, sum) = seen::<COUNT>(numbers, before.highest, before.sum, near_power);
    let mut all = before.all;
    if adds {
        for i in 0..COUNT {
            all += numbers[i];
        }
    }
    Sums { highest, sum, all }
}

/// With a piece, of which others may have numbers if it is the row's first or last one.
#[device]
fn with_own<M: Piece, const N: usize>(before: Sums, x: &[M], span: Span, at: usize, adds: bool) -> Sums {
    let piece = x[span.first + at].spread();
    let mut sums = before;
    let mut numbers = [f32::NEG_INFINITY; N];
    for i in 0..N {
        if is_own(span, at, i as u32) {
            numbers[i] = piece[i];
            if adds {
                sums.all += piece[i];
            }
        }
    }
    with::<N>(sums, numbers, false)
}

/// All that a lane sees of a row, in turns of `PIECES` pieces, of which `COUNT` numbers are worked on together.
#[device]
fn all_seen<M: Piece, const N: usize, const LANES: usize, const PIECES: usize, const COUNT: usize>(
    x: &[M],
    span: Span,
    within: usize,
    adds: bool,
) -> Sums {
    let mut sums = Sums {
        highest: f32::NEG_INFINITY,
        sum: 0.0,
        all: 0.0,
    };
    // Pieces that are the row's as a whole.
    let least = (span.skipped > 0) as usize;
    let end = span.pieces - (span.pieces > 0 && span.left < N as u32) as usize;
    let mut at = within;
    if at < least && at < span.pieces {
        sums = with_own::<M, N>(sums, x, span, at, adds);
        at += LANES;
    }
    // The last piece of a turn, seen from its first one.
    let last = (PIECES - 1) * LANES;
    let mut next = [M::gather([0.0; 8]); PIECES];
    if at + last < end {
        for i in 0..PIECES {
            next[i] = x[span.first + at + i * LANES];
        }
    }
    while at + last < end {
        let pieces = next;
        at += last + LANES;
        // The next ones are on their way while these are worked on.
        if at + last < end {
            for i in 0..PIECES {
                next[i] = x[span.first + at + i * LANES];
            }
        }
        for i in 0..PIECES * N / COUNT {
            let mut numbers = [0.0f32; COUNT];
            for j in 0..COUNT / N {
                let piece = pieces[i * (COUNT / N) + j].spread();
                for k in 0..N {
                    numbers[j * N + k] = piece[k];
                }
            }
            sums = with::<COUNT>(sums, numbers, adds);
        }
    }
    while at < span.pieces {
        sums = with_own::<M, N>(sums, x, span, at, adds);
        at += LANES;
    }
    sums
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

    // The label comes while the row does; its score is asked for when the row has come.
    let (mut label, mut score) = (ignored, f32::NAN);
    if row < rows && within == 0 {
        label = labels[row];
    }
    let Sums {
        highest,
        mut sum,
        mut all,
    } = match N {
        1 => all_seen::<M, N, LANES, 8, 8>(x, span, within, smoothing > 0.0),
        _ => all_seen::<M, N, LANES, 4, 16>(x, span, within, smoothing > 0.0),
    };
    if row < rows && within == 0 && label >= 0 && (label as usize) < columns {
        let place = from + label as usize;
        let numbers = x[place / N].spread();
        for j in 0..N {
            if j == place % N {
                score = numbers[j];
            }
        }
    }
    let most = across::<f32, LANES, MEETS>(part, lane, highest, |a, b| a.max(b));
    if highest > f32::NEG_INFINITY {
        sum *= near_power(highest - most);
    }
    let sum = across::<f32, LANES, MEETS>(part, lane, sum, |a, b| a + b);
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
