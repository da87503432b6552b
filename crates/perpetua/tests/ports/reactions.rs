//! Molecules: generalised Born radii, Stillinger and Weber's forces, symmetry functions of an atom's surroundings, reaction rates.

use std::ops::{Add, Mul, Neg, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Place {
    x: f32,
    y: f32,
    z: f32,
}

#[device]
impl Add for Place {
    type Output = Place;

    fn add(self, other: Place) -> Place {
        Place { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

#[device]
impl Sub for Place {
    type Output = Place;

    fn sub(self, other: Place) -> Place {
        Place { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}

#[device]
impl Neg for Place {
    type Output = Place;

    fn neg(self) -> Place {
        Place { x: -self.x, y: -self.y, z: -self.z }
    }
}

#[device]
impl Mul<f32> for Place {
    type Output = Place;

    fn mul(self, by: f32) -> Place {
        Place { x: self.x * by, y: self.y * by, z: self.z * by }
    }
}

#[device]
impl Place {
    fn dot(self, other: Place) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    fn length(self) -> f32 {
        self.dot(self).sqrt()
    }
}

/// From `low` to `high`.
fn between(random: &mut Random, low: f32, high: f32) -> f32 {
    low + (high - low) * ((random.bits() >> 40) as f32 / 16_777_216.0)
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt()
}

fn wide(place: &Place) -> [f64; 3] {
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
        if own < reach - r { sum + 2.0 * (own.recip() - lower) } else { sum }
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
            let [x, y, z] = std::array::from_fn(|_| between(&mut random, 0.0, 24.0));
            Sphere {
                place: Place { x, y, z },
                charge: between(&mut random, -0.8, 0.8),
                radius: between(&mut random, 1.2, 1.8),
                scale: between(&mut random, 0.7, 0.85),
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
            let (r, s) = (distance(&places[i], &places[j]), f64::from(atoms[j].scale) * inner(j));
            if o < r + s {
                let (l, u) = (1.0 / o.max((r - s).abs()), 1.0 / (r + s));
                integral += l - u + r / 4.0 * (u * u - l * l) + (u / l).ln() / (2.0 * r) + s * s / (4.0 * r) * (l * l - u * u);
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
                f64::from(atoms[i].charge) * f64::from(atoms[j].charge) / (r2 + b * (-r2 / (4.0 * b)).exp()).sqrt()
            };
            -82.0 * (0..n).map(pair).sum::<f64>()
        })
        .collect();
    everywhere(|run| {
        let (input, out, parts) = (run.upload(&atoms), run.zeros::<f32>(n), run.zeros::<f32>(n));
        run.launch(born_radii::kernel(), LaunchConfig::linear(n, 64), args![&input, &out]);
        // 202 terms of up to 1, each off by 1e-7 of it, then a difference that is a few times smaller.
        run.near(&out, &radii, 1e-4);
        run.launch(born_energies::kernel(), LaunchConfig::linear(n, 64), args![164.0f32, &input, &out, &parts]);
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
        (left < 0.0).then(|| Bond { unit: d * length.recip(), length, left })
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
        let on_a = a.unit * (strength * off * slope_a * decay_b) + (b.unit - a.unit * cosine) * (turn / a.length);
        let on_b = b.unit * (strength * off * decay_a * slope_b) + (a.unit - b.unit * cosine) * (turn / b.length);
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
fn three_body(model: Silicon, places: &[Place], starts: &[u32], list: &[u32], energies: &mut [f32], forces: &mut [Place]) {
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
            let near: Vec<usize> = (0..n).filter(|j| *j != i && distance(&places[i], &places[*j]) < a * s).collect();
            let mut energy = 0.0;
            for (at, j) in near.iter().enumerate() {
                let r = distance(&places[i], &places[*j]);
                energy += 0.5 * big_a * e * (big_b * (s / r).powi(4) - 1.0) * (s / (r - a * s)).exp();
                for k in &near[..at] {
                    let q = distance(&places[i], &places[*k]);
                    let dot: f64 = (0..3).map(|x| (places[*j][x] - places[i][x]) * (places[*k][x] - places[i][x])).sum();
                    energy += l * e * (dot / (r * q) - c0).powi(2) * (g * s / (r - a * s) + g * s / (q - a * s)).exp();
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
            let [x, y, z] = [i % 3, i / 3 % 3, i / 9].map(|k| 2.6 * k as f32 + between(&mut random, -0.2, 0.2));
            Place { x, y, z }
        })
        .collect();
    let n = places.len();
    let mut exact: Vec<[f64; 3]> = places.iter().map(wide).collect();
    // Lists with a margin.
    let (mut starts, mut list) = (vec![0u32], vec![]);
    for i in 0..n {
        list.extend((0..n).filter(|j| *j != i && distance(&exact[i], &exact[*j]) < 4.2).map(|j| j as u32));
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
        run.launch(three_body::kernel(), config, args![model, &input, &first, &near, &parts, &as_places]);
        // Some 150 terms of up to 10, each off by some 1e-6 of it.
        run.near(&parts, &energies, 2e-4);
        run.near(&out, &forces, 5e-4);
    });
}

// 251: symmetry functions of an atom's surroundings

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Atom {
    place: Place,
    species: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Neighbour {
    unit: Place,
    distance: f32,
    cutoff: f32,
    species: u32,
}

const PI: f32 = std::f32::consts::PI;
const SPECIES: usize = 3;
const RADIAL_CUT: f32 = 5.2;
const ANGULAR_CUT: f32 = 3.5;
const SHIFTS: [f32; 4] = [0.9, 1.9, 2.9, 3.9];
const ANGULAR_SHIFTS: [f32; 2] = [1.2, 2.3];
const ANGLES: [f32; 3] = [0.4, 1.5, 2.7];
const RADIAL: usize = SPECIES * SHIFTS.len();
const PER_PAIR: usize = ANGLES.len() * ANGULAR_SHIFTS.len();
const FEATURES: usize = RADIAL + SPECIES * (SPECIES + 1) / 2 * PER_PAIR;
const MOST: usize = 48;

#[device]
fn faded(distance: f32, cut: f32) -> f32 {
    0.5 + 0.5 * (PI * distance / cut).cos()
}

#[device]
fn pair_of(a: u32, b: u32) -> usize {
    let (low, high) = (a.min(b) as usize, a.max(b) as usize);
    low * (2 * SPECIES - low + 1) / 2 + high - low
}

#[kernel(block_size = 32)]
fn symmetry(atoms: &[Atom], out: &mut [f32]) {
    let near = shared_array::<[Neighbour; MOST]>();
    let count = shared_array::<[u32; 1]>();
    let sums = shared_array::<[f32; FEATURES]>();
    let (lane, own) = (local_id_x(), group_id_x());
    for k in (lane..FEATURES).step_by(32) {
        sums[k] = 0.0;
    }
    if lane == 0 {
        count[0] = 0;
    }
    sync_threads();

    let center = atoms[own].place;
    for (j, atom) in atoms.iter().enumerate().skip(lane).step_by(32) {
        let d = atom.place - center;
        let distance = d.length();
        if j == own || distance >= RADIAL_CUT {
            continue;
        }
        for (k, shift) in SHIFTS.iter().enumerate() {
            let value = 0.25 * (-16.0 * (distance - shift).powi(2)).exp() * faded(distance, RADIAL_CUT);
            atomic_add(&mut sums[atom.species as usize * SHIFTS.len() + k], value);
        }
        if distance < ANGULAR_CUT {
            let slot = atomic_add(&mut count[0], 1) as usize;
            near[slot] = Neighbour {
                unit: d * distance.recip(),
                distance,
                cutoff: faded(distance, ANGULAR_CUT),
                species: atom.species,
            };
        }
    }
    sync_threads();

    let found = count[0] as usize;
    for pair in (lane..found * found).step_by(32) {
        let (a, b) = (near[pair / found], near[pair % found]);
        if pair / found >= pair % found {
            continue;
        }
        let angle = (0.95 * a.unit.dot(b.unit)).acos();
        let middle = 0.5 * (a.distance + b.distance);
        let first = RADIAL + pair_of(a.species, b.species) * PER_PAIR;
        for (k, direction) in ANGLES.iter().enumerate() {
            let along = 2.0 * (0.5 + 0.5 * (angle - direction).cos()).powi(8);
            for (m, shift) in ANGULAR_SHIFTS.iter().enumerate() {
                let value = along * (-8.0 * (middle - shift).powi(2)).exp() * a.cutoff * b.cutoff;
                atomic_add(&mut sums[first + k * ANGULAR_SHIFTS.len() + m], value);
            }
        }
    }
    sync_threads();

    let row = &mut out[own * FEATURES..][..FEATURES];
    for (k, sum) in sums.iter().enumerate().skip(lane).step_by(32) {
        row[k] = *sum;
    }
}

#[test]
fn symmetry_functions_of_all_atoms() {
    let mut random = Random(251);
    let atoms: Vec<Atom> = (0..43)
        .map(|i| {
            let [x, y, z] = [i % 4, i / 4 % 4, i / 16].map(|k| 1.7 * k as f32 + between(&mut random, -0.3, 0.3));
            Atom { place: Place { x, y, z }, species: (random.bits() % 3) as u32 }
        })
        .collect();
    let n = atoms.len();
    let places: Vec<[f64; 3]> = atoms.iter().map(|a| wide(&a.place)).collect();
    let fade = |r: f64, cut: f64| 0.5 * (std::f64::consts::PI * r / cut).cos() + 0.5;
    let (cut, angular_cut) = (f64::from(RADIAL_CUT), f64::from(ANGULAR_CUT));
    let pairs = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];
    let mut expected = vec![];
    for i in 0..n {
        let mut row = [0.0f64; 48];
        let others = || (0..n).filter(move |j| *j != i);
        let length = |j: usize| distance(&places[i], &places[j]);
        for j in others().filter(|j| length(*j) < cut) {
            for (k, shift) in [0.9f32, 1.9, 2.9, 3.9].map(f64::from).into_iter().enumerate() {
                row[atoms[j].species as usize * 4 + k] +=
                    0.25 * (-16.0 * (length(j) - shift).powi(2)).exp() * fade(length(j), cut);
            }
        }
        for j in others().filter(|j| length(*j) < angular_cut) {
            for k in others().filter(|k| *k < j && length(*k) < angular_cut) {
                let dot: f64 = (0..3).map(|x| (places[j][x] - places[i][x]) * (places[k][x] - places[i][x])).sum();
                let theta = (0.95 * dot / (length(j) * length(k))).acos();
                let pair = pairs[atoms[j].species as usize][atoms[k].species as usize];
                for (a, direction) in [0.4f32, 1.5, 2.7].map(f64::from).into_iter().enumerate() {
                    for (b, shift) in [1.2f32, 2.3].map(f64::from).into_iter().enumerate() {
                        row[12 + pair * 6 + a * 2 + b] += 2f64.powi(-7)
                            * (1.0 + (theta - direction).cos()).powi(8)
                            * (-8.0 * ((length(j) + length(k)) / 2.0 - shift).powi(2)).exp()
                            * fade(length(j), angular_cut)
                            * fade(length(k), angular_cut);
                    }
                }
            }
        }
        expected.extend(row);
    }
    everywhere(|run| {
        let (input, out) = (run.upload(&atoms), run.zeros::<f32>(expected.len()));
        run.launch(symmetry::kernel(), LaunchConfig::new(n as u32, 32), args![&input, &out]);
        // Distances are off by 3e-7; the functions' slopes are at most 5, and some hundred are added.
        run.near(&out, &expected, 1e-4);
    });
}

// 252: rates of reactions with falloff

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Arrhenius {
    ln_a: f32,
    power: f32,
    temperature: f32,
}

/// A reaction in memory.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Record {
    kind: u32,
    rates: [Arrhenius; 2],
    /// A part and three temperatures, of which the last may be missing (zero).
    center: [f32; 4],
    reactants: [u32; 2],
    products: [u32; 2],
}

#[derive(Clone, Copy, GpuType)]
enum Reaction {
    Plain(Arrhenius),
    Collision(Arrhenius),
    Lindemann { low: Arrhenius, high: Arrhenius },
    Troe { low: Arrhenius, high: Arrhenius, alpha: f32, falls: [f32; 2], rises: Option<f32> },
}

const NONE: u32 = u32::MAX;

#[device]
impl Arrhenius {
    fn at(self, t: f32) -> f32 {
        (self.ln_a + self.power * t.ln() - self.temperature / t).exp()
    }
}

#[device]
impl From<Record> for Reaction {
    fn from(record: Record) -> Reaction {
        let [low, high] = record.rates;
        match record.kind {
            0 => Reaction::Plain(high),
            1 => Reaction::Collision(low),
            2 => Reaction::Lindemann { low, high },
            _ => {
                let [alpha, t3, t1, t2] = record.center;
                let rises = (t2 > 0.0).then_some(t2);
                Reaction::Troe { low, high, alpha, falls: [t3, t1], rises }
            }
        }
    }
}

#[device]
impl Reaction {
    fn rate(self, t: f32, all: f32) -> f32 {
        match self {
            Reaction::Plain(rate) => rate.at(t),
            Reaction::Collision(rate) => rate.at(t) * all,
            Reaction::Lindemann { low, high } => {
                let (high, reduced) = (high.at(t), low.at(t) * all / high.at(t));
                high * reduced / (1.0 + reduced)
            }
            Reaction::Troe { low, high, alpha, falls: [t3, t1], rises } => {
                let high = high.at(t);
                let reduced = low.at(t) * all / high;
                let center = (1.0 - alpha) * (-t / t3).exp()
                    + alpha * (-t / t1).exp()
                    + rises.map_or(0.0, |t2| (-t2 / t).exp());
                let log = center.log10();
                let shifted = reduced.log10() - 0.4 - 0.67 * log;
                let width = 0.75 - 1.27 * log;
                let ratio = shifted / (width - 0.14 * shifted);
                high * reduced / (1.0 + reduced) * 10f32.powf(log / (1.0 + ratio * ratio))
            }
        }
    }
}

/// What each species gains and loses in each cell; a lane takes one reaction of one cell.
#[kernel]
fn falloff(cells: usize, records: &[Record], temperatures: &[f32], amounts: &[f32], gains: &mut [f32], losses: &mut [f32]) {
    let (cell, reaction) = (global_id_x(), global_id_y());
    let (Some(t), Some(record)) = (temperatures.get(cell).copied(), records.get(reaction).copied()) else {
        return;
    };
    let all: f32 = amounts.chunks_exact(cells).map(|species| species[cell]).sum();
    let real = |species: &&u32| **species != NONE;
    let amount: f32 = record.reactants.iter().filter(real).map(|s| amounts[*s as usize * cells + cell]).product();
    let rate = Reaction::from(record).rate(t, all) * amount;
    for species in record.reactants.iter().filter(real) {
        atomic_add(&mut losses[*species as usize * cells + cell], rate);
    }
    for species in record.products.iter().filter(real) {
        atomic_add(&mut gains[*species as usize * cells + cell], rate);
    }
}

#[test]
fn falloff_rates_of_a_mechanism() {
    let mut random = Random(252);
    let (cells, species, reactions) = (101usize, 6u64, 14usize);
    let mut rate = |shift: f32| Arrhenius {
        ln_a: shift + between(&mut random, 2.0, 6.0),
        power: between(&mut random, -1.0, 0.5),
        temperature: between(&mut random, 300.0, 5000.0),
    };
    let rates: Vec<[Arrhenius; 2]> = (0..reactions).map(|_| [rate(1.0), rate(0.0)]).collect();
    let records: Vec<Record> = rates
        .into_iter()
        .enumerate()
        .map(|(i, rates)| {
            let mut one = |missing: bool| if missing { NONE } else { (random.bits() % species) as u32 };
            let (reactants, products) = ([one(false), one(i % 3 == 1)], [one(false), one(i % 4 == 2)]);
            let center = [
                between(&mut random, 0.3, 0.8),
                between(&mut random, 80.0, 300.0),
                between(&mut random, 900.0, 2500.0),
                if i % 8 == 3 { 0.0 } else { between(&mut random, 4000.0, 7000.0) },
            ];
            Record { kind: i as u32 % 4, rates, center, reactants, products }
        })
        .collect();
    let temperatures: Vec<f32> = (0..cells).map(|_| between(&mut random, 700.0, 2400.0)).collect();
    let amounts: Vec<f32> = (0..cells * species as usize).map(|_| between(&mut random, 0.05, 1.5)).collect();

    let mut gains = vec![0.0f64; amounts.len()];
    let mut losses = gains.clone();
    for cell in 0..cells {
        let t = f64::from(temperatures[cell]);
        let amount = |s: u32| f64::from(amounts[s as usize * cells + cell]);
        let m: f64 = (0..species as u32).map(amount).sum();
        for r in &records {
            let [k0, k] = r.rates.map(|a| f64::from(a.ln_a).exp() * t.powf(f64::from(a.power)) * (-f64::from(a.temperature) / t).exp());
            let pr = k0 * m / k;
            let [a, t3, t1, t2] = r.center.map(f64::from);
            let mut center = (1.0 - a) * (-t / t3).exp() + a * (-t / t1).exp();
            if t2 != 0.0 {
                center += (-t2 / t).exp();
            }
            let (lc, lp) = (center.ln() / 10f64.ln(), pr.ln() / 10f64.ln());
            let x = (lp + (-0.4 - 0.67 * lc)) / ((0.75 - 1.27 * lc) - 0.14 * (lp + (-0.4 - 0.67 * lc)));
            let value = [k, k0 * m, k * pr / (1.0 + pr), k * pr / (1.0 + pr) * center.powf(1.0 / (1.0 + x * x))][r.kind as usize];
            let mut speed = value * amount(r.reactants[0]);
            if r.reactants[1] != NONE {
                speed *= amount(r.reactants[1]);
            }
            for (sums, names) in [(&mut losses, r.reactants), (&mut gains, r.products)] {
                for name in names.into_iter().filter(|name| *name != NONE) {
                    sums[name as usize * cells + cell] += speed;
                }
            }
        }
    }
    everywhere(|run| {
        let (list, t, c) = (run.upload(&records), run.upload(&temperatures), run.upload(&amounts));
        let (up, down) = (run.zeros::<f32>(amounts.len()), run.zeros::<f32>(amounts.len()));
        let config = LaunchConfig::tiled(cells as u32, reactions as u32, (32, 4));
        run.launch(falloff::kernel(), config, args![cells, &list, &t, &c, &up, &down]);
        // Exponents of up to 20 are off by 2e-6; all terms of a sum are positive.
        run.near(&up, &gains, 1e-4);
        run.near(&down, &losses, 1e-4);
    });
}
