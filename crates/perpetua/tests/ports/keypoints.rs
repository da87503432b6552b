//! Orientations of keypoints, histograms of gradients, and points that are followed.

use std::f32::consts::{PI, TAU};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 134: CudaSift's orientations

const BINS: usize = 36;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Keypoint {
    x: f32,
    y: f32,
    scale: f32,
    /// In degrees; below zero where there is none.
    orientations: [f32; 2],
}

#[device]
fn clamped(image: &[f32], width: usize, x: i32, y: i32) -> f32 {
    let height = image.len() / width;
    let x = x.clamp(0, width as i32 - 1) as usize;
    let y = y.clamp(0, height as i32 - 1) as usize;
    image[y * width + x]
}

/// The place of a parabola's top through three values, from the middle one.
#[device]
fn vertex([before, middle, after]: [f32; 3]) -> f32 {
    0.5 * (before - after) / (before - 2.0 * middle + after)
}

#[kernel(block_size = 128)]
fn orientations(width: usize, image: &[f32], keypoints: &mut [Keypoint]) {
    let histogram = shared_array::<[f32; BINS]>();
    let smooth = shared_array::<[f32; BINS]>();
    let lane = local_id_x();
    let point = keypoints[group_id_x()];
    if lane < BINS {
        histogram[lane] = 0.0;
    }
    sync_threads();
    let (dx, dy) = (lane as i32 % 11 - 5, lane as i32 / 11 - 5);
    if dy <= 5 {
        let (x, y) = (point.x as i32 + dx, point.y as i32 + dy);
        let gx = clamped(image, width, x + 1, y) - clamped(image, width, x - 1, y);
        let gy = clamped(image, width, x, y + 1) - clamped(image, width, x, y - 1);
        let falloff = (-((dx * dx + dy * dy) as f32) / (2.0 * (1.5 * point.scale).powi(2))).exp();
        let angle = gy.atan2(gx).rem_euclid(TAU);
        let bin = (angle / TAU * BINS as f32) as usize % BINS;
        atomic_add(&mut histogram[bin], falloff * gx.hypot(gy));
    }
    sync_threads();
    if lane < BINS {
        let near = |k: i32| histogram[(lane as i32 + k).rem_euclid(BINS as i32) as usize];
        smooth[lane] = (6.0 * near(0) + 4.0 * (near(1) + near(-1)) + near(2) + near(-2)) / 16.0;
    }
    sync_threads();
    if lane == 0 {
        let around = |k: usize| [smooth[(k + BINS - 1) % BINS], smooth[k], smooth[(k + 1) % BINS]];
        let is_peak = |k: &usize| {
            let [before, here, after] = around(*k);
            here > before && here >= after
        };
        let mut best: [Option<usize>; 2] = [None; 2];
        for k in (0..BINS).filter(is_peak) {
            match best {
                [Some(first), _] if smooth[k] <= smooth[first] => {
                    if best[1].is_none_or(|second| smooth[k] > smooth[second]) {
                        best[1] = Some(k);
                    }
                }
                [first, _] => best = [Some(k), first],
            }
        }
        if let [Some(first), Some(second)] = best {
            if smooth[second] < 0.8 * smooth[first] {
                best[1] = None;
            }
        }
        keypoints[group_id_x()].orientations = best.map(|peak| match peak {
            Some(k) => ((k as f32 + 0.5 + vertex(around(k))) * 360.0 / BINS as f32).rem_euclid(360.0),
            None => -1.0,
        });
    }
}

