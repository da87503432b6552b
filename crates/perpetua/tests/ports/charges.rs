//! Charges and masses: pushed by fields, spread to grids, drawn by trees.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, minus, outer, wide};

// 124: WarpX' Boris pusher

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Particle {
    place: [f32; 2],
    /// Momentum over mass.
    u: Vec3,
    weight: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Fields {
    e: Vec3,
    b: Vec3,
}

/// How far a particle's charge reaches: its weights at up to four nodes, the first of which is given.
#[device]
trait Shape {
    const POINTS: usize;
    fn weights(x: f32) -> (i32, [f32; 4]);
}

#[derive(Clone, Copy, GpuType)]
struct Linear;
#[derive(Clone, Copy, GpuType)]
struct Quadratic;
#[derive(Clone, Copy, GpuType)]
struct Cubic;

#[device]
impl Shape for Linear {
    const POINTS: usize = 2;

    fn weights(x: f32) -> (i32, [f32; 4]) {
        let first = x.floor();
        let f = x - first;
        (first as i32, [1.0 - f, f, 0.0, 0.0])
    }
}

#[device]
impl Shape for Quadratic {
    const POINTS: usize = 3;

    fn weights(x: f32) -> (i32, [f32; 4]) {
        let middle = x.round();
        let f = x - middle;
        let weights = [
            0.5 * (0.5 - f).powi(2),
            0.75 - f * f,
            0.5 * (0.5 + f).powi(2),
            0.0,
        ];
        (middle as i32 - 1, weights)
    }
}

#[device]
impl Shape for Cubic {
    const POINTS: usize = 4;

    fn weights(x: f32) -> (i32, [f32; 4]) {
        let cell = x.floor();
        let f = x - cell;
        let inner = |f: f32| 2.0 / 3.0 - f * f * (1.0 - 0.5 * f);
        let outer = |f: f32| f.powi(3) / 6.0;
        (
            cell as i32 - 1,
            [outer(1.0 - f), inner(f), inner(1.0 - f), outer(f)],
        )
    }
}

/// Calls `each` with the index and the weight of every node about a place of a periodic grid.
#[device]
fn for_nodes<S: Shape>(size: [i32; 2], [x, y]: [f32; 2], mut each: impl FnMut(usize, f32)) {
    let (left, across) = S::weights(x);
    let (top, down) = S::weights(y);
    for (j, wy) in down.iter().take(S::POINTS).enumerate() {
        let row = (top + j as i32).rem_euclid(size[1]);
        for (i, wx) in across.iter().take(S::POINTS).enumerate() {
            let column = (left + i as i32).rem_euclid(size[0]);
            each((row * size[0] + column) as usize, wx * wy);
        }
    }
}

#[kernel]
fn boris<S: Shape>(
    size: [i32; 2],
    dt: f32,
    ratio: f32,
    fields: &[Fields],
    particles: &mut [Particle],
    density: &mut [f32],
) {
    let id = global_id_x();
    if id >= particles.len() {
        return;
    }
    let Particle {
        mut place,
        mut u,
        weight,
    } = particles[id];
    let mut here = Fields::default();
    for_nodes::<S>(size, place, |node, w| {
        here.e += fields[node].e * w;
        here.b += fields[node].b * w;
    });
    let half = 0.5 * ratio * dt;
    u += here.e * half;
    let t = here.b * (half / (1.0 + u.length_squared()).sqrt());
    let s = t * (2.0 / (1.0 + t.length_squared()));
    let turned = u + u.cross(t);
    u += turned.cross(s);
    u += here.e * half;
    let gamma = (1.0 + u.length_squared()).sqrt();
    place[0] = (place[0] + u.x / gamma * dt).rem_euclid(size[0] as f32);
    place[1] = (place[1] + u.y / gamma * dt).rem_euclid(size[1] as f32);
    for_nodes::<S>(size, place, |node, w| {
        atomic_add(&mut density[node], w * weight);
    });
    particles[id] = Particle { place, u, weight };
}

/// The cardinal B-spline of an order, by its recursion.
fn spline(order: i32, x: f64) -> f64 {
    if order == 0 {
        return if (-0.5..0.5).contains(&x) { 1.0 } else { 0.0 };
    }
    let k = f64::from(order);
    let half = (k + 1.0) / 2.0;
    ((half + x) * spline(order - 1, x + 0.5) + (half - x) * spline(order - 1, x - 0.5)) / k
}

#[test]
fn boris_pushes_as_in_64_bits() {
    let mut random = Random(124);
    let (size, count) = ([12i32, 9], 200);
    let cells = 12 * 9;
    let fields: Vec<Fields> = (0..cells)
        .map(|_| Fields {
            e: random.place(1.0),
            b: random.place(2.0),
        })
        .collect();
    let particles: Vec<Particle> = (0..count)
        .map(|_| Particle {
            place: [random.between(0.0, 12.0) as f32, random.between(0.0, 9.0) as f32],
            u: random.place(1.5),
            weight: random.between(0.5, 1.5) as f32,
        })
        .collect();
    let (dt, ratio) = (0.2f32, -1.25f32);
    let expect = |order: i32| {
        let (mut pushed, mut density) = (Vec::new(), vec![0.0f64; cells]);
        let around = |x: f64, y: f64| {
            let near = |a: f64, n: i32| {
                (0..3)
                    .map(|k| spline(order, a + f64::from((k - 1) * n)))
                    .sum::<f64>()
            };
            (0..cells)
                .map(|i| near(x - (i % 12) as f64, 12) * near(y - (i / 12) as f64, 9))
                .collect::<Vec<f64>>()
        };
        for p in &particles {
            let [x, y] = p.place.map(f64::from);
            let weights = around(x, y);
            let sum = |of: &dyn Fn(&Fields) -> Vec3| -> Wide {
                std::array::from_fn(|k| (0..cells).map(|i| weights[i] * wide(of(&fields[i]))[k]).sum())
            };
            let (e, b) = (sum(&|f| f.e), sum(&|f| f.b));
            let half = 0.5 * f64::from(dt) * f64::from(ratio);
            let add = |a: Wide, b: Wide, by: f64| -> Wide { std::array::from_fn(|k| a[k] + b[k] * by) };
            let low = add(wide(p.u), e, half);
            let t = b.map(|b| b * half / (1.0 + inner(low, low)).sqrt());
            // The rotation solves `high - low = (high + low) x t`.
            let along = inner(low, t);
            let square = inner(t, t);
            let cross = outer(low, t);
            let high: Wide = std::array::from_fn(|k| {
                ((1.0 - square) * low[k] + 2.0 * cross[k] + 2.0 * along * t[k]) / (1.0 + square)
            });
            let u = add(high, e, half);
            let gamma = (1.0 + inner(u, u)).sqrt();
            let x = (x + u[0] / gamma * f64::from(dt)).rem_euclid(12.0);
            let y = (y + u[1] / gamma * f64::from(dt)).rem_euclid(9.0);
            for (d, w) in density.iter_mut().zip(around(x, y)) {
                *d += w * f64::from(p.weight);
            }
            pushed.extend([x, y, u[0], u[1], u[2], f64::from(p.weight)]);
        }
        (pushed, density)
    };
    let kernels = [
        (1, boris::kernel::<Linear>()),
        (2, boris::kernel::<Quadratic>()),
        (3, boris::kernel::<Cubic>()),
    ];
    for (order, kernel) in kernels {
        let (pushed, density) = expect(order);
        everywhere(|run| {
            let (fields, moved) = (run.upload(&fields), run.upload(&particles));
            let sums = run.zeros::<f32>(cells);
            run.launch(
                kernel.clone(),
                LaunchConfig::linear(count, 64),
                args![size, dt, ratio, &fields, &moved, &sums],
            );
            run.near(&moved.cast::<f32>().unwrap(), &pushed, 1e-4);
            run.near(&sums, &density, 1e-4);
        });
    }
}

// 128: HeCBench's Barnes-Hut

/// Children below zero are bodies: `!child` is the body's number. `EMPTY` is none.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Node {
    center: Vec3,
    mass: f32,
    side: f32,
    children: [i32; 8],
}

