//! What is said once for everybody: profiles, budgets, libraries, drivers, defaults and ceilings.

use std::time::Duration;

use shepherd_core::policy::{
    BreakRule, Ceilings, Driver, Library, OnReload, OnShutdown, SuspendedTime, Watch,
};
use ward_diag::{Fault, Invalid, Shape, Table, Value, code};

use super::{access, kind, limits, run, time, values, warnings, windows};
use crate::raw::{Name, RawBudget, RawDefaults, RawProfile};
use crate::settings::BUILT_IN_TYPES;

/// Longest wait for a program to start or to end. Who writes "10h" for "10s" would have no limit at all.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// How far a clock can be behind and still be believed.
const MAX_TOLERANCE: Duration = Duration::from_hours(1);

/// `[defaults]`.
pub(super) fn defaults(mut table: Table<'_>) -> RawDefaults {
    let defaults = RawDefaults {
        availability: windows::availability(&mut table),
        limits: limits::limits(&mut table),
        warnings: warnings::warnings(&mut table),
        run: run::run(&mut table),
    };
    table.finish();
    defaults
}

/// `[profiles.NAME]`.
pub(super) fn profiles(table: Table<'_>) -> Vec<RawProfile> {
    let read = |table: &mut Table<'_>| {
        let label = table.optional_with("label", values::label);
        (label, table.optional_with("accounts", access::accounts).unwrap_or_default())
    };
    named("profiles", table, read)
        .into_iter()
        .map(|(id, read)| {
            let (label, accounts) = read.unwrap_or_default();
            RawProfile { id, label, accounts }
        })
        .collect()
}

/// `[budgets.NAME]`.
pub(super) fn budgets(table: Table<'_>) -> Vec<RawBudget> {
    let read = |table: &mut Table<'_>| {
        let label = table.optional_with("label", values::label);
        let daily = table.optional_with("daily", limits::quota);
        let weekly = table.optional_with("weekly", time::amount);
        if table.key_span("daily").or(table.key_span("weekly")).is_none() {
            table.faults().push(
                Fault::new(code::MISSING_KEY, table.span(), "this budget limits nothing")
                    .help("add `daily = \"1h\"`, `weekly = \"5h\"`, or both"),
            );
        }
        (label, daily, weekly)
    };
    named("budgets", table, read)
        .into_iter()
        .map(|(id, read)| {
            let (label, daily, weekly) = read.unwrap_or_default();
            RawBudget { id, label, daily, weekly }
        })
        .collect()
}

/// `[libraries.NAME]`.
pub(super) fn libraries(table: Table<'_>) -> Vec<(Name, Option<Library>)> {
    let read = |table: &mut Table<'_>| {
        let paths = table.required_with("paths", |value| {
            values::all(
                values::filled(value, "name a folder, such as \"/srv/films\"")?,
                values::absolute_path,
            )
        });
        table.if_missing("paths", "say where the files are: `paths = [\"/srv/films\"]`");
        let player = table.optional_with("player", values::label);
        paths.map(|paths| Library { paths, player })
    };
    named("libraries", table, read).into_iter().map(|(id, library)| (id, library.flatten())).collect()
}

/// `[drivers.NAME]`.
pub(super) fn drivers(table: Table<'_>) -> Vec<(Name, Option<Driver>)> {
    let faults = table.faults();
    let read = |table: &mut Table<'_>| {
        let argv = table.required_with("argv", kind::argv);
        table.if_missing("argv", "add the program and its arguments: `argv = [\"/usr/bin/my-driver\"]`");
        argv.map(|argv| Driver { argv })
    };
    let drivers = named("drivers", table, read);
    for (name, _) in drivers.iter().filter(|(name, _)| BUILT_IN_TYPES.contains(&name.value.as_str())) {
        let message = format!("`{}` is built in, and needs no driver", name.value);
        faults.push(
            Fault::new(code::DUPLICATE, name.span, message).help("take it out, or give yours another name"),
        );
    }
    drivers.into_iter().map(|(name, driver)| (name, driver.flatten())).collect()
}

/// A table whose keys are new names, each with a table of its own. A name stays known if its table is bad.
fn named<'a, T>(
    whole: &str,
    mut table: Table<'a>,
    read: impl Fn(&mut Table<'a>) -> T,
) -> Vec<(Name, Option<T>)> {
    let faults = table.faults();
    let named = table.entries().into_iter().map(|(key, value)| {
        let name = values::new_name(faults, key);
        if !matches!(value.shape(), Shape::Table) {
            let message =
                format!("what applies to `{}` must be written below it", values::shown(&name.value));
            let help = format!(
                "write `[{whole}.{}]` on a line of its own, and its keys below",
                values::shown(&name.value)
            );
            value.refuse(Invalid::new(message).code(code::WRONG_TYPE).help(help));
            return (name, None);
        }
        let read = value.table().map(|mut table| {
            let read = read(&mut table);
            table.finish();
            read
        });
        (name, read)
    });
    named.collect()
}

/// `[breaks]`.
pub(super) fn breaks(mut table: Table<'_>) -> Option<BreakRule> {
    let after = table.required_with("after", time::some_duration);
    table.if_missing("after", "say after how much time: `after = \"2h\"`");
    let length = table.required_with("length", time::some_duration);
    table.if_missing("length", "say how long the break is: `length = \"15m\"`");
    table.finish();
    Some(BreakRule { after: after?, length: length? })
}

/// `[grants]`.
pub(super) fn grants(mut table: Table<'_>) -> Ceilings {
    let ceilings = Ceilings {
        extra_per_day: table.optional_with("extra_per_day", time::amount).and_then(crate::raw::Amount::limit),
        open_until: table.optional_with("open_until", time::time_of_day),
    };
    table.finish();
    ceilings
}

/// `[clock]`.
pub(super) fn clock(mut table: Table<'_>) -> Option<Duration> {
    let tolerance = table.optional_with("tolerance", |value| {
        time::at_most(value, time::duration(value)?, MAX_TOLERANCE, "10m")
    });
    table.finish();
    tolerance
}

/// How long a program may take to start.
pub(super) fn launch_timeout(value: Value<'_>) -> Option<Duration> {
    time::at_most(value, time::some_duration(value)?, MAX_WAIT, "30s")
}

/// How long a program may take to end.
pub(super) fn stop_grace(value: Value<'_>) -> Option<Duration> {
    time::at_most(value, time::duration(value)?, MAX_WAIT, "10s")
}

/// Whether a suspended hour costs anything.
pub(super) fn suspended_time(value: Value<'_>) -> Option<SuspendedTime> {
    value.one_of(&[("free", SuspendedTime::Free), ("counts", SuspendedTime::Counts)])
}

/// What a new policy does to a session that runs.
pub(super) fn on_reload(value: Value<'_>) -> Option<OnReload> {
    value.one_of(&[("keep-plan", OnReload::KeepPlan), ("replan", OnReload::Replan)])
}

/// What the end of the daemon does to a session that runs.
pub(super) fn on_shutdown(value: Value<'_>) -> Option<OnShutdown> {
    value.one_of(&[("leave-sessions", OnShutdown::LeaveSessions), ("end-sessions", OnShutdown::EndSessions)])
}

/// Whether the policy is read again when its file changes.
pub(super) fn reload_on_change(value: Value<'_>) -> Option<Watch> {
    value.boolean().map(|reload| if reload { Watch::Yes } else { Watch::No })
}
