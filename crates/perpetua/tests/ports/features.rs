//! What pictures show: lines, corners, depth.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::images::{noise, tiles};

// 73: Hough's lines

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, GpuType)]
#[repr(C)]
struct Line {
    rho: f32,
    theta: f32,
    votes: u32,
}

/// An angle a block: its points' distances from the origin are counted in shared memory.
#[kernel(block_size = 64)]
fn vote(step: f32, points: &[u32], votes: &mut [u32]) {
    let counts = shared_slice::<u32>();
    let distances = counts.len();
    let lane = local_id_x();
    for count in counts.iter_mut().skip(lane).step_by(64) {
        *count = 0;
    }
    sync_threads();
    let (sin, cos) = (group_id_x() as f32 * step).sin_cos();
    for point in points.iter().skip(lane).step_by(64) {
        let (x, y) = (point & 0xffff, point >> 16);
        let rho = (x as f32 * cos + y as f32 * sin).round() as i32;
        let at = rho + (distances as i32 - 1) / 2;
        atomic_add(&mut counts[at as usize], 1);
    }
    sync_threads();
    let row = &mut votes[group_id_x() * distances..][..distances];
    for (total, count) in row.iter_mut().zip(counts.iter()).skip(lane).step_by(64) {
        *total = *count;
    }
}

#[kernel(block_size = (8, 8))]
fn peaks(distances: usize, threshold: u32, step: f32, votes: &[u32], lines: &mut [Line], count: &mut [u32]) {
    let (d, a) = (global_id_x(), global_id_y());
    let angles = votes.len() / distances;
    if d >= distances || a >= angles {
        return;
    }
    let at = |d: Option<usize>, a: Option<usize>| match (d, a) {
        (Some(d), Some(a)) if d < distances && a < angles => votes[a * distances + d],
        _ => 0,
    };
    let own = votes[a * distances + d];
    let is_peak = own > threshold
        && own > at(d.checked_sub(1), Some(a))
        && own >= at(Some(d + 1), Some(a))
        && own > at(Some(d), a.checked_sub(1))
        && own >= at(Some(d), Some(a + 1));
    if is_peak {
        let slot = atomic_add(&mut count[0], 1) as usize;
        if let Some(line) = lines.get_mut(slot) {
            *line = Line {
                rho: d as f32 - (distances as f32 - 1.0) * 0.5,
                theta: a as f32 * step,
                votes: own,
            };
        }
    }
}

#[test]
fn points_vote_for_lines() {
    let (angles, distances, step) = (40usize, 121usize, 0.037f32);
    // Points whose distances are not halves of a pixel, where drivers may round either way.
    let angle = |a: usize| f64::from(a as f32 * step);
    let rho = |x: u64, y: u64, a: usize| x as f64 * angle(a).cos() + y as f64 * angle(a).sin();
    let clear = |x: u64, y: u64| (0..angles).all(|a| (rho(x, y, a).fract().abs() - 0.5).abs() > 1e-4);
    let mut random = Random(73);
    let mut points: Vec<(u64, u64)> = Vec::new();
    while points.len() < 90 {
        let (x, y) = (random.bits() % 40, random.bits() % 40);
        let y = if points.len() % 3 == 0 { 39 - x } else { y };
        if clear(x, y) && !points.contains(&(x, y)) {
            points.push((x, y));
        }
    }
    let mut votes = vec![0u32; angles * distances];
    for a in 0..angles {
        for (x, y) in &points {
            votes[a * distances + (60.0 + rho(*x, *y, a)).round() as usize] += 1;
        }
    }
    let threshold = 5;
    let mut lines = Vec::new();
    for (i, own) in votes.iter().enumerate() {
        let (a, d) = (i / distances, i % distances);
        let neighbour = |da: i32, dd: i32| {
            let (a, d) = (a as i32 + da, d as i32 + dd);
            let inside = (0..40).contains(&a) && (0..121).contains(&d);
            if inside { votes[(a * 121 + d) as usize] } else { 0 }
        };
        let before = neighbour(0, -1).max(neighbour(-1, 0));
        let after = neighbour(0, 1).max(neighbour(1, 0));
        if *own > threshold && *own > before && *own >= after {
            lines.push(Line {
                rho: d as f32 - 60.0,
                theta: a as f32 * step,
                votes: *own,
            });
        }
    }
    assert!(lines.len() > 2);
    let packed: Vec<u32> = points.iter().map(|(x, y)| (*x | y << 16) as u32).collect();
    everywhere(|run| {
        let (points, v) = (run.upload(&packed), run.zeros::<u32>(votes.len()));
        let config = LaunchConfig::new(angles as u32, 64).with_shared_bytes(distances as u32 * 4);
        run.launch(vote::kernel(), config, args![step, &points, &v]);
        run.holds(&v, &votes);
        let found = run.zeros::<Line>(100);
        let count = run.zeros::<u32>(1);
        let config = tiles(distances, angles);
        run.launch(
            peaks::kernel(),
            config,
            args![distances, threshold, step, &v, &found, &count],
        );
        run.holds(&count, &[lines.len() as u32]);
        let mut found = run.read(&found);
        found.truncate(lines.len());
        found.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let mut lines = lines.clone();
        lines.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(found, lines, "on {}", run.place());
    });
}

