//! Cloth that is stretched and bent, and edges that are smoothed.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, minus, outer, wide};

// 142: Bevy's FXAA

const EDGE_MIN: f32 = 0.0312;
const EDGE: f32 = 0.125;
const SUBPIXEL: f32 = 0.75;
const STRIDES: [f32; 12] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 4.0, 8.0];

#[device]
fn luma([r, g, b]: [f32; 3]) -> f32 {
    (0.299 * r + 0.587 * g + 0.114 * b).sqrt()
}

#[device]
fn mix(a: [f32; 3], b: [f32; 3], t: f32) -> [f32; 3] {
    std::array::from_fn(|c| a[c] * (1.0 - t) + b[c] * t)
}

/// A place between pixels' middles, which lie at whole numbers.
#[device]
fn sample(image: &[[f32; 3]], size: [i32; 2], [x, y]: [f32; 2]) -> [f32; 3] {
    let [left, top] = [x.floor(), y.floor()];
    let at = |dx: i32, dy: i32| {
        let column = (left as i32 + dx).clamp(0, size[0] - 1);
        let row = (top as i32 + dy).clamp(0, size[1] - 1);
        image[(row * size[0] + column) as usize]
    };
    let upper = mix(at(0, 0), at(1, 0), x - left);
    let lower = mix(at(0, 1), at(1, 1), x - left);
    mix(upper, lower, y - top)
}

#[kernel]
fn fxaa(size: [i32; 2], image: &[[f32; 3]], out: &mut [[f32; 3]]) {
    let (x, y) = (global_id_x() as i32, global_id_y() as i32);
    if x >= size[0] || y >= size[1] {
        return;
    }
    let index = (y * size[0] + x) as usize;
    let around = |dx: i32, dy: i32| luma(sample(image, size, [(x + dx) as f32, (y + dy) as f32]));
    let center = around(0, 0);
    let [north, south, west, east] = [(0, -1), (0, 1), (-1, 0), (1, 0)].map(|(dx, dy)| around(dx, dy));
    let cross = [center, north, south, west, east];
    let low = cross.into_iter().fold(f32::INFINITY, f32::min);
    let high = cross.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let range = high - low;
    if range < EDGE_MIN.max(high * EDGE) {
        out[index] = image[index];
        return;
    }
    let [nw, ne, sw, se] = [(-1, -1), (1, -1), (-1, 1), (1, 1)].map(|(dx, dy)| around(dx, dy));
    let bend = |a: f32, b: f32, c: f32| (a - 2.0 * b + c).abs();
    let horizontal = bend(nw, west, sw) + 2.0 * bend(north, center, south) + bend(ne, east, se);
    let vertical = bend(nw, north, ne) + 2.0 * bend(west, center, east) + bend(sw, south, se);
    let flat = horizontal >= vertical;
    // The axis across the edge, and the one along it.
    let (across, along) = if flat { (1, 0) } else { (0, 1) };
    let [before, after] = if flat { [north, south] } else { [west, east] };
    let (first, second) = (before - center, after - center);
    let (sign, neighbour) = if first.abs() >= second.abs() {
        (-1.0, before)
    } else {
        (1.0, after)
    };
    let steepest = 0.25 * first.abs().max(second.abs());
    let average = 0.5 * (neighbour + center);
    let mut start = [x as f32, y as f32];
    start[across] += 0.5 * sign;
    let walk = |direction: f32| {
        let mut place = start;
        let mut difference = 0.0;
        for stride in STRIDES {
            place[along] += direction * stride;
            difference = luma(sample(image, size, place)) - average;
            if difference.abs() >= steepest {
                break;
            }
        }
        ((place[along] - start[along]).abs(), difference)
    };
    let (back, forth) = (walk(-1.0), walk(1.0));
    let (distance, end) = if back.0 < forth.0 { back } else { forth };
    let correct = (end < 0.0) != (center < average);
    let edge = if correct {
        0.5 - distance / (back.0 + forth.0)
    } else {
        0.0
    };
    let blurred = (2.0 * (north + south + west + east) + nw + ne + sw + se) / 12.0;
    let contrast = ((blurred - center).abs() / range).clamp(0.0, 1.0);
    let smooth = (3.0 - 2.0 * contrast) * contrast * contrast;
    let offset = edge.max(smooth * smooth * SUBPIXEL);
    let mut place = [x as f32, y as f32];
    place[across] += sign * offset;
    out[index] = sample(image, size, place);
}

