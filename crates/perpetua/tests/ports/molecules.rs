//! Molecules: bonds of three and four atoms, and embedded atoms.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, minus, outer, wide};

// 97: GROMACS' angles and dihedrals

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Kind {
    Angle = 0,
    Dihedral = 1,
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Interaction {
    kind: Kind,
    multiplicity: u32,
    atoms: [u32; 4],
    angle: f32,
    force: f32,
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct PeriodicBox {
    lengths: Vec3,
}

#[device]
impl PeriodicBox {
    /// From `b` to the nearest image of `a`.
    fn nearest(&self, a: Vec3, b: Vec3) -> Vec3 {
        let d = a - b;
        d - d.zip(self.lengths, |x, length| length * (x / length).round())
    }
}

/// The energy, and the forces on up to four atoms.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Response {
    energy: f32,
    forces: [Vec3; 4],
}

#[device]
fn bent(ij: Vec3, kj: Vec3, angle: f32, force: f32) -> Response {
    let (a, b) = (ij.length(), kj.length());
    let cos = (ij.dot(kj) / (a * b)).clamp(-1.0, 1.0);
    let off = cos.acos() - angle;
    let slope = force * off / (1.0 - cos * cos).sqrt().max(1e-6);
    let first = (kj * (a * b).recip() - ij * (cos / (a * a))) * slope;
    let third = (ij * (a * b).recip() - kj * (cos / (b * b))) * slope;
    Response {
        energy: 0.5 * force * off * off,
        forces: [first, -first - third, third, Vec3::ZERO],
    }
}

#[device]
fn twisted(
    ij: Vec3,
    kj: Vec3,
    kl: Vec3,
    Interaction {
        multiplicity,
        angle,
        force,
        ..
    }: Interaction,
) -> Response {
    let (m, n) = (ij.cross(kj), kj.cross(kl));
    let size = kj.length();
    let phi = (ij.dot(n) * size).atan2(m.dot(n));
    let turns = multiplicity as f32 * phi - angle;
    let slope = -force * multiplicity as f32 * turns.sin();
    let first = m * (-slope * size / m.length_squared());
    let last = n * (slope * size / n.length_squared());
    let square = size.powi(2);
    let shared = first * (ij.dot(kj) / square) - last * (kl.dot(kj) / square);
    Response {
        energy: force * (1.0 + turns.cos()),
        forces: [first, shared - first, -last - shared, last],
    }
}

#[kernel(block_size = 64)]
fn bonded(
    frame: PeriodicBox,
    list: &[Interaction],
    places: &[Vec3],
    forces: &mut [Vec3],
    energies: &mut [f32],
) {
    let sums = shared_array::<[f32; 2]>();
    let lane = local_id_x();
    if lane < 2 {
        sums[lane] = 0.0;
    }
    sync_threads();
    if let Some(interaction) = list.get(global_id_x()) {
        let [i, j, k, l] = interaction.atoms.map(|a| places[a as usize]);
        let (ij, kj) = (frame.nearest(i, j), frame.nearest(k, j));
        let response = match interaction.kind {
            Kind::Angle => bent(ij, kj, interaction.angle, interaction.force),
            Kind::Dihedral => twisted(ij, kj, frame.nearest(k, l), *interaction),
        };
        let count = if interaction.kind == Kind::Angle { 3 } else { 4 };
        for (atom, force) in interaction.atoms.iter().zip(response.forces).take(count) {
            let sum = &mut forces[*atom as usize];
            atomic_add(&mut sum.x, force.x);
            atomic_add(&mut sum.y, force.y);
            atomic_add(&mut sum.z, force.z);
        }
        atomic_add(&mut sums[interaction.kind as usize], response.energy);
    }
    sync_threads();
    if lane < 2 {
        atomic_add(&mut energies[lane], sums[lane]);
    }
}

#[test]
fn bonded_forces_are_slopes_of_the_energies() {
    let mut random = Random(97);
    let (atoms, count) = (60usize, 150usize);
    let lengths = Vec3::new(3.0, 4.0, 3.5);
    let places: Vec<Vec3> = (0..atoms).map(|_| random.place(1.5)).collect();
    let near = |a: Wide, b: Wide| {
        let d = minus(a, b);
        let l = wide(lengths);
        [0, 1, 2].map(|k| d[k] - l[k] * (d[k] / l[k]).round())
    };
    let energy = |one: &Interaction, at: &[Wide; 4]| {
        let (ij, kj, kl) = (near(at[0], at[1]), near(at[2], at[1]), near(at[2], at[3]));
        let (angle, force) = (f64::from(one.angle), f64::from(one.force));
        if one.kind == Kind::Angle {
            let theta = (inner(ij, kj) / (inner(ij, ij) * inner(kj, kj)).sqrt()).acos();
            0.5 * force * (theta - angle).powi(2)
        } else {
            let (m, n) = (outer(ij, kj), outer(kj, kl));
            let phi = (inner(m, n) / (inner(m, m) * inner(n, n)).sqrt()).acos() * inner(ij, n).signum();
            force * (1.0 + (f64::from(one.multiplicity) * phi - angle).cos())
        }
    };
    let mut list = Vec::new();
    let (mut forces, mut energies) = (vec![[0.0; 3]; atoms], [0.0; 2]);
    while list.len() < count {
        let first = random.below(atoms - 4) as u32;
        let kind = if random.below(2) == 0 {
            Kind::Angle
        } else {
            Kind::Dihedral
        };
        let one = Interaction {
            kind,
            multiplicity: 1 + random.below(4) as u32,
            atoms: [first, first + 1, first + 2, first + 3],
            angle: random.between(1.0, 2.0) as f32,
            force: random.between(1.0, 3.0) as f32,
        };
        let at = one.atoms.map(|a| wide(places[a as usize]));
        // Straight ones have no plane.
        let (ij, kj, kl) = (near(at[0], at[1]), near(at[2], at[1]), near(at[2], at[3]));
        let wide_enough = |a, b| inner(outer(a, b), outer(a, b)) > 0.2;
        // An image that is as near as another changes with the last bit.
        let clear = |a: Wide, b: Wide| {
            let (d, l) = (near(a, b), wide(lengths));
            (0..3).all(|k| d[k].abs() < 0.49 * l[k])
        };
        let images = clear(at[0], at[1]) && clear(at[2], at[1]) && clear(at[2], at[3]);
        if !images || !wide_enough(ij, kj) || !wide_enough(kj, kl) {
            continue;
        }
        energies[one.kind as usize] += energy(&one, &at);
        for atom in 0..4 {
            for k in 0..3 {
                let moved = |by: f64| {
                    let mut at = at;
                    at[atom][k] += by;
                    energy(&one, &at)
                };
                forces[one.atoms[atom] as usize][k] -= (moved(1e-5) - moved(-1e-5)) / 2e-5;
            }
        }
        list.push(one);
    }
    everywhere(|run| {
        let (list, places) = (run.upload(&list), run.upload(&places));
        let (f, e) = (run.zeros::<Vec3>(atoms), run.zeros::<f32>(2));
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            bonded::kernel(),
            config,
            args![PeriodicBox { lengths }, &list, &places, &f, &e],
        );
        run.near(&f.cast::<f32>().unwrap(), &forces.concat(), 1e-3);
        run.near(&e, &energies, 1e-4);
    });
}

