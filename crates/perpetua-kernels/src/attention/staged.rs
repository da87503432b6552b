//! Attention by products in stages: 128 queries of a head a block, against 128 keys a stage. One team of 128 lanes copies; each of two others multiplies 64
//! queries with the keys, makes weights of the products in its registers, and multiplies them with the values. Must not know how heads and
//! lengths are chosen.

use perpetua::prelude::*;
use perpetua_language::kernel::resident::U32x4;

use crate::element::{Paired, pair, turned};

/// Queries of a block.
pub(super) const QUERIES: usize = 128;
/// Keys of a stage.
const KEYS: usize = 128;
/// Lanes of a block.
pub(super) const LANES: u32 = 384;

/// The score of a key that is not seen.
const NOTHING: f32 = f32::NEG_INFINITY;

/// Heads have `8 * EIGHTHS` columns, which is `dim`. `Q`, `K` and `V` say how their parts lie in the block's memory. `scale` is positive, and times the binary logarithm
/// of e, so that weights are powers of two. All queries of all heads are rows of one matrix, and so are all keys.
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
    let first = group_id_x() * QUERIES;
    let q_from = (entry * heads + head) * queries;
    let k_from = (entry * (heads / group) + head / group) * keys;
    // The last query sees the last key.
    let visible = if CAUSAL {
        (first + QUERIES + keys).saturating_sub(queries).min(keys)
    } else {
        keys
    };
    let turns = visible.div_ceil(KEYS) as u32;
    if is_producer() {
        for i in 0..turns {
            fill_stage((q_from + first) as u32, k_from as u32 + i * KEYS as u32, 0);
        }
    } else {
        let lane = local_id_x() as u32;
        // Where this lane's sums are: the rows, and the first column of each eight.
        let down = lane % 128 / 4 + lane % 128 / 32 * 8 + (lane / 128 - 1) * 64;
        let over = lane % 4 * 2;
        let row = first + down as usize;
        // Keys that its two queries see.
        let mut seen = [keys as u32; 2];
        if CAUSAL {
            for j in 0..2 {
                seen[j] = (row + j * 8 + 1 + keys).saturating_sub(queries).min(keys) as u32;
            }
        }
        let mut sums = [[[0.0f32; 2]; 2]; EIGHTHS];
        let mut most = [NOTHING; 2];
        let mut total = [0.0f32; 2];
        for i in 0..turns {
            let mut scores = multiply_stage([[[0.0f32; 2]; 2]; 16]);
            let from = i * KEYS as u32;
            if from + KEYS as u32 > seen[0] {
                for n in 0..16 {
                    for j in 0..2 {
                        for k in 0..2 {
                            if from + over + (n * 8 + k) as u32 >= seen[j] {
                                scores[n][j][k] = NOTHING;
                            }
                        }
                    }
                }
            }
            let mut highest = most;
            for n in 0..16 {
                for j in 0..2 {
                    highest[j] = highest[j].max(scores[n][j][0]).max(scores[n][j][1]);
                }
            }
            let mut base = [0.0f32; 2];
            let mut less = [0.0f32; 2];
            for j in 0..2 {
                // Four lanes have a row.
                highest[j] = highest[j].max(subgroup_shuffle_xor(highest[j], 1));
                highest[j] = highest[j].max(subgroup_shuffle_xor(highest[j], 2));
                // Where no key has been seen, there is no maximum either.
                base[j] = if highest[j] == NOTHING {
                    0.0
                } else {
                    highest[j] * scale
                };
                less[j] = fast_exp2(most[j].mul_add(scale, -base[j]));
                most[j] = highest[j];
                total[j] *= less[j];
            }
            for n in 0..16 {
                for j in 0..2 {
                    for k in 0..2 {
                        let weight = fast_exp2(scores[n][j][k].mul_add(scale, -base[j]));
                        scores[n][j][k] = weight;
                        total[j] += weight;
                    }
                }
            }
            for n in 0..EIGHTHS {
                for j in 0..2 {
                    for k in 0..2 {
                        sums[n][j][k] *= less[j];
                    }
                }
            }
            sums = weigh_stage(sums, scores);
        }
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
