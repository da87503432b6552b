//! Shallow water by Kurganov and Petrova's scheme.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 255: shallow water by Kurganov and Petrova's scheme

const GRAVITY: f32 = 9.81;
const DRY: f32 = 1e-2;
const SQRT_2: f32 = std::f32::consts::SQRT_2;

#[device]
fn min_mod(a: f32, b: f32, c: f32) -> f32 {
    if a > 0.0 && b > 0.0 && c > 0.0 {
        a.min(b).min(c)
    } else if a < 0.0 && b < 0.0 && c < 0.0 {
        a.max(b).max(c)
    } else {
        0.0
    }
}

/// A periodic grid whose bottom is known at corners.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Sea {
    width: u32,
    height: u32,
    cell: f32,
    dt: f32,
}

#[device]
impl Sea {
    fn at(&self, x: usize, y: usize) -> usize {
        let (width, height) = (self.width as usize, self.height as usize);
        y % height * width + x % width
    }

    /// A number of cells further along an axis, which may be behind.
    fn moved(&self, [x, y]: [usize; 2], axis: usize, by: i32) -> [usize; 2] {
        let (width, height) = (self.width as usize, self.height as usize);
        match axis {
            0 => [(x + width).wrapping_add_signed(by as isize) % width, y],
            _ => [x, (y + height).wrapping_add_signed(by as isize) % height],
        }
    }

    /// The bottom in the middle of the face on the lower side of a cell.
    fn face(&self, bottom: &[f32], [x, y]: [usize; 2], axis: usize) -> f32 {
        let other = if axis == 0 {
            self.at(x, y + 1)
        } else {
            self.at(x + 1, y)
        };
        0.5 * (bottom[self.at(x, y)] + bottom[other])
    }

    /// A cell's values at the face on one of its sides (-1 or 1) along an axis.
    fn reconstructed(
        &self,
        bottom: &[f32],
        water: &[[f32; 3]],
        cell: [usize; 2],
        axis: usize,
        side: f32,
    ) -> [f32; 3] {
        let [before, own, after] = [-1, 0, 1].map(|by| {
            let [x, y] = self.moved(cell, axis, by);
            water[self.at(x, y)]
        });
        let mut slopes: [f32; 3] = std::array::from_fn(|k| {
            min_mod(
                1.3 * (own[k] - before[k]),
                0.5 * (after[k] - before[k]),
                1.3 * (after[k] - own[k]),
            )
        });
        let low = self.face(bottom, cell, axis);
        let high = self.face(bottom, self.moved(cell, axis, 1), axis);
        if own[0] + 0.5 * slopes[0] < high {
            slopes[0] = 2.0 * (high - own[0]);
        }
        if own[0] - 0.5 * slopes[0] < low {
            slopes[0] = 2.0 * (own[0] - low);
        }
        std::array::from_fn(|k| own[k] + 0.5 * side * slopes[k])
    }
}

/// Depth, speeds along and across.
#[device]
fn speeds([surface, along, across]: [f32; 3], bottom: f32) -> (f32, f32, f32) {
    let depth = (surface - bottom).max(0.0);
    let fourth = depth.powi(4);
    let scale = SQRT_2 * depth / (fourth + fourth.max(DRY.powi(4))).sqrt();
    (depth, scale * along, scale * across)
}

