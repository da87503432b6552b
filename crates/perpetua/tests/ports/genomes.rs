//! Genomes: chains of anchors, minimizers, and edit distances.

use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 110: minimap2's chains

const BACK: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Anchor {
    x: i32,
    y: i32,
    tag: u16,
    span: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Link {
    score: i32,
    /// -1 where a chain begins.
    parent: i32,
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Limits {
    max_x: i32,
    max_y: i32,
    bandwidth: i32,
}

#[device]
impl Limits {
    /// What `next` gains behind `last`, if it may follow.
    fn gain(&self, last: Anchor, next: Anchor, average: f32) -> Option<i32> {
        let (dx, dy) = (next.x - last.x, next.y - last.y);
        let far = !(1..=self.max_x).contains(&dx) || !(1..=self.max_y).contains(&dy);
        let gap = dx.abs_diff(dy);
        if last.tag != next.tag || far || gap > self.bandwidth as u32 {
            return None;
        }
        let linear = (gap as f32 * (0.01 * average)) as i32;
        let log = gap.checked_ilog2().unwrap_or(0).min(8) as i32;
        Some(dx.min(dy).min(i32::from(next.span)) - linear - log / 2)
    }
}

#[kernel(block_size = 64)]
fn chain(limits: Limits, starts: &[u32], averages: &[f32], anchors: &[Anchor], links: &mut [Link]) {
    let window = shared_array::<[Anchor; BACK]>();
    let best = shared_array::<[Link; BACK]>();
    let (read, lane) = (group_id_x(), local_id_x());
    let own = starts[read] as usize..starts[read + 1] as usize;
    let (anchors, links) = (&anchors[own.clone()], &mut links[own]);
    window[lane] = anchors.get(lane).copied().unwrap_or_default();
    best[lane] = Link { score: 0, parent: -1 };
    sync_threads();
    for (i, anchor) in anchors.iter().enumerate() {
        let slot = i % BACK;
        let mut link = best[slot];
        sync_threads();
        if i32::from(anchor.span) >= link.score {
            link = Link {
                score: i32::from(anchor.span),
                parent: -1,
            };
        }
        if lane == slot {
            links[i] = link;
            // The next anchor of this slot has no chain yet.
            if let Some(next) = anchors.get(i + BACK) {
                window[slot] = *next;
            }
            best[slot] = Link { score: 0, parent: -1 };
        }
        let behind = (lane + BACK - slot - 1) % BACK + 1;
        if i + behind < anchors.len() {
            if let Some(gain) = limits.gain(*anchor, window[lane], averages[read]) {
                let score = link.score + gain;
                if score >= best[lane].score {
                    best[lane] = Link {
                        score,
                        parent: i as i32,
                    };
                }
            }
        }
        sync_threads();
    }
}

#[test]
fn chaining_finds_the_best_predecessor_of_each_anchor() {
    let mut random = Random(110);
    let (mut starts, mut anchors, mut averages) = (vec![0u32], Vec::<Anchor>::new(), Vec::new());
    for read in 0..5 {
        let mut own = Vec::new();
        for _ in 0..[0, 3, 64, 200, 333][read] {
            let x = random.below(3000) as i32;
            own.push(Anchor {
                x,
                y: x + random.below(400) as i32 - 200,
                tag: random.below(2) as u16,
                span: 10 + random.below(12) as u16,
            });
        }
        own.sort_by_key(|a| (a.x, a.y));
        anchors.extend(own);
        starts.push(anchors.len() as u32);
        averages.push(random.between(10.0, 20.0) as f32);
    }
    let limits = Limits {
        max_x: 500,
        max_y: 400,
        bandwidth: 150,
    };
    let mut expected = Vec::new();
    for read in 0..5 {
        let own = &anchors[starts[read] as usize..starts[read + 1] as usize];
        let mut links: Vec<Link> = Vec::new();
        for (i, next) in own.iter().enumerate() {
            let (mut score, mut parent) = (0, -1);
            for j in i.saturating_sub(BACK)..i {
                let (dx, dy) = (next.x - own[j].x, next.y - own[j].y);
                let gap = (dx - dy).abs();
                if own[j].tag != next.tag || dx < 1 || dx > 500 || dy < 1 || dy > 400 || gap > 150 {
                    continue;
                }
                let log = if gap == 0 {
                    0
                } else {
                    f64::from(gap).log2().floor() as i32
                };
                let linear = (gap as f32 * (0.01 * averages[read])) as i32;
                let sum = links[j].score + dx.min(dy).min(i32::from(next.span)) - linear - log / 2;
                if sum >= score {
                    (score, parent) = (sum, j as i32);
                }
            }
            if i32::from(next.span) >= score {
                (score, parent) = (i32::from(next.span), -1);
            }
            links.push(Link { score, parent });
        }
        expected.extend(links);
    }
    everywhere(|run| {
        let (starts, averages) = (run.upload(&starts), run.upload(&averages));
        let (anchors, links) = (run.upload(&anchors), run.zeros::<Link>(expected.len()));
        let config = LaunchConfig::new(5, 64);
        run.launch(
            chain::kernel(),
            config,
            args![limits, &starts, &averages, &anchors, &links],
        );
        run.holds(&links, &expected);
    });
}

// 111: GenomeWorks' minimizers

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u8)]
enum Direction {
    Forward,
    Reverse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Minimizer {
    hash: u64,
    position: u32,
    direction: u32,
}

#[device]
fn base_code(letter: u8) -> Option<u64> {
    Some(match letter {
        b'A' | b'a' => 0,
        b'C' | b'c' => 1,
        b'G' | b'g' => 2,
        b'T' | b't' => 3,
        _ => return None,
    })
}

/// Thomas Wang's hash that can be inverted, of `2 k` bits.
#[device]
fn scrambled(key: u64, mask: u64) -> u64 {
    let mut key = (!key).wrapping_add(key << 21) & mask;
    key ^= key >> 24;
    key = key.wrapping_mul(265) & mask;
    key ^= key >> 14;
    key = key.wrapping_mul(21) & mask;
    key ^= key >> 28;
    key.wrapping_add(key << 31) & mask
}

/// The lesser hash of a k-mer and its reverse complement, if all letters are bases.
#[device]
fn kmer(letters: &[u8]) -> Option<(u64, Direction)> {
    let k = letters.len();
    let (mut forward, mut reverse) = (0, 0);
    for (i, letter) in letters.iter().enumerate() {
        let code = base_code(*letter)?;
        forward = forward << 2 | code;
        reverse |= (3 - code) << (2 * i);
    }
    let mask = (1 << (2 * k)) - 1;
    let (forward, reverse) = (scrambled(forward, mask), scrambled(reverse, mask));
    Some(if forward <= reverse {
        (forward, Direction::Forward)
    } else {
        (reverse, Direction::Reverse)
    })
}

#[device]
fn minimizer(letters: &[u8], k: usize, window: usize, start: usize) -> Option<Minimizer> {
    (start..start + window)
        .filter_map(|at| kmer(&letters[at..at + k]).map(|(hash, direction)| (hash, at, direction)))
        .min_by_key(|(hash, at, _)| (*hash, u32::MAX - *at as u32))
        .map(|(hash, at, direction)| Minimizer {
            hash,
            position: at as u32,
            direction: direction as u32,
        })
}

#[kernel]
fn minimizers(k: usize, window: usize, letters: &[u8], found: &mut [Minimizer], count: &mut [u32]) {
    let start = global_id_x();
    let windows = (letters.len() + 2).saturating_sub(k + window);
    if start >= windows {
        return;
    }
    let Some(own) = minimizer(letters, k, window, start) else {
        return;
    };
    let before = start
        .checked_sub(1)
        .and_then(|start| minimizer(letters, k, window, start));
    if before.is_none_or(|before| before.position != own.position) {
        let slot = atomic_add(&mut count[0], 1) as usize;
        found[slot] = own;
    }
}

#[test]
fn minimizers_are_the_least_hashes_of_all_windows() {
    let mut random = Random(111);
    let (k, window) = (11usize, 7usize);
    let letters: Vec<u8> = (0..700)
        .map(|_| {
            if random.below(60) == 0 {
                b'N'
            } else {
                b"ACGTacgt"[random.below(8)]
            }
        })
        .collect();
    let hash = |number: u64| {
        let bits = 2 * k as u32;
        let cut = |v: u128| (v % (1u128 << bits)) as u64;
        let mut key = cut(u128::from(!number) + (u128::from(number) << 21));
        key ^= key >> 24;
        key = cut(u128::from(key) * 265);
        key ^= key >> 14;
        key = cut(u128::from(key) * 21);
        key ^= key >> 28;
        cut(u128::from(key) + (u128::from(key) << 31))
    };
    let mut expected: Vec<Minimizer> = Vec::new();
    for start in 0..=letters.len() - k - window + 1 {
        let mut best: Option<Minimizer> = None;
        for at in start..start + window {
            let text = letters[at..at + k].to_ascii_uppercase();
            let Some(codes) = text
                .iter()
                .map(|b| b"ACGT".iter().position(|c| c == b))
                .collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let forward = hash(codes.iter().fold(0, |n, c| 4 * n + *c as u64));
            let reverse = hash(codes.iter().rev().fold(0, |n, c| 4 * n + 3 - *c as u64));
            let one = Minimizer {
                hash: forward.min(reverse),
                position: at as u32,
                direction: u32::from(reverse < forward),
            };
            if best.is_none_or(|b| one.hash <= b.hash) {
                best = Some(one);
            }
        }
        expected.extend(best);
    }
    expected.dedup();
    expected.sort_by_key(|m| m.position);
    expected.dedup();
    everywhere(|run| {
        let text = run.upload(&letters);
        let (found, count) = (run.zeros::<Minimizer>(700), run.zeros::<u32>(1));
        let config = LaunchConfig::linear(letters.len(), 64);
        run.launch(
            minimizers::kernel(),
            config,
            args![k, window, &text, &found, &count],
        );
        let mut list = run.read(&found)[..run.read(&count)[0] as usize].to_vec();
        list.sort_by_key(|m| m.position);
        list.dedup();
        assert_eq!(list, expected, "on {}", run.place());
    });
}

// 112: Myers' edit distance

#[device]
trait Word:
    GpuType
    + PartialEq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const BITS: u32;
    const ZERO: Self;
    const ONE: Self;

