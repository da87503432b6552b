//! Gradients of attention in tiles, by multiplications and additions (T. Dao and others, NeurIPS 2022). Must not know how heads and lengths are chosen.

use perpetua::prelude::*;

use crate::element::Storage;
use crate::lanes::across;

/// Queries or keys of a block, and keys or queries of a step.
pub(super) const TILE: usize = 64;
/// Columns of two matrices, or rows of one, that are in shared memory at the same time.
const DEPTH: usize = 16;

/// For each query the sum of the result times its gradient, which is the mean of its weights' gradients: 32 lanes a query.
#[kernel(block_size = 256, interpret)]
pub(super) fn attention_means<T: Storage>(
    rows: usize,
    dim: usize,
    out: &[T],
    slopes: &[T],
    means: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x() % 256;
    let row = group_id_x() * 8 + lane / 32;
    let mut sum = 0.0f32;
    if row < rows {
        let mut column = lane % 32;
        while column < dim {
            sum += out[row * dim + column].wide() * slopes[row * dim + column].wide();
            column += 32;
        }
    }
    let sum = across::<f32, 32, false>(part, lane, sum, |a, b| a + b);
    if row < rows && lane.is_multiple_of(32) {
        means[row] = sum;
    }
}

/// Sums times `scale`, in the type of the result.
#[kernel(block_size = 256, interpret)]
pub(super) fn attention_narrowed<T: Storage>(
    queries: usize,
    heads: usize,
    dim: usize,
    scale: f32,
    sums: &[f32],
    lengths: &[u32],
    out: &mut [T],
) {
    let (at, layer) = (global_id_x(), group_id_y());
    let mut end = queries;
    if !lengths.is_empty() {
        end = end.min(lengths[2 * (layer / heads)] as usize);
    }
    if at < end * dim {
        let at = layer * queries * dim + at;
        out[at] = T::narrow(sums[at] * scale);
    }
}

/// Products of 64 rows of `a` with 64 rows of `b`, from the first ones on; what is behind the ends is zero. A lane has those of four rows with four.
#[device]
#[allow(clippy::too_many_arguments, reason = "two matrices, and where they are")]
fn products<T: Storage>(
    left: &mut [[[f32; 4]; 17]; DEPTH],
    right: &mut [[[f32; 4]; 17]; DEPTH],
    lane: usize,
    dim: usize,
    a: &[T],
    a_from: usize,
    a_first: usize,
    a_end: usize,
    b: &[T],
    b_from: usize,
    b_first: usize,
    b_end: usize,
) -> [[f32; 4]; 4] {
    let (x, y) = (lane % 16, lane / 16);
    let mut sums = [[0.0f32; 4]; 4];
    let mut column = 0;
    while column < dim {
        for turn in 0..4 {
            let at = turn * 256 + lane;
            let (line, depth) = (at / DEPTH % TILE, at % DEPTH);
            let inside = column + depth < dim;
            let mut value = 0.0f32;
            if inside && a_first + line < a_end {
                value = a[a_from + (a_first + line) * dim + column + depth].wide();
            }
            left[depth][line / 4][line % 4] = value;
            let mut value = 0.0f32;
            if inside && b_first + line < b_end {
                value = b[b_from + (b_first + line) * dim + column + depth].wide();
            }
            right[depth][line / 4][line % 4] = value;
        }
        sync_threads();
        for depth in 0..DEPTH {
            let (l, r) = (left[depth][y], right[depth][x]);
            for i in 0..4 {
                for j in 0..4 {
                    sums[i][j] += l[i] * r[j];
                }
            }
        }
        sync_threads();
        column += DEPTH;
    }
    sums
}

/// Adds to sums 64 rows of `b`, weighed.
#[device]
#[allow(clippy::too_many_arguments, reason = "a matrix, and where it is")]
fn add<T: Storage, const PARTS: usize>(
    right: &mut [[[f32; 4]; 17]; DEPTH],
    weights: &mut [[[f32; 4]; 17]; TILE],
    lane: usize,
    dim: usize,
    sums: &mut [[[f32; 4]; 4]; PARTS],
    b: &[T],
    b_from: usize,
    b_first: usize,
    b_end: usize,
) {
    let (x, y) = (lane % 16, lane / 16);
    let mut below = 0;
    while below < TILE {
        for c in 0..PARTS {
            for turn in 0..4 {
                let at = turn * 256 + lane;
                let (depth, line) = (at / TILE % DEPTH, at % TILE);
                let (place, column) = (b_first + below + depth, TILE * c + line);
                let mut value = 0.0f32;
                if place < b_end && column < dim {
                    value = b[b_from + place * dim + column].wide();
                }
                right[depth][line / 4][line % 4] = value;
            }
            sync_threads();
            for depth in 0..DEPTH {
                let (l, r) = (weights[below + depth][y], right[depth][x]);
                for i in 0..4 {
                    for j in 0..4 {
                        sums[c][i][j] += l[i] * r[j];
                    }
                }
            }
            sync_threads();
        }
        below += DEPTH;
    }
}

/// Stores 64 rows of sums, times a factor.
#[device]
#[allow(clippy::too_many_arguments, reason = "a matrix, and where it is")]
fn store<T: Storage, const PARTS: usize>(
    lane: usize,
    dim: usize,
    sums: [[[f32; 4]; 4]; PARTS],
    factor: f32,
    out: &mut [T],
    from: usize,
    first: usize,
    end: usize,
) {
    let (x, y) = (lane % 16, lane / 16);
    for c in 0..PARTS {
        for i in 0..4 {
            for j in 0..4 {
                let (row, column) = (first + 4 * y + i, TILE * c + 4 * x + j);
                if row < end && column < dim {
                    out[from + row * dim + column] = T::narrow(sums[c][i][j] * factor);
                }
            }
        }
    }
}

