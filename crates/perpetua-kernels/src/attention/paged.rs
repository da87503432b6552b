//! Attention of one query an entry to keys that lie in pages: parts of the keys at the same time, then what they have together. Must not know how many parts there are.

use perpetua::prelude::*;
use perpetua_language::kernel::resident::U32x4;

use crate::element::{Factor, Storage, pair};
use crate::lanes::across;

/// Parts that a block computes: a subgroup's each, by tensor cores and without.
pub(super) const PARTS_OF_BLOCK: [usize; 2] = [4, 8];
/// Heads of queries of a block by tensor cores.
pub(super) const HEADS: usize = 8;

/// A row of the pages that is none.
const NO_ROW: u32 = u32::MAX;

/// The row of the pages where a key is; none where the table has no such page.
#[device]
fn row_of(table: &[u32], from: usize, key: usize, page_rows: usize, pages: usize) -> u32 {
    let page = table[from + key / page_rows] as usize;
    if page < pages {
        (page * page_rows + key % page_rows) as u32
    } else {
        NO_ROW
    }
}

/// The keys of a block of an entry: from the first one to the one behind the last.
#[device]
pub(super) fn keys_of(
    lengths: &[u32],
    entry: usize,
    most: usize,
    window: usize,
    part: usize,
    each: usize,
) -> (usize, usize) {
    let length = (lengths[entry] as usize).min(most);
    let from = part * each;
    (from.max(length.saturating_sub(window)), (from + each).min(length))
}

/// For any device and type: 32 lanes a part, which goes over every eighth key of the block. `each`: keys of a block. Heads have at most 256 columns, of which a lane has eight.
#[kernel(block_size = 256, interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn attention_paged<T: Storage>(
    heads: usize,
    group: usize,
    dim: usize,
    pages: usize,
    page_rows: usize,
    pages_of_entry: usize,
    each: usize,
    window: usize,
    scale: f32,
    q: &[T],
    k: &[T],
    v: &[T],
    table: &[u32],
    lengths: &[u32],
    sums: &mut [f32],
    totals: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x() % 256;
    let (team, within) = (lane / 32, lane % 32);
    let (head, entry) = (group_id_y(), group_id_z());
    let key_heads = heads / group;
    let (from, to) = keys_of(
        lengths,
        entry,
        pages_of_entry * page_rows,
        window,
        group_id_x(),
        each,
    );
    let mut query = [0.0f32; 8];
    for i in 0..8 {
        if within + 32 * i < dim {
            query[i] = q[(entry * heads + head) * dim + within + 32 * i].wide();
        }
    }
    let mut all = [0.0f32; 8];
    let (mut highest, mut total) = (f32::NEG_INFINITY, 0.0f32);
    let mut first = from;
    while first < to {
        let key = first + team;
        let mut row = NO_ROW;
        if key < to {
            row = row_of(table, entry * pages_of_entry, key, page_rows, pages);
        }
        let at = (row as usize * key_heads + head / group) * dim;
        let mut product = 0.0f32;
        if row != NO_ROW {
            for i in 0..8 {
                if within + 32 * i < dim {
                    product += query[i] * k[at + within + 32 * i].wide();
                }
            }
        }
        let product = across::<f32, 32, false>(part, lane, product, |a, b| a + b);
        if key < to {
            let score = product * (scale * std::f32::consts::LOG2_E);
            let most = highest.max(score);
            let shrunk = if highest == f32::NEG_INFINITY {
                0.0
            } else {
                fast_exp2(highest - most)
            };
            let share = fast_exp2(score - most);
            total = total * shrunk + share;
            for i in 0..8 {
                all[i] *= shrunk;
                if row != NO_ROW && within + 32 * i < dim {
                    all[i] += share * v[at + within + 32 * i].wide();
                }
            }
            highest = most;
            if row == NO_ROW {
                total = f32::NAN;
            }
        }
        first += 8;
    }
    let place = ((entry * heads + head) * grid_dim_x() as usize + group_id_x()) * 8 + team;
    for i in 0..8 {
        if within + 32 * i < dim {
            sums[place * dim + within + 32 * i] = all[i];
        }
    }
    if within == 0 {
        totals[2 * place] = highest;
        totals[2 * place + 1] = total;
    }
}

