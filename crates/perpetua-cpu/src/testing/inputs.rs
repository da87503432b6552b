//! Values to feed kernels: the edges of every type, and random bytes between them.

use super::choices::Random;
use perpetua_ir::ir::{Scalar, Type};

/// Values of a type at which operators tend to go wrong, as bits; the first is zero.
pub fn edge_values(s: Scalar) -> Vec<u64> {
    let bits = s.bits();
    if s == Scalar::Bool {
        return vec![0, 1];
    }
    let mask = u64::MAX >> (64 - bits);
    let top = 1u64 << (bits - 1);
    if s.is_int() {
        let mut all = vec![
            0,
            1,
            2,
            3,
            5,
            7,
            10,
            bits as u64 - 1,
            bits as u64,
            bits as u64 + 1,
        ];
        all.extend([top - 1, top, top + 1, mask, mask - 1, mask - 2]);
        all.extend([0x5555_5555_5555_5555 & mask, 0x0123_4567_89ab_cdef & mask]);
        // Just above the middle of two neighbours in bf16, from which rounding to f32 takes it away.
        all.push((1u64 << (bits - 2) | 1 << (bits.max(10) - 10) | 1) & mask);
        return all;
    }
    let mantissa: u32 = match s {
        Scalar::F16 => 10,
        Scalar::BF16 => 7,
        Scalar::F32 => 23,
        _ => 52,
    };
    let infinity = top - (1u64 << mantissa);
    let one = ((infinity >> mantissa) / 2) << mantissa;
    let positive = [
        0,
        one,
        one + (1u64 << mantissa),                      // 2
        one - (1u64 << mantissa),                      // 0.5
        one + (1u64 << (mantissa - 1)),                // 1.5
        one + 1,                                       // just above 1
        one - 1,                                       // just below 1
        one + (5 << mantissa) + (9 << (mantissa - 4)), // 50
        one + ((u64::from(mantissa) + 1) << mantissa), // the first integer with a gap after it
        1,                                             // smallest subnormal
        (1u64 << mantissa) - 1,                        // largest subnormal
        1u64 << mantissa,                              // smallest normal
        infinity - 1,                                  // largest finite
        infinity,
        // Just above the middle of two neighbours in f16 and in bf16, from which rounding to f32 takes it away.
        one + (1u64 << mantissa.saturating_sub(11)) + 1,
        one + (1u64 << mantissa.saturating_sub(8)) + 1,
    ];
    let nan = infinity | 1 << (mantissa - 1);
    // Where integers of 32 and 64 bits end, for casts: 2^31, 2^32, 2^63, 2^64, and the numbers just below.
    let ends = [31u64, 32, 63, 64]
        .map(|power| one + (power << mantissa))
        .into_iter()
        .filter(|end| *end < infinity)
        .flat_map(|end| [end, end - 1]);
    let positive: Vec<u64> = positive.into_iter().chain(ends).collect();
    let negative = positive.iter().map(|v| v | top);
    positive.iter().copied().chain(negative).chain([nan]).collect()
}

/// A random value: an edge, something small, or any bits.
fn random_scalar(s: Scalar, random: &mut Random) -> u64 {
    let r = random.bits();
    let edges = edge_values(s);
    let mask = if s.bits() == 64 {
        u64::MAX
    } else {
        (1 << s.bits()) - 1
    };
    match r & 3 {
        0 => edges.get((r >> 8) as usize % edges.len()).copied().unwrap_or(0),
        1 if s.is_int() => r >> 40 & 15,
        1 | 2 if s.is_float() => {
            // A moderate number, so that sums and products do not all overflow: 1 to 2, a few steps apart.
            let v = ((r >> 8 & 0xfff) as f64 - 2048.0) / 64.0;
            perpetua_ir::ops::eval::eval_cast(Scalar::F64, s, v.to_bits())
        }
        _ => r >> 3 & mask,
    }
}

/// Bytes of `count` random values of a type, laid out as in memory; padding is zero.
pub fn random_bytes(ty: &Type, count: usize, random: &mut Random) -> Vec<u8> {
    let size = ty.size() as usize;
    let leaves = ty.leaves();
    let mut bytes = vec![0; size * count];
    for element in bytes.chunks_exact_mut(size.max(1)) {
        for (s, offset) in &leaves {
            let value = random_scalar(*s, random).to_le_bytes();
            let at = *offset as usize;
            for (to, from) in element
                .iter_mut()
                .skip(at)
                .zip(value.iter().take(s.size() as usize))
            {
                *to = *from;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_fit_and_are_what_they_claim() {
        for s in Scalar::ALL {
            for bits in edge_values(s) {
                assert!(s.bits() == 64 || bits >> s.bits() == 0, "{s} {bits:#x}");
            }
        }
        let f32s: Vec<f32> = edge_values(Scalar::F32)
            .iter()
            .map(|b| f32::from_bits(*b as u32))
            .collect();
        assert_eq!(f32s[..5], [0.0, 1.0, 2.0, 0.5, 1.5]);
        assert_eq!(f32s[7..9], [50.0, 16_777_216.0]);
        assert_eq!(f32s[11..14], [f32::MIN_POSITIVE, f32::MAX, f32::INFINITY]);
        assert!(f32s.last().is_some_and(|v| v.is_nan()));
    }
}
