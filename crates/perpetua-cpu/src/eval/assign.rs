//! Scalars copied under a mask. Knows nothing of operators.

use super::lanes::{Line, Words, view_mut};

macro_rules! assign_of {
    ($t:ty, $mask:expr, $from:expr, $to:expr) => {{
        const BITS: usize = <$t>::BITS as usize;
        // Bit i of a chunk of the mask, as wide as the element: what is compared vectorises.
        const BIT: [$t; BITS] = {
            let mut table = [0; BITS];
            let mut i = 0;
            while i < BITS {
                table[i] = 1 << i;
                i += 1;
            }
            table
        };
        let from = Words::<$t>::of($from);
        for (w, (m, to)) in $mask.iter().zip(view_mut::<$t>($to)).enumerate() {
            let Some(from) = from.get(w) else { break };
            match *m {
                0 => {}
                u64::MAX => *to = *from,
                m => {
                    let chunks = from
                        .as_chunks::<BITS>()
                        .0
                        .iter()
                        .zip(to.as_chunks_mut::<BITS>().0);
                    for (c, (from, to)) in chunks.enumerate() {
                        let m = (m >> (c * BITS)) as $t;
                        for i in 0..BITS {
                            // By bits: of a choice compilers make branches or masked stores, both of which take longer.
                            let chosen = <$t>::from(m & BIT[i] != 0).wrapping_neg();
                            to[i] ^= (to[i] ^ from[i]) & chosen;
                        }
                    }
                }
            }
        }
    }};
}

/// Copies scalars of `size` bytes in the lanes of the mask and leaves the others alone. One word to copy from stands for all.
#[inline(always)]
pub(super) fn assign(size: u32, mask: &[u64], from: &[Line], to: &mut [Line]) {
    match size {
        1 => assign_of!(u8, mask, from, to),
        2 => assign_of!(u16, mask, from, to),
        4 => assign_of!(u32, mask, from, to),
        _ => assign_of!(u64, mask, from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{WORD, get, put};
    use super::super::wide::Level;
    use super::*;

    #[test]
    fn assigning_leaves_other_lanes_alone() {
        for size in [1u32, 2, 4, 8] {
            for mask in [[0, u64::MAX], [0x8000_0000_0000_0001, 0xdead_beef_0123_4567]] {
                let lines = 2 * size as usize;
                let (mut from, mut to) = (vec![Line::ZERO; lines], vec![Line::ZERO; lines]);
                (0..2 * WORD).for_each(|i| put(&mut from, size, i, i as u64 + 1));
                for level in Level::all() {
                    super::super::assign(level, size, &mask, &from, &mut to);
                }
                for i in 0..2 * WORD {
                    let expect = if mask[i / WORD] >> (i % WORD) & 1 == 1 {
                        i as u64 + 1
                    } else {
                        0
                    };
                    assert_eq!(get(&to, size, i), expect);
                }
            }
        }
    }
}
