//! Gradients of attention by products in stages: 128 keys of a head a block, against queries, or 128 queries against keys. One team of 128 lanes copies; each of two others
//! makes weights of its 64 rows' products in its registers, and of these what it multiplies with the rows in the stage. Must not know how heads and lengths are chosen.

use perpetua::prelude::*;
use perpetua_language::kernel::resident::U32x4;

use crate::element::{Paired, pair, turned};

/// Keys, or queries, of a block.
pub(super) const ROWS: usize = 128;
/// Lanes of a block.
pub(super) const LANES: u32 = 384;

/// What the lane's two rows meet among the others, by their numbers.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Meets {
    from: [i32; 2],
    to: [i32; 2],
}

/// What a subgroup has of the step's rows, by lanes two each: of the column `8 n + 2 r + k` of a lane whose number leaves `r` by four.
#[device]
fn of_column(held: [f32; 2], n: usize, k: usize, lane: u32) -> f32 {
    subgroup_shuffle(held[k], n as u32 * 4 + lane % 4)
}

/// Weights of products, and logarithms of what they are to be divided by: those of the lane's rows, or else of the step's, as [`of_column`] has them. `MASKED`: not all of the step's rows, which begin at `first` for the lane, are met.
#[device]
fn shares<const OF_KEYS: bool, const MASKED: bool, const WIDE: usize>(
    products: [[[f32; 2]; 2]; WIDE],
    scale: f32,
    meets: Meets,
    first: i32,
    logs: [f32; 2],
    lane: u32,
) -> [[[f32; 2]; 2]; WIDE] {
    let mut shares = products;
    for n in 0..WIDE {
        for k in 0..2 {
            let at = first + (n * 8 + k) as i32;
            let of_other = if OF_KEYS { of_column(logs, n, k, lane) } else { 0.0 };
            for j in 0..2 {
                let less = if OF_KEYS { of_other } else { logs[j] };
                let mut share = fast_exp2(shares[n][j][k].mul_add(scale, -less));
                if MASKED && (at < meets.from[j] || at >= meets.to[j]) {
                    share = 0.0;
                }
                shares[n][j][k] = share;
            }
        }
    }
    shares
}

/// Gradients of products: of weights, less `means`, which are held as logarithms are, times the weights.
#[device]
fn rates<const OF_KEYS: bool, const MASKED: bool, const WIDE: usize>(
    of_weights: [[[f32; 2]; 2]; WIDE],
    shares: [[[f32; 2]; 2]; WIDE],
    means: [f32; 2],
    lane: u32,
) -> [[[f32; 2]; 2]; WIDE] {
    let mut rates = of_weights;
    for n in 0..WIDE {
        for k in 0..2 {
            let of_other = if OF_KEYS {
                of_column(means, n, k, lane)
            } else {
                0.0
            };
            for j in 0..2 {
                let less = if OF_KEYS { of_other } else { means[j] };
                let share = shares[n][j][k];
                let mut rate = share * (rates[n][j][k] - less);
                // Of what is not seen there may be no gradient.
                if MASKED && share == 0.0 {
                    rate = 0.0;
                }
                rates[n][j][k] = rate;
            }
        }
    }
    rates
}

/// Which step of the others comes in a turn: those of which not all is met come first, `before` at the beginning and the others at the end, behind all that are met.
#[device]
fn step(turn: u32, least: u32, before: u32, behind: u32, masked: u32) -> u32 {
    if turn < before {
        least + turn
    } else if turn < masked {
        behind + turn - before
    } else {
        least + before + turn - masked
    }
}

/// Logarithms and means of a lane's two queries of a step.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Queries {
    logs: [f32; 2],
    means: [f32; 2],
}

/// Two queries from `at` on, below `end`; nothing of others.
#[device]
fn fetched(logs: &[f32], means: &[f32], from: usize, at: usize, end: usize) -> Queries {
    let mut queries = Queries {
        logs: [0.0; 2],
        means: [0.0; 2],
    };
    for k in 0..2 {
        if at + k < end {
            queries.logs[k] = logs[from + at + k] * std::f32::consts::LOG2_E;
            queries.means[k] = means[from + at + k];
        }
    }
    queries
}