/// Fluxes through the lower faces of the cells, along x and along y.
#[kernel]
fn kurganov_fluxes(sea: Sea, bottom: &[f32], water: &[[f32; 3]], fluxes: &mut [[f32; 3]]) {
    let (x, y, axis) = (global_id_x(), global_id_y(), global_id_z());
    if x >= sea.width as usize || y >= sea.height as usize {
        return;
    }
    let cell = [x, y];
    let turned = |[surface, a, b]: [f32; 3]| {
        if axis == 0 {
            [surface, a, b]
        } else {
            [surface, b, a]
        }
    };
    let floor = sea.face(bottom, cell, axis);
    let left = turned(sea.reconstructed(bottom, water, sea.moved(cell, axis, -1), axis, 1.0));
    let right = turned(sea.reconstructed(bottom, water, cell, axis, -1.0));
    let (h0, u0, v0) = speeds(left, floor);
    let (h1, u1, v1) = speeds(right, floor);
    let (c0, c1) = ((GRAVITY * h0).sqrt(), (GRAVITY * h1).sqrt());
    let fast = (u0 + c0).max(u1 + c1).max(0.0);
    let slow = (u0 - c0).min(u1 - c1).min(0.0);
    let mut flux = [0.0; 3];
    if fast - slow > 1e-6 {
        let first = [h0 * u0, h0 * u0 * u0 + 0.5 * GRAVITY * h0 * h0, h0 * u0 * v0];
        let second = [h1 * u1, h1 * u1 * u1 + 0.5 * GRAVITY * h1 * h1, h1 * u1 * v1];
        let jump = [right[0] - left[0], h1 * u1 - h0 * u0, h1 * v1 - h0 * v0];
        for (k, f) in flux.iter_mut().enumerate() {
            *f = (fast * first[k] - slow * second[k] + fast * slow * jump[k]) / (fast - slow);
        }
    }
    let plane = (sea.width * sea.height) as usize;
    fluxes[axis * plane + sea.at(x, y)] = turned(flux);
}

#[kernel]
fn kurganov(sea: Sea, bottom: &[f32], fluxes: &[[f32; 3]], water: &mut [[f32; 3]]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= sea.width as usize || y >= sea.height as usize {
        return;
    }
    let cell = [x, y];
    let (along_x, along_y) = fluxes.split_at((sea.width * sea.height) as usize);
    let here = sea.at(x, y);
    let scale = sea.dt / sea.cell;
    let faces: [[f32; 2]; 2] = std::array::from_fn(|axis| {
        [
            sea.face(bottom, cell, axis),
            sea.face(bottom, sea.moved(cell, axis, 1), axis),
        ]
    });
    let depth = water[here][0] - 0.5 * (faces[0][0] + faces[0][1]);
    for k in 0..3 {
        let out_x = along_x[sea.at(x + 1, y)][k] - along_x[here][k];
        let out_y = along_y[sea.at(x, y + 1)][k] - along_y[here][k];
        water[here][k] -= scale * (out_x + out_y);
    }
    for (k, [low, high]) in faces.into_iter().enumerate() {
        water[here][k + 1] -= scale * GRAVITY * depth * (high - low);
    }
}

/// A flux between two states `[w, hu, hv]`, by the book's formulas.
fn central_upwind(l: [f64; 3], r: [f64; 3], floor: f64) -> [f64; 3] {
    let g = f64::from(GRAVITY);
    let state = |q: [f64; 3]| {
        let h = (q[0] - floor).max(0.0);
        let speed = |m: f64| 2f64.sqrt() * h * m / (h.powi(4) + h.max(f64::from(DRY)).powi(4)).sqrt();
        let (u, v) = (speed(q[1]), speed(q[2]));
        (
            [q[0], h * u, h * v],
            [h * u, h * u * u + g * h * h / 2.0, h * u * v],
            u - (g * h).sqrt(),
            u + (g * h).sqrt(),
        )
    };
    let ((ql, fl, al, bl), (qr, fr, ar, br)) = (state(l), state(r));
    let (a, b) = (al.min(ar).min(0.0), bl.max(br).max(0.0));
    if b - a <= 1e-6 {
        return [0.0; 3];
    }
    std::array::from_fn(|k| (b * fl[k] - a * fr[k]) / (b - a) + a * b / (b - a) * (qr[k] - ql[k]))
}

