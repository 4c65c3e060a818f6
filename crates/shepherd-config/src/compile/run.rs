//! How entries are run: what an entry says, and else the defaults (S6.5).

use shepherd_core::policy::{Display, RunLimits, RunPolicy};
use ward_diag::{Fault, Faults, code};

use crate::raw::{Bound, RawPolicy, RawRun};

/// How an entry is run.
pub(super) fn run(own: &RawRun, other: &RawRun) -> RunPolicy {
    RunPolicy {
        user: own.user.clone().or_else(|| other.user.clone()),
        limits: limits(own, other),
        stop_grace: own.stop_grace.or(other.stop_grace).map(|grace| grace.value),
        output_limit: own.output_limit.or(other.output_limit),
        display: own.display.or(other.display).map(|display| display.value).unwrap_or_default(),
    }
}

/// Each bound by itself: an entry that needs more memory keeps the rest.
fn limits(own: &RawRun, other: &RawRun) -> RunLimits {
    fn of<T>(own: Option<Bound<T>>, other: Option<Bound<T>>) -> Option<T> {
        own.or(other).and_then(Bound::limit)
    }
    let (own, other) = (&own.resources, &other.resources);
    RunLimits {
        memory: of(own.memory, other.memory),
        processes: of(own.processes, other.processes),
        cpu_percent: of(own.cpu, other.cpu),
        open_files: of(own.open_files, other.open_files),
        file_size: of(own.file_size, other.file_size),
    }
}

/// What would do nothing: a window that nobody shows, a time that another one hides.
pub(super) fn check(raw: &RawPolicy, faults: &Faults) {
    if let (Some(for_all), Some(default)) = (raw.stop_grace, raw.defaults.run.stop_grace) {
        faults.push(
            Fault::new(code::INVALID, default.span, "`stop_grace` is said for all entries twice")
                .related(for_all.span, "already said here")
                .help("keep one of the two"),
        );
    }
    if raw.compositor.is_some() || raw.incomplete {
        return;
    }
    let of_entries = raw.entries.iter().map(|entry| entry.run.display);
    for display in of_entries.chain([raw.defaults.run.display]).flatten() {
        if display.value == Display::AsItIs {
            continue;
        }
        faults.push(
            Fault::new(code::INVALID, display.span, "nothing shows windows here: there is no `[compositor]`")
                .help("add `[compositor]` with `sway = \"connect\"`, or take `display` out"),
        );
    }
}
