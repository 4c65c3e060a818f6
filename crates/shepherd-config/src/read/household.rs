//! Reads the settings of the household: profiles, budgets, libraries, drivers, defaults and ceilings.

use std::time::Duration;

use shepherd_api::{EntryKind, Language};
use shepherd_core::policy::{
    BreakRule, CustomDriver, GrantCeilings, MediaLibrary, OnReload, OnShutdown, ReloadOnChange, SuspendedTime,
};
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, code};

use super::key_advice::{self, PolicySection};
use super::{access, bedtime, entry_kind, limits, run, time, values, warnings, windows};
use crate::raw::{RawBudget, RawDefaults, RawProfile, SpannedName};
use crate::settings::BUILT_IN_TYPES;

/// Longest wait for a program to start or stop. Without it, "10h" written for "10s" would mean no limit.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// Longest time that a trusted clock can be behind.
const MAX_TOLERANCE: Duration = Duration::from_hours(1);

/// Reads the table `[defaults]`.
pub(super) fn read_defaults(mut table: TomlTable<'_>) -> RawDefaults {
    let defaults = RawDefaults {
        availability: windows::read_availability(&mut table),
        limits: limits::read_limits(&mut table),
        warnings: warnings::read_warnings(&mut table),
        run: run::read_run(&mut table),
    };
    key_advice::finish_table(table, PolicySection::Defaults);
    defaults
}

/// Reads the table `[profiles.NAME]`.
pub(super) fn read_profiles(table: TomlTable<'_>) -> Vec<RawProfile> {
    let read = |table: &mut TomlTable<'_>| {
        let label = table.optional_with("label", values::read_label);
        let accounts = table.optional_with("accounts", access::read_accounts).unwrap_or_default();
        (label, accounts, table.optional_with("bedtime", bedtime::read_bedtime))
    };
    read_named_tables(("profiles", PolicySection::Profile), table, read)
        .into_iter()
        .map(|(id, read)| {
            let (label, accounts, bedtime) = read.unwrap_or_default();
            RawProfile { id, label, accounts, bedtime }
        })
        .collect()
}

/// Reads the table `[budgets.NAME]`.
pub(super) fn read_budgets(table: TomlTable<'_>) -> Vec<RawBudget> {
    let read = |table: &mut TomlTable<'_>| {
        let label = table.optional_with("label", values::read_label);
        let daily = table.optional_with("daily", limits::read_quota);
        let weekly = table.optional_with("weekly", time::read_amount);
        if table.key_span("daily").or(table.key_span("weekly")).is_none() {
            table.faults().push(
                ConfigFault::new(code::MISSING_KEY, table.span(), "this budget has no limit")
                    .help("add `daily = \"1h\"`, `weekly = \"5h\"`, or both"),
            );
        }
        (label, daily, weekly)
    };
    read_named_tables(("budgets", PolicySection::Budget), table, read)
        .into_iter()
        .map(|(id, read)| {
            let (label, daily, weekly) = read.unwrap_or_default();
            RawBudget { id, label, daily, weekly }
        })
        .collect()
}

/// Reads the table `[libraries.NAME]`.
pub(super) fn read_libraries(table: TomlTable<'_>) -> Vec<(SpannedName, Option<MediaLibrary>)> {
    let read = |table: &mut TomlTable<'_>| {
        let paths = table.required_with("paths", |value| {
            values::read_all(
                values::non_empty_list(value, "add a folder, such as \"/srv/films\"")?,
                values::read_absolute_path,
            )
        });
        table.help_if_missing("paths", "add the folders of the files: `paths = [\"/srv/films\"]`");
        let player = table.optional_with("player", values::read_label);
        paths.map(|paths| MediaLibrary { paths, player })
    };
    read_named_tables(("libraries", PolicySection::Library), table, read)
        .into_iter()
        .map(|(id, library)| (id, library.flatten()))
        .collect()
}

/// Reads the table `[drivers.NAME]`.
pub(super) fn read_drivers(table: TomlTable<'_>) -> Vec<(SpannedName, Option<CustomDriver>)> {
    let faults = table.faults();
    let read = |table: &mut TomlTable<'_>| {
        let argv = table.required_with("argv", entry_kind::read_argv);
        table.help_if_missing("argv", "add the program and its arguments: `argv = [\"/usr/bin/my-driver\"]`");
        argv.map(|argv| CustomDriver { argv })
    };
    let drivers = read_named_tables(("drivers", PolicySection::Driver), table, read);
    let is_taken = |name: &str| BUILT_IN_TYPES.contains(&name) || name == EntryKind::LOGIN_TYPE;
    for (name, _) in drivers.iter().filter(|(name, _)| is_taken(&name.value)) {
        let message = match name.value.as_str() {
            EntryKind::LOGIN_TYPE => "`login` is a kind of entry, and has no driver".to_owned(),
            built_in => format!("`{built_in}` already has a built-in driver"),
        };
        faults.push(
            ConfigFault::new(code::DUPLICATE, name.span, message).help("remove it, or choose another name"),
        );
    }
    drivers.into_iter().map(|(name, driver)| (name, driver.flatten())).collect()
}

