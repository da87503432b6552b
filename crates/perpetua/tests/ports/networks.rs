//! Graphs and lists, as matrices and by pointers.

use std::cmp::Ordering;

use perpetua::prelude::*;

use crate::graphs::{graph, neighbours};
use crate::harness::{Random, everywhere};

// 21: PageRank

#[kernel(block_size = 64)]
fn idle(degrees: &[u32], ranks: &[f32], lost: &mut [f32]) {
    let part = shared_array::<[f32; 64]>();
    let (i, lane) = (global_id_x(), local_id_x());
    part[lane] = match degrees.get(i) {
        Some(0) => ranks[i],
        _ => 0.0,
    };
    sync_threads();
    for half in [32, 16, 8, 4, 2, 1] {
        if lane < half {
            part[lane] += part[lane + half];
        }
        sync_threads();
    }
    if lane == 0 {
        atomic_add(&mut lost[0], part[0]);
    }
}

#[kernel]
fn pull(
    starts: &[u32],
    sources: &[u32],
    degrees: &[u32],
    ranks: &[f32],
    lost: &[f32],
    damping: f32,
    next: &mut [f32],
) {
    let v = global_id_x();
    let count = next.len() as f32;
    if let Some(rank) = next.get_mut(v) {
        let incoming: f32 = neighbours(starts, sources, v)
            .iter()
            .map(|&u| ranks[u as usize] / degrees[u as usize] as f32)
            .sum();
        *rank = (1.0 - damping) / count + damping * (incoming + lost[0] / count);
    }
}

#[test]
fn pagerank_is_what_walks_come_to() {
    let n = 200;
    let mut random = Random(21);
    let edges: Vec<(usize, usize)> = (0..500)
        .map(|_| (random.bits() as usize % 150, random.bits() as usize % n))
        .collect();
    let mut degrees = vec![0u32; n];
    let mut rows = vec![Vec::new(); n];
    for (from, to) in &edges {
        degrees[*from] += 1;
        rows[*to].push(*from as u32);
    }
    let starts: Vec<u32> = (0..=n)
        .map(|v| rows[..v].iter().map(|r| r.len() as u32).sum())
        .collect();
    let sources = rows.concat();
    let mut expected = vec![1.0 / n as f64; n];
    for _ in 0..20 {
        let mut next = vec![0.15 / n as f64; n];
        for (from, to) in &edges {
            next[*to] += 0.85 * expected[*from] / f64::from(degrees[*from]);
        }
        for (rank, degree) in expected.iter().zip(&degrees) {
            if *degree == 0 {
                next.iter_mut().for_each(|r| *r += 0.85 * rank / n as f64);
            }
        }
        expected = next;
    }
    everywhere(|run| {
        let (starts, sources, degrees) = (run.upload(&starts), run.upload(&sources), run.upload(&degrees));
        let mut ranks = run.upload(&vec![1.0 / n as f32; n]);
        for _ in 0..20 {
            let (lost, next) = (run.zeros::<f32>(1), run.zeros::<f32>(n));
            let config = || LaunchConfig::linear(n, 64);
            run.launch(idle::kernel(), config(), args![&degrees, &ranks, &lost]);
            run.launch(
                pull::kernel(),
                config(),
                args![&starts, &sources, &degrees, &ranks, &lost, 0.85f32, &next],
            );
            ranks = next;
        }
        run.near(&ranks, &expected, 1e-6);
    });
}

// 22: Jaccard weights

#[device]
fn common(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                count += 1;
                i += 1;
                j += 1;
            }
        }
    }
    count
}

#[kernel]
fn jaccard(starts: &[u32], targets: &[u32], weights: &mut [f32]) {
    let v = global_id_x();
    if v + 1 >= starts.len() {
        return;
    }
    let own = neighbours(starts, targets, v);
    for (k, &u) in own.iter().enumerate() {
        let other = neighbours(starts, targets, u as usize);
        let both = common(own, other);
        weights[starts[v] as usize + k] = both as f32 / (own.len() + other.len() - both) as f32;
    }
}

