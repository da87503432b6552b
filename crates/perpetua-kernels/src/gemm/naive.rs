//! A lane an element. Must not know schedules.

use perpetua::prelude::*;

use crate::element::Storage;

/// What is stored for a sum of products.
#[device]
pub(super) fn scaled(sum: f32, before: Option<f32>, alpha: f32, beta: f32) -> f32 {
    match before {
        Some(before) => alpha * sum + beta * before,
        None => alpha * sum,
    }
}

/// Blocks are 16 x 16 elements: rows along the grid's x.
#[kernel(block_size = 256, interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gemm_naive<T: Storage>(
    m: usize,
    n: usize,
    k: usize,
    a_row: usize,
    a_column: usize,
    b_row: usize,
    b_column: usize,
    c_row: usize,
    alpha: f32,
    beta: f32,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    let row = group_id_x() * 16 + local_id_x() / 16;
    let column = group_id_y() * 16 + local_id_x() % 16;
    if row < m && column < n {
        let mut sum = 0.0;
        for i in 0..k {
            sum += a[row * a_row + i * a_column].wide() * b[i * b_row + column * b_column].wide();
        }
        let at = row * c_row + column;
        let before = if beta == 0.0 { None } else { Some(c[at].wide()) };
        c[at] = T::narrow(scaled(sum, before, alpha, beta));
    }
}
