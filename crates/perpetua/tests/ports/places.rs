//! Places: shorter ways around them, and nearest neighbours.

use std::cmp::Ordering;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, inner, minus, wide};

// 104: 2-opt

const CLIMBERS: usize = 64;

/// By the change first, then by the places, so that every order of lanes finds the same.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, GpuType)]
#[repr(C)]
struct Move {
    change: i32,
    from: u32,
    to: u32,
}

#[device]
fn way(a: [f32; 2], b: [f32; 2]) -> i32 {
    let [dx, dy] = [a[0] - b[0], a[1] - b[1]];
    (dx * dx + dy * dy).sqrt().round() as i32
}

/// What all lanes of the block have, combined.
#[device]
fn combined<T: GpuType>(parts: &mut [T; CLIMBERS], own: T, combine: impl Fn(T, T) -> T) -> T {
    let lane = local_id_x();
    parts[lane] = own;
    sync_threads();
    let mut half = CLIMBERS / 2;
    while half > 0 {
        if lane < half {
            parts[lane] = combine(parts[lane], parts[lane + half]);
        }
        sync_threads();
        half /= 2;
    }
    // What stands right between two barriers all lanes have together.
    sync_threads();
    let all = parts[0];
    sync_threads();
    all
}

/// A block climbs from a tour of its own until no pair of edges is better swapped.
#[kernel(block_size = 64)]
fn two_opt(places: &[[f32; 2]], tours: &mut [u32], lengths: &mut [i32]) {
    let parts = shared_array::<[Move; CLIMBERS]>();
    let lane = local_id_x();
    let n = places.len();
    let tour = &mut tours[group_id_x() * n..(group_id_x() + 1) * n];
    loop {
        let city = |k: usize| places[tour[k % n] as usize];
        let mut own = Move {
            change: 0,
            from: 0,
            to: 0,
        };
        for i in (lane..n - 2).step_by(CLIMBERS) {
            let (a, b) = (city(i), city(i + 1));
            for j in i + 2..n {
                let (c, d) = (city(j), city(j + 1));
                let change = way(a, c) + way(b, d) - way(a, b) - way(c, d);
                own = own.min(Move {
                    change,
                    from: i as u32,
                    to: j as u32,
                });
            }
        }
        let best = combined(parts, own, |a, b| a.min(b));
        if best.change >= 0 {
            break;
        }
        let (mut low, mut high) = (
            best.from as usize + 1 + lane,
            best.to as usize - lane.min(best.to as usize),
        );
        while low < high {
            tour.swap(low, high);
            low += CLIMBERS;
            high = high.saturating_sub(CLIMBERS);
        }
        sync_threads();
    }
    if lane == 0 {
        lengths[group_id_x()] = (0..n)
            .map(|k| way(places[tour[k] as usize], places[tour[(k + 1) % n] as usize]))
            .sum();
    }
}

#[test]
fn two_opt_climbs_as_a_single_climber() {
    let mut random = Random(104);
    let (n, climbers) = (70usize, 4usize);
    let places: Vec<[f32; 2]> = (0..n)
        .map(|_| [random.below(1000) as f32, random.below(1000) as f32])
        .collect();
    let mut tours: Vec<u32> = Vec::new();
    for _ in 0..climbers {
        let mut tour: Vec<u32> = (0..n as u32).collect();
        (1..n).rev().for_each(|k| tour.swap(k, random.below(k + 1)));
        tours.extend(tour);
    }
    let mut expected = tours.clone();
    let mut lengths = Vec::new();
    for tour in expected.chunks_mut(n) {
        let far = |a: u32, b: u32| {
            let [p, q] = [a, b].map(|c| places[c as usize].map(f64::from));
            ((p[0] - q[0]).powi(2) + (p[1] - q[1]).powi(2)).sqrt().round() as i32
        };
        loop {
            let mut best = (0, 0, 0);
            for i in 0..n - 2 {
                for j in i + 2..n {
                    let (a, b, c, d) = (tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]);
                    best = best.min((far(a, c) + far(b, d) - far(a, b) - far(c, d), i, j));
                }
            }
            if best.0 == 0 {
                break;
            }
            tour[best.1 + 1..=best.2].reverse();
        }
        lengths.push((0..n).map(|k| far(tour[k], tour[(k + 1) % n])).sum::<i32>());
    }
    everywhere(|run| {
        let (places, tours) = (run.upload(&places), run.upload(&tours));
        let y = run.zeros::<i32>(climbers);
        let config = LaunchConfig::new(climbers as u32, 64);
        run.launch(two_opt::kernel(), config, args![&places, &tours, &y]);
        run.holds(&tours, &expected);
        run.holds(&y, &lengths);
    });
}

