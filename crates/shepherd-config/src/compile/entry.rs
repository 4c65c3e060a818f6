//! Compiles entries and checks their settings against each other.

use std::collections::BTreeSet;

use shepherd_core::policy::{EarningRule, EntrySlot, PolicyEntry, TimeCost, UnlockRule};
use shepherd_util::ProfileId;
use ward_diag::{ConfigFault, Span, code};

use super::names::{DefinedNames, NameKind};
use super::{calendar, limits, run};
use crate::raw::{RawAvailability, RawDefaults, RawEntry};
use crate::read::escape_name;

/// Compiles an entry. Returns `None` if a required part could not be read.
pub(super) fn compile_entry(
    raw: &RawEntry,
    defaults: &RawDefaults,
    names: &DefinedNames<'_>,
) -> Option<PolicyEntry> {
    look_up_names(raw, names);
    check_availability(raw, defaults, names);
    check_costs(raw, names);
    let limits = limits::compile_limits(raw, defaults, names);
    let warnings = limits::compile_warnings(raw, defaults, names.faults);
    let id = raw.id.as_ref()?;
    let earns = match &raw.earns {
        None => None,
        Some(earns) => Some(EarningRule {
            budget: earns.budget.value.parse().ok()?,
            for_each: earns.for_each,
            earned: earns.earned,
            ceiling: earns.ceiling,
        }),
    };
    let unlock = match &raw.unlock {
        None => None,
        Some(unlock) => {
            Some(UnlockRule { entry_id: unlock.entry.value.parse().ok()?, at_least: unlock.at_least.value })
        }
    };
    let kind = raw.kind.kind.clone()?;
    let slot = if kind.is_login() { EntrySlot::Login } else { raw.slot.unwrap_or_default() };
    Some(PolicyEntry {
        entry_id: id.value.parse().ok()?,
        label: raw.label.clone().unwrap_or_else(|| id.value.clone()),
        icon_ref: raw.icon.clone(),
        kind,
        profiles: compile_profiles(raw)?,
        availability: calendar::compile_availability(&raw.availability)
            .or_else(|| calendar::compile_availability(&defaults.availability))?,
        limits,
        warnings,
        disabled: raw.disabled.as_ref().map(|disabled| disabled.value.clone()),
        budgets: raw.budgets.iter().map(|budget| budget.value.parse().ok()).collect::<Option<_>>()?,
        cost: raw.cost.map_or(TimeCost::Counts, |cost| cost.value),
        slot,
        earns,
        unlock,
        run: run::compile_run(raw, &defaults.run),
    })
}

/// Compiles the profiles of an entry. The outer `None` means unreadable, the inner one everybody.
fn compile_profiles(raw: &RawEntry) -> Option<Option<BTreeSet<ProfileId>>> {
    let Some(names) = &raw.profiles else { return Some(None) };
    names.iter().map(|name| name.value.parse().ok()).collect::<Option<_>>().map(Some)
}

fn look_up_names(raw: &RawEntry, names: &DefinedNames<'_>) {
    raw.kind.library.iter().for_each(|library| names.look_up(NameKind::Library, library));
    raw.kind.driver.iter().for_each(|driver| names.look_up(NameKind::Driver, driver));
    raw.profiles.iter().for_each(|profiles| names.look_up_all(NameKind::Profile, profiles));
    names.look_up_all(NameKind::Budget, &raw.budgets);
    raw.earns.iter().for_each(|earns| names.look_up(NameKind::Budget, &earns.budget));
    raw.unlock.iter().for_each(|unlock| names.look_up(NameKind::Entry, &unlock.entry));
}

/// Reports an entry without hours. Missing hours do not mean "always".
fn check_availability(raw: &RawEntry, defaults: &RawDefaults, names: &DefinedNames<'_>) {
    calendar::look_up_modes(&raw.availability, names);
    let is_missing = |availability: &RawAvailability| matches!(availability, RawAvailability::Unspecified);
    if is_missing(&raw.availability) && is_missing(&defaults.availability) && !names.is_incomplete() {
        let subject = raw
            .id
            .as_ref()
            .map_or("this entry".to_owned(), |id| format!("entry `{}`", escape_name(&id.value)));
        names.faults.push(
            ConfigFault::new(code::MISSING_KEY, raw.span, format!("{subject} does not say when it may run")).help(
                "add `windows = [{ days = \"all\", from = \"15:00\", to = \"18:00\" }]`, or `always = true`",
            ),
        );
    }
}

/// Reports settings about cost that contradict each other.
fn check_costs(raw: &RawEntry, names: &DefinedNames<'_>) {
    let free = raw.cost.filter(|cost| cost.value == TimeCost::Free);
    if let (Some(cost), Some(budget)) = (free, raw.budgets.first()) {
        names.faults.push(
            ConfigFault::new(code::INVALID, budget.span, "a free entry uses no budget")
                .related(cost.span, "free because of this")
                .help("remove `budgets`, or `cost = \"free\"`"),
        );
    }
    if let Some(cost) = free {
        check_free_quotas(raw, cost.span, names);
    }
    let Some(earns) = &raw.earns else { return };
    if let Some(own) = raw.budgets.iter().find(|budget| budget.value == earns.budget.value) {
        let message =
            format!("this entry uses the budget `{}` and earns time for it", escape_name(&own.value));
        names.faults.push(
            ConfigFault::new(code::INVALID, earns.budget.span, message)
                .related(own.span, "used here")
                .help("earn time for another budget, or remove this one from `budgets`"),
        );
    }
}

/// Reports quotas of a free entry, because they have no effect. Quotas in `[defaults]` are meant for other entries.
fn check_free_quotas(raw: &RawEntry, free: Span, names: &DefinedNames<'_>) {
    let daily = raw.limits.daily.as_ref().filter(|daily| daily.limits_anything()).map(|daily| daily.span);
    let weekly = raw.limits.weekly.filter(|weekly| weekly.value.limit().is_some()).map(|weekly| weekly.span);
    for (key, place) in [("daily_quota", daily), ("weekly_quota", weekly)] {
        let Some(place) = place else { continue };
        let message = format!("`{key}` has no effect on a free entry");
        names.faults.push(
            ConfigFault::new(code::INVALID, place, message)
                .related(free, "free because of this")
                .help(format!("remove `{key}`, or `cost = \"free\"`")),
        );
    }
}
