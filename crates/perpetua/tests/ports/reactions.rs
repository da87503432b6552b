//! Molecules: generalised Born radii, and Stillinger and Weber's forces.

use std::ops::{Add, Mul, Neg, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Place {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) z: f32,
}

#[device]
impl Add for Place {
    type Output = Place;

    fn add(self, other: Place) -> Place {
        Place {
            x: self.x + other.x,
            y: self.y + other.y,
            z: self.z + other.z,
        }
    }
}

#[device]
impl Sub for Place {
    type Output = Place;

    fn sub(self, other: Place) -> Place {
        Place {
            x: self.x - other.x,
            y: self.y - other.y,
            z: self.z - other.z,
        }
    }
}

#[device]
impl Neg for Place {
    type Output = Place;

    fn neg(self) -> Place {
        Place {
            x: -self.x,
            y: -self.y,
            z: -self.z,
        }
    }
}

#[device]
impl Mul<f32> for Place {
    type Output = Place;

    fn mul(self, by: f32) -> Place {
        Place {
            x: self.x * by,
            y: self.y * by,
            z: self.z * by,
        }
    }
}

#[device]
impl Place {
    pub(crate) fn dot(self, other: Place) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub(crate) fn length(self) -> f32 {
        self.dot(self).sqrt()
    }
}

pub(crate) fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt()
}

pub(crate) fn wide(place: &Place) -> [f64; 3] {
    [place.x, place.y, place.z].map(f64::from)
}

// 249: generalised Born radii and energies

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Sphere {
    place: Place,
    charge: f32,
    radius: f32,
    scale: f32,
}

const OFFSET: f32 = 0.09;

#[device]
impl Sphere {
    fn inner(&self) -> f32 {
        self.radius - OFFSET
    }

    /// How much of the solvent the other one keeps away.
    fn descreened(&self, other: &Sphere) -> f32 {
        let r = (self.place - other.place).length();
        let (own, reach) = (self.inner(), other.scale * other.inner());
        if own >= r + reach {
            return 0.0;
        }
        let lower = own.max((r - reach).abs()).recip();
        let upper = (r + reach).recip();
        let (lower2, upper2) = (lower * lower, upper * upper);
        let sum = lower - upper
            + 0.25 * (r - reach * reach / r) * (upper2 - lower2)
            + 0.5 * (upper / lower).ln() / r;
        if own < reach - r {
            sum + 2.0 * (own.recip() - lower)
        } else {
            sum
        }
    }

    fn born_radius(&self, sum: f32) -> f32 {
        let psi = 0.5 * sum * self.inner();
        let screened = (psi * (1.0 - psi * (0.8 - 4.85 * psi))).tanh();
        (self.inner().recip() - screened / self.radius).recip()
    }
}

#[kernel(block_size = 64)]
fn born_radii(atoms: &[Sphere], radii: &mut [f32]) {
    let tile = shared_array::<[Sphere; 64]>();
    let (i, lane) = (global_id_x(), local_id_x());
    let own = atoms.get(i).copied();
    let mut sum = 0.0;
    for first in (0..atoms.len()).step_by(64) {
        if let Some(atom) = atoms.get(first + lane) {
            tile[lane] = *atom;
        }
        sync_threads();
        if let Some(own) = own {
            for (k, other) in tile.iter().enumerate().take(atoms.len() - first) {
                if first + k != i {
                    sum += own.descreened(other);
                }
            }
        }
        sync_threads();
    }
    if let Some(own) = own {
        radii[i] = own.born_radius(sum);
    }
}

/// Each atom's part of the energy of charges in the solvent.
#[kernel]
fn born_energies(factor: f32, atoms: &[Sphere], radii: &[f32], energies: &mut [f32]) {
    let i = global_id_x();
    let (Some(own), Some(radius)) = (atoms.get(i), radii.get(i)) else {
        return;
    };
    let sum: f32 = atoms
        .iter()
        .zip(radii)
        .map(|(other, r)| {
            let d = own.place - other.place;
            let (square, product) = (d.dot(d), radius * r);
            other.charge * (square + product * (-0.25 * square / product).exp()).rsqrt()
        })
        .sum();
    energies[i] = -0.5 * factor * own.charge * sum;
}