const EMPTY: i32 = i32::MAX;
const DEPTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Body {
    place: Vec3,
    mass: f32,
}

#[device]
fn pull(from: Vec3, to: Vec3, mass: f32, softening: f32) -> Vec3 {
    let d = to - from;
    let r2 = d.length_squared() + softening * softening;
    d * (mass / (r2 * r2.sqrt()))
}

#[kernel]
fn barnes_hut(
    theta: f32,
    softening: f32,
    nodes: &[Node],
    bodies: &[Body],
    forces: &mut [Vec3],
    visits: &mut [u32],
) {
    let id = global_id_x();
    let Some(body) = bodies.get(id) else { return };
    let mut force = Vec3::ZERO;
    let mut stack = [0u32; DEPTH];
    let mut top = 1;
    let mut visited = 0;
    while top > 0 {
        top -= 1;
        let node = &nodes[stack[top] as usize];
        visited += 1;
        let distance = (node.center - body.place).length();
        if node.side < theta * distance {
            force += pull(body.place, node.center, node.mass, softening);
            continue;
        }
        for &child in node.children.iter().filter(|child| **child != EMPTY) {
            match child {
                0.. => {
                    stack[top] = child as u32;
                    top += 1;
                }
                ..0 => {
                    let other = bodies[!child as usize];
                    if !child as usize != id {
                        force += pull(body.place, other.place, other.mass, softening);
                    }
                }
            }
        }
    }
    forces[id] = force;
    visits[id] = visited;
}

