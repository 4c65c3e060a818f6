//! What waits to be written.

use shepherd_core::StoreWrite;
use shepherd_store::{SqliteStore, Store};

use super::Awaited;

/// Writes that wait for a broken disk. More than a day's worth; beyond it only the latest state is kept.
const MOST_WAITING: usize = 100_000;

/// What is not on disk yet.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) up_to: u64,
    pub(super) writes: Vec<StoreWrite>,
    /// Whether the loop has to hear when they are.
    pub(super) is_awaited: bool,
}

impl Waiting {
    pub(super) fn add(&mut self, batch: u64, writes: Vec<StoreWrite>, awaited: Awaited) {
        self.up_to = batch;
        self.is_awaited |= awaited == Awaited::ByUs;
        if writes.iter().any(is_snapshot) {
            self.writes.retain(|write| !is_snapshot(write));
        }
        if self.writes.len() >= MOST_WAITING {
            self.writes.retain(|write| !matches!(write, StoreWrite::AppendAudit(_)));
        }
        self.writes.extend(writes);
    }

    /// Whether a write that seemed to fail is on the disk after all. The batch is there as a whole or not at all, so
    /// one trace of it is enough.
    pub(super) fn is_in(&self, store: &SqliteStore, sequence: u64) -> bool {
        let lines = self.writes.iter().filter(|write| matches!(write, StoreWrite::AppendAudit(_))).count();
        if lines > 0 {
            return store.audit_end() > sequence;
        }
        let snapshot = self.writes.iter().find_map(|write| match write {
            StoreWrite::SaveSnapshot(snapshot) => Some(&**snapshot),
            StoreWrite::AddUsage { .. } | StoreWrite::SetCooldown { .. } | StoreWrite::AppendAudit(_) => None,
        });
        snapshot.is_some_and(|snapshot| store.load_snapshot().is_ok_and(|stored| stored == *snapshot))
    }
}

fn is_snapshot(write: &StoreWrite) -> bool {
    matches!(write, StoreWrite::SaveSnapshot(_))
}
