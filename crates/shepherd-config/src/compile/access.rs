//! Compiles the roles of accounts (S11.3).

use std::collections::{BTreeMap, BTreeSet};

use shepherd_api::ClientRole;
use shepherd_core::policy::{AccessPolicy, SystemAccount};
use ward_diag::{ConfigFault, FaultCollector, Span, code};

use crate::raw::RawPolicy;
use crate::read::format_account;

/// Compiles the roles. Accounts of a profile get the shell role unless another role is set, because their time is
/// counted.
pub(super) fn compile_access(raw: &RawPolicy, faults: &FaultCollector) -> AccessPolicy {
    check_roles(raw, faults);
    check_profiles(raw, faults);
    let mut rules: Vec<(SystemAccount, ClientRole)> =
        raw.access.rules.iter().map(|(account, role)| (account.value.clone(), *role)).collect();
    let named: BTreeSet<SystemAccount> = rules.iter().map(|(account, _)| account.clone()).collect();
    let profile_accounts = raw.profiles.iter().flat_map(|profile| &profile.accounts);
    let unnamed = profile_accounts.filter(|account| !named.contains(&account.value));
    rules.extend(unnamed.map(|account| (account.value.clone(), ClientRole::Shell)));
    AccessPolicy { rules, others: raw.access.others }
}

/// Reports accounts with two roles.
fn check_roles(raw: &RawPolicy, faults: &FaultCollector) {
    let mut seen: BTreeMap<&SystemAccount, Span> = BTreeMap::new();
    for (account, _) in &raw.access.rules {
        if let Some(first) = seen.insert(&account.value, account.span) {
            let message = format!("`{}` is named twice", format_account(&account.value));
            faults.push(
                ConfigFault::new(code::DUPLICATE, account.span, message)
                    .related(first, "first named here")
                    .help("keep one: administrators may do everything that shells may, and shells everything that observers may"),
            );
        }
    }
}

/// Reports accounts that belong to two profiles.
fn check_profiles(raw: &RawPolicy, faults: &FaultCollector) {
    let mut seen: BTreeMap<&SystemAccount, (usize, Span)> = BTreeMap::new();
    for (place, profile) in raw.profiles.iter().enumerate() {
        for account in &profile.accounts {
            let Some((other, first)) = seen.insert(&account.value, (place, account.span)) else { continue };
            let name = format_account(&account.value);
            let (message, help) = if other == place {
                (format!("`{name}` is named twice"), "remove one of them")
            } else {
                let help = "remove it from one of them, because its time must be charged to one profile";
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
