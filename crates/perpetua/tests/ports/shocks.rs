//! Shocks of gas.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 126: Cholla's HLLC

const GAMMA: f64 = 1.4;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Axis {
    X,
    Y,
    Z,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Gas {
    density: f64,
    momentum: [f64; 3],
    energy: f64,
}

#[device]
impl Gas {
    fn velocity(&self) -> f64 {
        self.momentum[0] / self.density
    }

    fn pressure(&self) -> f64 {
        let kinetic = self.momentum.iter().map(|m| m * m).sum::<f64>() / (2.0 * self.density);
        (GAMMA - 1.0) * (self.energy - kinetic)
    }

    fn sound(&self) -> f64 {
        (GAMMA * self.pressure() / self.density).sqrt()
    }

    fn flux(&self) -> Self {
        let (u, p) = (self.velocity(), self.pressure());
        let mut momentum = self.momentum.map(|m| m * u);
        momentum[0] += p;
        Self {
            density: self.momentum[0],
            momentum,
            energy: u * (self.energy + p),
        }
    }

    /// Between the outer wave of this speed and the contact.
    fn star(&self, wave: f64, contact: f64) -> Self {
        let (u, p) = (self.velocity(), self.pressure());
        let factor = self.density * (wave - u) / (wave - contact);
        let [_, second, third] = self.momentum.map(|m| factor * m / self.density);
        let specific =
            self.energy / self.density + (contact - u) * (contact + p / (self.density * (wave - u)));
        Self {
            density: factor,
            momentum: [factor * contact, second, third],
            energy: factor * specific,
        }
    }

    fn zip(self, other: Self, each: impl Fn(f64, f64) -> f64) -> Self {
        let mut momentum = self.momentum;
        for (m, o) in momentum.iter_mut().zip(other.momentum) {
            *m = each(*m, o);
        }
        Self {
            density: each(self.density, other.density),
            momentum,
            energy: each(self.energy, other.energy),
        }
    }

    fn turned_left(mut self, by: usize) -> Self {
        self.momentum.rotate_left(by);
        self
    }

    fn turned_right(mut self, by: usize) -> Self {
        self.momentum.rotate_right(by);
        self
    }
}

#[device]
fn riemann(left: Gas, right: Gas) -> Gas {
    let (ul, ur) = (left.velocity(), right.velocity());
    let slowest = (ul - left.sound()).min(ur - right.sound());
    let fastest = (ul + left.sound()).max(ur + right.sound());
    let (ml, mr) = (left.density * (slowest - ul), right.density * (fastest - ur));
    let contact = (right.pressure() - left.pressure() + ml * ul - mr * ur) / (ml - mr);
    let across = |gas: &Gas, wave: f64| {
        let jump = gas.star(wave, contact).zip(*gas, |star, own| wave * (star - own));
        gas.flux().zip(jump, |f, j| f + j)
    };
    match () {
        _ if slowest >= 0.0 => left.flux(),
        _ if fastest <= 0.0 => right.flux(),
        _ if contact >= 0.0 => across(&left, slowest),
        _ => across(&right, fastest),
    }
}

#[kernel]
fn hllc(axis: Axis, size: [u32; 3], cells: &[Gas], fluxes: &mut [Gas]) {
    let place = [global_id_x(), global_id_y(), global_id_z()];
    let size = size.map(|n| n as usize);
    if place.iter().zip(size).any(|(p, n)| *p >= n) {
        return;
    }
    let index = |[x, y, z]: [usize; 3]| (z * size[1] + y) * size[0] + x;
    let along = axis as usize;
    let mut next = place;
    next[along] += 1;
    if next[along] == size[along] {
        return;
    }
    let [left, right] = [place, next].map(|p| cells[index(p)].turned_left(along));
    fluxes[index(place)] = riemann(left, right).turned_right(along);
}

#[test]
fn hllc_is_toros() {
    let mut random = Random(126);
    let size = [7u32, 5, 3];
    let count = 105;
    let cells: Vec<Gas> = (0..count)
        .map(|_| {
            let density = random.between(0.2, 2.0);
            let v: [f64; 3] = std::array::from_fn(|_| random.between(-2.5, 2.5));
            let p = random.between(0.1, 2.0);
            Gas {
                density,
                momentum: v.map(|v| v * density),
                energy: p / 0.4 + density / 2.0 * v.iter().map(|v| v * v).sum::<f64>(),
            }
        })
        .collect();
    for (axis, along, stride) in [(Axis::X, 0, 1), (Axis::Y, 1, 7), (Axis::Z, 2, 35)] {
        let mut expected = vec![0.0; count * 5];
        for i in 0..count {
            if [i % 7, i / 7 % 5, i / 35][along] + 1 == size[along] as usize {
                continue;
            }
            // Density, velocities, pressure and energy; the waves; then the average over the fan.
            let state = |g: &Gas| {
                let v = g.momentum.map(|m| m / g.density);
                let p = 0.4 * (g.energy - g.density * v.iter().map(|v| v * v).sum::<f64>() / 2.0);
                (
                    [g.density, g.momentum[0], g.momentum[1], g.momentum[2], g.energy],
                    v,
                    p,
                )
            };
            let flux = |(u, v, p): &([f64; 5], [f64; 3], f64)| -> [f64; 5] {
                std::array::from_fn(|k| {
                    u[k] * v[along]
                        + if k == along + 1 {
                            *p
                        } else if k == 4 {
                            p * v[along]
                        } else {
                            0.0
                        }
                })
            };
            let sides = [state(&cells[i]), state(&cells[i + stride])];
            let sounds = [0, 1].map(|s| (1.4 * sides[s].2 / sides[s].0[0]).sqrt());
            let sl = (sides[0].1[along] - sounds[0]).min(sides[1].1[along] - sounds[1]);
            let sr = (sides[0].1[along] + sounds[0]).max(sides[1].1[along] + sounds[1]);
            let mass = [
                sides[0].0[0] * (sl - sides[0].1[along]),
                sides[1].0[0] * (sr - sides[1].1[along]),
            ];
            let sm = (sides[1].2 - sides[0].2 + mass[0] * sides[0].1[along] - mass[1] * sides[1].1[along])
                / (mass[0] - mass[1]);
            let (side, wave) = if sm >= 0.0 { (0, sl) } else { (1, sr) };
            let (u, v, p) = &sides[side];
            let f = flux(&sides[side]);
            // Toro's (10.41): the star's flux without the star's state.
            let star = p + u[0] * (wave - v[along]) * (sm - v[along]);
            for k in 0..5 {
                let d = if k == along + 1 {
                    1.0
                } else if k == 4 {
                    sm
                } else {
                    0.0
                };
                let inside = (sm * (wave * u[k] - f[k]) + wave * star * d) / (wave - sm);
                let outside = (side == 0 && wave >= 0.0) || (side == 1 && wave <= 0.0);
                expected[5 * i + k] = if outside { f[k] } else { inside };
            }
        }
        everywhere(|run| {
            let fluxes = run.zeros::<Gas>(count);
            run.launch(
                hllc::kernel(),
                LaunchConfig::new((2, 2, 2), (4, 4, 2)),
                args![axis, size, &run.upload(&cells), &fluxes],
            );
            run.near(&fluxes.cast::<f64>().unwrap(), &expected, 1e-11);
        });
    }
}
