//! Layers of language models between their matrices.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

pub(crate) fn reals(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..count)
        .map(|_| (random.bits() % 4001) as f32 / 2000.0 - 1.0)
        .collect()
}

// 61: rotary embedding

/// Turns the pair `k` of a head: its halves' elements, or two neighbours.
#[device]
fn turn<const HALVES: bool>(head: &mut [bf16], cos: &[bf16], sin: &[bf16], k: usize) {
    let (i, j) = if HALVES {
        (k, k + cos.len())
    } else {
        (2 * k, 2 * k + 1)
    };
    let (c, s) = (cos[k].to_f32(), sin[k].to_f32());
    let (x, y) = (head[i].to_f32(), head[j].to_f32());
    head[i] = bf16::from_f32(x * c - y * s);
    head[j] = bf16::from_f32(y * c + x * s);
}

#[kernel]
fn rotary<const HALVES: bool>(
    positions: &[i64],
    cache: &[bf16],
    size: usize,
    turned: usize,
    queries: &mut [bf16],
    keys: &mut [bf16],
) {
    let token = group_id_x();
    let half = turned / 2;
    let row = &cache[positions[token] as usize * turned..][..turned];
    let (cos, sin) = row.split_at(half);
    for heads in [queries, keys] {
        let width = heads.len() / positions.len();
        let own = &mut heads[token * width..(token + 1) * width];
        let pairs = width / size * half;
        for n in (local_id_x()..pairs).step_by(block_dim_x() as usize) {
            let head = &mut own[n / half * size..][..size];
            turn::<HALVES>(head, cos, sin, n % half);
        }
    }
}

#[test]
fn rotary_turns_pairs() {
    let (tokens, size, turned, contexts) = (7usize, 20usize, 16usize, 50usize);
    let half = turned / 2;
    let angle = |p: usize, k: usize| p as f64 * 100f64.powf(-(k as f64) / half as f64);
    let mut cache = Vec::new();
    for p in 0..contexts {
        cache.extend((0..half).map(|k| bf16::from_f64(angle(p, k).cos())));
        cache.extend((0..half).map(|k| bf16::from_f64(angle(p, k).sin())));
    }
    let mut random = Random(61);
    let positions: Vec<i64> = (0..tokens).map(|_| (random.bits() % 50) as i64).collect();
    let halves = |count, seed| -> Vec<bf16> { reals(count, seed).into_iter().map(bf16::from_f32).collect() };
    let (queries, keys) = (halves(tokens * 3 * size, 1), halves(tokens * size, 2));
    for apart in [true, false] {
        let expect = |x: &[bf16]| -> Vec<bf16> {
            let mut y = x.to_vec();
            for (h, head) in y.chunks_mut(size).enumerate() {
                let token = h / (x.len() / size / tokens);
                let table = &cache[positions[token] as usize * turned..];
                for k in 0..half {
                    let (i, j) = if apart { (k, half + k) } else { (2 * k, 2 * k + 1) };
                    let (c, s) = (f32::from(table[k]), f32::from(table[half + k]));
                    let (a, b) = (f32::from(head[i]), f32::from(head[j]));
                    (head[i], head[j]) = (bf16::from_f32(a * c - b * s), bf16::from_f32(b * c + a * s));
                }
            }
            y
        };
        let expected = [expect(&queries), expect(&keys)];
        everywhere(|run| {
            let (positions, cache) = (run.upload(&positions), run.upload(&cache));
            let (q, k) = (run.upload(&queries), run.upload(&keys));
            let kernel = match apart {
                true => rotary::kernel::<true>(),
                false => rotary::kernel::<false>(),
            };
            let config = LaunchConfig::new(tokens as u32, 8);
            run.launch(kernel, config, args![&positions, &cache, size, turned, &q, &k]);
            for (found, expected) in [q, k].iter().zip(&expected) {
                match run.is_wgpu() {
                    true => {
                        for (x, y) in run.read(found).iter().zip(expected) {
                            assert!((x.to_f32() - y.to_f32()).abs() <= 1.0 / 128.0, "{x} {y}");
                        }
                    }
                    false => run.holds(found, expected),
                }
            }
        });
    }
}

// 62: WKV

/// Sums of `exp(k) v` and of `exp(k)`, both times `exp(-top)`.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Average {
    sum: f32,
    total: f32,
    top: f32,
}

#[device]
impl Average {
    const EMPTY: Self = Self {
        sum: 0.0,
        total: 0.0,
        top: -1e38,
    };

    fn with(self, key: f32, value: f32) -> Self {
        let top = self.top.max(key);
        let (old, new) = ((self.top - top).exp(), (key - top).exp());
        Self {
            sum: old * self.sum + new * value,
            total: old * self.total + new,
            top,
        }
    }

    fn faded(self, decay: f32) -> Self {
        Self {
            top: self.top + decay,
            ..self
        }
    }

    fn value(self) -> f32 {
        self.sum / self.total
    }
}

