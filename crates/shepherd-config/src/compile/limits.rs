//! Compiles limits and warnings, from the entry or else from the defaults (S2.6).

use std::time::Duration;

use shepherd_core::policy::{
    DEFAULT_CRASH_WITHIN, DailyQuota, LimitsPolicy, WarningPolicy, WarningThreshold,
};
use shepherd_util::{ExactDuration, format_duration};
use ward_diag::{ConfigFault, FaultCollector, Span, Spanned, code};

use super::names::{DefinedNames, NameKind};
use crate::raw::{RawDefaults, RawEntry, RawQuota, RawWarning, TimeLimitSetting};
use crate::read::{SHORT_PLAY, escape_name};

pub(super) fn compile_limits(
    raw: &RawEntry,
    defaults: &RawDefaults,
    names: &DefinedNames<'_>,
) -> LimitsPolicy {
    let (own, other) = (&raw.limits, &defaults.limits);
    LimitsPolicy {
        max_run: own.max_run.or(other.max_run).and_then(|longest| longest.value.limit()),
        daily_quota: compile_quota(own.daily.as_ref().or(other.daily.as_ref()), names),
        weekly_quota: own.weekly.or(other.weekly).and_then(|weekly| weekly.value.limit()),
        cooldown_after_run: own.cooldown.or(other.cooldown).unwrap_or_default(),
        crash_within: own.crash_within.or(other.crash_within).unwrap_or(DEFAULT_CRASH_WITHIN),
    }
}

/// Compiles a quota. A missing quota means no limit.
pub(super) fn compile_quota(raw: Option<&RawQuota>, names: &DefinedNames<'_>) -> DailyQuota {
    let Some(raw) = raw else { return DailyQuota::default() };
    let base = raw.base.map(TimeLimitSetting::limit);
    let by_mode = raw.by_mode.iter().map(|(mode, amounts)| {
        names.look_up(NameKind::Mode, mode);
        let mut merged = base;
        for (place, amount) in merged.iter_mut().zip(amounts) {
            if let Some(amount) = amount {
                *place = amount.limit();
            }
        }
        (mode.value.clone(), merged)
    });
    DailyQuota { base, by_mode: by_mode.collect() }
}

/// Compiles the warnings of an entry: its own, or those of the defaults that fit into its longest run (S2.5).
pub(super) fn compile_warnings(
    raw: &RawEntry,
    defaults: &RawDefaults,
    faults: &FaultCollector,
) -> WarningPolicy {
    let max_run = raw.limits.max_run.or(defaults.limits.max_run);
    let id = raw.id.as_ref().map(|id| id.value.as_str());
    check_warnings(id, raw.warnings.as_deref(), max_run, faults);
    let longest = max_run.and_then(|longest| longest.value.limit());
    let fits = |warning: &&RawWarning| longest.is_none_or(|longest| warning.before.value < longest);
    let chosen = raw.warnings.as_deref().or(defaults.warnings.as_deref()).unwrap_or_default();
    let warning = |raw: &RawWarning| WarningThreshold {
        before: raw.before.value,
        severity: raw.severity,
        message_template: raw.message.clone(),
    };
    WarningPolicy::new(chosen.iter().filter(fits).map(warning).collect())
}

/// Returns the number of seconds if a short duration was written as a number without a unit, which takes no more room
/// than its digits.
fn bare_seconds(duration: Duration, written: Span) -> Option<u64> {
    let seconds = duration.as_secs();
    let is_bare = written.end - written.start == seconds.to_string().len();
    (is_bare && duration < SHORT_PLAY).then_some(seconds)
}

/// Reports warnings that would come before the start of the longest run.
pub(super) fn check_warnings(
    entry: Option<&str>,
    warnings: Option<&[RawWarning]>,
    max_run: Option<Spanned<TimeLimitSetting>>,
    faults: &FaultCollector,
) {
    let Some(Spanned { value: TimeLimitSetting::Limited(longest), span: max_run_span }) = max_run else {
        return;
    };
    for before in warnings.unwrap_or_default().iter().map(|warning| warning.before) {
        if before.value < longest {
            continue;
        }
        let (early, short) = (ExactDuration(before.value), ExactDuration(longest));
        let message = match entry {
            Some(id) => {
                format!(
                    "entry `{}` warns {early} before its end, but may only run for {short}",
                    escape_name(id)
                )
            }
            None => format!("the defaults warn {early} before the end, but allow runs of only {short}"),
        };
        let help = match bare_seconds(longest, max_run_span) {
            Some(seconds) => format!(
                "a number without a unit is in seconds; write `max_run = \"{seconds}m\"` for {seconds} minutes"
            ),
            None => format!("lower the warning below \"{}\", or raise `max_run`", format_duration(longest)),
        };
        faults.push(
            ConfigFault::new(code::INVALID, before.span, message)
                .related(max_run_span, "the longest run")
                .help(help),
        );
    }
}
