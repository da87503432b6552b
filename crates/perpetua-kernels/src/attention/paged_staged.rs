//! Attention of one query an entry to keys in pages, by products in stages: a block has up to 64 queries of an entry, which share their keys. One team copies parts of
//! pages, the other multiplies. Must not know how many parts an entry's keys have.

use perpetua::prelude::*;

use super::paged::keys_of;
use super::staged::{NOTHING, Rows, Scores, Seen, shrink, weighed};
use crate::element::Paired;

/// Heads of queries of a block.
pub(super) const HEADS: usize = 64;
/// Lanes of a block.
pub(super) const LANES: u32 = 256;

/// Heads have `8 * EIGHTHS` columns, which is `dim`, and a stage `8 * WIDE` keys, which divide a page's. `8 * TOGETHER` keys, those of a stage or of two, are weighed together, so that what lanes do for all of their sums is done seldom enough. `HERE`: queries of a lane, 1 where there are no more than 8. `Q`, `K` and `V` say how their parts lie in the block's memory. `scale` is positive, and times the binary logarithm of e.
///
/// The pool is read as overlapping matrices of a page's rows: one that begins at each row of each head of keys, `dim` elements after the one before.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
#[allow(clippy::manual_memcpy, reason = "written out, its numbers stay in registers")]
pub(super) fn attention_paged_staged<
    T: Paired,
    Q: GpuType,
    K: GpuType,
    V: GpuType,
    const EIGHTHS: usize,
    const WIDE: usize,
    const TOGETHER: usize,
    const HERE: usize,
