//! Quantised weights: against a second reading of the formats, and against what the PyPI package `gguf` 0.17.1 makes of the same bytes.

use half::f16;
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{
    DequantizeKernel, Kernel, QuantFormat, QuantGemmKernel, QuantGemvKernel, QuantizeKernel,
};

use crate::harness::{Case, compare};

/// For 16 blocks of each format, from [`bytes`], the FNV-1a hash of the weights that `gguf.quants.dequantize` gives.
const DEQUANTIZED: [(QuantFormat, u64); 5] = [
    (QuantFormat::Q4_0, 0x2342_6ded_f731_dda1),
    (QuantFormat::Q8_0, 0x24d0_3a08_6a1a_983f),
    (QuantFormat::Q4K, 0x67cf_9c7c_6920_c815),
    (QuantFormat::Q5K, 0xd5f4_905b_1ff0_63c3),
    (QuantFormat::Q6K, 0x4327_8ad0_e51e_1115),
];

/// For 1,024 numbers, the hash of the blocks that `gguf.quants.quantize` gives.
const QUANTIZED: [(QuantFormat, u64); 2] = [
    (QuantFormat::Q4_0, 0x71b0_a580_b2ba_d563),
    (QuantFormat::Q8_0, 0xf2e4_306c_0e93_12e0),
];

fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Random numbers as the generator of the hashes took them.
struct Mix(u64);

impl Mix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Random blocks whose scales are neither huge nor none.
fn bytes(format: QuantFormat, blocks: usize, seed: u64) -> Vec<u8> {
    let scales: &[usize] = match format {
        QuantFormat::Q4K | QuantFormat::Q5K => &[0, 2],
        QuantFormat::Q6K => &[208],
        _ => &[0],
    };
    let mut mix = Mix(seed);
    let mut all = Vec::new();
    for _ in 0..blocks {
        let from = all.len();
        all.extend((0..format.bytes()).map(|_| mix.next() as u8));
        for scale in scales {
            let high = &mut all[from + scale + 1];
            *high = 0x24 | *high & 0x83;
        }
    }
    all
}

/// The words in which blocks lie on a device.
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |part: &[u8]| {
        let mut word = [0; 4];
        word[..part.len()].copy_from_slice(part);
        u32::from_le_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}

/// A block's weights, one after the other, by the formats' own words.
fn weights(format: QuantFormat, block: &[u8]) -> Vec<f32> {
    let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    let pair = |s: &[u8], j: usize| match j {
        0..4 => (s[j] & 63, s[j + 4] & 63),
        _ => (s[j + 4] & 15 | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4),
    };
    let with_minima = |qs: usize, fifth: &dyn Fn(usize, usize) -> u8| {
        let (d, dmin) = (half(0), half(2));
        let mut all = Vec::new();
        for j in 0..8 {
            let (scale, least) = pair(&block[4..16], j);
            for l in 0..32 {
                let nibble = block[qs + j / 2 * 32 + l] >> (j % 2 * 4) & 15;
                let q = nibble | fifth(j, l) << 4;
                all.push(d * f32::from(scale) * f32::from(q) - dmin * f32::from(least));
            }
        }
        all
    };
    match format {
        QuantFormat::Q4_0 => {
            let nibble = |i: usize| block[2 + i % 16] >> (i / 16 * 4) & 15;
            (0..32).map(|i| half(0) * (f32::from(nibble(i)) - 8.0)).collect()
        }
        QuantFormat::Q8_0 => (0..32).map(|i| half(0) * f32::from(block[2 + i] as i8)).collect(),
        QuantFormat::Q4K => with_minima(16, &|_, _| 0),
        QuantFormat::Q5K => with_minima(48, &|j, l| block[16 + l] >> j & 1),
        _ => {
            let mut all = vec![0.0; 256];
            for h in 0..2 {
                for l in 0..32 {
                    let (ql, qh) = (&block[64 * h..], block[128 + 32 * h + l]);
                    let q = [
                        ql[l] & 15 | (qh & 3) << 4,
                        ql[l + 32] & 15 | (qh >> 2 & 3) << 4,
                        ql[l] >> 4 | (qh >> 4 & 3) << 4,
                        ql[l + 32] >> 4 | (qh >> 6) << 4,
                    ];
                    for (r, q) in q.into_iter().enumerate() {
                        let scale = block[192 + 8 * h + l / 16 + 2 * r] as i8;
                        all[128 * h + 32 * r + l] = half(208) * f32::from(scale) * (f32::from(q) - 32.0);
                    }
                }
            }
            all
        }
    }
}

