//! Neutrons and water: what moves through cells.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, inner, minus, wide};

// 123: minisweep

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Direction {
    cosines: [f32; 3],
    weight: f32,
}

/// One diagonal plane of cells, `x + y + z = plane` as the octant counts, every angle of it.
#[kernel]
fn sweep(
    plane: usize,
    cells: [usize; 3],
    octant: u32,
    total: f32,
    directions: &[Direction],
    source: &[f32],
    x_faces: &mut [f32],
    y_faces: &mut [f32],
    z_faces: &mut [f32],
    flux: &mut [f32],
) {
    let (x, y, angle) = (global_id_x(), global_id_y(), global_id_z());
    let [nx, ny, nz] = cells;
    let Some(direction) = directions.get(angle) else {
        return;
    };
    let Some(z) = plane.checked_sub(x + y).filter(|z| *z < nz) else {
        return;
    };
    if x >= nx || y >= ny {
        return;
    }
    let place = [x, y, z];
    let [i, j, k]: [usize; 3] = std::array::from_fn(|axis| match octant >> axis & 1 {
        0 => place[axis],
        _ => cells[axis] - 1 - place[axis],
    });
    let cell = (k * ny + j) * nx + i;
    let mut faces = [
        &mut x_faces[(angle * nz + k) * ny + j],
        &mut y_faces[(angle * nz + k) * nx + i],
        &mut z_faces[(angle * ny + j) * nx + i],
    ];
    let inflow: f32 = faces
        .iter()
        .zip(direction.cosines)
        .map(|(face, c)| 2.0 * c * **face)
        .sum();
    let losses = 2.0 * direction.cosines.iter().sum::<f32>() + total;
    let psi = (source[cell] + inflow) / losses;
    for face in &mut faces {
        // Diamond differences, with what would be negative set to zero.
        **face = (2.0 * psi - **face).max(0.0);
    }
    atomic_add(&mut flux[cell], direction.weight * psi);
}

#[test]
fn sweep_carries_all_octants() {
    let mut random = Random(123);
    let cells = [5usize, 4, 6];
    let count = cells.iter().product::<usize>();
    let directions: Vec<Direction> = (0..3)
        .map(|_| Direction {
            cosines: std::array::from_fn(|_| random.between(0.2, 0.9) as f32),
            weight: random.between(0.1, 0.3) as f32,
        })
        .collect();
    let source: Vec<f32> = (0..count).map(|_| random.between(0.0, 1.0) as f32).collect();
    let total = 0.7f32;
    let mut expected = vec![0.0f64; count];
    for octant in 0..8usize {
        for d in &directions {
            let mut out = vec![[0.0f64; 3]; count];
            let order = |n: usize, down: usize| -> Vec<usize> {
                if down == 0 {
                    (0..n).collect()
                } else {
                    (0..n).rev().collect()
                }
            };
            for z in order(6, octant >> 2 & 1) {
                for y in order(4, octant >> 1 & 1) {
                    for x in order(5, octant & 1) {
                        let at = (z * 4 + y) * 5 + x;
                        let strides = [1, 5, 20];
                        let here = [x, y, z];
                        let before: [f64; 3] = std::array::from_fn(|axis| {
                            let first = if octant >> axis & 1 == 0 {
                                0
                            } else {
                                cells[axis] - 1
                            };
                            match octant >> axis & 1 {
                                _ if here[axis] == first => 0.0,
                                0 => out[at - strides[axis]][axis],
                                _ => out[at + strides[axis]][axis],
                            }
                        });
                        let c = d.cosines.map(f64::from);
                        let psi = (f64::from(source[at])
                            + (0..3).map(|k| 2.0 * c[k] * before[k]).sum::<f64>())
                            / (2.0 * c.iter().sum::<f64>() + f64::from(total));
                        out[at] = before.map(|b| (2.0 * psi - b).max(0.0));
                        expected[at] += f64::from(d.weight) * psi;
                    }
                }
            }
        }
    }
    everywhere(|run| {
        let (directions, source) = (run.upload(&directions), run.upload(&source));
        let flux = run.zeros::<f32>(count);
        for octant in 0..8u32 {
            let faces = [3 * 6 * 4, 3 * 6 * 5, 3 * 4 * 5].map(|len| run.zeros::<f32>(len));
            for plane in 0..5 + 4 + 6 - 2usize {
                run.launch(
                    sweep::kernel(),
                    LaunchConfig::new((1, 1, 3), (8, 4, 1)),
                    args![
                        plane,
                        cells,
                        octant,
                        total,
                        &directions,
                        &source,
                        &faces[0],
                        &faces[1],
                        &faces[2],
                        &flux
                    ],
                );
            }
        }
        run.near(&flux, &expected, 1e-5);
    });
}

