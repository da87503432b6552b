//! Graphs and grouping: strongly connected components, trusses, multisplit.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 275: strongly connected components

/// The greatest vertices that are known to reach a vertex and to be reached from it.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Signature {
    reaching: u32,
    reached: u32,
}

#[kernel]
fn reset_signatures(signatures: &mut [Signature]) {
    let v = global_id_x();
    if let Some(signature) = signatures.get_mut(v) {
        *signature = Signature {
            reaching: v as u32,
            reached: v as u32,
        };
    }
}

#[kernel]
fn spread(edges: &[[u32; 2]], count: &u32, signatures: &mut [Signature], changed: &mut u32) {
    let i = global_id_x();
    if i >= *count as usize {
        return;
    }
    let [from, to] = edges[i].map(|v| v as usize);
    for _ in 0..6 {
        let ahead = atomic_load(&signatures[to].reached);
        let behind = atomic_load(&signatures[from].reaching);
        let is_further = atomic_max(&mut signatures[from].reached, ahead) < ahead;
        let is_new = is_further | (atomic_max(&mut signatures[to].reaching, behind) < behind);
        if is_new {
            atomic_store(changed, 1);
        }
    }
}

/// Keeps edges between vertices with one signature which is not yet that of a component.
#[kernel]
fn keep_edges(
    edges: &[[u32; 2]],
    count: &u32,
    signatures: &[Signature],
    kept: &mut [[u32; 2]],
    left: &mut u32,
) {
    let i = global_id_x();
    if i >= *count as usize {
        return;
    }
    let [a, b] = edges[i].map(|v| signatures[v as usize]);
    if a == b && a.reaching != a.reached {
        let at = atomic_add(left, 1) as usize;
        kept[at] = edges[i];
    }
}

#[kernel]
fn settle(signatures: &[Signature], components: &mut [u32]) {
    let v = global_id_x();
    if v < components.len() {
        let Signature { reaching, reached } = signatures[v];
        if components[v] == u32::MAX && reaching == reached {
            components[v] = reached;
        }
    }
}

#[test]
fn components_of_a_directed_graph() {
    let mut random = Random(275);
    let n = 131usize;
    let mut edges: Vec<[u32; 2]> = Vec::new();
    for _ in 0..190 {
        edges.push([random.bits() as u32 % n as u32, random.bits() as u32 % n as u32]);
    }
    // A ring, so that one component is long.
    for v in 40..60u32 {
        edges.push([v, if v == 59 { 40 } else { v + 1 }]);
    }
    let mut reach = vec![vec![false; n]; n];
    for v in 0..n {
        reach[v][v] = true;
    }
    for [a, b] in &edges {
        reach[*a as usize][*b as usize] = true;
    }
    for k in 0..n {
        for i in 0..n {
            if reach[i][k] {
                for j in 0..n {
                    reach[i][j] |= reach[k][j];
                }
            }
        }
    }
    let expected: Vec<u32> = (0..n)
        .map(|v| (0..n).rev().find(|w| reach[v][*w] && reach[*w][v]).unwrap() as u32)
        .collect();
    everywhere(|run| {
        let m = edges.len();
        let mut list = run.upload(&edges);
        let mut count = run.upload(&[m as u32]);
        let signatures = run.zeros::<Signature>(n);
        let components = run.upload(&vec![u32::MAX; n]);
        for round in 0.. {
            assert!(round < n, "on {}", run.place());
            // Without edges what is left are components of one vertex.
            let is_last = run.read(&count)[0] == 0;
            run.launch(
                reset_signatures::kernel(),
                LaunchConfig::linear(n, 64),
                args![&signatures],
            );
            loop {
                let changed = run.zeros::<u32>(1);
                run.launch(
                    spread::kernel(),
                    LaunchConfig::linear(m, 64),
                    args![&list, &count, &signatures, &changed],
                );
                if run.read(&changed)[0] == 0 {
                    break;
                }
            }
            run.launch(
                settle::kernel(),
                LaunchConfig::linear(n, 64),
                args![&signatures, &components],
            );
            let (kept, left) = (run.zeros::<[u32; 2]>(m), run.zeros::<u32>(1));
            let config = LaunchConfig::linear(m, 64);
            run.launch(
                keep_edges::kernel(),
                config,
                args![&list, &count, &signatures, &kept, &left],
            );
            if is_last {
                break;
            }
            (list, count) = (kept, left);
        }
        run.holds(&components, &expected);
    });
}

// 276: k-truss