struct Tree<'a> {
    bodies: &'a [Body],
    nodes: Vec<Node>,
}

impl Tree<'_> {
    fn grow(&mut self, middle: Wide, side: f64, members: &[usize]) -> i32 {
        match members {
            [] => return EMPTY,
            [one] => return !(*one as i32),
            _ => {}
        }
        let node = self.nodes.len();
        let mass: f64 = members.iter().map(|b| f64::from(self.bodies[*b].mass)).sum();
        let center: Wide = std::array::from_fn(|k| {
            let moment = |b: &usize| f64::from(self.bodies[*b].mass) * wide(self.bodies[*b].place)[k];
            members.iter().map(moment).sum::<f64>() / mass
        });
        self.nodes.push(Node {
            center: center.map(|c| c as f32).into(),
            mass: mass as f32,
            side: side as f32,
            children: [EMPTY; 8],
        });
        for octant in 0..8usize {
            let part: Vec<usize> = members
                .iter()
                .copied()
                .filter(|b| {
                    let p = wide(self.bodies[*b].place);
                    (0..3).all(|k| (p[k] >= middle[k]) == (octant >> k & 1 == 1))
                })
                .collect();
            let corner = std::array::from_fn(|k| {
                middle[k] + side / 4.0 * if octant >> k & 1 == 1 { 1.0 } else { -1.0 }
            });
            self.nodes[node].children[octant] = self.grow(corner, side / 2.0, &part);
        }
        node as i32
    }

    fn force(&self, node: usize, id: usize, theta: f64) -> Wide {
        let (node, here) = (&self.nodes[node], wide(self.bodies[id].place));
        let from = |place: Vec3, mass: f32| -> Wide {
            let d = minus(wide(place), here);
            let r2 = inner(d, d) + 0.01;
            d.map(|d| d * f64::from(mass) / r2.powf(1.5))
        };
        let d = minus(wide(node.center), here);
        if f64::from(node.side) < theta * inner(d, d).sqrt() {
            return from(node.center, node.mass);
        }
        let mut sum = [0.0; 3];
        for child in node.children {
            let part = match child {
                EMPTY => continue,
                0.. => self.force(child as usize, id, theta),
                _ if !child as usize == id => continue,
                _ => from(
                    self.bodies[!child as usize].place,
                    self.bodies[!child as usize].mass,
                ),
            };
            sum = std::array::from_fn(|k| sum[k] + part[k]);
        }
        sum
    }
}

#[test]
fn barnes_hut_sums_the_tree() {
    let mut random = Random(128);
    let bodies: Vec<Body> = (0..180)
        .map(|_| Body {
            place: random.place(1.0),
            mass: random.between(0.1, 1.0) as f32,
        })
        .collect();
    let mut tree = Tree {
        bodies: &bodies,
        nodes: Vec::new(),
    };
    let all: Vec<usize> = (0..bodies.len()).collect();
    tree.grow([0.0; 3], 2.0, &all);
    let theta = 0.7f32;
    let expected: Vec<f64> = all
        .iter()
        .flat_map(|b| tree.force(0, *b, f64::from(theta)))
        .collect();
    everywhere(|run| {
        let (nodes, places) = (run.upload(&tree.nodes), run.upload(&bodies));
        let (forces, visits) = (run.zeros::<Vec3>(bodies.len()), run.zeros::<u32>(bodies.len()));
        run.launch(
            barnes_hut::kernel(),
            LaunchConfig::linear(bodies.len(), 64),
            args![theta, 0.1f32, &nodes, &places, &forces, &visits],
        );
        run.near(&forces.cast::<f32>().unwrap(), &expected, 1e-3);
        let some = |v: &u32| (2..tree.nodes.len() as u32).contains(v);
        assert!(run.read(&visits).iter().all(some), "on {}", run.place());
    });
}

