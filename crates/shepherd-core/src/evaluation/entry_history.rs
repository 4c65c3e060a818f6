//! The facts about entries that all evaluations share.

use std::cmp::Ordering;

use shepherd_util::EntryId;

use super::rules::EntryEvaluation;
use crate::policy::{HoursGroup, PolicyEntry};
use crate::state::PauseEnd;
use crate::usage::{DailyUsage, ProfileUsage};

/// The facts about an entry that all its evaluations share: its usage, the cooldown after its last run, and its place among
/// the entries with the same hours.
#[derive(Clone, Copy, Default)]
pub(crate) struct EntryHistory<'a> {
    /// `None` if the entry is evaluated alone.
    pub(super) hours: Option<HoursGroup>,
    pub(super) used: Option<&'a DailyUsage>,
    pub(super) cooldown: Option<&'a PauseEnd>,
}

impl<'a> EntryEvaluation<'a> {
    /// Returns the history of one entry.
    pub(crate) fn entry_history(&self, entry: &PolicyEntry) -> EntryHistory<'a> {
        // Most entries have no cooldown, and a key costs two copies.
        let key = || (self.profile.clone(), entry.entry_id.clone());
        let none = self.facts.cooldowns.is_empty();
        let cooldown = if none { None } else { self.facts.cooldowns.get(&key()) };
        let used = self.usage.and_then(|usage| usage.entry_usage(&entry.entry_id));
        EntryHistory { hours: None, used, cooldown }
    }

    /// Returns the history of each entry of the policy, in its order. Policy and records are both sorted by name, so one
    /// pass over both replaces a search for each entry.
    pub(crate) fn entry_histories(&self) -> Vec<EntryHistory<'a>> {
        let mut used = sorted_lookup(self.usage.into_iter().flat_map(ProfileUsage::entries));
        let own = self.facts.cooldowns.iter().filter(|((profile, _), _)| profile == self.profile);
        let mut cooldowns = sorted_lookup(own.map(|((_, entry_id), until)| (entry_id, until)));
        let policy = self.facts.policy;
        let groups = policy.hours_groups().iter();
        let mut records: Vec<_> =
            groups.map(|group| EntryHistory { hours: Some(*group), ..EntryHistory::default() }).collect();
        for (entry_id, position) in policy.positions() {
            if let Some(record) = records.get_mut(position) {
                *record = EntryHistory { used: used(entry_id), cooldown: cooldowns(entry_id), ..*record };
            }
        }
        records
    }
}

/// Looks up names that are asked for in sorted order.
fn sorted_lookup<'a, T>(sorted: impl Iterator<Item = (&'a EntryId, T)>) -> impl FnMut(&EntryId) -> Option<T> {
    let mut sorted = sorted.peekable();
    move |wanted| {
        loop {
            match sorted.peek()?.0.cmp(wanted) {
                Ordering::Less => drop(sorted.next()),
                Ordering::Equal => return sorted.next().map(|(_, found)| found),
                Ordering::Greater => return None,
            }
        }
    }
}