/// A block computes the gradients of 64 keys and their values, from all queries of the heads that share them, or, without `OF_KEYS`, those of 64 queries of a head; the others come 64 a step. For
/// heads of at most `64 * PARTS` columns. `logs` and `means`: one for each query; `lengths`, `window`, `cap` and `slopes` as forward.
#[kernel(block_size = 256, interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn attention_backward<T: Storage, const PARTS: usize, const CAUSAL: bool, const OF_KEYS: bool>(
    queries: usize,
    keys: usize,
    dim: usize,
    heads: usize,
    group: usize,
    scale: f32,
    window: usize,
    cap: f32,
    q: &[T],
    k: &[T],
    v: &[T],
    lengths: &[u32],
    slopes: &[f32],
    dout: &[T],
    logs: &[f32],
    means: &[f32],
    first_out: &mut [T],
    second_out: &mut [T],
) {
    let left = shared_array::<[[[f32; 4]; 17]; DEPTH]>();
    let right = shared_array::<[[[f32; 4]; 17]; DEPTH]>();
    // By row of a step, then by row of the block.
    let weights = shared_array::<[[[f32; 4]; 17]; TILE]>();
    let lane = local_id_x() % 256;
    let (x, y) = (lane % 16, lane / 16);
    let entry = group_id_z();
    let first = group_id_x() * TILE;
    let (mut query_end, mut key_end) = (queries, keys);
    if !lengths.is_empty() {
        query_end = query_end.min(lengths[2 * entry] as usize);
        key_end = key_end.min(lengths[2 * entry + 1] as usize);
    }
    let key_head = if OF_KEYS {
        group_id_y()
    } else {
        group_id_y() / group
    };
    let k_from = (entry * (heads / group) + key_head) * keys * dim;
    // What a block's rows meet.
    let (least, most) = if OF_KEYS {
        let least = (first + query_end).saturating_sub(key_end);
        let most = (first + TILE + query_end + window).saturating_sub(key_end);
        (if CAUSAL { least } else { 0 }, query_end.min(most))
    } else {
        let least = (first + key_end + 1)
            .saturating_sub(query_end)
            .saturating_sub(window);
        let most = (first + TILE + key_end).saturating_sub(query_end);
        (least, if CAUSAL { key_end.min(most) } else { key_end })
    };
    let end = if OF_KEYS { key_end } else { query_end };
    let most = if first < end { most } else { 0 };

    let mut sums = [[[0.0f32; 4]; 4]; PARTS];
    let mut of_values = [[[0.0f32; 4]; 4]; PARTS];
    for member in 0..if OF_KEYS { group } else { 1 } {
        let head = if OF_KEYS {
            group_id_y() * group + member
        } else {
            group_id_y()
        };
        let q_rows = (entry * heads + head) * queries;
        let q_from = q_rows * dim;
        let slope = if slopes.is_empty() { 0.0 } else { slopes[head] };
        let mut from = least / TILE * TILE;
        while from < most {
            let (scores, gradients) = if OF_KEYS {
                (
                    products::<T>(
                        left, right, lane, dim, k, k_from, first, key_end, q, q_from, from, query_end,
                    ),
                    products::<T>(
                        left, right, lane, dim, v, k_from, first, key_end, dout, q_from, from, query_end,
                    ),
                )
            } else {
                (
                    products::<T>(
                        left, right, lane, dim, q, q_from, first, query_end, k, k_from, from, key_end,
                    ),
                    products::<T>(
                        left, right, lane, dim, dout, q_from, first, query_end, v, k_from, from, key_end,
                    ),
                )
            };
            let mut shares = [[0.0f32; 4]; 4];
            let mut turned = [[0.0f32; 4]; 4];
            for j in 0..4 {
                for i in 0..4 {
                    let (mine, other) = (first + 4 * y + i, from + 4 * x + j);
                    let (query, key) = if OF_KEYS { (other, mine) } else { (mine, other) };
                    let far = (key + query_end) as i64 - (query + key_end) as i64;
                    let seen = (!CAUSAL || far <= 0) && far + window as i64 > 0;
                    if query < query_end && key < key_end && seen {
                        let mut score = scores[i][j] * scale;
                        let mut rate = scale;
                        if cap > 0.0 {
                            let part = (score / cap).tanh();
                            score = cap * part;
                            rate *= 1.0 - part * part;
                        }
                        let share = (score + slope * far as f32 - logs[q_rows + query]).exp();
                        shares[j][i] = share;
                        turned[j][i] = share * (gradients[i][j] - means[q_rows + query]) * rate;
                    }
                }
            }
            if OF_KEYS {
                for j in 0..4 {
                    weights[4 * x + j][y] = shares[j];
                }
                sync_threads();
                add::<T, PARTS>(
                    right,
                    weights,
                    lane,
                    dim,
                    &mut of_values,
                    dout,
                    q_from,
                    from,
                    query_end,
                );
            }
            for j in 0..4 {
                weights[4 * x + j][y] = turned[j];
            }
            sync_threads();
            if OF_KEYS {
                add::<T, PARTS>(right, weights, lane, dim, &mut sums, q, q_from, from, query_end);
            } else {
                add::<T, PARTS>(right, weights, lane, dim, &mut sums, k, k_from, from, key_end);
            }
            from += TILE;
        }
    }
    if OF_KEYS {
        store::<T, PARTS>(lane, dim, sums, 1.0, first_out, k_from, first, key_end);
        store::<T, PARTS>(lane, dim, of_values, 1.0, second_out, k_from, first, key_end);
    } else {
        let q_from = (entry * heads + group_id_y()) * queries * dim;
        store::<T, PARTS>(lane, dim, sums, 1.0, first_out, q_from, first, query_end);
    }
}
