//! Slices of sparse matrices, small systems, and faces between cells.

use std::ops::{AddAssign, Mul};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 191: sparse matrices in slices

/// Rows in a slice.
const SLICE: usize = 8;
/// The column of what fills a slice up.
const NOWHERE: u32 = u32::MAX;

/// The longest row of each slice.
#[kernel]
fn slice_lengths(starts: &[u32], lengths: &mut [u32]) {
    let slice = global_id_x();
    if slice >= lengths.len() {
        return;
    }
    let rows = starts.len() - 1;
    lengths[slice] = (slice * SLICE..rows.min((slice + 1) * SLICE))
        .map(|row| starts[row + 1] - starts[row])
        .max()
        .unwrap_or(0);
}

/// Compressed rows to slices, a padded row a lane.
#[kernel]
fn to_slices<T: Copy + Default>(
    starts: &[u32],
    columns: &[u32],
    values: &[T],
    sets: &[u32],
    slice_columns: &mut [u32],
    slice_values: &mut [T],
) {
    let row = global_id_x();
    let (slice, inside) = (row / SLICE, row % SLICE);
    if slice + 1 >= sets.len() {
        return;
    }
    let own = if row + 1 < starts.len() {
        starts[row] as usize..starts[row + 1] as usize
    } else {
        0..0
    };
    for (k, slot) in (sets[slice] as usize..sets[slice + 1] as usize).enumerate() {
        let (at, from) = (slot * SLICE + inside, own.start + k);
        (slice_columns[at], slice_values[at]) = if own.contains(&from) {
            (columns[from], values[from])
        } else {
            (NOWHERE, T::default())
        };
    }
}

/// `c = A b` for several vectors, which lie side by side.
#[kernel]
fn multiply<T: Copy + Default + Mul<Output = T> + AddAssign>(
    vectors: usize,
    sets: &[u32],
    columns: &[u32],
    values: &[T],
    b: &[T],
    c: &mut [T],
) {
    let (row, vector) = (global_id_x(), global_id_y());
    if row >= c.len() / vectors || vector >= vectors {
        return;
    }
    let (slice, inside) = (row / SLICE, row % SLICE);
    let mut sum = T::default();
    for slot in sets[slice]..sets[slice + 1] {
        let at = slot as usize * SLICE + inside;
        let column = columns[at];
        if column == NOWHERE {
            break;
        }
        sum += values[at] * b[column as usize * vectors + vector];
    }
    c[row * vectors + vector] = sum;
}

fn sliced<T>(seed: u64, [to_slices, multiply]: [KernelFn; 2], number: impl Fn(&mut Random) -> T)
where
    T: GpuType + Copy + Default + Mul<Output = T> + AddAssign + std::fmt::Debug + PartialEq + Into<f64>,
{
    let mut random = Random(seed);
    let (rows, width, vectors) = (45, 60, 3);
    let mut dense = vec![vec![None; width]; rows];
    for (r, row) in dense.iter_mut().enumerate() {
        for slot in row.iter_mut() {
            if random.below(10) < r % 5 {
                *slot = Some(number(&mut random));
            }
        }
    }
    let (mut starts, mut columns, mut values) = (vec![0u32], vec![], vec![]);
    for row in &dense {
        for (c, v) in row.iter().enumerate().filter_map(|(c, v)| v.map(|v| (c, v))) {
            columns.push(c as u32);
            values.push(v);
        }
        starts.push(columns.len() as u32);
    }
    let b: Vec<T> = (0..width * vectors).map(|_| number(&mut random)).collect();
    let mut expected = vec![T::default(); rows * vectors];
    for (i, e) in expected.iter_mut().enumerate() {
        for (c, v) in dense[i / vectors].iter().enumerate() {
            if let Some(v) = v {
                *e += *v * b[c * vectors + i % vectors];
            }
        }
    }
    let slices = rows.div_ceil(SLICE);
    everywhere(|run| {
        let (s, c, v) = (run.upload(&starts), run.upload(&columns), run.upload(&values));
        let lengths = run.zeros::<u32>(slices);
        run.launch(
            slice_lengths::kernel(),
            LaunchConfig::linear(slices, 32),
            args![&s, &lengths],
        );
        let mut sets = vec![0];
        for length in run.read(&lengths) {
            sets.push(sets.last().unwrap() + length);
        }
        let size = *sets.last().unwrap() as usize * SLICE;
        let sets = run.upload(&sets);
        let (sc, sv) = (run.zeros::<u32>(size), run.zeros::<T>(size));
        run.launch(
            to_slices,
            LaunchConfig::linear(slices * SLICE, 32),
            args![&s, &c, &v, &sets, &sc, &sv],
        );
        let (x, y) = (run.upload(&b), run.zeros::<T>(rows * vectors));
        run.launch(
            multiply,
            LaunchConfig::tiled(rows, vectors, (16, 2)),
            args![vectors, &sets, &sc, &sv, &x, &y],
        );
        run.holds(&y, &expected);
    });
}

