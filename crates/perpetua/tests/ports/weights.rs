//! Weights in few bits, weights that are left out, and ranks.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::transformers::reals;

// 67: 4-bit normal floats

/// Quantiles of the normal distribution, scaled to [-1, 1].
const LEVELS: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

#[device]
fn nearest_level(x: f32) -> u8 {
    LEVELS
        .windows(2)
        .take_while(|pair| x > 0.5 * (pair[0] + pair[1]))
        .count() as u8
}

/// 64 weights a block, two a lane; the first of two is the upper half of their byte.
#[kernel(block_size = 32)]
fn quantize(weights: &[f16], codes: &mut [u8], scales: &mut [f32]) {
    let most = shared_array::<[u32; 1]>();
    let (lane, block) = (local_id_x(), group_id_x());
    if lane == 0 {
        most[0] = 0;
    }
    sync_threads();
    let pair: [f32; 2] = std::array::from_fn(|k| {
        let i = block * 64 + lane * 2 + k;
        weights.get(i).map_or(0.0, |w| w.to_f32())
    });
    for x in pair {
        atomic_max(&mut most[0], x.abs().to_bits());
    }
    sync_threads();
    let scale = f32::from_bits(most[0]);
    if lane == 0 {
        scales[block] = scale;
    }
    let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
    let [high, low] = pair.map(|x| nearest_level(x * inverse));
    if let Some(code) = codes.get_mut(block * 32 + lane) {
        *code = high << 4 | low;
    }
}

#[kernel]
fn dequantize(codes: &[u8], scales: &[f32], weights: &mut [f16]) {
    let i = global_id_x();
    let Some(code) = codes.get(i) else { return };
    let scale = scales[i / 32];
    for (k, shift) in [4, 0].into_iter().enumerate() {
        if let Some(w) = weights.get_mut(2 * i + k) {
            *w = f16::from_f32(LEVELS[usize::from(code >> shift & 0xf)] * scale);
        }
    }
}

#[test]
fn normal_floats_are_the_nearest() {
    let count = 64 * 5 + 10;
    let weights: Vec<f16> = reals(count, 67)
        .iter()
        .map(|x| f16::from_f32(x * x * x))
        .collect();
    let mut codes = vec![0u8; count / 2];
    let (mut scales, mut expected) = (Vec::new(), Vec::new());
    for (b, block) in weights.chunks(64).enumerate() {
        let scale = block.iter().map(|w| w.to_f64().abs()).fold(0.0, f64::max);
        for (i, w) in block.iter().enumerate() {
            let far = |k: &usize| (f64::from(LEVELS[*k]) - w.to_f64() / scale).abs();
            let code = (0..16).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap();
            codes[b * 32 + i / 2] |= (code as u8) << (4 - i % 2 * 4);
            expected.push(f16::from_f32(LEVELS[code] * scale as f32));
        }
        scales.push(scale as f32);
    }
    everywhere(|run| {
        let w = run.upload(&weights);
        let (c, s, back) = (
            run.zeros::<u8>(codes.len()),
            run.zeros::<f32>(scales.len()),
            run.zeros::<f16>(count),
        );
        run.launch(quantize::kernel(), LaunchConfig::new(6, 32), args![&w, &c, &s]);
        run.holds(&s, &scales);
        run.holds(&c, &codes);
        let config = LaunchConfig::linear(codes.len(), 64);
        run.launch(dequantize::kernel(), config, args![&c, &s, &back]);
        run.holds(&back, &expected);
    });
}

// 68: indices in order

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Direction {
    Up,
    Down,
}

#[device]
impl Direction {
    fn behind(self, a: f32, b: f32) -> bool {
        match self {
            Direction::Up => a > b,
            Direction::Down => a < b,
        }
    }
}

/// A row a block, an index a lane; the block's size is a power of two that has room for all columns.
#[kernel]
fn argsort(direction: Direction, columns: usize, x: &[f32], out: &mut [i32]) {
    let order = shared_slice::<i32>();
    let lane = local_id_x();
    let size = block_dim_x() as usize;
    let row = &x[group_id_x() * columns..][..columns];
    order[lane] = lane as i32;
    sync_threads();
    let behind = |a: i32, b: i32| match (row.get(a as usize), row.get(b as usize)) {
        (Some(a), Some(b)) => direction.behind(*a, *b),
        (None, _) => true,
        (_, None) => false,
    };
    let mut length = 2;
    while length <= size {
        let mut stride = length / 2;
        while stride > 0 {
            let other = lane ^ stride;
            if other > lane {
                let (low, high) = (order[lane], order[other]);
                let wrong = if lane & length == 0 {
                    behind(low, high)
                } else {
                    behind(high, low)
                };
                if wrong {
                    order.swap(lane, other);
                }
            }
            sync_threads();
            stride /= 2;
        }
        length *= 2;
    }
    if lane < columns {
        out[group_id_x() * columns + lane] = order[lane];
    }
}