#[test]
fn orientations_are_the_tops_of_histograms() {
    let mut random = Random(134);
    let (width, height) = (40usize, 30usize);
    let image: Vec<f32> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width) as f32, (i / width) as f32);
            (x * 0.4).sin() + (y * 0.31 + x * 0.1).cos() + random.between(-0.1, 0.1) as f32
        })
        .collect();
    let keypoints: Vec<Keypoint> = (0..50)
        .map(|_| Keypoint {
            x: random.between(0.0, 39.9) as f32,
            y: random.between(0.0, 29.9) as f32,
            scale: random.between(1.0, 3.0) as f32,
            orientations: [0.0; 2],
        })
        .collect();
    let expected: Vec<Vec<f64>> = keypoints
        .iter()
        .map(|p| {
            let mut bins = [0.0f64; 36];
            let at =
                |x: i32, y: i32| f64::from(image[y.clamp(0, 29) as usize * width + x.clamp(0, 39) as usize]);
            for (dx, dy) in (-5..=5).flat_map(|dy| (-5..=5).map(move |dx| (dx, dy))) {
                let (x, y) = (p.x as i32 + dx, p.y as i32 + dy);
                let (gx, gy) = (at(x + 1, y) - at(x - 1, y), at(x, y + 1) - at(x, y - 1));
                let weight = (-f64::from(dx * dx + dy * dy) / (4.5 * f64::from(p.scale).powi(2))).exp();
                let degrees = gy.atan2(gx).to_degrees().rem_euclid(360.0);
                bins[(degrees / 10.0) as usize % 36] += weight * gx.hypot(gy);
            }
            let s: Vec<f64> = (0..36)
                .map(|k| {
                    let taps = [(34, 1.0), (35, 4.0), (36, 6.0), (37, 4.0), (38, 1.0)];
                    taps.iter().map(|(d, w)| w / 16.0 * bins[(k + d) % 36]).sum()
                })
                .collect();
            let mut tops: Vec<usize> = (0..36)
                .filter(|k| s[*k] > s[(k + 35) % 36] && s[*k] >= s[(k + 1) % 36])
                .collect();
            tops.sort_by(|a, b| s[*b].total_cmp(&s[*a]));
            let strong = tops.iter().take(2).filter(|k| s[**k] >= 0.8 * s[tops[0]]);
            strong
                .map(|k| {
                    let (l, m, r) = (s[(k + 35) % 36], s[*k], s[(k + 1) % 36]);
                    (10.0 * (*k as f64 + 0.5 + 0.5 * (l - r) / (l - 2.0 * m + r))).rem_euclid(360.0)
                })
                .collect()
        })
        .collect();
    everywhere(|run| {
        let points = run.upload(&keypoints);
        run.launch(
            orientations::kernel(),
            LaunchConfig::new(50, 128),
            args![width, &run.upload(&image), &points],
        );
        let mut same = 0;
        for (found, wanted) in run.read(&points).iter().zip(&expected) {
            let found: Vec<f64> = found
                .orientations
                .map(f64::from)
                .into_iter()
                .filter(|o| *o >= 0.0)
                .collect();
            let near = |(a, b): (&f64, &f64)| ((a - b + 180.0).rem_euclid(360.0) - 180.0).abs() < 0.5;
            same += usize::from(found.len() == wanted.len() && found.iter().zip(wanted).all(near));
        }
        // A gradient at the edge of two bins may go into either.
        assert!(same >= 48, "{same} on {}", run.place());
    });
}

// 135: OpenCV's HOG

const CELL: usize = 8;
const ANGLES: usize = 9;
const BLOCK: usize = 4 * ANGLES;

/// The gradient of the channel in which it is largest.
#[device]
fn gradient(image: &[[u8; 4]], size: [usize; 2], x: usize, y: usize) -> (f32, f32) {
    let [width, height] = size;
    let at = |x: usize, y: usize| image[y * width + x].map(f32::from);
    let (left, right) = (at(x.saturating_sub(1), y), at((x + 1).min(width - 1), y));
    let (top, bottom) = (at(x, y.saturating_sub(1)), at(x, (y + 1).min(height - 1)));
    (0..3)
        .map(|c| (right[c] - left[c], bottom[c] - top[c]))
        .max_by(|(ax, ay), (bx, by)| (ax * ax + ay * ay).total_cmp(&(bx * bx + by * by)))
        .unwrap()
}

#[kernel(block_size = (8, 8))]
fn hog_cells(size: [usize; 2], image: &[[u8; 4]], cells: &mut [[f32; ANGLES]]) {
    let histogram = shared_array::<[f32; ANGLES]>();
    let lane = local_id_y() * CELL + local_id_x();
    if lane < ANGLES {
        histogram[lane] = 0.0;
    }
    sync_threads();
    let (gx, gy) = gradient(image, size, global_id_x(), global_id_y());
    let magnitude = (gx * gx + gy * gy).sqrt();
    let mut angle = gy.atan2(gx);
    if angle < 0.0 {
        angle += PI;
    }
    let position = angle * ANGLES as f32 / PI - 0.5;
    let low = position.floor();
    let share = position - low;
    let bins = [low as i32, low as i32 + 1].map(|b| b.rem_euclid(ANGLES as i32) as usize);
    for (bin, part) in bins.into_iter().zip([1.0 - share, share]) {
        atomic_add(&mut histogram[bin], magnitude * part);
    }
    sync_threads();
    if lane < ANGLES {
        let columns = size[0] / CELL;
        cells[group_id_y() * columns + group_id_x()][lane] = histogram[lane];
    }
}