// 98: LAMMPS' embedded atoms

/// A cubic between two knots, and its slope.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Cubic {
    value: [f32; 4],
    slope: [f32; 3],
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Knots {
    /// Knots a unit.
    radial: f32,
    embedding: f32,
    cutoff: f32,
}

/// Horner's scheme, the highest power first.
#[device]
fn polynomial<const N: usize>(coefficients: [f32; N], x: f32) -> f32 {
    coefficients
        .into_iter()
        .reduce(|sum, c| sum * x + c)
        .unwrap_or_default()
}

/// The interval of a place, and how far into it.
#[device]
fn interval(at: f32, table: &[Cubic]) -> (Cubic, f32) {
    let index = (at as usize).min(table.len() - 1);
    (table[index], (at - index as f32).min(1.0))
}

#[device]
fn for_each_near(
    i: usize,
    cutoff: f32,
    places: &[Vec3],
    starts: &[u32],
    list: &[u32],
    mut each: impl FnMut(usize, Vec3, f32),
) {
    for &j in &list[starts[i] as usize..starts[i + 1] as usize] {
        let apart = places[i] - places[j as usize];
        let distance = apart.length();
        if distance < cutoff {
            each(j as usize, apart, distance);
        }
    }
}

#[kernel]
fn embed(
    knots: Knots,
    density: &[Cubic],
    embedding: &[Cubic],
    places: &[Vec3],
    starts: &[u32],
    list: &[u32],
    slopes: &mut [f32],
    energies: &mut [f32],
) {
    let i = global_id_x();
    if i >= places.len() {
        return;
    }
    let mut sum = 0.0;
    for_each_near(i, knots.cutoff, places, starts, list, |_, _, distance| {
        let (cubic, part) = interval(distance * knots.radial, density);
        sum += polynomial(cubic.value, part);
    });
    let (cubic, part) = interval(sum * knots.embedding, embedding);
    slopes[i] = polynomial(cubic.slope, part);
    energies[i] = polynomial(cubic.value, part);
}