#[kernel]
fn wkv(steps: usize, decays: &[f32], bonuses: &[f32], keys: &[f32], values: &[f32], y: &mut [f32]) {
    let channels = decays.len();
    let (channel, batch) = (global_id_x(), global_id_y());
    let (Some(&decay), Some(&bonus)) = (decays.get(channel), bonuses.get(channel)) else {
        return;
    };
    let start = batch * steps * channels + channel;
    let keys = keys[start..].iter().step_by(channels);
    let values = values[start..].iter().step_by(channels);
    let outputs = y[start..].iter_mut().step_by(channels);
    let mut state = Average::EMPTY;
    for ((&k, &v), y) in keys.zip(values).zip(outputs).take(steps) {
        *y = state.with(k + bonus, v).value();
        state = state.faded(decay).with(k, v);
    }
}

#[test]
fn wkv_weighs_by_age() {
    let (batches, steps, channels) = (2usize, 19usize, 35usize);
    let decays: Vec<f32> = reals(channels, 3).iter().map(|x| -x.exp()).collect();
    let bonuses = reals(channels, 4);
    let count = batches * steps * channels;
    let (keys, values) = (reals(count, 5), reals(count, 6));
    let mut expected = vec![0.0; count];
    for (i, y) in expected.iter_mut().enumerate() {
        let (c, t) = (i % channels, i / channels % steps);
        let (mut sum, mut total) = (0.0, 0.0);
        for s in 0..=t {
            let j = i - (t - s) * channels;
            let age = match t - s {
                0 => f64::from(bonuses[c]),
                age => (age - 1) as f64 * f64::from(decays[c]),
            };
            let weight = (age + f64::from(keys[j])).exp();
            sum += weight * f64::from(values[j]);
            total += weight;
        }
        *y = sum / total;
    }
    everywhere(|run| {
        let (decays, bonuses) = (run.upload(&decays), run.upload(&bonuses));
        let (keys, values, y) = (run.upload(&keys), run.upload(&values), run.zeros::<f32>(count));
        let config = LaunchConfig::tiled(channels as u32, batches as u32, (32, 1));
        let args = args![steps, &decays, &bonuses, &keys, &values, &y];
        run.launch(wkv::kernel(), config, args);
        run.near(&y, &expected, 1e-5);
    });
}

// 63: selective scan

/// Each lane's value combined with those of the lanes before it. All lanes of the block come here.
#[device]
pub(crate) fn inclusive_scan<T: Copy, const N: usize>(
    cells: &mut [T; N],
    value: T,
    combine: impl Fn(T, T) -> T,
) -> T {
    let lane = local_id_x();
    let mut all = value;
    let mut step = 1;
    while step < N {
        cells[lane] = all;
        sync_threads();
        if lane >= step {
            all = combine(cells[lane - step], all);
        }
        sync_threads();
        step *= 2;
    }
    all
}

/// The map `x -> scale x + shift`.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Affine {
    scale: f32,
    shift: f32,
}

#[device]
impl Affine {
    const IDENTITY: Affine = Affine {
        scale: 1.0,
        shift: 0.0,
    };

    fn then(self, next: Affine) -> Affine {
        Affine {
            scale: next.scale * self.scale,
            shift: next.scale * self.shift + next.shift,
        }
    }
}

#[device]
fn softplus(x: f32) -> f32 {
    if x <= 20.0 { x.exp().ln_1p() } else { x }
}

#[device]
fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

const STATES: usize = 4;
const CHUNK: usize = 32;

#[kernel(block_size = 32)]
fn selective_scan(
    length: usize,
    a: &[[f32; STATES]],
    skip: &[f32],
    u: &[f32],
    delta: &[f32],
    gate: &[f32],
    b: &[[f32; STATES]],
    c: &[[f32; STATES]],
    y: &mut [f32],
) {
    let cells = shared_array::<[Affine; CHUNK]>();
    let before = shared_array::<[Affine; STATES]>();
    let channel = group_id_x();
    let lane = local_id_x();
    if lane < STATES {
        before[lane] = Affine::IDENTITY;
    }
    sync_threads();
    let own = channel * length..(channel + 1) * length;
    let (u, delta, gate) = (&u[own.clone()], &delta[own.clone()], &gate[own.clone()]);
    let y = &mut y[own];
    for start in (0..length).step_by(CHUNK) {
        let t = start + lane;
        let inside = t < length;
        let (x, step) = if inside {
            (u[t], softplus(delta[t]))
        } else {
            (0.0, 0.0)
        };
        let mut sum = skip[channel] * x;
        for n in 0..STATES {
            let map = if inside {
                Affine {
                    scale: (step * a[channel][n]).exp(),
                    shift: step * b[t][n] * x,
                }
            } else {
                Affine::IDENTITY
            };
            let scanned = inclusive_scan(cells, map, Affine::then);
            let all = before[n].then(scanned);
            if inside {
                sum += c[t][n] * all.shift;
            }
            sync_threads();
            if lane == CHUNK - 1 {
                before[n] = all;
            }
            sync_threads();
        }
        if inside {
            y[t] = sum * silu(gate[t]);
        }
    }
}

