//! Fluids in cells: remapped along an axis, and through the faces of elements.

use std::ops::{Add, AddAssign, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, wide};

// 95: CloverLeaf's advection of cells

/// Cells on all sides of the inner ones.
const HALO: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Axis {
    X,
    Y,
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Sweep {
    width: u32,
    height: u32,
    axis: Axis,
}

#[device]
impl Sweep {
    fn pitch(&self) -> usize {
        self.width as usize + 2 * HALO
    }

    fn stride(&self) -> usize {
        match self.axis {
            Axis::X => 1,
            Axis::Y => self.pitch(),
        }
    }

    /// The lane's cell, and whether it is an inner one or one of `more` behind them along the axis.
    fn cell(&self, more: usize) -> Option<usize> {
        let (column, row) = (global_id_x() + HALO, global_id_y() + HALO);
        let (right, top) = match self.axis {
            Axis::X => (more, 0),
            Axis::Y => (0, more),
        };
        let inside = column < self.width as usize + HALO + right && row < self.height as usize + HALO + top;
        inside.then(|| row * self.pitch() + column)
    }
}

/// The cells that a flux through a face comes from and goes to.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Donors {
    upwind: u32,
    donor: u32,
    downwind: u32,
}

/// The limiter of van Leer, to third order.
#[device]
fn limited(field: &[f64], at: Donors, sigma: f64, stretch: f64) -> f64 {
    let donor = field[at.donor as usize];
    let before = donor - field[at.upwind as usize];
    let behind = field[at.downwind as usize] - donor;
    if before * behind <= 0.0 {
        return 0.0;
    }
    let mean = (stretch * before.abs() + (2.0 - sigma) * behind.abs()) / 6.0;
    (1.0 - sigma) * behind.signum() * before.abs().min(behind.abs()).min(mean)
}

#[kernel]
fn fluxes(
    sweep: Sweep,
    widths: &[f64],
    volume_flux: &[f64],
    volume: &[f64],
    density: &[f64],
    energy: &[f64],
    mass_flux: &mut [f64],
    energy_flux: &mut [f64],
) {
    let Some(cell) = sweep.cell(2) else { return };
    let (stride, flux) = (sweep.stride(), volume_flux[cell]);
    let place = match sweep.axis {
        Axis::X => global_id_x() + HALO,
        Axis::Y => global_id_y() + HALO,
    };
    let last = match sweep.axis {
        Axis::X => sweep.width as usize,
        Axis::Y => sweep.height as usize,
    } + HALO
        + 1;
    let (upwind, donor, downwind, other) = if flux > 0.0 {
        (cell - 2 * stride, cell - stride, cell, place - 1)
    } else if place == last {
        (cell, cell, cell - stride, place)
    } else {
        (cell + stride, cell, cell - stride, place + 1)
    };
    let donors = Donors {
        upwind: upwind as u32,
        donor: donor as u32,
        downwind: downwind as u32,
    };
    let sigma = flux.abs() / volume[donor];
    let stretch = (1.0 + sigma) * widths[place] / widths[other];
    let mass = flux * (density[donor] + limited(density, donors, sigma, stretch));
    let share = mass.abs() / (density[donor] * volume[donor]);
    let carried = energy[donor] + limited(energy, donors, share, stretch);
    mass_flux[cell] = mass;
    energy_flux[cell] = mass * carried;
}

#[kernel]
fn remap(
    sweep: Sweep,
    volume_flux: &[f64],
    volume: &[f64],
    mass_flux: &[f64],
    energy_flux: &[f64],
    density: &mut [f64],
    energy: &mut [f64],
) {
    if let Some(cell) = sweep.cell(0) {
        let gain = |flux: &[f64]| flux[cell] - flux[cell + sweep.stride()];
        let before = density[cell] * volume[cell];
        let mass = before + gain(mass_flux);
        energy[cell] = (energy[cell] * before + gain(energy_flux)) / mass;
        density[cell] = mass / (volume[cell] + gain(volume_flux));
    }
}

