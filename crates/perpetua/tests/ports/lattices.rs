//! Solids: triangles to voxels, Catmull and Clark's subdivision, rays through a volume, a growing crystal.

use std::collections::HashMap;
use std::ops::{Add, Mul, RangeInclusive, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

/// From `low` to `high`.
fn between(random: &mut Random, low: f32, high: f32) -> f32 {
    low + (high - low) * ((random.bits() >> 40) as f32 / 16_777_216.0)
}

// 256: triangles to voxels

#[device]
fn minus(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}

#[device]
fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a.iter().zip(&b).map(|(a, b)| a * b).sum()
}

/// An edge's line in one of three planes: inside is where `a * x + b * y + c` is not negative.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Line {
    a: f32,
    b: f32,
    c: f32,
}

/// What a triangle asks of a unit cube.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Test {
    normal: [f32; 3],
    planes: [f32; 2],
    lines: [[Line; 3]; 3],
}

#[device]
impl Test {
    fn new(corners: [[f32; 3]; 3]) -> Self {
        let [p, q, r] = corners;
        let edges = [minus(q, p), minus(r, q), minus(p, r)];
        let [u, v, _] = edges;
        let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        let far: [f32; 3] = normal.map(|n| if n > 0.0 { 1.0 } else { 0.0 });
        let near = far.map(|c| 1.0 - c);
        let lines = [[0, 1, 2], [1, 2, 0], [2, 0, 1]].map(|[x, y, z]: [usize; 3]| {
            let sign = if normal[z] < 0.0 { -1.0 } else { 1.0 };
            std::array::from_fn(|k| {
                let (a, b) = (-sign * edges[k][y], sign * edges[k][x]);
                Line { a, b, c: a.max(0.0) + b.max(0.0) - a * corners[k][x] - b * corners[k][y] }
            })
        });
        Test { normal, planes: [dot(normal, minus(far, p)), dot(normal, minus(near, p))], lines }
    }

    fn touches(&self, cube: [f32; 3]) -> bool {
        let height = dot(self.normal, cube);
        if (height + self.planes[0]) * (height + self.planes[1]) > 0.0 {
            return false;
        }
        self.lines.iter().enumerate().all(|(k, lines)| {
            let (x, y) = (cube[k], cube[(k + 1) % 3]);
            lines.iter().all(|line| line.a * x + line.b * y + line.c >= 0.0)
        })
    }
}

/// The cells that a triangle's box reaches along an axis.
#[device]
fn reached([p, q, r]: [[f32; 3]; 3], size: [i32; 3], axis: usize) -> RangeInclusive<i32> {
    let low = p[axis].min(q[axis]).min(r[axis]).ceil() as i32 - 1;
    let high = p[axis].max(q[axis]).max(r[axis]).floor() as i32;
    low.max(0)..=high.min(size[axis] - 1)
}

#[kernel]
fn voxels(size: [i32; 3], triangles: &[[[f32; 3]; 3]], bits: &mut [u32], count: &mut u32) {
    let Some(corners) = triangles.get(global_id_x()).copied() else {
        return;
    };
    let test = Test::new(corners);
    for z in reached(corners, size, 2) {
        for y in reached(corners, size, 1) {
            for x in reached(corners, size, 0) {
                if !test.touches([x, y, z].map(|n| n as f32)) {
                    continue;
                }
                let i = ((z * size[1] + y) * size[0] + x) as usize;
                let bit = 1 << (i % 32);
                if atomic_or(&mut bits[i / 32], bit) & bit == 0 {
                    atomic_add(count, 1);
                }
            }
        }
    }
}

/// Whether an axis separates a triangle from a cube around the origin, in whole numbers.
fn separates(axis: [i64; 3], corners: &[[i64; 3]; 3], half: i64) -> bool {
    let places = corners.map(|c| (0..3).map(|k| c[k] * axis[k]).sum::<i64>());
    let reach: i64 = axis.iter().map(|a| half * a.abs()).sum();
    places.iter().all(|p| *p > reach) || places.iter().all(|p| *p < -reach)
}

