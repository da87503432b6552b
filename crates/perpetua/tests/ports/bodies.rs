//! Many bodies: poses of a ligand, and particles that collide in cells.

use std::f32::consts::TAU;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, minus, wide};

// 96: miniBUDE's docking

const KINDS: usize = 32;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Hydrogen {
    #[default]
    Neither = 0,
    Both = 69,
    Free = 70,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Parameters {
    hydrogen: Hydrogen,
    radius: f32,
    hydrophobicity: f32,
    charge: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Atom {
    place: Vec3,
    kind: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Transform {
    rows: [[f32; 4]; 3],
}

#[device]
impl Transform {
    fn of([ax, ay, az, x, y, z]: [f32; 6]) -> Self {
        let ((sx, cx), (sy, cy), (sz, cz)) = (ax.sin_cos(), ay.sin_cos(), az.sin_cos());
        let rows = [
            [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, x],
            [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, y],
            [-sy, sx * cy, cx * cy, z],
        ];
        Self { rows }
    }

    fn apply(&self, p: Vec3) -> Vec3 {
        let [x, y, z] = self.rows.map(|[a, b, c, d]| a * p.x + b * p.y + c * p.z + d);
        Vec3 { x, y, z }
    }
}

/// What two kinds of atoms are to each other.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Pair {
    radius: f32,
    charge: f32,
    reach: f32,
    attracts: bool,
    solvation: f32,
    zone: Option<f32>,
}

#[device]
impl Pair {
    const HARDNESS: f32 = 38.0;
    const COULOMB: f32 = 45.0;

    fn of(ligand: Parameters, protein: Parameters) -> Self {
        let (l, p) = (ligand.hydrophobicity, protein.hydrophobicity);
        let flip = |own: f32, other: f32| if own < 0.0 && other > 0.0 { -own } else { own };
        let zone = match (p < 0.0, l < 0.0) {
            (true, true) => Some(5.5),
            (true, false) | (false, true) => Some(1.0),
            (false, false) => None,
        };
        let free = [ligand, protein].iter().all(|a| a.hydrogen == Hydrogen::Free);
        Self {
            radius: ligand.radius + protein.radius,
            charge: ligand.charge * protein.charge,
            reach: if free { 4.0 } else { 2.0 },
            attracts: matches!(ligand.hydrogen, Hydrogen::Both) || matches!(protein.hydrogen, Hydrogen::Both),
            solvation: flip(p, l) + flip(l, p),
            zone: zone.filter(|_| p != 0.0),
        }
    }

    fn energy(&self, distance: f32) -> f32 {
        let gap = distance - self.radius;
        let touching = gap < 0.0;
        let steric = if touching {
            2.0 * Self::HARDNESS * (1.0 - distance / self.radius)
        } else {
            0.0
        };
        let mut electric = match gap {
            gap if gap < 0.0 => self.charge,
            gap if gap < self.reach => self.charge * (1.0 - gap / self.reach),
            _ => 0.0,
        };
        if self.attracts {
            electric = -electric.abs();
        }
        let solvation = self.zone.filter(|zone| gap < *zone).map_or(0.0, |zone| {
            self.solvation * if touching { 1.0 } else { 1.0 - gap / zone }
        });
        steric + electric * Self::COULOMB + solvation
    }
}

#[kernel(block_size = 64)]
fn dock<const POSES: usize>(
    protein: &[Atom],
    ligand: &[Atom],
    field: &[Parameters],
    poses: &[[f32; 6]],
    energies: &mut [f32],
) {
    let shared = shared_array::<[Parameters; KINDS]>();
    let lane = local_id_x();
    if let Some(parameters) = field.get(lane) {
        shared[lane] = *parameters;
    }
    sync_threads();
    let first = group_id_x() * 64 * POSES + lane;
    let transforms: [Transform; POSES] =
        std::array::from_fn(|k| Transform::of(poses[(first + 64 * k).min(poses.len() - 1)]));
    let mut totals = [0.0f32; POSES];
    for atom in ligand {
        let places = transforms.map(|t| t.apply(atom.place));
        let own = shared[atom.kind as usize];
        for other in protein {
            let pair = Pair::of(own, shared[other.kind as usize]);
            for (total, place) in totals.iter_mut().zip(&places) {
                *total += pair.energy((*place - other.place).length());
            }
        }
    }
    for (k, total) in totals.iter().enumerate() {
        if let Some(energy) = energies.get_mut(first + 64 * k) {
            *energy = 0.5 * total;
        }
    }
}

#[test]
fn docking_scores_several_poses_a_lane() {
    let mut random = Random(96);
    let field: Vec<Parameters> = (0..12)
        .map(|_| Parameters {
            hydrogen: [Hydrogen::Neither, Hydrogen::Both, Hydrogen::Free][random.below(3)],
            radius: random.between(1.0, 2.0) as f32,
            hydrophobicity: [-0.3, 0.0, 0.4][random.below(3)],
            charge: random.between(-1.0, 1.0) as f32,
        })
        .collect();
    let mut atoms = |count: usize, reach: f64| -> Vec<Atom> {
        (0..count)
            .map(|_| Atom {
                place: random.place(reach),
                kind: random.below(12) as u32,
            })
            .collect()
    };
    let (protein, ligand) = (atoms(70, 8.0), atoms(9, 3.0));
    let poses: Vec<[f32; 6]> = (0..300)
        .map(|_| std::array::from_fn(|_| random.between(-3.0, 3.0) as f32))
        .collect();
    let mut expected = Vec::new();
    for pose in &poses {
        let [a, b, c, x, y, z] = pose.map(f64::from);
        // About x, then y, then z.
        let turn = |[px, py, pz]: Wide| {
            let (px, py, pz) = (px, py * a.cos() - pz * a.sin(), py * a.sin() + pz * a.cos());
            let (px, py, pz) = (px * b.cos() + pz * b.sin(), py, pz * b.cos() - px * b.sin());
            [
                px * c.cos() - py * c.sin() + x,
                px * c.sin() + py * c.cos() + y,
                pz + z,
            ]
        };
        let mut total = 0.0;
        for l in &ligand {
            let at = turn(wide(l.place));
            for p in &protein {
                let (lp, pp) = (&field[l.kind as usize], &field[p.kind as usize]);
                let d = minus(at, wide(p.place));
                let (d, r) = (inner(d, d).sqrt(), f64::from(lp.radius + pp.radius));
                let gap = d - r;
                let inside = gap < 0.0;
                total += if inside { 76.0 * (1.0 - d / r) } else { 0.0 };
                let reach = if lp.hydrogen == Hydrogen::Free && pp.hydrogen == Hydrogen::Free {
                    4.0
                } else {
                    2.0
                };
                let fade = if inside { 1.0 } else { (1.0 - gap / reach).max(0.0) };
                let charge = f64::from(lp.charge) * f64::from(pp.charge) * fade;
                let both = lp.hydrogen == Hydrogen::Both || pp.hydrogen == Hydrogen::Both;
                total += 45.0 * if both { -charge.abs() } else { charge };
                let (lh, ph) = (f64::from(lp.hydrophobicity), f64::from(pp.hydrophobicity));
                let mixed = (lh < 0.0) != (ph < 0.0);
                let zone = if mixed { 1.0 } else { 5.5 };
                let sum = if lh * ph < 0.0 {
                    lh.abs() + ph.abs()
                } else {
                    lh + ph
                };
                if ph != 0.0 && (lh < 0.0 || ph < 0.0) && gap < zone {
                    total += sum * if inside { 1.0 } else { 1.0 - gap / zone };
                }
            }
        }
        expected.push(0.5 * total);
    }
    everywhere(|run| {
        let (protein, ligand, field) = (run.upload(&protein), run.upload(&ligand), run.upload(&field));
        let (poses, y) = (run.upload(&poses), run.zeros::<f32>(300));
        let config = LaunchConfig::new(2, 64);
        run.launch(
            dock::kernel::<4>(),
            config,
            args![&protein, &ligand, &field, &poses, &y],
        );
        run.near(&y, &expected, 1e-3);
    });
}

// 99: HOOMD's stochastic rotation dynamics

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Cells {
    count: [u32; 3],
    capacity: u32,
    shift: Vec3,
}

#[device]
impl Cells {
    fn of(&self, place: Vec3) -> usize {
        let at = place + self.shift;
        let axis = |x: f32, count: u32| (x.floor() as i32).rem_euclid(count as i32) as usize;
        let [nx, ny, nz] = self.count;
        (axis(at.z, nz) * ny as usize + axis(at.y, ny)) * nx as usize + axis(at.x, nx)
    }
}

/// Two rounds of a small generator: as good as random for a cell and a step.
#[device]
fn draw(mut a: u32, mut b: u32) -> [f32; 2] {
    for round in [0x9e37_79b9u32, 0x3c6e_f372, 0xdaa6_6d2b, 0x78dd_e6e4] {
        a = a.wrapping_add(
            ((b << 4).wrapping_add(0xa341_316c))
                ^ b.wrapping_add(round)
                ^ ((b >> 5).wrapping_add(0xc801_3ea4)),
        );
        b = b.wrapping_add(
            ((a << 4).wrapping_add(0xad90_777d))
                ^ a.wrapping_add(round)
                ^ ((a >> 5).wrapping_add(0x7e95_761e)),
        );
    }
    [a, b].map(|bits| (bits >> 8) as f32 / (1 << 24) as f32)
}

#[kernel]
fn bin(cells: Cells, places: &[Vec3], counts: &mut [u32], members: &mut [u32], lost: &mut [u32]) {
    let i = global_id_x();
    let Some(place) = places.get(i) else { return };
    let cell = cells.of(*place);
    let slot = atomic_add(&mut counts[cell], 1);
    if slot < cells.capacity {
        members[cell * cells.capacity as usize + slot as usize] = i as u32;
    } else {
        atomic_max(&mut lost[0], slot + 1);
    }
}

#[kernel]
fn collide(cells: Cells, step: u32, angle: f32, counts: &[u32], members: &[u32], velocities: &mut [Vec3]) {
    let cell = global_id_x();
    if cell >= counts.len() {
        return;
    }
    let count = counts[cell].min(cells.capacity) as usize;
    let members = &members[cell * cells.capacity as usize..][..count];
    if members.len() < 2 {
        return;
    }
    let sum = members
        .iter()
        .fold(Vec3::ZERO, |sum, m| sum + velocities[*m as usize]);
    let mean = sum * (1.0 / count as f32);
    let [height, around] = draw(cell as u32, step);
    let z = 2.0 * height - 1.0;
    let (sin, cos) = (TAU * around).sin_cos();
    let flat = (1.0 - z * z).max(0.0).sqrt();
    let axis = Vec3::new(flat * cos, flat * sin, z);
    let (sin, cos) = angle.sin_cos();
    for member in members {
        let velocity = &mut velocities[*member as usize];
        let off = *velocity - mean;
        let along = axis * axis.dot(off);
        *velocity = mean + along + (off - along) * cos + axis.cross(off) * sin;
    }
}

#[test]
fn srd_turns_velocities_about_the_mean_of_their_cell() {
    let mut random = Random(99);
    let (count, capacity) = (900usize, 24);
    let cells = Cells {
        count: [5, 6, 4],
        capacity,
        shift: random.place(0.5),
    };
    let places: Vec<Vec3> = (0..count).map(|_| random.place(7.0)).collect();
    let velocities: Vec<Vec3> = (0..count).map(|_| random.place(1.0)).collect();
    let mut groups = vec![Vec::new(); 120];
    for i in 0..count {
        let (p, s) = (places[i], cells.shift);
        let k = [(p.x + s.x, 5), (p.y + s.y, 6), (p.z + s.z, 4)].map(|(x, n)| (x.floor() as i32 + 5 * n) % n);
        groups[((k[2] * 6 + k[1]) * 5 + k[0]) as usize].push(i);
    }
    let step = 17u32;
    let mut expected: Vec<Wide> = velocities.iter().map(|v| wide(*v)).collect();
    for (cell, group) in groups.iter().enumerate().filter(|(_, g)| g.len() > 1) {
        let mut mean = [0.0; 3];
        group
            .iter()
            .for_each(|i| (0..3).for_each(|k| mean[k] += expected[*i][k] / group.len() as f64));
        let (mut a, mut b, mut round) = (cell as u32, step, 0u32);
        for _ in 0..4 {
            round = round.wrapping_add(0x9e37_79b9);
            let mixed = |v: u32, k0: u32, k1: u32| {
                (v << 4).wrapping_add(k0) ^ v.wrapping_add(round) ^ (v >> 5).wrapping_add(k1)
            };
            a = a.wrapping_add(mixed(b, 0xa341_316c, 0xc801_3ea4));
            b = b.wrapping_add(mixed(a, 0xad90_777d, 0x7e95_761e));
        }
        let z = f64::from(a >> 8) / f64::from(1 << 23) - 1.0;
        let around = std::f64::consts::TAU * f64::from(b >> 8) / f64::from(1 << 24);
        let flat = (1.0 - z * z).sqrt();
        let (x, y) = (flat * around.cos(), flat * around.sin());
        let (s, c) = 2.2f64.sin_cos();
        let d = 1.0 - c;
        let turn = [
            [c + x * x * d, x * y * d - z * s, x * z * d + y * s],
            [y * x * d + z * s, c + y * y * d, y * z * d - x * s],
            [z * x * d - y * s, z * y * d + x * s, c + z * z * d],
        ];
        for i in group {
            let off = minus(expected[*i], mean);
            expected[*i] = [0, 1, 2].map(|k| mean[k] + inner(turn[k], off));
        }
    }
    assert!(groups.iter().all(|g| g.len() <= capacity as usize));
    everywhere(|run| {
        let (places, velocities) = (run.upload(&places), run.upload(&velocities));
        let (counts, lost) = (run.zeros::<u32>(120), run.zeros::<u32>(1));
        let members = run.zeros::<u32>(120 * capacity as usize);
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            bin::kernel(),
            config,
            args![cells, &places, &counts, &members, &lost],
        );
        run.holds(&lost, &[0]);
        let config = LaunchConfig::linear(120, 64);
        run.launch(
            collide::kernel(),
            config,
            args![cells, step, 2.2f32, &counts, &members, &velocities],
        );
        run.near(&velocities.cast::<f32>().unwrap(), &expected.concat(), 1e-5);
    });
}
