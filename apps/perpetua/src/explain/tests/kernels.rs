//! Kernels that are explained. Must not know how.

use perpetua::prelude::*;

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] += a * x[i];
    }
}

#[kernel]
fn sparse(
    starts: &[u32],
    columns: &[u32],
    values: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    let row = global_id_x();
    if row >= y.len() {
        return;
    }
    let mut sum = 0.0;
    for k in starts[row]..starts[row + 1] {
        let column = columns[k as usize] as usize;
        sum += values[k as usize] * x[column];
    }
    y[row] = sum;
}

#[kernel(block_size = 64)]
fn block_sum<const N: usize>(x: &[u32], out: &mut [u32], means: &mut [f64]) {
    let part = shared_array::<[u32; N]>();
    let lane = local_id_x();
    part[lane] = x.get(global_id_x()).copied().unwrap_or(0);
    sync_threads();
    let mut half = N / 2;
    while half > 0 {
        if lane < half {
            part[lane] += part[lane + half];
        }
        sync_threads();
        half /= 2;
    }
    if lane == 0 {
        atomic_add(&mut out[0], part[0]);
        means[group_id_x()] = (part[0] as f64).ln();
    }
}
