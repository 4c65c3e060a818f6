//! Who may do what (S11.3).

use std::collections::{BTreeMap, BTreeSet};

use shepherd_api::Role;
use shepherd_core::policy::{Access, Account};
use ward_diag::{Fault, Faults, Span, code};

use crate::raw::RawPolicy;
use crate::read::written;

/// The roles. Whoever has a profile may launch without being named again: their time is counted, after all.
pub(super) fn access(raw: &RawPolicy, faults: &Faults) -> Access {
    check_roles(raw, faults);
    check_profiles(raw, faults);
    let mut rules: Vec<(Account, Role)> =
        raw.access.rules.iter().map(|(account, role)| (account.value.clone(), *role)).collect();
    let named: BTreeSet<Account> = rules.iter().map(|(account, _)| account.clone()).collect();
    let of_profiles = raw.profiles.iter().flat_map(|profile| &profile.accounts);
    let unnamed = of_profiles.filter(|account| !named.contains(&account.value));
    rules.extend(unnamed.map(|account| (account.value.clone(), Role::Shell)));
    Access { rules, others: raw.access.others }
}

/// Nobody has two roles.
fn check_roles(raw: &RawPolicy, faults: &Faults) {
    let mut seen: BTreeMap<&Account, Span> = BTreeMap::new();
    for (account, _) in &raw.access.rules {
        if let Some(first) = seen.insert(&account.value, account.span) {
            let message = format!("`{}` is named twice", written(&account.value));
            faults.push(
                Fault::new(code::DUPLICATE, account.span, message)
                    .related(first, "first named here")
                    .help("keep one: administrators may do what shells may, and shells what observers may"),
            );
        }
    }
}

/// Nobody plays on the time of two.
fn check_profiles(raw: &RawPolicy, faults: &Faults) {
    let mut seen: BTreeMap<&Account, (usize, Span)> = BTreeMap::new();
    for (place, profile) in raw.profiles.iter().enumerate() {
        for account in &profile.accounts {
            let Some((other, first)) = seen.insert(&account.value, (place, account.span)) else { continue };
            let name = written(&account.value);
            let (message, help) = if other == place {
                (format!("`{name}` is named twice"), "take one of them out")
            } else {
                let help = "take it out of one of them, or nobody knows whose time is used";
                (format!("`{name}` can't belong to two profiles"), help)
            };
            faults.push(
                Fault::new(code::DUPLICATE, account.span, message)
                    .related(first, "first named here")
                    .help(help),
            );
        }
    }
}
