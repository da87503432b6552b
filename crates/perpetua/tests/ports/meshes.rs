//! Meshes: hexahedral elements and their sums.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{inner, minus, outer};

// 93: LULESH's hexahedra

type Point = [f64; 3];

const FACES: [[usize; 4]; 6] = [
    [0, 1, 2, 3],
    [4, 5, 6, 7],
    [0, 1, 5, 4],
    [1, 2, 6, 5],
    [2, 3, 7, 6],
    [3, 0, 4, 7],
];

#[device]
fn difference(a: Point, b: Point) -> Point {
    std::array::from_fn(|k| a[k] - b[k])
}

#[device]
fn sum(a: Point, b: Point) -> Point {
    std::array::from_fn(|k| a[k] + b[k])
}

#[device]
fn dot(a: Point, b: Point) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[device]
fn triple([ax, ay, az]: Point, [bx, by, bz]: Point, [cx, cy, cz]: Point) -> f64 {
    ax * (by * cz - cy * bz) + bx * (cy * az - ay * cz) + cx * (ay * bz - by * az)
}

#[device]
fn volume(p: &[Point; 8]) -> f64 {
    let d = |a: usize, b: usize| difference(p[a], p[b]);
    let first = triple(sum(d(3, 1), d(7, 2)), d(6, 3), d(2, 0));
    let second = triple(sum(d(4, 3), d(5, 7)), d(6, 4), d(7, 0));
    let third = triple(sum(d(1, 4), d(2, 5)), d(6, 1), d(5, 0));
    (first + second + third) / 12.0
}

/// The square of four times a face's area.
#[device]
fn face_area([a, b, c, d]: [Point; 4]) -> f64 {
    let (one, other) = (difference(c, a), difference(d, b));
    let (f, g) = (difference(one, other), sum(one, other));
    dot(f, f) * dot(g, g) - dot(f, g).powi(2)
}

#[kernel]
fn hexahedra(nodes: &[Point], elements: &[[u32; 8]], volumes: &mut [f64], lengths: &mut [f64]) {
    let i = global_id_x();
    let Some(corners) = elements.get(i).map(|e| e.map(|node| nodes[node as usize])) else {
        return;
    };
    let largest = FACES
        .iter()
        .map(|face| face_area(face.map(|k| corners[k])))
        .fold(0.0, f64::max);
    volumes[i] = volume(&corners);
    lengths[i] = 4.0 * volumes[i] / largest.sqrt();
}

#[test]
fn hexahedra_have_the_volume_of_their_jacobians() {
    let mut random = Random(93);
    let side = 5usize;
    let mut nodes = Vec::new();
    for z in 0..side {
        for y in 0..side {
            for x in 0..side {
                nodes.push([x, y, z].map(|k| k as f64 + random.between(-0.2, 0.2)));
            }
        }
    }
    let mut elements = Vec::new();
    for z in 0..side - 1 {
        for y in 0..side - 1 {
            for x in 0..side - 1 {
                let node = |dx, dy, dz| (((z + dz) * side + y + dy) * side + x + dx) as u32;
                let bottom = [node(0, 0, 0), node(1, 0, 0), node(1, 1, 0), node(0, 1, 0)];
                let [a, b, c, d] = bottom;
                let up = (side * side) as u32;
                elements.push([a, b, c, d, a + up, b + up, c + up, d + up]);
            }
        }
    }
    let signs = [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1]];
    let sign = |corner: usize, k: usize| match (corner, k) {
        (4.., 2) => 1.0,
        (corner, k) => f64::from(signs[corner % 4][k]),
    };
    let (mut volumes, mut lengths) = (Vec::new(), Vec::new());
    for element in &elements {
        let p = element.map(|n| nodes[n as usize]);
        // Two points an axis integrate the determinant exactly.
        let mut volume = 0.0;
        for gauss in 0..8usize {
            let at = [0, 1, 2].map(|k| if gauss >> k & 1 == 1 { 1.0 } else { -1.0 } / 3f64.sqrt());
            let mut rows = [[0.0; 3]; 3];
            for (corner, place) in p.iter().enumerate() {
                for k in 0..3 {
                    let others = (0..3).filter(|m| *m != k);
                    let shape: f64 = others.map(|m| 1.0 + sign(corner, m) * at[m]).product();
                    for m in 0..3 {
                        rows[k][m] += sign(corner, k) / 8.0 * shape * place[m];
                    }
                }
            }
            volume += inner(rows[0], outer(rows[1], rows[2]));
        }
        // Four times the area of the parallelogram of the middles' differences.
        let area = |face: [usize; 4]| {
            let [a, b, c, d] = face.map(|k| p[k]);
            let cross = outer(minus(c, a), minus(d, b));
            2.0 * inner(cross, cross).sqrt()
        };
        volumes.push(volume);
        lengths.push(4.0 * volume / FACES.into_iter().map(area).fold(0.0, f64::max));
    }
    everywhere(|run| {
        let (nodes, elements) = (run.upload(&nodes), run.upload(&elements));
        let (v, l) = (run.zeros::<f64>(volumes.len()), run.zeros::<f64>(volumes.len()));
        let config = LaunchConfig::linear(volumes.len(), 64);
        run.launch(hexahedra::kernel(), config, args![&nodes, &elements, &v, &l]);
        run.near(&v, &volumes, 1e-12);
        run.near(&l, &lengths, 1e-12);
    });
}

