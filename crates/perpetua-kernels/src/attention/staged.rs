//! Attention by products in stages: 128 queries of a head a block, against 128 keys a stage, or 64. One team of 128 lanes copies; each of two others multiplies 64
//! queries with the keys, makes weights of the products in its registers, and multiplies them with the values. Must not know how heads and
//! lengths are chosen.

use perpetua::prelude::*;
use perpetua_language::kernel::resident::U32x4;

use super::scores::capped;
use crate::element::{Paired, pair, turned};

/// Queries of a block.
pub(super) const QUERIES: usize = 128;
/// Lanes of a block.
pub(super) const LANES: u32 = 384;

/// The score of a key that is not seen.
pub(super) const NOTHING: f32 = f32::NEG_INFINITY;

/// What a lane keeps for its two queries: the highest score so far, the sum of weights against it, and by how much that has shrunk earlier sums.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Rows {
    pub(super) highest: [f32; 2],
    pub(super) total: [f32; 2],
    pub(super) shrunk: [f32; 2],
}

/// Which scores there are of a lane's two queries, by the numbers of keys.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Seen {
    /// The first key that a query sees, and the one behind the last.
    pub(super) from: [i32; 2],
    pub(super) to: [i32; 2],
    /// The key at a query's own place.
    pub(super) place: [i32; 2],
    /// The first column of each eight that the lane has.
    pub(super) over: i32,
}

/// What scores are made of products by: all but `scale` counts only where a kernel says so.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Scores {
    /// Times the binary logarithm of e, so that weights are powers of two.
    pub(super) scale: f32,
    /// The bound of scores, and what by it is divided, both times that logarithm.
    pub(super) cap: f32,
    /// How much a key loses by its distance, times that logarithm.
    pub(super) slope: f32,
}

/// The weights of scores of a stage whose keys begin at `first`, and what is kept after them. `MASKED`: not all keys of the stage are seen; `BANDED`: nor the first ones. `CAPPED`: scores have a bound; `SLOPED`: they depend on the distance; then they
/// are finished here, else they are still products, of which the greatest is that of the greatest score. `HERE`: of a lane's two queries the first one may be all that there is.
#[device]
pub(super) fn weighed<
    const MASKED: bool,
    const BANDED: bool,
    const CAPPED: bool,
    const SLOPED: bool,
    const WIDE: usize,
    const HERE: usize,
>(
    products: [[[f32; 2]; 2]; WIDE],
    seen: Seen,
    first: i32,
    how: Scores,
    before: Rows,
) -> ([[[f32; 2]; 2]; WIDE], Rows) {
    let mut scores = products;
    let mut after = before;
    let mut scale = how.scale;
    // The key of the lane's first score.
    let over = seen.over + first;
    if CAPPED || SLOPED {
        for n in 0..WIDE {
            for j in 0..HERE {
                for k in 0..2 {
                    let mut score = scores[n][j][k] * how.scale;
                    if CAPPED {
                        score = capped(score, how.cap);
                    }
                    if SLOPED {
                        let far = over + (n * 8 + k) as i32 - seen.place[j];
                        score = (far as f32).mul_add(how.slope, score);
                    }
                    scores[n][j][k] = score;
                }
            }
        }
        scale = 1.0;
    }
    if MASKED {
        for n in 0..WIDE {
            for j in 0..HERE {
                for k in 0..2 {
                    let key = over + (n * 8 + k) as i32;
                    if key >= seen.to[j] {
                        scores[n][j][k] = NOTHING;
                    }
                    if BANDED && key < seen.from[j] {
                        scores[n][j][k] = NOTHING;
                    }
                }
            }
        }
    }
    for n in 0..WIDE {
        for j in 0..HERE {
            // Of two first, for each step waits for the one before.
            after.highest[j] = after.highest[j].max(scores[n][j][0].max(scores[n][j][1]));
        }
    }
    let mut base = [0.0f32; 2];
    for j in 0..HERE {
        // Four lanes have a row.
        let mut highest = after.highest[j];
        highest = highest.max(subgroup_shuffle_xor(highest, 1));
        highest = highest.max(subgroup_shuffle_xor(highest, 2));
        // Where no key has been seen, there is no maximum either.
        base[j] = if highest == NOTHING { 0.0 } else { highest * scale };
        after.shrunk[j] = fast_exp2(before.highest[j].mul_add(scale, -base[j]));
        after.highest[j] = highest;
        after.total[j] *= after.shrunk[j];
    }
    for n in 0..WIDE {
        for j in 0..HERE {
            for k in 0..2 {
                scores[n][j][k] = fast_exp2(scores[n][j][k].mul_add(scale, -base[j]));
            }
            after.total[j] += scores[n][j][0] + scores[n][j][1];
        }
    }
    (scores, after)
}

