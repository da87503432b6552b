//! A growing crystal.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 260: a growing crystal

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Melt {
    dt: f32,
    tau: f32,
    width: f32,
    epsilon: f32,
    lambda: f32,
    diffusion: f32,
}

#[device]
impl Melt {
    /// How strong the surface is in this direction, and how that grows with the gradient, times the gradient's square.
    fn surface(&self, gradient: [f32; 3]) -> (f32, [f32; 3]) {
        let [squares, fourths] = gradient.iter().fold([0.0, 0.0], |[s, f], g| {
            let square = g * g;
            [s + square, f + square * square]
        });
        if squares <= 1e-12 {
            return (1.0, [0.0; 3]);
        }
        let ratio = fourths / (squares * squares);
        let strength = 1.0 + self.epsilon * (4.0 * ratio - 3.0);
        (
            strength,
            gradient.map(|g| 16.0 * self.epsilon * g * (g * g / squares - ratio)),
        )
    }
}

#[kernel(edge = clamp)]
fn dendrite_forces(
    at: volume::GridPos,
    melt: Melt,
    phase: &[f32],
    x: &mut [f32],
    y: &mut [f32],
    z: &mut [f32],
    strengths: &mut [f32],
) {
    let gradient = [
        0.5 * (at.east(phase) - at.west(phase)),
        0.5 * (at.south(phase) - at.north(phase)),
        0.5 * (at.at(phase, 0, 0, 1) - at.at(phase, 0, 0, -1)),
    ];
    let (strength, turn) = melt.surface(gradient);
    let square = melt.width * melt.width;
    let [fx, fy, fz]: [f32; 3] =
        std::array::from_fn(|k| square * strength * (strength * gradient[k] + turn[k]));
    let i = at.idx();
    x[i] = fx;
    y[i] = fy;
    z[i] = fz;
    strengths[i] = strength;
}

#[kernel(edge = clamp)]
fn dendrite(
    at: volume::GridPos,
    melt: Melt,
    x: &[f32],
    y: &[f32],
    z: &[f32],
    strengths: &[f32],
    phase: &[f32],
    heat: &[f32],
    next: &mut [f32],
) {
    let spread =
        0.5 * (at.east(x) - at.west(x) + at.south(y) - at.north(y) + at.at(z, 0, 0, 1) - at.at(z, 0, 0, -1));
    let (p, strength) = (at.center(phase), at.center(strengths));
    let rest = 1.0 - p * p;
    let driven = p * rest - melt.lambda * at.center(heat) * rest * rest;
    next[at.idx()] = p + melt.dt / (melt.tau * strength * strength) * (spread + driven);
}

/// Heat spreads, and what freezes gives off some.
#[kernel(edge = clamp)]
fn dendrite_heat(
    at: volume::GridPos,
    melt: Melt,
    before: &[f32],
    after: &[f32],
    heat: &[f32],
    next: &mut [f32],
) {
    let around =
        at.east(heat) + at.west(heat) + at.north(heat) + at.south(heat) + at.up(heat) + at.down(heat);
    let u = at.center(heat);
    let frozen = at.center(after) - at.center(before);
    next[at.idx()] = u + melt.dt * melt.diffusion * (around - 6.0 * u) + 0.5 * frozen;
}

