//! Faces, paths and edges on grids of pixels.

use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[device]
impl Point {
    fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }

    fn dot(self, other: Self) -> f32 {
        self.x * other.x + self.y * other.y
    }

    /// Twice the area of the triangle with the origin.
    fn wedge(self, other: Self) -> f32 {
        self.x * other.y - self.y * other.x
    }
}

#[device]
impl Add for Point {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }
}

#[device]
impl Sub for Point {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y)
    }
}

#[device]
impl Mul<f32> for Point {
    type Output = Self;

    fn mul(self, by: f32) -> Self {
        Self::new(self.x * by, self.y * by)
    }
}

// 140: PyTorch3D's rasterizer

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Face {
    corners: [Point; 3],
    depths: [f32; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Hit {
    face: i32,
    depth: f32,
    /// To the face's edge; negative inside.
    distance: f32,
    weights: [f32; 3],
}

#[device]
impl Hit {
    const NONE: Hit = Hit {
        face: -1,
        depth: f32::INFINITY,
        distance: -1.0,
        weights: [-1.0; 3],
    };
}

#[device]
fn segment_distance(p: Point, a: Point, b: Point) -> f32 {
    let along = b - a;
    let length = along.dot(along);
    let t = if length > 0.0 {
        ((p - a).dot(along) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let d = p - (a + along * t);
    d.dot(d)
}

#[device]
impl Face {
    fn hit(&self, index: usize, p: Point, blur: f32) -> Option<Hit> {
        let [a, b, c] = self.corners;
        let area = (b - a).wedge(c - a);
        if area.abs() < 1e-8 {
            return None;
        }
        let weights = [(b, c), (c, a), (a, b)].map(|(u, v)| (u - p).wedge(v - p) / area);
        let depth = weights.iter().zip(&self.depths).map(|(w, z)| w * z).sum::<f32>();
        if depth < 0.0 {
            return None;
        }
        let distance = [(a, b), (b, c), (c, a)]
            .into_iter()
            .map(|(u, v)| segment_distance(p, u, v))
            .fold(f32::INFINITY, f32::min);
        let inside = weights.iter().all(|w| *w > 0.0);
        (inside || distance < blur).then_some(Hit {
            face: index as i32,
            depth,
            distance: if inside { -distance } else { distance },
            weights,
        })
    }
}

#[kernel]
fn rasterize<const K: usize>(width: usize, height: usize, blur: f32, faces: &[Face], hits: &mut [[Hit; K]]) {
    let (column, row) = (global_id_x(), global_id_y());
    if column >= width || row >= height {
        return;
    }
    let p = Point::new(column as f32 + 0.5, row as f32 + 0.5);
    let mut nearest = [Hit::NONE; K];
    for hit in faces
        .iter()
        .enumerate()
        .filter_map(|(i, face)| face.hit(i, p, blur))
    {
        if let Some(slot) = nearest.iter().position(|other| hit.depth < other.depth) {
            nearest[slot..].rotate_right(1);
            nearest[slot] = hit;
        }
    }
    hits[row * width + column] = nearest;
}

#[test]
fn rasterize_keeps_the_nearest_faces() {
    let mut random = Random(140);
    let (width, height) = (24usize, 19usize);
    let faces: Vec<Face> = (0..60)
        .map(|i| {
            let middle = [random.between(0.0, 24.0), random.between(0.0, 19.0)];
            let mut corner = || {
                let [x, y] = middle.map(|m| (m + random.between(-6.0, 6.0)) as f32);
                Point { x, y }
            };
            let corners = [corner(), corner(), corner()];
            let depth = (i * 37 % 61) as f32 - 4.0;
            Face {
                corners: if i % 15 == 0 { [corners[0]; 3] } else { corners },
                depths: [depth, depth + 0.3, depth + 0.6],
            }
        })
        .collect();
    let blur = 0.2f32;
    let mut expected: Vec<Vec<(f64, i32, f64)>> = Vec::new();
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x as f64 + 0.5, y as f64 + 0.5))) {
        let mut found = Vec::new();
        for (i, face) in faces.iter().enumerate().filter(|(i, _)| i % 15 != 0) {
            let c = face.corners.map(|p| [f64::from(p.x), f64::from(p.y)]);
            // Solved as a linear system: p = c0 + s (c1 - c0) + t (c2 - c0).
            let [[ax, ay], [bx, by]] = [1, 2].map(|k| [c[k][0] - c[0][0], c[k][1] - c[0][1]]);
            let (px, py) = (x - c[0][0], y - c[0][1]);
            let det = ax * by - ay * bx;
            let (s, t) = ((px * by - py * bx) / det, (ax * py - ay * px) / det);
            let z = face.depths.map(f64::from);
            let depth = (1.0 - s - t) * z[0] + s * z[1] + t * z[2];
            let edge = (0..3)
                .map(|k| {
                    let (u, v) = (c[k], c[(k + 1) % 3]);
                    let d = [v[0] - u[0], v[1] - u[1]];
                    let along = ((x - u[0]) * d[0] + (y - u[1]) * d[1]) / (d[0] * d[0] + d[1] * d[1]);
                    let along = along.max(0.0).min(1.0);
                    (x - u[0] - along * d[0]).powi(2) + (y - u[1] - along * d[1]).powi(2)
                })
                .fold(f64::MAX, f64::min);
            let inside = s > 0.0 && t > 0.0 && s + t < 1.0;
            if det.abs() > 1e-7 && depth >= 0.0 && (inside || edge < f64::from(blur)) {
                found.push((depth, i as i32, if inside { -edge } else { edge }));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.truncate(4);
        expected.push(found);
    }
    everywhere(|run| {
        let hits = run.zeros::<[Hit; 4]>(width * height);
        run.launch(
            rasterize::kernel::<4>(),
            LaunchConfig::tiled(width as u32, height as u32, (8, 8)),
            args![width, height, blur, &run.upload(&faces), &hits],
        );
        let mut same = 0;
        for (found, wanted) in run.read(&hits).iter().zip(&expected) {
            let found: Vec<&Hit> = found.iter().filter(|h| h.face >= 0).collect();
            let near = |(h, w): (&&Hit, &(f64, i32, f64))| {
                h.face == w.1
                    && (f64::from(h.depth) - w.0).abs() < 1e-2
                    && (f64::from(h.distance) - w.2).abs() < 1e-2
            };
            same += usize::from(found.len() == wanted.len() && found.iter().zip(wanted).all(near));
        }
        assert!(same + 4 >= width * height, "{same} on {}", run.place());
    });
}

// 141: Vello's fine rasterizer

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum FillRule {
    NonZero,
    EvenOdd,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Segment {
    from: Point,
    to: Point,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Tile {
    first: u32,
    end: u32,
    /// Windings at the left edge of the tile's first row of pixels are in the segments; these are of all rows.
    backdrop: i32,
}

const TILE: usize = 8;

#[device]
impl Segment {
    /// The area between the segment and the pixel's right edge, signed by the direction.
    fn area(&self, corner: Point) -> f32 {
        let (a, b) = (self.from - corner, self.to - corner);
        let (top, bottom) = (a.y.clamp(0.0, 1.0), b.y.clamp(0.0, 1.0));
        let height = bottom - top;
        if height == 0.0 {
            return 0.0;
        }
        let slope = (b.x - a.x) / (b.y - a.y);
        let at = |y: f32| a.x + (y - a.y) * slope;
        let (x0, x1) = (at(top), at(bottom));
        let (low, high) = (x0.min(x1), x0.max(x1));
        // The mean of what is left of the segment, cut to the pixel.
        let primitive = |x: f32| match x {
            ..=0.0 => 0.0,
            1.0.. => x - 0.5,
            _ => 0.5 * x * x,
        };
        let left = if high - low > 1e-4 {
            (primitive(high) - primitive(low)) / (high - low)
        } else {
            (0.5 * (low + high)).clamp(0.0, 1.0)
        };
        height * (1.0 - left)
    }
}

#[kernel(block_size = (8, 8))]
fn coverage(rule: FillRule, width: usize, tiles: &[Tile], segments: &[Segment], mask: &mut [u8]) {
    let tile = tiles[group_id_y() * grid_dim_x() as usize + group_id_x()];
    let corner = Point::new(local_id_x() as f32, local_id_y() as f32);
    let mut area = tile.backdrop as f32;
    for segment in &segments[tile.first as usize..tile.end as usize] {
        area += segment.area(corner);
    }
    let covered = match rule {
        FillRule::NonZero => area.abs().min(1.0),
        FillRule::EvenOdd => (area - 2.0 * (0.5 * area).round()).abs(),
    };
    mask[global_id_y() * width + global_id_x()] = (covered * 255.0).round() as u8;
}

/// The area of a polygon's part in a pixel, with signs.
fn clipped(polygon: &[[f64; 2]], x: f64, y: f64) -> f64 {
    let mut points: Vec<[f64; 2]> = polygon.to_vec();
    for (axis, bound, sign) in [(0, x, 1.0), (0, x + 1.0, -1.0), (1, y, 1.0), (1, y + 1.0, -1.0)] {
        let inside = |p: &[f64; 2]| sign * (p[axis] - bound) >= 0.0;
        let mut kept = Vec::new();
        for k in 0..points.len() {
            let (a, b) = (points[k], points[(k + 1) % points.len()]);
            if inside(&a) {
                kept.push(a);
            }
            if inside(&a) != inside(&b) {
                let t = (bound - a[axis]) / (b[axis] - a[axis]);
                kept.push([a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])]);
            }
        }
        points = kept;
    }
    let turns = (0..points.len()).map(|k| {
        let (a, b) = (points[k], points[(k + 1) % points.len()]);
        a[0] * b[1] - a[1] * b[0]
    });
    turns.sum::<f64>() / 2.0
}

#[test]
fn coverage_is_exact() {
    let mut random = Random(141);
    let (columns, rows) = (5usize, 4usize);
    let (width, height) = (columns * TILE, rows * TILE);
    // A star that goes round twice.
    let polygon: Vec<[f64; 2]> = (0..7)
        .map(|k| {
            let angle = f64::from(k) * 2.0 * std::f64::consts::TAU / 7.0;
            let r = random.between(11.0, 15.0);
            [20.3 + r * angle.cos(), 16.1 + r * angle.sin()]
        })
        .collect();
    // Every tile takes all segments that are not wholly right of it, above it or below it.
    let (mut tiles, mut segments) = (Vec::new(), Vec::new());
    for (tx, ty) in (0..rows).flat_map(|y| (0..columns).map(move |x| (x * TILE, y * TILE))) {
        let first = segments.len() as u32;
        for k in 0..7 {
            let local = |[x, y]: [f64; 2]| Point {
                x: (x - tx as f64) as f32,
                y: (y - ty as f64) as f32,
            };
            let segment = Segment {
                from: local(polygon[k]),
                to: local(polygon[(k + 1) % 7]),
            };
            if segment.from.x.min(segment.to.x) < 8.0 {
                segments.push(segment);
            }
        }
        tiles.push(Tile {
            first,
            end: segments.len() as u32,
            backdrop: 0,
        });
    }
    for rule in [FillRule::NonZero, FillRule::EvenOdd] {
        let expected: Vec<f64> = (0..width * height)
            .map(|i| {
                let area = clipped(&polygon, (i % width) as f64, (i / width) as f64).abs();
                let shown = match rule {
                    FillRule::NonZero => area.min(1.0),
                    FillRule::EvenOdd => (area - 2.0 * (area / 2.0).round()).abs(),
                };
                255.0 * shown
            })
            .collect();
        everywhere(|run| {
            let mask = run.zeros::<u8>(width * height);
            run.launch(
                coverage::kernel(),
                LaunchConfig::new((columns as u32, rows as u32), (8, 8)),
                args![rule, width, &run.upload(&tiles), &run.upload(&segments), &mask],
            );
            let far = |(a, b): (&u8, &f64)| (f64::from(*a) - b).abs();
            let largest = run.read(&mask).iter().zip(&expected).map(far).fold(0.0, f64::max);
            assert!(largest < 1.1, "{largest} on {}", run.place());
        });
    }
}