// 118: nearest neighbours in a k-d tree

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Candidate {
    distance: f32,
    index: u32,
}

/// A heap whose first is the farthest.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Nearest<const K: usize> {
    heap: [Candidate; K],
}

#[device]
impl<const K: usize> Nearest<K> {
    fn within(distance: f32) -> Self {
        Self {
            heap: [Candidate {
                distance,
                index: u32::MAX,
            }; K],
        }
    }

    fn farthest(&self) -> f32 {
        self.heap[0].distance
    }

    fn offer(&mut self, new: Candidate) {
        if new.distance >= self.farthest() {
            return;
        }
        let mut at = 0;
        while let Some(child) = (2 * at + 1..K.min(2 * at + 3))
            .max_by(|a, b| self.heap[*a].distance.total_cmp(&self.heap[*b].distance))
            .filter(|child| self.heap[*child].distance > new.distance)
        {
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = new;
    }
}

#[device]
trait Point: GpuType {
    const DIMENSIONS: usize;

    fn coordinate(&self, axis: usize) -> f32;

    fn square(&self, other: &Self) -> f32 {
        (0..Self::DIMENSIONS)
            .map(|k| (self.coordinate(k) - other.coordinate(k)).powi(2))
            .sum()
    }
}

#[device]
impl Point for Vec3 {
    const DIMENSIONS: usize = 3;

    fn coordinate(&self, axis: usize) -> f32 {
        match axis {
            0 => self.x,
            1 => self.y,
            2 => self.z,
            _ => unreachable!(),
        }
    }
}

#[device]
impl<const N: usize> Point for [f32; N] {
    const DIMENSIONS: usize = N;