#[kernel]
fn pull(
    knots: Knots,
    density: &[Cubic],
    pair: &[Cubic],
    places: &[Vec3],
    starts: &[u32],
    list: &[u32],
    slopes: &[f32],
    forces: &mut [Vec3],
) {
    let i = global_id_x();
    if i >= places.len() {
        return;
    }
    let mut force = Vec3::ZERO;
    for_each_near(i, knots.cutoff, places, starts, list, |j, apart, distance| {
        let (rho, part) = interval(distance * knots.radial, density);
        let (charge, _) = interval(distance * knots.radial, pair);
        let rise = polynomial(rho.slope, part);
        let potential = polynomial(charge.value, part) / distance;
        let steep = polynomial(charge.slope, part) / distance - potential / distance;
        let total = (slopes[i] + slopes[j]) * rise + steep;
        force -= apart * (total / distance);
    });
    forces[i] = force;
}

/// A spline through knots `1 / per` apart, by Hermite's cubics with the function's slopes.
fn spline(count: usize, per: f64, f: impl Fn(f64) -> f64) -> Vec<Cubic> {
    let slope = |x: f64| (f(x + 1e-6) - f(x - 1e-6)) / 2e-6 / per;
    let piece = |k: usize| {
        let (x, y) = (k as f64 / per, (k + 1) as f64 / per);
        let (a, b, s, t) = (f(x), f(y), slope(x), slope(y));
        let value = [2.0 * (a - b) + s + t, 3.0 * (b - a) - 2.0 * s - t, s, a];
        let slope = [3.0 * value[0] * per, 2.0 * value[1] * per, value[2] * per];
        Cubic {
            value: value.map(|v| v as f32),
            slope: slope.map(|v| v as f32),
        }
    };
    (0..count).map(piece).collect()
}

#[test]
fn embedded_atoms_are_pulled_as_without_tables() {
    let mut random = Random(98);
    let (side, cutoff) = (6usize, 2.5f64);
    let mut places = Vec::new();
    for k in 0..side * side * side {
        let at = [k % side, k / side % side, k / (side * side)];
        places.push(Vec3::from(
            at.map(|c| (c as f64 + random.between(-0.15, 0.15)) as f32),
        ));
    }
    let count = places.len();
    let rho = |r: f64| (-r).exp();
    let charge = |r: f64| (1.0 - r / cutoff).powi(2);
    let embedding = |d: f64| -(d + 0.1).sqrt();
    let knots = Knots {
        radial: 40.0,
        embedding: 20.0,
        cutoff: cutoff as f32,
    };
    let tables = [
        spline(101, 40.0, rho),
        spline(300, 20.0, embedding),
        spline(101, 40.0, charge),
    ];
    let (mut starts, mut list) = (vec![0u32], Vec::new());
    for i in 0..count {
        let far = |j: usize| (places[i] - places[j]).length();
        list.extend((0..count).filter(|j| *j != i && far(*j) < 3.0).map(|j| j as u32));
        starts.push(list.len() as u32);
    }
    let apart = |i: usize, j: usize| {
        let d = minus(wide(places[i]), wide(places[j]));
        (d, inner(d, d).sqrt())
    };
    let near = |i: usize| (0..count).filter(move |j| *j != i && apart(i, *j).1 < cutoff);
    let dense: Vec<f64> = (0..count)
        .map(|i| near(i).map(|j| rho(apart(i, j).1)).sum())
        .collect();
    let slope = |i: usize| -0.5 / (dense[i] + 0.1).sqrt();
    let mut expected = Vec::new();
    for i in 0..count {
        let mut force = [0.0; 3];
        for j in near(i) {
            let (d, r) = apart(i, j);
            let pair = -2.0 / cutoff * (1.0 - r / cutoff) / r - charge(r) / (r * r);
            let total = pair - (slope(i) + slope(j)) * rho(r);
            (0..3).for_each(|k| force[k] -= total * d[k] / r);
        }
        expected.extend(force);
    }
    let deep: Vec<f64> = dense.iter().map(|d| embedding(*d)).collect();
    everywhere(|run| {
        let [rho, embedding, charge] = [0, 1, 2].map(|k| run.upload(&tables[k]));
        let (places, starts, list) = (run.upload(&places), run.upload(&starts), run.upload(&list));
        let (slopes, energies) = (run.zeros::<f32>(count), run.zeros::<f32>(count));
        let forces = run.zeros::<Vec3>(count);
        let config = LaunchConfig::linear(count, 64);
        let first = args![
            knots, &rho, &embedding, &places, &starts, &list, &slopes, &energies
        ];
        run.launch(embed::kernel(), config, first);
        run.near(&energies, &deep, 1e-4);
        let second = args![knots, &rho, &charge, &places, &starts, &list, &slopes, &forces];
        run.launch(pull::kernel(), config, second);
        run.near(&forces.cast::<f32>().unwrap(), &expected, 2e-3);
    });
}
