//! Floats of one byte by their definition. Must not know tensors.

/// How a float of one byte is made, as the Open Compute Project's "8-bit Floating Point Specification" (revision 1.0) has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteFloat {
    /// Bits for digits behind the point.
    pub(crate) digits: u32,
    /// What exponents have been raised by.
    pub(crate) bias: u32,
    /// What stands for all that is greater than the greatest number, but for the sign: no number, or infinity.
    pub(crate) beyond: u8,
}

/// The bits of the sign, and of a NaN without it.
pub(crate) const SIGN: u8 = 0x80;
pub(crate) const NAN: u8 = 0x7f;

/// Four bits for the exponent, no infinities.
pub(crate) const E4M3: ByteFloat = ByteFloat {
    digits: 3,
    bias: 7,
    beyond: NAN,
};

/// Five bits for the exponent.
pub(crate) const E5M2: ByteFloat = ByteFloat {
    digits: 2,
    bias: 15,
    beyond: 0x7c,
};

impl ByteFloat {
    /// The distance of two numbers below the least normal one.
    pub(crate) fn unit(&self) -> f64 {
        0.5f64.powi((self.bias - 1 + self.digits) as i32)
    }

    // Without a sign, and as if there was nothing beyond the greatest number.
    fn size(&self, bits: u8) -> f64 {
        let (exponent, digits) = (bits >> self.digits, bits & ((1 << self.digits) - 1));
        let (whole, exponent) = match exponent {
            0 => (digits, 0),
            normal => (digits | 1 << self.digits, normal - 1),
        };
        f64::from(whole) * self.unit() * 2f64.powi(exponent.into())
    }

    /// The number.
    pub(crate) fn value(&self, bits: u8) -> f64 {
        let size = match bits & !SIGN {
            bits if bits < self.beyond => self.size(bits),
            bits if bits == self.beyond && bits != NAN => f64::INFINITY,
            _ => f64::NAN,
        };
        if bits & SIGN == 0 { size } else { -size }
    }

    /// The nearest number's bits, of two the even one.
    pub(crate) fn nearest(&self, value: f64) -> u8 {
        let size = value.abs();
        let is_below = |bits: &u8| {
            let middle = (self.size(*bits) + self.size(bits + 1)) / 2.0;
            middle < size || middle == size && bits % 2 == 1
        };
        let bits = match size.is_nan() {
            true => NAN,
            false => (0..self.beyond).take_while(is_below).count() as u8,
        };
        if value.is_sign_negative() {
            bits | SIGN
        } else {
            bits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_specification() {
        let check = |float: ByteFloat, bits: u8, value: f64| {
            assert_eq!(float.value(bits), value, "{float:?} {bits:#x}");
            assert_eq!(float.nearest(value), bits, "{float:?} {value}");
        };
        // Its tables 1 and 2.
        check(E4M3, 0x7e, 448.0);
        check(E4M3, 0x08, 2f64.powi(-6));
        check(E4M3, 0x07, 0.875 * 2f64.powi(-6));
        check(E4M3, 0x81, -(2f64.powi(-9)));
        check(E4M3, 0x80, -0.0);
        check(E5M2, 0x7b, 57344.0);
        check(E5M2, 0x04, 2f64.powi(-14));
        check(E5M2, 0x03, 0.75 * 2f64.powi(-14));
        check(E5M2, 0x01, 2f64.powi(-16));
        check(E5M2, 0xfc, f64::NEG_INFINITY);
        assert!(E4M3.value(0x7f).is_nan() && E4M3.value(0xff).is_nan());
        assert!((0x7d..=0x7f).all(|bits| E5M2.value(bits).is_nan()));
        // In the middle the even one; beyond it what there is.
        assert_eq!([464.0, 464.1, -1e9].map(|x| E4M3.nearest(x)), [0x7e, 0x7f, 0xff]);
        assert_eq!(
            [61439.0, 61440.0, f64::INFINITY].map(|x| E5M2.nearest(x)),
            [0x7b, 0x7c, 0x7c]
        );
        assert_eq!([1.0625, 1.1875].map(|x| E4M3.nearest(x)), [0x38, 0x3a]);
    }
}
