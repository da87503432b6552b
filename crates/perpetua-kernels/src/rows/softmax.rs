//! Softmax and its logarithm. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::reduce::across;
use crate::element::Storage;

/// What is written for `x` in a row with this maximum and this sum of exponentials.
#[device]
fn share(x: f32, most: f32, sum: f32, logarithm: bool) -> f32 {
    if logarithm {
        x - most - sum.ln()
    } else {
        (x - most).exp() / sum
    }
}

/// Rows of at most `LANES * HELD` elements, which stay in registers.
#[kernel(block_size = 256, interpret)]
pub(super) fn softmax<T: Storage, const LANES: usize, const HELD: usize, const LOGARITHM: bool>(
    rows: usize,
    columns: usize,
    x_pitch: usize,
    y_pitch: usize,
    x: &[T],
    y: &mut [T],
) {
    let part = shared_array::<[f32; 256]>();
    let lane = local_id_x() % 256;
    let row = group_id_x() * (256 / LANES) + lane / LANES;
    let within = lane % LANES;
    let mut held = [0.0f32; HELD];
    let mut most = f32::NEG_INFINITY;
    for i in 0..HELD {
        let column = i * LANES + within;
        held[i] = f32::NEG_INFINITY;
        if row < rows && column < columns {
            held[i] = x[row * x_pitch + column].wide();
        }
        most = most.max(held[i]);
    }
    let most = across::<LANES>(part, lane, most, |a, b| a.max(b));
    let mut sum = 0.0;
    for i in 0..HELD {
        if i * LANES + within < columns {
            sum += (held[i] - most).exp();
        }
    }
    let sum = across::<LANES>(part, lane, sum, |a, b| a + b);
    for i in 0..HELD {
        let column = i * LANES + within;
        if row < rows && column < columns {
            y[row * y_pitch + column] = T::narrow(share(held[i], most, sum, LOGARITHM));
        }
    }
}

/// Rows of any length, a block each: a lane keeps the maximum of what it has seen, and the sum of the exponentials against it.
#[kernel(block_size = 256, interpret)]
pub(super) fn softmax_long<T: Storage, const LOGARITHM: bool>(
    rows: usize,
    columns: usize,
    x_pitch: usize,
    y_pitch: usize,
    x: &[T],
    y: &mut [T],
) {
    let part = shared_array::<[f32; 256]>();
    let lane = local_id_x() % 256;
    let row = group_id_x();
    let columns = if row < rows { columns } else { 0 };
    let (mut highest, mut sum) = (f32::NEG_INFINITY, 0.0f32);
    let mut column = lane;
    while column < columns {
        let value = x[row * x_pitch + column].wide();
        if value > highest {
            sum = sum * (highest - value).exp() + 1.0;
            highest = value;
        } else if value != f32::NEG_INFINITY {
            sum += (value - highest).exp();
        }
        column += 256;
    }
    let most = across::<256>(part, lane, highest, |a, b| a.max(b));
    // A lane that met nothing but -inf adds nothing; +inf less itself is no number, and makes the row none.
    let share_of_lane = if highest == f32::NEG_INFINITY {
        sum
    } else {
        sum * (highest - most).exp()
    };
    let sum = across::<256>(part, lane, share_of_lane, |a, b| a + b);
    let mut column = lane;
    while column < columns {
        let value = x[row * x_pitch + column].wide();
        y[row * y_pitch + column] = T::narrow(share(value, most, sum, LOGARITHM));
        column += 256;
    }
}
