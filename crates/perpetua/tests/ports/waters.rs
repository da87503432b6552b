//! Water as molecules and as seas.

use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 193: SETTLE

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Vec3 {
    x: f32,
    y: f32,
    z: f32,
}

#[device]
impl Vec3 {
    fn dot(self, other: Self) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    fn cross(self, other: Self) -> Self {
        Vec3 {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    fn normalised(self) -> Self {
        self * self.dot(self).sqrt().recip()
    }

    fn parts(self) -> [f32; 3] {
        [self.x, self.y, self.z]
    }
}

#[device]
impl Add for Vec3 {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Vec3 {
            x: self.x + other.x,
            y: self.y + other.y,
            z: self.z + other.z,
        }
    }
}

#[device]
impl Sub for Vec3 {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Vec3 {
            x: self.x - other.x,
            y: self.y - other.y,
            z: self.z - other.z,
        }
    }
}

#[device]
impl Mul<f32> for Vec3 {
    type Output = Self;

    fn mul(self, by: f32) -> Self {
        Vec3 {
            x: self.x * by,
            y: self.y * by,
            z: self.z * by,
        }
    }
}

/// Masses of the atoms, and their distances.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Water {
    oxygen: f32,
    hydrogen: f32,
    oh: f32,
    hh: f32,
}

#[device]
fn into_axes(axes: [Vec3; 3], v: Vec3) -> [f32; 3] {
    axes.map(|axis| axis.dot(v))
}

#[device]
fn out_of_axes([x, y, z]: [Vec3; 3], [a, b, c]: [f32; 3]) -> Vec3 {
    x * a + y * b + z * c
}

#[device]
impl Water {
    fn masses(&self) -> [f32; 3] {
        [self.oxygen, self.hydrogen, self.hydrogen]
    }

    /// Where the atoms of a molecule go that moved freely from `old` to `new`.
    fn settled(&self, old: [Vec3; 3], new: [Vec3; 3]) -> [Vec3; 3] {
        let total: f32 = self.masses().iter().sum();
        let rc = 0.5 * self.hh;
        let height = (self.oh * self.oh - rc * rc).sqrt();
        let ra = 2.0 * self.hydrogen * height / total;
        let rb = height - ra;

        let centre = new
            .iter()
            .zip(self.masses())
            .fold(Vec3::default(), |sum, (p, m)| sum + *p * (m / total));
        let (b0, c0) = (old[1] - old[0], old[2] - old[0]);
        let [a1, b1, c1] = new.map(|p| p - centre);
        let z = b0.cross(c0);
        let x = a1.cross(z);
        let y = z.cross(x);
        let axes = [x, y, z].map(Vec3::normalised);
        let [b0x, b0y, _] = into_axes(axes, b0);
        let [c0x, c0y, _] = into_axes(axes, c0);
        let [_, _, az] = into_axes(axes, a1);
        let [b1x, b1y, bz] = into_axes(axes, b1);
        let [c1x, c1y, cz] = into_axes(axes, c1);

        let sin_phi = az / ra;
        let cos_phi = (1.0 - sin_phi * sin_phi).max(0.0).sqrt();
        let sin_psi = (bz - cz) / (self.hh * cos_phi);
        let cos_psi = (1.0 - sin_psi * sin_psi).max(0.0).sqrt();
        let ay = ra * cos_phi;
        let bx = -rc * cos_psi;
        let (mean, swing) = (-rb * cos_phi, rc * sin_psi * sin_phi);
        let (by, cy) = (mean - swing, mean + swing);

        let alpha = bx * (b0x - c0x) + b0y * by + c0y * cy;
        let beta = bx * (c0y - b0y) + b0x * by + c0x * cy;
        let gamma = b0x * b1y - b1x * b0y + c0x * c1y - c1x * c0y;
        let square = alpha * alpha + beta * beta;
        let sin = (alpha * gamma - beta * (square - gamma * gamma).max(0.0).sqrt()) / square;
        let cos = (1.0 - sin * sin).max(0.0).sqrt();
        [
            [-ay * sin, ay * cos, az],
            [bx * cos - by * sin, bx * sin + by * cos, bz],
            [-bx * cos - cy * sin, -bx * sin + cy * cos, cz],
        ]
        .map(|p| centre + out_of_axes(axes, p))
    }
}

#[kernel]
fn settle(water: Water, old: &[[Vec3; 3]], new: &mut [[Vec3; 3]], virial: &mut [[f32; 3]; 3]) {
    let i = global_id_x();
    if i >= new.len() {
        return;
    }
    let settled = water.settled(old[i], new[i]);
    let mut sums = [[0.0; 3]; 3];
    for (k, mass) in water.masses().into_iter().enumerate() {
        let moved = (settled[k] - new[i][k]) * mass;
        for (row, from) in sums.iter_mut().zip(old[i][k].parts()) {
            for (sum, by) in row.iter_mut().zip(moved.parts()) {
                *sum -= from * by;
            }
        }
    }
    for a in 0..3 {
        for b in 0..3 {
            atomic_add(&mut virial[a][b], sums[a][b]);
        }
    }
    new[i] = settled;
}