/// Stores a lane's two rows of sums, times `factor`.
#[device]
fn store<T: Paired, const EIGHTHS: usize>(
    sums: [[[f32; 2]; 2]; EIGHTHS],
    factor: f32,
    out: &mut [U32x4],
    layer_rows: usize,
    row: usize,
    end: usize,
    lane: u32,
) {
    for j in 0..2 {
        let mine = row + j * 8;
        let line = (layer_rows + mine) * EIGHTHS;
        for i in 0..EIGHTHS / 4 {
            let four = [
                pair::<T>(sums[i * 4][j], factor),
                pair::<T>(sums[i * 4 + 1][j], factor),
                pair::<T>(sums[i * 4 + 2][j], factor),
                pair::<T>(sums[i * 4 + 3][j], factor),
            ];
            let [x, y, z, w] = turned(four, lane);
            if mine < end {
                out[line + i * 4 + (lane % 4) as usize] = U32x4 { x, y, z, w };
            }
        }
    }
}

/// The gradients of a block's rows: with `OF_KEYS` of keys (`own`) and their values (`own_twin`), from the queries of all heads that share them (`other`) and the result's gradient (`other_twin`); else of
/// queries (`own`, beside the result's gradient), from keys and values. With `OF_KEYS` a stage has 64 queries. Heads have `8 * EIGHTHS` columns, which is `dim`, and a stage `8 * WIDE` rows of the others. `Own` and `Other` say how parts lie in
/// the block's memory. `logs` and `means`: one for each query; `lengths`: how many queries and keys each entry of the batch has, or nothing. With `CAUSAL` a query sees the keys up to its own place, with `BANDED` none that is `window` or
/// more before it.
#[kernel(block_size = 384, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn attention_backward_staged<
    T: Paired,
    Own: GpuType,
    Other: GpuType,
    const EIGHTHS: usize,
    const WIDE: usize,
    const OF_KEYS: bool,
    const CAUSAL: bool,
    const BANDED: bool,
