//! The twelve kernels in Perpetua's language, for the CPU to run from their IR: `interpret` keeps Rust's compiler away from them.
//! All have one signature (input, output, a size, a factor), so that one table can launch them. Knows no sizes.

use perpetua::prelude::*;

#[kernel(interpret)]
pub(super) fn saxpy(x: &[f32], y: &mut [f32], _n: usize, a: f32) {
    let i = global_id_x();
    if i < y.len() {
        y[i] += a * x[i];
    }
}

#[kernel(interpret)]
pub(super) fn chain(x: &[f32], y: &mut [f32], _n: usize, a: f32) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = (2.0 * x[i] + a).max(0.0);
    }
}

#[kernel(interpret)]
pub(super) fn gelu(x: &[f32], y: &mut [f32], _n: usize, a: f32) {
    let i = global_id_x();
    if i < y.len() {
        let v = x[i];
        y[i] = 0.5 * v * (1.0 + (0.797_884_6 * (v + a * v * v * v)).tanh());
    }
}

/// A block for each row of `n`.
#[kernel(interpret)]
pub(super) fn softmax(x: &[f32], y: &mut [f32], n: usize, _a: f32) {
    let part = shared_array::<[f32; 256]>();
    let t = local_id_x();
    let row = group_id_x() * n;
    let mut top = x[row + t];
    let mut k = t;
    while k < n {
        top = top.max(x[row + k]);
        k += 256;
    }
    part[t] = top;
    sync_threads();
    let mut s = 128usize;
    while s > 0 {
        if t < s {
            part[t] = part[t].max(part[t + s]);
        }
        sync_threads();
        s /= 2;
    }
    top = part[0];
    sync_threads();
    let mut sum = 0.0f32;
    k = t;
    while k < n {
        let e = (x[row + k] - top).exp();
        y[row + k] = e;
        sum += e;
        k += 256;
    }
    part[t] = sum;
    sync_threads();
    s = 128;
    while s > 0 {
        if t < s {
            part[t] += part[t + s];
        }
        sync_threads();
        s /= 2;
    }
    sum = part[0];
    k = t;
    while k < n {
        y[row + k] /= sum;
        k += 256;
    }
}

/// The sum of each block's 256 elements.
#[kernel(interpret)]
pub(super) fn reduction(x: &[f32], y: &mut [f32], _n: usize, _a: f32) {
    let part = shared_array::<[f32; 256]>();
    let t = local_id_x();
    part[t] = x[global_id_x()];
    sync_threads();
    let mut s = 128usize;
    while s > 0 {
        if t < s {
            part[t] += part[t + s];
        }
        sync_threads();
        s /= 2;
    }
    if t == 0 {
        y[group_id_x()] = part[0];
    }
}

/// Inclusive sums within each block's 256 elements.
#[kernel(interpret)]
pub(super) fn scan(x: &[f32], y: &mut [f32], _n: usize, _a: f32) {
    let part = shared_array::<[f32; 256]>();
    let t = local_id_x();
    let i = global_id_x();
    part[t] = x[i];
    sync_threads();
    let mut s = 1usize;
    while s < 256 {
        let mut before = 0.0f32;
        if t >= s {
            before = part[t - s];
        }
        sync_threads();
        part[t] += before;
        sync_threads();
        s *= 2;
    }
    y[i] = part[t];
}

/// A block counts 16 elements a lane.
#[kernel(interpret)]
pub(super) fn histogram(x: &[f32], y: &mut [u32], _n: usize, a: f32) {
    let bins = shared_array::<[u32; 256]>();
    let t = local_id_x();
    let first = group_id_x() * 4096 + t;
    bins[t] = 0;
    sync_threads();
    for k in 0..16usize {
        let bin = ((x[first + k * 256] + 1.0) * a) as u32;
        atomic_add(&mut bins[bin as usize], 1);
    }
    sync_threads();
    atomic_add(&mut y[t], bins[t]);
}

#[kernel(interpret)]
pub(super) fn transpose(x: &[f32], y: &mut [f32], n: usize, _a: f32) {
    let tile = shared_array::<[[f32; 17]; 16]>();
    let tx = local_id_x();
    let ty = local_id_y();
    tile[ty][tx] = x[global_id_y() * n + global_id_x()];
    sync_threads();
    let row = group_id_x() * 16 + ty;
    let column = group_id_y() * 16 + tx;
    y[row * n + column] = tile[tx][ty];
}

/// The input's square, in tiles of 16 x 16.
#[kernel(interpret)]
pub(super) fn tiled(x: &[f32], y: &mut [f32], n: usize, _a: f32) {
    let left = shared_array::<[[f32; 16]; 16]>();
    let right = shared_array::<[[f32; 16]; 16]>();
    let tx = local_id_x();
    let ty = local_id_y();
    let row = global_id_y();
    let column = global_id_x();
    let mut sum = 0.0f32;
    let mut k = 0usize;
    while k < n {
        left[ty][tx] = x[row * n + k + tx];
        right[ty][tx] = x[(k + ty) * n + column];
        sync_threads();
        for j in 0..16usize {
            sum += left[ty][j] * right[j][tx];
        }
        sync_threads();
        k += 16;
    }
    y[row * n + column] = sum;
}

#[kernel(interpret)]
pub(super) fn stencil(x: &[f32], y: &mut [f32], n: usize, a: f32) {
    let i = global_id_x();
    let j = global_id_y();
    if i > 0 && j > 0 && i < n - 1 && j < n - 1 {
        let p = j * n + i;
        y[p] = x[p] + a * (x[p - 1] + x[p + 1] + x[p - n] + x[p + n] - 4.0 * x[p]);
    }
}

#[kernel(interpret)]
pub(super) fn mandelbrot(_x: &[f32], y: &mut [f32], n: usize, a: f32) {
    let i = global_id_x();
    let j = global_id_y();
    if i < n && j < n {
        let cx = i as f32 * a - 2.0;
        let cy = j as f32 * a - 1.5;
        let mut zx = 0.0f32;
        let mut zy = 0.0f32;
        let mut k = 0u32;
        while k < 256 && zx * zx + zy * zy < 4.0 {
            let t = zx * zx - zy * zy + cx;
            zy = 2.0 * zx * zy + cy;
            zx = t;
            k += 1;
        }
        y[j * n + i] = k as f32;
    }
}

/// The pull of all `n` bodies on each: three planes of positions and one of masses.
#[kernel(interpret)]
pub(super) fn nbody(x: &[f32], y: &mut [f32], n: usize, a: f32) {
    let i = global_id_x();
    if i < n {
        let px = x[i];
        let py = x[n + i];
        let pz = x[2 * n + i];
        let mut fx = 0.0f32;
        let mut fy = 0.0f32;
        let mut fz = 0.0f32;
        for j in 0..n {
            let dx = x[j] - px;
            let dy = x[n + j] - py;
            let dz = x[2 * n + j] - pz;
            let r = 1.0 / (dx * dx + dy * dy + dz * dz + a).sqrt();
            let s = x[3 * n + j] * r * r * r;
            fx += dx * s;
            fy += dy * s;
            fz += dz * s;
        }
        y[i] = fx;
        y[n + i] = fy;
        y[2 * n + i] = fz;
    }
}