/// Brings sums to weights against a higher score.
#[device]
pub(super) fn shrink<const EIGHTHS: usize, const HERE: usize>(
    sums: &mut [[[f32; 2]; 2]; EIGHTHS],
    by: [f32; 2],
) {
    for n in 0..EIGHTHS {
        for j in 0..HERE {
            for k in 0..2 {
                sums[n][j][k] *= by[j];
            }
        }
    }
}

/// Heads have `8 * EIGHTHS` columns, which is `dim`, and a stage `8 * WIDE` keys. `Q`, `K` and `V` say how their parts lie in the block's memory. `scale` is positive, and times the binary logarithm
/// of e, so that weights are powers of two. With `AHEAD` weights are made of a product with keys while the one before it is multiplied with values. With `BANDED` a query sees no key that is
/// `window` or more before its own place; with `CAPPED` scores go no further than `cap`, with `SLOPED` they fall by `slopes`, one for each head, with the distance. `lengths`: how many queries and keys
/// each entry of the batch has, or nothing. Where there is room for `logs`, each query's is stored.
#[kernel(block_size = 384, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn attention_staged<
    T: Paired,
    Q: GpuType,
    K: GpuType,
    V: GpuType,
    const EIGHTHS: usize,
    const WIDE: usize,
    const AHEAD: bool,
    const CAUSAL: bool,
    const BANDED: bool,
    const CAPPED: bool,
    const SLOPED: bool,
