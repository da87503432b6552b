//! Weights read from blocks: as numbers, times a vector, times a matrix. Must not know how the blocks were made.

use perpetua::prelude::*;

use super::decode::{bytes_of, eight, weights_of};
use crate::element::Storage;
use crate::lanes::across;

/// Eight weights a lane.
#[kernel(block_size = 256, interpret)]
pub(super) fn dequantize<T: Storage, const FORMAT: u32>(count: usize, blocks: &[u32], y: &mut [T]) {
    let parts = weights_of(FORMAT) / 8;
    let at = global_id_x();
    if at < count * parts {
        let all = eight::<FORMAT>(blocks, at / parts * bytes_of(FORMAT), at % parts);
        for i in 0..8 {
            y[8 * at + i] = T::narrow(all[i]);
        }
    }
}

/// `y = W x`: 32 lanes a row, each eight weights at a time.
#[kernel(block_size = 256, interpret, contract)]
pub(super) fn quantized_gemv<const FORMAT: u32>(
    rows: usize,
    columns: usize,
    w: &[u32],
    x: &[f32],
    y: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x() % 256;
    let row = group_id_x() * 8 + lane / 32;
    let parts = weights_of(FORMAT) / 8;
    let bytes = columns / weights_of(FORMAT) * bytes_of(FORMAT);
    let mut sum = 0.0f32;
    if row < rows {
        let mut at = lane % 32;
        while at < columns / 8 {
            let all = eight::<FORMAT>(w, row * bytes + at / parts * bytes_of(FORMAT), at % parts);
            for i in 0..8 {
                sum += all[i] * x[8 * at + i];
            }
            at += 32;
        }
    }
    let sum = across::<f32, 32, false>(part, lane, sum, |a, b| a + b);
    if row < rows && lane.is_multiple_of(32) {
        y[row] = sum;
    }
}

/// `C = A W^T`: a block 64 rows of A times 64 rows of W, 32 columns at a time, through shared memory; a lane 4 x 4 elements.
#[kernel(block_size = 256, interpret, contract)]
pub(super) fn quantized_gemm<const FORMAT: u32>(
    m: usize,
    n: usize,
    k: usize,
    a: &[f32],
    w: &[u32],
    c: &mut [f32],
) {
    let left = shared_array::<[[[f32; 4]; 17]; 32]>();
    let right = shared_array::<[[[f32; 4]; 17]; 32]>();
    let lane = local_id_x() % 256;
    let (x, y) = (lane % 16, lane / 16);
    let (top, first) = (group_id_x() * 64, group_id_y() * 64);
    let parts = weights_of(FORMAT) / 8;
    let bytes = k / weights_of(FORMAT) * bytes_of(FORMAT);
    let mut sums = [[0.0f32; 4]; 4];
    let mut from = 0;
    while from < k {
        for turn in 0..8 {
            let (row, depth) = (turn * 8 + lane / 32, lane % 32);
            let inside = top + row < m;
            left[depth][row / 4][row % 4] = if inside {
                a[(top + row) * k + from + depth]
            } else {
                0.0
            };
        }
        let (row, part) = (lane / 4, lane % 4);
        let mut all = [0.0f32; 8];
        if first + row < n {
            let at = from / 8 + part;
            all = eight::<FORMAT>(
                w,
                (first + row) * bytes + at / parts * bytes_of(FORMAT),
                at % parts,
            );
        }
        for i in 0..8 {
            right[part * 8 + i][row / 4][row % 4] = all[i];
        }
        sync_threads();
        for depth in 0..32 {
            let (l, r) = (left[depth][y], right[depth][x]);
            for p in 0..4 {
                for q in 0..4 {
                    sums[p][q] += l[p] * r[q];
                }
            }
        }
        sync_threads();
        from += 32;
    }
    for p in 0..4 {
        for q in 0..4 {
            let (row, column) = (top + 4 * y + p, first + 4 * x + q);
            if row < m && column < n {
                c[row * n + column] = sums[p][q];
            }
        }
    }
}
