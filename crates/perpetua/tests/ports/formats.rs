//! Small formats of numbers.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 14: FP8, E4M3

#[device]
fn narrowed(x: f32) -> u8 {
    let (bits, sign) = (x.abs().to_bits(), ((x.to_bits() >> 24) & 0x80) as u8);
    let magnitude = if x.is_nan() {
        0x7f
    } else if x.abs() < 0.015625 {
        (x.abs() * 512.0).round_ties_even() as u8
    } else {
        let rounded = bits + 0x7ffff + ((bits >> 20) & 1);
        ((rounded >> 20) - (120 << 3)).min(0x7e) as u8
    };
    sign | magnitude
}

#[device]
fn widened(code: u8) -> f32 {
    let magnitude = match code & 0x7f {
        0x7f => f32::NAN,
        m @ 0..=7 => f32::from(m) / 512.0,
        m => f32::from_bits((u32::from(m) << 20) + (120 << 23)),
    };
    if code >= 0x80 { -magnitude } else { magnitude }
}

#[kernel]
fn to_fp8(x: &[f32], codes: &mut [u8], back: &mut [f32]) {
    let i = global_id_x();
    if let (Some(x), Some(code)) = (x.get(i), codes.get_mut(i)) {
        *code = narrowed(*x);
        back[i] = widened(*code);
    }
}

