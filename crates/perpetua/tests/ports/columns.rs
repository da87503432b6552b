//! Columns of numbers: compressed, counted, multiplied, selected.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 151: zfp

const WORDS: usize = 4;
const PERMUTATION: [usize; 16] = [0, 1, 4, 5, 2, 8, 6, 9, 3, 12, 10, 7, 13, 11, 14, 15];

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct BitWriter {
    words: [u64; WORDS],
    used: u32,
}

#[device]
impl BitWriter {
    const CAPACITY: u32 = 64 * WORDS as u32;

    fn left(&self) -> u32 {
        Self::CAPACITY - self.used
    }

    /// The lowest bits of a value; what does not fit is dropped. Returns the bits above them.
    fn write(&mut self, value: u64, count: u32) -> u64 {
        for k in 0..count.min(self.left()) {
            let at = self.used + k;
            self.words[at as usize / 64] |= (value >> k & 1) << (at % 64);
        }
        self.used += count.min(self.left());
        value.unbounded_shr(count)
    }

    /// Writes a bit and tells it.
    fn test(&mut self, bit: bool) -> bool {
        self.write(u64::from(bit), 1);
        bit
    }
}

/// Four numbers made smooth and rough parts.
#[device]
fn lift(block: &mut [i32; 16], first: usize, stride: usize) {
    let [mut x, mut y, mut z, mut w] = std::array::from_fn(|k| block[first + k * stride]);
    x += w;
    x >>= 1;
    w -= x;
    z += y;
    z >>= 1;
    y -= z;
    x += z;
    x >>= 1;
    z -= x;
    w += y;
    w >>= 1;
    y -= w;
    w += y >> 1;
    y -= w >> 1;
    for (k, v) in [x, y, z, w].into_iter().enumerate() {
        block[first + k * stride] = v;
    }
}

#[device]
fn exponent(x: f32) -> i32 {
    (x.to_bits() >> 23 & 0xff) as i32 - 126
}

#[device]
fn encode_planes(writer: &mut BitWriter, values: &[u32; 16]) {
    let mut known = 0;
    for plane in (0..32).rev() {
        if writer.left() == 0 {
            return;
        }
        let bits = values
            .iter()
            .enumerate()
            .fold(0u64, |bits, (i, value)| bits | u64::from(value >> plane & 1) << i);
        let mut rest = writer.write(bits, known);
        while known < 16 && writer.left() > 0 && writer.test(rest != 0) {
            while known < 15 && writer.left() > 0 && !writer.test(rest & 1 != 0) {
                rest >>= 1;
                known += 1;
            }
            rest >>= 1;
            known += 1;
        }
    }
}

#[kernel]
fn zfp_encode(size: [u32; 2], field: &[f32], blocks: &mut [[u64; WORDS]]) {
    let (bx, by) = (global_id_x(), global_id_y());
    let [width, height] = size.map(|n| n as usize);
    let columns = width.div_ceil(4);
    if bx >= columns || by >= height.div_ceil(4) {
        return;
    }
    // The edge goes on.
    let values: [f32; 16] = std::array::from_fn(|i| {
        let (x, y) = ((4 * bx + i % 4).min(width - 1), (4 * by + i / 4).min(height - 1));
        field[y * width + x]
    });
    let mut writer = BitWriter::default();
    let largest = values.iter().map(|v| v.abs()).fold(0.0, f32::max);
    if writer.test(largest > 0.0) {
        let top = exponent(largest);
        writer.write((top + 127) as u64, 8);
        let scale = f32::from_bits(((30 - top + 127) as u32) << 23);
        let mut block = values.map(|v| (v * scale) as i32);
        for y in 0..4 {
            lift(&mut block, 4 * y, 1);
        }
        for x in 0..4 {
            lift(&mut block, x, 4);
        }
        const MASK: u32 = 0xaaaa_aaaa;
        let negabinary = PERMUTATION.map(|i| (block[i] as u32).wrapping_add(MASK) ^ MASK);
        encode_planes(&mut writer, &negabinary);
    }
    blocks[by * columns + bx] = writer.words;
}