#[test]
fn slices_of_rows_times_vectors() {
    let floats = [to_slices::kernel::<f64>(), multiply::kernel::<f64>()];
    sliced(191, floats, |r| r.between(-1.0, 1.0));
    let integers = [to_slices::kernel::<i32>(), multiply::kernel::<i32>()];
    sliced(1910, integers, |r| r.below(100) as i32 - 50);
}

// 192: parallel cyclic reduction

const SYSTEM: usize = 64;

/// `below` times the unknown before, `middle` times the own one, `above` times the next one.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Equation {
    below: f32,
    middle: f32,
    above: f32,
    right: f32,
}

#[device]
impl Equation {
    /// What stands beyond the ends.
    const NONE: Self = Equation {
        below: 0.0,
        middle: 1.0,
        above: 0.0,
        right: 0.0,
    };

    /// Without the unknowns of two others.
    fn reduced(self, before: Self, after: Self) -> Self {
        let (low, high) = (self.below / before.middle, self.above / after.middle);
        Equation {
            below: -low * before.below,
            middle: self.middle - low * before.above - high * after.below,
            above: -high * after.above,
            right: self.right - low * before.right - high * after.right,
        }
    }
}

#[kernel(block_size = 64)]
fn cyclic_reduction(equations: &[Equation], x: &mut [f32]) {
    let system = shared_array::<[Equation; SYSTEM]>();
    let lane = local_id_x();
    let mut own = equations[global_id_x()];
    system[lane] = own;
    sync_threads();
    let mut apart = 1;
    while apart < SYSTEM {
        let before = lane.checked_sub(apart).map_or(Equation::NONE, |k| system[k]);
        let after = system.get(lane + apart).copied().unwrap_or(Equation::NONE);
        own = own.reduced(before, after);
        sync_threads();
        system[lane] = own;
        sync_threads();
        apart *= 2;
    }
    x[global_id_x()] = own.right / own.middle;
}

#[test]
fn systems_are_reduced_by_all_lanes() {
    let mut random = Random(192);
    let count = 5;
    let equations: Vec<Equation> = (0..count * SYSTEM)
        .map(|i| Equation {
            below: if i % SYSTEM == 0 {
                0.0
            } else {
                random.between(-1.0, 1.0) as f32
            },
            middle: random.between(2.5, 4.0) as f32,
            above: if i % SYSTEM == SYSTEM - 1 {
                0.0
            } else {
                random.between(-1.0, 1.0) as f32
            },
            right: random.between(-5.0, 5.0) as f32,
        })
        .collect();
    let mut expected = Vec::new();
    for system in equations.chunks(SYSTEM) {
        // From above to below, then back.
        let mut rows: Vec<[f64; 3]> = Vec::new();
        for e in system {
            let [_, above, right] = rows.last().copied().unwrap_or_default();
            let middle = f64::from(e.middle) - f64::from(e.below) * above;
            rows.push([
                1.0,
                f64::from(e.above) / middle,
                (f64::from(e.right) - f64::from(e.below) * right) / middle,
            ]);
        }
        let mut next = 0.0;
        let mut x: Vec<f64> = rows
            .iter()
            .rev()
            .map(|[_, above, right]| {
                next = right - above * next;
                next
            })
            .collect();
        x.reverse();
        expected.extend(x);
    }
    everywhere(|run| {
        let (e, x) = (run.upload(&equations), run.zeros::<f32>(count * SYSTEM));
        run.launch(
            cyclic_reduction::kernel(),
            LaunchConfig::linear(count * SYSTEM, 64),
            args![&e, &x],
        );
        run.near(&x, &expected, 1e-5);
    });
}

