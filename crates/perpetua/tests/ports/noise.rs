//! Values at points of space: noise, a grid of features.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 41: Perlin's noise

/// Numbers 0 to 255 in an order that a generator shuffles.
const fn shuffled() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = i as u8;
        i += 1;
    }
    let mut state = 41u32;
    while i > 1 {
        i -= 1;
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let j = (state >> 8) as usize % (i + 1);
        let kept = table[i];
        table[i] = table[j];
        table[j] = kept;
    }
    table
}

static SHUFFLED: [u8; 256] = shuffled();

#[device]
fn hash(table: &[u8], i: i32) -> i32 {
    i32::from(table[(i & 255) as usize])
}

#[device]
fn fade(t: f32) -> f32 {
    t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
}

#[device]
fn lerp(t: f32, a: f32, b: f32) -> f32 {
    a + t * (b - a)
}

#[device]
fn slope(hash: i32, x: f32, y: f32, z: f32) -> f32 {
    let h = hash & 15;
    let u = if h < 8 { x } else { y };
    let v = match h {
        0..4 => y,
        12 | 14 => x,
        _ => z,
    };
    (if h & 1 == 0 { u } else { -u }) + if h & 2 == 0 { v } else { -v }
}

#[device]
fn perlin(table: &[u8], [x, y, z]: [f32; 3]) -> f32 {
    let [i, j, k] = [x, y, z].map(|v| v.floor() as i32);
    let [x, y, z] = [x, y, z].map(|v| v - v.floor());
    let [u, v, w] = [x, y, z].map(fade);
    let corner = |dx: i32, dy: i32, dz: i32| {
        let plane = hash(table, i + dx) + j + dy;
        let at = hash(table, hash(table, plane) + k + dz);
        slope(at, x - dx as f32, y - dy as f32, z - dz as f32)
    };
    let plane = |dz: i32| {
        lerp(
            v,
            lerp(u, corner(0, 0, dz), corner(1, 0, dz)),
            lerp(u, corner(0, 1, dz), corner(1, 1, dz)),
        )
    };
    lerp(w, plane(0), plane(1))
}

#[kernel]
fn octaves(table: &[u8], points: &[[f32; 3]], out: &mut [f32]) {
    let i = global_id_x();
    let Some(point) = points.get(i) else { return };
    out[i] = (0..3)
        .map(|octave| {
            let scale = (1 << octave) as f32;
            perlin(table, point.map(|v| v * scale)) / scale
        })
        .sum();
}

#[test]
fn perlin_is_smooth_noise() {
    let mut random = Random(41);
    let points: Vec<[f32; 3]> = (0..500)
        .map(|_| std::array::from_fn(|_| (random.bits() % 40000) as f32 / 1000.0 - 20.0))
        .collect();
    // By the twelve directions, and weights of each corner.
    let directions: [[f64; 3]; 16] = [
        [1., 1., 0.],
        [-1., 1., 0.],
        [1., -1., 0.],
        [-1., -1., 0.],
        [1., 0., 1.],
        [-1., 0., 1.],
        [1., 0., -1.],
        [-1., 0., -1.],
        [0., 1., 1.],
        [0., -1., 1.],
        [0., 1., -1.],
        [0., -1., -1.],
        [1., 1., 0.],
        [0., -1., 1.],
        [-1., 1., 0.],
        [0., -1., -1.],
    ];
    let table = |i: i64| i64::from(SHUFFLED[i.rem_euclid(256) as usize]);
    let noise = |p: [f64; 3]| {
        let cell = p.map(|v| v.floor() as i64);
        let mut sum = 0.0;
        for corner in 0..8 {
            let d: [i64; 3] = std::array::from_fn(|axis| corner >> axis & 1);
            let h = table(table(table(cell[0] + d[0]) + cell[1] + d[1]) + cell[2] + d[2]) & 15;
            let away: [f64; 3] = std::array::from_fn(|axis| p[axis] - (cell[axis] + d[axis]) as f64);
            let mut term: f64 = (0..3).map(|axis| directions[h as usize][axis] * away[axis]).sum();
            for axis in 0..3 {
                let t = 1.0 - away[axis].abs();
                term *= 6.0 * t.powi(5) - 15.0 * t.powi(4) + 10.0 * t.powi(3);
            }
            sum += term;
        }
        sum
    };
    let expected: Vec<f64> = points
        .iter()
        .map(|p| {
            let p = p.map(f64::from);
            noise(p) + noise(p.map(|v| 2.0 * v)) / 2.0 + noise(p.map(|v| 4.0 * v)) / 4.0
        })
        .collect();
    everywhere(|run| {
        let (table, points) = (run.upload(&SHUFFLED), run.upload(&points));
        let out = run.zeros::<f32>(expected.len());
        let config = LaunchConfig::linear(expected.len(), 64);
        run.launch(octaves::kernel(), config, args![&table, &points, &out]);
        run.near(&out, &expected, 2e-4);
    });
}

