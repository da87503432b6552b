//! Random numbers that are not uniform: gamma variates, and Wallace's pools of normal numbers.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 243: gamma variates by rejection

const TAU: f32 = std::f32::consts::TAU;

/// Uniform and normal numbers of one lane.
#[derive(Clone, Copy, GpuType)]
struct Source {
    state: u32,
    spare: Option<f32>,
}

#[device]
impl Source {
    fn new(stream: u32) -> Self {
        let mut source = Source {
            state: stream.wrapping_mul(0x9e37_79b9),
            spare: None,
        };
        source.bits();
        source
    }

    fn bits(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((self.state >> ((self.state >> 28) + 4)) ^ self.state).wrapping_mul(277_803_737);
        (word >> 22) ^ word
    }

    /// Between 0 and 1, neither of them.
    fn uniform(&mut self) -> f32 {
        ((self.bits() >> 9) as f32 + 0.5) / 8_388_608.0
    }

    fn normal(&mut self) -> f32 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    fn gamma(&mut self, shape: f32) -> f32 {
        let (shape, boost) = if shape < 1.0 {
            (shape + 1.0, self.uniform().powf(shape.recip()))
        } else {
            (shape, 1.0)
        };
        let d = shape - 1.0 / 3.0;
        let c = (9.0 * d).sqrt().recip();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v <= 0.0 {
                continue;
            }
            let u = self.uniform();
            if u < 1.0 - 0.0331 * x.powi(4) || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
                return boost * d * v;
            }
        }
    }
}

#[kernel]
fn gammas(each: usize, shapes: &[f32], out: &mut [f32]) {
    let (column, row) = (global_id_x(), global_id_y());
    if column >= each {
        return;
    }
    if let Some(shape) = shapes.get(row) {
        let at = row * each + column;
        out[at] = Source::new(at as u32).gamma(*shape);
    }
}

/// The same stream of integers, floats in `f64`, one function after the other.
fn gamma_on_host(stream: u32, shape: f64) -> f64 {
    let mut state = stream.wrapping_mul(0x9e37_79b9);
    let mut uniform = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let shifted = state >> ((state >> 28) + 4);
        let word = (shifted ^ state).wrapping_mul(277_803_737);
        let bits = word ^ (word >> 22);
        (f64::from(bits >> 9) + 0.5) / 8_388_608.0
    };
    uniform();
    let mut factor = 1.0;
    let mut alpha = shape;
    if shape < 1.0 {
        factor = uniform().powf(1.0 / shape);
        alpha += 1.0;
    }
    let d = alpha - 1.0 / 3.0;
    let mut pending = vec![];
    loop {
        let x: f64 = pending.pop().unwrap_or_else(|| {
            let r = (-2.0 * uniform().ln()).sqrt();
            let angle = std::f64::consts::TAU * uniform();
            pending.push(r * angle.sin());
            r * angle.cos()
        });
        let root = 1.0 + x / (9.0 * d).sqrt();
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let u = uniform();
        if u < 1.0 - 0.0331 * x * x * x * x || u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return factor * d * v;
        }
    }
}

#[test]
fn gammas_follow_their_shapes() {
    let (shapes, each) = ([0.31f32, 0.9, 1.0, 2.5, 17.25], 203usize);
    let mut expected = vec![];
    for (row, shape) in shapes.iter().enumerate() {
        expected
            .extend((0..each).map(|column| gamma_on_host((row * each + column) as u32, f64::from(*shape))));
    }
    everywhere(|run| {
        let (input, out) = (run.upload(&shapes), run.zeros::<f32>(expected.len()));
        let config = LaunchConfig::tiled(each as u32, shapes.len() as u32, (32, 2));
        run.launch(gammas::kernel(), config, args![each, &input, &out]);
        // A normal number is off by some 1e-6, which a shape of 17 makes 3 * 17 * c * 1e-6 with c = 0.08.
        run.near(&out, &expected, 5e-5);
    });
}

// 244: Wallace's normal numbers from normal numbers

#[device]
fn hadamard(values: [f32; 4]) -> [f32; 4] {
    let half = 0.5 * values.iter().sum::<f32>();
    let [a, b, c, d] = values;
    [a - half, b - half, half - c, half - d]
}

#[kernel(block_size = 64)]
fn wallace(passes: usize, seed: u32, pools: &mut [f32], out: &mut [f32]) {
    let pool = shared_array::<[f32; 256]>();
    let (lane, block) = (local_id_x(), group_id_x());
    let own = &mut pools[block * 256..][..256];
    for k in 0..4 {
        pool[lane + 64 * k] = own[lane + 64 * k];
    }
    let mut state = seed.wrapping_add(block as u32);
    for pass in 0..passes {
        sync_threads();
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // An odd factor permutes the 256 places.
        let (factor, offset) = (state >> 8 | 1, state >> 20);
        let taken = std::array::from_fn(|k| {
            let place = ((4 * lane + k) as u32).wrapping_mul(factor).wrapping_add(offset);
            pool[place as usize % 256]
        });
        let turned = hadamard(taken);
        sync_threads();
        for (k, value) in turned.into_iter().enumerate() {
            let place = lane + 64 * k;
            pool[place] = value;
            out[(block * passes + pass) * 256 + place] = value;
        }
    }
    for k in 0..4 {
        own[lane + 64 * k] = pool[lane + 64 * k];
    }
}

#[test]
fn wallace_keeps_its_pools_normal() {
    let mut random = Random(244);
    let (blocks, passes, seed) = (3usize, 5usize, 20_244u32);
    let pools: Vec<f32> = (0..blocks * 256)
        .map(|_| {
            (0..4)
                .map(|_| (random.bits() >> 40) as f32 / 16_777_216.0 - 0.5)
                .sum()
        })
        .collect();
    let mut after: Vec<f64> = pools.iter().map(|v| f64::from(*v)).collect();
    let mut expected = vec![];
    for block in 0..blocks {
        let pool = &mut after[block * 256..(block + 1) * 256];
        let before: f64 = pool.iter().map(|v| v * v).sum();
        let mut state = seed + block as u32;
        for _ in 0..passes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let old = pool.to_vec();
            let at = |i: usize| {
                old[((i as u64 * u64::from((state >> 8) | 1) + u64::from(state >> 20)) % 256) as usize]
            };
            for lane in 0..64 {
                let four = [at(4 * lane), at(4 * lane + 1), at(4 * lane + 2), at(4 * lane + 3)];
                // A matrix with rows of length one that are at right angles.
                let rows: [[f64; 4]; 4] = [
                    [0.5, -0.5, -0.5, -0.5],
                    [-0.5, 0.5, -0.5, -0.5],
                    [0.5, 0.5, -0.5, 0.5],
                    [0.5, 0.5, 0.5, -0.5],
                ];
                for (k, row) in rows.iter().enumerate() {
                    pool[lane + 64 * k] = row.iter().zip(&four).map(|(r, v)| r * v).sum();
                }
            }
            expected.extend_from_slice(pool);
        }
        let now: f64 = pool.iter().map(|v| v * v).sum();
        assert!((now - before).abs() < 1e-9 * before);
    }
    everywhere(|run| {
        let (state, out) = (run.upload(&pools), run.zeros::<f32>(expected.len()));
        run.launch(
            wallace::kernel(),
            LaunchConfig::new(blocks as u32, 64),
            args![passes, seed, &state, &out],
        );
        // Five passes of four sums of numbers below 8, each off by 2^-24 of them.
        run.near(&out, &expected, 1e-5);
        run.near(&state, &after, 1e-5);
    });
}