fn zfp_decode(words: &[u64; WORDS]) -> [f64; 16] {
    let mut bits = (0..64 * WORDS).map(|k| words[k / 64] >> (k % 64) & 1);
    if bits.next() == Some(0) {
        return [0.0; 16];
    }
    let top = (0..8).map(|k| bits.next().unwrap() << k).sum::<u64>() as i32 - 127;
    let mut data = [0u32; 16];
    let mut n = 0;
    'planes: for plane in (0..32).rev() {
        let mut x = 0u64;
        for k in 0..n {
            let Some(bit) = bits.next() else { break };
            x |= bit << k;
        }
        while n < 16 {
            match bits.next() {
                Some(1) => {}
                _ => break,
            }
            while n < 15 && bits.next() == Some(0) {
                n += 1;
            }
            x |= 1 << n;
            n += 1;
        }
        for (i, d) in data.iter_mut().enumerate() {
            *d |= ((x >> i & 1) as u32) << plane;
        }
        if bits.len() == 0 {
            break 'planes;
        }
    }
    let mut block = [0i32; 16];
    for (k, i) in PERMUTATION.iter().enumerate() {
        block[*i] = (data[k] ^ 0xaaaa_aaaa).wrapping_sub(0xaaaa_aaaa) as i32;
    }
    let starts = (0..4).map(|x| (x, 4)).chain((0..4).map(|y| (4 * y, 1)));
    for (first, stride) in starts {
        let [mut x, mut y, mut z, mut w]: [i32; 4] = std::array::from_fn(|k| block[first + k * stride]);
        y += w >> 1;
        w -= y >> 1;
        y += w;
        w <<= 1;
        w -= y;
        z += x;
        x <<= 1;
        x -= z;
        y += z;
        z <<= 1;
        z -= y;
        w += x;
        x <<= 1;
        x -= w;
        [x, y, z, w]
            .iter()
            .enumerate()
            .for_each(|(k, v)| block[first + k * stride] = *v);
    }
    block.map(|v| f64::from(v) * f64::from(top - 30).exp2())
}

#[test]
fn zfp_comes_back_nearly() {
    let mut random = Random(151);
    let (width, height) = (39usize, 22usize);
    let field: Vec<f32> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width) as f32, (i / width) as f32);
            if x < 9.0 && y < 9.0 {
                0.0
            } else {
                (x * 0.2).sin() * 50.0 + y * y * 0.01 + random.between(-0.1, 0.1) as f32
            }
        })
        .collect();
    everywhere(|run| {
        let blocks = run.zeros::<[u64; WORDS]>(10 * 6);
        run.launch(
            zfp_encode::kernel(),
            LaunchConfig::tiled(10, 6, (8, 4)),
            args![[width as u32, height as u32], &run.upload(&field), &blocks],
        );
        let decoded: Vec<[f64; 16]> = run.read(&blocks).iter().map(zfp_decode).collect();
        for (i, wanted) in field.iter().enumerate() {
            let (x, y) = (i % width, i / width);
            let found = decoded[y / 4 * 10 + x / 4][y % 4 * 4 + x % 4];
            let off = (found - f64::from(*wanted)).abs();
            assert!(off < 0.01, "{x} {y}: {found} for {wanted} on {}", run.place());
        }
    });
}

// 152: cuCollections' HyperLogLog