// 129: GROMACS' spreading of charges

const ORDER: usize = 4;

/// The values of the cardinal B-spline at a charge's nodes, by the recursion over orders.
#[device]
fn splines(fraction: f32) -> [f32; ORDER] {
    let mut data = [0.0; ORDER];
    data[1] = fraction;
    data[0] = 1.0 - fraction;
    for k in 3..=ORDER {
        let scale = 1.0 / (k as f32 - 1.0);
        data[k - 1] = scale * fraction * data[k - 2];
        for l in (1..k - 1).rev() {
            let l_ = l as f32;
            data[l] =
                scale * ((fraction + k as f32 - 1.0 - l_) * data[l - 1] + (l_ + 1.0 - fraction) * data[l]);
        }
        data[0] *= scale * (1.0 - fraction);
    }
    data
}

#[kernel]
fn pme_spread(cells: [u32; 3], reciprocal_box: [f32; 3], charges: &[[f32; 4]], grid: &mut [f32]) {
    let Some(&[x, y, z, charge]) = charges.get(global_id_x()) else {
        return;
    };
    if charge == 0.0 {
        return;
    }
    let mut first = [0u32; 3];
    let mut weights = [[0.0; ORDER]; 3];
    for (axis, place) in [x, y, z].into_iter().enumerate() {
        let scaled = (place * reciprocal_box[axis]).rem_euclid(1.0) * cells[axis] as f32;
        first[axis] = scaled as u32 % cells[axis];
        weights[axis] = splines(scaled.fract());
    }
    let node = |axis: usize, step: usize| (first[axis] as usize + step) % cells[axis] as usize;
    for (i, wx) in weights[0].iter().enumerate() {
        for (j, wy) in weights[1].iter().enumerate() {
            let row = (node(0, i) * cells[1] as usize + node(1, j)) * cells[2] as usize;
            for (k, wz) in weights[2].iter().enumerate() {
                atomic_add(&mut grid[row + node(2, k)], charge * wx * wy * wz);
            }
        }
    }
}

#[test]
fn pme_spread_keeps_charge() {
    let mut random = Random(129);
    let (cells, sides) = ([8u32, 10, 6], [2.0f64, 3.0, 1.5]);
    let charges: Vec<[f32; 4]> = (0..150)
        .map(|i| {
            let [x, y, z] = sides.map(|s| random.between(-s, 2.0 * s) as f32);
            [
                x,
                y,
                z,
                if i % 10 == 0 {
                    0.0
                } else {
                    random.between(-1.0, 1.0) as f32
                },
            ]
        })
        .collect();
    let total = cells.iter().product::<u32>() as usize;
    let mut expected = vec![0.0f64; total];
    for charge in &charges {
        for (i, cell) in expected.iter_mut().enumerate() {
            let at = [i / 60, i / 6 % 10, i % 6];
            let mut weight = f64::from(charge[3]);
            for k in 0..3 {
                let n = f64::from(cells[k]);
                let x = f64::from(charge[k]) / sides[k] * n;
                // The spline's middle lies a node behind the charge.
                let d = (at[k] as f64 - x).rem_euclid(n);
                weight *= spline(3, d - 1.0) + spline(3, d - 1.0 - n);
            }
            *cell += weight;
        }
    }
    everywhere(|run| {
        let grid = run.zeros::<f32>(total);
        let reciprocals = sides.map(|s| 1.0 / s as f32);
        run.launch(
            pme_spread::kernel(),
            LaunchConfig::linear(charges.len(), 64),
            args![cells, reciprocals, &run.upload(&charges), &grid],
        );
        run.near(&grid, &expected, 1e-4);
    });
}