>(
    queries: usize,
    keys: usize,
    heads: usize,
    group: usize,
    scale: f32,
    window: usize,
    cap: f32,
    q_layers: usize,
    q_apart: usize,
    k_layers: usize,
    k_apart: usize,
    dim: usize,
    q: &[T],
    k: &[T],
    v: &[T],
    lengths: &[u32],
    slopes: &[f32],
    out: &mut [U32x4],
    logs: &mut [f32],
) {
    stage_factors::<Q, K>(q, queries, dim, dim, k, keys, dim, dim);
    stage_layers(q_layers, q_apart, k_layers, k_apart);
    stage_third::<V>(v, keys, dim, dim);
    let in_stage = WIDE * 8;
    let (head, entry) = (group_id_y(), group_id_z());
    // Blocks with most to do come first.
    let tile = if CAUSAL {
        grid_dim_x() as usize - 1 - group_id_x()
    } else {
        group_id_x()
    };
    let first = tile * QUERIES;
    let (mut query_end, mut key_end) = (queries, keys);
    if !lengths.is_empty() {
        query_end = query_end.min(lengths[2 * entry] as usize);
        key_end = key_end.min(lengths[2 * entry + 1] as usize);
    }
    let q_layer = entry * heads + head;
    let k_layer = entry * (heads / group) + head / group;
    // The last query sees the last key.
    let visible = if CAUSAL {
        (first + QUERIES + key_end).saturating_sub(query_end).min(key_end)
    } else {
        key_end
    };
    let visible = if first < query_end { visible } else { 0 };
    // The first key that one of the block's queries sees.
    let hidden = if BANDED {
        (first + key_end + 1)
            .saturating_sub(query_end)
            .saturating_sub(window)
            .min(visible)
    } else {
        0
    };
    let (least, turns) = ((hidden / in_stage) as u32, visible.div_ceil(in_stage) as u32);
    // Turns whose keys all queries of the block see. The others come first.
    let all = if CAUSAL {
        (first + 1 + key_end).saturating_sub(query_end).min(visible)
    } else {
        visible
    };
    let plain = if BANDED { least } else { (all / in_stage) as u32 };
    if is_producer() {
        for i in least..turns {
            let key = (turns + least - 1 - i) * in_stage as u32;
            fill_stage_of(q_layer as u32, k_layer as u32, first as u32, key, 0);
        }
    } else {
        let lane = local_id_x() as u32;
        // Where this lane's sums are: the rows, and the first column of each eight.
        let down = lane % 128 / 4 + lane % 128 / 32 * 8 + (lane / 128 - 1) * 64;
        let row = first + down as usize;
        // Keys that its two queries see.
        let mut seen = Seen {
            from: [0; 2],
            to: [key_end as i32; 2],
            place: [0; 2],
            over: (lane % 4 * 2) as i32,
        };
        for j in 0..2 {
            seen.place[j] = (row + j * 8 + key_end) as i32 - query_end as i32;
            if CAUSAL {
                seen.to[j] = (row + j * 8 + 1 + key_end).saturating_sub(query_end).min(key_end) as i32;
            }
            if BANDED {
                seen.from[j] = (row + j * 8 + 1 + key_end)
                    .saturating_sub(query_end)
                    .saturating_sub(window) as i32;
            }
        }
        let mut slope = 0.0f32;
        if SLOPED {
            slope = slopes[head] * std::f32::consts::LOG2_E;
        }
        let how = Scores { scale, cap, slope };
        let mut sums = [[[0.0f32; 2]; 2]; EIGHTHS];
        let mut rows = Rows {
            highest: [NOTHING; 2],
            total: [0.0; 2],
            shrunk: [0.0; 2],
        };
        let mut left = turns;
        if AHEAD && turns > least {
            left -= 1;
            let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
            let (mut weights, first_rows) = weighed::<true, BANDED, CAPPED, SLOPED, WIDE, 2>(
                scores,
                seen,
                (left * in_stage as u32) as i32,
                how,
                rows,
            );
            rows = first_rows;
            while left > plain {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                sums = weigh_stage(sums, weights);
                (weights, rows) = weighed::<true, BANDED, CAPPED, SLOPED, WIDE, 2>(
                    scores,
                    seen,
                    (left * in_stage as u32) as i32,
                    how,
                    rows,
                );
                shrink::<EIGHTHS, 2>(&mut sums, rows.shrunk);
            }
            while left > least {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                sums = weigh_stage(sums, weights);
                (weights, rows) = weighed::<false, BANDED, CAPPED, SLOPED, WIDE, 2>(
                    scores,
                    seen,
                    (left * in_stage as u32) as i32,
                    how,
                    rows,
                );
                shrink::<EIGHTHS, 2>(&mut sums, rows.shrunk);
            }
            sums = weigh_stage(sums, weights);
        }
        if !AHEAD {
            while left > plain {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let (weights, after) = weighed::<true, BANDED, CAPPED, SLOPED, WIDE, 2>(
                    scores,
                    seen,
                    (left * in_stage as u32) as i32,
                    how,
                    rows,
                );
                rows = after;
                shrink::<EIGHTHS, 2>(&mut sums, rows.shrunk);
                sums = weigh_stage(sums, weights);
            }
            while left > least {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let (weights, after) = weighed::<false, BANDED, CAPPED, SLOPED, WIDE, 2>(
                    scores,
                    seen,
                    (left * in_stage as u32) as i32,
                    how,
                    rows,
                );
                rows = after;
                shrink::<EIGHTHS, 2>(&mut sums, rows.shrunk);
                sums = weigh_stage(sums, weights);
            }
        }
        let mut total = rows.total;
        for j in 0..2 {
            total[j] += subgroup_shuffle_xor(total[j], 1);
            total[j] += subgroup_shuffle_xor(total[j], 2);
            let share = if total[j] == 0.0 { 0.0 } else { 1.0 / total[j] };
            let query = row + j * 8;
            if !logs.is_empty() && lane.is_multiple_of(4) && query < query_end {
                let highest = rows.highest[j] * if CAPPED || SLOPED { 1.0 } else { scale };
                logs[q_layer * queries + query] = highest * std::f32::consts::LN_2 + total[j].ln();
            }
            let line = (q_layer * queries + query) * EIGHTHS;
            for i in 0..EIGHTHS / 4 {
                let four = [
                    pair::<T>(sums[i * 4][j], share),
                    pair::<T>(sums[i * 4 + 1][j], share),
                    pair::<T>(sums[i * 4 + 2][j], share),
                    pair::<T>(sums[i * 4 + 3][j], share),
                ];
                let [x, y, z, w] = turned(four, lane);
                if query < query_end {
                    out[line + i * 4 + (lane % 4) as usize] = U32x4 { x, y, z, w };
                }
            }
        }
    }
}