#[test]
fn jaccard_counts_common_neighbours() {
    let n = 150;
    let (starts, targets) = graph(n, 900, 22);
    let sets: Vec<std::collections::BTreeSet<u32>> = (0..n)
        .map(|v| {
            targets[starts[v] as usize..starts[v + 1] as usize]
                .iter()
                .copied()
                .collect()
        })
        .collect();
    let targets: Vec<u32> = sets.iter().flatten().copied().collect();
    let starts: Vec<u32> = (0..=n)
        .map(|v| sets[..v].iter().map(|s| s.len() as u32).sum())
        .collect();
    let expected: Vec<f64> = sets
        .iter()
        .flat_map(|own| own.iter().map(move |u| (own, *u as usize)))
        .map(|(own, u)| own.intersection(&sets[u]).count() as f64 / own.union(&sets[u]).count() as f64)
        .collect();
    everywhere(|run| {
        let (starts, targets) = (run.upload(&starts), run.upload(&targets));
        let weights = run.zeros::<f32>(expected.len());
        let config = LaunchConfig::linear(n, 64);
        run.launch(jaccard::kernel(), config, args![&starts, &targets, &weights]);
        run.near(&weights, &expected, 1e-6);
    });
}

// 23: list ranking

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Link {
    next: u32,
    rank: u32,
}

#[kernel]
fn double(links: &[Link], doubled: &mut [Link]) {
    let i = global_id_x();
    if let Some(link) = doubled.get_mut(i) {
        let Link { next, rank } = links[i];
        let ahead = links[next as usize];
        *link = Link {
            next: ahead.next,
            rank: rank + ahead.rank,
        };
    }
}

#[test]
fn ranking_counts_to_the_end() {
    let n = 700usize;
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut random = Random(23);
    order.sort_by_cached_key(|_| random.bits());
    let mut links = vec![Link { next: 0, rank: 0 }; n];
    let mut expected = vec![0u32; n];
    for (at, v) in order.iter().enumerate() {
        let next = order.get(at + 1).copied();
        links[*v as usize] = Link {
            next: next.unwrap_or(*v),
            rank: u32::from(next.is_some()),
        };
        expected[*v as usize] = (n - 1 - at) as u32;
    }
    everywhere(|run| {
        let mut from = run.upload(&links);
        let mut to = run.upload(&links);
        for _ in 0..10 {
            run.launch(double::kernel(), LaunchConfig::linear(n, 64), args![&from, &to]);
            std::mem::swap(&mut from, &mut to);
        }
        let ranks: Vec<u32> = run.read(&from).iter().map(|link| link.rank).collect();
        assert_eq!(ranks, expected);
    });
}

// 24: all pairs of vertices

#[kernel(block_size = (8, 8))]
fn floyd(n: usize, through: usize, distances: &mut [u32], via: &mut [u32]) {
    let (from, to) = (global_id_y(), global_id_x());
    if from >= n || to >= n {
        return;
    }
    let first = distances[from * n + through];
    let second = distances[through * n + to];
    if let Some(sum) = first.checked_add(second)
        && sum < distances[from * n + to]
    {
        distances[from * n + to] = sum;
        via[from * n + to] = through as u32;
    }
}

#[test]
fn floyd_finds_the_shortest() {
    let n = 30usize;
    let mut random = Random(24);
    let none = u32::MAX;
    let direct: Vec<u32> = (0..n * n)
        .map(|i| match random.bits() % 6 {
            _ if i / n == i % n => 0,
            0 => 1 + random.bits() as u32 % 100,
            _ => none,
        })
        .collect();
    // Rounds of Bellman and Ford.
    let mut expected = direct.clone();
    for _ in 0..n {
        for from in 0..n {
            for to in 0..n {
                for last in 0..n {
                    let sum = u64::from(expected[from * n + last]) + u64::from(direct[last * n + to]);
                    expected[from * n + to] = u64::from(expected[from * n + to]).min(sum) as u32;
                }
            }
        }
    }
    everywhere(|run| {
        let (distances, via) = (run.upload(&direct), run.upload(&vec![none; n * n]));
        for through in 0..n {
            run.launch(
                floyd::kernel(),
                LaunchConfig::tiled(n as u32, n as u32, (8, 8)),
                args![n, through, &distances, &via],
            );
        }
        run.holds(&distances, &expected);
        // A vertex between two lies on a shortest way.
        for (pair, between) in run.read(&via).iter().enumerate() {
            if *between != none {
                let (from, to, between) = (pair / n, pair % n, *between as usize);
                assert_eq!(
                    expected[pair],
                    expected[from * n + between] + expected[between * n + to]
                );
            }
        }
    });
}
