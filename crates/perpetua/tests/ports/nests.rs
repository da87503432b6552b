//! What lanes move about together: the shells of a graph, keys that push each other out, codes for lost parts.

use std::ops::{Add, AddAssign, Div, Mul};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 186: core numbers

#[device]
fn push(queue: &mut [u32], count: &mut u32, vertex: usize) {
    let at = atomic_add(count, 1);
    queue[at as usize] = vertex as u32;
}

/// The vertices that have as many neighbours left as the level says.
#[kernel]
fn collect(level: u32, degrees: &[u32], queue: &mut [u32], count: &mut u32) {
    let vertex = global_id_x();
    if degrees.get(vertex) == Some(&level) {
        push(queue, count, vertex);
    }
}

/// Takes the vertices of the queue from `start` to `end` out of the graph; those that come down to the level follow.
#[kernel]
fn peel(
    level: u32,
    start: u32,
    end: u32,
    edges: &[u32],
    neighbours: &[u32],
    degrees: &mut [u32],
    queue: &mut [u32],
    count: &mut u32,
) {
    let i = start as usize + global_id_x();
    if i >= end as usize {
        return;
    }
    let vertex = queue[i] as usize;
    for &neighbour in &neighbours[edges[vertex] as usize..edges[vertex + 1] as usize] {
        let other = neighbour as usize;
        if atomic_load(&degrees[other]) <= level {
            continue;
        }
        match atomic_sub(&mut degrees[other], 1) {
            before if before == level + 1 => push(queue, count, other),
            before if before <= level => {
                atomic_add(&mut degrees[other], 1);
            }
            _ => {}
        }
    }
}

#[test]
fn shells_of_a_graph_are_peeled() {
    let mut random = Random(186);
    let n = 300usize;
    let mut lists = vec![Vec::new(); n];
    for _ in 0..1500 {
        // Vertices with low numbers have more.
        let (a, b) = (random.below(n) * random.below(n) / n, random.below(n));
        if a != b && !lists[a].contains(&(b as u32)) {
            lists[a].push(b as u32);
            lists[b].push(a as u32);
        }
    }
    let mut edges = vec![0u32];
    let neighbours: Vec<u32> = lists
        .iter()
        .flat_map(|l| {
            edges.push(edges[edges.len() - 1] + l.len() as u32);
            l.clone()
        })
        .collect();
    let mut expected = vec![0u32; n];
    for k in 1.. {
        // What remains when all with fewer than `k` neighbours are gone.
        let mut left = vec![true; n];
        loop {
            let count = |v: usize| lists[v].iter().filter(|u| left[**u as usize]).count();
            let Some(gone) = (0..n).find(|v| left[*v] && count(*v) < k) else {
                break;
            };
            left[gone] = false;
        }
        if !left.contains(&true) {
            break;
        }
        for v in 0..n {
            if left[v] {
                expected[v] = k as u32;
            }
        }
    }
    let degrees: Vec<u32> = lists.iter().map(|l| l.len() as u32).collect();
    everywhere(|run| {
        let (e, v) = (run.upload(&edges), run.upload(&neighbours));
        let (d, queue, count) = (run.upload(&degrees), run.zeros::<u32>(n), run.zeros::<u32>(1));
        let (mut done, mut level) = (0u32, 0u32);
        while done < n as u32 {
            run.launch(
                collect::kernel(),
                LaunchConfig::linear(n, 64),
                args![level, &d, &queue, &count],
            );
            let mut end = run.read(&count)[0];
            while done < end {
                let config = LaunchConfig::linear((end - done) as usize, 64);
                run.launch(
                    peel::kernel(),
                    config,
                    args![level, done, end, &e, &v, &d, &queue, &count],
                );
                done = end;
                end = run.read(&count)[0];
            }
            level += 1;
        }
        run.holds(&d, &expected);
    });
}

// 190: cuckoo hashing

const EMPTY: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Entry {
    key: u32,
    value: u32,
}

#[device]
impl From<u64> for Entry {
    fn from(word: u64) -> Self {
        Entry {
            key: (word >> 32) as u32,
            value: word as u32,
        }
    }
}

