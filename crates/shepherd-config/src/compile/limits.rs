//! Limits and warnings: what an entry says, and else the defaults (S2.6).

use shepherd_core::policy::{DailyQuota, LimitsPolicy, Warning, WarningPolicy};
use shepherd_util::{HumanDuration, format_duration};
use ward_diag::{Fault, Faults, Spanned, code};

use super::names::{Names, What};
use crate::raw::{Amount, RawDefaults, RawEntry, RawQuota, RawWarning};
use crate::read::shown;

/// The limits of an entry.
pub(super) fn limits(raw: &RawEntry, defaults: &RawDefaults, names: &Names<'_>) -> LimitsPolicy {
    let (own, other) = (&raw.limits, &defaults.limits);
    LimitsPolicy {
        max_run: own.max_run.or(other.max_run).and_then(|longest| longest.value.limit()),
        daily_quota: quota(own.daily.as_ref().or(other.daily.as_ref()), names),
        weekly_quota: own.weekly.or(other.weekly).and_then(|weekly| weekly.value.limit()),
        cooldown_after_run: own.cooldown.or(other.cooldown).unwrap_or_default(),
    }
}

/// A quota; none is without limit.
pub(super) fn quota(raw: Option<&RawQuota>, names: &Names<'_>) -> DailyQuota {
    let Some(raw) = raw else { return DailyQuota::default() };
    let base = raw.base.map(Amount::limit);
    let by_mode = raw.by_mode.iter().map(|(mode, amounts)| {
        names.look_up(What::Mode, mode);
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

/// The warnings of an entry: its own, or those of the defaults that fit into its longest run (S2.5).
pub(super) fn warnings(raw: &RawEntry, defaults: &RawDefaults, faults: &Faults) -> WarningPolicy {
    let max_run = raw.limits.max_run.or(defaults.limits.max_run);
    let id = raw.id.as_ref().map(|id| id.value.as_str());
    check_warnings(id, raw.warnings.as_deref(), max_run, faults);
    let longest = max_run.and_then(|longest| longest.value.limit());
    let fits = |warning: &&RawWarning| longest.is_none_or(|longest| warning.before.value < longest);
    let chosen = raw.warnings.as_deref().or(defaults.warnings.as_deref()).unwrap_or_default();
    let warning = |raw: &RawWarning| Warning {
        before: raw.before.value,
        severity: raw.severity,
        message_template: raw.message.clone(),
    };
    WarningPolicy::new(chosen.iter().filter(fits).map(warning).collect())
}

/// A warning that would come before the session could begin is a slip.
pub(super) fn check_warnings(
    entry: Option<&str>,
    warnings: Option<&[RawWarning]>,
    max_run: Option<Spanned<Amount>>,
    faults: &Faults,
) {
    let Some(Spanned { value: Amount::Limited(longest), span: said_at }) = max_run else { return };
    for before in warnings.unwrap_or_default().iter().map(|warning| warning.before) {
        if before.value < longest {
            continue;
        }
        let (early, short) = (HumanDuration(before.value), HumanDuration(longest));
        let message = match entry {
            Some(id) => {
                format!("entry `{}` warns {early} before its end, but may only run for {short}", shown(id))
            }
            None => format!("the defaults warn {early} before the end, but allow runs of only {short}"),
        };
        let help = format!("lower the warning below \"{}\", or raise `max_run`", format_duration(longest));
        faults.push(
            Fault::new(code::INVALID, before.span, message).related(said_at, "the longest run").help(help),
        );
    }
}
