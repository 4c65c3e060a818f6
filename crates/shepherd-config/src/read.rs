//! From a text to a [`RawPolicy`]: what has the wrong form is recorded and left out, and reading goes on.

mod access;
mod calendar;
mod entries;
mod household;
mod kind;
mod limits;
mod payload;
mod run;
mod size;
mod time;
mod values;
mod warnings;
mod windows;

pub(crate) use self::access::written;
pub(crate) use self::run::DISPLAYS;
pub(crate) use self::size::format_size;
pub(crate) use self::time::{DAY_GROUPS, WEEKDAYS, parse_date, parse_time_of_day, parse_weekday};
pub(crate) use self::values::{few, shown};

use ward_diag::{Fault, Shape, Table, Value, code};

use crate::expect;
use crate::raw::RawPolicy;

/// The version of the language that is read.
const CONFIG_VERSION: i128 = 1;

/// Reads all that is there. `None` only for a file of another version, in which every key may mean something else.
pub(crate) fn policy(root: &mut Table<'_>) -> Option<RawPolicy> {
    let version = root.required::<Value<'_>>("config_version");
    root.if_missing("config_version", "add `config_version = 1` as the first line");
    if version.is_some_and(|version| !is_read(version)) {
        root.entries();
        return None;
    }
    Some(RawPolicy {
        incomplete: root.is_incomplete(),
        zone: root.optional_with("timezone", time::zone),
        defaults: root.table("defaults").map(household::defaults).unwrap_or_default(),
        profiles: root.table("profiles").map(household::profiles).unwrap_or_default(),
        budgets: root.table("budgets").map(household::budgets).unwrap_or_default(),
        libraries: root.table("libraries").map(household::libraries).unwrap_or_default(),
        drivers: root.table("drivers").map(household::drivers).unwrap_or_default(),
        compositor: root.value("compositor").map(|value| value.table().and_then(run::compositor)),
        access: root.table("access").map(access::access).unwrap_or_default(),
        watch: root.optional_with("reload_on_change", household::reload_on_change),
        entries: root.tables("entries").into_iter().map(entries::entry).collect(),
        modes: root.table("modes").map(calendar::modes).unwrap_or_default(),
        exceptions: root.tables("exceptions").into_iter().map(calendar::exception).collect(),
        breaks: root.table("breaks").and_then(household::breaks),
        ceilings: root.table("grants").map(household::grants).unwrap_or_default(),
        suspended_time: root.optional_with("suspended_time", household::suspended_time),
        on_reload: root.optional_with("on_reload", household::on_reload),
        on_shutdown: root.optional_with("on_shutdown", household::on_shutdown),
        launch_timeout: root.optional_with("launch_timeout", household::launch_timeout),
        stop_grace: root
            .optional_with("stop_grace", |value| Some(value.spanned(household::stop_grace(value)?))),
        clock_tolerance: root.table("clock").and_then(household::clock),
        examples: root.optional_with("expect", expect::examples).unwrap_or_default(),
    })
}

fn is_read(version: Value<'_>) -> bool {
    let Shape::Integer(number) = version.shape() else {
        // Says that a number is wanted; the rest of the file may well be right.
        let _ = version.integer_in(CONFIG_VERSION..=CONFIG_VERSION);
        return true;
    };
    if number != CONFIG_VERSION {
        version.refuse(
            ward_diag::Invalid::new(format!(
                "this file is written in version {number} of the policy language, and this program reads version {CONFIG_VERSION}"
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

/// Records that two keys of a table say contradicting things.
fn contradiction(table: &Table<'_>, keys: &[&str], help: &str) -> bool {
    let mut said: Vec<_> = keys.iter().filter_map(|key| Some((table.key_span(key)?, *key))).collect();
    said.sort_unstable();
    let [(first_span, first), (second_span, second), ..] = said.as_slice() else { return false };
    table.faults().push(
        Fault::new(code::INVALID, *second_span, format!("`{second}` contradicts `{first}`"))
            .related(*first_span, "already said here")
            .help(help),
    );
    true
}