/// Weights of a device that fuses differ by the rounding of their parts.
fn expected(format: QuantFormat, bytes: &[u8]) -> Vec<(f64, f64)> {
    let all = bytes
        .chunks(format.bytes())
        .flat_map(|block| weights(format, block));
    all.map(|w| (f64::from(w), 1e-5)).collect()
}

pub(crate) fn dequantize(case: &mut Case) -> Result<(), Failed> {
    let format = case.one_of(&QuantFormat::ALL);
    let blocks = case.one_of(&[0, 1, 2, 3, 16, 33]);
    let bytes = bytes(format, blocks, case.bits());
    let count = blocks * format.weights();
    let x = case.device.upload(&words(&bytes))?;
    let y = case.matrix::<f32>([1, count, count], &vec![f32::NAN; count])?;
    let kernel = DequantizeKernel::new(format, count);
    kernel.launch(&case.device.default_stream(), args![&x, &y.part])?;
    compare::<f32>(&format!("{kernel:?}"), &y.read()?, &expected(format, &bytes))
}

/// The hashes say the same of these formats as the device does.
pub(crate) fn as_gguf(case: &mut Case) -> Result<(), Failed> {
    let stream = case.device.default_stream();
    let exact = case
        .device
        .info()
        .numeric_probe
        .is_none_or(|probe| probe.is_exact());
    for (format, hash) in DEQUANTIZED {
        let bytes = bytes(format, 16, 1);
        let count = 16 * format.weights();
        let (x, y) = (
            case.device.upload(&words(&bytes))?,
            case.device.zeros::<f32>(count)?,
        );
        DequantizeKernel::new(format, count).launch(&stream, args![&x, &y])?;
        let found = fnv(y.read()?.into_iter().flat_map(f32::to_le_bytes));
        if exact && found != hash {
            return Err(format!("{format:?} is read as {found:x}").into());
        }
        let second = fnv(bytes
            .chunks(format.bytes())
            .flat_map(|b| weights(format, b))
            .flat_map(f32::to_le_bytes));
        if second != hash {
            return Err(format!("{format:?}: the test itself reads {second:x}").into());
        }
    }
    let mut mix = Mix(2);
    let numbers: Vec<f32> = (0..1024)
        .map(|_| (mix.next() >> 40) as f32 / (1 << 23) as f32 - 1.0)
        .collect();
    for (format, hash) in QUANTIZED {
        let (x, y) = (
            case.device.upload(&numbers)?,
            case.device.zeros::<u32>(format.words(1024)?)?,
        );
        QuantizeKernel::new(format, 1024).launch(&stream, args![&x, &y])?;
        let found = fnv(y.read()?.into_iter().flat_map(u32::to_le_bytes));
        if exact && found != hash {
            return Err(format!("{format:?} is written as {found:x}").into());
        }
    }
    Ok(())
}

