//! Draws: quasi-random numbers, and samples of any distribution.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 119: Sobol's numbers

/// Joe and Kuo's: the degree of a primitive polynomial, its inner coefficients, the first direction numbers.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Dimension {
    degree: u8,
    inner: u8,
    first: [u8; 5],
}

#[device]
impl Dimension {
    const BITS: usize = 32;

    fn directions(self) -> [u32; Self::BITS] {
        let s = self.degree as usize;
        let mut v = [0; Self::BITS];
        if s == 0 {
            return std::array::from_fn(|k| 1 << (31 - k));
        }
        for k in 0..Self::BITS {
            v[k] = match self.first.get(k).filter(|_| k < s) {
                Some(m) => u32::from(*m) << (31 - k),
                None => (1..s)
                    .filter(|j| self.inner >> (s - 1 - j) & 1 == 1)
                    .fold(v[k - s] ^ (v[k - s] >> s), |x, j| x ^ v[k - j]),
            };
        }
        v
    }
}

/// Each row of blocks has a dimension; a lane goes on in steps of a power of two.
#[kernel(block_size = 64)]
fn sobol(count: usize, dimensions: &[Dimension], out: &mut [f32]) {
    let directions = shared_array::<[u32; Dimension::BITS]>();
    let dimension = group_id_y();
    if local_id_x() == 0 {
        *directions = dimensions[dimension].directions();
    }
    sync_threads();
    let out = &mut out[dimension * count..][..count];
    let (mut i, stride) = (global_id_x(), global_size_x());
    let gray = i ^ (i >> 1);
    let mut x = directions
        .iter()
        .enumerate()
        .filter(|(k, _)| (gray >> k) & 1 == 1)
        .fold(0, |x, (_, v)| x ^ v);
    let jump = directions[stride.ilog2() as usize - 1];
    while i < count {
        out[i] = x as f32 * 2f32.powi(-32);
        // Two bits of the Gray code change: the one of the stride, and one above it.
        let above = (!(i | (stride - 1))).trailing_zeros() as usize;
        x ^= jump ^ directions.get(above).copied().unwrap_or(0);
        i += stride;
    }
}

#[test]
fn sobol_numbers_are_those_of_their_direction_numbers() {
    let known = [
        (0, 0, [0, 0, 0, 0, 0]),
        (1, 0, [1, 0, 0, 0, 0]),
        (2, 1, [1, 3, 0, 0, 0]),
        (3, 1, [1, 3, 1, 0, 0]),
        (3, 2, [1, 1, 1, 0, 0]),
        (4, 1, [1, 1, 3, 3, 0]),
        (4, 4, [1, 3, 5, 13, 0]),
        (5, 2, [1, 1, 5, 5, 17]),
    ];
    let count = 1000usize;
    let mut expected = Vec::new();
    for (s, a, m) in known {
        // In whole numbers m, as published.
        let mut m: Vec<u64> = if s == 0 {
            vec![1; 32]
        } else {
            m[..s].iter().map(|m| u64::from(*m)).collect::<Vec<_>>()
        };
        for k in m.len()..32 {
            let mut next = m[k - s] ^ (m[k - s] << s);
            for j in 1..s {
                if a >> (s - 1 - j) & 1 == 1 {
                    next ^= m[k - j] << j;
                }
            }
            m.push(next);
        }
        for i in 0..count {
            let gray = i ^ (i / 2);
            let x = (0..32)
                .filter(|k| gray >> k & 1 == 1)
                .fold(0, |x, k| x ^ (m[k] << (31 - k)));
            expected.push(x as u32 as f32 / 2f32.powi(32));
        }
    }
    // The second dimension is van der Corput's in another order.
    assert_eq!(expected[count..count + 4], [0.0, 0.5, 0.25, 0.75]);
    let dimensions = known.map(|(s, inner, first)| Dimension {
        degree: s as u8,
        inner,
        first,
    });
    everywhere(|run| {
        let (d, y) = (run.upload(&dimensions), run.zeros::<f32>(expected.len()));
        run.launch(
            sobol::kernel(),
            LaunchConfig::new((2, 8), 64),
            args![count, &d, &y],
        );
        run.holds(&y, &expected);
    });
}

// 120: alias tables

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Bin {
    threshold: f32,
    alias: u16,
}

