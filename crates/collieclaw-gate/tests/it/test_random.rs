//! A generator of pseudo-random numbers that are the same in every run (xorshift).

pub(crate) struct TestRandom(u64);

impl TestRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("the limit is a usize")
    }
}
