//! Nearest triangles, and boxes that overlap.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 205: nearest triangles

type Point = [f32; 3];

#[device]
fn minus(a: Point, b: Point) -> Point {
    std::array::from_fn(|k| a[k] - b[k])
}

#[device]
fn dot(a: Point, b: Point) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Where on a triangle a point's nearest one lies.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Feature {
    Vertex(usize),
    /// From this vertex to the next, so far.
    Edge(usize, f32),
    /// Weights of the second and the third vertex.
    Face {
        second: f32,
        third: f32,
    },
}

#[device]
impl Feature {
    fn code(self) -> u32 {
        match self {
            Self::Face { .. } => 0,
            Self::Vertex(k) => 1 + k as u32,
            Self::Edge(k, _) => 4 + k as u32,
        }
    }

    fn weights(self) -> [f32; 3] {
        let mut weights = [0.0; 3];
        match self {
            Self::Vertex(k) => weights[k] = 1.0,
            Self::Edge(k, part) => {
                weights[k] = 1.0 - part;
                weights[(k + 1) % 3] = part;
            }
            Self::Face { second, third } => weights = [1.0 - second - third, second, third],
        }
        weights
    }

    /// Ericson's tests, region by region.
    fn nearest(p: Point, [a, b, c]: [Point; 3]) -> Self {
        let (ab, ac) = (minus(b, a), minus(c, a));
        let [(a1, a2), (b1, b2), (c1, c2)] = [a, b, c].map(|corner| {
            let to = minus(p, corner);
            (dot(ab, to), dot(ac, to))
        });
        if a1 <= 0.0 && a2 <= 0.0 {
            return Self::Vertex(0);
        }
        if b1 >= 0.0 && b2 <= b1 {
            return Self::Vertex(1);
        }
        if c2 >= 0.0 && c1 <= c2 {
            return Self::Vertex(2);
        }
        let vc = a1 * b2 - b1 * a2;
        if vc <= 0.0 && a1 >= 0.0 && b1 <= 0.0 {
            return Self::Edge(0, a1 / (a1 - b1));
        }
        let va = b1 * c2 - c1 * b2;
        if va <= 0.0 && b2 >= b1 && c1 >= c2 {
            return Self::Edge(1, (b2 - b1) / ((b2 - b1) + (c1 - c2)));
        }
        let vb = c1 * a2 - a1 * c2;
        if vb <= 0.0 && a2 >= 0.0 && c2 <= 0.0 {
            return Self::Edge(2, c2 / (c2 - a2));
        }
        let scale = (va + vb + vc).recip();
        Self::Face {
            second: vb * scale,
            third: vc * scale,
        }
    }

    /// From the triangle to the point.
    fn offset(self, p: Point, triangle: [Point; 3]) -> Point {
        let mut offset = p;
        for (weight, corner) in self.weights().into_iter().zip(triangle) {
            for (o, x) in offset.iter_mut().zip(corner) {
                *o -= weight * x;
            }
        }
        offset
    }
}

#[kernel]
fn nearest_triangles(
    points: &[Point],
    triangles: &[[Point; 3]],
    distances: &mut [f32],
    indices: &mut [u32],
    features: &mut [u32],
) {
    let i = global_id_x();
    let Some(&p) = points.get(i) else { return };
    let best = triangles
        .iter()
        .map(|t| {
            let feature = Feature::nearest(p, *t);
            let offset = feature.offset(p, *t);
            (dot(offset, offset), feature)
        })
        .enumerate()
        .min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
    if let Some((k, (distance, feature))) = best {
        distances[i] = distance;
        indices[i] = k as u32;
        features[i] = feature.code();
    }
}