#[test]
fn born_radii_and_energies() {
    let mut random = Random(249);
    let atoms: Vec<Sphere> = (0..203)
        .map(|_| {
            let [x, y, z] = std::array::from_fn(|_| random.within(0.0, 24.0));
            Sphere {
                place: Place { x, y, z },
                charge: random.within(-0.8, 0.8),
                radius: random.within(1.2, 1.8),
                scale: random.within(0.7, 0.85),
            }
        })
        .collect();
    let n = atoms.len();
    let places: Vec<[f64; 3]> = atoms.iter().map(|a| wide(&a.place)).collect();
    let offset = f64::from(OFFSET);
    let inner = |i: usize| f64::from(atoms[i].radius) - offset;
    let mut radii = vec![];
    for i in 0..n {
        let o = inner(i);
        let mut integral = 0.0;
        for j in (0..n).filter(|j| *j != i) {
            let (r, s) = (
                distance(&places[i], &places[j]),
                f64::from(atoms[j].scale) * inner(j),
            );
            if o < r + s {
                let (l, u) = (1.0 / o.max((r - s).abs()), 1.0 / (r + s));
                integral += l - u
                    + r / 4.0 * (u * u - l * l)
                    + (u / l).ln() / (2.0 * r)
                    + s * s / (4.0 * r) * (l * l - u * u);
                if o < s - r {
                    integral += 2.0 * (1.0 / o - l);
                }
            }
        }
        let psi = integral * o / 2.0;
        let tanh = (psi - 0.8 * psi * psi + 4.85 * psi * psi * psi).tanh();
        radii.push(1.0 / (1.0 / o - tanh / f64::from(atoms[i].radius)));
    }
    let energies: Vec<f64> = (0..n)
        .map(|i| {
            let pair = |j: usize| {
                let (r2, b) = (distance(&places[i], &places[j]).powi(2), radii[i] * radii[j]);
                f64::from(atoms[i].charge) * f64::from(atoms[j].charge)
                    / (r2 + b * (-r2 / (4.0 * b)).exp()).sqrt()
            };
            -82.0 * (0..n).map(pair).sum::<f64>()
        })
        .collect();
    everywhere(|run| {
        let (input, out, parts) = (run.upload(&atoms), run.zeros::<f32>(n), run.zeros::<f32>(n));
        run.launch(
            born_radii::kernel(),
            LaunchConfig::linear(n, 64),
            args![&input, &out],
        );
        // 202 terms of up to 1, each off by 1e-7 of it, then a difference that is a few times smaller.
        run.near(&out, &radii, 1e-4);
        run.launch(
            born_energies::kernel(),
            LaunchConfig::linear(n, 64),
            args![164.0f32, &input, &out, &parts],
        );
        // Sums of 203 terms of up to 20 that cancel.
        run.near(&parts, &energies, 2e-3);
    });
}

// 250: Stillinger and Weber's forces

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Silicon {
    epsilon: f32,
    sigma: f32,
    reach: f32,
    lambda: f32,
    gamma: f32,
    cosine: f32,
    big_a: f32,
    big_b: f32,
}

/// From an atom to one that is near enough.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Bond {
    unit: Place,
    length: f32,
    /// The distance to where forces end, negative.
    left: f32,
}

#[device]
impl Silicon {
    fn bond(&self, from: Place, to: Place) -> Option<Bond> {
        let d = to - from;
        let length = d.length();
        let left = length - self.reach * self.sigma;
        (left < 0.0).then(|| Bond {
            unit: d * length.recip(),
            length,
            left,
        })
    }

    /// A pair's energy, and how it grows with the distance.
    fn pair(&self, bond: &Bond) -> (f32, f32) {
        let fourth = self.big_b * (self.sigma / bond.length).powi(4);
        let scale = self.big_a * self.epsilon * (self.sigma / bond.left).exp();
        let slope = -4.0 * fourth / bond.length - (fourth - 1.0) * self.sigma / (bond.left * bond.left);
        (scale * (fourth - 1.0), scale * slope)
    }

    fn decay(&self, bond: &Bond) -> (f32, f32) {
        let width = self.gamma * self.sigma;
        let value = (width / bond.left).exp();
        (value, -width / (bond.left * bond.left) * value)
    }

    /// The energy of an angle, and the forces on both ends.
    fn angle(&self, a: &Bond, b: &Bond) -> (f32, [Place; 2]) {
        let ((decay_a, slope_a), (decay_b, slope_b)) = (self.decay(a), self.decay(b));
        let cosine = a.unit.dot(b.unit);
        let off = cosine - self.cosine;
        let strength = self.lambda * self.epsilon * off;
        let turn = 2.0 * strength * decay_a * decay_b;
        let on_a =
            a.unit * (strength * off * slope_a * decay_b) + (b.unit - a.unit * cosine) * (turn / a.length);
        let on_b =
            b.unit * (strength * off * decay_a * slope_b) + (a.unit - b.unit * cosine) * (turn / b.length);
        (strength * off * decay_a * decay_b, [-on_a, -on_b])
    }
}

#[device]
fn push(forces: &mut [Place], i: usize, force: Place) {
    atomic_add(&mut forces[i].x, force.x);
    atomic_add(&mut forces[i].y, force.y);
    atomic_add(&mut forces[i].z, force.z);
}