#[test]
fn advection_moves_mass_and_energy_along_both_axes() {
    let (width, height) = (37usize, 21usize);
    let pitch = width + 2 * HALO;
    let size = pitch * (height + 2 * HALO);
    let mut random = Random(95);
    let mut field = |low, high| (0..size).map(|_| random.between(low, high)).collect::<Vec<f64>>();
    let (volume, flux) = (field(0.9, 1.1), field(-0.2, 0.2));
    let (density, energy) = (field(1.0, 2.0), field(0.5, 3.0));
    let widths = field(0.8, 1.2);
    for axis in [Axis::X, Axis::Y] {
        let (step, end, length) = if axis == Axis::X {
            (1, width + HALO + 2, width)
        } else {
            (pitch, height + HALO + 2, height)
        };
        let face = |c: usize, k: usize| -> (f64, f64) {
            let f = flux[c];
            let (u, d, w, o) = match (f > 0.0, k + 1 == end) {
                (true, _) => (c - 2 * step, c - step, c, k - 1),
                (false, true) => (c, c, c - step, k),
                (false, false) => (c + step, c, c - step, k + 1),
            };
            let limiter = |q: &[f64], s: f64, s3: f64| {
                let (a, b) = (q[d] - q[u], q[w] - q[d]);
                let sign = if b > 0.0 { 1.0 } else { -1.0 };
                let sixth = (s3 * a.abs() + (2.0 - s) * b.abs()) / 6.0;
                if a * b > 0.0 {
                    (1.0 - s) * sign * a.abs().min(b.abs().min(sixth))
                } else {
                    0.0
                }
            };
            let s = f.abs() / volume[d];
            let s3 = (1.0 + s) * widths[k] / widths[o];
            let mass = f * (density[d] + limiter(&density, s, s3));
            let s = mass.abs() / (density[d] * volume[d]);
            (mass, mass * (energy[d] + limiter(&energy, s, s3)))
        };
        let (mut densities, mut energies) = (density.clone(), energy.clone());
        for y in HALO..height + HALO {
            for x in HALO..width + HALO {
                let (c, k) = (y * pitch + x, if axis == Axis::X { x } else { y });
                let ((m0, e0), (m1, e1)) = (face(c, k), face(c + step, k + 1));
                let old = density[c] * volume[c];
                energies[c] = (energy[c] * old + e0 - e1) / (old + m0 - m1);
                densities[c] = (old + m0 - m1) / (volume[c] + flux[c] - flux[c + step]);
            }
        }
        assert!(length < end);
        let sweep = Sweep {
            width: width as u32,
            height: height as u32,
            axis,
        };
        everywhere(|run| {
            let (widths, flux, volume) = (run.upload(&widths), run.upload(&flux), run.upload(&volume));
            let (density, energy) = (run.upload(&density), run.upload(&energy));
            let (mass, heat) = (run.zeros::<f64>(size), run.zeros::<f64>(size));
            let config = LaunchConfig::tiled(width as u32 + 2, height as u32 + 2, (16, 8));
            let inputs = args![sweep, &widths, &flux, &volume, &density, &energy, &mass, &heat];
            run.launch(fluxes::kernel(), config, inputs);
            let config = LaunchConfig::tiled(width as u32, height as u32, (16, 8));
            let outputs = args![sweep, &flux, &volume, &mass, &heat, &density, &energy];
            run.launch(remap::kernel(), config, outputs);
            run.near(&density, &densities, 1e-12);
            run.near(&energy, &energies, 1e-12);
        });
    }
}

// 102: Euler's equations on elements

const GAMMA: f32 = 1.4;
const SMOOTHING: f32 = 0.2;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct State {
    density: f32,
    momentum: Vec3,
    energy: f32,
}

#[device]
impl Add for State {
    type Output = State;

    fn add(self, other: State) -> State {
        State {
            density: self.density + other.density,
            momentum: self.momentum + other.momentum,
            energy: self.energy + other.energy,
        }
    }
}

#[device]
impl Mul<f32> for State {
    type Output = State;

    fn mul(self, by: f32) -> State {
        State {
            density: self.density * by,
            momentum: self.momentum * by,
            energy: self.energy * by,
        }
    }
}

#[device]
impl Sub for State {
    type Output = State;

    fn sub(self, other: State) -> State {
        self + other * -1.0
    }
}

#[device]
impl AddAssign for State {
    fn add_assign(&mut self, other: State) {
        *self = *self + other;
    }
}

#[device]
impl State {
    fn velocity(&self) -> Vec3 {
        self.momentum * self.density.recip()
    }

    fn pressure(&self) -> f32 {
        (GAMMA - 1.0) * (self.energy - 0.5 * self.density * self.velocity().length_squared())
    }

    /// Speed of the flow and of sound.
    fn fastest(&self) -> f32 {
        self.velocity().length() + (GAMMA * self.pressure() / self.density).sqrt()
    }

