//! Chemistry: symmetry functions of an atom's surroundings, and rates of reactions.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::reactions::{Place, distance, wide};

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
            let [x, y, z] = [i % 4, i / 4 % 4, i / 16].map(|k| 1.7 * k as f32 + random.within(-0.3, 0.3));
            Atom {
                place: Place { x, y, z },
                species: (random.bits() % 3) as u32,
            }
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
                let dot: f64 = (0..3)
                    .map(|x| (places[j][x] - places[i][x]) * (places[k][x] - places[i][x]))
                    .sum();
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
        run.launch(
            symmetry::kernel(),
            LaunchConfig::new(n as u32, 32),
            args![&input, &out],
        );
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
    Lindemann {
        low: Arrhenius,
        high: Arrhenius,
    },
    Troe {
        low: Arrhenius,
        high: Arrhenius,
        alpha: f32,
        falls: [f32; 2],
        rises: Option<f32>,
    },
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
                Reaction::Troe {
                    low,
                    high,
                    alpha,
                    falls: [t3, t1],
                    rises,
                }
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
            Reaction::Troe {
                low,
                high,
                alpha,
                falls: [t3, t1],
                rises,
            } => {
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
fn falloff(
    cells: usize,
    records: &[Record],
    temperatures: &[f32],
    amounts: &[f32],
    gains: &mut [f32],
    losses: &mut [f32],
) {
    let (cell, reaction) = (global_id_x(), global_id_y());
    let (Some(t), Some(record)) = (temperatures.get(cell).copied(), records.get(reaction).copied()) else {
        return;
    };
    let all: f32 = amounts.chunks_exact(cells).map(|species| species[cell]).sum();
    let real = |species: &&u32| **species != NONE;
    let amount: f32 = record
        .reactants
        .iter()
        .filter(real)
        .map(|s| amounts[*s as usize * cells + cell])
        .product();
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
        ln_a: shift + random.within(2.0, 6.0),
        power: random.within(-1.0, 0.5),
        temperature: random.within(300.0, 5000.0),
    };
    let rates: Vec<[Arrhenius; 2]> = (0..reactions).map(|_| [rate(1.0), rate(0.0)]).collect();
    let records: Vec<Record> = rates
        .into_iter()
        .enumerate()
        .map(|(i, rates)| {
            let mut one = |missing: bool| {
                if missing {
                    NONE
                } else {
                    (random.bits() % species) as u32
                }
            };
            let (reactants, products) = ([one(false), one(i % 3 == 1)], [one(false), one(i % 4 == 2)]);
            let center = [
                random.within(0.3, 0.8),
                random.within(80.0, 300.0),
                random.within(900.0, 2500.0),
                if i % 8 == 3 {
                    0.0
                } else {
                    random.within(4000.0, 7000.0)
                },
            ];
            Record {
                kind: i as u32 % 4,
                rates,
                center,
                reactants,
                products,
            }
        })
        .collect();
    let temperatures: Vec<f32> = (0..cells).map(|_| random.within(700.0, 2400.0)).collect();
    let amounts: Vec<f32> = (0..cells * species as usize)
        .map(|_| random.within(0.05, 1.5))
        .collect();

    let mut gains = vec![0.0f64; amounts.len()];
    let mut losses = gains.clone();
    for cell in 0..cells {
        let t = f64::from(temperatures[cell]);
        let amount = |s: u32| f64::from(amounts[s as usize * cells + cell]);
        let m: f64 = (0..species as u32).map(amount).sum();
        for r in &records {
            let [k0, k] = r.rates.map(|a| {
                f64::from(a.ln_a).exp() * t.powf(f64::from(a.power)) * (-f64::from(a.temperature) / t).exp()
            });
            let pr = k0 * m / k;
            let [a, t3, t1, t2] = r.center.map(f64::from);
            let mut center = (1.0 - a) * (-t / t3).exp() + a * (-t / t1).exp();
            if t2 != 0.0 {
                center += (-t2 / t).exp();
            }
            let (lc, lp) = (center.ln() / 10f64.ln(), pr.ln() / 10f64.ln());
            let x = (lp + (-0.4 - 0.67 * lc)) / ((0.75 - 1.27 * lc) - 0.14 * (lp + (-0.4 - 0.67 * lc)));
            let value = [
                k,
                k0 * m,
                k * pr / (1.0 + pr),
                k * pr / (1.0 + pr) * center.powf(1.0 / (1.0 + x * x)),
            ][r.kind as usize];
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
        let (list, t, c) = (
            run.upload(&records),
            run.upload(&temperatures),
            run.upload(&amounts),
        );
        let (up, down) = (run.zeros::<f32>(amounts.len()), run.zeros::<f32>(amounts.len()));
        let config = LaunchConfig::tiled(cells as u32, reactions as u32, (32, 4));
        run.launch(falloff::kernel(), config, args![cells, &list, &t, &c, &up, &down]);
        // Exponents of up to 20 are off by 2e-6; all terms of a sum are positive.
        run.near(&up, &gains, 1e-4);
        run.near(&down, &losses, 1e-4);
    });
}
