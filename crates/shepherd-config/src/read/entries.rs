//! What can be launched.

use shepherd_core::policy::{Cost, Disabled};
use ward_diag::{Fault, Invalid, Shape, Table, Value, code};

use super::{kind, limits, run, time, values, warnings, windows};
use crate::raw::{RawEarning, RawEntry, RawUnlock};

/// One of `[[entries]]`.
pub(super) fn entry(mut table: Table<'_>) -> RawEntry {
    let span = table.span();
    let faults = table.faults();
    let id = table.required_with("id", |value| {
        let text = value.filled_text()?;
        Some(values::new_name(faults, value.spanned(text)))
    });
    table.if_missing("id", "give it a short name that never changes, such as `id = \"tuxmath\"`");
    let label = table.optional_with("label", values::label);
    let icon = table.optional_with("icon", values::label);
    let kind = kind::kind(&mut table);
    let entry = RawEntry {
        span,
        id,
        label,
        icon,
        kind,
        profiles: table.optional_with("profiles", |value| {
            values::names(value, "name somebody, or leave `profiles` out: then it is for everybody")
        }),
        availability: windows::availability(&mut table),
        limits: limits::limits(&mut table),
        warnings: warnings::warnings(&mut table),
        disabled: table
            .optional_with("disabled", |value| disabled(value).map(|disabled| value.spanned(disabled))),
        budgets: table
            .optional_with("budgets", |value| Some(values::each(value.elements()?, values::name)))
            .unwrap_or_default(),
        cost: table.optional_with("cost", |value| {
            let cost = value.one_of(&[("counts", Cost::Counts), ("free", Cost::Free)])?;
            Some(value.spanned(cost))
        }),
        earns: table.table("earns").and_then(earning),
        unlock: table.table("unlock").and_then(unlock),
        run: run::run(&mut table),
    };
    table.finish();
    entry
}

fn disabled(value: Value<'_>) -> Option<Disabled> {
    match value.shape() {
        Shape::Boolean(disabled) => disabled.then_some(Disabled { reason: None }),
        Shape::Text(_) => values::label(value).map(|reason| Disabled { reason: Some(reason) }),
        _ => {
            let message = "`disabled` must be `true`, `false` or a reason";
            let help = "write `disabled = \"Broken since Friday\"`";
            value.refuse(Invalid::new(message).code(code::WRONG_TYPE).help(help));
            None
        }
    }
}

fn earning(mut table: Table<'_>) -> Option<RawEarning> {
    let budget = table.required_with("budget", values::name);
    let for_each = table.required_with("for_each", time::some_duration);
    table.if_missing("for_each", "say for how much use: `for_each = \"20m\"`");
    let earned = table.required_with("earned", time::some_duration);
    table.if_missing("earned", "say how much is earned: `earned = \"10m\"`");
    let ceiling = table.required_with("ceiling", |value| Some(value.spanned(time::some_duration(value)?)));
    table.if_missing("ceiling", "say how much can be earned in a day: `ceiling = \"1h\"`");
    let faults = table.faults();
    table.finish();
    let (budget, for_each, earned, ceiling) = (budget?, for_each?, earned?, ceiling?);
    if ceiling.value < earned {
        faults.push(
            Fault::new(code::INVALID, ceiling.span, "`ceiling` is less than what is earned at once")
                .help("`ceiling` is the most that a day can bring; make it at least as long as `earned`"),
        );
    }
    Some(RawEarning { budget, for_each, earned, ceiling: ceiling.value })
}

fn unlock(mut table: Table<'_>) -> Option<RawUnlock> {
    let entry = table.required_with("entry", values::name);
    table.if_missing("entry", "name the entry that comes first: `entry = \"maths\"`");
    let at_least = table.required_with("at_least", |value| Some(value.spanned(time::some_duration(value)?)));
    table.if_missing("at_least", "say for how long: `at_least = \"20m\"`");
    table.finish();
    Some(RawUnlock { entry: entry?, at_least: at_least? })
}
