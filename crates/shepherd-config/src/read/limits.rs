//! How long something may run.

use ward_diag::{Fault, Faults, Shape, Span, Table, Value, code};

use super::time::{self, DAY_GROUPS, FULL_NAMES, WEEKDAYS};
use crate::raw::{Amount, Name, RawLimits, RawQuota};

/// The limits that an entry or `[defaults]` names.
pub(super) fn limits(table: &mut Table<'_>) -> RawLimits {
    RawLimits {
        max_run: table
            .optional_with("max_run", |value| time::max_run(value).map(|longest| value.spanned(longest))),
        daily: table.optional_with("daily_quota", quota),
        weekly: table
            .optional_with("weekly_quota", |value| time::amount(value).map(|amount| value.spanned(amount))),
        cooldown: table
            .value_of_either("cooldown_after_run", "min_gap_between_runs")
            .and_then(time::duration),
    }
}

/// An amount for every day, or a table of amounts by day and by mode.
pub(super) fn quota(value: Value<'_>) -> Option<RawQuota> {
    let span = value.span();
    if !matches!(value.shape(), Shape::Table) {
        return time::amount(value).map(|amount| RawQuota { span, base: [amount; 7], by_mode: Vec::new() });
    }
    let mut table = value.table()?;
    let (name, faults) = (value.name(), table.faults());
    let modes = table.table("modes").map(by_mode);
    let days = by_day(&mut table);
    let (found, table_span) = (faults.len(), table.span());
    table.finish();
    // A misspelt day is not also a forgotten one.
    let base =
        if faults.len() == found { every_day(days?, &name, table_span, faults)? } else { return None };
    Some(RawQuota { span, base, by_mode: modes.unwrap_or_default() })
}

fn by_mode(mut table: Table<'_>) -> Vec<(Name, [Option<Amount>; 7])> {
    let modes = table.entries().into_iter();
    modes.filter_map(|(mode, value)| Some((mode.map(str::to_owned), amounts_of_mode(value)?))).collect()
}

fn amounts_of_mode(value: Value<'_>) -> Option<[Option<Amount>; 7]> {
    if !matches!(value.shape(), Shape::Table) {
        return time::amount(value).map(|amount| [Some(amount); 7]);
    }
    let mut table = value.table()?;
    let amounts = by_day(&mut table);
    table.finish();
    amounts
}

/// Amounts by day. A day by its name wins over `weekdays` and `weekends`, and these over `all`.
fn by_day(table: &mut Table<'_>) -> Option<[Option<Amount>; 7]> {
    let mut amounts = [None; 7];
    let mut readable = true;
    for (group, days) in DAY_GROUPS.iter().rev() {
        let Some(value) = table.value(group) else { continue };
        let amount = time::amount(value);
        readable &= amount.is_some();
        for (_, place) in amounts.iter_mut().enumerate().filter(|(day, _)| days.contains(*day)) {
            *place = amount;
        }
    }
    for (day, place) in WEEKDAYS.iter().zip(&mut amounts) {
        let Some(value) = table.value(day) else { continue };
        *place = time::amount(value);
        readable &= place.is_some();
    }
    for (full, short) in FULL_NAMES.iter().zip(WEEKDAYS) {
        let (Some(span), Some(_)) = (table.key_span(full), table.value(full)) else { continue };
        let message = format!("days have short names here: not `{full}`");
        table.faults().push(Fault::new(code::UNKNOWN_KEY, span, message).help(format!("write `{short}`")));
        readable = false;
    }
    readable.then_some(amounts)
}

/// A day that nobody thought of would have no limit.
fn every_day(amounts: [Option<Amount>; 7], name: &str, span: Span, faults: &Faults) -> Option<[Amount; 7]> {
    let forgotten: Vec<&str> =
        WEEKDAYS.iter().zip(&amounts).filter(|(_, amount)| amount.is_none()).map(|(day, _)| *day).collect();
    if !forgotten.is_empty() {
        faults.push(
            Fault::new(code::MISSING_KEY, span, format!("{name} says nothing about {}", forgotten.join(", ")))
                .help("add `weekdays`, `weekends`, `all` or the days themselves; \"unlimited\" and \"none\" are amounts too"),
        );
        return None;
    }
    Some(amounts.map(|amount| amount.unwrap_or(Amount::Unlimited)))
}