>(
    heads: usize,
    group: usize,
    dim: usize,
    pages: usize,
    page_rows: usize,
    pages_of_entry: usize,
    each: usize,
    window: usize,
    scale: f32,
    q_layers: usize,
    q_apart: usize,
    k_layers: usize,
    k_pitch: usize,
    q: &[T],
    k: &[T],
    v: &[T],
    table: &[u32],
    lengths: &[u32],
    sums: &mut [f32],
    totals: &mut [f32],
) {
    stage_factors::<Q, K>(q, group, dim, dim, k, page_rows, dim, k_pitch);
    stage_layers(q_layers, q_apart, k_layers, dim);
    stage_third::<V>(v, page_rows, dim, k_pitch);
    let in_stage = WIDE * 8;
    let entry = group_id_z();
    let turns = group.div_ceil(HEADS);
    let (key_head, turn) = (group_id_y() / turns, group_id_y() % turns);
    let key_heads = heads / group;
    let table_from = entry * pages_of_entry;
    let (from, to) = keys_of(
        lengths,
        entry,
        pages_of_entry * page_rows,
        window,
        group_id_x(),
        each,
    );
    // A part without keys has no stage.
    let to = if from < to { to } else { 0 };
    let (least, end) = if to > 0 {
        (from / in_stage, to.div_ceil(in_stage))
    } else {
        (0, 0)
    };
    if is_producer() {
        // The stage's page, and the row there that it begins at; pages are divided once, for lanes that copy have much to do with few keys a stage.
        let mut at = table_from + least * in_stage / page_rows;
        let mut row = (least * in_stage % page_rows) as u32;
        let of_page = (page_rows * key_heads) as u32;
        let (mut page, mut next) = (0, 0);
        if least < end {
            next = table[at];
            page = next;
        }
        for i in least..end {
            // The next page's number, before this stage is waited for.
            let ends = row + in_stage as u32 == page_rows as u32;
            if ends && i + 1 < end {
                next = table[at + 1];
            }
            // What lies behind the last key is not read: it would not be nothing, times a weight of nothing, where it is no number. So the stage ends with that key.
            let left_out = ((i + 1) * in_stage).saturating_sub(to);
            let layer = if (page as usize) < pages {
                page * of_page + key_head as u32
            } else {
                u32::MAX
            };
            fill_stage_of(
                (entry * key_heads + key_head) as u32,
                layer,
                (turn * HEADS) as u32,
                row.wrapping_sub(left_out as u32),
                0,
            );
            row += in_stage as u32;
            if ends {
                (at, page, row) = (at + 1, next, 0);
            }
        }
    } else {
        let lane = local_id_x() as u32;
        // Whether one of the pages is none.
        let mut is_lost = false;
        let mut page = from / page_rows + (lane % 32) as usize;
        while page < to.div_ceil(page_rows) {
            is_lost |= table[table_from + page] as usize >= pages;
            page += 32;
        }
        let is_lost = subgroup_any(is_lost);
        let how = Scores {
            scale,
            cap: 0.0,
            slope: 0.0,
        };
        let mut all = [[[0.0f32; 2]; 2]; EIGHTHS];
        let mut rows = Rows {
            highest: [NOTHING; 2],
            total: [0.0; 2],
            shrunk: [0.0; 2],
        };
        let mut seen = Seen {
            from: [0; 2],
            to: [to as i32; 2],
            place: [0; 2],
            over: (lane % 4 * 2) as i32,
        };
        let mut i = least;
        if TOGETHER > WIDE {
            // By themselves are the first one, of which not all keys may be seen, and what is left: up to two, of which the last one may begin before its keys.
            let first_end = if least < end { least + 1 } else { end };
            while i < first_end {
                seen.from = [(i * in_stage).max(from) as i32; 2];
                let first = ((i + 1) * in_stage).min(to) as i32 - in_stage as i32;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let (weights, after) =
                    weighed::<true, true, false, false, WIDE, HERE>(scores, seen, first, how, rows);
                rows = after;
                shrink::<EIGHTHS, HERE>(&mut all, rows.shrunk);
                all = weigh_stage(all, weights);
                i += 1;
            }
            while (i + 2) * in_stage <= to {
                let low = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let high = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let mut scores = [[[0.0f32; 2]; 2]; TOGETHER];
                for n in 0..WIDE {
                    scores[n] = low[n];
                    scores[n + WIDE] = high[n];
                }
                let (weights, after) =
                    weighed::<false, false, false, false, TOGETHER, HERE>(scores, seen, 0, how, rows);
                rows = after;
                let (mut of_low, mut of_high) = (low, high);
                for n in 0..WIDE {
                    of_low[n] = weights[n];
                    of_high[n] = weights[n + WIDE];
                }
                shrink::<EIGHTHS, HERE>(&mut all, rows.shrunk);
                all = weigh_stage(all, of_low);
                all = weigh_stage(all, of_high);
                i += 2;
            }
            while i < end {
                seen.from = [(i * in_stage) as i32; 2];
                let first = ((i + 1) * in_stage).min(to) as i32 - in_stage as i32;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let (weights, after) =
                    weighed::<true, true, false, false, WIDE, HERE>(scores, seen, first, how, rows);
                rows = after;
                shrink::<EIGHTHS, HERE>(&mut all, rows.shrunk);
                all = weigh_stage(all, weights);
                i += 1;
            }
        }
        // Else a stage is weighed when the next one has been multiplied.
        if TOGETHER == WIDE && least < end {
            seen.from = [from as i32; 2];
            let first = (end.min(least + 1) * in_stage).min(to) as i32 - in_stage as i32;
            let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
            let (mut weights, after) =
                weighed::<true, true, false, false, WIDE, HERE>(scores, seen, first, how, rows);
            rows = after;
            for i in least + 1..end {
                seen.from = [(i * in_stage) as i32; 2];
                let first = ((i + 1) * in_stage).min(to) as i32 - in_stage as i32;
                let scores = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                all = weigh_stage(all, weights);
                (weights, rows) =
                    weighed::<true, true, false, false, WIDE, HERE>(scores, seen, first, how, rows);
                shrink::<EIGHTHS, HERE>(&mut all, rows.shrunk);
            }
            all = weigh_stage(all, weights);
        }
        let mut total = rows.total;
        for j in 0..HERE {
            total[j] += subgroup_shuffle_xor(total[j], 1);
            total[j] += subgroup_shuffle_xor(total[j], 2);
            if is_lost {
                total[j] = f32::NAN;
            }
            let head = turn * HEADS + (lane % 128 / 4 + lane % 128 / 32 * 8) as usize + j * 8;
            if head < group {
                let row = (entry * key_heads + key_head) * group + head;
                let place = row * grid_dim_x() as usize + group_id_x();
                for n in 0..EIGHTHS {
                    for k in 0..2 {
                        sums[place * dim + n * 8 + (lane % 4 * 2) as usize + k] = all[n][j][k];
                    }
                }
                if lane.is_multiple_of(4) {
                    totals[2 * place] = rows.highest[j] * scale;
                    totals[2 * place + 1] = total[j];
                }
            }
        }
    }
}