// 196: WENO's reconstruction

/// Cells beyond each end of the axis.
const GHOSTS: usize = 3;
const OPTIMAL: [f64; 3] = [0.1, 0.6, 0.3];
const TINY: f64 = 1e-6;

/// How three stencils are weighted by their smoothness.
#[device]
trait Weights {
    fn of(smoothness: [f64; 3]) -> [f64; 3];
}

#[derive(Clone, Copy, GpuType)]
struct JiangShu;
#[derive(Clone, Copy, GpuType)]
struct Mapped;
#[derive(Clone, Copy, GpuType)]
struct Borges;

#[device]
fn normalised(weights: [f64; 3]) -> [f64; 3] {
    let total: f64 = weights.iter().sum();
    weights.map(|w| w / total)
}

#[device]
impl Weights for JiangShu {
    fn of(smoothness: [f64; 3]) -> [f64; 3] {
        normalised(std::array::from_fn(|k| {
            OPTIMAL[k] / (TINY + smoothness[k]).powi(2)
        }))
    }
}

#[device]
impl Weights for Mapped {
    fn of(smoothness: [f64; 3]) -> [f64; 3] {
        let mut weights = JiangShu::of(smoothness);
        for (w, d) in weights.iter_mut().zip(OPTIMAL) {
            *w = *w * (d + d * d - 3.0 * d * *w + *w * *w) / (d * d + *w * (1.0 - 2.0 * d));
        }
        normalised(weights)
    }
}

#[device]
impl Weights for Borges {
    fn of(smoothness: [f64; 3]) -> [f64; 3] {
        let [first, _, last] = smoothness;
        let tau = (first - last).abs();
        normalised(std::array::from_fn(|k| {
            OPTIMAL[k] * (1.0 + (tau / (TINY + smoothness[k])).powi(2))
        }))
    }
}

/// What a stencil of five cells gives at the face behind the third.
#[device]
fn reconstructed<W: Weights>([a, b, c, d, e]: [f64; 5]) -> f64 {
    let square = |x: f64| x * x;
    let smoothness = [
        13.0 / 12.0 * square(a - 2.0 * b + c) + 0.25 * square(a - 4.0 * b + 3.0 * c),
        13.0 / 12.0 * square(b - 2.0 * c + d) + 0.25 * square(b - d),
        13.0 / 12.0 * square(c - 2.0 * d + e) + 0.25 * square(3.0 * c - 4.0 * d + e),
    ];
    let candidates = [
        (2.0 * a - 7.0 * b + 11.0 * c) / 6.0,
        (5.0 * c - b + 2.0 * d) / 6.0,
        (2.0 * c + 5.0 * d - e) / 6.0,
    ];
    W::of(smoothness).iter().zip(candidates).map(|(w, q)| w * q).sum()
}

#[device]
fn index([x, y, z]: [usize; 3], size: [usize; 3]) -> usize {
    (z * size[1] + y) * size[0] + x
}

