//! Distances of convex bodies.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, minus, outer, wide};

// 116: GJK

/// One to four corners.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Simplex {
    Point(Vec3),
    Segment([Vec3; 2]),
    Triangle([Vec3; 3]),
    Tetrahedron([Vec3; 4]),
}

#[device]
impl Simplex {
    fn with(self, p: Vec3) -> Self {
        match self {
            Self::Point(a) => Self::Segment([a, p]),
            Self::Segment([a, b]) => Self::Triangle([a, b, p]),
            Self::Triangle([a, b, c]) | Self::Tetrahedron([a, b, c, _]) => Self::Tetrahedron([a, b, c, p]),
        }
    }

    fn has(&self, p: Vec3) -> bool {
        match self {
            Self::Point(a) => *a == p,
            Self::Segment(all) => all.contains(&p),
            Self::Triangle(all) => all.contains(&p),
            Self::Tetrahedron(all) => all.contains(&p),
        }
    }

    /// The part of the simplex that is nearest to the origin, and its nearest point.
    fn nearest(self) -> (Self, Vec3) {
        match self {
            Self::Point(a) => (self, a),
            Self::Segment([a, b]) => nearest_of_segment(a, b),
            Self::Triangle([a, b, c]) => nearest_of_triangle(a, b, c),
            Self::Tetrahedron([a, b, c, d]) => {
                let mut best = (self, Vec3::ZERO);
                let mut least = f32::INFINITY;
                for [p, q, r, opposite] in [[a, b, c, d], [a, c, d, b], [a, d, b, c], [b, d, c, a]] {
                    let normal = (q - p).cross(r - p);
                    // The origin lies on the other side of this face than the fourth corner.
                    if normal.dot(-p) * normal.dot(opposite - p) <= 0.0 {
                        let (part, point) = nearest_of_triangle(p, q, r);
                        if point.length_squared() < least {
                            (best, least) = ((part, point), point.length_squared());
                        }
                    }
                }
                best
            }
        }
    }
}

#[device]
fn nearest_of_segment(a: Vec3, b: Vec3) -> (Simplex, Vec3) {
    let along = b - a;
    match -a.dot(along) / along.length_squared() {
        t if t <= 0.0 => (Simplex::Point(a), a),
        t if t >= 1.0 => (Simplex::Point(b), b),
        t => (Simplex::Segment([a, b]), a + along * t),
    }
}

#[device]
fn nearest_of_triangle(a: Vec3, b: Vec3, c: Vec3) -> (Simplex, Vec3) {
    let (ab, ac) = (b - a, c - a);
    let normal = ab.cross(ac);
    let inside = [(a, b), (b, c), (c, a)]
        .iter()
        .all(|(p, q)| normal.cross(*q - *p).dot(-*p) >= 0.0);
    if inside && normal.length_squared() > 0.0 {
        return (
            Simplex::Triangle([a, b, c]),
            normal * (normal.dot(a) / normal.length_squared()),
        );
    }
    let edges = [
        nearest_of_segment(a, b),
        nearest_of_segment(b, c),
        nearest_of_segment(c, a),
    ];
    edges
        .into_iter()
        .min_by(|(_, p), (_, q)| p.length_squared().total_cmp(&q.length_squared()))
        .unwrap()
}

/// The corner farthest that way.
#[device]
fn support(corners: &[Vec3], way: Vec3) -> Vec3 {
    corners
        .iter()
        .copied()
        .max_by(|a, b| a.dot(way).total_cmp(&b.dot(way)))
        .unwrap_or_default()
}

#[kernel]
fn gjk(corners: usize, first: &[Vec3], second: &[Vec3], distances: &mut [f32]) {
    let i = global_id_x();
    let (Some(a), Some(b)) = (
        first.chunks_exact(corners).nth(i),
        second.chunks_exact(corners).nth(i),
    ) else {
        return;
    };
    let mut simplex = Simplex::Point(a[0] - b[0]);
    let mut point = a[0] - b[0];
    for _ in 0..64 {
        let way = -point;
        let next = support(a, way) - support(b, point);
        let gain = point.length_squared() - point.dot(next);
        if gain <= 1e-6 * point.length_squared() || simplex.has(next) {
            break;
        }
        (simplex, point) = simplex.with(next).nearest();
        if matches!(simplex, Simplex::Tetrahedron(_)) || point.length_squared() < 1e-10 {
            point = Vec3::ZERO;
            break;
        }
    }
    distances[i] = point.length();
}

#[test]
fn gjk_distances_of_boxes_are_the_least_ones() {
    let mut random = Random(116);
    let count = 200usize;
    let (mut first, mut second, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        // A middle and three half axes that are orthogonal.
        let solid = |random: &mut Random| {
            let (u, w) = (wide(random.place(1.0)), wide(random.place(1.0)));
            let v = outer(u, w);
            let axes = [u, v, outer(u, v)].map(|a| {
                let by = random.between(0.2, 1.0) / inner(a, a).sqrt();
                a.map(|x| x * by)
            });
            (wide(random.place(2.0)), axes)
        };
        let (a, b) = (solid(&mut random), solid(&mut random));
        let corners = |(middle, axes): &(Wide, [Wide; 3])| -> Vec<Vec3> {
            let sign = |c: usize, k: usize| if c >> k & 1 == 1 { 1.0 } else { -1.0 };
            let corner = |c: usize| {
                [0, 1, 2].map(|m| (middle[m] + (0..3).map(|k| sign(c, k) * axes[k][m]).sum::<f64>()) as f32)
            };
            (0..8).map(|c| Vec3::from(corner(c))).collect()
        };
        first.extend(corners(&a));
        second.extend(corners(&b));
        // The least of a quadratic function on a cube of six dimensions, one after the other.
        let ways: [Wide; 6] = std::array::from_fn(|k| if k < 3 { a.1[k] } else { b.1[k - 3].map(|x| -x) });
        let mut d = minus(a.0, b.0);
        let mut t = [0.0f64; 6];
        for _ in 0..20_000 {
            for k in 0..6 {
                let best = (t[k] - inner(d, ways[k]) / inner(ways[k], ways[k])).clamp(-1.0, 1.0);
                (0..3).for_each(|m| d[m] += (best - t[k]) * ways[k][m]);
                t[k] = best;
            }
        }
        expected.push(inner(d, d).sqrt());
    }
    assert!(expected.iter().filter(|d| **d < 1e-6).count() > 10);
    everywhere(|run| {
        let (a, b) = (run.upload(&first), run.upload(&second));
        let y = run.zeros::<f32>(count);
        run.launch(
            gjk::kernel(),
            LaunchConfig::linear(count, 64),
            args![8usize, &a, &b, &y],
        );
        run.near(&y, &expected, 1e-3);
    });
}
