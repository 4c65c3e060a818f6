//! Describes a policy in plain sentences for `shepherd policy show`, entry by entry, with defaults filled in.

mod enforcement;
mod formatting;

use shepherd_api::Language;
use shepherd_core::policy::{
    AvailabilityPolicy, DEFAULT_CRASH_WITHIN, DateException, DayRule, EntrySlot, OnReload, OnShutdown,
    Policy, PolicyEntry, PolicyRules, SuspendedTime, TimeCost,
};
use shepherd_util::{EntryId, ExactDuration};

pub(crate) use self::formatting::day_name;
use self::formatting::{
    describe_bedtime, describe_quota, format_day_range, format_days, format_hours, join_words,
};

/// Describes the policy in plain sentences.
#[must_use]
pub fn describe_policy(policy: &Policy) -> String {
    let rules = policy.rules();
    let mut lines = describe_household(rules);
    lines.extend(enforcement::describe_enforcement(rules));
    for exception in &rules.exceptions {
        lines.push(describe_exception(exception, policy));
    }
    for entry in policy.entries() {
        lines.push(String::new());
        lines.push(format!("{} ({})", entry.label, entry.entry_id));
        lines.extend(describe_entry(entry, policy).into_iter().map(|sentence| format!("  {sentence}")));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn describe_household(rules: &PolicyRules) -> Vec<String> {
    let mut lines = Vec::new();
    let profiles: Vec<&str> = rules.profiles.values().map(|profile| profile.label.as_str()).collect();
    lines.push(format!("Profiles: {}.", join_words(&profiles)));
    for (profile, bedtime) in &rules.bedtimes {
        let label = rules.profiles.get(profile).map_or(profile.as_str(), |profile| &profile.label);
        lines.push(format!("Bedtime of {label}: {}.", describe_bedtime(bedtime).join("; ")));
    }
    let zone = rules.zone.as_ref().and_then(|zone| zone.iana_name());
    lines.push(format!("All hours are in the time zone {}.", zone.unwrap_or("of this machine")));
    match rules.language {
        Language::English => {}
        Language::German => lines.push("Warnings, notifications and reasons are in German.".to_owned()),
    }
    for budget in rules.budgets.values() {
        let mut amounts = describe_quota(&budget.daily);
        amounts.extend(budget.weekly.map(|amount| format!("{} a week", ExactDuration(amount))));
        lines.push(format!("Budget {}: {}.", budget.label, amounts.join("; ")));
    }
    if !rules.modes.names.is_empty() {
        lines.push(format!("The usual mode is {}.", rules.modes.default));
    }
    for (from, to, mode) in &rules.modes.by_date {
        lines.push(format!("{}: the mode is {mode}.", format_day_range(*from, *to)));
    }
    if let Some(breaks) = rules.breaks {
        let (after, length) = (ExactDuration(breaks.after), ExactDuration(breaks.length));
        lines.push(format!("After {after} without a pause, a break of {length} is required."));
    }
    if let Some(extra) = rules.ceilings.extra_per_day {
        lines.push(format!("At most {} of extra time can be granted per day.", ExactDuration(extra)));
    }
    if let Some(time) = rules.ceilings.open_until {
        lines.push(format!("No grant can allow anything after {time}."));
    }
    lines.push(match rules.suspended_time {
        SuspendedTime::Free => "Time while the machine sleeps doesn't count.".to_owned(),
        SuspendedTime::Counts => "Time while the machine sleeps counts, too.".to_owned(),
    });
    lines.push(match rules.on_reload {
        OnReload::KeepPlan => "When these rules change, a running session keeps its time.".to_owned(),
        OnReload::Replan => "When these rules change, they also apply to a running session.".to_owned(),
    });
    if rules.on_shutdown == OnShutdown::EndSessions {
        lines.push("When Shepherd stops, it stops the running session first.".to_owned());
    }
    lines
}

fn describe_exception(exception: &DateException, policy: &Policy) -> String {
    let is_plural = exception.entries.as_ref().is_some_and(|entries| entries.len() > 1);
    let (is, has) = if is_plural { ("are", "have") } else { ("is", "has") };
    let rule = match &exception.rule {
        DayRule::Closed => format!("{is} closed"),
        DayRule::Open => format!("{is} open all day"),
        DayRule::Windows(windows) => {
            let windows: Vec<String> = windows.iter().map(|(from, to)| format_hours(*from, *to)).collect();
            format!("{is} open {}", windows.join(" and "))
        }
        DayRule::AsOn(day) => format!("{has} the hours of a {}", day_name(*day)),
    };
    let what = match &exception.entries {
        None => "everything".to_owned(),
        Some(entries) => join_words(&entries.iter().map(|id| entry_label(policy, id)).collect::<Vec<_>>()),
    };
    let label = if exception.label.is_empty() { String::new() } else { format!(" ({})", exception.label) };
    format!("{}{label}: {what} {rule}.", format_day_range(exception.from, exception.to))
}

/// Returns the label of an entry, or its id if the policy does not have the entry.
fn entry_label<'p>(policy: &'p Policy, entry_id: &'p EntryId) -> &'p str {
    policy.entry(entry_id).map_or(entry_id.as_str(), |entry| &entry.label)
}

fn describe_entry(entry: &PolicyEntry, policy: &Policy) -> Vec<String> {
    let rules = policy.rules();
    let mut lines = Vec::new();
    if entry.kind.is_login() {
        lines.extend(enforcement::describe_login(&entry.run.login));
    }
    if let Some(disabled) = &entry.disabled {
        let reason = disabled.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        lines.push(format!("Switched off{reason}."));
    }
    if let Some(profiles) = &entry.profiles {
        let label = |id| rules.profiles.get(id).map(|profile| profile.label.as_str());
        lines.push(format!(
            "Only for {}.",
            join_words(&profiles.iter().filter_map(label).collect::<Vec<_>>())
        ));
    }
    match &entry.availability {
        AvailabilityPolicy::Always => lines.push("At any time.".to_owned()),
        AvailabilityPolicy::Windows(windows) => lines.extend(windows.iter().map(|window| {
            let modes: Vec<&str> = window.modes.iter().flatten().map(String::as_str).collect();
            let modes = if modes.is_empty() {
                String::new()
            } else {
                format!(", in the mode {}", modes.join(" or "))
            };
            format!("{} {}{modes}.", format_days(window.days), format_hours(window.start, window.end))
        })),
    }
    lines.extend(describe_limits(entry, rules));
    if let Some(unlock) = &entry.unlock {
        lines.push(format!(
            "Only after {} of {} on the same day.",
            ExactDuration(unlock.at_least),
            entry_label(policy, &unlock.entry_id)
        ));
    }
    if let Some(earning) = &entry.earns {
        let label = rules.budgets.get(&earning.budget).map_or("", |budget| &budget.label);
        let (each, earned) = (ExactDuration(earning.for_each), ExactDuration(earning.earned));
        let ceiling = ExactDuration(earning.ceiling);
        lines.push(format!("Every {each} of use earns {earned} for {label}, at most {ceiling} a day."));
    }
    let warnings = entry.warnings.warnings().iter();
    let times: Vec<String> = warnings.map(|warning| ExactDuration(warning.before).to_string()).collect();
    if !times.is_empty() {
        lines.push(format!("Warnings {} before the end.", join_words(&times)));
    }
    lines.extend(enforcement::describe_run(&entry.run));
    lines
}

fn describe_limits(entry: &PolicyEntry, rules: &PolicyRules) -> Vec<String> {
    let limits = &entry.limits;
    let mut lines = vec![match limits.max_run {
        Some(longest) => format!("At most {} per run.", ExactDuration(longest)),
        None => "No limit for a single run.".to_owned(),
    }];
    let mut quotas = describe_quota(&limits.daily_quota);
    quotas.extend(limits.weekly_quota.map(|amount| format!("{} a week", ExactDuration(amount))));
    if entry.slot == EntrySlot::Background {
        lines.push("Runs beside other entries.".to_owned());
    }
    if entry.cost == TimeCost::Free {
        lines.push("Its time is free.".to_owned());
    } else if !quotas.is_empty() {
        lines.push(format!("Time allowed: {}.", quotas.join("; ")));
    }
    let label = |id| rules.budgets.get(id).map(|budget| budget.label.as_str());
    let budgets: Vec<&str> = entry.budgets.iter().filter_map(label).collect();
    if !budgets.is_empty() {
        let noun = if budgets.len() == 1 { "budget" } else { "budgets" };
        lines.push(format!("Uses the {noun} {}.", join_words(&budgets)));
    }
    if !limits.cooldown_after_run.is_zero() {
        lines.push(format!("Pause of {} after each run.", ExactDuration(limits.cooldown_after_run)));
        if limits.crash_within.is_zero() {
            lines.push("The pause also follows a crash.".to_owned());
        } else if limits.crash_within != DEFAULT_CRASH_WITHIN {
            let soon = ExactDuration(limits.crash_within);
            lines.push(format!("No pause after a crash within {soon} of the launch."));
        }
    }
    lines
}