#[device]
impl From<Entry> for u64 {
    fn from(entry: Entry) -> Self {
        u64::from(entry.key) << 32 | u64::from(entry.value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Hash {
    factor: u64,
    added: u64,
}

#[device]
impl Hash {
    fn bucket(&self, key: u32, buckets: usize) -> usize {
        let hash = (self.factor * u64::from(key) + self.added) % 4_294_967_291;
        hash as usize % buckets
    }
}

/// Whether there was room: who stood there moves to its next place, and so on.
#[device]
fn insert(hashes: &[Hash; 4], most: u32, table: &mut [u64], mut entry: Entry) -> bool {
    let buckets = table.len();
    let mut bucket = hashes[0].bucket(entry.key, buckets);
    for _ in 0..most {
        let before = atomic_exchange(&mut table[bucket], entry.into());
        if before == EMPTY {
            return true;
        }
        entry = before.into();
        let places = hashes.map(|h| h.bucket(entry.key, buckets));
        let at = places.iter().position(|p| *p == bucket).unwrap_or(3);
        bucket = places[(at + 1) % 4];
    }
    false
}

#[device]
fn find(hashes: &[Hash; 4], table: &[u64], key: u32) -> Option<u32> {
    hashes
        .iter()
        .map(|h| table[h.bucket(key, table.len())])
        .take_while(|word| *word != EMPTY)
        .map(Entry::from)
        .find(|entry| entry.key == key)
        .map(|entry| entry.value)
}

#[kernel]
fn insert_all(hashes: [Hash; 4], most: u32, entries: &[Entry], table: &mut [u64], failed: &mut u32) {
    if let Some(entry) = entries.get(global_id_x()) {
        if !insert(&hashes, most, table, *entry) {
            atomic_add(failed, 1);
        }
    }
}

#[kernel]
fn find_all(hashes: [Hash; 4], table: &[u64], keys: &[u32], values: &mut [u32]) {
    let i = global_id_x();
    if i < keys.len() {
        values[i] = find(&hashes, table, keys[i]).unwrap_or(u32::MAX);
    }
}

#[test]
fn keys_find_their_nests() {
    let mut random = Random(190);
    let entries: Vec<Entry> = (0..400u32)
        .map(|value| Entry {
            key: value * 7919 + (random.bits() as u32 % 7919),
            value,
        })
        .collect();
    let keys: Vec<u32> = entries
        .iter()
        .flat_map(|e| [e.key, e.key ^ 0x8000_0000])
        .collect();
    let expected: Vec<u32> = entries.iter().flat_map(|e| [e.value, u32::MAX]).collect();
    let hashes: [Hash; 4] = std::array::from_fn(|_| Hash {
        factor: random.bits() >> 33,
        added: random.bits() >> 33,
    });
    everywhere(|run| {
        let (e, k) = (run.upload(&entries), run.upload(&keys));
        let (table, failed) = (run.upload(&vec![EMPTY; 640]), run.zeros::<u32>(1));
        let config = LaunchConfig::linear(entries.len(), 64);
        run.launch(
            insert_all::kernel(),
            config,
            args![hashes, 60u32, &e, &table, &failed],
        );
        run.holds(&failed, &[0]);
        let values = run.zeros::<u32>(keys.len());
        let config = LaunchConfig::linear(keys.len(), 64);
        run.launch(find_all::kernel(), config, args![hashes, &table, &k, &values]);
        run.holds(&values, &expected);
        let mut stored: Vec<u64> = run.read(&table);
        stored.retain(|w| *w != EMPTY);
        assert_eq!(stored.len(), entries.len(), "on {}", run.place());
    });
}

// 189: Reed and Solomon's codes

/// Powers of the generator twice, so that sums of two logarithms need no remainder.
const fn powers() -> [u8; 510] {
    let mut table = [0; 510];
    let mut value = 1u16;
    let mut i = 0;
    while i < 255 {
        table[i] = value as u8;
        table[i + 255] = value as u8;
        value <<= 1;
        if value > 255 {
            value ^= 0x11d;
        }
        i += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let powers = powers();
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[powers[i] as usize] = i as u8;
        i += 1;
    }
    table
}

const POWERS: [u8; 510] = powers();
const LOGARITHMS: [u8; 256] = logarithms();

/// An element of the field of 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Gf(u8);

#[device]
impl Gf {
    const ZERO: Self = Gf(0);
    const ONE: Self = Gf(1);

    fn logarithm(self) -> usize {
        LOGARITHMS[usize::from(self.0)].into()
    }
}

#[device]
impl Add for Gf {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Gf(self.0 ^ other.0)
    }
}

#[device]
impl AddAssign for Gf {
    fn add_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

#[device]
impl Mul for Gf {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        if self == Self::ZERO || other == Self::ZERO {
            return Self::ZERO;
        }
        Gf(POWERS[self.logarithm() + other.logarithm()])
    }
}

#[device]
impl Div for Gf {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        if self == Self::ZERO {
            return Self::ZERO;
        }
        Gf(POWERS[self.logarithm() + 255 - other.logarithm()])
    }
}

const TILE: usize = 16;

/// `result = matrix data`, with tiles of both in shared memory.
#[kernel(block_size = (16, 16))]
fn multiply(inner: usize, length: usize, matrix: &[Gf], data: &[Gf], result: &mut [Gf]) {
    let left = shared_array::<[[Gf; TILE]; TILE]>();
    let right = shared_array::<[[Gf; TILE]; TILE]>();
    let (x, y) = (local_id_x(), local_id_y());
    let (column, row) = (global_id_x(), global_id_y());
    let mut sum = Gf::ZERO;
    for start in (0..inner).step_by(TILE) {
        left[y][x] = if start + x < inner && row < matrix.len() / inner {
            matrix[row * inner + start + x]
        } else {
            Gf::ZERO
        };
        right[y][x] = if start + y < inner && column < length {
            data[(start + y) * length + column]
        } else {
            Gf::ZERO
        };
        sync_threads();
        for (a, line) in left[y].iter().zip(right.iter()) {
            sum += *a * line[x];
        }
        sync_threads();
    }
    if column < length {
        if let Some(place) = result.get_mut(row * length + column) {
            *place = sum;
        }
    }
}

const SIDE: usize = 16;

/// Gauss and Jordan's elimination, a column of the matrix and the identity a lane.
#[kernel(block_size = 32)]
fn invert(n: usize, matrix: &[Gf], inverse: &mut [Gf]) {
    let rows = shared_array::<[[Gf; 2 * SIDE]; SIDE]>();
    let column = local_id_x();
    for (r, row) in rows.iter_mut().take(n).enumerate() {
        row[column] = match column.checked_sub(SIDE) {
            None => matrix
                .get(r * n + column)
                .copied()
                .filter(|_| column < n)
                .unwrap_or(Gf::ZERO),
            Some(c) if c == r => Gf::ONE,
            Some(_) => Gf::ZERO,
        };
    }
    sync_threads();
    for k in 0..n {
        let pivot = (k..n).find(|r| rows[*r][k] != Gf::ZERO).unwrap();
        sync_threads();
        if pivot != k {
            let (upper, lower) = rows.split_at_mut(pivot);
            std::mem::swap(&mut upper[k][column], &mut lower[0][column]);
        }
        sync_threads();
        let own = rows[k][column] / rows[k][k];
        let factors: [Gf; SIDE] = std::array::from_fn(|r| rows[r][k]);
        sync_threads();
        for r in 0..n {
            if r == k {
                rows[r][column] = own;
            } else {
                rows[r][column] += factors[r] * own;
            }
        }
        sync_threads();
    }
    if let Some(c) = column.checked_sub(SIDE).filter(|c| *c < n) {
        for (r, row) in rows[..n].iter().enumerate() {
            inverse[r * n + c] = row[column];
        }
    }
}

fn product(mut a: u32, mut b: u32) -> u32 {
    let mut result = 0;
    while b > 0 {
        if b & 1 == 1 {
            result ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= 0x11d;
        }
        b >>= 1;
    }
    result
}

#[test]
fn lost_parts_are_computed_from_the_others() {
    let mut random = Random(189);
    let (parts, extra, length) = (11usize, 5usize, 150usize);
    let data: Vec<Gf> = random.bytes(parts * length).into_iter().map(Gf).collect();
    // Vandermonde's rows.
    let code: Vec<Gf> = (0..extra)
        .flat_map(|r| (0..parts as u32).map(move |c| Gf((0..r).fold(1, |p, _| product(p, c + 1)) as u8)))
        .collect();
    let expected: Vec<Gf> = (0..extra * length)
        .map(|i| {
            let (r, x) = (i / length, i % length);
            let terms =
                (0..parts).map(|c| product(code[r * parts + c].0.into(), data[c * length + x].0.into()));
            Gf(terms.fold(0, |sum, t| sum ^ t) as u8)
        })
        .collect();
    let lost = [1usize, 4, 9];
    let kept: Vec<usize> = (0..parts).filter(|p| !lost.contains(p)).collect();
    // The rows of what is left: the identity's, and the first three of the code's.
    let mut rows = vec![Gf::ZERO; parts * parts];
    let mut left = Vec::new();
    for (r, part) in kept.iter().enumerate() {
        rows[r * parts + part] = Gf::ONE;
        left.extend_from_slice(&data[part * length..(part + 1) * length]);
    }
    rows[kept.len() * parts..].copy_from_slice(&code[..3 * parts]);
    left.extend_from_slice(&expected[..3 * length]);
    everywhere(|run| {
        let (m, d) = (run.upload(&code), run.upload(&data));
        let result = run.zeros::<Gf>(extra * length);
        let config = LaunchConfig::tiled(length as u32, extra as u32, (16, 16));
        run.launch(multiply::kernel(), config, args![parts, length, &m, &d, &result]);
        run.holds(&result, &expected);
        let (matrix, inverse) = (run.upload(&rows), run.zeros::<Gf>(parts * parts));
        run.launch(
            invert::kernel(),
            LaunchConfig::new(1, 32),
            args![parts, &matrix, &inverse],
        );
        let (shares, back) = (run.upload(&left), run.zeros::<Gf>(parts * length));
        let config = LaunchConfig::tiled(length as u32, parts as u32, (16, 16));
        run.launch(
            multiply::kernel(),
            config,
            args![parts, length, &inverse, &shares, &back],
        );
        run.holds(&back, &data);
    });
}
