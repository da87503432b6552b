//! Floats of one byte, in which products are multiplied fastest. Must not know the kernels.

use std::fmt;

use perpetua::prelude::*;

/// A float of one byte: four bits for the exponent, three for digits. Numbers go up to 448; there are no infinities, and `0x7f` and `0xff` are not a number.
#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
pub struct E4m3 {
    /// The byte.
    pub bits: u8,
}

/// A float of one byte: five bits for the exponent, two for digits. It is the upper half of an `f16`.
#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
pub struct E5m2 {
    /// The byte.
    pub bits: u8,
}

/// The nearest number with so many bits for digits, of whose exponent so much is subtracted, as bits without a sign: `bits` are those of an `f32` without its sign.
/// Among numbers below the least normal one, `unit` has the distance of two as that of two `f32`.
#[device]
fn nearest(bits: u32, digits: u32, less: u32, unit: f32) -> u32 {
    let dropped = 23 - digits;
    let rounded = (bits + (1 << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped;
    let least = (less + 1) << 23;
    if bits < least {
        (f32::from_bits(bits) + unit).to_bits() - unit.to_bits()
    } else {
        rounded - (less << digits)
    }
}

#[device]
impl E4m3 {
    /// The nearest such number, of two the one that is even; 448 for all that are greater, infinity among them.
    pub fn from_f32(x: f32) -> E4m3 {
        let (sign, size) = ((x.to_bits() >> 24) & 0x80, x.to_bits() & 0x7fff_ffff);
        let bits = if size > 0x7f80_0000 {
            0x7f
        } else if size >= 0x43e0_0000 {
            0x7e
        } else {
            nearest(size, 3, 120, 16384.0)
        };
        E4m3 {
            bits: (sign | bits) as u8,
        }
    }

    /// The number.
    pub fn to_f32(self) -> f32 {
        let (sign, rest) = ((self.bits as u32 & 0x80) << 24, self.bits as u32 & 0x7f);
        if rest == 0x7f {
            f32::from_bits(sign | 0x7fc0_0000)
        } else if rest < 8 {
            f32::from_bits(sign | (rest as f32 / 512.0).to_bits())
        } else {
            f32::from_bits(sign | ((rest + (120 << 3)) << 20))
        }
    }
}

#[device]
impl E5m2 {
    /// The nearest such number, of two the one that is even; infinity from 61440 on.
    pub fn from_f32(x: f32) -> E5m2 {
        let (sign, size) = ((x.to_bits() >> 24) & 0x80, x.to_bits() & 0x7fff_ffff);
        let bits = if size > 0x7f80_0000 {
            0x7f
        } else if size >= 0x4780_0000 {
            0x7c
        } else {
            nearest(size, 2, 112, 128.0)
        };
        E5m2 {
            bits: (sign | bits) as u8,
        }
    }

    /// The number.
    pub fn to_f32(self) -> f32 {
        let (sign, rest) = ((self.bits as u32 & 0x80) << 24, self.bits as u32 & 0x7f);
        if rest >= 0x7c {
            f32::from_bits(sign | 0x7f80_0000 | (rest & 3) << 21)
        } else if rest < 4 {
            f32::from_bits(sign | (rest as f32 / 65536.0).to_bits())
        } else {
            f32::from_bits(sign | ((rest + (112 << 2)) << 21))
        }
    }
}

impl fmt::Debug for E4m3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f32(), f)
    }
}

impl fmt::Debug for E5m2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f32(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::{E4m3, E5m2};

    /// All numbers of a type, those without a sign in order.
    fn check(name: &str, most: f32, beyond: f32, of: fn(f32) -> u8, to: fn(u8) -> f32) {
        for bits in 0..=255u8 {
            let x = to(bits);
            if x.is_nan() {
                assert!(to(of(x)).is_nan(), "{name} {bits:#x}");
                continue;
            }
            assert_eq!(of(x), bits, "{name} of {x}");
            assert_eq!(to(bits ^ 0x80), -x, "{name} {bits:#x}");
            let next = to(bits.wrapping_add(1));
            if bits < 0x7f && next.is_finite() && x < most {
                assert!(next > x, "{name} {bits:#x}");
                // Between two numbers the nearer one, in the middle the even one.
                let middle = (x + next) / 2.0;
                assert_eq!(of(middle), bits + bits % 2, "{name} of {middle}");
                assert_eq!(of(f32::from_bits(middle.to_bits() - 1)), bits, "{name}");
                assert_eq!(of(f32::from_bits(middle.to_bits() + 1)), bits + 1, "{name}");
            }
        }
        for x in [most * 2.0, f32::MAX, f32::INFINITY] {
            assert_eq!((to(of(x)), to(of(-x))), (beyond, -beyond), "{name} of {x}");
        }
        assert_eq!(of(1e-30), 0, "{name}");
    }

    #[test]
    fn every_number_and_what_lies_between() {
        check(
            "E4m3",
            448.0,
            448.0,
            |x| E4m3::from_f32(x).bits,
            |bits| E4m3 { bits }.to_f32(),
        );
        check(
            "E5m2",
            57344.0,
            f32::INFINITY,
            |x| E5m2::from_f32(x).bits,
            |bits| E5m2 { bits }.to_f32(),
        );
        assert_eq!(E5m2::from_f32(61439.0).to_f32(), 57344.0);
        assert_eq!(E4m3 { bits: 0x38 }.to_f32(), 1.0);
    }
}