    fn through(&self, normal: Vec3) -> State {
        let (velocity, pressure) = (self.velocity(), self.pressure());
        let rate = velocity.dot(normal);
        State {
            density: self.density * rate,
            momentum: self.momentum * rate + normal * pressure,
            energy: (self.energy + pressure) * rate,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Beyond {
    Cell(usize),
    Wall,
    FarField,
}

#[device]
impl From<i32> for Beyond {
    fn from(code: i32) -> Self {
        match code {
            -1 => Self::Wall,
            -2 => Self::FarField,
            cell => Self::Cell(cell as usize),
        }
    }
}

#[kernel]
fn euler(far: State, neighbours: &[[i32; 4]], normals: &[[Vec3; 4]], cells: &[State], out: &mut [State]) {
    let i = global_id_x();
    if i >= out.len() {
        return;
    }
    let own = cells[i];
    let mut flux = State::default();
    for (code, normal) in neighbours[i].into_iter().zip(normals[i]) {
        match code.into() {
            Beyond::Cell(k) => {
                let other = cells[k];
                let viscous = -0.5 * SMOOTHING * normal.length() * (own.fastest() + other.fastest());
                flux += (own - other) * viscous;
                flux += (own.through(normal) + other.through(normal)) * 0.5;
            }
            Beyond::Wall => flux.momentum += normal * own.pressure(),
            Beyond::FarField => flux += (own.through(normal) + far.through(normal)) * 0.5,
        }
    }
    out[i] = flux;
}

#[test]
fn euler_fluxes_are_those_of_plain_formulas() {
    let mut random = Random(102);
    let count = 500usize;
    let state = |random: &mut Random| State {
        density: random.between(0.5, 2.0) as f32,
        momentum: random.place(1.0),
        energy: random.between(5.0, 9.0) as f32,
    };
    let far = state(&mut random);
    let cells: Vec<State> = (0..count).map(|_| state(&mut random)).collect();
    let neighbours: Vec<[i32; 4]> = (0..count)
        .map(|_| std::array::from_fn(|_| random.below(count + 60) as i32))
        .collect();
    let neighbours: Vec<[i32; 4]> = neighbours
        .iter()
        .map(|n| n.map(|k| if k < count as i32 { k } else { -1 - k % 2 }))
        .collect();
    let normals: Vec<[Vec3; 4]> = (0..count)
        .map(|_| std::array::from_fn(|_| random.place(1.0)))
        .collect();
    // Density, momentum, energy.
    let numbers = |s: &State| -> [f64; 5] {
        let [x, y, z] = wide(s.momentum);
        [f64::from(s.density), x, y, z, f64::from(s.energy)]
    };
    let pressure = |u: &[f64; 5]| 0.4 * (u[4] - 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0]);
    let flux = |u: &[f64; 5], n: Wide| {
        let p = pressure(u);
        let mut sum = [0.0; 5];
        for k in 0..3 {
            let v = u[1 + k] / u[0];
            for (m, sum) in sum.iter_mut().enumerate() {
                let extra = if m == 4 {
                    p * v
                } else if m == 1 + k {
                    p
                } else {
                    0.0
                };
                *sum += n[k] * (u[m] * v + extra);
            }
        }
        sum
    };
    let speed = |u: &[f64; 5]| {
        inner([u[1], u[2], u[3]], [u[1], u[2], u[3]]).sqrt() / u[0] + (1.4 * pressure(u) / u[0]).sqrt()
    };
    let mut expected = Vec::new();
    for i in 0..count {
        let (u, mut total) = (numbers(&cells[i]), [0.0; 5]);
        for k in 0..4 {
            let n = wide(normals[i][k]);
            let neighbour = neighbours[i][k];
            if neighbour == -1 {
                (0..3).for_each(|m| total[1 + m] += n[m] * pressure(&u));
                continue;
            }
            let v = if neighbour == -2 {
                numbers(&far)
            } else {
                numbers(&cells[neighbour as usize])
            };
            let (a, b) = (flux(&u, n), flux(&v, n));
            let viscous = if neighbour == -2 {
                0.0
            } else {
                inner(n, n).sqrt() * 0.1 * (speed(&u) + speed(&v))
            };
            (0..5).for_each(|m| total[m] += 0.5 * (a[m] + b[m]) - viscous * (u[m] - v[m]));
        }
        expected.extend(total);
    }
    everywhere(|run| {
        let (neighbours, normals) = (run.upload(&neighbours), run.upload(&normals));
        let (cells, out) = (run.upload(&cells), run.zeros::<State>(count));
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            euler::kernel(),
            config,
            args![far, &neighbours, &normals, &cells, &out],
        );
        run.near(&out.cast::<f32>().unwrap(), &expected, 1e-4);
    });
}