#[device]
trait Hasher: GpuType {
    fn hash(&self, key: u64) -> u64;
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct XxHash64 {
    seed: u64,
}

#[device]
impl Hasher for XxHash64 {
    fn hash(&self, key: u64) -> u64 {
        const PRIMES: [u64; 5] = [
            11400714785074694791,
            14029467366897019727,
            1609587929392839161,
            9650029242287828579,
            2870177450012600261,
        ];
        let [p1, p2, p3, p4, p5] = PRIMES;
        let mut h = self.seed.wrapping_add(p5).wrapping_add(8);
        h ^= key.wrapping_mul(p2).rotate_left(31).wrapping_mul(p1);
        h = h.rotate_left(27).wrapping_mul(p1).wrapping_add(p4);
        h ^= h >> 33;
        h = h.wrapping_mul(p2);
        h ^= h >> 29;
        h = h.wrapping_mul(p3);
        h ^ (h >> 32)
    }
}

const PRECISION: u32 = 9;
const REGISTERS: usize = 1 << PRECISION;

#[kernel(block_size = 128)]
fn hyperloglog_add<H: Hasher>(hasher: H, keys: &[u64], registers: &mut [u32; REGISTERS]) {
    let local = shared_array::<[u32; REGISTERS]>();
    let lane = local_id_x();
    for register in local.iter_mut().skip(lane).step_by(128) {
        *register = 0;
    }
    sync_threads();
    for key in keys.iter().skip(global_id_x()).step_by(global_size_x()) {
        let hash = hasher.hash(*key);
        let register = (hash >> (64 - PRECISION)) as usize;
        let zeros = (hash << PRECISION | 1 << (PRECISION - 1)).leading_zeros() + 1;
        atomic_max(&mut local[register], zeros);
    }
    sync_threads();
    for (i, register) in local.iter().enumerate().skip(lane).step_by(128) {
        atomic_max(&mut registers[i], *register);
    }
}

#[kernel]
fn hyperloglog_estimate(registers: &[u32; REGISTERS], estimate: &mut f32) {
    let m = REGISTERS as f32;
    let (sum, zeros) = registers.iter().fold((0.0, 0), |(sum, zeros), register| {
        (
            sum + (-(*register as f32)).exp2(),
            zeros + u32::from(*register == 0),
        )
    });
    let alpha = 0.7213 / (1.0 + 1.079 / m);
    let raw = alpha * m * m / sum;
    *estimate = if raw <= 2.5 * m && zeros > 0 {
        m * (m / zeros as f32).ln()
    } else {
        raw
    };
}

#[test]
fn hyperloglog_counts_distinct_keys() {
    let mut random = Random(152);
    for distinct in [100usize, 20_000] {
        let some: Vec<u64> = (0..distinct).map(|_| random.bits()).collect();
        let keys: Vec<u64> = (0..2 * distinct).map(|i| some[i % distinct]).collect();
        everywhere(|run| {
            let (registers, estimate) = (run.zeros::<u32>(REGISTERS), run.zeros::<f32>(1));
            let table = registers.cast::<[u32; REGISTERS]>().unwrap();
            run.launch(
                hyperloglog_add::kernel::<XxHash64>(),
                LaunchConfig::new(4, 128),
                args![XxHash64 { seed: 7 }, &run.upload(&keys), &table],
            );
            let expected: Vec<u32> = (0..REGISTERS as u64)
                .map(|register| {
                    let ranks = some.iter().map(|key| XxHash64 { seed: 7 }.hash(*key));
                    let own = ranks.filter(|hash| hash >> 55 == register);
                    own.map(|hash| (0..55).take_while(|k| hash >> (54 - k) & 1 == 0).count() as u32 + 1)
                        .max()
                        .unwrap_or(0)
                })
                .collect();
            run.holds(&registers, &expected);
            run.launch(
                hyperloglog_estimate::kernel(),
                LaunchConfig::new(1, 1),
                args![&table, &estimate],
            );
            let off = (f64::from(run.read(&estimate)[0]) / distinct as f64 - 1.0).abs();
            assert!(off < 0.15, "{off} on {}", run.place());
        });
    }
    // The reference implementation's value for a word of eight bytes.
    assert_eq!(XxHash64 { seed: 0 }.hash(0), 0x34c9_6acd_cadb_1bbb);
}

// 153: decimals of Spark

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct U256 {
    /// The lowest first.
    limbs: [u64; 4],
}

#[device]
impl U256 {
    fn product(a: u128, b: u128) -> Self {
        let halves = |x: u128| [x as u64, (x >> 64) as u64];
        let mut limbs = [0u64; 4];
        for (i, x) in halves(a).into_iter().enumerate() {
            let mut carry = 0;
            for (j, y) in halves(b).into_iter().enumerate() {
                let sum = u128::from(x) * u128::from(y) + u128::from(limbs[i + j]) + carry;
                limbs[i + j] = sum as u64;
                carry = sum >> 64;
            }
            limbs[i + 2] = carry as u64;
        }
        Self { limbs }
    }