/// What a code means, from its definition.
fn e4m3(code: u8) -> f64 {
    let (sign, exponent, fraction) = (code >> 7, i32::from(code >> 3 & 15), f64::from(code & 7));
    let magnitude = match exponent {
        0 => fraction / 8.0 * 2f64.powi(-6),
        e => (1.0 + fraction / 8.0) * 2f64.powi(e - 7),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

#[test]
fn fp8_takes_the_nearest() {
    let mut random = Random(14);
    let mut x: Vec<f32> = (0..2000)
        .map(|_| f32::from_bits((random.bits() as u32 & 0x83ff_ffff) | 0x3800_0000))
        .collect();
    for code in 0..126u8 {
        let middle = (e4m3(code) + e4m3(code + 1)) / 2.0;
        x.extend([
            e4m3(code) as f32,
            middle as f32,
            -middle as f32,
            (middle as f32).next_up(),
        ]);
    }
    x.extend([
        0.0,
        -0.0,
        1e-9,
        448.0,
        460.0,
        1e30,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ]);
    let nearest = |x: f32| {
        let candidates =
            (0..127u8).map(|code| ((e4m3(code) - f64::from(x).abs().min(448.0)).abs(), code & 1, code));
        let best = candidates.min_by(|a, b| a.partial_cmp(b).unwrap()).unwrap().2;
        if x.is_sign_negative() { best | 0x80 } else { best }
    };
    let expected: Vec<u8> = x.iter().map(|x| nearest(*x)).collect();
    let values: Vec<f32> = expected.iter().map(|code| e4m3(*code) as f32).collect();
    everywhere(|run| {
        let (x, codes, back) = (
            run.upload(&x),
            run.zeros(expected.len()),
            run.zeros(expected.len()),
        );
        let config = LaunchConfig::linear(expected.len(), 64);
        run.launch(to_fp8::kernel(), config, args![&x, &codes, &back]);
        run.holds(&codes, &expected);
        run.holds(&back, &values);
    });
}

// 15: MXFP4

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Mx {
    scale: u8,
    pairs: [u8; 16],
}

const FP4: [f32; 16] = [
    0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0,
];

#[device]
impl Mx {
    fn dot(&self, x: &[f32]) -> f32 {
        let (low, high) = x.split_at(16);
        let mut sum = 0.0;
        for ((pair, a), b) in self.pairs.iter().zip(low).zip(high) {
            sum += FP4[usize::from(pair & 15)] * a + FP4[usize::from(pair >> 4)] * b;
        }
        sum * f32::from_bits(u32::from(self.scale) << 23)
    }
}

#[kernel]
fn mx_product(weights: &[Mx], x: &[f32], y: &mut [f32]) {
    let row = global_id_x();
    if row < y.len() {
        let blocks = x.len() / 32;
        let weights = weights.chunks_exact(blocks).nth(row).unwrap();
        y[row] = weights
            .iter()
            .zip(x.chunks_exact(32))
            .map(|(w, x)| w.dot(x))
            .sum();
    }
}

#[test]
fn mxfp4_multiplies() {
    let mut random = Random(15);
    let (rows, blocks) = (70, 5);
    let weights: Vec<Mx> = (0..rows * blocks)
        .map(|_| Mx {
            scale: 125 + (random.bits() % 5) as u8,
            pairs: std::array::from_fn(|_| random.bits() as u8),
        })
        .collect();
    let x: Vec<f32> = (0..32 * blocks)
        .map(|_| (random.bits() % 17) as f32 - 8.0)
        .collect();
    let weight = |row: usize, k: usize| {
        let block = weights[row * blocks + k / 32];
        let (at, shift) = (k % 16, 4 * (k / 16 % 2));
        let code = block.pairs[at] >> shift & 15;
        let value = match (code >> 1 & 3, code & 1) {
            (0, m) => f64::from(m) / 2.0,
            (e, m) => (1.0 + f64::from(m) / 2.0) * 2f64.powi(i32::from(e) - 1),
        };
        let sign = if code >= 8 { -1.0 } else { 1.0 };
        sign * value * 2f64.powi(i32::from(block.scale) - 127)
    };
    let expected: Vec<f32> = (0..rows)
        .map(|row| {
            (0..32 * blocks)
                .map(|k| weight(row, k) * f64::from(x[k]))
                .sum::<f64>() as f32
        })
        .collect();
    everywhere(|run| {
        let (weights, x, y) = (run.upload(&weights), run.upload(&x), run.zeros(rows));
        let config = LaunchConfig::linear(rows, 64);
        run.launch(mx_product::kernel(), config, args![&weights, &x, &y]);
        run.holds(&y, &expected);
    });
}

// 16: Q4_K

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Super {
    scale: f16,
    least: f16,
    packed: [u8; 12],
    quants: [u8; 128],
}

#[device]
impl Super {
    /// The scale and the minimum of a group of 32 weights.
    fn group(&self, j: usize) -> (f32, f32) {
        let p = &self.packed;
        let (scale, least) = if j < 4 {
            (p[j] & 63, p[j + 4] & 63)
        } else {
            (p[j + 4] & 15 | p[j - 4] >> 6 << 4, p[j + 4] >> 4 | p[j] >> 6 << 4)
        };
        (
            self.scale.to_f32() * f32::from(scale),
            self.least.to_f32() * f32::from(least),
        )
    }

    fn weight(&self, i: usize) -> f32 {
        let (half, at) = (i / 64, i % 64);
        let pair = self.quants[32 * half + at % 32];
        let quant = if at < 32 { pair & 15 } else { pair >> 4 };
        let (scale, least) = self.group(i / 32);
        scale * f32::from(quant) - least
    }
}

#[kernel]
fn q4_k(blocks: &[Super], y: &mut [f32]) {
    let i = global_id_x();
    if let Some(out) = y.get_mut(i) {
        *out = blocks[i / 256].weight(i % 256);
    }
}

#[test]
fn q4_k_decodes_what_was_packed() {
    let mut random = Random(16);
    let (mut blocks, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (scale, least) = (
            f16::from_f32(0.25 + (random.bits() % 8) as f32),
            f16::from_f32(0.375),
        );
        let groups: Vec<[u8; 2]> = (0..8).map(|_| [0; 2].map(|_| random.bits() as u8 & 63)).collect();
        let quants: Vec<u8> = (0..256).map(|_| random.bits() as u8 & 15).collect();
        let mut packed = [0u8; 12];
        for (j, [s, m]) in groups.iter().enumerate() {
            if j < 4 {
                packed[j] |= s;
                packed[j + 4] |= m;
            } else {
                packed[j + 4] = (s & 15) | (m & 15) << 4;
                packed[j - 4] |= s >> 4 << 6;
                packed[j] |= m >> 4 << 6;
            }
        }
        let pairs =
            std::array::from_fn(|b| quants[b / 32 * 64 + b % 32] | quants[b / 32 * 64 + 32 + b % 32] << 4);
        blocks.push(Super {
            scale,
            least,
            packed,
            quants: pairs,
        });
        expected.extend(quants.iter().enumerate().map(|(i, q)| {
            let [s, m] = groups[i / 32];
            f32::from(scale) * f32::from(s) * f32::from(*q) - f32::from(least) * f32::from(m)
        }));
    }
    everywhere(|run| {
        let (blocks, y) = (run.upload(&blocks), run.zeros(expected.len()));
        let config = LaunchConfig::linear(expected.len(), 64);
        run.launch(q4_k::kernel(), config, args![&blocks, &y]);
        run.holds(&y, &expected);
    });
}