// 74: FAST corners

const CIRCLE: [(i32, i32); 16] = [
    (0, -3),
    (1, -3),
    (2, -2),
    (3, -1),
    (3, 0),
    (3, 1),
    (2, 2),
    (1, 3),
    (0, 3),
    (-1, 3),
    (-2, 2),
    (-3, 1),
    (-3, 0),
    (-3, -1),
    (-2, -2),
    (-1, -3),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, GpuType)]
#[repr(C)]
struct Corner {
    x: i16,
    y: i16,
    score: u16,
}

/// Whether nine neighbours on the circle are set.
#[device]
fn has_arc(mask: u16) -> bool {
    (1..9).fold(mask, |run, k| run & mask.rotate_right(k)) != 0
}

#[device]
fn is_corner(differences: &[i16; 16], threshold: i16) -> bool {
    let (mut brighter, mut darker) = (0u16, 0u16);
    for (k, d) in differences.iter().enumerate() {
        brighter |= u16::from(*d > threshold) << k;
        darker |= u16::from(*d < -threshold) << k;
    }
    has_arc(brighter) || has_arc(darker)
}

#[kernel(block_size = (8, 8))]
fn scores(width: usize, threshold: u8, image: &[u8], out: &mut [u8]) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = image.len() / width;
    if !(3..width - 3).contains(&x) || !(3..height - 3).contains(&y) {
        return;
    }
    let center = i16::from(image[y * width + x]);
    let differences = CIRCLE.map(|(dx, dy)| {
        let at = (y as i32 + dy) * width as i32 + x as i32 + dx;
        i16::from(image[at as usize]) - center
    });
    if !is_corner(&differences, i16::from(threshold)) {
        return;
    }
    let (mut low, mut high) = (i16::from(threshold), 255);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if is_corner(&differences, middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    out[y * width + x] = low as u8;
}

#[kernel(block_size = (8, 8))]
fn strongest(width: usize, scores: &[u8], corners: &mut [Corner], count: &mut [u32]) {
    let (x, y) = (global_id_x(), global_id_y());
    if !(3..width - 3).contains(&x) || !(3..scores.len() / width - 3).contains(&y) {
        return;
    }
    let own = scores[y * width + x];
    if own == 0 {
        return;
    }
    let weaker = |row: usize| {
        let part = &scores[row * width + x - 1..=row * width + x + 1];
        part.iter().filter(|s| **s >= own).count()
    };
    if weaker(y - 1) + weaker(y) + weaker(y + 1) == 1 {
        let at = atomic_add(&mut count[0], 1);
        corners[at as usize] = Corner {
            x: x as i16,
            y: y as i16,
            score: own.into(),
        };
    }
}

