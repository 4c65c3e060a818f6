//! A pseudo-random generator that gives the same numbers for the same seed on every machine and in every version.

/// A SplitMix64 generator: eight bytes of state, and random enough to choose mutations.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Starts the sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number of the sequence.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let Ok(bound) = u64::try_from(bound) else { return 0 };
        let number = self.next_number().checked_rem(bound).unwrap_or_default();
        usize::try_from(number).unwrap_or_default()
    }

    /// Picks an element of a slice, or `None` if the slice is empty.
    pub fn pick<'all, T>(&mut self, all: &'all [T]) -> Option<&'all T> {
        all.get(self.below(all.len()))
    }

    /// Returns any of the 256 bytes.
    pub fn byte(&mut self) -> u8 {
        let [byte, ..] = self.next_number().to_le_bytes();
        byte
    }
}
