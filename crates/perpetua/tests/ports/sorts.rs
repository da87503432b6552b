//! Orders and sequences.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 29: merge path

/// How many of the first `diagonal` elements of the merged sequence come from `a`.
#[device]
fn crossing(a: &[i32], b: &[i32], diagonal: usize) -> usize {
    let mut low = diagonal.saturating_sub(b.len());
    let mut high = diagonal.min(a.len());
    while low < high {
        let middle = (low + high) / 2;
        if a[middle] <= b[diagonal - 1 - middle] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[kernel]
fn merge(a: &[i32], b: &[i32], part: usize, merged: &mut [i32]) {
    let first = global_id_x() * part;
    if first >= merged.len() {
        return;
    }
    let last = (first + part).min(merged.len());
    let start = crossing(a, b, first);
    let mut left = a[start..].iter().peekable();
    let mut right = b[first - start..].iter().peekable();
    for out in &mut merged[first..last] {
        let from_left = match (left.peek(), right.peek()) {
            (Some(x), Some(y)) => x <= y,
            (x, _) => x.is_some(),
        };
        let next = if from_left { left.next() } else { right.next() };
        *out = *next.unwrap();
    }
}

#[test]
fn merge_keeps_the_order() {
    let mut random = Random(29);
    let sorted = |n: usize, random: &mut Random| {
        let mut all: Vec<i32> = (0..n).map(|_| random.bits() as i32 % 500).collect();
        all.sort();
        all
    };
    let (a, b) = (sorted(700, &mut random), sorted(333, &mut random));
    let mut expected = [a.clone(), b.clone()].concat();
    expected.sort();
    everywhere(|run| {
        let (a, b, merged) = (run.upload(&a), run.upload(&b), run.zeros::<i32>(expected.len()));
        let config = LaunchConfig::linear(expected.len().div_ceil(16), 64);
        run.launch(merge::kernel(), config, args![&a, &b, 16usize, &merged]);
        run.holds(&merged, &expected);
    });
}

// 30: a radix sort by splits

const KEYS: usize = 128;

/// The sum of what all lanes before this one give, and of all.
#[device]
fn scan(sums: &mut [u32; KEYS], own: u32) -> (u32, u32) {
    let lane = local_id_x();
    sums[lane] = own;
    sync_threads();
    let mut step = 1;
    while step < KEYS {
        let before = if lane >= step { sums[lane - step] } else { 0 };
        sync_threads();
        sums[lane] += before;
        sync_threads();
        step *= 2;
    }
    let result = (sums[lane] - own, sums[KEYS - 1]);
    sync_threads();
    result
}

#[kernel(block_size = 128)]
fn split_sort(keys: &mut [u32]) {
    let sorted = shared_array::<[u32; KEYS]>();
    let sums = shared_array::<[u32; KEYS]>();
    let (i, lane) = (global_id_x(), local_id_x());
    sorted[lane] = keys[i];
    sync_threads();
    for bit in 0..32 {
        let key = sorted[lane];
        let zero = u32::from(key >> bit & 1 == 0);
        let (zeros_before, zeros) = scan(sums, zero);
        let to = if zero == 1 {
            zeros_before
        } else {
            zeros + lane as u32 - zeros_before
        };
        sorted[to as usize] = key;
        sync_threads();
    }
    keys[i] = sorted[lane];
}

#[test]
fn split_sorts_each_block() {
    let mut random = Random(30);
    let keys: Vec<u32> = (0..4 * KEYS).map(|_| random.bits() as u32).collect();
    let mut expected = keys.clone();
    expected.chunks_mut(KEYS).for_each(|block| block.sort());
    everywhere(|run| {
        let keys = run.upload(&keys);
        let config = LaunchConfig::linear(4 * KEYS, KEYS as u32);
        run.launch(split_sort::kernel(), config, args![&keys]);
        run.holds(&keys, &expected);
    });
}

// 31: segments

#[device]
trait Monoid: Copy + GpuType {
    const NEUTRAL: Self;

    fn then(self, other: Self) -> Self;
}

#[device]
impl Monoid for u32 {
    const NEUTRAL: u32 = 0;

    fn then(self, other: u32) -> u32 {
        self.max(other)
    }
}

/// `x * scale + offset`, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Affine {
    scale: u32,
    offset: u32,
}

#[device]
impl Monoid for Affine {
    const NEUTRAL: Affine = Affine { scale: 1, offset: 0 };

    fn then(self, other: Affine) -> Affine {
        Affine {
            scale: self.scale.wrapping_mul(other.scale),
            offset: self.offset.wrapping_mul(other.scale).wrapping_add(other.offset),
        }
    }
}

#[kernel(block_size = 32)]
fn reduce_segments<T: Monoid>(starts: &[u32], x: &[T], out: &mut [T]) {
    let parts = shared_array::<[T; 32]>();
    let (segment, lane) = (group_id_x(), local_id_x());
    let values = &x[starts[segment] as usize..starts[segment + 1] as usize];
    // A lane takes neighbouring elements: the operation need not commute.
    let each = values.len().div_ceil(32);
    let own = values.iter().skip(lane * each).take(each);
    parts[lane] = own.fold(T::NEUTRAL, |all, v| all.then(*v));
    sync_threads();
    let mut step = 1;
    while step < 32 {
        if lane % (2 * step) == 0 {
            parts[lane] = parts[lane].then(parts[lane + step]);
        }
        sync_threads();
        step *= 2;
    }
    if lane == 0 {
        out[segment] = parts[0];
    }
}

#[test]
fn segments_are_reduced_in_order() {
    let mut random = Random(31);
    let mut starts = vec![0u32];
    for _ in 0..20 {
        starts.push(starts[starts.len() - 1] + random.bits() as u32 % 150);
    }
    let n = starts[20] as usize;
    let words: Vec<u32> = (0..n).map(|_| random.bits() as u32).collect();
    let maps: Vec<Affine> = (0..n)
        .map(|_| Affine {
            scale: random.bits() as u32 | 1,
            offset: random.bits() as u32,
        })
        .collect();
    let segment = |s: usize| starts[s] as usize..starts[s + 1] as usize;
    let most: Vec<u32> = (0..20)
        .map(|s| words[segment(s)].iter().copied().max().unwrap_or(0))
        .collect();
    let composed: Vec<Affine> = (0..20)
        .map(|s| {
            let at = |x: u32| {
                maps[segment(s)]
                    .iter()
                    .fold(x, |x, m| x.wrapping_mul(m.scale).wrapping_add(m.offset))
            };
            Affine {
                scale: at(1).wrapping_sub(at(0)),
                offset: at(0),
            }
        })
        .collect();
    everywhere(|run| {
        let starts = run.upload(&starts);
        let config = || LaunchConfig::new(20, 32);
        let (x, out) = (run.upload(&words), run.zeros::<u32>(20));
        run.launch(
            reduce_segments::kernel::<u32>(),
            config(),
            args![&starts, &x, &out],
        );
        run.holds(&out, &most);
        let (x, out) = (run.upload(&maps), run.zeros::<Affine>(20));
        run.launch(
            reduce_segments::kernel::<Affine>(),
            config(),
            args![&starts, &x, &out],
        );
        run.holds(&out, &composed);
    });
}

// 32: rainflow

/// A stack of turning points.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Stack {
    points: [f32; 64],
    len: u32,
}

