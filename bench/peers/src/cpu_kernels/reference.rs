//! What the twelve kernels compute, as loops in plain Rust with rayon: what every result is compared with, and, of those that
//! memory bounds, a peer. Knows no device.

use rayon::prelude::*;

/// Elements that a task of rayon's takes.
const TASK: usize = 1 << 14;

fn each(x: &[f32], y: &mut [f32], f: impl Fn(f32, &mut f32) + Sync) {
    let tasks = y.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
    tasks.for_each(|(y, x)| y.iter_mut().zip(x).for_each(|(y, x)| f(*x, y)));
}

pub(super) fn saxpy(x: &[f32], y: &mut [f32], _: usize, a: f32) {
    each(x, y, |x, y| *y += a * x);
}

pub(super) fn chain(x: &[f32], y: &mut [f32], _: usize, a: f32) {
    each(x, y, |x, y| *y = (2.0 * x + a).max(0.0));
}

pub(super) fn gelu(x: &[f32], y: &mut [f32], _: usize, a: f32) {
    each(x, y, |v, y| {
        *y = 0.5 * v * (1.0 + (0.797_884_6 * (v + a * v * v * v)).tanh())
    });
}

pub(super) fn softmax(x: &[f32], y: &mut [f32], n: usize, _: f32) {
    y.par_chunks_mut(n).zip(x.par_chunks(n)).for_each(|(y, x)| {
        let top = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - top).exp());
        let sum: f32 = y.iter().sum();
        y.iter_mut().for_each(|y| *y /= sum);
    });
}

pub(super) fn reduction(x: &[f32], y: &mut [f32], _: usize, _: f32) {
    let sum = |block: &[f32]| {
        let mut lanes = [0.0f32; 16];
        for part in block.chunks(16) {
            lanes.iter_mut().zip(part).for_each(|(lane, x)| *lane += x);
        }
        lanes.iter().sum()
    };
    let tasks = y.par_chunks_mut(64).zip(x.par_chunks(64 * 256));
    tasks.for_each(|(y, x)| {
        y.iter_mut()
            .zip(x.chunks(256))
            .for_each(|(y, block)| *y = sum(block))
    });
}

pub(super) fn scan(x: &[f32], y: &mut [f32], _: usize, _: f32) {
    let tasks = y.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
    tasks.for_each(|(y, x)| {
        for (y, x) in y.chunks_mut(256).zip(x.chunks(256)) {
            let mut sum = 0.0;
            for (y, x) in y.iter_mut().zip(x) {
                sum += x;
                *y = sum;
            }
        }
    });
}

pub(super) fn histogram(x: &[f32], y: &mut [f32], _: usize, a: f32) {
    let count = |x: &[f32]| {
        let mut bins = [0u32; 256];
        x.iter().for_each(|x| bins[((x + 1.0) * a) as usize] += 1);
        bins
    };
    let add = |mut left: [u32; 256], right: [u32; 256]| {
        left.iter_mut().zip(right).for_each(|(l, r)| *l += r);
        left
    };
    let bins = x.par_chunks(TASK).map(count).reduce(|| [0; 256], add);
    y.iter_mut().zip(bins).for_each(|(y, count)| *y += count as f32);
}

pub(super) fn transpose(x: &[f32], y: &mut [f32], n: usize, _: f32) {
    y.par_chunks_mut(16 * n).enumerate().for_each(|(band, y)| {
        for column in (0..n).step_by(16) {
            for (r, row) in y.chunks_mut(n).enumerate() {
                for (c, y) in row[column..column + 16].iter_mut().enumerate() {
                    *y = x[(column + c) * n + band * 16 + r];
                }
            }
        }
    });
}

pub(super) fn tiled(x: &[f32], y: &mut [f32], n: usize, _: f32) {
    y.par_chunks_mut(n).zip(x.par_chunks(n)).for_each(|(y, left)| {
        y.fill(0.0);
        for (left, right) in left.iter().zip(x.chunks(n)) {
            y.iter_mut().zip(right).for_each(|(y, right)| *y += left * right);
        }
    });
}

pub(super) fn stencil(x: &[f32], y: &mut [f32], n: usize, a: f32) {
    let rows = y.par_chunks_mut(n).enumerate().skip(1).take(n - 2);
    rows.with_min_len(8).for_each(|(j, y)| {
        let row = |j: usize| &x[j * n..(j + 1) * n];
        let (up, here, down) = (row(j - 1), row(j), row(j + 1));
        for (((y, h), u), d) in y[1..]
            .iter_mut()
            .zip(here.windows(3))
            .zip(&up[1..])
            .zip(&down[1..])
        {
            *y = h[1] + a * (h[0] + h[2] + u + d - 4.0 * h[1]);
        }
    });
}

pub(super) fn mandelbrot(_: &[f32], y: &mut [f32], n: usize, a: f32) {
    y.par_chunks_mut(n).enumerate().for_each(|(j, y)| {
        let cy = j as f32 * a - 1.5;
        for (i, y) in y.iter_mut().enumerate() {
            let cx = i as f32 * a - 2.0;
            let (mut zx, mut zy, mut k) = (0.0f32, 0.0f32, 0u32);
            while k < 256 && zx * zx + zy * zy < 4.0 {
                (zx, zy) = (zx * zx - zy * zy + cx, 2.0 * zx * zy + cy);
                k += 1;
            }
            *y = k as f32;
        }
    });
}

pub(super) fn nbody(x: &[f32], y: &mut [f32], n: usize, a: f32) {
    let (px, rest) = x.split_at(n);
    let (py, rest) = rest.split_at(n);
    let (pz, mass) = rest.split_at(n);
    let pull = |i: usize| {
        let mut f = [0.0f32; 3];
        for j in 0..n {
            let d = [px[j] - px[i], py[j] - py[i], pz[j] - pz[i]];
            let r = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + a).sqrt();
            let s = mass[j] * r * r * r;
            f.iter_mut().zip(d).for_each(|(f, d)| *f += d * s);
        }
        f
    };
    let forces: Vec<[f32; 3]> = (0..n).into_par_iter().map(pull).collect();
    for (i, f) in forces.iter().enumerate() {
        (y[i], y[n + i], y[2 * n + i]) = (f[0], f[1], f[2]);
    }
}
