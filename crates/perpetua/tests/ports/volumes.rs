//! Rays through a sparse volume.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 85: rays through an occupancy field

const SIDE: u32 = 16;
const CASCADES: u32 = 3;
const STEP: f32 = 1.0 / 32.0;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Ray {
    origin: [f32; 3],
    direction: [f32; 3],
    near: f32,
    far: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Sample {
    position: [f32; 3],
    time: f32,
}

/// The bits of a 10-bit number with two zeros between them.
#[device]
const fn spread(v: u32) -> u32 {
    let v = (v | v << 16) & 0x0300_00ff;
    let v = (v | v << 8) & 0x0300_f00f;
    let v = (v | v << 4) & 0x030c_30c3;
    (v | v << 2) & 0x0924_9249
}

#[device]
fn morton([x, y, z]: [u32; 3]) -> u32 {
    spread(x) | spread(y) << 1 | spread(z) << 2
}

/// The smallest cascade that holds the position: cascade `c` reaches from `-2^(c-1)` to `2^(c-1)`.
#[device]
fn cascade_of(position: [f32; 3]) -> u32 {
    let most = position.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    let exponent = (most.to_bits() >> 23) as i32 - 126;
    (exponent + 1).clamp(0, CASCADES as i32 - 1) as u32
}

#[device]
fn occupied(field: &[u8], cascade: u32, cell: [u32; 3]) -> bool {
    let index = cascade * SIDE.pow(3) + morton(cell);
    field[(index / 8) as usize] & (1 << (index % 8)) != 0
}

#[kernel]
fn march(rays: &[Ray], field: &[u8], room: usize, samples: &mut [Sample], counts: &mut [u16]) {
    let n = global_id_x();
    let Some(ray) = rays.get(n) else {
        return;
    };
    let along = |t: f32| -> [f32; 3] { std::array::from_fn(|k| ray.origin[k] + t * ray.direction[k]) };
    let mut slots = samples[n * room..(n + 1) * room].iter_mut();
    let mut time = ray.near;
    let mut count = 0;
    while time < ray.far && usize::from(count) < room {
        let position = along(time);
        let cascade = cascade_of(position);
        let bound = 0.5 * (1 << cascade) as f32;
        let cell = position.map(|v| {
            let place = (v / bound + 1.0) * 0.5 * SIDE as f32;
            place.clamp(0.0, SIDE as f32 - 1.0) as u32
        });
        if occupied(field, cascade, cell) {
            if let Some(slot) = slots.next() {
                *slot = Sample { position, time };
            }
            count += 1;
            time += STEP;
            continue;
        }
        // To the wall of the cell, in whole steps.
        let wall = (0..3)
            .filter(|&k| ray.direction[k] != 0.0)
            .map(|k| {
                let d = ray.direction[k];
                let edge = cell[k] as f32 + if d > 0.0 { 1.0 } else { 0.0 };
                ((edge / SIDE as f32 * 2.0 - 1.0) * bound - position[k]) / d
            })
            .fold(f32::INFINITY, f32::min);
        let target = time + wall.max(0.0);
        loop {
            time += STEP;
            if time >= target {
                break;
            }
        }
    }
    counts[n] = count;
}

#[test]
fn rays_sample_what_is_occupied() {
    let (rays, room) = (150usize, 24usize);
    let mut random = Random(85);
    let field: Vec<bool> = (0..CASCADES * SIDE.pow(3))
        .map(|_| random.bits() % 5 == 0)
        .collect();
    // Powers of two, so that all arithmetic is exact.
    let rays: Vec<Ray> = (0..rays)
        .map(|_| Ray {
            origin: std::array::from_fn(|_| (random.bits() % 512) as f32 / 128.0 - 2.0 + 1.0 / 512.0),
            direction: std::array::from_fn(|axis| {
                let sizes = if axis == 0 {
                    [0.25, 0.5, 1.0]
                } else {
                    [0.0, 0.5, 1.0]
                };
                let size: f32 = sizes[random.bits() as usize % 3];
                if random.bits() % 2 == 0 { size } else { -size }
            }),
            near: (random.bits() % 8) as f32 / 64.0,
            far: 3.0,
        })
        .collect();
    let mut packed = vec![0u8; field.len() / 8];
    let side = SIDE as usize;
    for (i, full) in field.iter().enumerate() {
        let (c, x, y, z) = (i / side.pow(3), i % side, i / side % side, i / side / side % side);
        let place: usize = (0..4)
            .map(|b| (x >> b & 1) << (3 * b) | (y >> b & 1) << (3 * b + 1) | (z >> b & 1) << (3 * b + 2))
            .sum();
        let at = c * side.pow(3) + place;
        packed[at / 8] |= u8::from(*full) << (at % 8);
    }
    let mut samples = vec![Sample::default(); rays.len() * room];
    let mut counts = Vec::new();
    for (n, ray) in rays.iter().enumerate() {
        let mut count = 0;
        let mut k = 0;
        // The step at which the ray leaves an empty cell, or goes on.
        while count < room {
            let time = ray.near + k as f32 / 32.0;
            if time >= ray.far {
                break;
            }
            let at = |k: u32| -> [f64; 3] {
                let t = f64::from(ray.near) + f64::from(k) / 32.0;
                std::array::from_fn(|a| f64::from(ray.origin[a]) + t * f64::from(ray.direction[a]))
            };
            let cascade = |p: [f64; 3]| {
                (0..2)
                    .find(|c| p.iter().all(|v| v.abs() < 0.5 * f64::from(1 << c)))
                    .unwrap_or(2)
            };
            let c = cascade(at(k));
            let scale = 8.0 / (0.5 * f64::from(1 << c));
            let cell = |k: u32| at(k).map(|v| (v * scale + 8.0).clamp(0.0, 15.0) as usize);
            let [x, y, z] = cell(k);
            if field[c as usize * 4096 + x + 16 * y + 256 * z] {
                samples[n * room + count] = Sample {
                    position: at(k).map(|v| v as f32),
                    time,
                };
                count += 1;
                k += 1;
            } else {
                let inside = |k: u32| {
                    (0..3).all(|a| {
                        let (v, low) = (at(k)[a] * scale + 8.0, [x, y, z][a] as f64);
                        // A ray meets the wall ahead of it; outside the field it may be behind.
                        match ray.direction[a] {
                            d if d > 0.0 => v < low + 1.0,
                            d if d < 0.0 => v > low,
                            _ => true,
                        }
                    })
                };
                k += 1;
                while inside(k) {
                    k += 1;
                }
            }
        }
        counts.push(count as u16);
    }
    everywhere(|run| {
        let (all, bits) = (run.upload(&rays), run.upload(&packed));
        let (out, found) = (run.zeros::<Sample>(samples.len()), run.zeros::<u16>(rays.len()));
        run.launch(
            march::kernel(),
            LaunchConfig::linear(rays.len(), 64),
            args![&all, &bits, room, &out, &found],
        );
        run.holds(&found, &counts);
        run.holds(&out, &samples);
    });
}
