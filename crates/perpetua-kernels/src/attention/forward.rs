//! Attention in one pass over the keys (online softmax: M. Milakov, N. Gimelshein, 2018; in tiles as T. Dao and others, NeurIPS 2022). Must not
//! know how heads and lengths are chosen.

use perpetua::prelude::*;

use crate::element::Storage;

/// Queries of a block, and keys of a step.
pub(super) const TILE: usize = 64;
/// Columns of queries and keys, or rows of values, that are in shared memory at the same time.
const DEPTH: usize = 16;

/// A block computes 64 queries of a head, against 64 keys a step; a lane 4 x 4 scores, then 4 x `4 * PARTS` elements of the result. For
/// heads of at most `64 * PARTS` columns. `lengths`: how many queries and keys each entry of the batch has, or nothing. A query sees no key that is `window` or
/// more before its own place; scores stay between `-cap` and `cap`, if that is not 0, and fall by `slopes`, one for each head, with the distance, if there are any. Where there is room for `logs`, each query's is stored.
#[kernel(block_size = 256, interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn attention<T: Storage, const PARTS: usize, const CAUSAL: bool>(
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
    out: &mut [T],
    logs: &mut [f32],
) {
    let left = shared_array::<[[[f32; 4]; 17]; DEPTH]>();
    let right = shared_array::<[[[f32; 4]; 17]; DEPTH]>();
    // By key, then by query.
    let weights = shared_array::<[[[f32; 4]; 17]; TILE]>();
    let part_of_row = shared_array::<[[f32; TILE]; 4]>();
    let most = shared_array::<[f32; TILE]>();
    let total = shared_array::<[f32; TILE]>();
    let factor = shared_array::<[f32; TILE]>();

    let lane = local_id_x() % 256;
    let (x, y) = (lane % 16, lane / 16);
    let (row, part) = (lane % TILE, lane / TILE % 4);
    let (head, entry) = (group_id_y(), group_id_z());
    let first = group_id_x() * TILE;
    let (mut query_end, mut key_end) = (queries, keys);
    if !lengths.is_empty() {
        query_end = query_end.min(lengths[2 * entry] as usize);
        key_end = key_end.min(lengths[2 * entry + 1] as usize);
    }
    let q_from = (entry * heads + head) * queries * dim;
    let k_from = (entry * (heads / group) + head / group) * keys * dim;
    // The last query sees the last key, so that the first ones see `ahead` keys more than their number, or fewer.
    let visible = if CAUSAL {
        (first + TILE + key_end).saturating_sub(query_end).min(key_end)
    } else {
        key_end
    };
    let visible = if first < query_end { visible } else { 0 };

    if part == 0 {
        most[row] = f32::NEG_INFINITY;
        total[row] = 0.0;
    }
    let mut sums = [[[0.0f32; 4]; 4]; PARTS];
    let slope = if slopes.is_empty() { 0.0 } else { slopes[head] };
    // The first step in which one of the block's queries sees a key.
    let hidden = (first + key_end + 1)
        .saturating_sub(query_end)
        .saturating_sub(window);
    let mut from = hidden / TILE * TILE;
    while from < visible {
        let mut scores = [[0.0f32; 4]; 4];
        let mut column = 0;
        while column < dim {
            for turn in 0..4 {
                let at = turn * 256 + lane;
                let (line, depth) = (at / DEPTH % TILE, at % DEPTH);
                let inside = column + depth < dim;
                let (query, key) = (first + line, from + line);
                let mut value = 0.0f32;
                if inside && query < query_end {
                    value = q[q_from + query * dim + column + depth].wide();
                }
                left[depth][line / 4][line % 4] = value;
                let mut value = 0.0f32;
                if inside && key < key_end {
                    value = k[k_from + key * dim + column + depth].wide();
                }
                right[depth][line / 4][line % 4] = value;
            }
            sync_threads();
            for depth in 0..DEPTH {
                let (l, r) = (left[depth][y], right[depth][x]);
                for i in 0..4 {
                    for j in 0..4 {
                        scores[i][j] += l[i] * r[j];
                    }
                }
            }
            sync_threads();
            column += DEPTH;
        }
        for j in 0..4 {
            let key = from + 4 * x + j;
            let mut of_key = [f32::NEG_INFINITY; 4];
            for i in 0..4 {
                let query = first + 4 * y + i;
                // By how much a key is behind the query's own place, or in front of it.
                let far = (key + query_end) as i64 - (query + key_end) as i64;
                if key < key_end && (!CAUSAL || far <= 0) && far + window as i64 > 0 {
                    let mut score = scores[i][j] * scale;
                    if cap > 0.0 {
                        score = cap * (score / cap).tanh();
                    }
                    of_key[i] = score + slope * far as f32;
                }
            }
            weights[4 * x + j][y] = of_key;
        }
        sync_threads();
        // Four lanes a query, 16 keys each.
        let mut highest = f32::NEG_INFINITY;
        for i in 0..16 {
            highest = highest.max(weights[16 * part + i][row / 4][row % 4]);
        }
        part_of_row[part][row] = highest;
        sync_threads();
        let before = most[row];
        let mut highest = before;
        for i in 0..4 {
            highest = highest.max(part_of_row[i][row]);
        }
        sync_threads();
        let mut sum = 0.0f32;
        for i in 0..16 {
            let score = weights[16 * part + i][row / 4][row % 4];
            // Where no key has been seen, there is no maximum either.
            let weight = if score == f32::NEG_INFINITY {
                0.0
            } else {
                (score - highest).exp()
            };
            weights[16 * part + i][row / 4][row % 4] = weight;
            sum += weight;
        }
        part_of_row[part][row] = sum;
        sync_threads();
        if part == 0 {
            let less = if highest == f32::NEG_INFINITY {
                1.0
            } else {
                (before - highest).exp()
            };
            let mut sum = total[row] * less;
            for i in 0..4 {
                sum += part_of_row[i][row];
            }
            total[row] = sum;
            most[row] = highest;
            factor[row] = less;
        }
        sync_threads();
        for c in 0..PARTS {
            for i in 0..4 {
                for j in 0..4 {
                    sums[c][i][j] *= factor[4 * y + i];
                }
            }
        }
        let mut key = 0;
        while key < TILE {
            for c in 0..PARTS {
                for turn in 0..4 {
                    let at = turn * 256 + lane;
                    let (depth, line) = (at / TILE % DEPTH, at % TILE);
                    let (place, column) = (from + key + depth, TILE * c + line);
                    let mut value = 0.0f32;
                    if place < key_end && column < dim {
                        value = v[k_from + place * dim + column].wide();
                    }
                    right[depth][line / 4][line % 4] = value;
                }
                sync_threads();
                for depth in 0..DEPTH {
                    let (l, r) = (weights[key + depth][y], right[depth][x]);
                    for i in 0..4 {
                        for j in 0..4 {
                            sums[c][i][j] += l[i] * r[j];
                        }
                    }
                }
                sync_threads();
            }
            key += DEPTH;
        }
        from += TILE;
    }
    sync_threads();
    for c in 0..PARTS {
        for i in 0..4 {
            let query = first + 4 * y + i;
            let all = total[4 * y + i];
            let share = if all == 0.0 { 0.0 } else { 1.0 / all };
            for j in 0..4 {
                let column = TILE * c + 4 * x + j;
                if query < query_end && column < dim {
                    out[q_from + query * dim + column] = T::narrow(sums[c][i][j] * share);
                }
            }
        }
    }
    if part == 0 && !logs.is_empty() && first + row < query_end {
        logs[(entry * heads + head) * queries + first + row] = most[row] + total[row].ln();
    }
}