/// Gradients of the distances times `upstream`.
#[kernel]
fn triangles_backward(
    upstream: &[f32],
    points: &[Point],
    triangles: &[[Point; 3]],
    indices: &[u32],
    of_points: &mut [Point],
    of_triangles: &mut [[Point; 3]],
) {
    let i = global_id_x();
    if i >= points.len() {
        return;
    }
    let k = indices[i] as usize;
    let feature = Feature::nearest(points[i], triangles[k]);
    let slope = feature
        .offset(points[i], triangles[k])
        .map(|x| 2.0 * upstream[i] * x);
    of_points[i] = slope;
    for (corner, weight) in of_triangles[k].iter_mut().zip(feature.weights()) {
        for (sum, x) in corner.iter_mut().zip(slope) {
            atomic_add(sum, -weight * x);
        }
    }
}

#[test]
fn points_know_their_triangles() {
    let mut random = Random(205);
    let mut point = |reach: f64| -> Point { std::array::from_fn(|_| random.between(-reach, reach) as f32) };
    let triangles: Vec<[Point; 3]> = (0..40)
        .map(|_| {
            let middle = point(3.0);
            std::array::from_fn(|_| {
                let by = point(1.5);
                std::array::from_fn(|k| middle[k] + by[k])
            })
        })
        .collect();
    let points: Vec<Point> = (0..100).map(|_| point(4.0)).collect();
    let minus = |a: [f64; 3], b: [f64; 3]| -> [f64; 3] { std::array::from_fn(|k| a[k] - b[k]) };
    let dot = |a: [f64; 3], b: [f64; 3]| -> f64 { (0..3).map(|k| a[k] * b[k]).sum() };
    // The weights of the nearest place: of the plane's, if that is inside, or of the best edge's.
    let place = |p: [f64; 3], t: [[f64; 3]; 3]| -> (u32, [f64; 3]) {
        let (u, v, w) = (minus(t[1], t[0]), minus(t[2], t[0]), minus(p, t[0]));
        let (uu, uv, vv, wu, wv) = (dot(u, u), dot(u, v), dot(v, v), dot(w, u), dot(w, v));
        let det = uu * vv - uv * uv;
        let (s, r) = ((vv * wu - uv * wv) / det, (uu * wv - uv * wu) / det);
        if s > 0.0 && r > 0.0 && s + r < 1.0 {
            return (0, [1.0 - s - r, s, r]);
        }
        let mut best = (f64::MAX, 0, [0.0; 3]);
        for k in 0..3 {
            let (a, b) = (t[k], t[(k + 1) % 3]);
            let part = (dot(minus(p, a), minus(b, a)) / dot(minus(b, a), minus(b, a))).clamp(0.0, 1.0);
            let at: [f64; 3] = std::array::from_fn(|d| a[d] + part * (b[d] - a[d]));
            let far = dot(minus(p, at), minus(p, at));
            if far < best.0 {
                let code = if part == 0.0 {
                    1 + k
                } else if part == 1.0 {
                    1 + (k + 1) % 3
                } else {
                    4 + k
                };
                let mut weights = [0.0; 3];
                weights[k] = 1.0 - part;
                weights[(k + 1) % 3] += part;
                best = (far, code as u32, weights);
            }
        }
        (best.1, best.2)
    };
    let (mut distances, mut indices, mut features) = (Vec::new(), Vec::new(), Vec::new());
    let mut slopes = Vec::new();
    let mut corners = vec![[[0.0; 3]; 3]; 40];
    for (i, p) in points.iter().enumerate() {
        let p = p.map(f64::from);
        let all = triangles.iter().enumerate().map(|(k, t)| {
            let t = t.map(|c| c.map(f64::from));
            let (code, w) = place(p, t);
            let off: [f64; 3] = std::array::from_fn(|d| p[d] - (0..3).map(|c| w[c] * t[c][d]).sum::<f64>());
            (dot(off, off), k, code, w, off)
        });
        let (distance, k, code, w, off) = all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        distances.push(distance);
        indices.push(k as u32);
        features.push(code);
        for d in 0..3 {
            let slope = 2.0 * (i % 4) as f64 * off[d];
            slopes.push(slope);
            for c in 0..3 {
                corners[k][c][d] -= w[c] * slope;
            }
        }
    }
    let upstream: Vec<f32> = (0..100).map(|i| (i % 4) as f32).collect();
    everywhere(|run| {
        let (p, t, g) = (run.upload(&points), run.upload(&triangles), run.upload(&upstream));
        let (d, k, f) = (
            run.zeros::<f32>(100),
            run.zeros::<u32>(100),
            run.zeros::<u32>(100),
        );
        let config = LaunchConfig::linear(100, 32);
        run.launch(nearest_triangles::kernel(), config, args![&p, &t, &d, &k, &f]);
        run.near(&d, &distances, 1e-4);
        run.holds(&k, &indices);
        run.holds(&f, &features);
        let (of_points, of_triangles) = (run.zeros::<Point>(100), run.zeros::<[Point; 3]>(40));
        run.launch(
            triangles_backward::kernel(),
            config,
            args![&g, &p, &t, &k, &of_points, &of_triangles],
        );
        let found = run.read(&of_points);
        for (x, y) in found.as_flattened().iter().zip(&slopes) {
            assert!((f64::from(*x) - y).abs() < 1e-3, "on {}: {x}, {y}", run.place());
        }
        let found = run.read(&of_triangles);
        for (x, y) in found
            .as_flattened()
            .as_flattened()
            .iter()
            .zip(corners.as_flattened().as_flattened())
        {
            assert!((f64::from(*x) - y).abs() < 1e-3, "on {}: {x}, {y}", run.place());
        }
    });
}