#[test]
fn selective_scan_is_a_recurrence() {
    let (channels, length) = (3usize, 77usize);
    let rows = |count: usize, seed| -> Vec<[f32; STATES]> {
        let flat = reals(count * STATES, seed);
        flat.chunks(STATES).map(|c| c.try_into().unwrap()).collect()
    };
    let a: Vec<[f32; STATES]> = rows(channels, 7).iter().map(|r| r.map(|x| -x.exp())).collect();
    let (b, c, skip) = (rows(length, 8), rows(length, 9), reals(channels, 10));
    let count = channels * length;
    let (u, delta, gate) = (reals(count, 11), reals(count, 12), reals(count, 13));
    let mut expected = Vec::new();
    for d in 0..channels {
        let mut state = [0f64; STATES];
        for t in 0..length {
            let i = d * length + t;
            let x = f64::from(u[i]);
            let step = (1.0 + f64::from(delta[i]).exp()).ln();
            let mut sum = f64::from(skip[d]) * x;
            for n in 0..STATES {
                state[n] = state[n] * (step * f64::from(a[d][n])).exp() + step * f64::from(b[t][n]) * x;
                sum += state[n] * f64::from(c[t][n]);
            }
            let z = f64::from(gate[i]);
            expected.push(sum * z / (1.0 + (-z).exp()));
        }
    }
    everywhere(|run| {
        let y = run.zeros::<f32>(count);
        run.launch(
            selective_scan::kernel(),
            LaunchConfig::new(channels as u32, 32),
            args![
                length,
                &run.upload(&a),
                &run.upload(&skip),
                &run.upload(&u),
                &run.upload(&delta),
                &run.upload(&gate),
                &run.upload(&b),
                &run.upload(&c),
                &y
            ],
        );
        run.near(&y, &expected, 1e-5);
    });
}

// 69: tokens in blocks of one expert

const EXPERTS: usize = 64;

/// Where each expert's group begins, how long all are, and which expert each block has.
#[kernel(block_size = 64)]
fn align(block: u32, experts: &[u32], starts: &mut [u32], total: &mut [u32], owners: &mut [u32]) {
    let counts = shared_array::<[u32; EXPERTS]>();
    let cells = shared_array::<[u32; EXPERTS]>();
    let lane = local_id_x();
    counts[lane] = 0;
    sync_threads();
    for expert in experts.iter().skip(lane).step_by(EXPERTS) {
        atomic_add(&mut counts[*expert as usize], 1);
    }
    sync_threads();
    let own = counts[lane].next_multiple_of(block);
    let end = inclusive_scan(cells, own, |a, b| a + b);
    let start = end - own;
    starts[lane] = start;
    owners[(start / block) as usize..(end / block) as usize].fill(lane as u32);
    if lane == EXPERTS - 1 {
        total[0] = end;
    }
}

#[kernel]
fn place(experts: &[u32], starts: &mut [u32], sorted: &mut [u32]) {
    let token = global_id_x();
    if let Some(expert) = experts.get(token) {
        let at = atomic_add(&mut starts[*expert as usize], 1);
        sorted[at as usize] = token as u32;
    }
}

#[test]
fn tokens_of_an_expert_lie_together() {
    let (tokens, block) = (501usize, 8u32);
    let mut random = Random(69);
    let experts: Vec<u32> = (0..tokens)
        .map(|_| (random.bits() % 64 * (random.bits() % 3) / 2) as u32)
        .collect();
    let mut groups = vec![Vec::new(); EXPERTS];
    for (token, expert) in experts.iter().enumerate() {
        groups[*expert as usize].push(token as u32);
    }
    let padding = u32::MAX;
    let (mut sorted, mut owners) = (Vec::new(), Vec::new());
    for (expert, group) in groups.iter_mut().enumerate() {
        while group.len() % block as usize != 0 {
            group.push(padding);
        }
        sorted.extend(group.iter().copied());
        owners.extend(vec![expert as u32; group.len() / block as usize]);
    }
    everywhere(|run| {
        let ids = run.upload(&experts);
        let (starts, total) = (run.zeros::<u32>(EXPERTS), run.zeros::<u32>(1));
        let (places, who) = (
            run.upload(&vec![padding; sorted.len()]),
            run.zeros::<u32>(owners.len()),
        );
        let one = LaunchConfig::new(1, 64);
        run.launch(align::kernel(), one, args![block, &ids, &starts, &total, &who]);
        let all = LaunchConfig::linear(tokens, 64);
        run.launch(place::kernel(), all, args![&ids, &starts, &places]);
        run.holds(&total, &[sorted.len() as u32]);
        run.holds(&who, &owners);
        let mut found = run.read(&places);
        let mut at = 0;
        for group in &groups {
            found[at..at + group.len()].sort_unstable();
            at += group.len();
        }
        assert_eq!(found, sorted, "on {}", run.place());
    });
}