#[test]
fn water_keeps_its_shape() {
    let mut random = Random(193);
    let water = Water {
        oxygen: 15.9994,
        hydrogen: 1.008,
        oh: 0.1,
        hh: 0.1633,
    };
    let (d, e) = (0.5 * 0.1633f64, (0.01f64 - 0.25 * 0.1633 * 0.1633).sqrt());
    let count = 50;
    let mut old: Vec<[Vec3; 3]> = Vec::new();
    let mut new: Vec<[Vec3; 3]> = Vec::new();
    for _ in 0..count {
        let (turn, tilt) = (random.between(0.0, 6.3), random.between(-1.0, 1.0));
        let shift: [f64; 3] = std::array::from_fn(|_| random.between(0.0, 2.0));
        let placed = [[0.0, 0.0], [d, e], [-d, e]].map(|[x, y]| {
            let (x, y) = (x * turn.cos() - y * turn.sin(), x * turn.sin() + y * turn.cos());
            let (y, z) = (y * tilt.cos(), y * tilt.sin());
            Vec3 {
                x: (x + shift[0]) as f32,
                y: (y + shift[1]) as f32,
                z: (z + shift[2]) as f32,
            }
        });
        old.push(placed);
        new.push(placed.map(|p| {
            let [x, y, z] = std::array::from_fn(|_| random.between(-0.008, 0.008) as f32);
            p + Vec3 { x, y, z }
        }));
    }
    // SHAKE until nothing moves any more.
    let wide = |p: Vec3| p.parts().map(f64::from);
    let masses = [15.9994f64, 1.008, 1.008];
    let mut expected = Vec::new();
    let mut virial = [[0.0; 3]; 3];
    for (old, new) in old.iter().zip(&new) {
        let o = old.map(wide);
        let mut n = new.map(wide);
        for _ in 0..2000 {
            for (i, j, length) in [(0, 1, 0.1f64), (0, 2, 0.1), (1, 2, 0.1633)] {
                let now: [f64; 3] = std::array::from_fn(|k| n[i][k] - n[j][k]);
                let then: [f64; 3] = std::array::from_fn(|k| o[i][k] - o[j][k]);
                let off = now.iter().map(|x| x * x).sum::<f64>() - length * length;
                let along: f64 = (0..3).map(|k| now[k] * then[k]).sum();
                let g = off / (2.0 * along * (1.0 / masses[i] + 1.0 / masses[j]));
                for k in 0..3 {
                    n[i][k] -= g / masses[i] * then[k];
                    n[j][k] += g / masses[j] * then[k];
                }
            }
        }
        for atom in 0..3 {
            for a in 0..3 {
                for b in 0..3 {
                    virial[a][b] -=
                        masses[atom] * o[atom][a] * (n[atom][b] - f64::from(new[atom].parts()[b]));
                }
            }
        }
        expected.push(n);
    }
    everywhere(|run| {
        let (o, n, v) = (run.upload(&old), run.upload(&new), run.zeros::<[[f32; 3]; 3]>(1));
        run.launch(
            settle::kernel(),
            LaunchConfig::linear(count, 32),
            args![water, &o, &n, &v],
        );
        for (found, expected) in run.read(&n).iter().zip(&expected) {
            for (p, q) in found.iter().zip(expected) {
                for (x, y) in p.parts().iter().zip(q) {
                    assert!(
                        (f64::from(*x) - y).abs() < 1e-5,
                        "on {}: {p:?}, {q:?}",
                        run.place()
                    );
                }
            }
        }
        for (x, y) in run.read(&v)[0].as_flattened().iter().zip(virial.as_flattened()) {
            assert!((f64::from(*x) - y).abs() < 1e-3, "on {}: {x}, {y}", run.place());
        }
    });
}

// 194: long waves

/// A node of the sea: land has no depth.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Node {
    depth: f32,
    height: f32,
    east: f32,
    north: f32,
    highest: f32,
    arrival: f32,
}

/// Cosines of the latitude of a row, and of its northern edge.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Parallel {
    middle: f32,
    edge: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Sea {
    width: u32,
    rows: u32,
    step: f32,
    spacing: f32,
}

const GRAVITY: f32 = 9.81;
const CALM: f32 = 1e-5;

#[kernel]
fn mass(sea: Sea, time: f32, parallels: &[Parallel], nodes: &mut [Node]) {
    let (x, y) = (global_id_x(), global_id_y());
    let (width, rows) = (sea.width as usize, sea.rows as usize);
    if !(1..width - 1).contains(&x) || !(1..rows - 1).contains(&y) {
        return;
    }
    let i = y * width + x;
    let west = nodes[i - 1].east;
    let south = nodes[i - width].north;
    let node = &mut nodes[i];
    if node.depth <= 0.0 {
        return;
    }
    let rate = sea.step / (sea.spacing * parallels[y].middle);
    let out = node.east - west + node.north * parallels[y].edge - south * parallels[y - 1].edge;
    let mut height = node.height - rate * out;
    if height.abs() < CALM {
        height = 0.0;
    }
    node.height = height;
    node.highest = node.highest.max(height);
    if node.arrival < 0.0 && height.abs() > 0.01 {
        node.arrival = time;
    }
}