#[device]
impl Stack {
    fn push(&mut self, point: f32) {
        self.points[self.len as usize] = point;
        self.len += 1;
    }

    /// The last three points, the last one last.
    fn top(&self) -> Option<[f32; 3]> {
        let len = self.len as usize;
        if len < 3 {
            return None;
        }
        self.points[len - 3..len].try_into().ok()
    }
}

/// Adds a cycle to the histogram of ranges, in halves.
#[device]
fn count(cycles: &mut [u32], range: f32, halves: u32) {
    let bin = (range as usize).min(cycles.len() - 1);
    cycles[bin] += halves;
}

#[kernel]
fn rainflow(loads: &[f32], length: usize, bins: usize, cycles: &mut [u32]) {
    let i = global_id_x();
    let Some(loads) = loads.chunks_exact(length).nth(i) else {
        return;
    };
    let cycles = &mut cycles[i * bins..(i + 1) * bins];
    let mut stack = Stack {
        points: [0.0; 64],
        len: 0,
    };
    for (k, &load) in loads.iter().enumerate() {
        let turns = k == 0 || k == length - 1 || (load - loads[k - 1]) * (loads[k + 1] - load) < 0.0;
        if !turns {
            continue;
        }
        stack.push(load);
        while let Some([a, b, c]) = stack.top() {
            let (before, last) = ((b - a).abs(), (c - b).abs());
            if last < before {
                break;
            }
            if stack.len == 3 {
                // The range holds the start.
                count(cycles, before, 1);
                stack.points[0] = b;
                stack.points[1] = c;
                stack.len = 2;
            } else {
                count(cycles, before, 2);
                stack.len -= 2;
                stack.points[stack.len as usize - 1] = c;
            }
        }
    }
    for pair in stack.points[..stack.len as usize].windows(2) {
        count(cycles, (pair[1] - pair[0]).abs(), 1);
    }
}

