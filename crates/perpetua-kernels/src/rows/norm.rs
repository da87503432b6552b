//! Layer norm and RMS norm. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::reduce::across;
use crate::element::Storage;

/// Rows of at most `LANES * HELD` elements, which stay in registers.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn layer_norm<T: Storage, const LANES: usize, const HELD: usize>(
    rows: usize,
    columns: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[T],
    weight: &[T],
    bias: &[T],
    y: &mut [T],
) {
    let part = shared_array::<[f32; 256]>();
    let lane = local_id_x() % 256;
    let row = group_id_x() * (256 / LANES) + lane / LANES;
    let within = lane % LANES;
    let mut held = [0.0f32; HELD];
    let mut sum = 0.0;
    for i in 0..HELD {
        let column = i * LANES + within;
        if row < rows && column < columns {
            held[i] = x[row * x_pitch + column].wide();
        }
        sum += held[i];
    }
    let mean = across::<LANES>(part, lane, sum, |a, b| a + b) / columns as f32;
    let mut squares = 0.0;
    for i in 0..HELD {
        if i * LANES + within < columns {
            squares += (held[i] - mean) * (held[i] - mean);
        }
    }
    let variance = across::<LANES>(part, lane, squares, |a, b| a + b) / columns as f32;
    let scale = (variance + epsilon).sqrt().recip();
    for i in 0..HELD {
        let column = i * LANES + within;
        if row < rows && column < columns {
            let value = (held[i] - mean) * scale * weight[column].wide() + bias[column].wide();
            y[row * y_pitch + column] = T::narrow(value);
        }
    }
}

/// The same for rows of any length, a block each.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn layer_norm_long<T: Storage>(
    rows: usize,
    columns: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[T],
    weight: &[T],
    bias: &[T],
    y: &mut [T],
) {
    let part = shared_array::<[f32; 256]>();
    let lane = local_id_x() % 256;
    let row = group_id_x();
    let end = if row < rows { columns } else { 0 };
    let (from, to) = (row * x_pitch, row * y_pitch);
    let mut sum = 0.0;
    let mut column = lane;
    while column < end {
        sum += x[from + column].wide();
        column += 256;
    }
    let mean = across::<256>(part, lane, sum, |a, b| a + b) / columns as f32;
    let mut squares = 0.0;
    let mut column = lane;
    while column < end {
        let off = x[from + column].wide() - mean;
        squares += off * off;
        column += 256;
    }
    let variance = across::<256>(part, lane, squares, |a, b| a + b) / columns as f32;
    let scale = (variance + epsilon).sqrt().recip();
    let mut column = lane;
    while column < end {
        let value = (x[from + column].wide() - mean) * scale * weight[column].wide() + bias[column].wide();
        y[to + column] = T::narrow(value);
        column += 256;
    }
}

/// Rows of at most `LANES * HELD` elements, which stay in registers.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn rms_norm<T: Storage, const LANES: usize, const HELD: usize>(
    rows: usize,
    columns: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[T],
    weight: &[T],
    y: &mut [T],
) {
    let part = shared_array::<[f32; 256]>();
    let lane = local_id_x() % 256;
    let row = group_id_x() * (256 / LANES) + lane / LANES;
    let within = lane % LANES;
    let mut held = [0.0f32; HELD];
    let mut squares = 0.0;
    for i in 0..HELD {
        let column = i * LANES + within;
        if row < rows && column < columns {
            held[i] = x[row * x_pitch + column].wide();
        }
        squares += held[i] * held[i];
    }
    let mean = across::<LANES>(part, lane, squares, |a, b| a + b) / columns as f32;
    let scale = (mean + epsilon).sqrt().recip();
    for i in 0..HELD {
        let column = i * LANES + within;
        if row < rows && column < columns {
            y[row * y_pitch + column] = T::narrow(held[i] * scale * weight[column].wide());
        }
    }
}

/// The same for rows of any length, a block each.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn rms_norm_long<T: Storage>(
    rows: usize,
    columns: usize,
    x_pitch: usize,
    y_pitch: usize,
    epsilon: f32,
    x: &[T],
    weight: &[T],
    y: &mut [T],
) {
    let part = shared_array::<[f32; 256]>();
    let lane = local_id_x() % 256;
    let row = group_id_x();
    let end = if row < rows { columns } else { 0 };
    let (from, to) = (row * x_pitch, row * y_pitch);
    let mut squares = 0.0;
    let mut column = lane;
    while column < end {
        let value = x[from + column].wide();
        squares += value * value;
        column += 256;
    }
    let mean = across::<256>(part, lane, squares, |a, b| a + b) / columns as f32;
    let scale = (mean + epsilon).sqrt().recip();
    let mut column = lane;
    while column < end {
        y[to + column] = T::narrow(x[from + column].wide() * scale * weight[column].wide());
        column += 256;
    }
}
