//! Checks entries that stand for being logged in (S19.2).

use std::collections::BTreeMap;

use shepherd_api::EntryKind;
use ward_diag::{ConfigFault, FaultCollector, Span, code};

use crate::raw::{RawEntry, RawPolicy, RawProfile};
use crate::read::escape_name;

/// Reports logins that belong to no account, and profiles with two logins.
pub(super) fn check_logins(raw: &RawPolicy, faults: &FaultCollector) {
    if raw.incomplete {
        return;
    }
    let is_login = |entry: &&RawEntry| entry.kind.kind.as_ref().is_some_and(EntryKind::is_login);
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    for entry in raw.entries.iter().filter(is_login) {
        let profiles: Vec<&RawProfile> =
            raw.profiles.iter().filter(|profile| is_for(entry, profile)).collect();
        if profiles.iter().all(|profile| profile.accounts.is_empty()) {
            let message = "this login belongs to no account, so nobody is limited by it";
            let help = "name the child's account: `[profiles.anna]`, and below it `accounts = [\"anna\"]`";
            faults.push(ConfigFault::new(code::INVALID, entry.span, message).help(help));
        }
        for profile in profiles {
            let Some(first) = seen.insert(&profile.id.value, entry.span) else { continue };
            let message = format!("the profile `{}` has a login already", escape_name(&profile.id.value));
            faults.push(
                ConfigFault::new(code::DUPLICATE, entry.span, message)
                    .related(first, "the other login")
                    .help("give each login its own `profiles`, or put all hours into one of them"),
            );
        }
    }
}

fn is_for(entry: &RawEntry, profile: &RawProfile) -> bool {
    let is_named =
        |names: &Vec<crate::raw::SpannedName>| names.iter().any(|name| name.value == profile.id.value);
    entry.profiles.as_ref().is_none_or(is_named)
}