#[test]
fn voxels_are_those_that_triangles_touch() {
    let mut random = Random(256);
    let size = [21u32, 17, 12];
    // In quarters, so that `f32` computes exactly.
    let triangles: Vec<[[i64; 3]; 3]> = (0..37)
        .map(|_| {
            let first: [i64; 3] = std::array::from_fn(|k| (random.bits() % (4 * u64::from(size[k]))) as i64);
            std::array::from_fn(|_| std::array::from_fn(|k| first[k] + (random.bits() % 15) as i64 - 7))
        })
        .collect();
    let mut expected = vec![0u32; (size.iter().product::<u32>() as usize).div_ceil(32)];
    for corners in &triangles {
        for i in 0..size.iter().product::<u32>() {
            let cube = [i % size[0], i / size[0] % size[1], i / size[0] / size[1]];
            // In eighths, from the cube's centre.
            let relative = corners.map(|c| std::array::from_fn::<i64, 3, _>(|k| 2 * c[k] - 8 * i64::from(cube[k]) - 4));
            let edge = |a: usize| std::array::from_fn::<i64, 3, _>(|k| relative[(a + 1) % 3][k] - relative[a][k]);
            let cross = |u: [i64; 3], v: [i64; 3]| {
                [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
            };
            let units = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
            let mut axes = vec![cross(edge(0), edge(1))];
            axes.extend(units);
            axes.extend((0..9).map(|k| cross(units[k / 3], edge(k % 3))));
            if !axes.into_iter().any(|axis| separates(axis, &relative, 4)) {
                expected[i as usize / 32] |= 1 << (i % 32);
            }
        }
    }
    let total: u32 = expected.iter().map(|word| word.count_ones()).sum();
    let input: Vec<[[f32; 3]; 3]> = triangles.iter().map(|t| t.map(|c| c.map(|v| v as f32 / 4.0))).collect();
    everywhere(|run| {
        let (list, bits, count) = (run.upload(&input), run.zeros::<u32>(expected.len()), run.zeros::<u32>(1));
        run.launch(voxels::kernel(), LaunchConfig::linear(input.len(), 16), args![size.map(|n| n as i32), &list, &bits, &count]);
        run.holds(&bits, &expected);
        run.holds(&count, &[total]);
    });
}

// 257: Catmull and Clark's subdivision on halfedges

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Halfedge {
    /// Negative at a border.
    twin: i32,
    next: u32,
    prev: u32,
    vertex: u32,
    edge: u32,
    face: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Counts {
    vertices: u32,
    edges: u32,
    faces: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
    z: f32,
}

#[device]
impl Halfedge {
    fn twin(&self) -> Option<u32> {
        u32::try_from(self.twin).ok()
    }

    /// Which half of its edge begins at its vertex.
    fn half(&self, own: u32) -> u32 {
        2 * self.edge + u32::from(self.twin > own as i32)
    }
}

#[device]
impl Counts {
    fn face_point(&self, face: u32) -> u32 {
        self.vertices + face
    }

    fn edge_point(&self, edge: u32) -> u32 {
        self.vertices + self.faces + edge
    }
}

#[device]
impl Add for Point {
    type Output = Point;

    fn add(self, other: Point) -> Point {
        Point { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

#[device]
impl Sub for Point {
    type Output = Point;

    fn sub(self, other: Point) -> Point {
        Point { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}

#[device]
impl Mul<f32> for Point {
    type Output = Point;

    fn mul(self, by: f32) -> Point {
        Point { x: self.x * by, y: self.y * by, z: self.z * by }
    }
}

/// Each halfedge becomes the four of a quadrilateral, which begins at the halfedge's vertex.
#[kernel]
fn halfedges(counts: Counts, coarse: &[Halfedge], fine: &mut [Halfedge]) {
    let h = global_id_x() as u32;
    let Some(own) = coarse.get(h as usize) else {
        return;
    };
    let before = coarse[own.prev as usize];
    let quad = [
        (
            own.twin().map(|twin| 4 * coarse[twin as usize].next + 3),
            own.vertex,
            own.half(h),
        ),
        (Some(4 * own.next + 2), counts.edge_point(own.edge), 2 * counts.edges + h),
        (Some(4 * own.prev + 1), counts.face_point(own.face), 2 * counts.edges + own.prev),
        (
            before.twin().map(|twin| 4 * twin),
            counts.edge_point(before.edge),
            before.half(own.prev) ^ 1,
        ),
    ];
    let first = 4 * h;
    let places = &mut fine[first as usize..][..4];
    for (k, (place, (twin, vertex, edge))) in places.iter_mut().zip(quad).enumerate() {
        let k = k as u32;
        *place = Halfedge {
            twin: twin.map_or(-1, |twin| twin as i32),
            next: first + (k + 1) % 4,
            prev: first + (k + 3) % 4,
            vertex,
            edge,
            face: h,
        };
    }
}

#[device]
fn add_to(points: &mut [Point], at: u32, part: Point) {
    let place = &mut points[at as usize];
    atomic_add(&mut place.x, part.x);
    atomic_add(&mut place.y, part.y);
    atomic_add(&mut place.z, part.z);
}

/// How many halfedges follow one another until the first comes again.
#[device]
fn turn(first: u32, next: impl Fn(u32) -> u32) -> u32 {
    let mut count = 1;
    let mut at = next(first);
    while at != first {
        at = next(at);
        count += 1;
    }
    count
}

#[kernel]
fn face_points(counts: Counts, mesh: &[Halfedge], old: &[Point], new: &mut [Point]) {
    let h = global_id_x();
    if let Some(own) = mesh.get(h) {
        let corners = turn(h as u32, |at| mesh[at as usize].next);
        add_to(new, counts.face_point(own.face), old[own.vertex as usize] * (corners as f32).recip());
    }
}

#[kernel]
fn edge_points(counts: Counts, mesh: &[Halfedge], old: &[Point], new: &mut [Point]) {
    if let Some(own) = mesh.get(global_id_x()) {
        let face = new[counts.face_point(own.face) as usize];
        add_to(new, counts.edge_point(own.edge), (face + old[own.vertex as usize]) * 0.25);
    }
}

/// Of meshes without a border.
#[kernel]
fn vertex_points(counts: Counts, mesh: &[Halfedge], old: &[Point], new: &mut [Point]) {
    let h = global_id_x();
    if let Some(own) = mesh.get(h) {
        let valence = turn(h as u32, |at| {
            let twin = mesh[at as usize].twin().unwrap();
            mesh[twin as usize].next
        }) as f32;
        let (face, edge) = (new[counts.face_point(own.face) as usize], new[counts.edge_point(own.edge) as usize]);
        let sum = edge * 4.0 - face + old[own.vertex as usize] * (valence - 3.0);
        add_to(new, own.vertex, sum * (valence * valence).recip());
    }
}

/// Halfedges of faces that name their vertices.
fn mesh_of(faces: &[Vec<u32>]) -> (Vec<Halfedge>, u32) {
    let mut mesh = vec![];
    for (face, corners) in faces.iter().enumerate() {
        let (first, n) = (mesh.len() as u32, corners.len() as u32);
        for k in 0..n {
            mesh.push(Halfedge {
                twin: -1,
                next: first + (k + 1) % n,
                prev: first + (k + n - 1) % n,
                vertex: corners[k as usize],
                edge: u32::MAX,
                face: face as u32,
            });
        }
    }
    let ends = |mesh: &[Halfedge], h: usize| (mesh[h].vertex, mesh[mesh[h].next as usize].vertex);
    let known: HashMap<(u32, u32), usize> = (0..mesh.len()).map(|h| (ends(&mesh, h), h)).collect();
    let mut edges = 0;
    for h in 0..mesh.len() {
        let (a, b) = ends(&mesh, h);
        let twin = known.get(&(b, a)).copied();
        mesh[h].twin = twin.map_or(-1, |t| t as i32);
        mesh[h].edge = match twin {
            Some(t) if t < h => mesh[t].edge,
            _ => {
                edges += 1;
                edges - 1
            }
        };
    }
    (mesh, edges)
}

/// A finer mesh is made of a coarser one's faces, edges and vertices.
fn check_refined(counts: Counts, coarse: &[Halfedge], fine: &[Halfedge]) {
    let faces: Vec<Vec<u32>> = coarse
        .iter()
        .map(|h| {
            let edge_at = counts.vertices + counts.faces;
            vec![h.vertex, edge_at + h.edge, counts.vertices + h.face, edge_at + coarse[h.prev as usize].edge]
        })
        .collect();
    let (expected, edges) = mesh_of(&faces);
    assert_eq!(edges, 2 * counts.edges + coarse.len() as u32);
    let mut names = HashMap::new();
    for (found, wanted) in fine.iter().zip(&expected) {
        // Edges may have other numbers, but one for one.
        assert_eq!(Halfedge { edge: wanted.edge, ..*found }, *wanted);
        assert!(found.edge < edges);
        assert_eq!(*names.entry(found.edge).or_insert(wanted.edge), wanted.edge);
    }
    assert_eq!(names.len(), edges as usize);
}

/// Catmull and Clark's rules, gathered by each point.
fn refined_points(counts: Counts, mesh: &[Halfedge], old: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let mean = |points: &[[f64; 3]]| -> [f64; 3] {
        std::array::from_fn(|k| points.iter().map(|p| p[k]).sum::<f64>() / points.len() as f64)
    };
    let start = |h: &Halfedge| old[h.vertex as usize];
    let end = |h: &Halfedge| old[mesh[h.next as usize].vertex as usize];
    let faces: Vec<[f64; 3]> = (0..counts.faces)
        .map(|f| mean(&mesh.iter().filter(|h| h.face == f).map(start).collect::<Vec<_>>()))
        .collect();
    let edges: Vec<[f64; 3]> = (0..counts.edges)
        .map(|e| {
            let sides = mesh.iter().filter(|h| h.edge == e);
            mean(&sides.flat_map(|h| [start(h), faces[h.face as usize]]).collect::<Vec<_>>())
        })
        .collect();
    let mut points: Vec<[f64; 3]> = (0..counts.vertices)
        .map(|v| {
            let around: Vec<&Halfedge> = mesh.iter().filter(|h| h.vertex == v).collect();
            let n = around.len() as f64;
            let q = mean(&around.iter().map(|h| faces[h.face as usize]).collect::<Vec<_>>());
            let r = mean(&around.iter().map(|h| mean(&[start(h), end(h)])).collect::<Vec<_>>());
            std::array::from_fn(|k| (q[k] + 2.0 * r[k] + (n - 3.0) * old[v as usize][k]) / n)
        })
        .collect();
    points.extend(faces);
    points.extend(edges);
    points
}

#[test]
fn halfedges_are_refined_twice() {
    // A prism with seven sides, and a strip with a border.
    let sides = 7u32;
    let mut faces: Vec<Vec<u32>> = (0..sides).map(|k| vec![k, (k + 1) % sides, sides + (k + 1) % sides, sides + k]).collect();
    faces.push((0..sides).rev().collect());
    faces.push((sides..2 * sides).collect());
    let strip = vec![vec![0, 1, 4, 3], vec![1, 2, 5, 4], vec![3, 4, 6]];
    let (prism, edges) = mesh_of(&faces);
    let counts = Counts { vertices: 2 * sides, edges, faces: faces.len() as u32 };
    let finer = Counts {
        vertices: counts.vertices + counts.edges + counts.faces,
        edges: 2 * counts.edges + prism.len() as u32,
        faces: prism.len() as u32,
    };
    let (open, open_edges) = mesh_of(&strip);
    let open_counts = Counts { vertices: 7, edges: open_edges, faces: 3 };

    let mut random = Random(257);
    let places: Vec<[f32; 3]> = (0..2 * sides).map(|_| std::array::from_fn(|_| between(&mut random, -2.0, 2.0))).collect();
    let start: Vec<Point> = places.iter().map(|[x, y, z]| Point { x: *x, y: *y, z: *z }).collect();
    let exact: Vec<[f64; 3]> = places.iter().map(|p| p.map(f64::from)).collect();

    everywhere(|run| {
        let rough = run.upload(&open);
        let fine = run.zeros::<Halfedge>(4 * open.len());
        run.launch(halfedges::kernel(), LaunchConfig::linear(open.len(), 32), args![open_counts, &rough, &fine]);
        check_refined(open_counts, &open, &run.read(&fine));

        let (mut mesh, mut points) = (prism.clone(), exact.clone());
        let (mut buffer, mut old) = (run.upload(&prism), run.upload(&start));
        for level in [counts, finer] {
            let n = mesh.len();
            let fine = run.zeros::<Halfedge>(4 * n);
            run.launch(halfedges::kernel(), LaunchConfig::linear(n, 32), args![level, &buffer, &fine]);
            let next = run.read(&fine);
            check_refined(level, &mesh, &next);

            let all = (level.vertices + level.edges + level.faces) as usize;
            let numbers = run.zeros::<f32>(3 * all);
            let new = numbers.clone().cast::<Point>().unwrap();
            for kernel in [face_points::kernel(), edge_points::kernel(), vertex_points::kernel()] {
                run.launch(kernel, LaunchConfig::linear(n, 32), args![level, &buffer, &old, &new]);
            }
            points = refined_points(level, &mesh, &points);
            // Means of numbers of up to 2, added in any order.
            run.near(&numbers, &points.concat(), 1e-5);
            (mesh, buffer, old) = (next, fine, new);
        }
    });
}

// 258: rays through a volume

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Scanner {
    source: [f32; 3],
    corner: [f32; 3],
    column: [f32; 3],
    row: [f32; 3],
    size: [u32; 3],
}

/// A ray from the source, whose other end is at 1.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Ray {
    from: [f32; 3],
    along: [f32; 3],
}

#[device]
impl Ray {
    /// Where it enters a box of cells and where it leaves that.
    fn clipped(&self, size: [u32; 3]) -> Option<(f32, f32)> {
        let (mut enter, mut leave) = (0.0f32, 1.0f32);
        for k in 0..3 {
            let (from, along, end) = (self.from[k], self.along[k], size[k] as f32);
            if along == 0.0 {
                if from <= 0.0 || from >= end {
                    return None;
                }
                continue;
            }
            let (a, b) = (-from / along, (end - from) / along);
            enter = enter.max(a.min(b));
            leave = leave.min(a.max(b));
        }
        (enter < leave).then_some((enter, leave))
    }

    /// Where it leaves a cell along an axis.
    fn end_of(&self, cell: i32, axis: usize) -> f32 {
        let along = self.along[axis];
        if along == 0.0 {
            return f32::INFINITY;
        }
        let plane = if along > 0.0 { cell + 1 } else { cell };
        (plane as f32 - self.from[axis]) / along
    }

    fn integral(&self, size: [u32; 3], volume: &[f32]) -> Option<f32> {
        let (enter, leave) = self.clipped(size)?;
        let mut cell: [i32; 3] = std::array::from_fn(|k| {
            let place = (self.from[k] + enter * self.along[k]).floor() as i32;
            place.clamp(0, size[k] as i32 - 1)
        });
        let (mut at, mut sum) = (enter, 0.0);
        while at < leave {
            let ends: [f32; 3] = std::array::from_fn(|k| self.end_of(cell[k], k));
            let (axis, end) = ends.into_iter().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
            let [x, y, z] = cell.map(|c| c as usize);
            let value = volume[(z * size[1] as usize + y) * size[0] as usize + x];
            sum += (end.min(leave) - at) * value;
            at = end;
            cell[axis] += if self.along[axis] > 0.0 { 1 } else { -1 };
            if cell[axis] < 0 || cell[axis] >= size[axis] as i32 {
                break;
            }
        }
        let length = self.along.iter().map(|a| a * a).sum::<f32>().sqrt();
        Some(sum * length)
    }
}

#[kernel]
fn siddon(scanner: Scanner, columns: usize, volume: &[f32], sums: &mut [f32]) {
    let (u, v) = (global_id_x(), global_id_y());
    if u >= columns {
        return;
    }
    let Some(sum) = sums.get_mut(v * columns + u) else {
        return;
    };
    let Scanner { source, corner, column, row, size } = scanner;
    let along = std::array::from_fn(|k| corner[k] + u as f32 * column[k] + v as f32 * row[k] - source[k]);
    *sum = Ray { from: source, along }.integral(size, volume).unwrap_or(0.0);
}

#[test]
fn siddon_integrates_along_rays() {
    let mut random = Random(258);
    let (columns, rows) = (21usize, 19usize);
    let size = [11u32, 9, 13];
    let volume: Vec<f32> = (0..size.iter().product::<u32>()).map(|_| between(&mut random, 0.0, 1.0)).collect();
    // Some rays keep to one row, or one layer, of cells.
    let scanner = Scanner {
        source: [-20.0, 4.5, 5.25],
        corner: [31.0, -9.0, -6.0],
        column: [0.125, 1.5, 0.0],
        row: [0.0, 0.0, 1.125],
        size,
    };
    let mut expected = vec![];
    for v in 0..rows {
        for u in 0..columns {
            let s = scanner.source.map(f64::from);
            let d: [f64; 3] = std::array::from_fn(|k| {
                let end = f64::from(scanner.corner[k]) + u as f64 * f64::from(scanner.column[k]) + v as f64 * f64::from(scanner.row[k]);
                end - s[k]
            });
            // All planes that the ray crosses, in order; then the cell of the middle of each piece.
            let mut cuts = vec![0.0, 1.0];
            for k in (0..3).filter(|k| d[*k] != 0.0) {
                cuts.extend((0..=size[k]).map(|plane| (f64::from(plane) - s[k]) / d[k]).filter(|a| *a > 0.0 && *a < 1.0));
            }
            cuts.sort_by(f64::total_cmp);
            let mut sum = 0.0;
            for piece in cuts.windows(2) {
                let middle = (piece[0] + piece[1]) / 2.0;
                let cell: [i64; 3] = std::array::from_fn(|k| (s[k] + middle * d[k]).floor() as i64);
                if (0..3).all(|k| cell[k] >= 0 && cell[k] < i64::from(size[k])) {
                    let [x, y, z] = cell.map(|c| c as usize);
                    sum += (piece[1] - piece[0]) * f64::from(volume[(z * size[1] as usize + y) * size[0] as usize + x]);
                }
            }
            expected.push(sum * d.iter().map(|x| x * x).sum::<f64>().sqrt());
        }
    }
    assert!(expected.iter().filter(|sum| **sum > 1.0).count() > 100);
    everywhere(|run| {
        let (cells, out) = (run.upload(&volume), run.zeros::<f32>(expected.len()));
        let config = LaunchConfig::tiled(columns as u32, rows as u32, (16, 4));
        run.launch(siddon::kernel(), config, args![scanner, columns, &cells, &out]);
        // Some thirty planes, each off by 1e-7 of rays that are 60 long.
        run.near(&out, &expected, 3e-4);
    });
}

// 260: a growing crystal

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Melt {
    dt: f32,
    tau: f32,
    width: f32,
    epsilon: f32,
    lambda: f32,
    diffusion: f32,
}

#[device]
impl Melt {
    /// How strong the surface is in this direction, and how that grows with the gradient, times the gradient's square.
    fn surface(&self, gradient: [f32; 3]) -> (f32, [f32; 3]) {
        let [squares, fourths] = gradient.iter().fold([0.0, 0.0], |[s, f], g| {
            let square = g * g;
            [s + square, f + square * square]
        });
        if squares <= 1e-12 {
            return (1.0, [0.0; 3]);
        }
        let ratio = fourths / (squares * squares);
        let strength = 1.0 + self.epsilon * (4.0 * ratio - 3.0);
        (strength, gradient.map(|g| 16.0 * self.epsilon * g * (g * g / squares - ratio)))
    }
}

#[kernel(edge = clamp)]
fn dendrite_forces(
    at: volume::GridPos,
    melt: Melt,
    phase: &[f32],
    x: &mut [f32],
    y: &mut [f32],
    z: &mut [f32],
    strengths: &mut [f32],
) {
    let gradient = [
        0.5 * (at.east(phase) - at.west(phase)),
        0.5 * (at.south(phase) - at.north(phase)),
        0.5 * (at.at(phase, 0, 0, 1) - at.at(phase, 0, 0, -1)),
    ];
    let (strength, turn) = melt.surface(gradient);
    let square = melt.width * melt.width;
    let [fx, fy, fz]: [f32; 3] = std::array::from_fn(|k| square * strength * (strength * gradient[k] + turn[k]));
    let i = at.idx();
    x[i] = fx;
    y[i] = fy;
    z[i] = fz;
    strengths[i] = strength;
}

#[kernel(edge = clamp)]
fn dendrite(
    at: volume::GridPos,
    melt: Melt,
    x: &[f32],
    y: &[f32],
    z: &[f32],
    strengths: &[f32],
    phase: &[f32],
    heat: &[f32],
    next: &mut [f32],
) {
    let spread = 0.5 * (at.east(x) - at.west(x) + at.south(y) - at.north(y) + at.at(z, 0, 0, 1) - at.at(z, 0, 0, -1));
    let (p, strength) = (at.center(phase), at.center(strengths));
    let rest = 1.0 - p * p;
    let driven = p * rest - melt.lambda * at.center(heat) * rest * rest;
    next[at.idx()] = p + melt.dt / (melt.tau * strength * strength) * (spread + driven);
}

/// Heat spreads, and what freezes gives off some.
#[kernel(edge = clamp)]
fn dendrite_heat(at: volume::GridPos, melt: Melt, before: &[f32], after: &[f32], heat: &[f32], next: &mut [f32]) {
    let around = at.east(heat) + at.west(heat) + at.north(heat) + at.south(heat) + at.up(heat) + at.down(heat);
    let u = at.center(heat);
    let frozen = at.center(after) - at.center(before);
    next[at.idx()] = u + melt.dt * melt.diffusion * (around - 6.0 * u) + 0.5 * frozen;
}

#[test]
fn dendrite_grows() {
    let mut random = Random(260);
    let (w, h, d, steps) = (17usize, 12usize, 11usize, 2);
    let n = w * h * d;
    let melt = Melt { dt: 0.04, tau: 1.0, width: 1.1, epsilon: 0.06, lambda: 3.2, diffusion: 1.5 };
    let phase: Vec<f32> = (0..n)
        .map(|i| {
            let [x, y, z] = [i % w, i / w % h, i / w / h].map(|c| c as f32);
            let r = ((x - 7.3).powi(2) + (y - 5.1).powi(2) + (z - 4.8).powi(2)).sqrt();
            ((3.5 - r) / 1.5).tanh() * between(&mut random, 0.9, 1.0)
        })
        .collect();
    let heat: Vec<f32> = (0..n).map(|_| between(&mut random, -0.6, -0.3)).collect();

    let [dt, tau, width] = [melt.dt, melt.tau, melt.width].map(f64::from);
    let [eps, lambda, diffusion] = [melt.epsilon, melt.lambda, melt.diffusion].map(f64::from);
    // The cell so far away along an axis, or the last one before the edge.
    let beside = |i: usize, axis: usize, by: isize| {
        let mut place = [i % w, i / w % h, i / w / h];
        place[axis] = place[axis].saturating_add_signed(by).min([w, h, d][axis] - 1);
        (place[2] * h + place[1]) * w + place[0]
    };
    let mut p: Vec<f64> = phase.iter().map(|v| f64::from(*v)).collect();
    let mut u: Vec<f64> = heat.iter().map(|v| f64::from(*v)).collect();
    for _ in 0..steps {
        let mut forces = vec![[0.0f64; 3]; n];
        let mut times = vec![0.0; n];
        for i in 0..n {
            let g: [f64; 3] = std::array::from_fn(|k| (p[beside(i, k, 1)] - p[beside(i, k, -1)]) / 2.0);
            let s2: f64 = g.iter().map(|x| x.powi(2)).sum();
            let s4: f64 = g.iter().map(|x| x.powi(4)).sum();
            let some = s2 > 1e-12;
            let a = if some { 1.0 - 3.0 * eps + 4.0 * eps * s4 / (s2 * s2) } else { 1.0 };
            for k in 0..3 {
                // The slope of the width by this part of the gradient.
                let slope = if some { 16.0 * width * eps * (g[k].powi(3) / s2.powi(2) - g[k] * s4 / s2.powi(3)) } else { 0.0 };
                forces[i][k] = (width * a).powi(2) * g[k] + s2 * width * a * slope;
            }
            times[i] = tau * a * a;
        }
        let (old_p, old_u) = (p.clone(), u.clone());
        for i in 0..n {
            let mut spread = 0.0;
            let mut flow = 0.0;
            for k in 0..3 {
                let (ahead, behind) = (beside(i, k, 1), beside(i, k, -1));
                spread += (forces[ahead][k] - forces[behind][k]) / 2.0;
                flow += old_u[ahead] + old_u[behind] - 2.0 * old_u[i];
            }
            let v = old_p[i];
            let change = dt / times[i] * (spread + v * (1.0 - v * v) - lambda * old_u[i] * (1.0 - v * v).powi(2));
            p[i] = v + change;
            u[i] = old_u[i] + dt * diffusion * flow + change / 2.0;
        }
    }
    everywhere(|run| {
        let (mut now, mut warm) = (run.upload(&phase), run.upload(&heat));
        let [x, y, z, strengths] = std::array::from_fn(|_| run.zeros::<f32>(n));
        let (width, height, depth) = (w as u32, h as u32, d as u32);
        let config = || LaunchConfig::volume((width, height, depth).into(), (8, 4, 2).into());
        for _ in 0..steps {
            let (next, warmer) = (run.zeros::<f32>(n), run.zeros::<f32>(n));
            run.launch(
                dendrite_forces::kernel(),
                config(),
                args![melt, &now, &x, &y, &z, &strengths, width, height, depth],
            );
            run.launch(
                dendrite::kernel(),
                config(),
                args![melt, &x, &y, &z, &strengths, &now, &warm, &next, width, height, depth],
            );
            run.launch(
                dendrite_heat::kernel(),
                config(),
                args![melt, &now, &next, &warm, &warmer, width, height, depth],
            );
            (now, warm) = (next, warmer);
        }
        // Numbers of about one; a slope is off by 1e-7, and its direction by that through its length.
        run.near(&now, &p, 5e-5);
        run.near(&warm, &u, 5e-5);
    });
}
