//! Kernels of the kinds that users write first.

const RADIUS: usize = 2;
const WEIGHTS: [f32; 2 * RADIUS + 1] = [0.0625, 0.25, 0.375, 0.25, 0.0625];

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    velocity: [f32; 3],
    kind: Kind,
}

#[derive(Clone, Copy, GpuType)]
#[repr(u32)]
enum Kind {
    Free,
    Charged,
    Fixed,
}

impl Particle {
    #[device]
    fn speed(&self) -> f32 {
        let mut s = 0.0;
        for k in 0..3 {
            s += self.velocity[k] * self.velocity[k];
        }
        s.sqrt()
    }
}

#[device]
fn luma(r: u8, g: u8, b: u8) -> u8 {
    ((r as u32 * 77 + g as u32 * 150 + b as u32 * 29) >> 8) as u8
}

/// Nested loops: a square matrix product.
#[kernel]
fn matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    let row = global_id_y();
    let column = global_id_x();
    if row < n && column < n {
        let mut sum = 0.0;
        for k in 0..n {
            sum = a[row * n + k].mul_add(b[k * n + column], sum);
        }
        c[row * n + column] = sum;
    }
}

/// `match` as a value.
#[kernel]
fn classify(x: &[i32], out: &mut [u32]) {
    let i = global_id_x();
    if i < x.len() {
        out[i] = match x[i] {
            0 => 0,
            1 | 2 | 3 => 1,
            -5..=-1 => 2,
            v if v % 7 == 0 => 3,
            _ => 4,
        };
    }
}

/// Images of bytes.
#[kernel]
fn gray(rgb: &[u8], out: &mut [u8]) {
    let i = global_id_x();
    if i < out.len() {
        out[i] = luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
    }
}

/// Arrays of structs, and enums from memory.
#[kernel]
fn advance(particles: &mut [Particle], speeds: &mut [f32], dt: f32) {
    let i = global_id_x();
    if i >= particles.len() {
        return;
    }
    let mut p = particles[i];
    let factor = match p.kind {
        Kind::Free => 1.0,
        Kind::Charged => 0.5,
        Kind::Fixed => 0.0,
    };
    for k in 0..3 {
        p.position[k] += p.velocity[k] * dt * factor;
    }
    particles[i] = p;
    speeds[i] = p.speed();
}

/// A reduction in shared memory.
#[kernel]
fn sum(x: &[f32], out: &mut [f32]) {
    let tile = shared_array::<[f32; 256]>();
    let lane = local_id_x();
    let i = global_id_x();
    tile[lane] = if i < x.len() { x[i] } else { 0.0 };
    sync_threads();
    let mut stride = 128;
    while stride > 0 {
        if lane < stride {
            tile[lane] += tile[lane + stride];
        }
        sync_threads();
        stride /= 2;
    }
    if lane == 0 {
        out[group_id_x()] = tile[0];
    }
}

/// Constants, clamped indices, floats that are not exact.
#[kernel]
fn blur(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let n = x.len();
    if i >= n {
        return;
    }
    let mut s = 0.0;
    for k in 0..WEIGHTS.len() {
        let at = (i + k).saturating_sub(RADIUS).min(n - 1);
        s += x[at] * WEIGHTS[k];
    }
    let (sin, cos) = s.sin_cos();
    out[i] = if s > 0.0 { s.ln() + sin } else { s.exp() - cos };
}

/// Histogram by atomics.
#[kernel]
fn histogram(x: &[u32], bins: &mut [u32]) {
    let n = bins.len() as u32;
    let mut i = global_id_x();
    while i < x.len() {
        atomic_add(&mut bins[(x[i] % n) as usize], 1);
        i += global_size_x();
    }
}
