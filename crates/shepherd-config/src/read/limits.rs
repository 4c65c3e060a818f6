//! Reads limits and quotas.

use ward_diag::{ConfigFault, FaultCollector, Span, TomlTable, TomlValue, ValueKind, code};

use super::time::{self, DAY_GROUPS, FULL_NAMES, WEEKDAYS};
use crate::raw::{RawLimits, RawQuota, SpannedName, TimeLimitSetting};

/// Reads the limits of an entry or of `[defaults]`.
pub(super) fn read_limits(table: &mut TomlTable<'_>) -> RawLimits {
    RawLimits {
        max_run: table.optional_with("max_run", |value| {
            time::read_max_run(value).map(|longest| value.spanned(longest))
        }),
        daily: table.optional_with("daily_quota", read_quota),
        weekly: table.optional_with("weekly_quota", |value| {
            time::read_amount(value).map(|amount| value.spanned(amount))
        }),
        cooldown: table.value_or_alias("cooldown_after_run", "min_gap_between_runs").and_then(|value| {
            time::warn_about_seconds(value, time::SHORT_PLAY);
            time::read_duration(value)
        }),
        crash_within: table.optional_with("crash_within", time::read_duration),
    }
}

/// Reads an amount for every day, or a table of amounts by day and by mode.
pub(super) fn read_quota(value: TomlValue<'_>) -> Option<RawQuota> {
    let span = value.span();
    if !matches!(value.kind(), ValueKind::Table) {
        return time::read_amount(value).map(|amount| RawQuota {
            span,
            base: [amount; 7],
            by_mode: Vec::new(),
        });
    }
    let mut table = value.table()?;
    let (name, faults) = (value.name(), table.faults());
    let modes = table.optional_with("modes", |value| value.inline_table("{ holiday = \"2h\" }"));
    let modes = modes.map(read_quota_by_mode);
    let days = read_amounts_by_day(&mut table);
    let (found, table_span) = (faults.len(), table.span());
    table.finish();
    // A misspelt day is not reported as missing as well.
    let base = if faults.len() == found {
        require_every_day(days?, &name, table_span, faults)?
    } else {
        return None;
    };
    Some(RawQuota { span, base, by_mode: modes.unwrap_or_default() })
}

fn read_quota_by_mode(mut table: TomlTable<'_>) -> Vec<(SpannedName, [Option<TimeLimitSetting>; 7])> {
    let modes = table.entries().into_iter();
    modes.filter_map(|(mode, value)| Some((mode.map(str::to_owned), read_mode_amounts(value)?))).collect()
}

fn read_mode_amounts(value: TomlValue<'_>) -> Option<[Option<TimeLimitSetting>; 7]> {
    if !matches!(value.kind(), ValueKind::Table) {
        return time::read_amount(value).map(|amount| [Some(amount); 7]);
    }
    let mut table = value.table()?;
    let amounts = read_amounts_by_day(&mut table);
    table.finish();
    amounts
}

/// Reads amounts by day. A single day overrides `weekdays` and `weekends`, which override `all`.
fn read_amounts_by_day(table: &mut TomlTable<'_>) -> Option<[Option<TimeLimitSetting>; 7]> {
    let mut amounts = [None; 7];
    let mut readable = true;
    for (group, days) in DAY_GROUPS.iter().rev() {
        let Some(value) = table.value(group) else { continue };
        let amount = time::read_amount(value);
        readable &= amount.is_some();
        for (_, place) in amounts.iter_mut().enumerate().filter(|(day, _)| days.contains(*day)) {
            *place = amount;
        }
    }
    for (day, place) in WEEKDAYS.iter().zip(&mut amounts) {
        let Some(value) = table.value(day) else { continue };
        *place = time::read_amount(value);
        readable &= place.is_some();
    }
    for (full, short) in FULL_NAMES.iter().zip(WEEKDAYS) {
        let (Some(span), Some(_)) = (table.key_span(full), table.value(full)) else { continue };
        let message = format!("`{full}` must be written as `{short}`");
        table
            .faults()
            .push(ConfigFault::new(code::UNKNOWN_KEY, span, message).help(format!("write `{short}`")));
        readable = false;
    }
    readable.then_some(amounts)
}

/// Reports days without an amount, which would have no limit.
fn require_every_day(
    amounts: [Option<TimeLimitSetting>; 7],
    name: &str,
    span: Span,
    faults: &FaultCollector,
) -> Option<[TimeLimitSetting; 7]> {
    let missing: Vec<&str> =
        WEEKDAYS.iter().zip(&amounts).filter(|(_, amount)| amount.is_none()).map(|(day, _)| *day).collect();
    if !missing.is_empty() {
        faults.push(
            ConfigFault::new(code::MISSING_KEY, span, format!("{name} has no amount for {}", missing.join(", ")))
                .help("add `weekdays`, `weekends`, `all` or single days; an amount can also be \"unlimited\" or \"none\""),
        );
        return None;
    }
    Some(amounts.map(|amount| amount.unwrap_or(TimeLimitSetting::Unlimited)))
}