#[test]
fn argsort_ranks_rows() {
    let (rows, columns) = (5usize, 75usize);
    let mut random = Random(68);
    let mut x = Vec::new();
    for _ in 0..rows {
        let mut row: Vec<f32> = (0..columns).map(|i| i as f32 * 0.5 - 7.0).collect();
        for i in (1..columns).rev() {
            row.swap(i, random.bits() as usize % (i + 1));
        }
        x.extend(row);
    }
    for direction in [Direction::Up, Direction::Down] {
        let mut expected = Vec::new();
        for row in x.chunks(columns) {
            let mut order: Vec<i32> = (0..columns as i32).collect();
            order.sort_by(|a, b| row[*a as usize].total_cmp(&row[*b as usize]));
            if direction == Direction::Down {
                order.reverse();
            }
            expected.extend(order);
        }
        everywhere(|run| {
            let (x, out) = (run.upload(&x), run.zeros::<i32>(rows * columns));
            let config = LaunchConfig::new(rows as u32, 128).with_shared_bytes(128 * 4);
            run.launch(argsort::kernel(), config, args![direction, columns, &x, &out]);
            run.holds(&out, &expected);
        });
    }
}

// 72: two of four

/// A mask of the elements that stay, bit `4 row + column`.
#[device]
fn largest(tile: [[f32; 4]; 4]) -> u16 {
    let mut order: [(f32, u8); 16] = std::array::from_fn(|i| (tile[i / 4][i % 4].abs(), i as u8));
    order.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let (mut rows, mut columns) = ([0u8; 4], [0u8; 4]);
    let mut mask = 0;
    for (_, i) in order {
        let (row, column) = (&mut rows[usize::from(i / 4)], &mut columns[usize::from(i % 4)]);
        if *row < 2 && *column < 2 {
            *row += 1;
            *column += 1;
            mask |= 1 << i;
        }
    }
    mask
}

#[kernel(block_size = (8, 8))]
fn sparse24(width: usize, x: &[f32], masks: &mut [u16], kept: &mut [f32]) {
    let (column, row) = (global_id_x(), global_id_y());
    let tiles = width / 4;
    let height = x.len() / width;
    if column >= tiles || 4 * row >= height {
        return;
    }
    let mut tile = [[0.0; 4]; 4];
    for (line, elements) in tile.iter_mut().zip(x.chunks_exact(width).skip(4 * row)) {
        line.copy_from_slice(&elements[4 * column..4 * column + 4]);
    }
    let mask = largest(tile);
    masks[row * tiles + column] = mask;
    for (i, line) in tile.iter().enumerate() {
        for (j, value) in line.iter().enumerate() {
            let stays = mask >> (4 * i + j) & 1 == 1;
            kept[(4 * row + i) * width + 4 * column + j] = if stays { *value } else { 0.0 };
        }
    }
}

#[test]
fn tiles_keep_two_of_each_row_and_column() {
    let (width, height) = (52usize, 36usize);
    let mut random = Random(72);
    // Different magnitudes, so that the order is unique.
    let mut x: Vec<f32> = (0..width * height)
        .map(|i| (i + 1) as f32 * if i % 3 == 0 { 0.25 } else { -0.25 })
        .collect();
    for i in (1..x.len()).rev() {
        x.swap(i, random.bits() as usize % (i + 1));
    }
    let (mut masks, mut kept) = (vec![0u16; width * height / 16], vec![0.0; width * height]);
    let mut ranks: Vec<usize> = (0..x.len()).collect();
    ranks.sort_by(|a, b| x[*b].abs().total_cmp(&x[*a].abs()));
    for i in ranks {
        let (row, column) = (i / width, i % width);
        let mask = &mut masks[row / 4 * (width / 4) + column / 4];
        let in_row = (*mask >> (row % 4 * 4) & 0xf).count_ones();
        let in_column = (*mask >> (column % 4) & 0x1111).count_ones();
        if in_row < 2 && in_column < 2 {
            *mask |= 1 << (row % 4 * 4 + column % 4);
            kept[i] = x[i];
        }
    }
    everywhere(|run| {
        let (x, found) = (run.upload(&x), run.zeros::<f32>(kept.len()));
        let bits = run.zeros::<u16>(masks.len());
        let config = LaunchConfig::tiled(width as u32 / 4, height as u32 / 4, (8, 8));
        run.launch(sparse24::kernel(), config, args![width, &x, &bits, &found]);
        run.holds(&bits, &masks);
        run.holds(&found, &kept);
    });
}
