//! Attention by products in stages: 128 queries of a head a block, against 128 keys a stage. One team of 128 lanes copies; each of two others multiplies 64
//! queries with the keys, makes weights of the products in its registers, and multiplies them with the values. Must not know how heads and
//! lengths are chosen.

use perpetua::prelude::*;
use perpetua_language::kernel::resident::U32x4;

use crate::element::{Paired, pair, turned};

/// Queries of a block.
pub(super) const QUERIES: usize = 128;
/// Keys of a stage.
pub(super) const KEYS: usize = 128;
/// Lanes of a block.
pub(super) const LANES: u32 = 384;

/// The score of a key that is not seen.
const NOTHING: f32 = f32::NEG_INFINITY;

/// What a lane keeps for its two queries: the highest score so far, the sum of weights against it, and by how much that has shrunk earlier sums.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Rows {
    highest: [f32; 2],
    total: [f32; 2],
    shrunk: [f32; 2],
}

/// The weights of scores, and what is kept after them. `MASKED`: of its two queries the lane sees so many keys less those before the stage; `over`: the first column of
/// each eight that it has.
#[device]
fn weighed<const MASKED: bool>(
    scores: [[[f32; 2]; 2]; 16],
    seen: [i32; 2],
    over: u32,
    scale: f32,
    before: Rows,
) -> ([[[f32; 2]; 2]; 16], Rows) {
    let mut scores = scores;
    let mut after = before;
    if MASKED {
        for n in 0..16 {
            for j in 0..2 {
                for k in 0..2 {
                    if (over as i32 + (n * 8 + k) as i32) >= seen[j] {
                        scores[n][j][k] = NOTHING;
                    }
                }
            }
        }
    }
    for n in 0..16 {
        for j in 0..2 {
            // Of two first, for each step waits for the one before.
            after.highest[j] = after.highest[j].max(scores[n][j][0].max(scores[n][j][1]));
        }
    }
    let mut base = [0.0f32; 2];
    for j in 0..2 {
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
    for n in 0..16 {
        for j in 0..2 {
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
fn shrink<const EIGHTHS: usize>(sums: &mut [[[f32; 2]; 2]; EIGHTHS], by: [f32; 2]) {
    for n in 0..EIGHTHS {
        for j in 0..2 {
            for k in 0..2 {
                sums[n][j][k] *= by[j];
            }
        }
    }
}

/// Heads have `8 * EIGHTHS` columns, which is `dim`. `Q`, `K` and `V` say how their parts lie in the block's memory. `scale` is positive, and times the binary logarithm
/// of e, so that weights are powers of two. With `AHEAD` weights are made of a product with keys while the one before it is multiplied with values. All queries of all heads are rows of one matrix, and so are all keys.
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
    const AHEAD: bool,
    const CAUSAL: bool,
>(
    queries: usize,
    keys: usize,
    heads: usize,
    group: usize,
    scale: f32,
    q_rows: usize,
    k_rows: usize,
    dim: usize,
    q: &[T],
    k: &[T],
    v: &[T],
    out: &mut [U32x4],
) {
    stage_factors::<Q, K>(q, q_rows, dim, dim, k, k_rows, dim, dim);
    stage_third::<V>(v, k_rows, dim, dim);
    let (head, entry) = (group_id_y(), group_id_z());
    // Blocks with most to do come first.
    let tile = if CAUSAL {
        grid_dim_x() as usize - 1 - group_id_x()
    } else {
        group_id_x()
    };
    let first = tile * QUERIES;
    let q_from = (entry * heads + head) * queries;
    let k_from = (entry * (heads / group) + head / group) * keys;
    // The last query sees the last key.
    let visible = if CAUSAL {
        (first + QUERIES + keys).saturating_sub(queries).min(keys)
    } else {
        keys
    };
    let turns = visible.div_ceil(KEYS) as u32;
    // Turns whose keys all queries of the block see. The others come first.
    let all = if CAUSAL {
        (first + 1 + keys).saturating_sub(queries).min(keys)
    } else {
        keys
    };
    let plain = (all / KEYS) as u32;
    if is_producer() {
        for i in 0..turns {
            let key = (turns - 1 - i) * KEYS as u32;
            fill_stage((q_from + first) as u32, k_from as u32 + key, 0);
        }
    } else {
        let lane = local_id_x() as u32;
        // Where this lane's sums are: the rows, and the first column of each eight.
        let down = lane % 128 / 4 + lane % 128 / 32 * 8 + (lane / 128 - 1) * 64;
        let over = lane % 4 * 2;
        let row = first + down as usize;
        // Keys that its two queries see.
        let mut seen = [keys as i32; 2];
        if CAUSAL {
            for j in 0..2 {
                seen[j] = (row + j * 8 + 1 + keys).saturating_sub(queries).min(keys) as i32;
            }
        }
        let mut sums = [[[0.0f32; 2]; 2]; EIGHTHS];
        let mut rows = Rows {
            highest: [NOTHING; 2],
            total: [0.0; 2],
            shrunk: [0.0; 2],
        };
        let mut left = turns;
        if AHEAD && turns > 0 {
            left -= 1;
            let scores = multiply_stage([[[0.0f32; 2]; 2]; 16]);
            let from = (left * KEYS as u32) as i32;
            let (mut weights, first_rows) =
                weighed::<true>(scores, [seen[0] - from, seen[1] - from], over, scale, rows);
            rows = first_rows;
            while left > plain {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; 16]);
                sums = weigh_stage(sums, weights);
                let from = (left * KEYS as u32) as i32;
                (weights, rows) =
                    weighed::<true>(scores, [seen[0] - from, seen[1] - from], over, scale, rows);
                shrink::<EIGHTHS>(&mut sums, rows.shrunk);
            }
            while left > 0 {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; 16]);
                sums = weigh_stage(sums, weights);
                (weights, rows) = weighed::<false>(scores, seen, over, scale, rows);
                shrink::<EIGHTHS>(&mut sums, rows.shrunk);
            }
            sums = weigh_stage(sums, weights);
        }
        if !AHEAD {
            while left > plain {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; 16]);
                let from = (left * KEYS as u32) as i32;
                let (weights, after) =
                    weighed::<true>(scores, [seen[0] - from, seen[1] - from], over, scale, rows);
                rows = after;
                shrink::<EIGHTHS>(&mut sums, rows.shrunk);
                sums = weigh_stage(sums, weights);
            }
            while left > 0 {
                left -= 1;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; 16]);
                let (weights, after) = weighed::<false>(scores, seen, over, scale, rows);
                rows = after;
                shrink::<EIGHTHS>(&mut sums, rows.shrunk);
                sums = weigh_stage(sums, weights);
            }
        }
        let mut total = rows.total;
        for j in 0..2 {
            total[j] += subgroup_shuffle_xor(total[j], 1);
            total[j] += subgroup_shuffle_xor(total[j], 2);
            let share = if total[j] == 0.0 { 0.0 } else { 1.0 / total[j] };
            let query = row + j * 8;
            let line = (q_from + query) * EIGHTHS;
            for i in 0..EIGHTHS / 4 {
                let four = [
                    pair::<T>(sums[i * 4][j], share),
                    pair::<T>(sums[i * 4 + 1][j], share),
                    pair::<T>(sums[i * 4 + 2][j], share),
                    pair::<T>(sums[i * 4 + 3][j], share),
                ];
                let [x, y, z, w] = turned(four, lane);
                if query < queries {
                    out[line + i * 4 + (lane % 4) as usize] = U32x4 { x, y, z, w };
                }
            }
        }
    }
}