/// Vose's: a bin that is too small is filled up by one that is too large. Both lists are in one array, from its two ends.
#[device]
fn build<const N: usize>(weights: &[f32; N]) -> [Bin; N] {
    let total: f32 = weights.iter().sum();
    let mut left = weights.map(|w| w * N as f32 / total);
    let mut bins = [Bin::default(); N];
    let mut worklist = [0u16; N];
    let (mut small, mut large) = (0, N);
    for (i, part) in left.iter().enumerate() {
        if *part < 1.0 {
            worklist[small] = i as u16;
            small += 1;
        } else {
            large -= 1;
            worklist[large] = i as u16;
        }
    }
    while small > 0 && large < N {
        small -= 1;
        let (low, high) = (worklist[small] as usize, worklist[large] as usize);
        bins[low] = Bin {
            threshold: left[low],
            alias: high as u16,
        };
        left[high] -= 1.0 - left[low];
        if left[high] < 1.0 {
            worklist[small] = worklist[large];
            large += 1;
            small += 1;
        }
    }
    for &full in worklist[..small].iter().chain(&worklist[large..]) {
        bins[full as usize] = Bin {
            threshold: 1.0,
            alias: full,
        };
    }
    bins
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Pcg {
    state: u64,
    stream: u64,
}

#[device]
impl Pcg {
    fn new(seed: u64, stream: u64) -> Self {
        let mut own = Self {
            state: 0,
            stream: stream << 1 | 1,
        };
        own.draw();
        own.state = own.state.wrapping_add(seed);
        own.draw();
        own
    }

    fn draw(&mut self) -> u32 {
        let old = self.state;
        self.state = old
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(self.stream);
        let xored = (((old >> 18) ^ old) >> 27) as u32;
        xored.rotate_right((old >> 59) as u32)
    }

    fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.draw()) * u64::from(end)) >> 32) as u32
    }
}

#[kernel]
fn tables<const N: usize>(weights: &[[f32; N]], out: &mut [[Bin; N]]) {
    let i = global_id_x();
    if let (Some(weights), Some(out)) = (weights.get(i), out.get_mut(i)) {
        *out = build(weights);
    }
}

#[kernel]
fn samples<const N: usize>(seed: u64, draws: u32, tables: &[[Bin; N]], counts: &mut [[u32; N]]) {
    let i = global_id_x();
    if i >= counts.len() {
        return;
    }
    let mut random = Pcg::new(seed, i as u64);
    for _ in 0..draws {
        let slot = random.below(N as u32) as usize;
        let Bin { threshold, alias } = tables[i % tables.len()][slot];
        let toss = (random.draw() >> 8) as f32 / 16_777_216.0;
        counts[i][if toss < threshold { slot } else { alias.into() }] += 1;
    }
}

#[test]
fn alias_tables_have_the_weights_and_are_sampled() {
    const N: usize = 12;
    let mut random = Random(120);
    let weights: Vec<[f32; N]> = (0..70)
        .map(|_| {
            std::array::from_fn(|_| {
                if random.below(5) == 0 {
                    0.0
                } else {
                    random.between(0.1, 3.0) as f32
                }
            })
        })
        .collect();
    let shares = |bins: &[Bin; N]| {
        let mut shares = [0.0; N];
        for (i, bin) in bins.iter().enumerate() {
            shares[i] += f64::from(bin.threshold) / N as f64;
            shares[bin.alias as usize] += (1.0 - f64::from(bin.threshold)) / N as f64;
        }
        shares
    };
    // A table whose thresholds are eighths, so that every device tosses alike.
    let coarse: Vec<[Bin; N]> = (0..7)
        .map(|_| {
            std::array::from_fn(|_| Bin {
                threshold: random.below(9) as f32 / 8.0,
                alias: random.below(N) as u16,
            })
        })
        .collect();
    let (lanes, draws) = (100usize, 200u32);
    let mut expected = Vec::new();
    for lane in 0..lanes {
        let stream = 2 * lane as u128 + 1;
        // The first state is the stream's step of nothing, the seed added.
        let modulus = 1u128 << 64;
        let state = (stream + 120) * 6_364_136_223_846_793_005 + stream;
        let mut current = (state % modulus) as u64;
        let mut next = || {
            let old = current;
            current = ((u128::from(old) * 6_364_136_223_846_793_005 + stream) % modulus) as u64;
            ((((old >> 18) ^ old) >> 27) as u32).rotate_right((old >> 59) as u32)
        };
        let mut counts = [0u32; N];
        for _ in 0..draws {
            let slot = (f64::from(next()) * N as f64 / 2f64.powi(32)) as usize;
            let bin = coarse[lane % 7][slot];
            let toss = f64::from(next() >> 8) / f64::from(1 << 24);
            counts[if toss < f64::from(bin.threshold) {
                slot
            } else {
                bin.alias as usize
            }] += 1;
        }
        expected.push(counts);
    }
    everywhere(|run| {
        let (w, t) = (run.upload(&weights), run.zeros::<[Bin; N]>(weights.len()));
        run.launch(
            tables::kernel::<N>(),
            LaunchConfig::linear(weights.len(), 64),
            args![&w, &t],
        );
        for (weights, bins) in weights.iter().zip(run.read(&t)) {
            let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
            for (share, weight) in shares(&bins).iter().zip(weights) {
                assert!(
                    (share - f64::from(*weight) / total).abs() < 1e-6,
                    "on {}",
                    run.place()
                );
            }
        }
        let (t, y) = (run.upload(&coarse), run.zeros::<[u32; N]>(lanes));
        run.launch(
            samples::kernel::<N>(),
            LaunchConfig::linear(lanes, 64),
            args![120u64, draws, &t, &y],
        );
        run.holds(&y, &expected);
    });
}
