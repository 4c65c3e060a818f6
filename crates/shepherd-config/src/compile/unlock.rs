//! Checks the rules of `unlock`, so that every entry can be unlocked.

use std::collections::{BTreeMap, BTreeSet};

use shepherd_core::policy::TimeCost;
use shepherd_util::ExactDuration;
use ward_diag::{ConfigFault, FaultCollector, Span, code};

use crate::raw::{RawDefaults, RawEntry, RawUnlock, SpannedName};
use crate::read::escape_name;

/// Reports entries that can never be unlocked.
pub(super) fn check_unlock_rules(entries: &[RawEntry], defaults: &RawDefaults, faults: &FaultCollector) {
    let by_id: BTreeMap<&str, &RawEntry> =
        entries.iter().filter_map(|entry| Some((entry.id.as_ref()?.value.as_str(), entry))).collect();
    let mut seen = BTreeSet::new();
    // Many entries may wait for the same one, so its profiles are collected once.
    let mut allowed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for entry in entries {
        let (Some(id), Some(unlock)) = (&entry.id, &entry.unlock) else { continue };
        if let Some(cycle) = find_unlock_cycle(&by_id, &id.value, &mut seen) {
            faults.push(unlock_cycle_fault(&cycle, unlock.entry.span));
        }
        if let Some(first) = by_id.get(unlock.entry.value.as_str()) {
            let allowed = allowed.entry(&unlock.entry.value).or_insert_with(|| {
                first.profiles.iter().flatten().map(|profile| profile.value.as_str()).collect()
            });
            check_profiles(entry, first, allowed, &unlock.entry, faults);
            check_disabled(entry, first, &unlock.entry, faults);
            check_quotas(first, defaults, unlock, faults);
        }
    }
}

fn unlock_cycle_fault(path: &[&str], span: Span) -> ConfigFault {
    let names: Vec<String> = path.iter().map(|id| format!("`{}`", escape_name(id))).collect();
    match names.as_slice() {
        [only] => ConfigFault::new(
            code::INVALID,
            span,
            format!("entry {only} waits for itself and can never be unlocked"),
        )
        .help("name another entry, or remove `unlock`"),
        names => {
            let chain = names.join(", which waits for ");
            let last = names.last().map_or("", String::as_str);
            ConfigFault::new(
                code::INVALID,
                span,
                format!("entry {last} waits for {chain}: none of them can ever be unlocked"),
            )
            .help("remove `unlock` from one of them")
        }
    }
}

/// Follows the chain of entries that an entry waits for. Returns the chain if it leads back to the entry, which is then
/// its last element. Each entry is followed only once, so that each cycle is found once, from its first entry.
fn find_unlock_cycle<'r>(
    by_id: &BTreeMap<&'r str, &'r RawEntry>,
    start: &'r str,
    seen: &mut BTreeSet<&'r str>,
) -> Option<Vec<&'r str>> {
    let mut path = Vec::new();
    let mut at = start;
    while seen.insert(at) {
        at = by_id.get(at)?.unlock.as_ref()?.entry.value.as_str();
        path.push(at);
    }
    (at == start && !path.is_empty()).then_some(path)
}

/// Reports profiles that may use an entry but not the one that unlocks it.
fn check_profiles(
    entry: &RawEntry,
    first: &RawEntry,
    allowed: &BTreeSet<&str>,
    used: &SpannedName,
    faults: &FaultCollector,
) {
    let Some(named) = &first.profiles else { return };
    let left_out = match &entry.profiles {
        None => None,
        Some(profiles) => profiles.iter().find(|profile| !allowed.contains(profile.value.as_str())),
    };
    let message = match (&entry.profiles, left_out) {
        (Some(_), None) => return,
        (Some(_), Some(profile)) => {
            format!(
                "`{}` is not for the profile `{}`, which could never unlock this entry",
                escape_name(&used.value),
                escape_name(&profile.value)
            )
        }
        (None, _) => format!("`{}` is not for everybody, but this entry is", escape_name(&used.value)),
    };
    let related = named.first().map_or(used.span, |profile| profile.span);
    faults.push(
        ConfigFault::new(code::INVALID, used.span, message)
            .related(related, "only for these profiles")
            .help("give both entries the same `profiles`"),
    );
}

/// Reports entries that wait for a disabled entry without being disabled themselves.
fn check_disabled(entry: &RawEntry, first: &RawEntry, used: &SpannedName, faults: &FaultCollector) {
    let (None, Some(disabled)) = (&entry.disabled, &first.disabled) else { return };
    let message =
        format!("`{}` is disabled, so this entry could never be unlocked", escape_name(&used.value));
    faults.push(
        ConfigFault::new(code::INVALID, used.span, message)
            .related(disabled.span, "switched off here")
            .help("remove `unlock`, or write `disabled = true` here as well"),
    );
}

/// Reports unlock rules that need more time than the quotas of the other entry allow.
fn check_quotas(first: &RawEntry, defaults: &RawDefaults, unlock: &RawUnlock, faults: &FaultCollector) {
    if first.cost.is_some_and(|cost| cost.value == TimeCost::Free) {
        return;
    }
    let daily = first.limits.daily.as_ref().or(defaults.limits.daily.as_ref());
    let daily = daily.and_then(|daily| Some((daily.max_amount()?, daily.span, "a day")));
    let weekly = first.limits.weekly.or(defaults.limits.weekly);
    let weekly = weekly.and_then(|weekly| Some((weekly.value.limit()?, weekly.span, "a week")));
    let least = daily.into_iter().chain(weekly).min_by_key(|(most, ..)| *most);
    let Some((most, quota_span, period)) = least.filter(|(most, ..)| *most < unlock.at_least.value) else {
        return;
    };
    let (name, needed) = (escape_name(&unlock.entry.value), ExactDuration(unlock.at_least.value));
    let (message, help) = if most.is_zero() {
        (
            format!("this entry needs {needed} of `{name}`, which gets no time at all"),
            format!("give `{name}` a quota of at least {needed}, or remove `unlock`"),
        )
    } else {
        let most = ExactDuration(most);
        (
            format!("this entry needs {needed} of `{name}`, which gets at most {most} {period}"),
            format!("lower `at_least`, or give `{name}` more time"),
        )
    };
    faults.push(
        ConfigFault::new(code::INVALID, unlock.at_least.span, message)
            .related(quota_span, "its quota")
            .help(help),
    );
}
