//! Reads the elements of `[[entries]]`.

use shepherd_core::policy::{DisabledReason, EntrySlot, TimeCost};
use shepherd_util::{EntryId, parse_duration};
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, code};

use super::key_advice::{self, PolicySection};
use super::{entry_kind, limits, run, time, values, warnings, windows};
use crate::raw::{RawEarning, RawEntry, RawUnlock};

const EARNS_EXAMPLE: &str = "{ budget = \"games\", for_each = \"20m\", earned = \"10m\", ceiling = \"30m\" }";

pub(super) fn read_entry(mut table: TomlTable<'_>) -> RawEntry {
    let span = table.span();
    let faults = table.faults();
    let id = table.required_with("id", |value| {
        let text = value.non_empty_text()?;
        Some(values::check_new_name(faults, value.spanned(text)))
    });
    table.help_if_missing("id", "add a short name that never changes, such as `id = \"tuxmath\"`");
    let label = table.optional_with("label", values::read_label);
    let icon = table.optional_with("icon", values::read_label);
    let kind = entry_kind::read_kind(&mut table);
    let entry = RawEntry {
        span,
        id,
        label,
        icon,
        kind,
        profiles: table.optional_with("profiles", |value| {
            values::read_names(value, "name a profile, or remove `profiles` for everybody")
        }),
        availability: windows::read_availability(&mut table),
        limits: limits::read_limits(&mut table),
        warnings: warnings::read_warnings(&mut table),
        disabled: table
            .optional_with("disabled", |value| read_disabled(value).map(|disabled| value.spanned(disabled))),
        budgets: table
            .optional_with("budgets", |value| Some(values::read_valid(value.elements()?, values::read_name)))
            .unwrap_or_default(),
        cost: table.optional_with("cost", |value| {
            let cost = value.one_of(&[("counts", TimeCost::Counts), ("free", TimeCost::Free)])?;
            Some(value.spanned(cost))
        }),
        slot: table.optional_with("slot", |value| {
            value.one_of(&[("foreground", EntrySlot::Foreground), ("background", EntrySlot::Background)])
        }),
        earns: table.optional_with("earns", |value| value.inline_table(EARNS_EXAMPLE)).and_then(read_earning),
        unlock: table.optional_with("unlock", read_unlock),
        run: run::read_run(&mut table),
    };
    key_advice::finish_table(table, PolicySection::Entry);
    entry
}

fn read_disabled(value: TomlValue<'_>) -> Option<DisabledReason> {
    match value.kind() {
        ValueKind::Boolean(disabled) => disabled.then_some(DisabledReason { reason: None }),
        ValueKind::Text(_) => values::read_label(value).map(|reason| DisabledReason { reason: Some(reason) }),
        _ => {
            let message = "`disabled` must be `true`, `false` or a reason";
            let help = "write `disabled = \"Broken since Friday\"`";
            value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
            None
        }
    }
}

fn read_earning(mut table: TomlTable<'_>) -> Option<RawEarning> {
    let budget = table.required_with("budget", values::read_name);
    let for_each = table.required_with("for_each", time::read_play_time);
    table.help_if_missing("for_each", "add the time of use that earns: `for_each = \"20m\"`");
    let earned = table.required_with("earned", time::read_play_time);
    table.help_if_missing("earned", "add the time that is earned: `earned = \"10m\"`");
    let ceiling = table.required_with("ceiling", |value| Some(value.spanned(time::read_play_time(value)?)));
    table.help_if_missing("ceiling", "add the most that can be earned per day: `ceiling = \"1h\"`");
    let faults = table.faults();
    key_advice::finish_table(table, PolicySection::Earns);
    let (budget, for_each, earned, ceiling) = (budget?, for_each?, earned?, ceiling?);
    if ceiling.value < earned {
        faults.push(
            ConfigFault::new(code::INVALID, ceiling.span, "`ceiling` is less than `earned`").help(
                "`ceiling` is the most that can be earned per day; make it at least as long as `earned`",
            ),
        );
    }
    Some(RawEarning { budget, for_each, earned, ceiling: ceiling.value })
}

fn read_unlock(value: TomlValue<'_>) -> Option<RawUnlock> {
    let mut table = value.inline_table(&suggest_unlock(value))?;
    let entry = table.required_with("entry", values::read_name);
    table.help_if_missing("entry", "add the entry that comes first: `entry = \"maths\"`");
    let at_least = table.required_with("at_least", |value| Some(value.spanned(time::read_play_time(value)?)));
    table.help_if_missing("at_least", "add the time that is needed: `at_least = \"20m\"`");
    key_advice::finish_table(table, PolicySection::Unlock);
    Some(RawUnlock { entry: entry?, at_least: at_least? })
}

/// Returns the table that is meant by a text such as `tuxmath 10m`, or an example.
fn suggest_unlock(value: TomlValue<'_>) -> String {
    let words = match value.kind() {
        ValueKind::Text(text) if !value.is_hidden() => text.split_whitespace().collect(),
        _ => Vec::new(),
    };
    let is_time = |word: &str| parse_duration(word).is_ok();
    let is_entry = |word: &str| word.parse::<EntryId>().is_ok();
    let (entry, at_least) = match words.as_slice() {
        [entry, time] if is_entry(entry) && is_time(time) => (*entry, *time),
        [time] if is_time(time) => ("tuxmath", *time),
        [entry] if is_entry(entry) => (*entry, "20m"),
        _ => ("tuxmath", "20m"),
    };
    format!("{{ entry = \"{entry}\", at_least = \"{at_least}\" }}")
}