#[test]
fn rainflow_counts_cycles() {
    let mut random = Random(32);
    let (series, length, bins) = (80usize, 50usize, 20usize);
    let loads: Vec<f32> = (0..series * length)
        .map(|_| (random.bits() % 4000) as f32 / 200.0)
        .collect();
    let mut expected = vec![0u32; series * bins];
    for (i, loads) in loads.chunks(length).enumerate() {
        let mut add = |range: f32, halves: u32| {
            expected[i * bins + (range as usize).min(bins - 1)] += halves;
        };
        let mut points: Vec<f32> = (0..length)
            .filter(|&k| {
                k == 0
                    || k == length - 1
                    || (loads[k] > loads[k - 1]) != (loads[k + 1] > loads[k])
                        && loads[k] != loads[k - 1]
                        && loads[k] != loads[k + 1]
            })
            .map(|k| loads[k])
            .collect();
        // Takes out the first inner range that its neighbours hold, again and again.
        let mut at = 0;
        while at + 2 < points.len() {
            let (x, y) = (
                (points[at + 1] - points[at]).abs(),
                (points[at + 2] - points[at + 1]).abs(),
            );
            if y < x {
                at += 1;
            } else if at == 0 {
                add(x, 1);
                points.remove(0);
            } else {
                add(x, 2);
                points.drain(at..at + 2);
                at = 0;
            }
        }
        points.windows(2).for_each(|w| add((w[1] - w[0]).abs(), 1));
    }
    everywhere(|run| {
        let (loads, cycles) = (run.upload(&loads), run.zeros::<u32>(series * bins));
        let config = LaunchConfig::linear(series, 64);
        run.launch(rainflow::kernel(), config, args![&loads, length, bins, &cycles]);
        run.holds(&cycles, &expected);
    });
}

// 33: Viterbi

const STATES: usize = 6;
const LETTERS: usize = 4;

#[kernel]
fn viterbi(
    start: [f32; STATES],
    moves: [[f32; STATES]; STATES],
    emits: [[f32; LETTERS]; STATES],
    letters: &[u8],
    length: usize,
    back: &mut [u8],
    paths: &mut [u8],
) {
    let i = global_id_x();
    if (i + 1) * length > letters.len() {
        return;
    }
    let own = i * length..(i + 1) * length;
    let letters = &letters[own.clone()];
    let back = &mut back[i * length * STATES..(i + 1) * length * STATES];
    let path = &mut paths[own];
    let mut scores: [f32; STATES] = std::array::from_fn(|s| start[s] + emits[s][letters[0] as usize]);
    for t in 1..length {
        let mut next = [0.0f32; STATES];
        for to in 0..STATES {
            let (from, best) = scores
                .iter()
                .enumerate()
                .map(|(from, score)| (from, score + moves[from][to]))
                .fold((0, f32::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a });
            next[to] = best + emits[to][letters[t] as usize];
            back[t * STATES + to] = from as u8;
        }
        scores = next;
    }
    let (mut state, _) = scores
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1))
        .unwrap();
    for t in (0..length).rev() {
        path[t] = state as u8;
        state = back[t * STATES + state] as usize;
    }
}

#[test]
fn viterbi_finds_the_likeliest() {
    let mut random = Random(33);
    // Whole numbers: sums are exact, and the paths' scores are compared.
    let mut weight = || -((random.bits() % 60) as f32);
    let start: [f32; STATES] = std::array::from_fn(|_| weight());
    let moves: [[f32; STATES]; STATES] = std::array::from_fn(|_| std::array::from_fn(|_| weight()));
    let emits: [[f32; LETTERS]; STATES] = std::array::from_fn(|_| std::array::from_fn(|_| weight()));
    let (sequences, length) = (70usize, 12usize);
    let letters: Vec<u8> = (0..sequences * length)
        .map(|_| random.bits() as u8 % LETTERS as u8)
        .collect();
    let best: Vec<f32> = letters
        .chunks(length)
        .map(|letters| {
            // Backwards: the best that can follow a state.
            let mut after = [0f32; STATES];
            for t in (1..length).rev() {
                let reached = |to: usize| emits[to][letters[t] as usize] + after[to];
                after = std::array::from_fn(|from| {
                    (0..STATES)
                        .map(|to| moves[from][to] + reached(to))
                        .fold(f32::NEG_INFINITY, f32::max)
                });
            }
            (0..STATES)
                .map(|s| start[s] + emits[s][letters[0] as usize] + after[s])
                .fold(f32::NEG_INFINITY, f32::max)
        })
        .collect();
    everywhere(|run| {
        let device_letters = run.upload(&letters);
        let (back, paths) = (
            run.zeros::<u8>(letters.len() * STATES),
            run.zeros::<u8>(letters.len()),
        );
        run.launch(
            viterbi::kernel(),
            LaunchConfig::linear(sequences, 64),
            args![start, moves, emits, &device_letters, length, &back, &paths],
        );
        let paths = run.read(&paths);
        for ((path, letters), best) in paths.chunks(length).zip(letters.chunks(length)).zip(&best) {
            let at = |t: usize| path[t] as usize;
            let mut score = start[at(0)] + emits[at(0)][letters[0] as usize];
            for t in 1..length {
                score += moves[at(t - 1)][at(t)] + emits[at(t)][letters[t] as usize];
            }
            assert_eq!(score, *best);
        }
    });
}