#[kernel]
fn momentum(sea: Sea, parallels: &[Parallel], nodes: &mut [Node]) {
    let (x, y) = (global_id_x(), global_id_y());
    let width = sea.width as usize;
    if x + 1 >= width || y + 1 >= sea.rows as usize {
        return;
    }
    let i = y * width + x;
    // What flows to a neighbour, if both are wet.
    let pushed = |to: usize, flow: f32, length: f32| {
        let depth = 0.5 * (nodes[i].depth + nodes[to].depth);
        (nodes[i].depth > 0.0 && nodes[to].depth > 0.0)
            .then(|| flow - GRAVITY * depth * sea.step / length * (nodes[to].height - nodes[i].height))
            .unwrap_or(0.0)
    };
    let east = pushed(i + 1, nodes[i].east, sea.spacing * parallels[y].middle);
    let north = pushed(i + width, nodes[i].north, sea.spacing);
    nodes[i].east = east;
    nodes[i].north = north;
}

#[test]
fn waves_run_over_a_sea() {
    let mut random = Random(194);
    let (width, rows) = (40usize, 30usize);
    let sea = Sea {
        width: 40,
        rows: 30,
        step: 5.0,
        spacing: 3000.0,
    };
    let latitude = |y: f64| (0.5 + y * 0.0005).cos() as f32;
    let parallels: Vec<Parallel> = (0..rows)
        .map(|y| Parallel {
            middle: latitude(y as f64),
            edge: latitude(y as f64 + 0.5),
        })
        .collect();
    let nodes: Vec<Node> = (0..width * rows)
        .map(|i| {
            let (x, y) = ((i % width) as f32, (i / width) as f32);
            let near = (-((x - 15.0).powi(2) + (y - 12.0).powi(2)) / 9.0).exp();
            let land = x > 33.0 && y < 20.0;
            Node {
                depth: if land {
                    0.0
                } else {
                    random.between(1000.0, 4000.0) as f32
                },
                height: if land || near < 0.001 { 0.0 } else { 2.0 * near },
                east: 0.0,
                north: 0.0,
                highest: 0.0,
                arrival: -1.0,
            }
        })
        .collect();
    let mut expected = nodes.clone();
    for step in 0..30 {
        for y in 1..rows - 1 {
            for x in 1..width - 1 {
                let i = y * width + x;
                if expected[i].depth == 0.0 {
                    continue;
                }
                let rate = sea.step / (sea.spacing * parallels[y].middle);
                let mut h = expected[i].height
                    - rate
                        * (expected[i].east - expected[i - 1].east + expected[i].north * parallels[y].edge
                            - expected[i - width].north * parallels[y - 1].edge);
                if h.abs() < 1e-5 {
                    h = 0.0;
                }
                expected[i].height = h;
                if h > expected[i].highest {
                    expected[i].highest = h;
                }
                if h.abs() > 0.01 && expected[i].arrival < 0.0 {
                    expected[i].arrival = step as f32 * sea.step;
                }
            }
        }
        for y in 0..rows - 1 {
            for x in 0..width - 1 {
                let i = y * width + x;
                let here = expected[i];
                let east = expected[i + 1];
                let north = expected[i + width];
                let (dx, dy) = (sea.spacing * parallels[y].middle, sea.spacing);
                let flow = |old: f32, other: Node, d: f32| {
                    if here.depth == 0.0 || other.depth == 0.0 {
                        return 0.0;
                    }
                    old - 9.81 * (0.5 * (here.depth + other.depth)) * sea.step / d
                        * (other.height - here.height)
                };
                expected[i].east = flow(here.east, east, dx);
                expected[i].north = flow(here.north, north, dy);
            }
        }
    }
    let flat = |nodes: &[Node]| -> Vec<[f32; 3]> {
        nodes.iter().map(|n| [n.height, n.highest, n.arrival]).collect()
    };
    let expected = flat(&expected);
    assert!(expected.iter().filter(|e| e[2] > 0.0).count() > 100);
    everywhere(|run| {
        let (p, n) = (run.upload(&parallels), run.upload(&nodes));
        let config = LaunchConfig::tiled(width, rows, (16, 8));
        for step in 0..30 {
            run.launch(mass::kernel(), config, args![sea, step as f32 * 5.0, &p, &n]);
            run.launch(momentum::kernel(), config, args![sea, &p, &n]);
        }
        for (found, expected) in flat(&run.read(&n)).iter().zip(&expected) {
            for (x, y) in found.iter().zip(expected) {
                assert!(
                    (x - y).abs() < 1e-4,
                    "on {}: {found:?}, {expected:?}",
                    run.place()
                );
            }
        }
    });
}