// 94: miniFE's diffusion

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Mesh {
    cells: [u32; 3],
}

#[device]
impl Mesh {
    fn node(&self, x: u32, y: u32, z: u32) -> u32 {
        let [nx, ny, _] = self.cells;
        (z * (ny + 1) + y) * (nx + 1) + x
    }
}

const CORNERS: [[u32; 3]; 8] = [
    [0, 0, 0],
    [1, 0, 0],
    [1, 1, 0],
    [0, 1, 0],
    [0, 0, 1],
    [1, 0, 1],
    [1, 1, 1],
    [0, 1, 1],
];

type Matrix3 = [[f32; 3]; 3];

#[device]
fn reference_gradients(at: [f32; 3]) -> [[f32; 3]; 8] {
    CORNERS.map(|corner| {
        let signs = corner.map(|bit| if bit == 1 { 1.0 } else { -1.0 });
        let [x, y, z] = std::array::from_fn(|k| 1.0 + signs[k] * at[k]);
        [
            signs[0] * y * z / 8.0,
            signs[1] * x * z / 8.0,
            signs[2] * x * y / 8.0,
        ]
    })
}

/// The inverse and the determinant.
#[device]
fn inverse(m: &Matrix3) -> (Matrix3, f32) {
    let minor = |r: usize, c: usize| {
        let (r1, r2, c1, c2) = ((r + 1) % 3, (r + 2) % 3, (c + 1) % 3, (c + 2) % 3);
        m[r1][c1] * m[r2][c2] - m[r1][c2] * m[r2][c1]
    };
    let determinant = (0..3).map(|c| m[0][c] * minor(0, c)).sum::<f32>();
    let inverse = std::array::from_fn(|r| std::array::from_fn(|c| minor(c, r) / determinant));
    (inverse, determinant)
}

#[device]
fn element_matrix(places: &[[f32; 3]; 8]) -> [[f32; 8]; 8] {
    let mut matrix = [[0.0; 8]; 8];
    let gauss = 1.0 / 3f32.sqrt();
    for point in CORNERS {
        let shapes = reference_gradients(point.map(|bit| if bit == 1 { gauss } else { -gauss }));
        let mut jacobian = Matrix3::default();
        for (shape, place) in shapes.iter().zip(places) {
            for (row, slope) in jacobian.iter_mut().zip(shape) {
                for (entry, coordinate) in row.iter_mut().zip(place) {
                    *entry += slope * coordinate;
                }
            }
        }
        let (inverse, determinant) = inverse(&jacobian);
        let gradients =
            shapes.map(|shape| inverse.map(|row| row.iter().zip(shape).map(|(a, b)| a * b).sum::<f32>()));
        for (row, a) in matrix.iter_mut().zip(gradients) {
            for (entry, b) in row.iter_mut().zip(gradients) {
                *entry += determinant * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
            }
        }
    }
    matrix
}