/// Reads a table whose keys are new names with a table each. A name stays defined even if its table is invalid.
fn read_named_tables<'a, T>(
    (whole, section): (&str, PolicySection),
    mut table: TomlTable<'a>,
    read: impl Fn(&mut TomlTable<'a>) -> T,
) -> Vec<(SpannedName, Option<T>)> {
    let faults = table.faults();
    let named = table.entries().into_iter().map(|(key, value)| {
        let name = values::check_new_name(faults, key);
        if let Some(help) =
            key_advice::top_key_help(key.value).filter(|_| !matches!(value.kind(), ValueKind::Table))
        {
            let message = format!("unknown key `{}` in `{whole}`", key.value);
            faults.push(ConfigFault::new(code::UNKNOWN_KEY, key.span, message).help(help));
            return (name, None);
        }
        if !matches!(value.kind(), ValueKind::Table) {
            let message = format!("`{}` must be a table", values::escape_name(&name.value));
            let help = format!(
                "write `[{whole}.{}]` on its own line, and the keys below it",
                values::escape_name(&name.value)
            );
            value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
            return (name, None);
        }
        let read = value.table().map(|mut table| {
            let read = read(&mut table);
            key_advice::finish_table(table, section);
            read
        });
        (name, read)
    });
    named.collect()
}

/// Reads the table `[breaks]`.
pub(super) fn read_breaks(mut table: TomlTable<'_>) -> Option<BreakRule> {
    let after = table.required_with("after", time::read_play_time);
    table.help_if_missing("after", "add the time until the break: `after = \"2h\"`");
    let length = table.required_with("length", time::read_play_time);
    table.help_if_missing("length", "add the length of the break: `length = \"15m\"`");
    key_advice::finish_table(table, PolicySection::Breaks);
    Some(BreakRule { after: after?, length: length? })
}

/// Reads the table `[grants]`.
pub(super) fn read_grant_ceilings(mut table: TomlTable<'_>) -> GrantCeilings {
    let ceilings = GrantCeilings {
        extra_per_day: table
            .optional_with("extra_per_day", time::read_amount)
            .and_then(crate::raw::TimeLimitSetting::limit),
        open_until: table.optional_with("open_until", time::read_time_of_day),
    };
    key_advice::finish_table(table, PolicySection::Grants);
    ceilings
}

/// Reads the table `[clock]`.
pub(super) fn read_clock_tolerance(mut table: TomlTable<'_>) -> Option<Duration> {
    let tolerance = table.optional_with("tolerance", |value| {
        time::check_at_most(value, time::read_duration(value)?, MAX_TOLERANCE, "10m")
    });
    key_advice::finish_table(table, PolicySection::Clock);
    tolerance
}

pub(super) fn read_launch_timeout(value: TomlValue<'_>) -> Option<Duration> {
    time::check_at_most(value, time::read_nonzero_duration(value)?, MAX_WAIT, "30s")
}

pub(super) fn read_stop_grace(value: TomlValue<'_>) -> Option<Duration> {
    time::check_at_most(value, time::read_duration(value)?, MAX_WAIT, "10s")
}

pub(super) fn read_language(value: TomlValue<'_>) -> Option<Language> {
    value.one_of(&Language::ALL.map(|language| (language.code(), language)))
}

pub(super) fn read_suspended_time(value: TomlValue<'_>) -> Option<SuspendedTime> {
    value.one_of(&[("free", SuspendedTime::Free), ("counts", SuspendedTime::Counts)])
}

pub(super) fn read_on_reload(value: TomlValue<'_>) -> Option<OnReload> {
    value.one_of(&[("keep-plan", OnReload::KeepPlan), ("replan", OnReload::Replan)])
}

pub(super) fn read_on_shutdown(value: TomlValue<'_>) -> Option<OnShutdown> {
    value.one_of(&[("leave-sessions", OnShutdown::LeaveSessions), ("end-sessions", OnShutdown::EndSessions)])
}

pub(super) fn read_reload_on_change(value: TomlValue<'_>) -> Option<ReloadOnChange> {
    value.boolean().map(|reload| if reload { ReloadOnChange::Yes } else { ReloadOnChange::No })
}
