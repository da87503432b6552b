//! Operators on integers and `bool`. Narrow results are extended again after each instruction that could leave bits
//! above the type's width.

use super::Renderer;
use super::emit::{Leaf, emit};
use crate::ir::Scalar;
use crate::ops::{BinaryOp, UnaryOp};

/// Suffix of arithmetic instructions.
pub(super) fn arithmetic(s: Scalar) -> &'static str {
    match s {
        Scalar::I64 => "s64",
        Scalar::U64 => "u64",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
        _ if s.is_signed_int() => "s32",
        _ => "u32",
    }
}

/// Suffix of instructions on bits.
pub(super) fn bits(s: Scalar) -> &'static str {
    match s {
        Scalar::Bool => "pred",
        _ if s.size() == 8 => "b64",
        _ => "b32",
    }
}

/// Of which power of two an unsigned divisor is, where it is one.
fn power_of_two(s: Scalar, divisor: Leaf) -> Option<u32> {
    match divisor {
        Leaf::Imm(n) if !s.is_signed_int() && n.is_power_of_two() => Some(n.trailing_zeros()),
        _ => None,
    }
}

impl Renderer<'_> {
    /// A register that holds `a`.
    pub(super) fn in_register(&mut self, a: Leaf, s: Scalar) -> Leaf {
        match a {
            Leaf::Imm(value) => {
                let d = self.out.register(s);
                if s == Scalar::Bool {
                    emit!(self, "mov.pred {d}, {value}");
                } else {
                    emit!(self, "mov.{} {d}, {}", bits(s), a.at(s));
                }
                d
            }
            _ => a,
        }
    }

    /// `stem d, a` with operands and result of type `s`.
    pub(super) fn two(&mut self, stem: &str, s: Scalar, a: Leaf) -> Leaf {
        let a = self.in_register(a, s);
        let d = self.out.register(s);
        emit!(self, "{stem} {d}, {a}");
        d
    }

    /// `stem d, a, b` with operands and result of type `s`.
    pub(super) fn three(&mut self, stem: &str, s: Scalar, a: Leaf, b: Leaf) -> Leaf {
        let (a, b) = self.not_both_constant(a, b, s);
        let d = self.out.register(s);
        emit!(self, "{stem} {d}, {}, {}", a.at(s), b.at(s));
        d
    }

    /// `stem` on 32-bit words.
    pub(super) fn words(&mut self, stem: &str, a: Leaf, b: impl Into<u64>) -> Leaf {
        self.three(stem, Scalar::U32, a, Leaf::Imm(b.into()))
    }

    fn not_both_constant(&mut self, a: Leaf, b: Leaf, s: Scalar) -> (Leaf, Leaf) {
        match (a, b) {
            (_, Leaf::Imm(_)) | (Leaf::Imm(_), _) if s == Scalar::Bool => {
                (self.in_register(a, s), self.in_register(b, s))
            }
            (Leaf::Imm(_), Leaf::Imm(_)) => (self.in_register(a, s), b),
            _ => (a, b),
        }
    }

    /// `setp.test.ty p, a, b`.
    pub(super) fn compare(&mut self, test: &str, ty: &str, s: Scalar, a: Leaf, b: Leaf) -> Leaf {
        let (a, b) = self.not_both_constant(a, b, s);
        let p = self.out.pred();
        emit!(self, "setp.{test}.{ty} {p}, {}, {}", a.at(s), b.at(s));
        p
    }

    /// `p ? a : b`.
    pub(super) fn choose(&mut self, p: Leaf, s: Scalar, a: Leaf, b: Leaf) -> Leaf {
        match p {
            Leaf::Imm(0) => return b,
            Leaf::Imm(_) => return a,
            _ => {}
        }
        if s == Scalar::Bool {
            let (a, b) = (self.in_register(a, s), self.in_register(b, s));
            let (x, n, y, d) = (self.out.pred(), self.out.pred(), self.out.pred(), self.out.pred());
            emit!(self, "and.pred {x}, {p}, {a}");
            emit!(self, "not.pred {n}, {p}");
            emit!(self, "and.pred {y}, {n}, {b}");
            emit!(self, "or.pred {d}, {x}, {y}");
            return d;
        }
        let d = self.out.register(s);
        emit!(self, "selp.{} {d}, {}, {}, {p}", bits(s), a.at(s), b.at(s));
        d
    }

    /// Extends the low bits of a word by a narrow type's rule; other types stay as they are.
    pub(super) fn extended(&mut self, s: Scalar, a: Leaf) -> Leaf {
        match s {
            Scalar::I8 => self.two("cvt.s32.s8", s, a),
            Scalar::I16 => self.two("cvt.s32.s16", s, a),
            Scalar::U8 => self.words("and.b32", a, 0xffu32),
            Scalar::U16 | Scalar::F16 | Scalar::BF16 => self.words("and.b32", a, 0xffffu32),
            _ => a,
        }
    }

    /// The bits of an integer without sign extension.
    pub(super) fn zero_extended(&mut self, s: Scalar, a: Leaf) -> Leaf {
        match s {
            Scalar::I8 | Scalar::I16 => self.extended(s.to_unsigned(), a),
            _ => a,
        }
    }

    pub(super) fn integer_unary(&mut self, op: UnaryOp, s: Scalar, a: Leaf) -> Leaf {
        let a = self.in_register(a, s);
        let (ty, width) = (arithmetic(s), s.bits());
        let wide = width == 64;
        match op {
            UnaryOp::Not if s == Scalar::Bool => self.two("not.pred", s, a),
            UnaryOp::Not => {
                let d = self.two(if wide { "not.b64" } else { "not.b32" }, s, a);
                if s.is_signed_int() { d } else { self.extended(s, d) }
            }
            UnaryOp::Neg => {
                let d = self.two(&format!("neg.{ty}"), s, a);
                self.extended(s, d)
            }
            UnaryOp::Abs => {
                // The larger of x and -x; both are MIN at MIN.
                let n = self.two(&format!("neg.{ty}"), s, a);
                let n = self.extended(s, n);
                self.three(&format!("max.{ty}"), s, a, n)
            }
            UnaryOp::Signum => {
                let d = self.three(&format!("min.{ty}"), s, a, Leaf::Imm(1));
                let minus_one = Leaf::Imm(u64::MAX >> if wide { 0 } else { 32 });
                self.three(&format!("max.{ty}"), s, d, minus_one)
            }
            UnaryOp::CountOnes => {
                let a = self.zero_extended(s, a);
                self.count(if wide { "popc.b64" } else { "popc.b32" }, a)
            }
            UnaryOp::LeadingZeros => {
                let a = self.zero_extended(s, a);
                let n = self.count(if wide { "clz.b64" } else { "clz.b32" }, a);
                if width < 32 {
                    self.words("sub.u32", n, 32 - width)
                } else {
                    n
                }
            }
            UnaryOp::TrailingZeros => {
                // A bit above a narrow type's width stops the count there.
                let a = if width < 32 {
                    self.words("or.b32", a, 1u32 << width)
                } else {
                    a
                };
                let r = self.two(if wide { "brev.b64" } else { "brev.b32" }, s, a);
                self.count(if wide { "clz.b64" } else { "clz.b32" }, r)
            }
            UnaryOp::ReverseBits => {
                let r = self.two(if wide { "brev.b64" } else { "brev.b32" }, s, a);
                if width < 32 {
                    let d = self.words("shr.u32", r, 32 - width);
                    if s.is_signed_int() { self.extended(s, d) } else { d }
                } else {
                    r
                }
            }
            UnaryOp::SwapBytes => match width {
                8 => a,
                16 => {
                    let d = self.swapped(a, 0x4401);
                    if s.is_signed_int() { self.extended(s, d) } else { d }
                }
                32 => self.swapped(a, 0x0123),
                _ => {
                    let (low, high) = self.halves(a);
                    let (low, high) = (self.swapped(low, 0x0123), self.swapped(high, 0x0123));
                    self.joined(high, low)
                }
            },
            // The verifier admits no other operator on integers.
            _ => a,
        }
    }

    fn count(&mut self, stem: &str, a: Leaf) -> Leaf {
        let d = self.out.word();
        emit!(self, "{stem} {d}, {a}");
        d
    }

    fn swapped(&mut self, a: Leaf, selector: u32) -> Leaf {
        let d = self.out.word();
        emit!(self, "prmt.b32 {d}, {a}, 0, {selector}");
        d
    }

    /// The low and high words of a 64-bit register.
    pub(super) fn halves(&mut self, a: Leaf) -> (Leaf, Leaf) {
        let a = self.in_register(a, Scalar::U64);
        let (low, high) = (self.out.word(), self.out.word());
        emit!(self, "mov.b64 {{{low}, {high}}}, {a}");
        (low, high)
    }

    /// A 64-bit register of two words.
    pub(super) fn joined(&mut self, low: Leaf, high: Leaf) -> Leaf {
        let d = self.out.wide();
        emit!(self, "mov.b64 {d}, {{{low}, {high}}}");
        d
    }

    /// An operator of two operands; `amount` is the second one's type where it is a shift amount.
    pub(super) fn integer_binary(
        &mut self,
        op: BinaryOp,
        s: Scalar,
        a: Leaf,
        b: Leaf,
        amount: Scalar,
    ) -> Leaf {
        let (ty, bit) = (arithmetic(s), bits(s));
        let plain = |stem: &str| format!("{stem}.{ty}");
        match op {
            BinaryOp::Add | BinaryOp::Sub => {
                let d = self.three(&plain(op.row().ptx), s, a, b);
                let known = match (op, a, b) {
                    (BinaryOp::Add, of, Leaf::Imm(n)) | (BinaryOp::Add, Leaf::Imm(n), of) => {
                        Some((of, n as i64))
                    }
                    (_, of, Leaf::Imm(n)) => Some((of, (n as i64).wrapping_neg())),
                    _ => None,
                };
                if s.size() == 8
                    && let Some(sum) = known
                {
                    self.sums.insert(d, sum);
                }
                self.extended(s, d)
            }
            BinaryOp::Mul => {
                let d = self.three(&plain("mul.lo"), s, a, b);
                self.extended(s, d)
            }
            // The assembler divides by any constant as by a number that it does not know.
            BinaryOp::Div if let Some(power) = power_of_two(s, b) => {
                self.shift(BinaryOp::Shr, s, a, Leaf::Imm(power.into()), Scalar::U32)
            }
            BinaryOp::Rem if let Some(power) = power_of_two(s, b) => {
                self.three(&format!("and.{bit}"), s, a, Leaf::Imm((1 << power) - 1))
            }
            BinaryOp::Div | BinaryOp::Rem if s == Scalar::U64 => self.wide_quotient(op.row().ptx, a, b),
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Min | BinaryOp::Max => {
                self.three(&plain(op.row().ptx), s, a, b)
            }
            // The assembler packs numbers of 16 bits as it rounds them if they are written as halves of a word, and else rounds them a quarter as fast.
            BinaryOp::Or if let Some([low, high]) = self.two_halves(s, a, b) => {
                let d = self.out.word();
                emit!(self, "mov.b32 {d}, {{%h{low}, %h{high}}}");
                d
            }
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                self.three(&format!("{}.{bit}", op.row().ptx), s, a, b)
            }
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::RotateLeft | BinaryOp::RotateRight => {
                self.shift(op, s, a, b, amount)
            }
            BinaryOp::Eq | BinaryOp::Ne if s == Scalar::Bool => {
                let d = self.three("xor.pred", s, a, b);
                if op == BinaryOp::Ne {
                    d
                } else {
                    self.two("not.pred", s, d)
                }
            }
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                self.compare(op.row().ptx, ty, s, a, b)
            }
            BinaryOp::MulHigh if s.size() >= 4 => self.three(&plain("mul.hi"), s, a, b),
            BinaryOp::MulHigh => {
                // The product of two narrow integers fits a word.
                let d = self.three(&plain("mul.lo"), s, a, b);
                self.words(&plain("shr"), d, s.bits())
            }
            BinaryOp::SaturatingAdd | BinaryOp::SaturatingSub => self.saturating(op, s, a, b),
            BinaryOp::AbsDiff => {
                let most = self.three(&plain("max"), s, a, b);
                let least = self.three(&plain("min"), s, a, b);
                self.three(&plain("sub"), s, most, least)
            }
            // The verifier admits no other operator on integers.
            _ => a,
        }
    }

    /// The low bits of a shift amount, as a word below `width`.
    fn amount(&mut self, b: Leaf, from: Scalar, width: u32) -> Leaf {
        if let Leaf::Imm(n) = b {
            return Leaf::Imm(n & u64::from(width - 1));
        }
        let word = if from.size() == 8 {
            let d = self.out.word();
            emit!(self, "cvt.u32.u64 {d}, {b}");
            d
        } else {
            b
        };
        self.words("and.b32", word, width - 1)
    }

    /// A quotient or remainder of 64 bits, of numbers that seldom have more than 32: of these it takes a quarter of the time.
    fn wide_quotient(&mut self, stem: &str, a: Leaf, b: Leaf) -> Leaf {
        let word = |this: &Self, leaf: Leaf| match (leaf, this.widened_words.get(&leaf)) {
            (Leaf::Imm(n), _) => u32::try_from(n).ok().map(|n| Leaf::Imm(n.into())),
            (_, Some((word, false))) => Some(*word),
            _ => None,
        };
        let words = (word(self, a), word(self, b));
        if let (Some(a), Some(b)) = words {
            let (a, quotient) = (self.in_register(a, Scalar::U32), self.out.word());
            emit!(self, "{stem}.u32 {quotient}, {a}, {b}");
            return self.integer_cast(Scalar::U32, Scalar::U64, quotient);
        }
        let (a, b) = (self.in_register(a, Scalar::U64), self.in_register(b, Scalar::U64));
        let bits = match words {
            (Some(_), _) => b,
            (_, Some(_)) => a,
            _ => self.three("or.b64", Scalar::U64, a, b),
        };
        let (d, long) = (self.out.wide(), self.out.pred());
        let (slow, done) = (self.out.label(), self.out.label());
        emit!(self, "setp.gt.u64 {long}, {bits}, {}", u32::MAX);
        emit!(self, "@{long} bra {slow}");
        let [short_a, short_b, quotient] = [(); 3].map(|()| self.out.word());
        emit!(self, "cvt.u32.u64 {short_a}, {a}");
        emit!(self, "cvt.u32.u64 {short_b}, {b}");
        emit!(self, "{stem}.u32 {quotient}, {short_a}, {short_b}");
        emit!(self, "cvt.u64.u32 {d}, {quotient}");
        let hot = self.out.begin_cold();
        self.out.place(slow);
        emit!(self, "{stem}.u64 {d}, {a}, {b}");
        emit!(self, "bra {done}");
        self.out.end_cold(hot);
        self.out.place(done);
        d
    }

    /// The half registers whose bits are the lower and the upper ones of a word, where these are joined.
    fn two_halves(&self, s: Scalar, a: Leaf, b: Leaf) -> Option<[u32; 2]> {
        match (self.halves.get(&a)?, self.halves.get(&b)?) {
            _ if s.size() != 4 => None,
            ((low, false), (high, true)) | ((high, true), (low, false)) => Some([*low, *high]),
            _ => None,
        }
    }

    fn shift(&mut self, op: BinaryOp, s: Scalar, a: Leaf, b: Leaf, amount: Scalar) -> Leaf {
        let width = s.bits();
        let n = self.amount(b, amount, width);
        let a = self.in_register(a, s);
        let by = |this: &mut Self, stem: &str, a: Leaf, n: Leaf| {
            let d = this.out.register(s);
            emit!(this, "{stem} {d}, {a}, {n}");
            d
        };
        match op {
            BinaryOp::Shl => {
                let d = by(self, if width == 64 { "shl.b64" } else { "shl.b32" }, a, n);
                if let (32, Leaf::Imm(16), Some((h, false))) = (width, n, self.halves.get(&a).copied()) {
                    self.halves.insert(d, (h, true));
                }
                self.extended(s, d)
            }
            BinaryOp::Shr => by(self, &format!("shr.{}", arithmetic(s)), a, n),
            _ if width == 32 => {
                let stem = if op == BinaryOp::RotateLeft {
                    "shf.l.wrap.b32"
                } else {
                    "shf.r.wrap.b32"
                };
                let d = self.out.word();
                emit!(self, "{stem} {d}, {a}, {a}, {n}");
                d
            }
            _ => {
                // Both shifts of the bits without sign; the opposite amount is the width less n, 0 for n = 0.
                let opposite = match n {
                    Leaf::Imm(n) => Leaf::Imm((u64::from(width) - n) & u64::from(width - 1)),
                    n => {
                        let d = self.three("sub.u32", Scalar::U32, Leaf::Imm(width.into()), n);
                        self.words("and.b32", d, width - 1)
                    }
                };
                let u = self.zero_extended(s, a);
                let (left, right) = if op == BinaryOp::RotateLeft {
                    (n, opposite)
                } else {
                    (opposite, n)
                };
                let bit = bits(s);
                let high = by(self, &format!("shl.{bit}"), u, left);
                let low = by(self, &format!("shr.{}", arithmetic(s.to_unsigned())), u, right);
                let d = self.three(&format!("or.{bit}"), s, high, low);
                self.extended(s, d)
            }
        }
    }

    fn saturating(&mut self, op: BinaryOp, s: Scalar, a: Leaf, b: Leaf) -> Leaf {
        let add = op == BinaryOp::SaturatingAdd;
        let stem = if add { "add" } else { "sub" };
        let width = s.bits();
        match s {
            Scalar::I32 => self.three(&format!("{stem}.sat.s32"), s, a, b),
            Scalar::I64 => {
                // Overflow shows in the sign of (a ^ r) & (b ^ r), for differences (a ^ b) & (a ^ r); the bound is
                // MAX for a >= 0, MIN below.
                let a = self.in_register(a, s);
                let r = self.three(&format!("{stem}.s64"), s, a, b);
                let x = self.three("xor.b64", s, a, r);
                let other = if add { r } else { a };
                let y = self.three("xor.b64", s, other, b);
                let over = self.three("and.b64", s, x, y);
                let p = self.compare("lt", "s64", s, over, Leaf::Imm(0));
                let sign = self.out.wide();
                emit!(self, "shr.s64 {sign}, {a}, 63");
                let bound = self.three("xor.b64", s, sign, Leaf::Imm(i64::MAX as u64));
                self.choose(p, s, bound, r)
            }
            Scalar::U32 | Scalar::U64 if add => {
                let ty = arithmetic(s);
                let a = self.in_register(a, s);
                let r = self.three(&format!("add.{ty}"), s, a, b);
                let p = self.compare("lt", ty, s, r, a);
                self.choose(p, s, Leaf::Imm(u64::MAX >> (64 - width)), r)
            }
            _ if s.is_unsigned_int() && !add => {
                // max(a, b) - b.
                let ty = arithmetic(s);
                let most = self.three(&format!("max.{ty}"), s, a, b);
                self.three(&format!("sub.{ty}"), s, most, b)
            }
            _ => {
                // Narrow: exact in a word, then clamped.
                let r = self.three(&format!("{stem}.s32"), s, a, b);
                let (least, most) = if s.is_signed_int() {
                    (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1)
                } else {
                    (0, (1i64 << width) - 1)
                };
                self.clamped_word(r, least, most)
            }
        }
    }

    /// A signed word limited to a range.
    pub(super) fn clamped_word(&mut self, a: Leaf, least: i64, most: i64) -> Leaf {
        let bound = |v: i64| Leaf::Imm(u64::from(v as u32));
        let d = self.three("max.s32", Scalar::I32, a, bound(least));
        self.three("min.s32", Scalar::I32, d, bound(most))
    }
}
