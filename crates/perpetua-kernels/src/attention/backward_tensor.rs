//! Gradients of attention by tensor cores: 128 keys or queries a block, of which a subgroup has 16. Weights go from one product to the next in the lanes' registers. Must not
//! know how heads and lengths are chosen.

use perpetua::prelude::*;
use perpetua_language::kernel::resident::U32x4;

use super::scores::capped;
use crate::element::{Factor, pair, turned};

/// Keys or queries of a block.
pub(super) const ROWS: usize = 128;

/// Where a piece of a row lies in a block's memory: rows of pieces turned by their numbers, so that lanes that read eight rows read from all banks.
#[device]
fn place<const EIGHTHS: usize>(row: usize, piece: usize) -> usize {
    row * EIGHTHS + (piece ^ (row % 8))
}

/// The same of weights, with so many pieces a row.
#[device]
fn place_of_weights<const PIECES: usize>(row: usize, piece: usize) -> usize {
    let by = if PIECES == 4 { row / 2 % 4 } else { row % 8 };
    row * PIECES + (piece ^ by)
}

/// Two pieces of a step's rows that are a lane's; zeros behind the rows' end.
#[device]
fn fetch<const EIGHTHS: usize>(
    x: &[U32x4],
    from: usize,
    first: usize,
    end: usize,
    pieces: usize,
    lane: usize,
) -> [[u32; 4]; 2] {
    let mut all = [[0u32; 4]; 2];
    for i in 0..2 {
        let at = i * 256 + lane;
        let (row, piece) = (first + at / EIGHTHS, at % EIGHTHS);
        if row < end && piece < pieces {
            let U32x4 { x, y, z, w } = x[from + row * pieces + piece];
            all[i] = [x, y, z, w];
        }
    }
    all
}

/// Stores what [`fetch`] has read, from piece `start` of the block's memory on.
#[device]
fn put<const EIGHTHS: usize>(memory: &mut [[u32; 4]], start: usize, lane: usize, all: [[u32; 4]; 2]) {
    for i in 0..2 {
        let at = i * 256 + lane;
        memory[start + place::<EIGHTHS>(at / EIGHTHS, at % EIGHTHS)] = all[i];
    }
}

/// Products of a subgroup's 16 rows with the 16 `WIDE` of a step.
#[device]
fn products<T: Factor, const EIGHTHS: usize, const HALF: usize, const WIDE: usize>(
    memory: &mut [[u32; 4]],
    mine: usize,
    other: usize,
    lane: usize,
) -> [[[f32; 4]; 2]; WIDE] {
    let (row, part, above) = (lane % 8, lane / 8 % 4, lane / 32 * 16);
    let mut sums = [[[0.0f32; 4]; 2]; WIDE];
    for step in 0..HALF {
        let left = memory[mine + place::<EIGHTHS>(above + part % 2 * 8 + row, step * 2 + part / 2)];
        let left = matrix_rows(left);
        for j in 0..WIDE {
            let right = memory[other + place::<EIGHTHS>(j * 16 + part / 2 * 8 + row, step * 2 + part % 2)];
            let [near, near_below, far, far_below] = matrix_rows(right);
            sums[j][0] = T::multiply(left, [near, near_below], sums[j][0]);
            sums[j][1] = T::multiply(left, [far, far_below], sums[j][1]);
        }
    }
    sums
}

/// Weights of a subgroup's 16 rows for 16 of a step, as they are multiplied.
#[device]
fn rounded<T: Factor>(weights: [[f32; 4]; 2]) -> [u32; 4] {
    let [[a, b, c, d], [e, f, g, h]] = weights;
    [
        pair::<T>([a, b], 1.0),
        pair::<T>([c, d], 1.0),
        pair::<T>([e, f], 1.0),
        pair::<T>([g, h], 1.0),
    ]
}

/// Adds a step's rows, weighed.
#[device]
fn add<T: Factor, const EIGHTHS: usize, const HALF: usize, const WIDE: usize>(
    memory: &mut [[u32; 4]],
    other: usize,
    lane: usize,
    weights: [[[f32; 4]; 2]; WIDE],
    sums: &mut [[[f32; 4]; 2]; HALF],
) {
    let (row, part) = (lane % 8, lane / 8 % 4);
    for j in 0..WIDE {
        let left = rounded::<T>(weights[j]);
        for n in 0..HALF {
            let right = memory[other + place::<EIGHTHS>(j * 16 + part % 2 * 8 + row, n * 2 + part / 2)];
            let [near, near_below, far, far_below] = matrix_columns(right);
            sums[n][0] = T::multiply(left, [near, near_below], sums[n][0]);
            sums[n][1] = T::multiply(left, [far, far_below], sums[n][1]);
        }
    }
}

