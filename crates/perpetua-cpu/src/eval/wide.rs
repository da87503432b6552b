//! Operators on many lanes: the entry points, compiled for more than one level of the processor. The widest level
//! present gives the same bits as the others; it only takes more lanes at a time. An operand of one word stands for all.

use super::assign::assign as assign_body;
use super::division::division_suspect as suspect_body;
use super::lanes::{Lanes, Line, WordLines};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::eval::{
    binary_of, cast_of, copy_of, is_half, result_scalar, takes_two, ternary_of, unary_of,
};
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

/// A level of the processor that it is known to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What the crate was compiled for.
    Baseline,
    /// x86-64-v3: AVX2, FMA, BMI, F16C.
    #[cfg(target_arch = "x86_64")]
    V3,
}

impl Level {
    /// The widest that this processor has.
    pub(crate) fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("f16c")
        {
            return Level(Kind::V3);
        }
        Level(Kind::Baseline)
    }

    /// Every level that this processor has.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Level> {
        let mut levels = vec![Level(Kind::Baseline)];
        if Level::detect() != levels[0] {
            levels.push(Level::detect());
        }
        levels
    }
}

/// Compiles a function's body once for each level, and calls the one asked for.
macro_rules! leveled {
    ($(#[$meta:meta])* $vis:vis fn $name:ident, $v3:ident, $body:ident ($($arg:ident: $ty:ty),*) $(-> $r:ty)?) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
        fn $v3($($arg: $ty),*) $(-> $r)? {
            $body($($arg),*)
        }

        $(#[$meta])*
        #[inline]
        $vis fn $name(level: Level, $($arg: $ty),*) $(-> $r)? {
            match level.0 {
                Kind::Baseline => $body($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `Kind::V3` is made only by `Level::detect`, after it found every one of these features.
                Kind::V3 => unsafe { $v3($($arg),*) },
            }
        }
    };
}

#[inline(always)]
fn unary_body(op: UnaryOp, s: Scalar, mask: &[u64], a: &[Line], out: &mut [Line]) {
    unary_of(
        op,
        s,
        Lanes {
            mask,
            operands: [a],
            out,
        },
    );
}

#[inline(always)]
fn binary_body(op: BinaryOp, s: Scalar, mask: &[u64], a: &[Line], b: &[Line], out: &mut [Line]) {
    binary_of(
        op,
        s,
        Lanes {
            mask,
            operands: [a, b],
            out,
        },
    );
}

type Three<'a> = (&'a [Line], &'a [Line], &'a [Line]);

#[inline(always)]
fn ternary_body(op: TernaryOp, s: Scalar, mask: &[u64], (a, b, c): Three<'_>, out: &mut [Line]) {
    ternary_of(
        op,
        s,
        Lanes {
            mask,
            operands: [a, b, c],
            out,
        },
    );
}

leveled! { fn unary_whole, unary_v3, unary_body(op: UnaryOp, s: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) }
leveled! { fn binary_whole, binary_v3, binary_body(op: BinaryOp, s: Scalar, m: &[u64], a: &[Line], b: &[Line], out: &mut [Line]) }
leveled! { fn ternary_whole, ternary_v3, ternary_body(op: TernaryOp, s: Scalar, m: &[u64], abc: Three<'_>, out: &mut [Line]) }
#[inline(always)]
fn cast_body(from: Scalar, to: Scalar, mask: &[u64], a: &[Line], out: &mut [Line]) {
    if is_half(from) && from == to {
        let x = Lanes {
            mask,
            operands: [a],
            out,
        };
        copy_of(from.size(), x);
    } else if takes_two(from, to) {
        let (wide_in, wide_out) = (from.size() as usize, to.size() as usize);
        let words = mask.iter().zip(out.chunks_exact_mut(wide_out));
        for (w, (m, out)) in words.enumerate() {
            let at = if a.len() == wide_in { 0 } else { w * wide_in };
            let a = a.get(at..at + wide_in).unwrap_or_default();
            let mask = std::slice::from_ref(m);
            let mut single: WordLines = [Line::ZERO; 8];
            let single = &mut single[..4];
            cast_of(
                from,
                Scalar::F32,
                Lanes {
                    mask,
                    operands: [a],
                    out: single,
                },
            );
            cast_of(
                Scalar::F32,
                to,
                Lanes {
                    mask,
                    operands: [single],
                    out,
                },
            );
        }
    } else {
        cast_of(
            from,
            to,
            Lanes {
                mask,
                operands: [a],
                out,
            },
        );
    }
}

leveled! {
    /// Rust's `as` on the lanes of the words that the mask touches.
    pub(crate) fn cast, cast_v3, cast_body(from: Scalar, to: Scalar, m: &[u64], a: &[Line], out: &mut [Line])
}
leveled! {
    /// Whether an integer division has to be looked at lane by lane: a lane of a touched word, perhaps outside the
    /// mask, divides by zero or overflows.
    pub(crate) fn division_suspect, suspect_v3, suspect_body(s: Scalar, m: &[u64], a: &[Line], b: &[Line]) -> bool
}
leveled! {
    /// Copies scalars of `size` bytes in the lanes of the mask and leaves the others alone.
    pub(crate) fn assign, assign_v3, assign_body(size: u32, m: &[u64], from: &[Line], to: &mut [Line])
}
/// Copies scalars of `size` bytes in the words that the mask touches, all their lanes.
pub(crate) fn copy(size: u32, m: &[u64], a: &[Line], out: &mut [Line]) {
    copy_of(
        size,
        Lanes {
            mask: m,
            operands: [a],
            out,
        },
    );
}

/// Runs `f` on one word at a time with f16 or bf16 operands widened to f32; narrows its result to `narrow` if the
/// result is of that type.
fn by_words<const N: usize>(
    level: Level,
    s: Scalar,
    result: Scalar,
    m: &[u64],
    operands: [&[Line]; N],
    out: &mut [Line],
    f: impl Fn(&[u64], [&[Line]; N], &mut [Line]),
) {
    let size = result.size() as usize;
    for ((i, m), out) in m.iter().enumerate().zip(out.chunks_exact_mut(size)) {
        if *m == 0 {
            continue;
        }
        let m = std::slice::from_ref(m);
        let mut wide: [WordLines; N] = [[Line::ZERO; 8]; N];
        for (wide, narrow) in wide.iter_mut().zip(operands) {
            let at = if narrow.len() == 2 { 0 } else { 2 * i };
            let narrow = narrow.get(at..at + 2).unwrap_or_default();
            cast(level, s, Scalar::F32, m, narrow, &mut wide[..4]);
        }
        let wide: [&[Line]; N] = std::array::from_fn(|k| &wide[k][..4]);
        if is_half(result) {
            let mut single: WordLines = [Line::ZERO; 8];
            f(m, wide, &mut single[..4]);
            cast(level, Scalar::F32, result, m, &single[..4], out);
        } else {
            f(m, wide, out);
        }
    }
}

/// An operator of one operand of type `s` on the lanes of the words that the mask touches.
pub(crate) fn unary(level: Level, op: UnaryOp, s: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) {
    if is_half(s) {
        let result = result_scalar(op.row().result, s);
        by_words(level, s, result, m, [a], out, |m, [a], out| {
            unary_whole(level, op, Scalar::F32, m, a, out);
        });
    } else {
        unary_whole(level, op, s, m, a, out);
    }
}

/// An operator of two operands of type `s` (a shift or rotation amount: of the unsigned type of that width).
/// Divisions that fault give 0.
#[inline]
pub(crate) fn binary(
    level: Level,
    op: BinaryOp,
    s: Scalar,
    m: &[u64],
    a: &[Line],
    b: &[Line],
    out: &mut [Line],
) {
    if is_half(s) {
        let result = result_scalar(op.row().result, s);
        by_words(level, s, result, m, [a, b], out, |m, [a, b], out| {
            binary_whole(level, op, Scalar::F32, m, a, b, out);
        });
    } else {
        binary_whole(level, op, s, m, a, b, out);
    }
}

/// An operator of three operands of type `s` (`select`: the first is `bool`).
pub(crate) fn ternary(
    level: Level,
    op: TernaryOp,
    s: Scalar,
    m: &[u64],
    (a, b, c): Three<'_>,
    out: &mut [Line],
) {
    if is_half(s) && op != TernaryOp::Select {
        by_words(level, s, s, m, [a, b, c], out, |m, [a, b, c], out| {
            ternary_whole(level, op, Scalar::F32, m, (a, b, c), out);
        });
    } else {
        ternary_whole(level, op, s, m, (a, b, c), out);
    }
}