#[test]
fn kurganov_moves_water_over_a_bottom() {
    let mut random = Random(255);
    let (width, height) = (19usize, 13usize);
    let n = width * height;
    let bottom: Vec<f32> = (0..n).map(|_| random.within(0.0, 0.9)).collect();
    let water: Vec<f32> = (0..n)
        .flat_map(|_| {
            [
                random.within(1.0, 1.6),
                random.within(-0.4, 0.4),
                random.within(-0.4, 0.4),
            ]
        })
        .collect();
    let sea = Sea {
        width: width as u32,
        height: height as u32,
        cell: 1.0,
        dt: 0.05,
    };
    let steps = 2;

    let floor = |x: usize, y: usize| f64::from(bottom[y % height * width + x % width]);
    // Bottoms of the faces to the left of a cell and below it.
    let face = |x: usize, y: usize, axis: usize| (floor(x, y) + floor(x + axis, y + 1 - axis)) / 2.0;
    let mut q: Vec<[f64; 3]> = water
        .chunks(3)
        .map(|w| [w[0], w[1], w[2]].map(f64::from))
        .collect();
    for _ in 0..steps {
        let mut gain = vec![[0.0f64; 3]; n];
        for axis in 0..2 {
            let (dx, dy) = (1 - axis, axis);
            for y in 0..height {
                for x in 0..width {
                    let cell = |back: usize| {
                        (
                            (x + (width - back) * dx) % width,
                            (y + (height - back) * dy) % height,
                        )
                    };
                    // The value of the cell `back` steps behind at its face ahead (0.5) or behind (-0.5).
                    let value = |back: usize, side: f64| {
                        let (cx, cy) = cell(back);
                        let own = q[cy * width + cx];
                        let after = q[(cy + dy) % height * width + (cx + dx) % width];
                        let before =
                            q[(cy + (height - 1) * dy) % height * width + (cx + (width - 1) * dx) % width];
                        let (low, high) = (face(cx, cy, axis), face(cx + dx, cy + dy, axis));
                        let mut s: [f64; 3] = std::array::from_fn(|k| {
                            let d = [
                                1.3 * (own[k] - before[k]),
                                (after[k] - before[k]) / 2.0,
                                1.3 * (after[k] - own[k]),
                            ];
                            let least = d.iter().fold(f64::INFINITY, |m, v| m.min(v.abs()));
                            if d.iter().all(|v| *v > 0.0) {
                                least
                            } else if d.iter().all(|v| *v < 0.0) {
                                -least
                            } else {
                                0.0
                            }
                        });
                        s[0] = s[0].max(2.0 * (high - own[0]));
                        s[0] = s[0].min(2.0 * (own[0] - low));
                        let v: [f64; 3] = std::array::from_fn(|k| own[k] + side * s[k]);
                        [v[0], v[1 + axis], v[2 - axis]]
                    };
                    let f = central_upwind(value(1, 0.5), value(0, -0.5), face(x, y, axis));
                    let f = [f[0], f[1 + axis], f[2 - axis]];
                    let (here, there) = (y * width + x, cell(1));
                    for k in 0..3 {
                        gain[here][k] += f[k];
                        gain[there.1 * width + there.0][k] -= f[k];
                    }
                    let middle = (face(x, y, 0) + face(x + 1, y, 0)) / 2.0;
                    let slope = face(x + dx, y + dy, axis) - face(x, y, axis);
                    gain[here][1 + axis] -= f64::from(GRAVITY) * (q[here][0] - middle) * slope;
                }
            }
        }
        for (state, g) in q.iter_mut().zip(&gain) {
            for k in 0..3 {
                state[k] += f64::from(sea.dt) * g[k];
            }
        }
    }
    let expected = q.concat();
    everywhere(|run| {
        let (ground, out) = (run.upload(&bottom), run.upload(&water));
        let (states, fluxes) = (
            out.clone().cast::<[f32; 3]>().unwrap(),
            run.zeros::<[f32; 3]>(2 * n),
        );
        let size = (width as u32, height as u32);
        for _ in 0..steps {
            let config = LaunchConfig::volume((size.0, size.1, 2).into(), (16, 4, 1).into());
            run.launch(
                kurganov_fluxes::kernel(),
                config,
                args![sea, &ground, &states, &fluxes],
            );
            run.launch(
                kurganov::kernel(),
                LaunchConfig::tiled(size.0, size.1, (16, 4)),
                args![sea, &ground, &fluxes, &states],
            );
        }
        // Two steps of fluxes of some 10, off by 1e-6 of that; speeds divide by depths of 0.1.
        run.near(&out, &expected, 1e-4);
    });
}
