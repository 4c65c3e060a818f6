//! A random generator that repeats its numbers for the same seed, so that a failure can be replayed.

use std::time::Duration;

pub(crate) struct SimulationRng(u64);

impl SimulationRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `sides` (SplitMix64).
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.roll(100) < chance
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.roll(u64::try_from(length).unwrap())).unwrap()
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    pub(crate) fn random_option<T>(&mut self, chance: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.percent(chance).then(|| make(self))
    }

    /// Returns a duration above zero and up to this number of seconds.
    pub(crate) fn seconds(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.roll(most * 1_000) + 1)
    }

    /// Returns whole minutes, both bounds included.
    pub(crate) fn minutes(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_secs(60 * (least + self.roll(most - least + 1)))
    }
}
