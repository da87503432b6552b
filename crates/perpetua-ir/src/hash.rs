//! A hash of 128 bits for identities: equal in every process and, for what the IR is made of, on every machine. Fast, since
//! kernels that are made at run time are hashed at run time. Must not know what is hashed.

use std::hash::{Hash, Hasher};

/// A [`Hasher`] whose result depends on nothing but the values: no seed, and `usize` counts as 64 bits. (Slices of integers are
/// hashed in the machine's byte order, so machines of unlike byte order disagree.)
///
/// Each word is one multiplication of 128 bits. A step is a bijection of the state for a given word, and of the word for a
/// given state; so inputs that differ in one word never collide, and others do by a chance too small to count with. It keeps
/// nobody out who makes collisions on purpose.
#[derive(Clone, Debug)]
pub struct StableHasher(u128);

impl Default for StableHasher {
    fn default() -> StableHasher {
        StableHasher(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl StableHasher {
    /// The hash of a value.
    pub fn of(value: &(impl Hash + ?Sized)) -> u128 {
        let mut hasher = StableHasher::default();
        value.hash(&mut hasher);
        hasher.finish128()
    }

    /// All 128 bits of the hash.
    pub fn finish128(&self) -> u128 {
        // A turn more, so that the last word reaches the lower bits, too.
        let mut last = self.clone();
        last.word(0);
        last.0
    }

    #[inline]
    fn word(&mut self, word: u64) {
        // The multiplier of a 128-bit linear congruential generator with good spectral properties.
        const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
        let product = (self.0 ^ u128::from(word)).wrapping_mul(MULTIPLIER);
        // A product's lower bits depend on lower bits only.
        self.0 = product ^ (product >> 67);
    }
}

impl Hasher for StableHasher {
    fn finish(&self) -> u64 {
        let all = self.finish128();
        (all >> 64) as u64 ^ all as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        // The rest has at most seven bytes; their number stands above them, so that padding is no content.
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = rest.len() as u8;
        self.word(u64::from_le_bytes(last));
    }

    #[inline]
    fn write_u8(&mut self, i: u8) {
        self.word(i.into());
    }

    #[inline]
    fn write_u16(&mut self, i: u16) {
        self.word(i.into());
    }

    #[inline]
    fn write_u32(&mut self, i: u32) {
        self.word(i.into());
    }

    #[inline]
    fn write_u64(&mut self, i: u64) {
        self.word(i);
    }

    #[inline]
    fn write_u128(&mut self, i: u128) {
        self.word(i as u64);
        self.word((i >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, i: usize) {
        self.word(i as u64);
    }

    // The provided forms of signed integers go through the unsigned ones of their width; this one has no fixed width.
    #[inline]
    fn write_isize(&mut self, i: isize) {
        self.word(i as i64 as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Access, Checks, Kernel, KernelBuilder, Type};
    use crate::verify::verify;

    fn kernel() -> Kernel {
        let mut k = KernelBuilder::new("k");
        k.buffer("x", Type::F32, Access::ReadWrite);
        k.param("a", Type::I32);
        k.finish()
    }

    #[test]
    fn the_hash_of_a_kernel_is_the_same_in_every_process() {
        // A number that changes only with the hasher or the IR's form, never with process, width of `usize` or machine.
        let text = format!(
            "{:032x}",
            StableHasher::of(&("a", [1u8, 2], 3usize, -1i32, Some(4u64)))
        );
        assert_eq!(text, TOLD);
        let (a, b) = (verify(kernel()), verify(kernel()));
        assert_eq!(a.map(|v| v.id()), b.map(|v| v.id()));
    }

    const TOLD: &str = "44816b025f6de52bb25ed2ca375521da";

    #[test]
    fn every_part_of_a_kernel_counts() {
        let mut seen = vec![StableHasher::of(&kernel())];
        let mut check = |change: &dyn Fn(&mut Kernel)| {
            let mut changed = kernel();
            change(&mut changed);
            let id = StableHasher::of(&changed);
            assert!(!seen.contains(&id), "{changed}");
            seen.push(id);
        };
        check(&|k| k.name = "kk".into());
        check(&|k| k.source = "k.rs".into());
        check(&|k| k.params.swap(0, 1));
        check(&|k| k.params[1].name = "b".into());
        check(&|k| k.block_size = Some([1, 1, 1]));
        check(&|k| k.block_size = Some([1, 1, 2]));
        check(&|k| k.checks = Checks::Off);
        check(&|k| k.contract = true);
        check(&|k| k.pointer_width = 32);
    }

    #[test]
    fn no_byte_moves_from_one_value_to_the_next() {
        let of = |parts: &[&str]| StableHasher::of(parts);
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a\0"]));
        assert_ne!(of(&["12345678"]), of(&["12345678\0"]));
        assert_ne!(of(&[""]), of(&[]));
    }

    #[test]
    fn small_numbers_share_no_hash() {
        let mut seen: Vec<u64> = (0..100_000u32).map(|n| StableHasher::of(&n) as u64).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100_000, "the lower half alone tells them apart");
    }
}
