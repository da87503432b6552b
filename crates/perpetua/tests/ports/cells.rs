//! Who is near whom: cells of particles, points of clouds and places between them.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 199: neighbour lists

/// A periodic box divided into cells, none of which is narrower than the cut-off.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Cells {
    lengths: [f32; 3],
    counts: [u32; 3],
    capacity: u32,
}

#[device]
impl Cells {
    fn of(&self, point: [f32; 3]) -> [u32; 3] {
        std::array::from_fn(|d| {
            let part = (point[d] / self.lengths[d]).rem_euclid(1.0);
            ((part * self.counts[d] as f32) as u32).min(self.counts[d] - 1)
        })
    }

    fn index(&self, [x, y, z]: [u32; 3]) -> usize {
        ((z * self.counts[1] + y) * self.counts[0] + x) as usize
    }

    fn distance_squared(&self, a: [f32; 3], b: [f32; 3]) -> f32 {
        self.lengths
            .iter()
            .enumerate()
            .map(|(d, length)| {
                let apart = a[d] - b[d];
                apart - length * (apart / length).round()
            })
            .map(|x| x * x)
            .sum()
    }
}

#[kernel]
fn bin(cells: Cells, points: &[[f32; 3]], counts: &mut [u32], slots: &mut [u32], most: &mut u32) {
    let i = global_id_x();
    let Some(point) = points.get(i) else { return };
    let cell = cells.index(cells.of(*point));
    let slot = atomic_add(&mut counts[cell], 1);
    if slot < cells.capacity {
        slots[cell * cells.capacity as usize + slot as usize] = i as u32;
    } else {
        atomic_max(most, slot + 1);
    }
}

#[kernel]
fn neighbours(
    cells: Cells,
    cutoff: f32,
    points: &[[f32; 3]],
    exclusions: &[[u32; 4]],
    counts: &[u32],
    slots: &[u32],
    lengths: &mut [u32],
    lists: &mut [u32],
    most: &mut u32,
) {
    let i = global_id_x();
    let Some(&point) = points.get(i) else { return };
    let (room, capacity) = (lists.len() / points.len(), cells.capacity as usize);
    let own = cells.of(point);
    let mut found = 0;
    for shift in (0..27).map(|k| [k % 3, k / 3 % 3, k / 9]) {
        let cell = cells.index(std::array::from_fn(|d| {
            (own[d] + shift[d] + cells.counts[d] - 1) % cells.counts[d]
        }));
        let held = counts[cell].min(cells.capacity) as usize;
        for &j in &slots[cell * capacity..][..held] {
            if j as usize == i || exclusions[i].contains(&j) {
                continue;
            }
            if cells.distance_squared(point, points[j as usize]) < cutoff * cutoff {
                if found < room {
                    lists[found * points.len() + i] = j;
                }
                found += 1;
            }
        }
    }
    lengths[i] = found.min(room) as u32;
    if found > room {
        atomic_max(most, found as u32);
    }
}

#[test]
fn neighbours_are_listed() {
    let mut random = Random(199);
    let count = 300;
    let cells = Cells {
        lengths: [6.0, 5.0, 7.0],
        counts: [4, 3, 5],
        capacity: 24,
    };
    let cutoff = 1.3f32;
    let points: Vec<[f32; 3]> = (0..count)
        .map(|_| cells.lengths.map(|l| random.between(-0.5, 0.5) as f32 * l))
        .collect();
    let exclusions: Vec<[u32; 4]> = (0..count)
        .map(|_| {
            std::array::from_fn(|k| {
                if k < 2 {
                    random.below(count) as u32
                } else {
                    u32::MAX
                }
            })
        })
        .collect();
    let expected: Vec<Vec<u32>> = (0..count)
        .map(|i| {
            let near = |j: &usize| {
                let mut sum = 0.0;
                for d in 0..3 {
                    let apart = (-1..=1)
                        .map(|k| (points[i][d] - points[*j][d] + k as f32 * cells.lengths[d]).abs())
                        .fold(f32::MAX, f32::min);
                    sum += apart * apart;
                }
                sum < cutoff * cutoff
            };
            (0..count)
                .filter(|j| *j != i && !exclusions[i].contains(&(*j as u32)) && near(j))
                .map(|j| j as u32)
                .collect()
        })
        .collect();
    let longest = expected.iter().map(Vec::len).max().unwrap();
    everywhere(|run| {
        let (p, e) = (run.upload(&points), run.upload(&exclusions));
        let (counts, slots) = (run.zeros::<u32>(60), run.zeros::<u32>(60 * 24));
        let overfull = run.zeros::<u32>(1);
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            bin::kernel(),
            config,
            args![cells, &p, &counts, &slots, &overfull],
        );
        run.holds(&overfull, &[0]);
        for room in [longest, longest - 1] {
            let (lengths, lists) = (run.zeros::<u32>(count), run.zeros::<u32>(count * room));
            let most = run.zeros::<u32>(1);
            run.launch(
                neighbours::kernel(),
                config,
                args![cells, cutoff, &p, &e, &counts, &slots, &lengths, &lists, &most],
            );
            if room < longest {
                run.holds(&most, &[longest as u32]);
                continue;
            }
            run.holds(&most, &[0]);
            let (lengths, lists) = (run.read(&lengths), run.read(&lists));
            for (i, expected) in expected.iter().enumerate() {
                let mut found: Vec<u32> = (0..lengths[i] as usize).map(|k| lists[k * count + i]).collect();
                found.sort_unstable();
                assert_eq!(&found, expected, "on {}: {i}", run.place());
            }
        }
    });
}

