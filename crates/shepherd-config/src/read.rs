//! Reads the text into a [`RawPolicy`]. A value of the wrong form is recorded as a fault and left out, and reading
//! continues.

mod access;
mod bedtime;
mod calendar;
mod entries;
mod entry_kind;
mod household;
mod key_advice;
mod limits;
mod payload;
mod run;
mod size;
mod time;
mod values;
mod warnings;
mod windows;

pub(crate) use self::access::format_account;
pub use self::bedtime::{InvalidNight, parse_night};
pub(crate) use self::entry_kind::{IDLE_TIME, LOGIN_COUNTING, LOGIN_ENDS, WITHOUT_DAEMON};
pub(crate) use self::run::DISPLAYS;
pub(crate) use self::size::format_size;
pub(crate) use self::time::{DAY_GROUPS, SHORT_PLAY, WEEKDAYS, parse_date, parse_time_of_day, parse_weekday};
pub(crate) use self::values::{escape_name, limit_elements};

use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, code};

use self::key_advice::PolicySection;
use crate::expect;
use crate::raw::RawPolicy;

/// The supported version of the policy language.
const CONFIG_VERSION: i128 = 1;

/// Reads the whole policy. Returns `None` only for another version, whose keys may mean something else.
pub(crate) fn read_policy(root: &mut TomlTable<'_>) -> Option<RawPolicy> {
    let version = root.required::<TomlValue<'_>>("config_version");
    root.help_if_missing("config_version", "add `config_version = 1` as the first line");
    if version.is_some_and(|version| !is_supported_version(version)) {
        root.entries();
        return None;
    }
    let policy = RawPolicy {
        incomplete: root.is_incomplete(),
        zone: root.optional_with("timezone", time::read_zone),
        language: root.optional_with("language", household::read_language),
        defaults: root.table("defaults").map(household::read_defaults).unwrap_or_default(),
        profiles: named_tables(root, "profiles", "anna").map(household::read_profiles).unwrap_or_default(),
        budgets: named_tables(root, "budgets", "games").map(household::read_budgets).unwrap_or_default(),
        libraries: named_tables(root, "libraries", "films")
            .map(household::read_libraries)
            .unwrap_or_default(),
        drivers: named_tables(root, "drivers", "my-driver").map(household::read_drivers).unwrap_or_default(),
        compositor: root.value("compositor").map(|value| value.table().and_then(run::read_compositor)),
        access: root.table("access").map(access::read_access).unwrap_or_default(),
        watch: root.optional_with("reload_on_change", household::read_reload_on_change),
        entries: root
            .tables_or_help("entries", key_advice::WRITE_ENTRY)
            .into_iter()
            .map(entries::read_entry)
            .collect(),
        modes: root.table("modes").map(calendar::read_modes).unwrap_or_default(),
        exceptions: root
            .tables_or_help("exceptions", key_advice::WRITE_EXCEPTION)
            .into_iter()
            .map(calendar::read_exception)
            .collect(),
        breaks: root.table("breaks").and_then(household::read_breaks),
        ceilings: root.table("grants").map(household::read_grant_ceilings).unwrap_or_default(),
        suspended_time: root.optional_with("suspended_time", household::read_suspended_time),
        on_reload: root.optional_with("on_reload", household::read_on_reload),
        on_shutdown: root.optional_with("on_shutdown", household::read_on_shutdown),
        launch_timeout: root.optional_with("launch_timeout", household::read_launch_timeout),
        stop_grace: root
            .optional_with("stop_grace", |value| Some(value.spanned(household::read_stop_grace(value)?))),
        clock_tolerance: root.table("clock").and_then(household::read_clock_tolerance),
        examples: root.optional_with("expect", expect::read_examples).unwrap_or_default(),
    };
    key_advice::advise_about_keys(root, PolicySection::Root);
    Some(policy)
}

/// Reads a table whose keys are names with a table each.
fn named_tables<'a>(root: &mut TomlTable<'a>, key: &str, example: &str) -> Option<TomlTable<'a>> {
    let value = root.value(key)?;
    if !matches!(value.kind(), ValueKind::Array) {
        return value.table();
    }
    let message = format!("each table of `{key}` has its name in the header");
    let help = format!("write `[{key}.{example}]`, with single brackets, for each of them");
    value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
    None
}

fn is_supported_version(version: TomlValue<'_>) -> bool {
    let ValueKind::Integer(number) = version.kind() else {
        // Records that a number is expected. The rest of the file may still be valid.
        let _ = version.integer_in(CONFIG_VERSION..=CONFIG_VERSION);
        return true;
    };
    if number != CONFIG_VERSION {
        version.reject(
            InvalidValue::new(format!(
                "this file uses version {number} of the policy language, but this program supports version {CONFIG_VERSION}"
            ))
            .code("wrong-version")
            .help(if number > CONFIG_VERSION {
                "install a newer Shepherd, or write the file for version 1"
            } else {
                "write `config_version = 1`"
            }),
        );
    }
    number == CONFIG_VERSION
}

/// Records a fault if two of these keys are set, because they contradict each other. Returns true if so.
fn report_contradiction(table: &TomlTable<'_>, keys: &[&str], help: &str) -> bool {
    let mut set_keys: Vec<_> = keys.iter().filter_map(|key| Some((table.key_span(key)?, *key))).collect();
    set_keys.sort_unstable();
    let [(first_span, first), (second_span, second), ..] = set_keys.as_slice() else { return false };
    table.faults().push(
        ConfigFault::new(code::INVALID, *second_span, format!("`{second}` contradicts `{first}`"))
            .related(*first_span, "already set here")
            .help(help),
    );
    true
}