#[kernel(block_size = (4, 4, 4))]
fn diffusion(mesh: Mesh, nodes: &[[f32; 3]], starts: &[u32], columns: &[u32], values: &mut [f32]) {
    let [x, y, z] = [global_id_x(), global_id_y(), global_id_z()].map(|k| k as u32);
    let [nx, ny, nz] = mesh.cells;
    if x >= nx || y >= ny || z >= nz {
        return;
    }
    let corners = CORNERS.map(|[dx, dy, dz]| mesh.node(x + dx, y + dy, z + dz));
    let matrix = element_matrix(&corners.map(|node| nodes[node as usize]));
    for (row, node) in matrix.iter().zip(corners) {
        let start = starts[node as usize] as usize;
        let filled = &columns[start..starts[node as usize + 1] as usize];
        for (value, column) in row.iter().zip(&corners) {
            let at = filled
                .binary_search(column)
                .expect("corners of an element are neighbours");
            atomic_add(&mut values[start + at], *value);
        }
    }
}

#[test]
fn diffusion_sums_the_elements_of_each_node() {
    let mut random = Random(94);
    let cells = [5u32, 3, 4];
    let side = cells.map(|n| n as usize + 1);
    let count = side.iter().product::<usize>();
    let spot = |node: usize| {
        [
            node % side[0],
            node / side[0] % side[1],
            node / (side[0] * side[1]),
        ]
    };
    let nodes: Vec<[f32; 3]> = (0..count)
        .map(|n| spot(n).map(|k| (k as f64 + random.between(-0.2, 0.2)) as f32))
        .collect();
    let (mut starts, mut columns) = (vec![0u32], Vec::new());
    for a in 0..count {
        let near = |b: &usize| spot(a).iter().zip(spot(*b)).all(|(p, q)| p.abs_diff(q) <= 1);
        columns.extend((0..count).filter(near).map(|b| b as u32));
        starts.push(columns.len() as u32);
    }
    let mut dense = vec![0.0f64; count * count];
    for element in 0..count {
        let low = spot(element);
        if (0..3).any(|k| low[k] + 1 == side[k]) {
            continue;
        }
        let corner = |c: usize| [low[0] + (c & 1), low[1] + (c >> 1 & 1), low[2] + (c >> 2)];
        let node = |c: usize| {
            let [x, y, z] = corner(c);
            (z * side[1] + y) * side[0] + x
        };
        let sign = |c: usize, k: usize| if c >> k & 1 == 1 { 1.0 } else { -1.0f64 };
        for gauss in 0..8 {
            let at = [0, 1, 2].map(|k| sign(gauss, k) / 3f64.sqrt());
            let slope = |c: usize, k: usize| {
                (0..3)
                    .filter(|m| *m != k)
                    .fold(sign(c, k) / 8.0, |s, m| s * (1.0 + sign(c, m) * at[m]))
            };
            let mut j = [[0.0; 3]; 3];
            for c in 0..8 {
                for k in 0..3 {
                    for m in 0..3 {
                        j[k][m] += slope(c, k) * f64::from(nodes[node(c)][m]);
                    }
                }
            }
            let columns = [outer(j[1], j[2]), outer(j[2], j[0]), outer(j[0], j[1])];
            let determinant = inner(j[0], columns[0]);
            let gradient = |c: usize| {
                let part = |m: usize| (0..3).map(|k| columns[k][m] * slope(c, k)).sum::<f64>() / determinant;
                [part(0), part(1), part(2)]
            };
            for a in 0..8 {
                for b in 0..8 {
                    dense[node(a) * count + node(b)] += determinant * inner(gradient(a), gradient(b));
                }
            }
        }
    }
    let mut expected = Vec::new();
    for a in 0..count {
        let row = &columns[starts[a] as usize..starts[a + 1] as usize];
        expected.extend(row.iter().map(|b| dense[a * count + *b as usize]));
    }
    everywhere(|run| {
        let (nodes, starts, columns) = (run.upload(&nodes), run.upload(&starts), run.upload(&columns));
        let values = run.zeros::<f32>(expected.len());
        run.launch(
            diffusion::kernel(),
            LaunchConfig::new((2, 1, 1), (4, 4, 4)),
            args![Mesh { cells }, &nodes, &starts, &columns, &values],
        );
        run.near(&values, &expected, 1e-4);
    });
}
