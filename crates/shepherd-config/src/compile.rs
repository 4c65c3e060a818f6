//! From what a file says to a [`Policy`]: names are looked up, defaults filled in, and what makes no sense together
//! is found. Goes on after each fault; the policy counts only if there was none.

mod access;
mod calendar;
mod entry;
mod limits;
mod names;
mod run;
mod unlock;

use std::collections::BTreeMap;

use shepherd_core::policy::{Budget, Policy, Profile, Rules};
use shepherd_util::{BudgetId, ProfileId};
use ward_diag::{Fault, Faults, Span, code};

use self::names::{Names, What};
use crate::raw::{RawPolicy, RawProfile};

/// Makes a policy of it.
pub(crate) fn policy(raw: &RawPolicy, faults: &Faults) -> Option<Policy> {
    let names = Names::of(raw, faults);
    faults.duplicates("id", raw.entries.iter().filter_map(|entry| entry.id.as_ref()));
    let modes = calendar::modes(&raw.modes, &names);
    calendar::look_up_modes(&raw.defaults.availability, &names);
    let exceptions: Vec<_> =
        raw.exceptions.iter().map(|exception| calendar::exception(exception, &names)).collect();
    limits::check_warnings(None, raw.defaults.warnings.as_deref(), raw.defaults.limits.max_run, faults);
    let budgets: Vec<_> = raw
        .budgets
        .iter()
        .map(|budget| {
            let daily = limits::quota(budget.daily.as_ref(), &names);
            let label = budget.label.clone().unwrap_or_else(|| budget.id.value.clone());
            let weekly = budget.weekly.and_then(crate::raw::Amount::limit);
            Some((budget.id.value.parse::<BudgetId>().ok()?, Budget { label, daily, weekly }))
        })
        .collect();
    let entries: Vec<_> =
        raw.entries.iter().map(|entry| entry::entry(entry, &raw.defaults, &names)).collect();
    run::check(raw, faults);
    let access = access::access(raw, faults);
    unlock::check(&raw.entries, &raw.defaults, faults);
    look_up_examples(raw, &names);
    if !faults.is_empty() {
        return None;
    }
    let standard = Rules::default();
    let rules = Rules {
        zone: raw.zone.clone(),
        profiles: profiles(&raw.profiles)?,
        entries: entries.into_iter().collect::<Option<_>>()?,
        budgets: budgets.into_iter().collect::<Option<_>>()?,
        modes,
        exceptions: exceptions.into_iter().collect::<Option<_>>()?,
        breaks: raw.breaks,
        ceilings: raw.ceilings,
        suspended_time: raw.suspended_time.unwrap_or(standard.suspended_time),
        on_reload: raw.on_reload.unwrap_or(standard.on_reload),
        on_shutdown: raw.on_shutdown.unwrap_or(standard.on_shutdown),
        libraries: raw
            .libraries
            .iter()
            .map(|(name, library)| Some((name.value.clone(), library.clone()?)))
            .collect::<Option<_>>()?,
        drivers: raw
            .drivers
            .iter()
            .map(|(name, driver)| Some((name.value.clone(), driver.clone()?)))
            .collect::<Option<_>>()?,
        compositor: raw.compositor.clone().flatten(),
        access,
        watch: raw.watch.unwrap_or(standard.watch),
        launch_timeout: raw.launch_timeout.unwrap_or(standard.launch_timeout),
        stop_grace: raw.stop_grace.map_or(standard.stop_grace, |grace| grace.value),
        clock_tolerance: raw.clock_tolerance.unwrap_or(standard.clock_tolerance),
    };
    match Policy::new(rules) {
        Ok(policy) => Some(policy),
        Err(error) => {
            // All that it checks was checked above, with places. Should that ever not be so: no policy.
            faults.push(Fault::new(code::INVALID, Span::FILE, error.to_string()));
            None
        }
    }
}

fn look_up_examples(raw: &RawPolicy, names: &Names<'_>) {
    for example in raw.examples.iter().map(|example| &example.value) {
        names.look_up(What::Entry, &example.entry);
        example.profile.iter().for_each(|profile| names.look_up(What::Profile, profile));
        example.mode.iter().for_each(|mode| names.look_up(What::Mode, mode));
    }
}

/// A policy that names nobody is for one, who is called `default`.
fn profiles(raw: &[RawProfile]) -> Option<BTreeMap<ProfileId, Profile>> {
    if raw.is_empty() {
        return Some(Rules::default().profiles);
    }
    let profile = |profile: &RawProfile| {
        let label = profile.label.clone().unwrap_or_else(|| profile.id.value.clone());
        let accounts = profile.accounts.iter().map(|account| account.value.clone()).collect();
        Some((profile.id.value.parse().ok()?, Profile { label, accounts }))
    };
    raw.iter().map(profile).collect()
}
