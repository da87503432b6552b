//! Lanes side by side: storage for one scalar of many lanes, and the loops that apply a function to each. Knows
//! nothing of operators.
//!
//! Lanes come in words of [`WORD`]. A word of a scalar of `n` bytes is `n` [`Line`]s; a mask has one bit for each
//! lane. Loops skip words whose mask is zero and compute all lanes of the others, so lanes outside the mask get
//! values that mean nothing: fixed trip counts vectorise, branches in them do not.

use bytemuck::{Pod, Zeroable};
use perpetua_ir::ops::eval::Map;

/// Lanes in a word.
pub(crate) const WORD: usize = 64;

/// 64 bytes, aligned to a cache line: as many lanes of storage as fit.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; 64]);

impl Line {
    /// Zeros.
    pub(crate) const ZERO: Line = Line([0; 64]);
}

/// One word of the widest scalar: scratch space for temporaries.
pub(crate) type WordLines = [Line; 8];

/// Storage seen as words of `T`; empty when the sizes do not fit, which typed code never asks for.
#[inline(always)]
pub(crate) fn view<T: Pod>(lines: &[Line]) -> &[[T; WORD]] {
    bytemuck::try_cast_slice(lines).unwrap_or(&[])
}

/// As [`view`], to be changed.
#[inline(always)]
pub(crate) fn view_mut<T: Pod>(lines: &mut [Line]) -> &mut [[T; WORD]] {
    bytemuck::try_cast_slice_mut(lines).unwrap_or(&mut [])
}

/// The words of an operand. One word stands for all: what lanes share is there once.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a, T> {
    words: &'a [[T; WORD]],
    /// All ones, or zero.
    which: usize,
}

impl<'a, T: Pod> Words<'a, T> {
    /// The words that lie in storage.
    #[inline(always)]
    pub(crate) fn of(lines: &'a [Line]) -> Words<'a, T> {
        let words = view::<T>(lines);
        let which = if words.len() == 1 { 0 } else { usize::MAX };
        Words { words, which }
    }

    /// The word at `w`, or the one that all share; `None` past the end.
    #[inline(always)]
    pub(crate) fn get(self, w: usize) -> Option<&'a [T; WORD]> {
        self.words.get(w & self.which)
    }
}

/// All lanes of the words that the mask touches.
pub(super) struct Lanes<'a, const N: usize> {
    pub(super) mask: &'a [u64],
    pub(super) operands: [&'a [Line]; N],
    pub(super) out: &'a mut [Line],
}

impl<const N: usize> Map for Lanes<'_, N> {
    #[inline(always)]
    fn map1<A: Pod, R: Pod>(self, f: impl Fn(A) -> R) {
        let a = Words::<A>::of(self.operands[0]);
        for (w, (m, o)) in self.mask.iter().zip(view_mut::<R>(self.out)).enumerate() {
            if let (true, Some(a)) = (*m != 0, a.get(w)) {
                for i in 0..WORD {
                    o[i] = f(a[i]);
                }
            }
        }
    }

    #[inline(always)]
    fn map2<A: Pod, B: Pod, R: Pod>(self, f: impl Fn(A, B) -> R) {
        let (a, b) = (Words::<A>::of(self.operands[0]), Words::<B>::of(self.operands[1]));
        for (w, (m, o)) in self.mask.iter().zip(view_mut::<R>(self.out)).enumerate() {
            if let (true, Some(a), Some(b)) = (*m != 0, a.get(w), b.get(w)) {
                for i in 0..WORD {
                    o[i] = f(a[i], b[i]);
                }
            }
        }
    }

    #[inline(always)]
    fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(self, f: impl Fn(A, B, C) -> R) {
        let (a, b) = (Words::<A>::of(self.operands[0]), Words::<B>::of(self.operands[1]));
        let c = Words::<C>::of(self.operands[2]);
        for (w, (m, o)) in self.mask.iter().zip(view_mut::<R>(self.out)).enumerate() {
            if let (true, Some(a), Some(b), Some(c)) = (*m != 0, a.get(w), b.get(w), c.get(w)) {
                for i in 0..WORD {
                    o[i] = f(a[i], b[i], c[i]);
                }
            }
        }
    }
}

/// Puts `bits` into lane `lane` of storage of scalars of `size` bytes.
#[inline(always)]
pub(crate) fn put(lines: &mut [Line], size: u32, lane: usize, bits: u64) {
    let (w, i) = (lane / WORD, lane % WORD);
    match size {
        1 => {
            if let Some(word) = view_mut::<u8>(lines).get_mut(w) {
                word[i] = bits as u8;
            }
        }
        2 => {
            if let Some(word) = view_mut::<u16>(lines).get_mut(w) {
                word[i] = bits as u16;
            }
        }
        4 => {
            if let Some(word) = view_mut::<u32>(lines).get_mut(w) {
                word[i] = bits as u32;
            }
        }
        _ => {
            if let Some(word) = view_mut::<u64>(lines).get_mut(w) {
                word[i] = bits;
            }
        }
    }
}

/// Puts `bits` into all lanes.
#[inline]
pub(crate) fn splat(lines: &mut [Line], size: u32, bits: u64) {
    match size {
        1 => view_mut::<u8>(lines).as_flattened_mut().fill(bits as u8),
        2 => view_mut::<u16>(lines).as_flattened_mut().fill(bits as u16),
        4 => view_mut::<u32>(lines).as_flattened_mut().fill(bits as u32),
        _ => view_mut::<u64>(lines).as_flattened_mut().fill(bits),
    }
}

/// The bits in lane `lane` of storage of scalars of `size` bytes, zero-extended; 0 past its end.
#[inline(always)]
pub(crate) fn get(lines: &[Line], size: u32, lane: usize) -> u64 {
    let (w, i) = (lane / WORD, lane % WORD);
    match size {
        1 => view::<u8>(lines).get(w).map_or(0, |word| u64::from(word[i])),
        2 => view::<u16>(lines).get(w).map_or(0, |word| u64::from(word[i])),
        4 => view::<u32>(lines).get(w).map_or(0, |word| u64::from(word[i])),
        _ => view::<u64>(lines).get(w).map_or(0, |word| word[i]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_got() {
        for size in [1u32, 2, 4, 8] {
            let mut lines = vec![Line::ZERO; 2 * size as usize];
            for lane in 0..2 * WORD {
                put(&mut lines, size, lane, !(lane as u64));
            }
            for lane in 0..2 * WORD {
                let all = u64::MAX >> (64 - 8 * size);
                assert_eq!(get(&lines, size, lane), !(lane as u64) & all);
            }
            assert_eq!(get(&lines, size, 2 * WORD), 0);
        }
    }
}
