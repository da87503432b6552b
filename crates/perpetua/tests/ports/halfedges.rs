//! Catmull and Clark's subdivision of surfaces.

use std::collections::HashMap;
use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
        Point {
            x: self.x + other.x,
            y: self.y + other.y,
            z: self.z + other.z,
        }
    }
}

#[device]
impl Sub for Point {
    type Output = Point;

    fn sub(self, other: Point) -> Point {
        Point {
            x: self.x - other.x,
            y: self.y - other.y,
            z: self.z - other.z,
        }
    }
}

#[device]
impl Mul<f32> for Point {
    type Output = Point;

    fn mul(self, by: f32) -> Point {
        Point {
            x: self.x * by,
            y: self.y * by,
            z: self.z * by,
        }
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
        (
            Some(4 * own.next + 2),
            counts.edge_point(own.edge),
            2 * counts.edges + h,
        ),
        (
            Some(4 * own.prev + 1),
            counts.face_point(own.face),
            2 * counts.edges + own.prev,
        ),
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
        add_to(
            new,
            counts.face_point(own.face),
            old[own.vertex as usize] * (corners as f32).recip(),
        );
    }
}

#[kernel]
fn edge_points(counts: Counts, mesh: &[Halfedge], old: &[Point], new: &mut [Point]) {
    if let Some(own) = mesh.get(global_id_x()) {
        let face = new[counts.face_point(own.face) as usize];
        add_to(
            new,
            counts.edge_point(own.edge),
            (face + old[own.vertex as usize]) * 0.25,
        );
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
        let (face, edge) = (
            new[counts.face_point(own.face) as usize],
            new[counts.edge_point(own.edge) as usize],
        );
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
            vec![
                h.vertex,
                edge_at + h.edge,
                counts.vertices + h.face,
                edge_at + coarse[h.prev as usize].edge,
            ]
        })
        .collect();
    let (expected, edges) = mesh_of(&faces);
    assert_eq!(edges, 2 * counts.edges + coarse.len() as u32);
    let mut names = HashMap::new();
    for (found, wanted) in fine.iter().zip(&expected) {
        // Edges may have other numbers, but one for one.
        assert_eq!(
            Halfedge {
                edge: wanted.edge,
                ..*found
            },
            *wanted
        );
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
            mean(
                &sides
                    .flat_map(|h| [start(h), faces[h.face as usize]])
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    let mut points: Vec<[f64; 3]> = (0..counts.vertices)
        .map(|v| {
            let around: Vec<&Halfedge> = mesh.iter().filter(|h| h.vertex == v).collect();
            let n = around.len() as f64;
            let q = mean(&around.iter().map(|h| faces[h.face as usize]).collect::<Vec<_>>());
            let r = mean(
                &around
                    .iter()
                    .map(|h| mean(&[start(h), end(h)]))
                    .collect::<Vec<_>>(),
            );
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
    let mut faces: Vec<Vec<u32>> = (0..sides)
        .map(|k| vec![k, (k + 1) % sides, sides + (k + 1) % sides, sides + k])
        .collect();
    faces.push((0..sides).rev().collect());
    faces.push((sides..2 * sides).collect());
    let strip = vec![vec![0, 1, 4, 3], vec![1, 2, 5, 4], vec![3, 4, 6]];
    let (prism, edges) = mesh_of(&faces);
    let counts = Counts {
        vertices: 2 * sides,
        edges,
        faces: faces.len() as u32,
    };
    let finer = Counts {
        vertices: counts.vertices + counts.edges + counts.faces,
        edges: 2 * counts.edges + prism.len() as u32,
        faces: prism.len() as u32,
    };
    let (open, open_edges) = mesh_of(&strip);
    let open_counts = Counts {
        vertices: 7,
        edges: open_edges,
        faces: 3,
    };

    let mut random = Random(257);
    let places: Vec<[f32; 3]> = (0..2 * sides)
        .map(|_| std::array::from_fn(|_| random.within(-2.0, 2.0)))
        .collect();
    let start: Vec<Point> = places
        .iter()
        .map(|[x, y, z]| Point { x: *x, y: *y, z: *z })
        .collect();
    let exact: Vec<[f64; 3]> = places.iter().map(|p| p.map(f64::from)).collect();

    everywhere(|run| {
        let rough = run.upload(&open);
        let fine = run.zeros::<Halfedge>(4 * open.len());
        run.launch(
            halfedges::kernel(),
            LaunchConfig::linear(open.len(), 32),
            args![open_counts, &rough, &fine],
        );
        check_refined(open_counts, &open, &run.read(&fine));

        let (mut mesh, mut points) = (prism.clone(), exact.clone());
        let (mut buffer, mut old) = (run.upload(&prism), run.upload(&start));
        for level in [counts, finer] {
            let n = mesh.len();
            let fine = run.zeros::<Halfedge>(4 * n);
            run.launch(
                halfedges::kernel(),
                LaunchConfig::linear(n, 32),
                args![level, &buffer, &fine],
            );
            let next = run.read(&fine);
            check_refined(level, &mesh, &next);

            let all = (level.vertices + level.edges + level.faces) as usize;
            let numbers = run.zeros::<f32>(3 * all);
            let new = numbers.clone().cast::<Point>().unwrap();
            for kernel in [
                face_points::kernel(),
                edge_points::kernel(),
                vertex_points::kernel(),
            ] {
                run.launch(
                    kernel,
                    LaunchConfig::linear(n, 32),
                    args![level, &buffer, &old, &new],
                );
            }
            points = refined_points(level, &mesh, &points);
            // Means of numbers of up to 2, added in any order.
            run.near(&numbers, &points.concat(), 1e-5);
            (mesh, buffer, old) = (next, fine, new);
        }
    });
}
