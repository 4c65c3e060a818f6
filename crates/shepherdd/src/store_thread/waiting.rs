//! What waits to be written.

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_api::AuditEvent;
use shepherd_core::{Snapshot, StoreWrite, Until, UsageKey};
use shepherd_util::{EntryId, ProfileId};

use super::Awaited;

/// Lines that wait for a broken disk. More than a day's worth; beyond it only the latest state is kept.
const MOST_LINES: usize = 100_000;

/// What no attempt was made at yet. Of everything but lines there is one for each thing that it is about.
#[derive(Default)]
pub(super) struct Waiting {
    /// The number of the last batch; 0 if there is none.
    up_to: u64,
    usage: BTreeMap<UsageKey, Duration>,
    cooldowns: BTreeMap<(ProfileId, EntryId), Until>,
    snapshot: Option<Box<Snapshot>>,
    lines: Vec<AuditEvent>,
    /// Whether the loop has to hear when they are on disk.
    is_awaited: bool,
}

/// What the store was given as one batch. Until it is known to be there it is given again unchanged: as one that failed
/// may have landed all the same, as a whole, nothing may be added to it or taken from it.
pub(super) struct Attempt {
    pub(super) up_to: u64,
    pub(super) writes: Vec<StoreWrite>,
    pub(super) is_awaited: bool,
    /// How many batches the store held before.
    pub(super) generation: u64,
}

impl Waiting {
    pub(super) fn add(&mut self, batch: u64, writes: Vec<StoreWrite>, awaited: Awaited) {
        self.up_to = batch;
        self.is_awaited |= awaited == Awaited::ByUs;
        if self.lines.len() >= MOST_LINES {
            self.lines.clear();
        }
        for write in writes {
            match write {
                StoreWrite::AddUsage { key, amount } => {
                    let sum = self.usage.entry(key).or_default();
                    *sum = sum.saturating_add(amount);
                }
                StoreWrite::SetCooldown { profile, entry_id, until } => {
                    self.cooldowns.insert((profile, entry_id), until);
                }
                StoreWrite::SaveSnapshot(snapshot) => self.snapshot = Some(snapshot),
                StoreWrite::AppendAudit(line) => self.lines.push(*line),
            }
        }
    }

    pub(super) fn up_to(&self) -> u64 {
        self.up_to
    }

    pub(super) fn is_empty(&self) -> bool {
        self.up_to == 0
    }

    /// How many writes.
    pub(super) fn count(&self) -> usize {
        self.usage.len() + self.cooldowns.len() + usize::from(self.snapshot.is_some()) + self.lines.len()
    }

    /// The loop hears when what waits is on disk.
    pub(super) fn is_awaited_now(&mut self) {
        self.is_awaited = true;
    }

    /// All of it, to be given to a store that holds so many batches.
    pub(super) fn attempt(&mut self, generation: u64) -> Option<Attempt> {
        if self.is_empty() {
            return None;
        }
        let Self { up_to, usage, cooldowns, snapshot, lines, is_awaited } = std::mem::take(self);
        let usage = usage.into_iter().map(|(key, amount)| StoreWrite::AddUsage { key, amount });
        let cooldowns = cooldowns.into_iter().map(|((profile, entry_id), until)| StoreWrite::SetCooldown {
            profile,
            entry_id,
            until,
        });
        let lines = lines.into_iter().map(|line| StoreWrite::AppendAudit(Box::new(line)));
        let writes = usage.chain(cooldowns).chain(snapshot.map(StoreWrite::SaveSnapshot)).chain(lines);
        Some(Attempt { up_to, writes: writes.collect(), is_awaited, generation })
    }
}