/// Stores a subgroup's rows times a factor.
#[device]
#[allow(clippy::too_many_arguments, reason = "a matrix, and where it is")]
fn store<T: Factor, const HALF: usize>(
    sums: [[[f32; 4]; 2]; HALF],
    factor: f32,
    out: &mut [U32x4],
    from: usize,
    first: usize,
    end: usize,
    pieces: usize,
    lane: usize,
) {
    for j in 0..2 {
        let row = first + lane / 32 * 16 + lane % 32 / 4 + j * 8;
        for i in 0..HALF / 2 {
            let of = |n: usize| {
                pair::<T>(
                    [
                        sums[i * 2 + n / 2][n % 2][2 * j],
                        sums[i * 2 + n / 2][n % 2][2 * j + 1],
                    ],
                    factor,
                )
            };
            let four = [of(0), of(1), of(2), of(3)];
            let [x, y, z, w] = turned(four, lane as u32);
            let piece = i * 4 + lane % 4;
            if row < end && piece < pieces {
                out[from + row * pieces + piece] = U32x4 { x, y, z, w };
            }
        }
    }
}

/// The gradients of 128 keys and their values, from all queries of the heads that share them, or, without `OF_KEYS`, those of 128 queries of a head; the others come 16 `WIDE` a
/// step. Heads have at most `8 * EIGHTHS` columns, twice `8 * HALF`, and a step 4096 numbers. `PLAIN`: scores are products times `scale` and no more. With `ATOMIC` the gradients of queries, too, but for `scale`: what a block has of
/// them it adds to `sums`. `logs` and `means`: one for each query; `lengths`, `window`, `cap` and `slopes` as forward.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn attention_backward_tensor_core<
    T: Factor,
    const EIGHTHS: usize,
    const HALF: usize,
    const WIDE: usize,
    const PLAIN: bool,
    const OF_KEYS: bool,
    const ATOMIC: bool,
