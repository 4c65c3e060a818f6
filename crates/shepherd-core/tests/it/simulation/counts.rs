//! Counts of what happened in a simulation.

/// The number of events of each kind. A simulation in which nothing happens tests nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SimulationCounts {
    pub(super) approved: u64,
    pub(super) denied: u64,
    pub(super) expired: u64,
    pub(super) warned: u64,
    pub(super) gifts: u64,
    pub(super) recovered: u64,
}

impl SimulationCounts {
    fn counts(self) -> [u64; 6] {
        [self.approved, self.denied, self.expired, self.warned, self.gifts, self.recovered]
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            approved: self.approved + other.approved,
            denied: self.denied + other.denied,
            expired: self.expired + other.expired,
            warned: self.warned + other.warned,
            gifts: self.gifts + other.gifts,
            recovered: self.recovered + other.recovered,
        }
    }

    pub(super) fn each_at_least(self, count: u64) -> bool {
        self.counts().into_iter().all(|happened| happened >= count)
    }
}
