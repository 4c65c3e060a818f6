//! Groups entries by their hours, so that one search for the next opening or closing serves all entries of a group.

use std::collections::BTreeMap;

use super::{AvailabilityPolicy, PolicyRules};

/// The group of the entries that have the same windows and the same exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HoursGroup(usize);

/// Returns the group of each entry, in the order of the entries.
pub(super) fn group_by_hours(rules: &PolicyRules) -> Vec<HoursGroup> {
    let mut groups = BTreeMap::<(&AvailabilityPolicy, Vec<usize>), HoursGroup>::new();
    let entries = rules.entries.iter().map(|entry| {
        let named = rules.exceptions.iter().map(|exception| exception.entries.as_ref());
        let own =
            named.enumerate().filter(|(_, named)| named.is_some_and(|ids| ids.contains(&entry.entry_id)));
        let own_exceptions = own.map(|(position, _)| position).collect();
        let next = HoursGroup(groups.len());
        *groups.entry((&entry.availability, own_exceptions)).or_insert(next)
    });
    entries.collect()
}