#[test]
fn fxaa_smooths_edges() {
    let (width, height) = (40usize, 32usize);
    let image: Vec<[f32; 3]> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width) as f32, (i / width) as f32);
            let inside = (x - 19.3).powi(2) + 2.0 * (y - 15.2).powi(2) < 150.0 || 3.0 * y > x + 75.5;
            if inside {
                [0.9, 0.7, 0.2]
            } else {
                [0.1, 0.2 + 0.001 * x, 0.4 + 0.002 * y]
            }
        })
        .collect();
    let at = |x: i32, y: i32, c: usize| {
        f64::from(image[y.clamp(0, 31) as usize * width + x.clamp(0, 39) as usize][c])
    };
    let color = |x: f64, y: f64| -> [f64; 3] {
        std::array::from_fn(|c| {
            let mut sum = 0.0;
            for (i, j) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                let (px, py) = (x.floor() + f64::from(i), y.floor() + f64::from(j));
                sum += (1.0 - (x - px).abs()) * (1.0 - (y - py).abs()) * at(px as i32, py as i32, c);
            }
            sum
        })
    };
    let light = |x: f64, y: f64| {
        let [r, g, b] = color(x, y);
        (0.299 * r + 0.587 * g + 0.114 * b).sqrt()
    };
    let smoothed = |x: f64, y: f64| -> [f64; 3] {
        let l: [[f64; 3]; 3] =
            std::array::from_fn(|j| std::array::from_fn(|i| light(x + i as f64 - 1.0, y + j as f64 - 1.0)));
        let cross = [l[0][1], l[1][0], l[1][1], l[1][2], l[2][1]];
        let (low, high) = cross
            .iter()
            .fold((9.0f64, -9.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
        if high - low < (0.125 * high).max(f64::from(EDGE_MIN)) {
            return color(x, y);
        }
        let bends = |m: &[[f64; 3]; 3]| -> f64 {
            (0..3)
                .map(|k| [1.0, 2.0, 1.0][k] * (m[0][k] - 2.0 * m[1][k] + m[2][k]).abs())
                .sum()
        };
        let turned: [[f64; 3]; 3] = std::array::from_fn(|i| std::array::from_fn(|j| l[j][i]));
        let flat = bends(&l) >= bends(&turned);
        let line = if flat {
            [l[0][1], l[1][1], l[2][1]]
        } else {
            [l[1][0], l[1][1], l[1][2]]
        };
        let (a, b) = (line[0] - line[1], line[2] - line[1]);
        let (sign, other) = if a.abs() >= b.abs() {
            (-1.0, line[0])
        } else {
            (1.0, line[2])
        };
        let mean = (other + line[1]) / 2.0;
        let probe = |along: f64, across: f64| {
            if flat {
                (x + along, y + across)
            } else {
                (x + across, y + along)
            }
        };
        let mut ends = [-1.0, 1.0].map(|way| {
            let mut far = 0.0;
            for stride in STRIDES {
                far += f64::from(stride);
                let (px, py) = probe(way * far, sign * 0.5);
                let d = light(px, py) - mean;
                if d.abs() >= a.abs().max(b.abs()) / 4.0 {
                    return (far, d);
                }
            }
            let (px, py) = probe(way * far, sign * 0.5);
            (far, light(px, py) - mean)
        });
        let total = ends[0].0 + ends[1].0;
        if ends[0].0 >= ends[1].0 {
            ends.swap(0, 1);
        }
        let edge = if (ends[0].1 < 0.0) != (line[1] < mean) {
            0.5 - ends[0].0 / total
        } else {
            0.0
        };
        let sum: f64 = (0..9)
            .map(|k| [1.0, 2.0, 1.0, 2.0, 0.0, 2.0, 1.0, 2.0, 1.0][k] * l[k / 3][k % 3])
            .sum();
        let c = ((sum / 12.0 - line[1]).abs() / (high - low)).min(1.0);
        let offset = edge.max((c * c * (3.0 - 2.0 * c)).powi(2) * 0.75);
        let (px, py) = probe(0.0, sign * offset);
        color(px, py)
    };
    let expected: Vec<[f64; 3]> = (0..width * height)
        .map(|i| smoothed((i % width) as f64, (i / width) as f64))
        .collect();
    everywhere(|run| {
        let out = run.zeros::<[f32; 3]>(width * height);
        run.launch(
            fxaa::kernel(),
            LaunchConfig::tiled(width as u32, height as u32, (8, 8)),
            args![[width as i32, height as i32], &run.upload(&image), &out],
        );
        let out = run.read(&out);
        let near = |(a, b): (&[f32; 3], &[f64; 3])| (0..3).all(|c| (f64::from(a[c]) - b[c]).abs() < 1e-3);
        let same = out.iter().zip(&expected).filter(|pair| near(*pair)).count();
        assert!(same + 30 > width * height, "{same} on {}", run.place());
        assert!(
            out.iter().zip(&image).filter(|(a, b)| a != b).count() > 60,
            "on {}",
            run.place()
        );
    });
}

// 143: Warp's XPBD

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Spring {
    ends: [u32; 2],
    rest: f32,
    compliance: f32,
    lambda: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Hinge {
    /// The two wings, then the two ends of the edge.
    corners: [u32; 4],
    rest: f32,
    compliance: f32,
    lambda: f32,
}

/// What a constraint's value and gradients do to its multiplier: the change, if there is one.
#[device]
fn multiplier<const N: usize>(
    value: f32,
    gradients: &[Vec3; N],
    masses: &[f32; N],
    alpha: f32,
    lambda: f32,
) -> Option<f32> {
    let stiffness: f32 = gradients
        .iter()
        .zip(masses)
        .map(|(g, w)| w * g.length_squared())
        .sum();
    (stiffness > 0.0).then(|| (-value - alpha * lambda) / (stiffness + alpha))
}

#[kernel]
fn stretch(
    first: usize,
    end: usize,
    dt: f32,
    springs: &mut [Spring],
    inverse_masses: &[f32],
    places: &mut [Vec3],
) {
    let Some(spring) = springs[first..end].get_mut(global_id_x()) else {
        return;
    };
    let ends = spring.ends.map(|i| i as usize);
    let [a, b] = ends.map(|i| places[i]);
    let length = (a - b).length();
    if length == 0.0 {
        return;
    }
    let way = (a - b) * length.recip();
    let masses = ends.map(|i| inverse_masses[i]);
    let gradients = [way, -way];
    let alpha = spring.compliance / (dt * dt);
    if let Some(change) = multiplier(length - spring.rest, &gradients, &masses, alpha, spring.lambda) {
        for ((i, gradient), mass) in ends.into_iter().zip(gradients).zip(masses) {
            places[i] += gradient * (mass * change);
        }
        spring.lambda += change;
    }
}

#[kernel]
fn bend(
    first: usize,
    end: usize,
    dt: f32,
    hinges: &mut [Hinge],
    inverse_masses: &[f32],
    places: &mut [Vec3],
) {
    let Some(hinge) = hinges[first..end].get_mut(global_id_x()) else {
        return;
    };
    let corners = hinge.corners.map(|i| i as usize);
    let [x0, x1, x2, x3] = corners.map(|i| places[i]);
    let edge = x3 - x2;
    let length = edge.length();
    let (n0, n1) = ((x2 - x0).cross(x3 - x0), (x3 - x1).cross(x2 - x1));
    let (s0, s1) = (n0.length_squared(), n1.length_squared());
    if s0 < 1e-12 || s1 < 1e-12 || length < 1e-6 {
        return;
    }
    let (n0, n1, e) = (n0 * s0.recip(), n1 * s1.recip(), edge * length.recip());
    let angle = e.dot(n0.cross(n1)).atan2(n0.dot(n1));
    let gradients = [
        n0 * -length,
        n1 * -length,
        n0 * (x3 - x0).dot(e) + n1 * (x3 - x1).dot(e),
        n0 * (x0 - x2).dot(e) + n1 * (x1 - x2).dot(e),
    ];
    let masses = corners.map(|i| inverse_masses[i]);
    let alpha = hinge.compliance / (dt * dt);
    let Some(change) = multiplier(angle - hinge.rest, &gradients, &masses, alpha, hinge.lambda) else {
        return;
    };
    for (k, corner) in corners.into_iter().enumerate() {
        places[corner] += gradients[k] * (masses[k] * change);
    }
    hinge.lambda += change;
}

fn angle(p: &[Wide]) -> f64 {
    let n0 = outer(minus(p[2], p[0]), minus(p[3], p[0]));
    let n1 = outer(minus(p[3], p[1]), minus(p[2], p[1]));
    let e = minus(p[3], p[2]);
    let sine = inner(e, outer(n0, n1)) / inner(e, e).sqrt();
    sine.atan2(inner(n0, n1))
}

#[test]
fn xpbd_solves_constraint_by_constraint() {
    let mut random = Random(143);
    let count = 30usize;
    let places: Vec<Vec3> = (0..4 * count)
        .map(|i| {
            let base = [[-1.0, 0.0], [1.0, 0.1], [0.0, -0.8], [0.0, 0.9]][i % 4];
            Vec3::new(base[0], base[1], 0.0) + random.place(0.2)
        })
        .collect();
    let masses: Vec<f32> = (0..4 * count)
        .map(|i| {
            if i % 9 == 0 {
                0.0
            } else {
                random.between(0.5, 2.0) as f32
            }
        })
        .collect();
    let springs: Vec<Spring> = (0..2 * count as u32)
        .map(|i| Spring {
            ends: [2 * i, 2 * i + 1],
            rest: 1.5,
            compliance: 1e-4,
            lambda: 0.01,
        })
        .collect();
    let hinges: Vec<Hinge> = (0..count as u32)
        .map(|i| Hinge {
            corners: [0, 1, 2, 3].map(|k| 4 * i + k),
            rest: 0.2,
            compliance: 1e-3,
            lambda: 0.0,
        })
        .collect();
    let dt = 0.1f32;
    let mut expected: Vec<Wide> = places.iter().map(|p| wide(*p)).collect();
    // Gradients by differences of what a constraint is.
    let mut solve =
        |ids: &[usize], value: &dyn Fn(&[Wide]) -> f64, rest: f32, compliance: f32, lambda: f32| {
            let points: Vec<Wide> = ids.iter().map(|i| expected[*i]).collect();
            let slope = |k: usize, axis: usize| {
                let moved = |by: f64| {
                    let mut moved = points.clone();
                    moved[k][axis] += by;
                    value(&moved)
                };
                (moved(1e-6) - moved(-1e-6)) / 2e-6
            };
            let slopes: Vec<Wide> = (0..ids.len())
                .map(|k| std::array::from_fn(|axis| slope(k, axis)))
                .collect();
            let alpha = f64::from(compliance) / f64::from(dt).powi(2);
            let weight = |k: usize| f64::from(masses[ids[k]]);
            let sum: f64 = (0..ids.len())
                .map(|k| weight(k) * inner(slopes[k], slopes[k]))
                .sum();
            let change = (f64::from(rest) - value(&points) - alpha * f64::from(lambda)) / (sum + alpha);
            for (k, i) in ids.iter().enumerate() {
                for axis in 0..3 {
                    expected[*i][axis] += weight(k) * change * slopes[k][axis];
                }
            }
        };
    for s in &springs[20..] {
        let length = |p: &[Wide]| inner(minus(p[0], p[1]), minus(p[0], p[1])).sqrt();
        solve(
            &s.ends.map(|i| i as usize),
            &length,
            s.rest,
            s.compliance,
            s.lambda,
        );
    }
    for h in &hinges {
        solve(
            &h.corners.map(|i| i as usize),
            &angle,
            h.rest,
            h.compliance,
            h.lambda,
        );
    }
    let expected = expected.concat();
    everywhere(|run| {
        let (moved, masses) = (run.upload(&places), run.upload(&masses));
        let (springs, hinges) = (run.upload(&springs), run.upload(&hinges));
        run.launch(
            stretch::kernel(),
            LaunchConfig::linear(2 * count, 32),
            args![20usize, 2 * count, dt, &springs, &masses, &moved],
        );
        run.launch(
            bend::kernel(),
            LaunchConfig::linear(count, 32),
            args![0usize, count, dt, &hinges, &masses, &moved],
        );
        run.near(&moved.cast::<f32>().unwrap(), &expected, 1e-4);
        let lambdas = run.read(&springs).iter().filter(|s| s.lambda == 0.01).count();
        assert_eq!(lambdas, 20, "on {}", run.place());
    });
}
