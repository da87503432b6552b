//! Decisions as data: a tape of numbers. A tape that ends gives zeros, and zero is always the simplest choice, so
//! shorter and smaller tapes make simpler kernels. That is all that shrinking needs.

/// Reads decisions from a tape.
#[derive(Clone, Debug)]
pub struct Choices<'t> {
    tape: &'t [u32],
    at: usize,
}

impl<'t> Choices<'t> {
    /// Reads `tape` from its start.
    pub fn new(tape: &'t [u32]) -> Choices<'t> {
        Choices { tape, at: 0 }
    }

    /// The next number.
    pub fn number(&mut self) -> u32 {
        let v = self.tape.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        v
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        // A tape's numbers are 32 bits; nothing here chooses among more.
        (self.number() as usize).checked_rem(n).unwrap_or(0)
    }

    /// True in `times` of `of` cases; false at the end of the tape.
    pub fn chance(&mut self, times: usize, of: usize) -> bool {
        self.below(of) >= of.saturating_sub(times)
    }

    /// One of `items`.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }

    /// How many numbers were read, those past the end of the tape included.
    pub fn used(&self) -> usize {
        self.at
    }
}

/// A stream of well-mixed numbers from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts at a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// A random tape.
pub fn tape(seed: u64, length: usize) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..length).map(|_| (random.bits() >> 32) as u32).collect()
}
