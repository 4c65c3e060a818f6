//! Compiles how entries run, from the entry or else from the defaults (S6.5).

use shepherd_api::EntryKind;
use shepherd_core::policy::{LoginPolicy, ResourceLimits, RunPolicy, WindowDisplay};
use ward_diag::{ConfigFault, FaultCollector, code};

use crate::raw::{LimitSetting, RawEntry, RawPolicy, RawRun};

/// Compiles the way in which an entry runs. A login isn't started by Shepherd, so of the defaults it has only the grace
/// period.
pub(super) fn compile_run(entry: &RawEntry, other: &RawRun) -> RunPolicy {
    let own = &entry.run;
    let stop_grace = own.stop_grace.or(other.stop_grace).map(|grace| grace.value);
    if entry.kind.kind.as_ref().is_some_and(EntryKind::is_login) {
        return RunPolicy { stop_grace, login: entry.kind.login, ..RunPolicy::default() };
    }
    RunPolicy {
        user: own.user.clone().or_else(|| other.user.clone()),
        limits: compile_resource_limits(own, other),
        stop_grace,
        output_limit: own.output_limit.or(other.output_limit),
        display: own.display.or(other.display).map(|display| display.value).unwrap_or_default(),
        login: LoginPolicy::default(),
    }
}

/// Combines resource limits one by one, so that an entry can change its memory limit and keep the others.
fn compile_resource_limits(own: &RawRun, other: &RawRun) -> ResourceLimits {
    fn own_or_default<T>(own: Option<LimitSetting<T>>, other: Option<LimitSetting<T>>) -> Option<T> {
        own.or(other).and_then(LimitSetting::limit)
    }
    let (own, other) = (&own.resources, &other.resources);
    ResourceLimits {
        memory: own_or_default(own.memory, other.memory),
        processes: own_or_default(own.processes, other.processes),
        cpu_percent: own_or_default(own.cpu, other.cpu),
        open_files: own_or_default(own.open_files, other.open_files),
        file_size: own_or_default(own.file_size, other.file_size),
    }
}

/// Reports settings without effect: `display` without a compositor, and `stop_grace` in two places.
pub(super) fn check_ineffective_settings(raw: &RawPolicy, faults: &FaultCollector) {
    if let (Some(for_all), Some(default)) = (raw.stop_grace, raw.defaults.run.stop_grace) {
        faults.push(
            ConfigFault::new(code::INVALID, default.span, "`stop_grace` is set twice for all entries")
                .related(for_all.span, "already set here")
                .help("keep one of the two"),
        );
    }
    if raw.compositor.is_some() || raw.incomplete {
        return;
    }
    let displays = raw.entries.iter().map(|entry| entry.run.display);
    for display in displays.chain([raw.defaults.run.display]).flatten() {
        if display.value == WindowDisplay::Unchanged {
            continue;
        }
        faults.push(
            ConfigFault::new(code::INVALID, display.span, "`display` has no effect without `[compositor]`")
                .help("add `[compositor]` with `sway = \"connect\"`, or remove `display`"),
        );
    }
}
