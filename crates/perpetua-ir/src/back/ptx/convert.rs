//! Casts and bit casts, and the way of f16 and bf16 to f32 and back.

use super::Renderer;
use super::emit::{Leaf, emit};
use super::integer::arithmetic;
use crate::ir::Scalar;

impl Renderer<'_> {
    /// An f16 or bf16 as f32; exact.
    pub(super) fn widened(&mut self, s: Scalar, a: Leaf) -> Leaf {
        let a = self.in_register(a, s);
        let d = self.out.word();
        if s == Scalar::BF16 {
            emit!(self, "shl.b32 {d}, {a}, 16");
        } else {
            let h = self.out.half();
            emit!(self, "cvt.u16.u32 %h{h}, {a}");
            emit!(self, "cvt.f32.f16 {d}, %h{h}");
        }
        d
    }

    /// An f32 rounded to f16 or bf16.
    pub(super) fn rounded(&mut self, s: Scalar, a: Leaf) -> Leaf {
        let a = self.in_register(a, Scalar::F32);
        if s == Scalar::BF16 && self.sm.number < 80 {
            // Half of the last place, or just under it for an even result, carries into the upper half.
            let nan = self.compare("nan", "f32", Scalar::F32, a, a);
            let last = self.words("shr.u32", a, 16u32);
            let last = self.words("and.b32", last, 1u32);
            let half = self.words("add.u32", last, 0x7fffu32);
            let sum = self.three("add.u32", Scalar::U32, half, a);
            let upper = self.words("shr.u32", sum, 16u32);
            return self.choose(nan, Scalar::U32, Leaf::Imm(0x7fc0), upper);
        }
        let ty = if s == Scalar::BF16 { "bf16" } else { "f16" };
        self.through_half(&format!("cvt.rn.{ty}.f32"), a)
    }

    /// `stem %h, a`, as a word.
    fn through_half(&mut self, stem: &str, a: Leaf) -> Leaf {
        let h = self.out.half();
        let d = self.out.word();
        emit!(self, "{stem} %h{h}, {a}");
        emit!(self, "cvt.u32.u16 {d}, %h{h}");
        self.halves.insert(d, (h, false));
        d
    }

    /// The same bits at another type of the same width.
    pub(super) fn bit_cast(&mut self, from: Scalar, to: Scalar, a: Leaf) -> Leaf {
        if from == to || from.size() >= 4 || from == Scalar::Bool {
            return a;
        }
        match a {
            Leaf::Imm(v) => Leaf::Imm(normal(to, v & (u64::MAX >> (64 - to.bits())))),
            _ if from.is_signed_int() == to.is_signed_int() => a,
            _ => self.extended(to, a),
        }
    }

    /// Rust's `as`.
    pub(super) fn cast(&mut self, from: Scalar, to: Scalar, a: Leaf) -> Leaf {
        if from == to {
            return a;
        }
        match (from.is_float(), to.is_float()) {
            (false, false) => self.integer_cast(from, to, a),
            (false, true) => self.integer_to_float(from, to, a),
            (true, false) => self.float_to_integer(from, to, a),
            (true, true) => self.float_cast(from, to, a),
        }
    }

    pub(super) fn integer_cast(&mut self, from: Scalar, to: Scalar, a: Leaf) -> Leaf {
        if let Leaf::Imm(v) = a {
            let v = if from.is_signed_int() && from.size() < 8 {
                v as u32 as i32 as i64 as u64
            } else {
                v
            };
            return Leaf::Imm(normal(to, v));
        }
        if from == Scalar::Bool {
            return self.choose(a, to, Leaf::Imm(1), Leaf::Imm(0));
        }
        match (from.size() == 8, to.size() == 8) {
            (false, true) => {
                let d = self.out.wide();
                let signed = from.is_signed_int();
                if signed {
                    emit!(self, "cvt.s64.s32 {d}, {a}");
                } else {
                    emit!(self, "cvt.u64.u32 {d}, {a}");
                }
                self.widened_words.insert(d, (a, signed));
                d
            }
            (true, false) => {
                let d = self.out.word();
                emit!(self, "cvt.u32.u64 {d}, {a}");
                self.extended(to, d)
            }
            (true, true) => a,
            (false, false) => {
                let fits = to.size() == 4
                    || from.is_unsigned_int() && (to.size() > from.size() || to == from)
                    || from.is_signed_int() && to.is_signed_int() && to.size() > from.size();
                if fits { a } else { self.extended(to, a) }
            }
        }
    }

    fn integer_to_float(&mut self, from: Scalar, to: Scalar, a: Leaf) -> Leaf {
        let a = self.in_register(a, from);
        let ty = arithmetic(from);
        match to {
            // What f32 would round is infinite in f16.
            Scalar::F16 => self.through_half(&format!("cvt.rn.f16.{ty}"), a),
            // By way of f32, as everywhere: wide integers are rounded twice.
            Scalar::BF16 => {
                let f = self.integer_to_float(from, Scalar::F32, a);
                self.rounded(to, f)
            }
            _ => {
                let d = self.out.register(to);
                emit!(self, "cvt.rn.{}.{ty} {d}, {a}", arithmetic(to));
                d
            }
        }
    }

    fn float_to_integer(&mut self, from: Scalar, to: Scalar, a: Leaf) -> Leaf {
        let (from, a) = if from.size() == 2 {
            (Scalar::F32, self.widened(from, a))
        } else {
            (from, self.in_register(a, from))
        };
        let f = arithmetic(from);
        // The conversion saturates; narrow types are cut further.
        let through = if to.size() < 4 { Scalar::I32 } else { to };
        let mut d = self.out.register(through);
        emit!(self, "cvt.rzi.{}.{f} {d}, {a}", arithmetic(through));
        if from == Scalar::F64 || to.size() == 8 {
            // NaN gives the most significant bit here; elsewhere it gives zero.
            let nan = self.compare("nan", f, from, a, a);
            d = self.choose(nan, through, Leaf::Imm(0), d);
        }
        match to {
            Scalar::I8 => self.clamped_word(d, -0x80, 0x7f),
            Scalar::I16 => self.clamped_word(d, -0x8000, 0x7fff),
            Scalar::U8 => self.clamped_word(d, 0, 0xff),
            Scalar::U16 => self.clamped_word(d, 0, 0xffff),
            _ => d,
        }
    }

    fn float_cast(&mut self, from: Scalar, to: Scalar, a: Leaf) -> Leaf {
        let a = self.in_register(a, from);
        match (from, to) {
            (Scalar::F16 | Scalar::BF16, Scalar::F32) => self.widened(from, a),
            (Scalar::F16 | Scalar::BF16, _) => {
                let f = self.widened(from, a);
                self.cast(Scalar::F32, to, f)
            }
            (Scalar::F32, Scalar::F64) => {
                let d = self.out.wide();
                emit!(self, "cvt.f64.f32 {d}, {a}");
                d
            }
            (Scalar::F32, _) => self.rounded(to, a),
            (_, Scalar::F32) => {
                let d = self.out.word();
                emit!(self, "cvt.rn.f32.f64 {d}, {a}");
                d
            }
            // By way of f32, as everywhere: rounded twice.
            _ => {
                let f = self.float_cast(from, Scalar::F32, a);
                self.rounded(to, f)
            }
        }
    }
}

/// The register bits of an integer: cut to the type's width and extended by its rule.
pub(super) fn normal(s: Scalar, v: u64) -> u64 {
    match s {
        Scalar::I8 => u64::from(v as u8 as i8 as i32 as u32),
        Scalar::I16 => u64::from(v as u16 as i16 as i32 as u32),
        Scalar::U8 => v & 0xff,
        Scalar::U16 => v & 0xffff,
        _ if s.size() == 8 => v,
        _ => v & 0xffff_ffff,
    }
}
