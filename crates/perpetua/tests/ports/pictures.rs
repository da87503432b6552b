//! Pictures: distances, superpixels, contrast and edges.

use std::ops::AddAssign;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 136: cuCIM's exact distance transform

const NONE: u32 = u32::MAX;

/// The row of the nearest site of each pixel's column.
#[kernel]
fn flood(width: usize, sites: &[bool], nearest: &mut [u32]) {
    let x = global_id_x();
    if x >= width {
        return;
    }
    let height = sites.len() / width;
    let mut last = None;
    for y in 0..height {
        if sites[y * width + x] {
            last = Some(y as u32);
        }
        nearest[y * width + x] = last.unwrap_or(NONE);
    }
    last = None;
    for y in (0..height).rev() {
        let slot = &mut nearest[y * width + x];
        if *slot == y as u32 {
            last = Some(*slot);
        } else if let Some(below) = last {
            if *slot == NONE || below - (y as u32) < y as u32 - *slot {
                *slot = below;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Parabola {
    x: i32,
    /// The square of the distance along the column.
    height: i32,
    /// The first column where it is the lowest.
    from: i32,
}

#[device]
impl Parabola {
    fn at(&self, x: i32) -> i32 {
        (x - self.x).pow(2) + self.height
    }

    /// The first column where `other`, further right, is below this one.
    fn crossing(&self, other: &Parabola) -> i32 {
        let difference = other.height + other.x * other.x - self.height - self.x * self.x;
        difference.div_euclid(2 * (other.x - self.x)) + 1
    }
}

#[kernel]
fn distances(width: usize, nearest: &[u32], stacks: &mut [Parabola], squares: &mut [i32]) {
    let y = global_id_x();
    let height = nearest.len() / width;
    if y >= height {
        return;
    }
    let row = &nearest[y * width..][..width];
    let stack = &mut stacks[y * width..][..width];
    let mut len = 0;
    for (x, site) in row.iter().enumerate().filter(|(_, site)| **site != NONE) {
        let mut new = Parabola {
            x: x as i32,
            height: (*site as i32 - y as i32).pow(2),
            from: 0,
        };
        while let Some(top) = stack[..len].last() {
            new.from = top.crossing(&new);
            if new.from > top.from {
                break;
            }
            len -= 1;
        }
        if len == 0 {
            new.from = 0;
        }
        if new.from < width as i32 {
            stack[len] = new;
            len += 1;
        }
    }
    let mut top = 0;
    for (x, square) in squares[y * width..][..width].iter_mut().enumerate() {
        while top + 1 < len && stack[top + 1].from <= x as i32 {
            top += 1;
        }
        *square = if len == 0 { -1 } else { stack[top].at(x as i32) };
    }
}

#[test]
fn distances_are_exact() {
    let mut random = Random(136);
    let (width, height) = (57usize, 34usize);
    for share in [0, 3, 100] {
        let sites: Vec<bool> = (0..width * height)
            .map(|_| random.bits() % 1000 < share)
            .collect();
        let places: Vec<(i32, i32)> = (0..width * height)
            .filter(|i| sites[*i])
            .map(|i| ((i % width) as i32, (i / width) as i32))
            .collect();
        let expected: Vec<i32> = (0..width * height)
            .map(|i| {
                let (x, y) = ((i % width) as i32, (i / width) as i32);
                let squares = places.iter().map(|(a, b)| (a - x).pow(2) + (b - y).pow(2));
                squares.min().unwrap_or(-1)
            })
            .collect();
        everywhere(|run| {
            let nearest = run.zeros::<u32>(sites.len());
            let stacks = run.zeros::<Parabola>(sites.len());
            let squares = run.zeros::<i32>(sites.len());
            run.launch(
                flood::kernel(),
                LaunchConfig::linear(width, 32),
                args![width, &run.upload(&sites), &nearest],
            );
            run.launch(
                distances::kernel(),
                LaunchConfig::linear(height, 32),
                args![width, &nearest, &stacks, &squares],
            );
            run.holds(&squares, &expected);
        });
    }
}

// 137: gSLICr

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Center {
    color: [f32; 3],
    place: [f32; 2],
    count: u32,
}

#[device]
impl Center {
    fn distance(&self, color: &[f32; 3], place: &[f32; 2], compactness: f32) -> f32 {
        let square = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum() };
        square(&self.color, color) + compactness * square(&self.place, place)
    }
}

#[device]
impl AddAssign for Center {
    fn add_assign(&mut self, other: Self) {
        for (a, b) in self.color.iter_mut().zip(other.color) {
            *a += b;
        }
        for (a, b) in self.place.iter_mut().zip(other.place) {
            *a += b;
        }
        self.count += other.count;
    }
}

#[kernel]
fn slic_assign(
    step: u32,
    compactness: f32,
    width: usize,
    image: &[[f32; 3]],
    centers: &[Center],
    labels: &mut [u32],
) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = image.len() / width;
    if x >= width || y >= height {
        return;
    }
    let columns = width.div_ceil(step as usize) as i32;
    let rows = height.div_ceil(step as usize) as i32;
    let (home_x, home_y) = ((x as u32 / step) as i32, (y as u32 / step) as i32);
    let color = &image[y * width + x];
    let place = [x as f32, y as f32];
    let best = (-1..=1)
        .flat_map(|dy| (-1..=1).map(move |dx| (home_x + dx, home_y + dy)))
        .filter(|(cx, cy)| (0..columns).contains(cx) && (0..rows).contains(cy))
        .map(|(cx, cy)| (cy * columns + cx) as usize)
        .min_by(|a, b| {
            let [a, b] = [*a, *b].map(|k| centers[k].distance(color, &place, compactness));
            a.total_cmp(&b)
        });
    if let Some(label) = best {
        labels[y * width + x] = label as u32;
    }
}

#[kernel(block_size = (8, 8))]
fn slic_update(step: u32, width: usize, image: &[[f32; 3]], labels: &[u32], centers: &mut [Center]) {
    let sums = shared_array::<[Center; 64]>();
    let lane = local_id_y() * 8 + local_id_x();
    let step = step as usize;
    let height = image.len() / width;
    let columns = width.div_ceil(step);
    let label = group_id_y() * columns + group_id_x();
    let rows =
        (group_id_y().saturating_sub(1) * step..((group_id_y() + 2) * step).min(height)).skip(local_id_y());
    let mut own = Center::default();
    for y in rows.step_by(8) {
        let first = group_id_x().saturating_sub(1) * step;
        let end = ((group_id_x() + 2) * step).min(width);
        for x in (first + local_id_x()..end).step_by(8) {
            if labels[y * width + x] == label as u32 {
                own += Center {
                    color: image[y * width + x],
                    place: [x as f32, y as f32],
                    count: 1,
                };
            }
        }
    }
    sums[lane] = own;
    sync_threads();
    let mut half = 32;
    while half > 0 {
        if lane < half {
            let other = sums[lane + half];
            sums[lane] += other;
        }
        sync_threads();
        half /= 2;
    }
    if lane == 0 && sums[0].count > 0 {
        let Center { color, place, count } = sums[0];
        let scale = 1.0 / count as f32;
        centers[label] = Center {
            color: color.map(|c| c * scale),
            place: place.map(|p| p * scale),
            count,
        };
    }
}

#[test]
fn slic_converges_as_lloyd_does() {
    let mut random = Random(137);
    let (width, height, step) = (50usize, 37usize, 9u32);
    let image: Vec<[f32; 3]> = (0..width * height)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            let base = if (x / 13 + y / 11) % 2 == 0 { 20.0 } else { 70.0 };
            std::array::from_fn(|c| base + c as f32 + random.between(0.0, 5.0) as f32)
        })
        .collect();
    let (columns, rows) = (6usize, 5usize);
    let start: Vec<Center> = (0..columns * rows)
        .map(|k| {
            let (x, y) = (
                (k % columns * 9 + 4).min(width - 1),
                (k / columns * 9 + 4).min(height - 1),
            );
            Center {
                color: image[y * width + x],
                place: [x as f32, y as f32],
                count: 0,
            }
        })
        .collect();
    let mut centers: Vec<[f64; 5]> = start
        .iter()
        .map(|c| [c.color[0], c.color[1], c.color[2], c.place[0], c.place[1]].map(f64::from))
        .collect();
    let mut labels = vec![0usize; width * height];
    for _ in 0..2 {
        for (i, label) in labels.iter_mut().enumerate() {
            let (x, y) = (i % width, i / width);
            let me = [
                image[i][0].into(),
                image[i][1].into(),
                image[i][2].into(),
                x as f64,
                y as f64,
            ];
            let mut best = f64::INFINITY;
            for (k, c) in centers.iter().enumerate() {
                let near = (k % columns).abs_diff(x / 9) <= 1 && (k / columns).abs_diff(y / 9) <= 1;
                let square = |j: usize| (c[j] - me[j]).powi(2);
                let d = square(0) + square(1) + square(2) + 0.5 * (square(3) + square(4));
                if near && d < best {
                    best = d;
                    *label = k;
                }
            }
        }
        for (k, center) in centers.iter_mut().enumerate() {
            let mine: Vec<usize> = (0..labels.len()).filter(|i| labels[*i] == k).collect();
            let mean =
                |of: &dyn Fn(usize) -> f64| mine.iter().map(|i| of(*i)).sum::<f64>() / mine.len() as f64;
            if !mine.is_empty() {
                let color = |c: usize| mean(&|i| f64::from(image[i][c]));
                let place = [mean(&|i| (i % width) as f64), mean(&|i| (i / width) as f64)];
                *center = [color(0), color(1), color(2), place[0], place[1]];
            }
        }
    }
    everywhere(|run| {
        let (image, found) = (run.upload(&image), run.upload(&start));
        let assigned = run.zeros::<u32>(labels.len());
        for _ in 0..2 {
            run.launch(
                slic_assign::kernel(),
                LaunchConfig::tiled(width as u32, height as u32, (16, 4)),
                args![step, 0.5f32, width, &image, &found, &assigned],
            );
            run.launch(
                slic_update::kernel(),
                LaunchConfig::new((columns as u32, rows as u32), (8, 8)),
                args![step, width, &image, &assigned, &found],
            );
        }
        let same = run
            .read(&assigned)
            .iter()
            .zip(&labels)
            .filter(|(a, b)| **a as usize == **b)
            .count();
        assert!(same + 3 > labels.len(), "{same} on {}", run.place());
        for (c, wanted) in run.read(&found).iter().zip(&centers) {
            let off = [c.color[0], c.color[1], c.color[2], c.place[0], c.place[1]].map(f64::from);
            assert!(
                off.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.5),
                "on {}",
                run.place()
            );
        }
    });
}

