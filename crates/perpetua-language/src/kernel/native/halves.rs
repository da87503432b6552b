//! f16 to f32 and back without a branch, so that loops over them become vector instructions; `half`'s own ask at every number
//! what the processor can. The same bits as IEEE 754 says: rounded to nearest, ties to even; NaNs keep the upper bits of their
//! payload and become quiet.

use half::f16;

/// The number as f32, exactly.
#[inline(always)]
pub fn widen(x: f16) -> f32 {
    let bits = u32::from(x.to_bits());
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
    // Exponent and mantissa at their places, the exponent's bias the wider one.
    let normal = (magnitude << 13) + (112 << 23);
    // The exponent of infinities and NaNs is all ones in both; the first bit of the mantissa is that of quiet NaNs.
    let quiet = if magnitude > 0x7c00 { 0x0040_0000 } else { 0 };
    let special = (magnitude << 13) | 0x7f80_0000 | quiet;
    // Units of 2⁻²⁴; a number this small is exact.
    let subnormal = (magnitude as i32 as f32 * f32::from_bits(103 << 23)).to_bits();
    let wide = if magnitude < 0x0400 {
        subnormal
    } else if magnitude >= 0x7c00 {
        special
    } else {
        normal
    };
    f32::from_bits(sign | wide)
}

/// The nearest number, of two that are as near the even one.
#[inline(always)]
pub fn narrow(x: f32) -> f16 {
    let bits = x.to_bits();
    let (sign, magnitude) = ((bits >> 16) & 0x8000, bits & 0x7fff_ffff);
    // Half a unit in the last place is added, less the least bit where the place's digit is even.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0x0fff + odd) >> 13;
    // Beside 0.5 the last place is worth 2⁻²⁴: the addition rounds.
    let subnormal = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    let nan = 0x7e00 | ((magnitude >> 13) & 0x03ff);
    let narrow = if magnitude > 0x7f80_0000 {
        nan
    } else if magnitude >= 0x477f_f000 {
        // From 65520 on, infinity is as near.
        0x7c00
    } else if magnitude < 0x3880_0000 {
        subnormal
    } else {
        normal
    };
    f16::from_bits((sign | narrow) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_is_what_half_says() {
        for bits in 0..=u16::MAX {
            let x = f16::from_bits(bits);
            assert_eq!(widen(x).to_bits(), x.to_f32().to_bits(), "{bits:#06x}");
        }
    }

    #[test]
    fn f32_is_rounded_as_half_does() {
        let check = |bits: u32| {
            let x = f32::from_bits(bits);
            assert_eq!(narrow(x).to_bits(), f16::from_f32(x).to_bits(), "{bits:#010x}");
        };
        // All that lie on, or next to, a border between two f16, of both signs, and what a stride meets.
        for bits in 0..=u16::MAX {
            let at = f16::from_bits(bits).to_f32().to_bits();
            for half in [0, 0x0800, 0x1000, 0x1800] {
                for step in [u32::MAX, 0, 1] {
                    check(at.wrapping_add(half).wrapping_add(step));
                }
            }
        }
        (0..u32::MAX / 4093).for_each(|i| check(i * 4093));
    }
}