// 43: a hash grid

const FEATURES: usize = 2;

#[kernel]
fn encode(
    levels: u32,
    coarsest: u32,
    growth: f32,
    points: &[[f32; 3]],
    table: &[[f32; FEATURES]],
    out: &mut [[f32; FEATURES]],
) {
    let (i, level) = (global_id_x(), global_id_y() as u32);
    if i >= points.len() || level >= levels {
        return;
    }
    let size = table.len() as u32 / levels;
    let table = &table[(level * size) as usize..((level + 1) * size) as usize];
    let resolution = (coarsest as f32 * growth.powi(level as i32)).floor();
    let scaled = points[i].map(|v| v * resolution);
    let cell = scaled.map(|v| v.floor() as u32);
    let within = scaled.map(f32::fract);
    let dense = (resolution as u32 + 1).checked_pow(3).is_some_and(|n| n <= size);
    let mut sum = [0.0; FEATURES];
    for corner in 0..8u32 {
        let (mut weight, mut at) = (1.0, [0; 3]);
        for axis in 0..3 {
            let bit = corner >> axis & 1;
            weight *= if bit == 1 {
                within[axis]
            } else {
                1.0 - within[axis]
            };
            at[axis] = cell[axis] + bit;
        }
        let slot = if dense {
            let side = resolution as u32 + 1;
            at[0] + side * (at[1] + side * at[2])
        } else {
            let [x, y, z] = at;
            (x ^ y.wrapping_mul(2_654_435_761) ^ z.wrapping_mul(805_459_861)) % size
        };
        for (sum, feature) in sum.iter_mut().zip(table[slot as usize]) {
            *sum += weight * feature;
        }
    }
    out[i * levels as usize + level as usize] = sum;
}

#[test]
fn hash_grid_interpolates() {
    let mut random = Random(43);
    let (levels, size, points) = (4u32, 512usize, 90usize);
    let table: Vec<[f32; 2]> = (0..levels as usize * size)
        .map(|_| [0; 2].map(|_| (random.bits() % 1000) as f32 / 1000.0))
        .collect();
    let points: Vec<[f32; 3]> = (0..points)
        .map(|_| [0; 3].map(|_| (random.bits() % 4096) as f32 / 4096.0))
        .collect();
    let mut expected = Vec::new();
    for point in &points {
        for level in 0..levels as usize {
            let resolution = 4u64 << level;
            let p = point.map(|v| f64::from(v) * resolution as f64);
            let mut sum = [0.0f64; 2];
            for corner in 0..8u64 {
                let at: [u64; 3] = std::array::from_fn(|axis| p[axis] as u64 + (corner >> axis & 1));
                let weight: f64 = (0..3)
                    .map(|axis| 1.0 - (p[axis] - at[axis] as f64).abs())
                    .product();
                let side = resolution + 1;
                let slot = if side.pow(3) <= size as u64 {
                    at[0] + at[1] * side + at[2] * side * side
                } else {
                    let mixed = at[0] ^ (at[1] * 2_654_435_761) ^ (at[2] * 805_459_861);
                    (mixed & 0xffff_ffff) % size as u64
                };
                for f in 0..2 {
                    sum[f] += weight * f64::from(table[level * size + slot as usize][f]);
                }
            }
            expected.extend(sum);
        }
    }
    everywhere(|run| {
        let (there, table) = (run.upload(&points), run.upload(&table));
        let out = run.zeros::<[f32; 2]>(points.len() * levels as usize);
        run.launch(
            encode::kernel(),
            LaunchConfig::tiled(points.len() as u32, levels, (32, 4)),
            args![levels, 4u32, 2.0f32, &there, &table, &out],
        );
        let found = run.upload(&run.read(&out).concat());
        run.near(&found, &expected, 1e-5);
    });
}