// 208: rotated boxes

/// A middle, a width, a height, and an angle in degrees.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Turned {
    x: f32,
    y: f32,
    width: f32,
    height: f32,
    angle: f32,
}

type Flat = [f32; 2];

/// At most as many points as two boxes' edges and corners give.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Points {
    at: [Flat; 24],
    len: usize,
}

#[device]
impl Points {
    fn new() -> Self {
        Points {
            at: [[0.0; 2]; 24],
            len: 0,
        }
    }

    fn push(&mut self, point: Flat) {
        self.at[self.len] = point;
        self.len += 1;
    }
}

#[device]
fn turn(o: Flat, a: Flat, b: Flat) -> f32 {
    (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])
}

#[device]
impl Turned {
    fn area(&self) -> f32 {
        self.width * self.height
    }

    fn corners(&self) -> [Flat; 4] {
        let (sin, cos) = self.angle.to_radians().sin_cos();
        [(0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5)].map(|(u, v)| {
            let (u, v) = (u * self.width, v * self.height);
            [self.x + u * cos - v * sin, self.y + u * sin + v * cos]
        })
    }
}

/// Points where edges cross, and corners inside the other box.
#[device]
fn common(a: [Flat; 4], b: [Flat; 4]) -> Points {
    let mut points = Points::new();
    for i in 0..4 {
        for j in 0..4 {
            let ([p, q], [r, s]) = ([a[i], a[(i + 1) % 4]], [b[j], b[(j + 1) % 4]]);
            let (from, to) = (turn(r, s, p), turn(r, s, q));
            if from * to < 0.0 && turn(p, q, r) * turn(p, q, s) < 0.0 {
                let part = from / (from - to);
                points.push(std::array::from_fn(|k| p[k] + part * (q[k] - p[k])));
            }
        }
    }
    for (inner, outer) in [(a, b), (b, a)] {
        for corner in inner {
            if (0..4).all(|k| turn(outer[k], outer[(k + 1) % 4], corner) >= -1e-6) {
                points.push(corner);
            }
        }
    }
    points
}

