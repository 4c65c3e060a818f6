//! Compiles a raw policy into a [`Policy`]: looks up names, fills in defaults and finds contradictions. Continues after a
//! fault, but returns a policy only if there is no fault.

mod access;
mod bedtime;
mod calendar;
mod entry;
mod limits;
mod login;
mod names;
mod run;
mod unlock;

use std::collections::BTreeMap;

use shepherd_core::policy::{Policy, PolicyRules, Profile, TimeBudget};
use shepherd_util::{BudgetId, ProfileId};
use ward_diag::{ConfigFault, FaultCollector, Span, code};

use self::names::{DefinedNames, NameKind};
use crate::raw::{RawPolicy, RawProfile};

pub(crate) fn compile_policy(raw: &RawPolicy, faults: &FaultCollector) -> Option<Policy> {
    let names = DefinedNames::collect_from(raw, faults);
    faults.report_duplicates("id", raw.entries.iter().filter_map(|entry| entry.id.as_ref()));
    let modes = calendar::compile_modes(&raw.modes, &names);
    calendar::look_up_modes(&raw.defaults.availability, &names);
    let exceptions: Vec<_> =
        raw.exceptions.iter().map(|exception| calendar::compile_exception(exception, &names)).collect();
    limits::check_warnings(None, raw.defaults.warnings.as_deref(), raw.defaults.limits.max_run, faults);
    let budgets: Vec<_> = raw
        .budgets
        .iter()
        .map(|budget| {
            let daily = limits::compile_quota(budget.daily.as_ref(), &names);
            let label = budget.label.clone().unwrap_or_else(|| budget.id.value.clone());
            let weekly = budget.weekly.and_then(crate::raw::TimeLimitSetting::limit);
            Some((budget.id.value.parse::<BudgetId>().ok()?, TimeBudget { label, daily, weekly }))
        })
        .collect();
    let entries: Vec<_> =
        raw.entries.iter().map(|entry| entry::compile_entry(entry, &raw.defaults, &names)).collect();
    run::check_ineffective_settings(raw, faults);
    let bedtimes = bedtime::compile_bedtimes(&raw.profiles, &names);
    let access = access::compile_access(raw, faults);
    login::check_logins(raw, faults);
    unlock::check_unlock_rules(&raw.entries, &raw.defaults, faults);
    look_up_examples(raw, &names);
    if !faults.is_empty() {
        return None;
    }
    let standard = PolicyRules::default();
    let rules = PolicyRules {
        zone: raw.zone.clone(),
        language: raw.language.unwrap_or(standard.language),
        profiles: compile_profiles(&raw.profiles)?,
        bedtimes: bedtimes?,
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
        reload_on_change: raw.watch.unwrap_or(standard.reload_on_change),
        launch_timeout: raw.launch_timeout.unwrap_or(standard.launch_timeout),
        stop_grace: raw.stop_grace.map_or(standard.stop_grace, |grace| grace.value),
        clock_tolerance: raw.clock_tolerance.unwrap_or(standard.clock_tolerance),
    };
    match Policy::new(rules) {
        Ok(policy) => Some(policy),
        Err(error) => {
            // Everything was checked above, with places. This keeps a mistake there from letting a bad policy through.
            faults.push(ConfigFault::new(code::INVALID, Span::FILE, error.to_string()));
            None
        }
    }
}

fn look_up_examples(raw: &RawPolicy, names: &DefinedNames<'_>) {
    for example in raw.examples.iter().map(|example| &example.value) {
        names.look_up(NameKind::Entry, &example.entry);
        example.profile.iter().for_each(|profile| names.look_up(NameKind::Profile, profile));
        example.mode.iter().for_each(|mode| names.look_up(NameKind::Mode, mode));
    }
}

/// Compiles the profiles. A policy without profiles has one, called `default`.
fn compile_profiles(raw: &[RawProfile]) -> Option<BTreeMap<ProfileId, Profile>> {
    if raw.is_empty() {
        return Some(PolicyRules::default().profiles);
    }
    let profile = |profile: &RawProfile| {
        let label = profile.label.clone().unwrap_or_else(|| profile.id.value.clone());
        let accounts = profile.accounts.iter().map(|account| account.value.clone()).collect();
        Some((profile.id.value.parse().ok()?, Profile { label, accounts }))
    };
    raw.iter().map(profile).collect()
}
