//! Sets of lanes as bits, 64 a word, and bits from `bool`s.

use crate::eval::WORD;

/// Whether no lane is in the set.
#[inline]
pub(super) fn none(mask: &[u64]) -> bool {
    mask.iter().all(|w| *w == 0)
}

/// Number of lanes in the set.
pub(super) fn count(mask: &[u64]) -> u32 {
    mask.iter().map(|w| w.count_ones()).sum()
}

/// Whether a lane is in the set.
pub(super) fn has(mask: &[u64], lane: usize) -> bool {
    mask.get(lane / WORD).is_some_and(|w| w >> (lane % WORD) & 1 == 1)
}

/// Takes a lane out of the set.
pub(super) fn remove(mask: &mut [u64], lane: usize) {
    if let Some(w) = mask.get_mut(lane / WORD) {
        *w &= !(1 << (lane % WORD));
    }
}

/// Puts a lane into the set.
pub(super) fn insert(mask: &mut [u64], lane: usize) {
    if let Some(w) = mask.get_mut(lane / WORD) {
        *w |= 1 << (lane % WORD);
    }
}

/// The lanes of a word, lowest first.
#[inline(always)]
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            at
        })
    })
}

/// The highest lane of a set; 0 of an empty one.
pub(super) fn last(mask: &[u64]) -> usize {
    let word = mask.iter().enumerate().rfind(|(_, word)| **word != 0);
    word.map_or(0, |(w, word)| w * WORD + WORD - 1 - word.leading_zeros() as usize)
}

/// All lanes of a set, lowest first.
pub(super) fn lanes(mask: &[u64]) -> impl Iterator<Item = usize> {
    mask.iter()
        .enumerate()
        .flat_map(|(w, word)| bits(*word).map(move |i| w * WORD + i))
}

/// The set of all of `n` lanes.
pub(super) fn first(n: usize) -> Vec<u64> {
    (0..n.div_ceil(WORD))
        .map(|w| match n - w * WORD {
            rest if rest >= WORD => u64::MAX,
            rest => (1 << rest) - 1,
        })
        .collect()
}

/// The set of lanes whose `bool` is true. Only bit 0 counts: lanes that are not active hold anything.
#[inline(always)]
pub(super) fn from_bools(bools: &[u8; WORD]) -> u64 {
    let mut word = 0;
    for (i, eight) in bools.as_chunks::<8>().0.iter().enumerate() {
        // The product gathers bit 0 of byte k at bit 56 + k; no two terms meet, so nothing carries.
        let ones = u64::from_le_bytes(*eight) & 0x0101_0101_0101_0101;
        let gathered = ones.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= gathered << (8 * i);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bools_become_bits() {
        let mut bools = [0u8; WORD];
        let word = 0xf0e1_d2c3_8001_7ffe_u64;
        (0..WORD).for_each(|i| bools[i] = (word >> i & 1) as u8);
        assert_eq!(from_bools(&bools), word);
        // What an earlier value left in lanes that were not active does not reach the others.
        bools[3] |= 0xfe;
        bools[40] |= 0x30;
        assert_eq!(from_bools(&bools), word);
        assert_eq!(bits(word).map(|i| 1 << i).sum::<u64>(), word);
        assert_eq!(first(70), [u64::MAX, 63]);
        assert_eq!(count(&first(70)), 70);
    }
}