/// The area of the points' convex hull, by Graham's scan.
#[device]
fn hull_area(mut points: Points) -> f32 {
    let all = &mut points.at[..points.len];
    let Some(lowest) = (0..all.len()).min_by(|&i, &j| {
        let ([ax, ay], [bx, by]) = (all[i], all[j]);
        ay.total_cmp(&by).then(ax.total_cmp(&bx))
    }) else {
        return 0.0;
    };
    all.swap(0, lowest);
    let Some((&mut first, rest)) = all.split_first_mut() else {
        return 0.0;
    };
    let far = |p: &Flat| (p[0] - first[0]).hypot(p[1] - first[1]);
    rest.sort_unstable_by(|a, b| match turn(first, *a, *b) {
        turned if turned.abs() < 1e-5 => far(a).total_cmp(&far(b)),
        turned => 0.0f32.total_cmp(&turned),
    });
    let mut hull = Points::new();
    hull.push(first);
    for &point in rest.iter() {
        while hull.len > 1 && turn(hull.at[hull.len - 2], hull.at[hull.len - 1], point) <= 0.0 {
            hull.len -= 1;
        }
        hull.push(point);
    }
    hull.at[..hull.len]
        .windows(2)
        .map(|w| 0.5 * turn(first, w[0], w[1]))
        .sum()
}

#[kernel]
fn overlaps(a: &[Turned], b: &[Turned], out: &mut [f32]) {
    let (i, j) = (global_id_x(), global_id_y());
    let (Some(first), Some(second)) = (a.get(i), b.get(j)) else {
        return;
    };
    let shared = hull_area(common(first.corners(), second.corners()));
    out[i * b.len() + j] = shared / (first.area() + second.area() - shared);
}

#[test]
fn turned_boxes_overlap() {
    let mut random = Random(208);
    let mut boxes = |n: usize| -> Vec<Turned> {
        (0..n)
            .map(|_| Turned {
                x: random.between(0.0, 6.0) as f32,
                y: random.between(0.0, 6.0) as f32,
                width: random.between(1.0, 5.0) as f32,
                height: random.between(1.0, 5.0) as f32,
                angle: random.between(-180.0, 180.0) as f32,
            })
            .collect()
    };
    let (a, mut b) = (boxes(20), boxes(29));
    b.push(a[3]);
    let corners = |t: &Turned| -> Vec<[f64; 2]> {
        let angle = f64::from(t.angle).to_radians();
        [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)]
            .iter()
            .map(|(u, v)| {
                let (u, v) = (u * 0.5 * f64::from(t.width), v * 0.5 * f64::from(t.height));
                let (s, c) = angle.sin_cos();
                [f64::from(t.x) + u * c - v * s, f64::from(t.y) + u * s + v * c]
            })
            .collect()
    };
    let area = |p: &[[f64; 2]]| -> f64 {
        let n = p.len();
        (0..n)
            .map(|i| p[i][0] * p[(i + 1) % n][1] - p[i][1] * p[(i + 1) % n][0])
            .sum::<f64>()
            / 2.0
    };
    let mut expected = Vec::new();
    for p in &a {
        for q in &b {
            // Sutherland and Hodgman: one box cut by the other's sides.
            let (mut left, sides) = (corners(p), corners(q));
            for k in 0..4 {
                let (o, e) = (sides[k], sides[(k + 1) % 4]);
                let side = |x: [f64; 2]| (e[0] - o[0]) * (x[1] - o[1]) - (e[1] - o[1]) * (x[0] - o[0]);
                let mut next = Vec::new();
                for i in 0..left.len() {
                    let (x, y) = (left[i], left[(i + 1) % left.len()]);
                    let (s, t) = (side(x), side(y));
                    if s >= 0.0 {
                        next.push(x);
                    }
                    if s * t < 0.0 {
                        next.push(std::array::from_fn(|d| x[d] + s / (s - t) * (y[d] - x[d])));
                    }
                }
                left = next;
            }
            let shared = area(&left);
            expected.push(shared / (area(&corners(p)) + area(&sides) - shared));
        }
    }
    everywhere(|run| {
        let (x, y, out) = (run.upload(&a), run.upload(&b), run.zeros::<f32>(600));
        run.launch(
            overlaps::kernel(),
            LaunchConfig::tiled(20, 30, (8, 8)),
            args![&x, &y, &out],
        );
        run.near(&out, &expected, 1e-3);
    });
}