/// The two numbers in the low halves of words, and those in the high halves.
#[device]
fn halves(a: u32, b: u32) -> [u32; 2] {
    [a & 0xffff | b << 16, a >> 16 | b & 0xffff_0000]
}

/// A piece of 16 bytes, zeros where there is none.
#[device]
fn piece(x: &[U32x4], row: u32, layers: usize, layer: usize, pieces: usize, piece: usize) -> [u32; 4] {
    let mut words = [0u32; 4];
    if row != NO_ROW && piece < pieces {
        let U32x4 { x, y, z, w } = x[(row as usize * layers + layer) * pieces + piece];
        words = [x, y, z, w];
    }
    words
}

/// By tensor cores: a block has up to eight queries that share their keys, which each of its four subgroups multiplies with 16 keys a step, 64 keys apart. Which column of a head is which of a product does not matter, as long as it is the same
/// for queries and keys, so that a lane reads 16 bytes of a key; and its part of a product with keys is, rounded, its part of the one with values. Heads have at most `64 * PARTS` columns, `CHUNKS` times 32 and `TILES` times 16.
#[kernel(block_size = 128, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn attention_paged_tensor_core<
    T: Factor,
    const PARTS: usize,
    const CHUNKS: usize,
    const TILES: usize,
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
    q: &[U32x4],
    k: &[U32x4],
    v: &[U32x4],
    table: &[u32],
    lengths: &[u32],
    sums: &mut [f32],
    totals: &mut [f32],
) {
    let lane = local_id_x() as u32 % 32;
    let team = local_id_x() / 32 % 4;
    let (own, within) = (lane as usize / 4, lane as usize % 4);
    let entry = group_id_z();
    let eights = group.div_ceil(HEADS);
    let (key_head, turn) = (group_id_y() / eights, group_id_y() % eights);
    let first_head = key_head * group + turn * HEADS;
    let of_block = (group - turn * HEADS).min(HEADS);
    let key_heads = heads / group;
    let pieces = dim / 8;
    let table_from = entry * pages_of_entry;
    let (from, to) = keys_of(
        lengths,
        entry,
        pages_of_entry * page_rows,
        window,
        group_id_x(),
        each,
    );

    // A lane's part of the queries: eight columns of one of each 32.
    let mut queries = [[0u32; 4]; CHUNKS];
    for c in 0..CHUNKS {
        if own < of_block && c * 4 + within < pieces {
            let U32x4 { x, y, z, w } = q[(entry * heads + first_head + own) * pieces + c * 4 + within];
            queries[c] = [x, y, z, w];
        }
    }
    let mut all = [[0.0f32; 4]; TILES];
    let (mut highest, mut total) = (f32::NEG_INFINITY, 0.0f32);
    let by = scale * std::f32::consts::LOG2_E;
    // Whether a page of a lane's keys is none.
    let mut is_lost = false;
    let mut first = from + team * 16;
    let mut step = from;
    // One key's row a lane, a step ahead.
    let own_key = lane as usize % 16;
    let mut next_row = NO_ROW;
    if first + own_key < to {
        next_row = row_of(table, table_from, first + own_key, page_rows, pages);
    }
    while step < to {
        let row = next_row;
        next_row = NO_ROW;
        if first + 64 + own_key < to {
            next_row = row_of(table, table_from, first + 64 + own_key, page_rows, pages);
        }
        let mut keys = [[[0u32; 4]; CHUNKS]; 2];
        for half in 0..2 {
            let at = subgroup_shuffle(row, own as u32 + 8 * half as u32);
            for c in 0..CHUNKS {
                keys[half][c] = piece(k, at, key_heads, key_head, pieces, c * 4 + within);
            }
        }
        let mut values = [[[0u32; 4]; PARTS]; 4];
        for i in 0..4 {
            let at = subgroup_shuffle(row, 2 * within as u32 + i as u32 % 2 + i as u32 / 2 * 8);
            for p in 0..PARTS {
                values[i][p] = piece(v, at, key_heads, key_head, pieces, p * 8 + own);
            }
        }
        let mut scores = [[0.0f32; 4]; 2];
        for half in 0..2 {
            for c in 0..CHUNKS {
                let [a, b, e, f] = queries[c];
                let [g, h, i, j] = keys[half][c];
                scores[half] = T::multiply([a, 0, b, 0], [g, h], scores[half]);
                scores[half] = T::multiply([e, 0, f, 0], [i, j], scores[half]);
            }
        }
        let mut most = highest;
        for half in 0..2 {
            for i in 0..2 {
                let key = first + half * 8 + within * 2 + i;
                let score = scores[half][i] * by;
                scores[half][i] = if key < to { score } else { f32::NEG_INFINITY };
                most = most.max(scores[half][i]);
            }
        }
        most = most.max(subgroup_shuffle_xor(most, 1));
        most = most.max(subgroup_shuffle_xor(most, 2));
        let base = if most == f32::NEG_INFINITY { 0.0 } else { most };
        let shrunk = fast_exp2(highest - base);
        total *= shrunk;
        highest = most;
        for half in 0..2 {
            for i in 0..2 {
                scores[half][i] = fast_exp2(scores[half][i] - base);
                total += scores[half][i];
            }
        }
        is_lost |= first + own_key < to && row == NO_ROW;
        let weights = [
            pair::<T>([scores[0][0], scores[0][1]], 1.0),
            pair::<T>([scores[1][0], scores[1][1]], 1.0),
        ];
        let shrinks = [
            subgroup_shuffle(shrunk, within as u32 * 8),
            subgroup_shuffle(shrunk, within as u32 * 8 + 4),
        ];
        for p in 0..PARTS {
            for w in 0..4 {
                let [low, high] = halves(values[0][p][w], values[1][p][w]);
                let [low_far, high_far] = halves(values[2][p][w], values[3][p][w]);
                let tile = p * 4 + w;
                for i in 0..4 {
                    all[tile][i] *= shrinks[i % 2];
                }
                all[tile] = T::multiply([low, high, low_far, high_far], weights, all[tile]);
            }
        }
        first += 64;
        step += 64;
    }
    total += subgroup_shuffle_xor(total, 1);
    total += subgroup_shuffle_xor(total, 2);
    if subgroup_any(is_lost) {
        total = f32::NAN;
    }
    let parts = grid_dim_x() as usize * 4;
    let part = group_id_x() * 4 + team;
    for i in 0..2 {
        let head = within * 2 + i;
        if head < of_block {
            let place = (entry * heads + first_head + head) * parts + part;
            for tile in 0..TILES {
                let column = (tile / 4 * 8 + own) * 8 + tile % 4 * 2;
                if column < dim {
                    sums[place * dim + column] = all[tile][i];
                    sums[place * dim + column + 1] = all[tile][2 + i];
                }
            }
        }
    }
    if within == 0 && own < of_block {
        let place = (entry * heads + first_head + own) * parts + part;
        totals[2 * place] = highest;
        totals[2 * place + 1] = total;
    }
}

/// What the parts of a head have together: a lane a column.
#[kernel(block_size = 256, interpret)]
pub(super) fn attention_paged_total<T: Storage>(
    dim: usize,
    parts: usize,
    sums: &[f32],
    totals: &[f32],
    out: &mut [T],
) {
    let (column, row) = (local_id_x(), group_id_x());
    if column < dim {
        let mut most = f32::NEG_INFINITY;
        for part in 0..parts {
            most = most.max(totals[2 * (row * parts + part)]);
        }
        let (mut sum, mut total) = (0.0f32, 0.0f32);
        for part in 0..parts {
            let place = row * parts + part;
            let highest = totals[2 * place];
            let of_part = totals[2 * place + 1];
            let by = if highest == f32::NEG_INFINITY {
                0.0
            } else {
                fast_exp2(highest - most)
            };
            if by > 0.0 || of_part.is_nan() {
                sum += by * sums[place * dim + column];
                total += by * of_part;
            }
            if of_part.is_nan() {
                total = of_part;
            }
        }
        out[row * dim + column] = T::narrow(if total == 0.0 { 0.0 } else { sum / total });
    }
}