#[kernel]
fn hog_blocks(columns: usize, clip: f32, cells: &[[f32; ANGLES]], blocks: &mut [[f32; BLOCK]]) {
    let (x, y) = (global_id_x(), global_id_y());
    let rows = cells.len() / columns;
    if x + 1 >= columns || y + 1 >= rows {
        return;
    }
    let mut block = [0.0; BLOCK];
    let corners = [(0, 0), (1, 0), (0, 1), (1, 1)];
    for (part, (dx, dy)) in block.chunks_exact_mut(ANGLES).zip(corners) {
        part.copy_from_slice(&cells[(y + dy) * columns + x + dx]);
    }
    let normalize = |block: &mut [f32; BLOCK], epsilon: f32| {
        let norm = block.iter().map(|v| v * v).sum::<f32>().sqrt() + epsilon;
        block.iter_mut().for_each(|v| *v /= norm);
    };
    normalize(&mut block, 0.1 * BLOCK as f32);
    for v in &mut block {
        *v = v.min(clip);
    }
    normalize(&mut block, 1e-3);
    blocks[y * (columns - 1) + x] = block;
}

#[test]
fn hog_describes_an_image() {
    let mut random = Random(135);
    let size = [48usize, 32];
    let image: Vec<[u8; 4]> = (0..48 * 32)
        .map(|i| {
            std::array::from_fn(|c| {
                ((i % 48) * (5 - c) + (i / 48) * 3 * c) as u8 ^ (random.bits() as u8 & 31)
            })
        })
        .collect();
    let mut cells = vec![[0.0f64; 9]; 24];
    for (i, _) in image.iter().enumerate() {
        let (x, y) = (i % 48, i / 48);
        let value = |x: usize, y: usize, c: usize| f64::from(image[y * 48 + x][c]);
        let (mut best, mut angle) = (-1.0, 0.0);
        for c in 0..3 {
            let gx = value((x + 1).min(47), y, c) - value(x.max(1) - 1, y, c);
            let gy = value(x, (y + 1).min(31), c) - value(x, y.max(1) - 1, c);
            if gx * gx + gy * gy >= best {
                best = gx * gx + gy * gy;
                angle = gy.atan2(gx).to_degrees();
            }
        }
        let at = (if angle < 0.0 { angle + 180.0 } else { angle }) / 20.0 - 0.5;
        let low = at.floor();
        let cell = &mut cells[y / 8 * 6 + x / 8];
        cell[(low as i32 + 9) as usize % 9] += best.sqrt() * (1.0 - at + low);
        cell[(low as i32 + 10) as usize % 9] += best.sqrt() * (at - low);
    }
    let mut expected = Vec::new();
    for (x, y) in (0..3).flat_map(|y| (0..5).map(move |x| (x, y))) {
        let at = y * 6 + x;
        let block = [cells[at], cells[at + 1], cells[at + 6], cells[at + 7]].concat();
        let scaled = |b: &[f64], epsilon: f64| -> Vec<f64> {
            let norm = b.iter().map(|v| v * v).sum::<f64>().sqrt() + epsilon;
            b.iter().map(|v| v / norm).collect()
        };
        let clipped: Vec<f64> = scaled(&block, 3.6)
            .iter()
            .map(|v| v.min(f64::from(0.2f32)))
            .collect();
        expected.extend(scaled(&clipped, 1e-3));
    }
    everywhere(|run| {
        let found = run.zeros::<[f32; ANGLES]>(24);
        run.launch(
            hog_cells::kernel(),
            LaunchConfig::new((6, 4), (8, 8)),
            args![size, &run.upload(&image), &found],
        );
        run.near(&found.cast::<f32>().unwrap(), &cells.concat(), 1e-3);
        let blocks = run.zeros::<[f32; BLOCK]>(15);
        run.launch(
            hog_blocks::kernel(),
            LaunchConfig::tiled(6, 4, (8, 4)),
            args![6usize, 0.2f32, &found, &blocks],
        );
        run.near(&blocks.cast::<f32>().unwrap(), &expected, 1e-4);
    });
}

// 138: OpenCV's pyramidal Lucas and Kanade

const WINDOW: i32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Level {
    first: u32,
    width: u32,
    height: u32,
}

#[device]
impl Level {
    fn sample(&self, pixels: &[f32], x: f32, y: f32) -> f32 {
        let image = &pixels[self.first as usize..][..(self.width * self.height) as usize];
        let (x0, y0) = (x.floor(), y.floor());
        let (fx, fy) = (x - x0, y - y0);
        let at = |dx: i32, dy: i32| {
            let column = (x0 as i32 + dx).clamp(0, self.width as i32 - 1);
            let row = (y0 as i32 + dy).clamp(0, self.height as i32 - 1);
            image[(row * self.width as i32 + column) as usize]
        };
        let lerp = |a: f32, b: f32, t: f32| a + (b - a) * t;
        lerp(lerp(at(0, 0), at(1, 0), fx), lerp(at(0, 1), at(1, 1), fx), fy)
    }

    fn contains(&self, [x, y]: [f32; 2]) -> bool {
        (0.0..self.width as f32).contains(&x) && (0.0..self.height as f32).contains(&y)
    }
}