    fn coordinate(&self, axis: usize) -> f32 {
        self[axis]
    }
}

#[kernel]
fn neighbours<P: Point, const K: usize>(reach: f32, tree: &[P], queries: &[P], out: &mut [[Candidate; K]]) {
    let i = global_id_x();
    if i >= out.len() {
        return;
    }
    let query = queries[i];
    let mut nearest = Nearest::<K>::within(reach * reach);
    let (mut current, mut previous) = (Some(0usize), None);
    while let Some(node) = current {
        let parent = node.checked_sub(1).map(|n| n / 2);
        if node >= tree.len() {
            (previous, current) = (current, parent);
            continue;
        }
        let from_parent = previous == parent;
        let point = tree[node];
        if from_parent {
            nearest.offer(Candidate {
                distance: query.square(&point),
                index: node as u32,
            });
        }
        let axis = (node + 1).ilog2() as usize % P::DIMENSIONS;
        let side = query.coordinate(axis) - point.coordinate(axis);
        let (close, far) = if side > 0.0 {
            (2 * node + 2, 2 * node + 1)
        } else {
            (2 * node + 1, 2 * node + 2)
        };
        let next = if from_parent {
            Some(close)
        } else if previous == Some(close) && side * side <= nearest.farthest() {
            Some(far)
        } else {
            parent
        };
        (previous, current) = (current, next);
    }
    let mut found = nearest.heap;
    found.sort_unstable_by(|a, b| a.distance.partial_cmp(&b.distance).unwrap_or(Ordering::Equal));
    out[i] = found;
}

/// Puts the median of each part where the complete binary tree has it.
fn balance<P: Copy>(
    points: &mut [P],
    node: usize,
    tree: &mut [Option<P>],
    axes: usize,
    at: &dyn Fn(&P, usize) -> f32,
) {
    if points.is_empty() {
        return;
    }
    let axis = (node + 1).ilog2() as usize % axes;
    points.sort_by(|a, b| at(a, axis).total_cmp(&at(b, axis)));
    let full = (points.len() + 1).ilog2();
    let rest = points.len() + 1 - (1 << full);
    let left = (1 << full) / 2 - 1 + rest.min(1 << full >> 1);
    tree[node] = Some(points[left]);
    let (low, high) = points.split_at_mut(left);
    balance(low, 2 * node + 1, tree, axes, at);
    balance(&mut high[1..], 2 * node + 2, tree, axes, at);
}

#[test]
fn knn_finds_the_nearest_of_all() {
    let mut random = Random(118);
    let mut places: Vec<Vec3> = (0..777).map(|_| random.place(1.0)).collect();
    let queries: Vec<Vec3> = (0..150).map(|_| random.place(1.2)).collect();
    let mut tree = vec![None; places.len()];
    balance(&mut places, 0, &mut tree, 3, &|p, k| [p.x, p.y, p.z][k]);
    let tree: Vec<Vec3> = tree.into_iter().flatten().collect();
    assert_eq!(tree.len(), 777);
    let flat = |v: &Vec3| [v.x, v.y];
    let mut pairs: Vec<[f32; 2]> = places.iter().map(flat).collect();
    let mut flat_tree = vec![None; pairs.len()];
    balance(&mut pairs, 0, &mut flat_tree, 2, &|p, k| p[k]);
    let flat_tree: Vec<[f32; 2]> = flat_tree.into_iter().flatten().collect();
    let reach = 0.3f64;
    let nearest = |squares: Vec<f64>, k: usize| {
        let mut squares: Vec<f64> = squares.into_iter().filter(|d| *d < reach * reach).collect();
        squares.sort_by(f64::total_cmp);
        squares.resize(k, reach * reach);
        squares
    };
    everywhere(|run| {
        let (t, q, y) = (
            run.upload(&tree),
            run.upload(&queries),
            run.zeros::<[Candidate; 7]>(150),
        );
        let config = LaunchConfig::linear(150, 32);
        run.launch(neighbours::kernel::<Vec3, 7>(), config, args![0.3f32, &t, &q, &y]);
        for (query, found) in queries.iter().zip(run.read(&y)) {
            let squares = tree.iter().map(|p| {
                let d = minus(wide(*p), wide(*query));
                inner(d, d)
            });
            for (square, found) in nearest(squares.collect(), 7).iter().zip(found) {
                assert!(
                    (f64::from(found.distance) - square).abs() < 1e-6,
                    "on {}",
                    run.place()
                );
                if let Some(p) = tree.get(found.index as usize) {
                    let d = minus(wide(*p), wide(*query));
                    assert!((inner(d, d) - square).abs() < 1e-6, "on {}", run.place());
                }
            }
        }
        let points: Vec<[f32; 2]> = queries.iter().map(flat).collect();
        let (t, q, y) = (
            run.upload(&flat_tree),
            run.upload(&points),
            run.zeros::<[Candidate; 4]>(150),
        );
        run.launch(
            neighbours::kernel::<[f32; 2], 4>(),
            config,
            args![0.3f32, &t, &q, &y],
        );
        for (query, found) in points.iter().zip(run.read(&y)) {
            let apart = |p: &[f32; 2], k: usize| (f64::from(p[k]) - f64::from(query[k])).powi(2);
            let squares = flat_tree.iter().map(|p| apart(p, 0) + apart(p, 1)).collect();
            for (square, found) in nearest(squares, 4).iter().zip(found) {
                assert!(
                    (f64::from(found.distance) - square).abs() < 1e-6,
                    "on {}",
                    run.place()
                );
            }
        }
    });
}