#[test]
fn dendrite_grows() {
    let mut random = Random(260);
    let (w, h, d, steps) = (17usize, 12usize, 11usize, 2);
    let n = w * h * d;
    let melt = Melt {
        dt: 0.04,
        tau: 1.0,
        width: 1.1,
        epsilon: 0.06,
        lambda: 3.2,
        diffusion: 1.5,
    };
    let phase: Vec<f32> = (0..n)
        .map(|i| {
            let [x, y, z] = [i % w, i / w % h, i / w / h].map(|c| c as f32);
            let r = ((x - 7.3).powi(2) + (y - 5.1).powi(2) + (z - 4.8).powi(2)).sqrt();
            ((3.5 - r) / 1.5).tanh() * random.within(0.9, 1.0)
        })
        .collect();
    let heat: Vec<f32> = (0..n).map(|_| random.within(-0.6, -0.3)).collect();

    let [dt, tau, width] = [melt.dt, melt.tau, melt.width].map(f64::from);
    let [eps, lambda, diffusion] = [melt.epsilon, melt.lambda, melt.diffusion].map(f64::from);
    // The cell so far away along an axis, or the last one before the edge.
    let beside = |i: usize, axis: usize, by: isize| {
        let mut place = [i % w, i / w % h, i / w / h];
        place[axis] = place[axis].saturating_add_signed(by).min([w, h, d][axis] - 1);
        (place[2] * h + place[1]) * w + place[0]
    };
    let mut p: Vec<f64> = phase.iter().map(|v| f64::from(*v)).collect();
    let mut u: Vec<f64> = heat.iter().map(|v| f64::from(*v)).collect();
    for _ in 0..steps {
        let mut forces = vec![[0.0f64; 3]; n];
        let mut times = vec![0.0; n];
        for i in 0..n {
            let g: [f64; 3] = std::array::from_fn(|k| (p[beside(i, k, 1)] - p[beside(i, k, -1)]) / 2.0);
            let s2: f64 = g.iter().map(|x| x.powi(2)).sum();
            let s4: f64 = g.iter().map(|x| x.powi(4)).sum();
            let some = s2 > 1e-12;
            let a = if some {
                1.0 - 3.0 * eps + 4.0 * eps * s4 / (s2 * s2)
            } else {
                1.0
            };
            for k in 0..3 {
                // The slope of the width by this part of the gradient.
                let slope = if some {
                    16.0 * width * eps * (g[k].powi(3) / s2.powi(2) - g[k] * s4 / s2.powi(3))
                } else {
                    0.0
                };
                forces[i][k] = (width * a).powi(2) * g[k] + s2 * width * a * slope;
            }
            times[i] = tau * a * a;
        }
        let (old_p, old_u) = (p.clone(), u.clone());
        for i in 0..n {
            let mut spread = 0.0;
            let mut flow = 0.0;
            for k in 0..3 {
                let (ahead, behind) = (beside(i, k, 1), beside(i, k, -1));
                spread += (forces[ahead][k] - forces[behind][k]) / 2.0;
                flow += old_u[ahead] + old_u[behind] - 2.0 * old_u[i];
            }
            let v = old_p[i];
            let change =
                dt / times[i] * (spread + v * (1.0 - v * v) - lambda * old_u[i] * (1.0 - v * v).powi(2));
            p[i] = v + change;
            u[i] = old_u[i] + dt * diffusion * flow + change / 2.0;
        }
    }
    everywhere(|run| {
        let (mut now, mut warm) = (run.upload(&phase), run.upload(&heat));
        let [x, y, z, strengths] = std::array::from_fn(|_| run.zeros::<f32>(n));
        let (width, height, depth) = (w as u32, h as u32, d as u32);
        let config = || LaunchConfig::volume((width, height, depth).into(), (8, 4, 2).into());
        for _ in 0..steps {
            let (next, warmer) = (run.zeros::<f32>(n), run.zeros::<f32>(n));
            run.launch(
                dendrite_forces::kernel(),
                config(),
                args![melt, &now, &x, &y, &z, &strengths, width, height, depth],
            );
            run.launch(
                dendrite::kernel(),
                config(),
                args![
                    melt, &x, &y, &z, &strengths, &now, &warm, &next, width, height, depth
                ],
            );
            run.launch(
                dendrite_heat::kernel(),
                config(),
                args![melt, &now, &next, &warm, &warmer, width, height, depth],
            );
            (now, warm) = (next, warmer);
        }
        // Numbers of about one; a slope is off by 1e-7, and its direction by that through its length.
        run.near(&now, &p, 5e-5);
        run.near(&warm, &u, 5e-5);
    });
}