#[test]
fn corners_are_fast() {
    let (width, height, threshold) = (61usize, 45usize, 20u8);
    let dots = noise(width * height, 74);
    let image: Vec<u8> = (0..width * height)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            let square = 90 * ((x / 9 + y / 7) % 2) as u8 + (x / 9 * 5 + y / 7 * 11) as u8;
            square + dots[i] % 16
        })
        .collect();
    // The highest threshold for which an arc of nine is all brighter or all darker.
    let score = |x: usize, y: usize| -> u8 {
        let at = |k: usize| {
            let (dx, dy) = CIRCLE[k % 16];
            i32::from(image[(y as i32 + dy) as usize * width + (x as i32 + dx) as usize])
        };
        let own = i32::from(image[y * width + x]);
        let arc = |start: usize, sign: i32| (start..start + 9).map(|k| sign * (at(k) - own)).min().unwrap();
        let best = (0..16).map(|s| arc(s, 1).max(arc(s, -1))).max().unwrap() - 1;
        if best >= i32::from(threshold) {
            best as u8
        } else {
            0
        }
    };
    let mut all = vec![0u8; width * height];
    for y in 3..height - 3 {
        for x in 3..width - 3 {
            all[y * width + x] = score(x, y);
        }
    }
    let mut expected = Vec::new();
    for y in 3..height - 3 {
        for x in 3..width - 3 {
            let own = all[y * width + x];
            let rivals = (0..9).filter(|k| *k != 4 && all[(y + k / 3 - 1) * width + x + k % 3 - 1] >= own);
            if own > 0 && rivals.count() == 0 {
                expected.push(Corner {
                    x: x as i16,
                    y: y as i16,
                    score: u16::from(own),
                });
            }
        }
    }
    expected.sort();
    assert!(expected.len() > 10);
    everywhere(|run| {
        let (image, out) = (run.upload(&image), run.zeros::<u8>(image.len()));
        run.launch(
            scores::kernel(),
            tiles(width, height),
            args![width, threshold, &image, &out],
        );
        run.holds(&out, &all);
        let (corners, count) = (run.zeros::<Corner>(500), run.zeros::<u32>(1));
        run.launch(
            strongest::kernel(),
            tiles(width, height),
            args![width, &out, &corners, &count],
        );
        run.holds(&count, &[expected.len() as u32]);
        let mut found = run.read(&corners);
        found.truncate(expected.len());
        found.sort();
        assert_eq!(found, expected, "on {}", run.place());
    });
}

// 75: stereo by semi-global matching

/// Pixels of a 9 x 7 window compared with those opposite: 31 bits.
#[kernel(block_size = (8, 8))]
fn census(width: usize, image: &[u8], out: &mut [u32]) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = image.len() / width;
    if x >= width || y >= height {
        return;
    }
    let mut bits = 0;
    if (4..width - 4).contains(&x) && (3..height - 3).contains(&y) {
        for (dx, dy) in (0..7).flat_map(|dy| (0..9).map(move |dx| (dx, dy))).take(31) {
            let near = image[(y + dy - 3) * width + x + dx - 4];
            let far = image[(y + 3 - dy) * width + x + 4 - dx];
            bits = bits << 1 | u32::from(near > far);
        }
    }
    out[y * width + x] = bits;
}

const DEPTHS: usize = 32;

#[device]
fn least(part: &mut [u32; DEPTHS], value: u32) -> u32 {
    let lane = local_id_x();
    part[lane] = value;
    sync_threads();
    for shift in (0..5).rev() {
        let half = 1 << shift;
        if lane < half {
            part[lane] = part[lane].min(part[lane + half]);
        }
        sync_threads();
    }
    let all = part[0];
    sync_threads();
    all
}

/// A row a block, a disparity a lane: costs summed along the row, from the left or from the right.
#[kernel(block_size = 32)]
fn aggregate<const RIGHT: bool>(
    width: usize,
    small: u8,
    large: u8,
    left: &[u32],
    right: &[u32],
    costs: &mut [[u16; DEPTHS]],
) {
    let part = shared_array::<[u32; DEPTHS]>();
    let last = shared_array::<[u32; DEPTHS]>();
    let (row, d) = (group_id_x() * width, local_id_x());
    last[d] = 0;
    let mut bottom = 0;
    for step in 0..width {
        let x = if RIGHT { width - 1 - step } else { step };
        let cost = match x.checked_sub(d) {
            Some(other) => (left[row + x] ^ right[row + other]).count_ones(),
            None => 32,
        };
        sync_threads();
        let near = [d.checked_sub(1), Some(d + 1).filter(|d| *d < DEPTHS)];
        let jump = near
            .into_iter()
            .flatten()
            .map(|d| last[d] + u32::from(small))
            .fold(bottom + u32::from(large), u32::min);
        let total = cost + last[d].min(jump) - bottom;
        sync_threads();
        last[d] = total;
        costs[row + x][d] += total as u16;
        bottom = least(part, total);
    }
}