>(
    queries: usize,
    keys: usize,
    dim: usize,
    heads: usize,
    group: usize,
    scale: f32,
    window: usize,
    cap: f32,
    causal: u32,
    q: &[U32x4],
    k: &[U32x4],
    v: &[U32x4],
    lengths: &[u32],
    slopes: &[f32],
    dout: &[U32x4],
    logs: &[f32],
    means: &[f32],
    sums: &mut [f32],
    first_out: &mut [U32x4],
    second_out: &mut [U32x4],
) {
    let memory = shared_slice::<[u32; 4]>();
    let step = 16 * WIDE;
    // The block's rows of both matrices, two steps' rows of both others, weights.
    let both = ROWS * EIGHTHS;
    let (stages, stage_size) = (2 * both, step * EIGHTHS);
    let of_weights = stages + 4 * stage_size;
    let lane = local_id_x() % 256;
    let (row, part) = (lane % 8, lane / 8 % 4);
    let (own, column) = (lane / 32 * 16 + lane % 32 / 4, lane % 4 * 2);
    let entry = group_id_z();
    let first = group_id_x() * ROWS;
    let pieces = dim / 8;
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
    let k_from = (entry * (heads / group) + key_head) * keys * pieces;
    let is_causal = causal == 1;
    // What a block's rows meet.
    let (least, most) = if OF_KEYS {
        let least = (first + query_end).saturating_sub(key_end);
        let most = (first + ROWS + query_end + window).saturating_sub(key_end);
        (if is_causal { least } else { 0 }, query_end.min(most))
    } else {
        let least = (first + key_end + 1)
            .saturating_sub(query_end)
            .saturating_sub(window);
        let most = (first + ROWS + key_end).saturating_sub(query_end);
        (least, if is_causal { key_end.min(most) } else { key_end })
    };
    let (end, other_end) = if OF_KEYS {
        (key_end, query_end)
    } else {
        (query_end, key_end)
    };
    let most = if first < end { most } else { 0 };
    // What the lane's two rows meet, and the place of each among the others.
    let mut from_row = [0i32; 2];
    let mut to_row = [0i32; 2];
    let mut places = [0i32; 2];
    for j in 0..2 {
        let mine = (first + own + 8 * j) as i32;
        if OF_KEYS {
            let at = mine + query_end as i32 - key_end as i32;
            places[j] = at;
            from_row[j] = if is_causal { at } else { 0 };
            to_row[j] = (query_end as i32).min(at + window as i32);
        } else {
            let at = mine + key_end as i32 - query_end as i32;
            places[j] = at;
            from_row[j] = at + 1 - window as i32;
            to_row[j] = if is_causal {
                (key_end as i32).min(at + 1)
            } else {
                key_end as i32
            };
        }
        if mine >= end as i32 {
            to_row[j] = i32::MIN;
        }
    }

    let mut gradients = [[[0.0f32; 4]; 2]; HALF];
    let mut of_values = [[[0.0f32; 4]; 2]; HALF];
    let members = if OF_KEYS { group } else { 1 };
    let mut member = 0;
    while member < members {
        let head = if OF_KEYS {
            group_id_y() * group + member
        } else {
            group_id_y()
        };
        let q_rows = (entry * heads + head) * queries;
        let q_from = q_rows * pieces;
        let slope = if slopes.is_empty() {
            0.0
        } else {
            slopes[head] * std::f32::consts::LOG2_E
        };
        if member == 0 {
            for turn in 0..ROWS / step {
                let above = first + turn * step;
                let to = turn * step * EIGHTHS;
                if OF_KEYS {
                    put::<EIGHTHS>(
                        memory,
                        to,
                        lane,
                        fetch::<EIGHTHS>(k, k_from, above, end, pieces, lane),
                    );
                    put::<EIGHTHS>(
                        memory,
                        both + to,
                        lane,
                        fetch::<EIGHTHS>(v, k_from, above, end, pieces, lane),
                    );
                } else {
                    put::<EIGHTHS>(
                        memory,
                        to,
                        lane,
                        fetch::<EIGHTHS>(q, q_from, above, end, pieces, lane),
                    );
                    put::<EIGHTHS>(
                        memory,
                        both + to,
                        lane,
                        fetch::<EIGHTHS>(dout, q_from, above, end, pieces, lane),
                    );
                }
            }
        }
        // Of the lane's own queries.
        let mut log = [0.0f32; 2];
        let mut mean = [0.0f32; 2];
        if !OF_KEYS {
            for j in 0..2 {
                let query = first + own + 8 * j;
                if query < query_end {
                    log[j] = logs[q_rows + query] * std::f32::consts::LOG2_E;
                    mean[j] = means[q_rows + query];
                }
            }
        }
        let mut other = least / step * step;
        let mut stage = 0;
        let mut x_next = if OF_KEYS {
            fetch::<EIGHTHS>(q, q_from, other, other_end, pieces, lane)
        } else {
            fetch::<EIGHTHS>(k, k_from, other, other_end, pieces, lane)
        };
        let mut y_next = if OF_KEYS {
            fetch::<EIGHTHS>(dout, q_from, other, other_end, pieces, lane)
        } else {
            fetch::<EIGHTHS>(v, k_from, other, other_end, pieces, lane)
        };
        // Nobody reads any longer what the head before has left.
        sync_threads();
        put::<EIGHTHS>(memory, stages, lane, x_next);
        put::<EIGHTHS>(memory, stages + stage_size, lane, y_next);
        while other < most {
            let next = other + step;
            x_next = if OF_KEYS {
                fetch::<EIGHTHS>(q, q_from, next, other_end, pieces, lane)
            } else {
                fetch::<EIGHTHS>(k, k_from, next, other_end, pieces, lane)
            };
            y_next = if OF_KEYS {
                fetch::<EIGHTHS>(dout, q_from, next, other_end, pieces, lane)
            } else {
                fetch::<EIGHTHS>(v, k_from, next, other_end, pieces, lane)
            };
            sync_threads();
            let x_stage = stages + stage * 2 * stage_size;
            let y_stage = x_stage + stage_size;
            let mut shares = products::<T, EIGHTHS, HALF, WIDE>(memory, 0, x_stage, lane);
            // What a gradient of a score is more than that of a product.
            let mut rates = [[[1.0f32; 4]; 2]; WIDE];
            let mut of_columns = [[[0.0f32; 2]; 2]; WIDE];
            for n in 0..WIDE {
                for side in 0..2 {
                    for i in 0..2 {
                        let at = other + n * 16 + side * 8 + column + i;
                        let mut of_column = 0.0f32;
                        if OF_KEYS && at < query_end {
                            of_column = logs[q_rows + at] * std::f32::consts::LOG2_E;
                            of_columns[n][side][i] = means[q_rows + at];
                        }
                        for j in 0..2 {
                            let at = at as i32;
                            let mut score = shares[n][side][2 * j + i] * (scale * std::f32::consts::LOG2_E);
                            if !PLAIN {
                                if cap > 0.0 {
                                    let bound = cap * std::f32::consts::LOG2_E;
                                    score = capped(score, bound);
                                    let part = score / bound;
                                    rates[n][side][2 * j + i] = 1.0 - part * part;
                                }
                                // By how much a key is behind the query's own place.
                                let far = if OF_KEYS { places[j] - at } else { at - places[j] };
                                score += slope * far as f32;
                            }
                            let less = if OF_KEYS { of_column } else { log[j] };
                            let seen = at >= from_row[j] && at < to_row[j];
                            shares[n][side][2 * j + i] = if seen { fast_exp2(score - less) } else { 0.0 };
                        }
                    }
                }
            }
            if OF_KEYS {
                add::<T, EIGHTHS, HALF, WIDE>(memory, y_stage, lane, shares, &mut of_values);
            }
            let slopes_of = products::<T, EIGHTHS, HALF, WIDE>(memory, both, y_stage, lane);
            for n in 0..WIDE {
                for side in 0..2 {
                    for p in 0..4 {
                        let less = if OF_KEYS {
                            of_columns[n][side][p % 2]
                        } else {
                            mean[p / 2]
                        };
                        let share = shares[n][side][p];
                        // Of what is not seen there may be no gradient.
                        let gradient = if share == 0.0 {
                            0.0
                        } else {
                            share * (slopes_of[n][side][p] - less)
                        };
                        shares[n][side][p] = if PLAIN {
                            gradient
                        } else {
                            gradient * rates[n][side][p]
                        };
                    }
                }
            }
            add::<T, EIGHTHS, HALF, WIDE>(memory, x_stage, lane, shares, &mut gradients);
            if ATOMIC {
                for n in 0..WIDE {
                    let words = rounded::<T>(shares[n]);
                    for p in 0..4 {
                        let line = own + p % 2 * 8;
                        let piece = n * 2 + p / 2;
                        if WIDE == 2 {
                            memory[of_weights + place_of_weights::<4>(line, piece)][lane % 4] = words[p];
                        } else {
                            memory[of_weights + place_of_weights::<8>(line, piece)][lane % 4] = words[p];
                        }
                    }
                }
                sync_threads();
                // Each subgroup has 16 queries, and 32 columns.
                let (down, over) = (lane / 32 % WIDE, lane / 32 / WIDE);
                let mut of_queries = [[[0.0f32; 4]; 2]; 2];
                for depth in 0..ROWS / 16 {
                    let line = depth * 16 + part / 2 * 8 + row;
                    let piece = down * 2 + part % 2;
                    let brought = if WIDE == 2 {
                        memory[of_weights + place_of_weights::<4>(line, piece)]
                    } else {
                        memory[of_weights + place_of_weights::<8>(line, piece)]
                    };
                    let left = matrix_columns(brought);
                    for n in 0..2 {
                        let brought = memory
                            [place::<EIGHTHS>(depth * 16 + part % 2 * 8 + row, over * 4 + n * 2 + part / 2)];
                        let [near, near_below, far, far_below] = matrix_columns(brought);
                        of_queries[n][0] = T::multiply(left, [near, near_below], of_queries[n][0]);
                        of_queries[n][1] = T::multiply(left, [far, far_below], of_queries[n][1]);
                    }
                }
                for n in 0..2 {
                    for side in 0..2 {
                        for p in 0..4 {
                            let query = other + down * 16 + lane % 32 / 4 + p / 2 * 8;
                            let at = over * 32 + n * 16 + side * 8 + column + p % 2;
                            if query < query_end && at < dim {
                                atomic_add(&mut sums[(q_rows + query) * dim + at], of_queries[n][side][p]);
                            }
                        }
                    }
                }
            }
            stage = 1 - stage;
            put::<EIGHTHS>(memory, stages + stage * 2 * stage_size, lane, x_next);
            put::<EIGHTHS>(memory, stages + stage * 2 * stage_size + stage_size, lane, y_next);
            other = next;
        }
        member += 1;
    }
    if OF_KEYS {
        store::<T, HALF>(gradients, scale, first_out, k_from, first, end, pieces, lane);
        store::<T, HALF>(of_values, 1.0, second_out, k_from, first, end, pieces, lane);
    } else {
        let q_from = (entry * heads + group_id_y()) * queries * pieces;
        store::<T, HALF>(gradients, scale, first_out, q_from, first, end, pieces, lane);
    }
}