    fn sum(self, other: Self) -> Self;

    fn has(self, bit: u32) -> bool {
        (self >> bit) & Self::ONE != Self::ZERO
    }
}

macro_rules! words {
    ($($word:ty),*) => {
        $(
            #[device]
            impl Word for $word {
                const BITS: u32 = <$word>::BITS;
                const ZERO: Self = 0;
                const ONE: Self = 1;

                fn sum(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }
            }
        )*
    };
}

words!(u32, u64);

/// A word of a column: where the distance grows downwards, and where it falls.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Column<W> {
    plus: W,
    minus: W,
}

#[device]
impl<W: Word> Column<W> {
    /// Goes on by a letter of the target; what comes in above, and goes out below `last`.
    fn advance(&mut self, equal: W, carry: i32, last: u32) -> i32 {
        let Self { plus, minus } = *self;
        let vertical = equal | minus;
        let equal = if carry < 0 { equal | W::ONE } else { equal };
        let horizontal = (((equal & plus).sum(plus)) ^ plus) | equal;
        let (up, down) = (minus | !(horizontal | plus), plus & horizontal);
        let out = up.has(last) as i32 - down.has(last) as i32;
        let up = up << 1 | if carry > 0 { W::ONE } else { W::ZERO };
        let down = down << 1 | if carry < 0 { W::ONE } else { W::ZERO };
        self.plus = down | !(vertical | up);
        self.minus = up & vertical;
        out
    }
}