>(
    own_rows: usize,
    other_rows: usize,
    own_heads: usize,
    other_heads: usize,
    group: usize,
    scale: f32,
    window: usize,
    own_layers: usize,
    own_apart: usize,
    other_layers: usize,
    other_apart: usize,
    dim: usize,
    own: &[T],
    own_twin: &[T],
    other: &[T],
    other_twin: &[T],
    lengths: &[u32],
    logs: &[f32],
    means: &[f32],
    out: &mut [U32x4],
    out_twin: &mut [U32x4],
) {
    stage_factors::<Own, Other>(own, own_rows, dim, dim, other, other_rows, dim, dim);
    stage_twins::<Own, Other>(own_twin, own_rows, dim, dim, other_twin, other_rows, dim, dim);
    stage_layers(own_layers, own_apart, other_layers, other_apart);
    let in_stage = WIDE * 8;
    let (head, entry) = (group_id_y(), group_id_z());
    // Blocks with most to do come first: of causal attention the first keys, and the last queries.
    let tile = if CAUSAL && !OF_KEYS {
        grid_dim_x() as usize - 1 - group_id_x()
    } else {
        group_id_x()
    };
    let first = tile * ROWS;
    let (mut own_end, mut other_end) = (own_rows, other_rows);
    if !lengths.is_empty() {
        let (of_own, of_other) = if OF_KEYS { (1, 0) } else { (0, 1) };
        own_end = own_end.min(lengths[2 * entry + of_own] as usize);
        other_end = other_end.min(lengths[2 * entry + of_other] as usize);
    }
    let own_layer = entry * own_heads + head;
    let members = if OF_KEYS { group } else { 1 };
    let first_other = if OF_KEYS { head * group } else { head / group };
    let other_layer = entry * other_heads + first_other;
    // The place of row i is i + other_end among the others, counted from `own_end` on. Others from `low` on meet one of the block's rows, those from `all_low` on meet all of them, up to `all_high`, and `high`.
    let place = first + other_end;
    let (mut low, mut all_low, mut high, mut all_high) = (0, 0, other_end, other_end);
    if OF_KEYS {
        if CAUSAL {
            low = place.saturating_sub(own_end);
            all_low = (place + ROWS).saturating_sub(own_end + 1);
        }
        if BANDED {
            high = high.min((place + ROWS + window).saturating_sub(own_end + 1));
            all_high = high.min((place + window).saturating_sub(own_end));
        }
    } else {
        if CAUSAL {
            high = high.min((place + ROWS).saturating_sub(own_end));
            all_high = high.min((place + 1).saturating_sub(own_end));
        }
        if BANDED {
            low = (place + 1).saturating_sub(own_end).saturating_sub(window);
            all_low = (place + ROWS).saturating_sub(own_end).saturating_sub(window);
        }
    }
    if first >= own_end {
        high = 0;
    }
    let least = (low.min(high) / in_stage) as u32;
    let most = high.div_ceil(in_stage) as u32;
    let all_least = (all_low.div_ceil(in_stage) as u32).clamp(least, most.max(least));
    let all_most = ((all_high / in_stage) as u32).clamp(all_least, most.max(all_least));
    let before = all_least - least;
    let masked = before + most.saturating_sub(all_most);
    let turns = most.saturating_sub(least);
    if is_producer() {
        for member in 0..members {
            for turn in 0..turns {
                let other = step(turn, least, before, all_most, masked) * in_stage as u32;
                fill_stage_of(
                    own_layer as u32,
                    (other_layer + member) as u32,
                    first as u32,
                    other,
                    0,
                );
            }
        }
    } else {
        let lane = local_id_x() as u32;
        // Where this lane's sums are: the rows, and the first column of each eight.
        let down = lane % 128 / 4 + lane % 128 / 32 * 8 + (lane / 128 - 1) * 64;
        let (row, column) = (first + down as usize, lane % 4 * 2);
        let mut meets = Meets {
            from: [0; 2],
            to: [other_end as i32; 2],
        };
        for j in 0..2 {
            let at = (row + j * 8 + other_end) as i32 - own_end as i32;
            if OF_KEYS {
                if CAUSAL {
                    meets.from[j] = at;
                }
                if BANDED {
                    meets.to[j] = meets.to[j].min(at + window as i32);
                }
            } else {
                if CAUSAL {
                    meets.to[j] = meets.to[j].min(at + 1);
                }
                if BANDED {
                    meets.from[j] = at + 1 - window as i32;
                }
            }
        }
        let power = scale * std::f32::consts::LOG2_E;
        let mut gradients = [[[0.0f32; 2]; 2]; EIGHTHS];
        let mut of_values = [[[0.0f32; 2]; 2]; EIGHTHS];
        // Of the lane's own queries; or of two of each step, on their way a step ahead.
        let mut queries = Queries {
            logs: [0.0; 2],
            means: [0.0; 2],
        };
        if !OF_KEYS {
            for j in 0..2 {
                let one = fetched(logs, means, own_layer * own_rows, row + j * 8, own_end);
                queries.logs[j] = one.logs[0];
                queries.means[j] = one.means[0];
            }
        }
        let two = (lane % 32 * 2) as usize;
        for member in 0..members {
            let from = (other_layer + member) * other_rows;
            let mut next = queries;
            if OF_KEYS {
                let other = step(0, least, before, all_most, masked) as usize * in_stage;
                next = fetched(logs, means, from, other + two, other_end);
            }
            let mut turn = 0;
            while turn < masked {
                let first = step(turn, least, before, all_most, masked) * in_stage as u32 + column;
                let products = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let of_weights = multiply_twin([[[0.0f32; 2]; 2]; WIDE]);
                turn += 1;
                queries = next;
                if OF_KEYS {
                    let other = step(turn, least, before, all_most, masked) as usize * in_stage;
                    next = fetched(logs, means, from, other + two, other_end);
                }
                let weights =
                    shares::<OF_KEYS, true, WIDE>(products, power, meets, first as i32, queries.logs, lane);
                if OF_KEYS {
                    of_values = weigh_twin(of_values, weights);
                }
                let slopes = rates::<OF_KEYS, true, WIDE>(of_weights, weights, queries.means, lane);
                gradients = weigh_stage(gradients, slopes);
            }
            while turn < turns {
                let products = multiply_stage([[[0.0f32; 2]; 2]; WIDE]);
                let of_weights = multiply_twin([[[0.0f32; 2]; 2]; WIDE]);
                turn += 1;
                queries = next;
                if OF_KEYS {
                    let other = (least + before + turn - masked) as usize * in_stage;
                    next = fetched(logs, means, from, other + two, other_end);
                }
                let weights = shares::<OF_KEYS, false, WIDE>(products, power, meets, 0, queries.logs, lane);
                if OF_KEYS {
                    of_values = weigh_twin(of_values, weights);
                }
                let slopes = rates::<OF_KEYS, false, WIDE>(of_weights, weights, queries.means, lane);
                gradients = weigh_stage(gradients, slopes);
            }
        }
        store::<T, EIGHTHS>(gradients, scale, out, own_layer * own_rows, row, own_end, lane);
        if OF_KEYS {
            store::<T, EIGHTHS>(of_values, 1.0, out_twin, own_layer * own_rows, row, own_end, lane);
        }
    }
}
