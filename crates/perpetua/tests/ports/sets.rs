//! Sets: Bloom filters, and Roaring bitmaps.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 269: Bloom filters

/// How keys become bits of a block of words.
#[device]
trait Policy: Copy {
    const WORDS: usize;

    fn hash(key: u64) -> u64;

    fn pattern(hash: u64, word: usize) -> u32;

    fn block(hash: u64, blocks: usize) -> usize {
        ((hash >> 32) * blocks as u64 >> 32) as usize
    }
}

/// As Arrow and Parquet have it: xxHash64 and eight salts.
#[derive(Clone, Copy, GpuType)]
struct Arrow;

const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

#[device]
impl Policy for Arrow {
    const WORDS: usize = 8;

    fn hash(key: u64) -> u64 {
        let [p1, p2, p3, p4, p5] = PRIMES;
        let lane = key.wrapping_mul(p2).rotate_left(31).wrapping_mul(p1);
        let mut hash = (p5.wrapping_add(8) ^ lane)
            .rotate_left(27)
            .wrapping_mul(p1)
            .wrapping_add(p4);
        for (shift, factor) in [(33, p2), (29, p3)] {
            hash = (hash ^ hash >> shift).wrapping_mul(factor);
        }
        hash ^ hash >> 32
    }

    fn pattern(hash: u64, word: usize) -> u32 {
        1 << ((hash as u32).wrapping_mul(SALTS[word]) >> 27)
    }
}

/// Four words, two bits in each; MurmurHash3's finalizer.
#[derive(Clone, Copy, GpuType)]
struct Pairs;

#[device]
impl Policy for Pairs {
    const WORDS: usize = 4;

    fn hash(key: u64) -> u64 {
        let key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        key ^ key >> 33
    }

    fn pattern(hash: u64, word: usize) -> u32 {
        let bits = hash >> (word * 10);
        1 << (bits % 32) | 1 << (bits / 32 % 32)
    }

    fn block(hash: u64, blocks: usize) -> usize {
        (hash.reverse_bits() % blocks as u64) as usize
    }
}

#[kernel]
fn add_keys<P: Policy>(keys: &[u64], filter: &mut [u32]) {
    if let Some(key) = keys.get(global_id_x()) {
        let hash = P::hash(*key);
        let block = P::block(hash, filter.len() / P::WORDS);
        for word in 0..P::WORDS {
            atomic_or(&mut filter[block * P::WORDS + word], P::pattern(hash, word));
        }
    }
}

#[kernel]
fn seek_keys<P: Policy>(keys: &[u64], filter: &[u32], found: &mut [u32], count: &mut u32) {
    let i = global_id_x();
    if i >= keys.len() {
        return;
    }
    let hash = P::hash(keys[i]);
    let start = P::block(hash, filter.len() / P::WORDS) * P::WORDS;
    let block = &filter[start..start + P::WORDS];
    let is_there = block
        .iter()
        .enumerate()
        .all(|(word, bits)| !bits & P::pattern(hash, word) == 0);
    found[i] = u32::from(is_there);
    if is_there {
        atomic_add(count, 1);
    }
}