#[kernel]
fn three_body(
    model: Silicon,
    places: &[Place],
    starts: &[u32],
    list: &[u32],
    energies: &mut [f32],
    forces: &mut [Place],
) {
    let i = global_id_x();
    let Some(own) = places.get(i).copied() else {
        return;
    };
    let near = &list[starts[i] as usize..starts[i + 1] as usize];
    let mut energy = 0.0;
    for (at, j) in near.iter().enumerate() {
        let Some(first) = model.bond(own, places[*j as usize]) else {
            continue;
        };
        let (value, slope) = model.pair(&first);
        // Each of the two takes half of the energy and its own force.
        energy += 0.5 * value;
        push(forces, i, first.unit * slope);
        for k in &near[at + 1..] {
            if let Some(second) = model.bond(own, places[*k as usize]) {
                let (value, [on_j, on_k]) = model.angle(&first, &second);
                energy += value;
                push(forces, *j as usize, on_j);
                push(forces, *k as usize, on_k);
                push(forces, i, -(on_j + on_k));
            }
        }
    }
    energies[i] = energy;
}

/// All atoms' energies, by going over all pairs and triples.
fn silicon_energies(m: &Silicon, places: &[[f64; 3]]) -> Vec<f64> {
    let [e, s, a, l] = [m.epsilon, m.sigma, m.reach, m.lambda].map(f64::from);
    let [g, c0, big_a, big_b] = [m.gamma, m.cosine, m.big_a, m.big_b].map(f64::from);
    let n = places.len();
    (0..n)
        .map(|i| {
            let near: Vec<usize> = (0..n)
                .filter(|j| *j != i && distance(&places[i], &places[*j]) < a * s)
                .collect();
            let mut energy = 0.0;
            for (at, j) in near.iter().enumerate() {
                let r = distance(&places[i], &places[*j]);
                energy += 0.5 * big_a * e * (big_b * (s / r).powi(4) - 1.0) * (s / (r - a * s)).exp();
                for k in &near[..at] {
                    let q = distance(&places[i], &places[*k]);
                    let dot: f64 = (0..3)
                        .map(|x| (places[*j][x] - places[i][x]) * (places[*k][x] - places[i][x]))
                        .sum();
                    energy += l
                        * e
                        * (dot / (r * q) - c0).powi(2)
                        * (g * s / (r - a * s) + g * s / (q - a * s)).exp();
                }
            }
            energy
        })
        .collect()
}

#[test]
fn three_body_forces_are_slopes_of_the_energy() {
    let mut random = Random(250);
    let model = Silicon {
        epsilon: 2.1683,
        sigma: 2.0951,
        reach: 1.8,
        lambda: 21.0,
        gamma: 1.2,
        cosine: -1.0 / 3.0,
        big_a: 7.049_556,
        big_b: 0.602_224_56,
    };
    let places: Vec<Place> = (0..36)
        .map(|i| {
            let [x, y, z] = [i % 3, i / 3 % 3, i / 9].map(|k| 2.6 * k as f32 + random.within(-0.2, 0.2));
            Place { x, y, z }
        })
        .collect();
    let n = places.len();
    let mut exact: Vec<[f64; 3]> = places.iter().map(wide).collect();
    // Lists with a margin.
    let (mut starts, mut list) = (vec![0u32], vec![]);
    for i in 0..n {
        list.extend(
            (0..n)
                .filter(|j| *j != i && distance(&exact[i], &exact[*j]) < 4.2)
                .map(|j| j as u32),
        );
        starts.push(list.len() as u32);
    }
    let energies = silicon_energies(&model, &exact);
    let mut forces = vec![];
    for i in 0..n {
        for k in 0..3 {
            let middle = exact[i][k];
            let mut at = |x: f64| {
                exact[i][k] = x;
                silicon_energies(&model, &exact).iter().sum::<f64>()
            };
            forces.push((at(middle - 1e-5) - at(middle + 1e-5)) / 2e-5);
            exact[i][k] = middle;
        }
    }
    everywhere(|run| {
        let (input, first, near) = (run.upload(&places), run.upload(&starts), run.upload(&list));
        let (parts, out) = (run.zeros::<f32>(n), run.zeros::<f32>(3 * n));
        let as_places = out.clone().cast::<Place>().unwrap();
        let config = LaunchConfig::linear(n, 32);
        run.launch(
            three_body::kernel(),
            config,
            args![model, &input, &first, &near, &parts, &as_places],
        );
        // Some 150 terms of up to 10, each off by some 1e-6 of it.
        run.near(&parts, &energies, 2e-4);
        run.near(&out, &forces, 5e-4);
    });
}