// 200: adaptive inverse distances

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Site {
    x: f32,
    y: f32,
    value: f32,
}

const TILE: usize = 64;
const NEAREST: usize = 8;
const LEVELS: [f32; 5] = [1.0, 1.5, 2.0, 2.5, 3.0];

/// Keeps the least distances in their order.
#[device]
fn keep<const K: usize>(nearest: &mut [f32; K], distance: f32) {
    let at = nearest.partition_point(|d| *d <= distance);
    if at < K {
        nearest[at..].rotate_right(1);
        nearest[at] = distance;
    }
}

/// The exponent for sites this far apart, compared with those scattered evenly.
#[device]
fn exponent(observed: f32, even: f32) -> f32 {
    let member = match observed / even {
        r if r <= 0.0 => 0.0,
        r if r >= 2.0 => 1.0,
        r => 0.5 - 0.5 * (std::f32::consts::PI / 2.0 * r).cos(),
    };
    let place = ((member - 0.1) / 0.2).clamp(0.0, 4.0);
    let low = (place as usize).min(3);
    let part = place - low as f32;
    LEVELS[low] * (1.0 - part) + LEVELS[low + 1] * part
}

#[kernel(block_size = 64)]
fn adaptive(area: f32, sites: &[Site], places: &[[f32; 2]], values: &mut [f32]) {
    let tile = shared_array::<[Site; TILE]>();
    let (i, lane) = (global_id_x(), local_id_x());
    let [x, y] = places.get(i).copied().unwrap_or_default();
    let square = |site: &Site| (site.x - x).powi(2) + (site.y - y).powi(2);

    let mut nearest = [f32::INFINITY; NEAREST];
    for start in (0..sites.len()).step_by(TILE) {
        tile[lane] = sites.get(start + lane).copied().unwrap_or_default();
        sync_threads();
        for site in tile.iter().take(sites.len() - start) {
            keep(&mut nearest, square(site));
        }
        sync_threads();
    }
    let observed = nearest.iter().map(|d| d.sqrt()).sum::<f32>() / NEAREST as f32;
    let even = 0.5 / (sites.len() as f32 / area).sqrt();
    let half = 0.5 * exponent(observed, even);

    let (mut sum, mut total) = (0.0, 0.0);
    for start in (0..sites.len()).step_by(TILE) {
        tile[lane] = sites.get(start + lane).copied().unwrap_or_default();
        sync_threads();
        for site in tile.iter().take(sites.len() - start) {
            let weight = square(site).max(1e-12).powf(-half);
            sum += weight * site.value;
            total += weight;
        }
        sync_threads();
    }
    if let Some(value) = values.get_mut(i) {
        *value = sum / total;
    }
}

#[test]
fn values_between_sites() {
    let mut random = Random(200);
    let sites: Vec<Site> = (0..150)
        .map(|_| {
            let [x, y] = std::array::from_fn(|_| random.between(0.0, 10.0) as f32);
            Site {
                x,
                y,
                value: (x * 0.7).sin() + y * 0.1,
            }
        })
        .collect();
    let places: Vec<[f32; 2]> = (0..100)
        .map(|_| std::array::from_fn(|_| random.between(0.0, 10.0) as f32))
        .collect();
    let expected: Vec<f64> = places
        .iter()
        .map(|[x, y]| {
            let far = |s: &Site| f64::from(s.x - x).hypot(f64::from(s.y - y));
            let mut all: Vec<f64> = sites.iter().map(far).collect();
            all.sort_by(f64::total_cmp);
            let r = all[..8].iter().sum::<f64>() / 8.0 / (0.5 / 1.5f64.sqrt());
            let mu = 0.5 - 0.5 * (r.clamp(0.0, 2.0) / 2.0 * std::f64::consts::PI).cos();
            let knots = [0.1, 0.3, 0.5, 0.7, 0.9];
            let k = knots.iter().rposition(|k| *k <= mu);
            let power = match k {
                None => 1.0,
                Some(4) => 3.0,
                Some(k) => 1.0 + 0.5 * (k as f64 + (mu - knots[k]) / 0.2),
            };
            let weights: Vec<f64> = sites.iter().map(|s| far(s).max(1e-6).powf(-power)).collect();
            let sum: f64 = weights
                .iter()
                .zip(&sites)
                .map(|(w, s)| w * f64::from(s.value))
                .sum();
            sum / weights.iter().sum::<f64>()
        })
        .collect();
    everywhere(|run| {
        let (s, p, v) = (run.upload(&sites), run.upload(&places), run.zeros::<f32>(100));
        run.launch(
            adaptive::kernel(),
            LaunchConfig::linear(100, 64),
            args![100.0f32, &s, &p, &v],
        );
        run.near(&v, &expected, 1e-3);
    });
}