#[test]
fn bloom_filters_by_policies() {
    let mut random = Random(269);
    let n = 701;
    let keys: Vec<u64> = (0..n).map(|_| random.bits()).collect();
    // Every second one sought was added.
    let sought: Vec<u64> = keys.iter().flat_map(|key| [*key, random.bits()]).collect();
    let arrow_hash = |key: u64| -> u64 {
        let (p1, p2, p3) = (
            0x9e3779b185ebca87u64,
            0xc2b2ae3d27d4eb4fu64,
            0x165667b19e3779f9u64,
        );
        let mut h = 0x27d4eb2f165667c5u64.wrapping_add(8);
        h ^= key.wrapping_mul(p2).rotate_left(31).wrapping_mul(p1);
        h = h
            .rotate_left(27)
            .wrapping_mul(p1)
            .wrapping_add(0x85ebca77c2b2ae63);
        h ^= h >> 33;
        h = h.wrapping_mul(p2);
        h ^= h >> 29;
        h = h.wrapping_mul(p3);
        h ^ (h >> 32)
    };
    let salts = [
        0x47b6137bu32,
        0x44974d91,
        0x8824ad5b,
        0xa2b7289d,
        0x705495c7,
        0x2df1424b,
        0x9efc4947,
        0x5c6bfb31,
    ];
    let arrow_bits = |key: u64, blocks: usize| -> Vec<usize> {
        let hash = arrow_hash(key);
        let block = ((hash >> 32) as u128 * blocks as u128 >> 32) as usize;
        (0..8)
            .map(|w| block * 256 + w * 32 + (salts[w].wrapping_mul(hash as u32) >> 27) as usize)
            .collect()
    };
    let pair_bits = |key: u64, blocks: usize| -> Vec<usize> {
        let mut h = key;
        for factor in [0xff51afd7ed558ccdu64, 0xc4ceb9fe1a85ec53, 1] {
            h ^= h >> 33;
            h = h.wrapping_mul(factor);
        }
        let block = (h.reverse_bits() % blocks as u64) as usize;
        (0..8)
            .map(|k| block * 128 + k / 2 * 32 + (h >> (5 * k) & 31) as usize)
            .collect()
    };
    let filled = |bits: &dyn Fn(u64, usize) -> Vec<usize>, blocks: usize, words: usize| {
        let mut filter = vec![0u32; words];
        for bit in keys.iter().flat_map(|key| bits(*key, blocks)) {
            filter[bit / 32] |= 1 << (bit % 32);
        }
        let has = |key: &u64| {
            bits(*key, blocks)
                .iter()
                .all(|bit| filter[bit / 32] >> (bit % 32) & 1 == 1)
        };
        let found: Vec<u32> = sought.iter().map(|key| has(key) as u32).collect();
        (filter, found)
    };
    let words = 264;
    let arrow = filled(&arrow_bits, words / 8, words);
    let pairs = filled(&pair_bits, words / 4, words);
    everywhere(|run| {
        let kernels = [
            (add_keys::kernel::<Arrow>(), seek_keys::kernel::<Arrow>(), &arrow),
            (add_keys::kernel::<Pairs>(), seek_keys::kernel::<Pairs>(), &pairs),
        ];
        for (add, seek, (filter, found)) in kernels {
            let (x, bits) = (run.upload(&keys), run.zeros::<u32>(words));
            run.launch(add, LaunchConfig::linear(n, 64), args![&x, &bits]);
            run.holds(&bits, filter);
            let (x, hits, count) = (run.upload(&sought), run.zeros::<u32>(2 * n), run.zeros::<u32>(1));
            run.launch(
                seek,
                LaunchConfig::linear(2 * n, 64),
                args![&x, &bits, &hits, &count],
            );
            run.holds(&hits, found);
            run.holds(&count, &[found.iter().sum()]);
            assert!((n..n * 3 / 2).contains(&(run.read(&count)[0] as usize)));
        }
    });
}

// 270: Roaring bitmaps