// 125: DualSPHysics

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Drop {
    place: Vec3,
    speed: Vec3,
    density: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Change {
    acceleration: Vec3,
    density: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Water {
    /// The smoothing length; a cell is twice as wide.
    h: f32,
    mass: f32,
    rest_density: f32,
    sound: f32,
    viscosity: f32,
    cells: [u32; 3],
}

#[device]
impl Water {
    fn pressure(&self, density: f32) -> f32 {
        const GAMMA: i32 = 7;
        let stiffness = self.sound * self.sound * self.rest_density / GAMMA as f32;
        stiffness * ((density / self.rest_density).powi(GAMMA) - 1.0)
    }

    /// Wendland's kernel: its slope over the distance.
    fn slope(&self, r: f32) -> f32 {
        let q = r / self.h;
        let norm = 21.0 / (16.0 * std::f32::consts::PI * self.h.powi(3));
        -5.0 * norm * (1.0 - 0.5 * q).powi(3) / self.h.powi(2)
    }

    fn cell_of(&self, place: Vec3) -> [i32; 3] {
        [place.x, place.y, place.z].map(|x| (x / (2.0 * self.h)).floor() as i32)
    }

    fn index_of(&self, cell: [i32; 3]) -> Option<usize> {
        let inside = cell
            .iter()
            .zip(&self.cells)
            .all(|(c, n)| (0..*n as i32).contains(c));
        let [x, y, z] = cell.map(|c| c as usize);
        inside.then(|| (z * self.cells[1] as usize + y) * self.cells[0] as usize + x)
    }

    fn interact(&self, a: &Drop, b: &Drop) -> Option<Change> {
        let d = a.place - b.place;
        let r2 = d.length_squared();
        if r2 >= 4.0 * self.h * self.h || r2 == 0.0 {
            return None;
        }
        let gradient = d * self.slope(r2.sqrt());
        let speed = a.speed - b.speed;
        let approach = speed.dot(d);
        let friction = if approach < 0.0 {
            let mu = self.h * approach / (r2 + 0.01 * self.h * self.h);
            -self.viscosity * self.sound * mu / (0.5 * (a.density + b.density))
        } else {
            0.0
        };
        let [pa, pb] = [a, b].map(|drop| self.pressure(drop.density) / drop.density.powi(2));
        Some(Change {
            acceleration: gradient * (-self.mass * (pa + pb + friction)),
            density: self.mass * speed.dot(gradient),
        })
    }
}

#[kernel]
fn sph(water: Water, starts: &[u32], drops: &[Drop], changes: &mut [Change]) {
    let id = global_id_x();
    let Some(own) = drops.get(id) else { return };
    let home = water.cell_of(own.place);
    let mut sum = Change {
        acceleration: Vec3::new(0.0, 0.0, -9.81),
        ..Change::default()
    };
    for dz in -1..=1 {
        for dy in -1..=1 {
            for dx in -1..=1 {
                let Some(cell) = water.index_of([home[0] + dx, home[1] + dy, home[2] + dz]) else {
                    continue;
                };
                let members = &drops[starts[cell] as usize..starts[cell + 1] as usize];
                for change in members.iter().filter_map(|other| water.interact(own, other)) {
                    sum.acceleration += change.acceleration;
                    sum.density += change.density;
                }
            }
        }
    }
    changes[id] = sum;
}

#[test]
fn sph_sums_over_all_pairs() {
    let mut random = Random(125);
    let water = Water {
        h: 0.1,
        mass: 0.02,
        rest_density: 1000.0,
        sound: 10.0,
        viscosity: 0.1,
        cells: [4, 3, 5],
    };
    let cell_of = |d: &Drop| {
        let [x, y, z] = wide(d.place).map(|x| (x / f64::from(0.2f32)).floor() as usize);
        (z * 3 + y) * 4 + x
    };
    let mut drops: Vec<Drop> = (0..300)
        .map(|_| Drop {
            place: Vec3::new(
                random.between(0.0, 0.79) as f32,
                random.between(0.0, 0.59) as f32,
                random.between(0.0, 0.99) as f32,
            ),
            speed: random.place(1.0),
            density: random.between(990.0, 1010.0) as f32,
        })
        .collect();
    drops.sort_by_key(cell_of);
    let starts: Vec<u32> = (0..=60)
        .map(|c| drops.partition_point(|d| cell_of(d) < c) as u32)
        .collect();
    let mut expected = Vec::new();
    for a in &drops {
        let mut sum = [0.0, 0.0, -9.81, 0.0];
        for b in &drops {
            let d = minus(wide(a.place), wide(b.place));
            let r = inner(d, d).sqrt();
            let h = f64::from(water.h);
            if r == 0.0 || r >= 2.0 * h {
                continue;
            }
            // W = 21 / (16 pi h^3) (1 - q / 2)^4 (2 q + 1), differentiated by the definition.
            let w = |r: f64| {
                let q = r / h;
                21.0 / (16.0 * std::f64::consts::PI * h.powi(3)) * (1.0 - q / 2.0).powi(4) * (2.0 * q + 1.0)
            };
            let slope = (w(r + 1e-6) - w(r - 1e-6)) / 2e-6;
            let v = minus(wide(a.speed), wide(b.speed));
            let [ra, rb] = [a.density, b.density].map(f64::from);
            let p = |r: f64| 100_000.0 / 7.0 * ((r / 1000.0).powf(7.0) - 1.0) / (r * r);
            let along = inner(v, d);
            let mu = h * along.min(0.0) / (r * r + 0.01 * h * h);
            let pi = -f64::from(water.viscosity) * 10.0 * mu / ((ra + rb) / 2.0);
            let m = f64::from(water.mass);
            for k in 0..3 {
                sum[k] -= m * (p(ra) + p(rb) + pi) * slope * d[k] / r;
            }
            sum[3] += m * along * slope / r;
        }
        expected.extend(sum);
    }
    everywhere(|run| {
        let changes = run.zeros::<Change>(drops.len());
        run.launch(
            sph::kernel(),
            LaunchConfig::linear(drops.len(), 64),
            args![water, &run.upload(&starts), &run.upload(&drops), &changes],
        );
        run.near(&changes.cast::<f32>().unwrap(), &expected, 2e-3);
    });
}