/// The faces across an axis of a box of cells, from the left or from the right.
#[kernel]
fn faces<W: Weights>(size: [usize; 3], axis: usize, from_left: bool, u: &[f64], out: &mut [f64]) {
    let at = [global_id_x(), global_id_y(), global_id_z()];
    let (mut faces, mut cells) = (size, size);
    faces[axis] += 1;
    cells[axis] += 2 * GHOSTS;
    if at.iter().zip(&faces).any(|(i, n)| i >= n) {
        return;
    }
    let stride = cells[..axis].iter().product::<usize>();
    let first = index(at, cells);
    let stencil = std::array::from_fn(|k| u[first + stride * if from_left { k } else { 5 - k }]);
    out[index(at, faces)] = reconstructed::<W>(stencil);
}

/// The same with all in one place.
fn face(kind: usize, s: &[f64]) -> f64 {
    let mut b = [0.0; 3];
    let mut q = [0.0; 3];
    let curve = [[1.0, -2.0, 1.0]; 3];
    let slope = [[1.0, -4.0, 3.0], [1.0, 0.0, -1.0], [3.0, -4.0, 1.0]];
    let value = [[2.0, -7.0, 11.0], [-1.0, 5.0, 2.0], [2.0, 5.0, -1.0]];
    for k in 0..3 {
        let dot = |c: [f64; 3]| (0..3).map(|i| c[i] * s[k + i]).sum::<f64>();
        b[k] = 13.0 / 12.0 * dot(curve[k]).powi(2) + dot(slope[k]).powi(2) / 4.0;
        q[k] = dot(value[k]) / 6.0;
    }
    let d = [0.1, 0.6, 0.3];
    let mut w: Vec<f64> = (0..3)
        .map(|k| match kind {
            2 => d[k] * (1.0 + ((b[0] - b[2]) / (b[k] + 1e-6)).powi(2)),
            _ => d[k] / (b[k] + 1e-6).powi(2),
        })
        .collect();
    if kind == 1 {
        let total: f64 = w.iter().sum();
        for k in 0..3 {
            let x = w[k] / total;
            w[k] = x * (d[k] + d[k] * d[k] - 3.0 * d[k] * x + x * x) / (d[k] * d[k] + x * (1.0 - 2.0 * d[k]));
        }
    }
    (0..3).map(|k| w[k] * q[k]).sum::<f64>() / w.iter().sum::<f64>()
}

#[test]
fn faces_are_reconstructed_along_each_axis() {
    let mut random = Random(196);
    let size = [7usize, 5, 6];
    for axis in 0..3 {
        let mut cells = size;
        cells[axis] += 6;
        let mut faces_size = size;
        faces_size[axis] += 1;
        let u: Vec<f64> = (0..cells.iter().product())
            .map(|i: usize| {
                if i % 11 < 6 {
                    (i as f64 * 0.1).sin()
                } else {
                    random.between(-3.0, 3.0)
                }
            })
            .collect();
        for (kind, left) in [(0, true), (0, false), (1, true), (2, false)] {
            let mut expected = Vec::new();
            for z in 0..faces_size[2] {
                for y in 0..faces_size[1] {
                    for x in 0..faces_size[0] {
                        let mut line: Vec<f64> = (0..6)
                            .map(|k| {
                                let mut at = [x, y, z];
                                at[axis] += k;
                                u[at[0] + cells[0] * (at[1] + cells[1] * at[2])]
                            })
                            .collect();
                        if !left {
                            line.reverse();
                        }
                        expected.push(face(kind, &line[..5]));
                    }
                }
            }
            everywhere(|run| {
                let kernel = match kind {
                    0 => faces::kernel::<JiangShu>(),
                    1 => faces::kernel::<Mapped>(),
                    _ => faces::kernel::<Borges>(),
                };
                let (cells, out) = (run.upload(&u), run.zeros::<f64>(expected.len()));
                run.launch(
                    kernel,
                    LaunchConfig::new((2, 2, 2), (4, 4, 4)),
                    args![size, axis, left, &cells, &out],
                );
                run.near(&out, &expected, 1e-10);
            });
        }
    }
}