#[device]
fn half_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[device]
fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The first index below `count` for which `below` does not hold.
#[device]
fn first(count: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from.midpoint(to);
        if below(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Where the low halves of the values lie that share a high half.
#[derive(Clone, Copy, GpuType)]
enum Container {
    Array { at: usize, count: usize },
    Bits { at: usize },
    Runs { at: usize, count: usize },
}

#[device]
impl Container {
    fn size(self) -> usize {
        match self {
            Container::Array { count, .. } => 2 * count,
            Container::Bits { .. } => 8192,
            Container::Runs { count, .. } => 2 + 4 * count,
        }
    }

    fn contains(self, bytes: &[u8], low: u16) -> bool {
        match self {
            Container::Array { at, count } => {
                let k = first(count, |k| half_at(bytes, at + 2 * k) < low);
                k < count && half_at(bytes, at + 2 * k) == low
            }
            Container::Bits { at } => bytes[at + usize::from(low) / 8] >> (low % 8) & 1 == 1,
            Container::Runs { at, count } => {
                let k = first(count, |k| half_at(bytes, at + 2 + 4 * k) <= low);
                k.checked_sub(1).is_some_and(|k| {
                    let run = at + 2 + 4 * k;
                    low - half_at(bytes, run) <= half_at(bytes, run + 2)
                })
            }
        }
    }
}

#[derive(Clone, Copy, GpuType)]
struct Head {
    count: usize,
    /// Which containers have runs, a bit each.
    runs: Option<usize>,
    keys: usize,
    offsets: Option<usize>,
}

#[device]
impl Head {
    fn read(bytes: &[u8]) -> Option<Head> {
        let cookie = word_at(bytes, 0);
        match cookie % 65536 {
            12346 => {
                let count = word_at(bytes, 4) as usize;
                Some(Head {
                    count,
                    runs: None,
                    keys: 8,
                    offsets: Some(8 + 4 * count),
                })
            }
            12347 => {
                let count = (cookie >> 16) as usize + 1;
                let keys = 4 + count.div_ceil(8);
                let offsets = (count >= 4).then_some(keys + 4 * count);
                Some(Head {
                    count,
                    runs: Some(4),
                    keys,
                    offsets,
                })
            }
            _ => None,
        }
    }

    fn kind(self, bytes: &[u8], index: usize, at: usize) -> Container {
        let count = usize::from(half_at(bytes, self.keys + 4 * index + 2)) + 1;
        if self
            .runs
            .is_some_and(|runs| bytes[runs + index / 8] >> (index % 8) & 1 == 1)
        {
            Container::Runs {
                at,
                count: usize::from(half_at(bytes, at)),
            }
        } else if count <= 4096 {
            Container::Array { at, count }
        } else {
            Container::Bits { at }
        }
    }

    fn container(self, bytes: &[u8], high: u16) -> Option<Container> {
        let key = |k: usize| half_at(bytes, self.keys + 4 * k);
        let index = first(self.count, |k| key(k) < high);
        if index == self.count || key(index) != high {
            return None;
        }
        let at = match self.offsets {
            Some(offsets) => word_at(bytes, offsets + 4 * index) as usize,
            // Few containers, one behind the other.
            None => (0..index).fold(self.keys + 4 * self.count, |at, k| {
                at + self.kind(bytes, k, at).size()
            }),
        };
        Some(self.kind(bytes, index, at))
    }
}

#[kernel]
fn roaring(bytes: &[u8], values: &[u32], found: &mut [u32]) {
    let i = global_id_x();
    let Some(value) = values.get(i).copied() else {
        return;
    };
    found[i] = match Head::read(bytes) {
        Some(head) => {
            let container = head.container(bytes, (value >> 16) as u16);
            u32::from(container.is_some_and(|container| container.contains(bytes, value as u16)))
        }
        None => 2,
    };
}

#[test]
fn roaring_bitmaps_of_all_containers() {
    use std::collections::{BTreeMap, BTreeSet};
    let mut random = Random(270);
    let mut part = |high: u32, count: usize, run: u64| -> Vec<u32> {
        let mut values: Vec<u32> = Vec::new();
        for _ in 0..count {
            let start = random.bits() % 65000;
            values.extend((start..start + 1 + random.bits() % run).map(|low| high << 16 | low as u32));
        }
        values
    };
    let sets: [Vec<Vec<u32>>; 3] = [
        vec![
            part(0, 50, 1),
            part(3, 5200, 3),
            part(9, 300, 2),
            part(0xffff, 1, 1),
        ],
        vec![part(1, 6, 200), part(2, 90, 1), part(7, 20, 500)],
        vec![
            part(0, 5, 90),
            part(4, 7, 30),
            part(5, 40, 1),
            part(6, 5000, 3),
            part(40000, 3, 400),
        ],
    ];
    // Which of the containers have runs.
    for (parts, with_runs) in sets.iter().zip([0u32, 0b101, 0b10011]) {
        let set: BTreeSet<u32> = parts.concat().into_iter().collect();
        let mut containers: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for value in &set {
            containers
                .entry((value >> 16) as u16)
                .or_default()
                .push(*value as u16);
        }
        let count = containers.len();
        let mut bytes = if with_runs > 0 {
            let mut head = (12347 | (count as u32 - 1) << 16).to_le_bytes().to_vec();
            head.push(with_runs as u8);
            head
        } else {
            [12346u32.to_le_bytes(), (count as u32).to_le_bytes()].concat()
        };
        let (mut bodies, mut starts) = (Vec::<u8>::new(), Vec::<u32>::new());
        for (k, (high, lows)) in containers.iter().enumerate() {
            bytes.extend(high.to_le_bytes());
            bytes.extend((lows.len() as u16).wrapping_sub(1).to_le_bytes());
            starts.push(bodies.len() as u32);
            if with_runs >> k & 1 == 1 {
                let runs: Vec<&[u16]> = lows.chunk_by(|a, b| a + 1 == *b).collect();
                bodies.extend((runs.len() as u16).to_le_bytes());
                for run in runs {
                    bodies.extend(run[0].to_le_bytes());
                    bodies.extend((run.len() as u16 - 1).to_le_bytes());
                }
            } else if lows.len() <= 4096 {
                lows.iter().for_each(|low| bodies.extend(low.to_le_bytes()));
            } else {
                let mut bits = vec![0u8; 8192];
                lows.iter()
                    .for_each(|low| bits[*low as usize / 8] |= 1 << (low % 8));
                bodies.extend(bits);
            }
        }
        if with_runs == 0 || count >= 4 {
            let base = bytes.len() as u32 + 4 * count as u32;
            starts
                .iter()
                .for_each(|start| bytes.extend((base + start).to_le_bytes()));
        }
        bytes.extend(bodies);
        // Values of the set, their neighbours, and any.
        let mut values: Vec<u32> = set
            .iter()
            .step_by(set.len() / 150 + 1)
            .flat_map(|v| [*v, v ^ 1, *v + 1])
            .collect();
        values.extend((0..51).map(|_| random.bits() as u32));
        let expected: Vec<u32> = values.iter().map(|v| set.contains(v) as u32).collect();
        everywhere(|run| {
            let (map, x, found) = (
                run.upload(&bytes),
                run.upload(&values),
                run.zeros::<u32>(values.len()),
            );
            run.launch(
                roaring::kernel(),
                LaunchConfig::linear(values.len(), 64),
                args![&map, &x, &found],
            );
            run.holds(&found, &expected);
            let wrong = run.upload(&[1u8, 2, 3, 4]);
            run.launch(
                roaring::kernel(),
                LaunchConfig::linear(values.len(), 64),
                args![&wrong, &x, &found],
            );
            run.holds(&found, &vec![2; values.len()]);
        });
    }
}