/// How many triangles of living edges an edge is part of: common neighbours of its ends, whose lists are sorted.
#[device]
fn support([u, v]: [u32; 2], starts: &[u32], neighbours: &[u32], ids: &[u32], alive: &[u32]) -> u32 {
    use std::cmp::Ordering;
    let row = |v: u32| starts[v as usize] as usize..starts[v as usize + 1] as usize;
    let (first, second) = (row(u), row(v));
    let (mut i, mut j) = (first.start, second.start);
    let mut triangles = 0;
    while i < first.end && j < second.end {
        match neighbours[i].cmp(&neighbours[j]) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                triangles += alive[ids[i] as usize] & alive[ids[j] as usize];
                i += 1;
                j += 1;
            }
        }
    }
    triangles
}

#[kernel]
fn peel(
    k: u32,
    ends: &[[u32; 2]],
    starts: &[u32],
    neighbours: &[u32],
    ids: &[u32],
    alive: &[u32],
    next: &mut [u32],
    levels: &mut [u32],
    counts: &mut [u32; 2],
) {
    let e = global_id_x();
    if e >= ends.len() {
        return;
    }
    let stays = alive[e] == 1 && support(ends[e], starts, neighbours, ids, alive) + 2 >= k;
    next[e] = u32::from(stays);
    if stays {
        atomic_add(&mut counts[0], 1);
    } else if alive[e] == 1 {
        levels[e] = k - 1;
        atomic_add(&mut counts[1], 1);
    }
}

#[test]
fn trusses_of_a_graph() {
    use std::collections::BTreeSet;
    let mut random = Random(276);
    let n = 45u32;
    let mut set: BTreeSet<[u32; 2]> = BTreeSet::new();
    // A few cliques of different sizes in a sparse graph.
    for (first, size) in [(3, 8), (20, 5), (30, 6)] {
        for a in first..first + size {
            set.extend((a + 1..first + size).map(|b| [a, b]));
        }
    }
    while set.len() < 200 {
        let (a, b) = (random.bits() as u32 % n, random.bits() as u32 % n);
        if a != b {
            set.insert([a.min(b), a.max(b)]);
        }
    }
    let ends: Vec<[u32; 2]> = set.iter().copied().collect();
    let (mut starts, mut neighbours, mut ids) = (vec![0u32], Vec::<u32>::new(), Vec::<u32>::new());
    for v in 0..n {
        let mut row: Vec<(u32, u32)> = Vec::new();
        for (id, [a, b]) in ends.iter().enumerate() {
            if *a == v {
                row.push((*b, id as u32));
            } else if *b == v {
                row.push((*a, id as u32));
            }
        }
        row.sort();
        neighbours.extend(row.iter().map(|(w, _)| *w));
        ids.extend(row.iter().map(|(_, id)| *id));
        starts.push(neighbours.len() as u32);
    }
    // One weak edge after the other leaves, of a plain set.
    let mut expected = vec![0u32; ends.len()];
    let mut left = set.clone();
    let mut k = 3;
    while !left.is_empty() {
        let edge = |a: u32, b: u32| left.contains(&[a.min(b), a.max(b)]);
        let weak = left
            .iter()
            .copied()
            .find(|[a, b]| (0..n).filter(|c| edge(*a, *c) && edge(*b, *c)).count() + 2 < k);
        match weak {
            Some(weak) => {
                left.remove(&weak);
                expected[ends.iter().position(|e| *e == weak).unwrap()] = k as u32 - 1;
            }
            None => k += 1,
        }
    }
    assert_eq!(expected.iter().max(), Some(&8));
    everywhere(|run| {
        let m = ends.len();
        let (x, from) = (run.upload(&ends), run.upload(&starts));
        let (to, numbers) = (run.upload(&neighbours), run.upload(&ids));
        let (mut alive, mut next) = (run.upload(&vec![1u32; m]), run.zeros::<u32>(m));
        let levels = run.zeros::<u32>(m);
        let mut k = 3u32;
        loop {
            let counts = run.zeros::<[u32; 2]>(1);
            run.launch(
                peel::kernel(),
                LaunchConfig::linear(m, 64),
                args![k, &x, &from, &to, &numbers, &alive, &next, &levels, &counts],
            );
            std::mem::swap(&mut alive, &mut next);
            match run.read(&counts)[0] {
                [0, _] => break,
                [_, 0] => k += 1,
                _ => {}
            }
        }
        run.holds(&levels, &expected);
    });
}

// 277: multisplit

const BUCKETS: usize = 8;

/// The lanes of the subgroup whose keys go to the same bucket.
#[device]
fn peers(bucket: usize, is_there: bool) -> [u32; 4] {
    let mut mask = subgroup_ballot(is_there);
    for bit in 0..BUCKETS.ilog2() {
        let is_set = bucket >> bit & 1 == 1;
        let votes = subgroup_ballot(is_set);
        for (word, votes) in mask.iter_mut().zip(votes) {
            *word &= if is_set { votes } else { !votes };
        }
    }
    mask
}

