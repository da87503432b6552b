//! Philox 4x32-10 (J. Salmon and others, SC 2011): random bits by their number. Written once over what a word is, so that the host computes what a kernel does.

/// Multipliers and key steps.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What is added to the key after each round.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// How often words are mixed.
pub const ROUNDS: u32 = 10;

/// Arithmetic on words of 32 bits, or on promises of them.
pub trait Words {
    /// A word.
    type Word: Clone;
    /// Why there is no word.
    type Error;
    /// A word that is known.
    fn constant(&mut self, word: u32) -> Self::Word;
    /// The upper and the lower half of a product.
    ///
    /// # Errors
    /// There is none.
    fn product(&mut self, a: Self::Word, b: Self::Word) -> Result<[Self::Word; 2], Self::Error>;
    /// The sum, which wraps.
    ///
    /// # Errors
    /// There is none.
    fn sum(&mut self, a: Self::Word, b: Self::Word) -> Result<Self::Word, Self::Error>;
    /// Bits that are in one of both.
    ///
    /// # Errors
    /// There are none.
    fn xor(&mut self, a: Self::Word, b: Self::Word) -> Result<Self::Word, Self::Error>;
}

/// The first word of the block of a counter: an index, and which of the draws at it, in a stream of a seed, whose lower halves come first.
///
/// # Errors
/// Those of the arithmetic.
pub fn philox_of<W: Words>(
    words: &mut W,
    [index, draw]: [W::Word; 2],
    seed: [W::Word; 2],
    stream: [W::Word; 2],
) -> Result<W::Word, W::Error> {
    let [first, second] = stream;
    let mut counter = [index, draw, first, second];
    let mut key = seed;
    for _ in 0..ROUNDS {
        let [near, other_near, far, other_far] = counter;
        let multiplier = words.constant(MULTIPLIERS[0]);
        let [near_high, near_low] = words.product(multiplier, near)?;
        let multiplier = words.constant(MULTIPLIERS[1]);
        let [far_high, far_low] = words.product(multiplier, far)?;
        let first = words.xor(far_high, other_near)?;
        let first = words.xor(first, key[0].clone())?;
        let third = words.xor(near_high, other_far)?;
        let third = words.xor(third, key[1].clone())?;
        counter = [first, far_low, third, near_low];
        for (word, step) in key.iter_mut().zip(WEYL) {
            let step = words.constant(step);
            *word = words.sum(word.clone(), step)?;
        }
    }
    let [found, ..] = counter;
    Ok(found)
}

/// The host's own words.
struct Own;

impl Words for Own {
    type Word = u32;
    type Error = std::convert::Infallible;

    fn constant(&mut self, word: u32) -> u32 {
        word
    }

    fn product(&mut self, a: u32, b: u32) -> Result<[u32; 2], Self::Error> {
        let product = u64::from(a) * u64::from(b);
        Ok([(product >> 32) as u32, product as u32])
    }

    fn sum(&mut self, a: u32, b: u32) -> Result<u32, Self::Error> {
        Ok(a.wrapping_add(b))
    }

    fn xor(&mut self, a: u32, b: u32) -> Result<u32, Self::Error> {
        Ok(a ^ b)
    }
}

/// [`philox_of`] on the host: the first draw.
pub fn philox(seed: u64, stream: u64, index: u32) -> u32 {
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let Ok(word) = philox_of(&mut Own, [index, 0], halves(seed), halves(stream));
    word
}

#[cfg(test)]
mod tests {
    use super::philox;

    #[test]
    fn bits_are_those_of_the_authors() {
        // Of their test vectors, the one whose counter has nothing but zeros behind its first word.
        assert_eq!(philox(0, 0, 0), 0x6627_e8d5);
    }
}