// 139: OpenCV's CLAHE

#[kernel(block_size = 256)]
fn clahe_tables(limit: u32, tile: [usize; 2], width: usize, image: &[u8], tables: &mut [[u8; 256]]) {
    let counts = shared_array::<[u32; 256]>();
    let excess = shared_array::<[u32; 1]>();
    let lane = local_id_x();
    let [w, h] = tile;
    let (left, top) = (group_id_x() * w, group_id_y() * h);
    counts[lane] = 0;
    if lane == 0 {
        excess[0] = 0;
    }
    sync_threads();
    for i in (lane..w * h).step_by(256) {
        let pixel = image[(top + i / w) * width + left + i % w];
        atomic_add(&mut counts[pixel as usize], 1);
    }
    sync_threads();
    if let Some(over) = counts[lane].checked_sub(limit) {
        counts[lane] = limit;
        atomic_add(&mut excess[0], over);
    }
    sync_threads();
    let (share, rest) = (excess[0] / 256, excess[0] % 256);
    let mut own = counts[lane] + share + u32::from((lane as u32) < rest);
    sync_threads();
    counts[lane] = own;
    sync_threads();
    for reach in (0..8).map(|k| 1 << k) {
        if lane >= reach {
            own += counts[lane - reach];
        }
        sync_threads();
        counts[lane] = own;
        sync_threads();
    }
    let scaled = (own as f32 * 255.0 / (w * h) as f32).round_ties_even();
    tables[group_id_y() * (width / w) + group_id_x()][lane] = scaled.clamp(0.0, 255.0) as u8;
}