// 207: farthest points

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Candidate {
    distance: f32,
    index: u32,
}

#[device]
impl Candidate {
    /// The farther one; of equally far ones the first.
    fn or(self, other: Self) -> Self {
        if other.distance > self.distance || (other.distance == self.distance && other.index < self.index) {
            other
        } else {
            self
        }
    }
}

#[device]
fn apart(a: [f32; 3], b: [f32; 3]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// A block a cloud; `chosen` are as many of each cloud as fit.
#[kernel(block_size = 128)]
fn farthest(size: usize, clouds: &[[f32; 3]], distances: &mut [f32], chosen: &mut [u32]) {
    let best = shared_array::<[Candidate; 128]>();
    let (cloud, lane) = (group_id_x(), local_id_x());
    let points = &clouds[cloud * size..][..size];
    let distances = &mut distances[cloud * size..][..size];
    let count = chosen.len() / (clouds.len() / size);
    let mut last = 0;
    for k in 0..count {
        if lane == 0 {
            chosen[cloud * count + k] = last as u32;
        }
        let mut own = Candidate {
            distance: -1.0,
            index: u32::MAX,
        };
        for i in (lane..size).step_by(128) {
            let distance = apart(points[i], points[last]);
            if k == 0 || distance < distances[i] {
                distances[i] = distance;
            }
            own = own.or(Candidate {
                distance: distances[i],
                index: i as u32,
            });
        }
        best[lane] = own;
        sync_threads();
        let mut half = 64;
        while half > 0 {
            if lane < half {
                best[lane] = best[lane].or(best[lane + half]);
            }
            sync_threads();
            half /= 2;
        }
        last = best[0].index as usize;
        sync_threads();
    }
}

/// The first points within a radius of each centre; the first of them again where there are fewer.
#[kernel]
fn ball<const K: usize>(
    size: usize,
    radius: f32,
    clouds: &[[f32; 3]],
    chosen: &[u32],
    groups: &mut [[u32; K]],
) {
    let (k, cloud) = (global_id_x(), global_id_y());
    let count = chosen.len() / (clouds.len() / size);
    if k >= count || cloud >= clouds.len() / size {
        return;
    }
    let points = &clouds[cloud * size..(cloud + 1) * size];
    let centre = points[chosen[cloud * count + k] as usize];
    let near = points
        .iter()
        .enumerate()
        .filter(|(_, p)| apart(**p, centre) < radius * radius)
        .map(|(i, _)| i as u32);
    let mut group = [0; K];
    let mut found = 0;
    for i in near.take(K) {
        if found == 0 {
            group.fill(i);
        }
        group[found] = i;
        found += 1;
    }
    groups[cloud * count + k] = group;
}

#[test]
fn farthest_points_and_their_balls() {
    let mut random = Random(207);
    let (size, count) = (300, 20);
    let clouds: Vec<[f32; 3]> = (0..3 * size)
        .map(|_| std::array::from_fn(|_| random.between(-1.0, 1.0) as f32))
        .collect();
    let far = |a: [f32; 3], b: [f32; 3]| {
        let [x, y, z] = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
        x * x + y * y + z * z
    };
    let (mut chosen, mut groups) = (Vec::new(), Vec::new());
    for cloud in clouds.chunks(size) {
        let mut picked: Vec<usize> = vec![0];
        while picked.len() < count {
            let distance = |i: usize| {
                picked
                    .iter()
                    .map(|j| far(cloud[i], cloud[*j]))
                    .fold(f32::MAX, f32::min)
            };
            let next = (0..size).fold((0, -1.0), |best, i| {
                let d = distance(i);
                if d > best.1 { (i, d) } else { best }
            });
            picked.push(next.0);
        }
        for p in &picked {
            let near: Vec<u32> = (0..size as u32)
                .filter(|i| far(cloud[*i as usize], cloud[*p]) < 0.16)
                .collect();
            groups.push(std::array::from_fn(|k| *near.get(k).unwrap_or(&near[0])));
        }
        chosen.extend(picked.iter().map(|i| *i as u32));
    }
    everywhere(|run| {
        let (p, d) = (run.upload(&clouds), run.zeros::<f32>(clouds.len()));
        let (c, g) = (run.zeros::<u32>(3 * count), run.zeros::<[u32; 8]>(3 * count));
        run.launch(
            farthest::kernel(),
            LaunchConfig::new(3, 128),
            args![size, &p, &d, &c],
        );
        run.holds(&c, &chosen);
        run.launch(
            ball::kernel::<8>(),
            LaunchConfig::tiled(count, 3, (32, 1)),
            args![size, 0.4f32, &p, &c, &g],
        );
        run.holds(&g, &groups);
    });
}