#[kernel]
fn winner(costs: &[[u16; DEPTHS]], disparities: &mut [u8]) {
    let i = global_id_x();
    if i < disparities.len() {
        let best = costs[i].iter().enumerate().min_by_key(|(_, c)| **c);
        disparities[i] = best.map_or(0, |(d, _)| d as u8);
    }
}

#[test]
fn disparities_cost_least() {
    let (width, height) = (70usize, 19usize);
    let texture = noise((width + 40) * height, 75);
    let right: Vec<u8> = (0..width * height)
        .map(|i| texture[i / width * (width + 40) + i % width])
        .collect();
    let left: Vec<u8> = (0..width * height)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            let d = if x < 35 { 5 } else { 12 };
            if x < d { 0 } else { right[y * width + x - d] }
        })
        .collect();
    let bits = |image: &[u8]| -> Vec<u32> {
        let mut all = vec![0u32; image.len()];
        for y in 3..height - 3 {
            for x in 4..width - 4 {
                let window: Vec<u8> = (0..63)
                    .map(|k| image[(y + k / 9 - 3) * width + x + k % 9 - 4])
                    .collect();
                for k in 0..31 {
                    all[y * width + x] |= u32::from(window[k] > window[62 - k]) << (30 - k);
                }
            }
        }
        all
    };
    let (a, b) = (bits(&left), bits(&right));
    let (small, large) = (3u32, 20u32);
    let mut costs = vec![[0u16; DEPTHS]; width * height];
    for y in 0..height {
        let matched = |x: usize, d: usize| {
            if x < d {
                32
            } else {
                (a[y * width + x] ^ b[y * width + x - d]).count_ones()
            }
        };
        for back in [false, true] {
            let mut last = [0u32; DEPTHS];
            for s in 0..width {
                let x = if back { width - 1 - s } else { s };
                let bottom = *last.iter().min().unwrap();
                let mut next = [0; DEPTHS];
                for d in 0..DEPTHS {
                    let from = |e: usize| {
                        last[e]
                            + match e.abs_diff(d) {
                                0 => 0,
                                1 => small,
                                _ => large,
                            }
                    };
                    next[d] = matched(x, d) + (0..DEPTHS).map(from).min().unwrap() - bottom;
                    costs[y * width + x][d] += next[d] as u16;
                }
                last = next;
            }
        }
    }
    let expected: Vec<u8> = costs
        .iter()
        .map(|c| c.iter().position(|v| v == c.iter().min().unwrap()).unwrap() as u8)
        .collect();
    assert_eq!((expected[9 * width + 25], expected[9 * width + 55]), (5, 12));
    everywhere(|run| {
        let census_of = |image: &[u8]| {
            let (image, out) = (run.upload(image), run.zeros::<u32>(image.len()));
            run.launch(census::kernel(), tiles(width, height), args![width, &image, &out]);
            out
        };
        let (l, r) = (census_of(&left), census_of(&right));
        run.holds(&l, &a);
        let sums = run.zeros::<[u16; DEPTHS]>(width * height);
        for kernel in [aggregate::kernel::<false>(), aggregate::kernel::<true>()] {
            let config = LaunchConfig::new(height as u32, 32);
            run.launch(
                kernel,
                config,
                args![width, small as u8, large as u8, &l, &r, &sums],
            );
        }
        run.holds(&sums, &costs);
        let out = run.zeros::<u8>(width * height);
        run.launch(
            winner::kernel(),
            LaunchConfig::linear(width * height, 64),
            args![&sums, &out],
        );
        run.holds(&out, &expected);
    });
}