#[kernel]
fn distances<W: Word, const N: usize>(
    queries: &[u8],
    query_ends: &[u32],
    targets: &[u8],
    target_ends: &[u32],
    distances: &mut [u32],
) {
    let i = global_id_x();
    let Some(distance) = distances.get_mut(i) else {
        return;
    };
    let start = |ends: &[u32]| i.checked_sub(1).map_or(0, |i| ends[i] as usize);
    let query = &queries[start(query_ends)..query_ends[i] as usize];
    let target = &targets[start(target_ends)..target_ends[i] as usize];
    let mut columns = [Column {
        plus: !W::ZERO,
        minus: W::ZERO,
    }; N];
    let mut score = query.len() as i32;
    for letter in target {
        let mut carry = 1;
        for (column, part) in columns.iter_mut().zip(query.chunks(W::BITS as usize)) {
            let mut equal = W::ZERO;
            for (bit, own) in part.iter().enumerate() {
                if own == letter {
                    equal = equal | W::ONE << bit as u32;
                }
            }
            carry = column.advance(equal, carry, part.len() as u32 - 1);
        }
        score += carry;
    }
    *distance = score as u32;
}

#[test]
fn myers_distances_are_those_of_the_whole_table() {
    let mut random = Random(112);
    let mut letters = |most: usize| -> Vec<u8> {
        let count = 1 + random.below(most);
        (0..count).map(|_| b"ACGT"[random.below(4)]).collect()
    };
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..90).map(|_| (letters(120), letters(150))).collect();
    let (mut queries, mut targets) = (Vec::<u8>::new(), Vec::<u8>::new());
    let (mut query_ends, mut target_ends, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (query, target) in &pairs {
        queries.extend(query);
        targets.extend(target);
        query_ends.push(queries.len() as u32);
        target_ends.push(targets.len() as u32);
        let mut row: Vec<u32> = (0..=query.len() as u32).collect();
        for (j, t) in target.iter().enumerate() {
            let mut corner = row[0];
            row[0] = j as u32 + 1;
            for (k, q) in query.iter().enumerate() {
                let best = (corner + u32::from(q != t)).min(row[k] + 1).min(row[k + 1] + 1);
                corner = std::mem::replace(&mut row[k + 1], best);
            }
        }
        expected.push(row[query.len()]);
    }
    everywhere(|run| {
        let (q, t) = (run.upload(&queries), run.upload(&targets));
        let (qe, te) = (run.upload(&query_ends), run.upload(&target_ends));
        let config = LaunchConfig::linear(90, 32);
        for kernel in [distances::kernel::<u32, 4>(), distances::kernel::<u64, 2>()] {
            let y = run.zeros::<u32>(90);
            run.launch(kernel, config, args![&q, &qe, &t, &te, &y]);
            run.holds(&y, &expected);
        }
    });
}