#[kernel]
fn clahe_map(tile: [usize; 2], width: usize, image: &[u8], tables: &[[u8; 256]], out: &mut [u8]) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = image.len() / width;
    if x >= width || y >= height {
        return;
    }
    let tiles = [width / tile[0], height / tile[1]];
    let between = |at: usize, axis: usize| {
        let place = (at as f32 + 0.5) / tile[axis] as f32 - 0.5;
        let low = place.floor();
        let last = tiles[axis] as i32 - 1;
        let clamped = |t: f32| (t as i32).clamp(0, last) as usize;
        (clamped(low), clamped(low + 1.0), place - low)
    };
    let (x0, x1, fx) = between(x, 0);
    let (y0, y1, fy) = between(y, 1);
    let pixel = image[y * width + x] as usize;
    let look = |tx: usize, ty: usize| f32::from(tables[ty * tiles[0] + tx][pixel]);
    let upper = look(x0, y0) * (1.0 - fx) + look(x1, y0) * fx;
    let lower = look(x0, y1) * (1.0 - fx) + look(x1, y1) * fx;
    out[y * width + x] = (upper * (1.0 - fy) + lower * fy).round() as u8;
}

#[test]
fn clahe_spreads_contrast() {
    let mut random = Random(139);
    let (width, height, tile, limit) = (48usize, 40usize, [16usize, 20], 6u32);
    let image: Vec<u8> = (0..width * height)
        .map(|i| (90 + i % width / 2 + i / width % 7) as u8 + (random.bits() % 24) as u8)
        .collect();
    let tables: Vec<[u8; 256]> = (0..6)
        .map(|t| {
            let mut counts = [0u32; 256];
            for (i, p) in image.iter().enumerate() {
                if i % width / 16 + i / width / 20 * 3 == t {
                    counts[usize::from(*p)] += 1;
                }
            }
            let over: u32 = counts.iter().map(|c| c.saturating_sub(limit)).sum();
            let mut sum = 0;
            std::array::from_fn(|k| {
                sum += counts[k].min(limit) + over / 256 + u32::from((k as u32) < over % 256);
                (f64::from(sum) * 255.0 / 320.0).round_ties_even() as u8
            })
        })
        .collect();
    let expected: Vec<f64> = (0..image.len())
        .map(|i| {
            let (x, y) = ((i % width) as f64 + 0.5, (i / width) as f64 + 0.5);
            // Each tile weighs by how near its middle is, and those at the edge go on.
            let weight = |at: f64, k: usize, n: usize| {
                let at = at.clamp(0.5, n as f64 - 0.5);
                (1.0 - (at - k as f64 - 0.5).abs()).max(0.0)
            };
            (0..6)
                .map(|t| {
                    let share = weight(x / 16.0, t % 3, 3) * weight(y / 20.0, t / 3, 2);
                    share * f64::from(tables[t][usize::from(image[i])])
                })
                .sum()
        })
        .collect();
    everywhere(|run| {
        let (image, out) = (run.upload(&image), run.zeros::<u8>(image.len()));
        let found = run.zeros::<[u8; 256]>(6);
        run.launch(
            clahe_tables::kernel(),
            LaunchConfig::new((3, 2), 256),
            args![limit, tile, width, &image, &found],
        );
        let off = |(a, b): (&u8, &u8)| a.abs_diff(*b);
        let largest = run
            .read(&found)
            .iter()
            .flatten()
            .zip(tables.iter().flatten())
            .map(off)
            .max();
        assert!(largest <= Some(1), "on {}", run.place());
        run.launch(
            clahe_map::kernel(),
            LaunchConfig::tiled(48, 40, (16, 16)),
            args![tile, width, &image, &found, &out],
        );
        let far = |(a, b): (&u8, &f64)| (f64::from(*a) - b).abs();
        let largest = run.read(&out).iter().zip(&expected).map(far).fold(0.0, f64::max);
        assert!(largest < 1.6, "{largest} on {}", run.place());
    });
}