/// How many keys of the block go to the lane's bucket and come before its own. At the end `counts` holds how many each
/// subgroup has for each bucket.
#[device]
fn rank_in_block(counts: &mut [[u32; BUCKETS]; 128], bucket: usize, is_there: bool) -> u32 {
    counts[local_id_x()] = [0; BUCKETS];
    sync_threads();
    let mask = peers(bucket, is_there);
    let lane = subgroup_lane();
    let rank: u32 = mask
        .iter()
        .zip([0, 32, 64, 96])
        .map(|(word, first)| {
            let below = lane.saturating_sub(first);
            (word & 1u32.unbounded_shl(below).wrapping_sub(1)).count_ones()
        })
        .sum();
    let own = subgroup_id() as usize;
    if is_there && rank == 0 {
        counts[own][bucket] = mask.iter().map(|word| word.count_ones()).sum();
    }
    sync_threads();
    counts[..own].iter().map(|row| row[bucket]).sum::<u32>() + rank
}

#[kernel(block_size = 128)]
fn count_buckets<F: Fn(u32) -> u32>(bucket_of: F, keys: &[u32], totals: &mut [u32]) {
    let counts = shared_array::<[[u32; BUCKETS]; 128]>();
    let key = keys.get(global_id_x()).copied();
    let bucket = key.map_or(0, |key| bucket_of(key) as usize);
    rank_in_block(counts, bucket, key.is_some());
    let lane = local_id_x();
    if lane < BUCKETS {
        let blocks = totals.len() / BUCKETS;
        totals[lane * blocks + group_id_x()] = counts.iter().map(|row| row[lane]).sum();
    }
}

/// Sums of what comes before, in place, by one block.
#[kernel(block_size = 128)]
fn scan_totals(totals: &mut [u32]) {
    let sums = shared_array::<[u32; 128]>();
    let lane = local_id_x();
    let (own, size) = (subgroup_id() as usize, subgroup_size());
    let mut carry = 0;
    for base in (0..totals.len()).step_by(128) {
        let value = totals.get(base + lane).copied().unwrap_or_default();
        let sum = subgroup_inclusive_add(value);
        if subgroup_lane() + 1 == size {
            sums[own] = sum;
        }
        sync_threads();
        let before = carry + sums[..own].iter().sum::<u32>() + sum - value;
        if let Some(total) = totals.get_mut(base + lane) {
            *total = before;
        }
        carry += sums[..128 / size as usize].iter().sum::<u32>();
        sync_threads();
    }
}

#[kernel(block_size = 128)]
fn scatter<F: Fn(u32) -> u32>(bucket_of: F, keys: &[u32], offsets: &[u32], out: &mut [u32]) {
    let counts = shared_array::<[[u32; BUCKETS]; 128]>();
    let key = keys.get(global_id_x()).copied();
    let bucket = key.map_or(0, |key| bucket_of(key) as usize);
    let rank = rank_in_block(counts, bucket, key.is_some());
    if let Some(key) = key {
        let blocks = offsets.len() / BUCKETS;
        out[(offsets[bucket * blocks + group_id_x()] + rank) as usize] = key;
    }
}

#[device]
fn by_size(key: u32) -> u32 {
    key.leading_zeros().min(7)
}

#[device]
fn by_rest(key: u32) -> u32 {
    key % 7
}

#[test]
fn keys_in_buckets() {
    let mut random = Random(277);
    let n = 128 * 18 + 45;
    let keys: Vec<u32> = (0..n)
        .map(|_| random.bits() as u32 >> (random.bits() % 11))
        .collect();
    let mut sizes = keys.clone();
    sizes.sort_by_key(|key| (0..7u32).find(|k| key >> (31 - *k) == 1).unwrap_or(7));
    let mut rests = keys.clone();
    rests.sort_by_key(|key| key - key / 7 * 7);
    everywhere(|run| {
        let kernels = [
            (
                count_buckets::kernel::<by_size>(),
                scatter::kernel::<by_size>(),
                &sizes,
            ),
            (
                count_buckets::kernel::<by_rest>(),
                scatter::kernel::<by_rest>(),
                &rests,
            ),
        ];
        for (count, scatter, expected) in kernels {
            let (x, out) = (run.upload(&keys), run.zeros::<u32>(n));
            let totals = run.zeros::<u32>(BUCKETS * n.div_ceil(128));
            run.launch(count, LaunchConfig::linear(n, 128), args![&x, &totals]);
            run.launch(scan_totals::kernel(), LaunchConfig::new(1, 128), args![&totals]);
            run.launch(scatter, LaunchConfig::linear(n, 128), args![&x, &totals, &out]);
            run.holds(&out, expected);
        }
    });
}