/// Where a point of one image is in the other, from a guess.
#[device]
fn follow(level: &Level, old: &[f32], new: &[f32], [x, y]: [f32; 2], guess: [f32; 2]) -> Option<[f32; 2]> {
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for dy in -WINDOW..=WINDOW {
        for dx in -WINDOW..=WINDOW {
            let (px, py) = (x + dx as f32, y + dy as f32);
            let gx = 0.5 * (level.sample(old, px + 1.0, py) - level.sample(old, px - 1.0, py));
            let gy = 0.5 * (level.sample(old, px, py + 1.0) - level.sample(old, px, py - 1.0));
            xx += gx * gx;
            xy += gx * gy;
            yy += gy * gy;
        }
    }
    let determinant = xx * yy - xy * xy;
    if determinant < 1e-3 {
        return None;
    }
    let mut at = guess;
    for _ in 0..20 {
        if !level.contains(at) {
            return None;
        }
        let (mut bx, mut by) = (0.0, 0.0);
        for dy in -WINDOW..=WINDOW {
            for dx in -WINDOW..=WINDOW {
                let (dx, dy) = (dx as f32, dy as f32);
                let (px, py) = (x + dx, y + dy);
                let gx = 0.5 * (level.sample(old, px + 1.0, py) - level.sample(old, px - 1.0, py));
                let gy = 0.5 * (level.sample(old, px, py + 1.0) - level.sample(old, px, py - 1.0));
                let error = level.sample(old, px, py) - level.sample(new, at[0] + dx, at[1] + dy);
                bx += error * gx;
                by += error * gy;
            }
        }
        let step = [
            (yy * bx - xy * by) / determinant,
            (xx * by - xy * bx) / determinant,
        ];
        at = [at[0] + step[0], at[1] + step[1]];
        if step.iter().all(|s| s.abs() < 1e-3) {
            break;
        }
    }
    Some(at)
}

#[kernel]
fn lucas_kanade(
    levels: &[Level],
    old: &[f32],
    new: &[f32],
    points: &[[f32; 2]],
    moved: &mut [[f32; 2]],
    found: &mut [u8],
) {
    let id = global_id_x();
    let Some(&point) = points.get(id) else { return };
    let mut guess = point.map(|p| p / (1 << levels.len()) as f32);
    let mut lost = false;
    for (step, level) in levels.iter().enumerate().rev() {
        let here = point.map(|p| p / (1 << step) as f32);
        guess = guess.map(|p| p * 2.0);
        match follow(level, old, new, here, guess) {
            Some(next) => guess = next,
            None => lost = true,
        }
    }
    moved[id] = guess;
    found[id] = u8::from(!lost);
}

#[test]
fn lucas_kanade_finds_a_shift() {
    let (width, height) = (64usize, 48usize);
    let picture = |x: f64, y: f64| 20.0 * ((0.31 * x).sin() * (0.27 * y).cos() + (0.11 * x + 0.17 * y).sin());
    let shift = (5.3, -3.7);
    let pyramid = |dx: f64, dy: f64| -> Vec<f32> {
        (0..3)
            .flat_map(|l| {
                let (w, h, s) = (width >> l, height >> l, f64::from(1 << l));
                (0..w * h).map(move |i| picture((i % w) as f64 * s - dx, (i / w) as f64 * s - dy) as f32)
            })
            .collect()
    };
    let (old, new) = (pyramid(0.0, 0.0), pyramid(shift.0, shift.1));
    let level = |first: usize, l: usize| Level {
        first: first as u32,
        width: (width >> l) as u32,
        height: (height >> l) as u32,
    };
    let levels = [level(0, 0), level(64 * 48, 1), level(64 * 48 + 32 * 24, 2)];
    let mut points: Vec<[f32; 2]> = (0..40)
        .map(|i| [20.0 + (i % 8) as f32 * 3.1, 18.0 + (i / 8) as f32 * 2.9])
        .collect();
    // This one leaves the picture.
    points.push([62.0, 1.0]);
    everywhere(|run| {
        let (moved, found) = (run.zeros::<[f32; 2]>(41), run.zeros::<u8>(41));
        run.launch(
            lucas_kanade::kernel(),
            LaunchConfig::linear(41, 64),
            args![
                &run.upload(&levels),
                &run.upload(&old),
                &run.upload(&new),
                &run.upload(&points),
                &moved,
                &found
            ],
        );
        let (moved, found) = (run.read(&moved), run.read(&found));
        assert_eq!(found[40], 0, "on {}", run.place());
        for i in 0..40 {
            assert_eq!(found[i], 1, "{i} on {}", run.place());
            let off = [moved[i][0] - points[i][0] - 5.3, moved[i][1] - points[i][1] + 3.7];
            assert!(
                off.iter().all(|o| o.abs() < 0.1),
                "{i}: {off:?} on {}",
                run.place()
            );
        }
    });
}