    fn plus(mut self, mut carry: u128) -> Self {
        for limb in &mut self.limbs {
            let sum = u128::from(*limb) + (carry & u128::from(u64::MAX));
            *limb = sum as u64;
            carry = (carry >> 64) + (sum >> 64);
        }
        self
    }

    fn divided(mut self, by: u64) -> Self {
        let mut rest = 0u128;
        for limb in self.limbs.iter_mut().rev() {
            let all = rest << 64 | u128::from(*limb);
            *limb = (all / u128::from(by)) as u64;
            rest = all % u128::from(by);
        }
        self
    }

    fn narrow(self) -> Option<u128> {
        match self.limbs {
            [low, high, 0, 0] => Some(u128::from(high) << 64 | u128::from(low)),
            _ => None,
        }
    }
}

const LARGEST: u128 = 10u128.pow(38) - 1;

#[device]
fn multiply(a: i128, b: i128, digits: u32) -> Option<i128> {
    let half = 10u128.pow(digits) / 2;
    let mut product = U256::product(a.unsigned_abs(), b.unsigned_abs()).plus(half);
    let mut left = digits;
    while left > 0 {
        let step = left.min(19);
        product = product.divided(10u64.pow(step));
        left -= step;
    }
    let magnitude = product.narrow().filter(|m| *m <= LARGEST)?;
    let value = magnitude as i128;
    Some(if (a < 0) != (b < 0) { -value } else { value })
}

#[kernel]
fn multiply_decimals(digits: u32, a: &[i128], b: &[i128], products: &mut [i128], valid: &mut [bool]) {
    let id = global_id_x();
    if id >= products.len() {
        return;
    }
    let product = multiply(a[id], b[id], digits);
    products[id] = product.unwrap_or_default();
    valid[id] = product.is_some();
}

/// Digits of a product, the lowest first.
fn long_product(a: u128, b: u128) -> Vec<u32> {
    let digits = |x: u128| {
        x.to_string()
            .bytes()
            .rev()
            .map(|c| u32::from(c - b'0'))
            .collect::<Vec<_>>()
    };
    let (a, b) = (digits(a), digits(b));
    let mut out = vec![0; a.len() + b.len() + 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += x * y;
        }
    }
    for k in 0..out.len() - 1 {
        out[k + 1] += out[k] / 10;
        out[k] %= 10;
    }
    out
}

#[test]
fn decimals_round_half_up() {
    let mut random = Random(153);
    let some = |random: &mut Random| {
        let wide = i128::from(random.bits()) << 62 | i128::from(random.bits() >> 2);
        let value = wide % 10i128.pow(1 + (random.bits() % 38) as u32);
        if random.bits() % 2 == 0 { value } else { -value }
    };
    let a: Vec<i128> = (0..300).map(|_| some(&mut random)).collect();
    let b: Vec<i128> = (0..300)
        .map(|i| if i % 20 == 0 { 5 } else { some(&mut random) })
        .collect();
    for digits in [0u32, 1, 18, 25, 38] {
        let expected: Vec<Option<i128>> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| {
                let product = long_product(a.unsigned_abs(), b.unsigned_abs());
                let cut = digits as usize;
                let up = cut > 0 && product.get(cut - 1).is_some_and(|d| *d >= 5);
                let mut value = i128::from(up);
                for (k, d) in product.iter().enumerate().skip(cut).filter(|(_, d)| **d > 0) {
                    value = 10i128
                        .checked_pow((k - cut) as u32)?
                        .checked_mul(i128::from(*d))?
                        .checked_add(value)?;
                }
                (value < 10i128.pow(38)).then_some(if (*a < 0) != (*b < 0) { -value } else { value })
            })
            .collect();
        assert!(digits > 0 || expected.contains(&None));
        everywhere(|run| {
            let (products, valid) = (run.zeros::<i128>(300), run.upload(&[false; 300]));
            run.launch(
                multiply_decimals::kernel(),
                LaunchConfig::linear(300, 64),
                args![digits, &run.upload(&a), &run.upload(&b), &products, &valid],
            );
            let values: Vec<i128> = expected.iter().map(|v| v.unwrap_or(0)).collect();
            let some: Vec<bool> = expected.iter().map(Option::is_some).collect();
            run.holds(&products, &values);
            run.holds(&valid, &some);
        });
    }
}
