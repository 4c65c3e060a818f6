//! Compiles modes, exceptions and windows.

use std::collections::BTreeSet;

use shepherd_core::policy::{AvailabilityPolicy, DateException, HouseholdModes, TimeWindow};

use super::names::{DefinedNames, NameKind};
use crate::raw::{RawAvailability, RawException, RawModes, RawWindow, SpannedName};

/// Compiles the modes. The first one is the default unless the policy names another.
pub(super) fn compile_modes(raw: &RawModes, names: &DefinedNames<'_>) -> HouseholdModes {
    names.look_up_all(NameKind::Mode, &raw.names);
    raw.default.iter().for_each(|mode| names.look_up(NameKind::Mode, mode));
    raw.dates.iter().for_each(|(_, mode)| names.look_up(NameKind::Mode, mode));
    let default = raw.default.as_ref().or(raw.names.first());
    HouseholdModes {
        names: raw.names.iter().map(|mode| mode.value.clone()).collect(),
        default: default.map(|mode| mode.value.clone()).unwrap_or_default(),
        by_date: raw.dates.iter().map(|(days, mode)| (days.from, days.to, mode.value.clone())).collect(),
    }
}

pub(super) fn compile_exception(raw: &RawException, names: &DefinedNames<'_>) -> Option<DateException> {
    raw.entries.iter().for_each(|entries| names.look_up_all(NameKind::Entry, entries));
    let days = raw.days?;
    let entries = raw
        .entries
        .as_ref()
        .map(|entries| entries.iter().map(|name| name.value.parse().ok()).collect::<Option<BTreeSet<_>>>());
    let entries = match entries {
        None => None,
        Some(parsed) => Some(parsed?),
    };
    Some(DateException {
        from: days.from,
        to: days.to,
        label: raw.label.clone().unwrap_or_default(),
        entries,
        rule: raw.rule.clone()?,
    })
}

/// Compiles windows or `always`. Returns `None` if neither is set here.
pub(super) fn compile_availability(raw: &RawAvailability) -> Option<AvailabilityPolicy> {
    match raw {
        RawAvailability::Unspecified | RawAvailability::Unreadable => None,
        RawAvailability::Always => Some(AvailabilityPolicy::Always),
        RawAvailability::Windows(windows) => {
            Some(AvailabilityPolicy::Windows(windows.iter().map(compile_window).collect()))
        }
    }
}

fn compile_window(raw: &RawWindow) -> TimeWindow {
    let text = |name: &SpannedName| name.value.clone();
    TimeWindow {
        days: raw.days,
        start: raw.start,
        end: raw.end,
        modes: raw.modes.as_ref().map(|modes| modes.iter().map(text).collect()),
    }
}

/// Looks up the modes that windows name.
pub(super) fn look_up_modes(raw: &RawAvailability, names: &DefinedNames<'_>) {
    if let RawAvailability::Windows(windows) = raw {
        let lists = windows.iter().filter_map(|window| window.modes.as_ref());
        lists.for_each(|modes| names.look_up_all(NameKind::Mode, modes));
    }
}