/// The root of the mean squared error, in parts of the root of the mean square, is below what each format can.
pub(crate) fn quantize(case: &mut Case) -> Result<(), Failed> {
    let format = case.one_of(&QuantFormat::ALL);
    let blocks = case.one_of(&[1, 2, 3, 8]);
    let count = blocks * format.weights();
    // Sums of uniform numbers are about normal, as weights are; some blocks have an offset, or are all zeros.
    let offset = case.one_of(&[0.0, 0.0, 0.3]);
    let scale = case.one_of(&[1.0, 0.02, 0.0]);
    let mut sum = |_| scale * (0..6).map(|_| case.number()).sum::<f32>() + offset * scale;
    let numbers: Vec<f32> = (0..count).map(&mut sum).collect();
    let x = case.device.upload(&numbers)?;
    let margin = 64;
    let words = format.words(count)?;
    let whole = case.device.full(margin + words + margin, 0xdead_beefu32)?;
    let y = whole.slice(margin..margin + words)?;
    let kernel = QuantizeKernel::new(format, count);
    kernel.launch(&case.device.default_stream(), args![&x, &y])?;
    let all = whole.read()?;
    let (before, after) = (&all[..margin], &all[margin + words..]);
    if before.iter().chain(after).any(|word| *word != 0xdead_beef) {
        return Err(format!("{kernel:?} wrote beside its blocks").into());
    }
    let written: Vec<u8> = all[margin..margin + words]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let read = written[..blocks * format.bytes()]
        .chunks(format.bytes())
        .flat_map(|b| weights(format, b));
    let (mut error, mut size) = (0.0f64, 0.0f64);
    for (found, number) in read.zip(&numbers) {
        error += f64::from(found - number).powi(2);
        size += f64::from(*number).powi(2);
    }
    let bound = match format {
        QuantFormat::Q4_0 => 0.12,
        QuantFormat::Q8_0 => 0.008,
        QuantFormat::Q4K => 0.09,
        QuantFormat::Q5K => 0.045,
        _ => 0.03,
    };
    match error.sqrt() <= bound * size.sqrt() {
        true => Ok(()),
        false => Err(format!("{kernel:?}: an error of {} of the size", (error / size).sqrt()).into()),
    }
}

pub(crate) fn gemv(case: &mut Case) -> Result<(), Failed> {
    let rows = case.one_of(&[0, 1, 7, 8, 9, 40]);
    product(
        case,
        [1, rows],
        |format, [_, n, k]| Box::new(QuantGemvKernel::new(format, n, k)),
        true,
    )
}

pub(crate) fn gemm(case: &mut Case) -> Result<(), Failed> {
    let size = [(); 2].map(|()| case.one_of(&[0, 1, 5, 64, 65, 100]));
    product(
        case,
        size,
        |format, [m, n, k]| Box::new(QuantGemmKernel::new(format, m, n, k)),
        false,
    )
}

fn product(
    case: &mut Case,
    [m, n]: [usize; 2],
    make: fn(QuantFormat, [usize; 3]) -> Box<dyn Kernel>,
    is_vector: bool,
) -> Result<(), Failed> {
    let format = case.one_of(&QuantFormat::ALL);
    let k = format.weights() * case.one_of(&[0, 1, 2, 3]);
    let bytes = bytes(format, n * k / format.weights(), case.bits());
    let w: Vec<f64> = expected(format, &bytes).into_iter().map(|(w, _)| w).collect();
    let a = case.numbers(m * k, 2.0);
    let (w_buffer, a_buffer) = (
        case.device.upload(&words(&bytes))?,
        case.matrix::<f32>([m, k, k], &a)?,
    );
    let c = case.matrix::<f32>([m, n, n], &vec![f32::NAN; m * n])?;
    let kernel = make(format, [m, n, k]);
    let args = match is_vector {
        true => args![&w_buffer, &a_buffer.part, &c.part],
        false => args![&a_buffer.part, &w_buffer, &c.part],
    };
    kernel.launch(&case.device.default_stream(), args)?;
    let a: Vec<f64> = a.into_iter().map(f64::from).collect();
    let sums = perpetua_kernels::reference::gemm([m, n, k], [false, true], &a, &w);
    let bound = |(sum, size): (f64, f64)| (sum, (k as f64 + 4.0) * 6e-8 * (size + 1e-3));
    let expected: Vec<(f64, f64)> = sums.into_iter().map(bound).collect();
    compare::<f32>(
        &format!("{} {format:?} {m} {n} {k}", kernel.name()),
        &c.read()?,
        &expected,
    )
}
