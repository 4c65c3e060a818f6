//! Who may do what (S11.3).

use std::collections::{BTreeMap, BTreeSet};

use shepherd_api::ClientRole;
use shepherd_core::policy::{AccessPolicy, SystemAccount};
use ward_diag::{ConfigFault, FaultCollector, Span, code};

use crate::raw::RawPolicy;
use crate::read::format_account;

/// The roles. Whoever has a profile may launch without being named again: their time is counted, after all.
pub(super) fn compile_access(raw: &RawPolicy, faults: &FaultCollector) -> AccessPolicy {
    check_roles(raw, faults);
    check_profiles(raw, faults);
    let mut rules: Vec<(SystemAccount, ClientRole)> =
        raw.access.rules.iter().map(|(account, role)| (account.value.clone(), *role)).collect();
    let named: BTreeSet<SystemAccount> = rules.iter().map(|(account, _)| account.clone()).collect();
    let of_profiles = raw.profiles.iter().flat_map(|profile| &profile.accounts);
    let unnamed = of_profiles.filter(|account| !named.contains(&account.value));
    rules.extend(unnamed.map(|account| (account.value.clone(), ClientRole::Shell)));
    AccessPolicy { rules, others: raw.access.others }
}

/// Nobody has two roles.
fn check_roles(raw: &RawPolicy, faults: &FaultCollector) {
    let mut seen: BTreeMap<&SystemAccount, Span> = BTreeMap::new();
    for (account, _) in &raw.access.rules {
        if let Some(first) = seen.insert(&account.value, account.span) {
            let message = format!("`{}` is named twice", format_account(&account.value));
            faults.push(
                ConfigFault::new(code::DUPLICATE, account.span, message)
                    .related(first, "first named here")
                    .help("keep one: administrators may do what shells may, and shells what observers may"),
            );
        }
    }
}

/// Nobody plays on the time of two.
fn check_profiles(raw: &RawPolicy, faults: &FaultCollector) {
    let mut seen: BTreeMap<&SystemAccount, (usize, Span)> = BTreeMap::new();
    for (place, profile) in raw.profiles.iter().enumerate() {
        for account in &profile.accounts {
            let Some((other, first)) = seen.insert(&account.value, (place, account.span)) else { continue };
            let name = format_account(&account.value);
            let (message, help) = if other == place {
                (format!("`{name}` is named twice"), "take one of them out")
            } else {
                let help = "take it out of one of them, or nobody knows whose time is used";
                (format!("`{name}` can't belong to two profiles"), help)
            };
            faults.push(
                ConfigFault::new(code::DUPLICATE, account.span, message)
                    .related(first, "first named here")
                    .help(help),
            );
        }
    }
}
