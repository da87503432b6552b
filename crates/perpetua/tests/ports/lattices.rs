//! Volumes of voxels: triangles to voxels, and rays on their way through.

use std::ops::RangeInclusive;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
        let normal = [
            u[1] * v[2] - u[2] * v[1],
            u[2] * v[0] - u[0] * v[2],
            u[0] * v[1] - u[1] * v[0],
        ];
        let far: [f32; 3] = normal.map(|n| if n > 0.0 { 1.0 } else { 0.0 });
        let near = far.map(|c| 1.0 - c);
        let lines = [[0, 1, 2], [1, 2, 0], [2, 0, 1]].map(|[x, y, z]: [usize; 3]| {
            let sign = if normal[z] < 0.0 { -1.0 } else { 1.0 };
            std::array::from_fn(|k| {
                let (a, b) = (-sign * edges[k][y], sign * edges[k][x]);
                Line {
                    a,
                    b,
                    c: a.max(0.0) + b.max(0.0) - a * corners[k][x] - b * corners[k][y],
                }
            })
        });
        Test {
            normal,
            planes: [dot(normal, minus(far, p)), dot(normal, minus(near, p))],
            lines,
        }
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
            let relative =
                corners.map(|c| std::array::from_fn::<i64, 3, _>(|k| 2 * c[k] - 8 * i64::from(cube[k]) - 4));
            let edge =
                |a: usize| std::array::from_fn::<i64, 3, _>(|k| relative[(a + 1) % 3][k] - relative[a][k]);
            let cross = |u: [i64; 3], v: [i64; 3]| {
                [
                    u[1] * v[2] - u[2] * v[1],
                    u[2] * v[0] - u[0] * v[2],
                    u[0] * v[1] - u[1] * v[0],
                ]
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
    let input: Vec<[[f32; 3]; 3]> = triangles
        .iter()
        .map(|t| t.map(|c| c.map(|v| v as f32 / 4.0)))
        .collect();
    everywhere(|run| {
        let (list, bits, count) = (
            run.upload(&input),
            run.zeros::<u32>(expected.len()),
            run.zeros::<u32>(1),
        );
        run.launch(
            voxels::kernel(),
            LaunchConfig::linear(input.len(), 16),
            args![size.map(|n| n as i32), &list, &bits, &count],
        );
        run.holds(&bits, &expected);
        run.holds(&count, &[total]);
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
            let (axis, end) = ends
                .into_iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| a.total_cmp(b))?;
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
    let Scanner {
        source,
        corner,
        column,
        row,
        size,
    } = scanner;
    let along = std::array::from_fn(|k| corner[k] + u as f32 * column[k] + v as f32 * row[k] - source[k]);
    *sum = Ray { from: source, along }.integral(size, volume).unwrap_or(0.0);
}

#[test]
fn siddon_integrates_along_rays() {
    let mut random = Random(258);
    let (columns, rows) = (21usize, 19usize);
    let size = [11u32, 9, 13];
    let volume: Vec<f32> = (0..size.iter().product::<u32>())
        .map(|_| random.within(0.0, 1.0))
        .collect();
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
                let end = f64::from(scanner.corner[k])
                    + u as f64 * f64::from(scanner.column[k])
                    + v as f64 * f64::from(scanner.row[k]);
                end - s[k]
            });
            // All planes that the ray crosses, in order; then the cell of the middle of each piece.
            let mut cuts = vec![0.0, 1.0];
            for k in (0..3).filter(|k| d[*k] != 0.0) {
                cuts.extend(
                    (0..=size[k])
                        .map(|plane| (f64::from(plane) - s[k]) / d[k])
                        .filter(|a| *a > 0.0 && *a < 1.0),
                );
            }
            cuts.sort_by(f64::total_cmp);
            let mut sum = 0.0;
            for piece in cuts.windows(2) {
                let middle = (piece[0] + piece[1]) / 2.0;
                let cell: [i64; 3] = std::array::from_fn(|k| (s[k] + middle * d[k]).floor() as i64);
                if (0..3).all(|k| cell[k] >= 0 && cell[k] < i64::from(size[k])) {
                    let [x, y, z] = cell.map(|c| c as usize);
                    sum += (piece[1] - piece[0])
                        * f64::from(volume[(z * size[1] as usize + y) * size[0] as usize + x]);
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
