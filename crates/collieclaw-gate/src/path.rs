//! Paths: where they lead, and whether a tool may go there (C7.4).
//!
//! A path is judged twice: as it is written, and as the kernel follows it. Both must be allowed.

use std::path::{Component, Path, PathBuf};

use crate::facts::{MachineFacts, PathStatus};
use crate::policy::{GatePolicy, PathBounds};
use crate::reason::GateReason;
use crate::verdict::GateFindings;

/// The kernel follows no longer one.
const LONGEST_PATH: usize = 4096;

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    /// A file is read, or a folder listed or entered.
    Read,
    /// A file is made or replaced.
    Write,
    /// A file or a folder goes away, with all that is in it: it is moved or removed.
    Move,
}

/// Judges a path that a tool was given, relative to a folder of the workspace.
pub(crate) fn judge(
    text: &str,
    from: &Path,
    used: PathAccess,
    (policy, facts): (&GatePolicy, &dyn MachineFacts),
    findings: &mut GateFindings,
) {
    let path = || text.to_owned();
    if text.is_empty() || text.contains('\0') {
        findings.add(GateReason::NotAPath { path: path(), what: "is no path" });
        return;
    }
    if text.len() > LONGEST_PATH {
        findings.add(GateReason::NotAPath { path: "this".to_owned(), what: "is longer than a path can be" });
        return;
    }
    let written = normalize_path(&from.join(text));
    if !check_allowed(text, &written, policy, findings) {
        return;
    }
    let seen = facts.inspect_path(&from.join(text));
    let (PathStatus::Missing { leads_to }
    | PathStatus::File { leads_to, .. }
    | PathStatus::Folder { leads_to }
    | PathStatus::Special { leads_to }) = &seen
    else {
        findings.add(GateReason::WrongKind { path: path(), what: "can't be reached" });
        return;
    };
    if !check_allowed(text, leads_to, policy, findings) {
        return;
    }
    if matches!(seen, PathStatus::Special { .. }) {
        findings.add(GateReason::WrongKind { path: path(), what: "is neither a file nor a folder" });
        return;
    }
    let changes = used != PathAccess::Read;
    if used == PathAccess::Move
        && let Some(reason) =
            [&written, leads_to].into_iter().find_map(|place| find_rule_inside(text, place, policy))
    {
        findings.add(reason);
        return;
    }
    if changes && matches!(seen, PathStatus::File { link_count, .. } if link_count > 1) {
        findings.add(GateReason::HardLink { path: path() });
        return;
    }
    if changes && [&written, leads_to].into_iter().any(|place| steers_programs(place)) {
        findings.add(GateReason::SteersPrograms { path: path() });
    }
    let inside = leads_to.starts_with(&policy.workspace) && written.starts_with(&policy.workspace);
    findings.add(match (used, inside) {
        (PathAccess::Write | PathAccess::Move, true) => GateReason::WritesInside { path: path() },
        (PathAccess::Write | PathAccess::Move, false) => GateReason::WritesOutside { path: path() },
        (PathAccess::Read, true) => GateReason::ReadsInside { path: path() },
        (PathAccess::Read, false) => GateReason::ReadsOutside { path: path() },
    });
}

/// What speaks against moving a folder: with it goes what a rule is about, and then has a name that no rule knows.
fn find_rule_inside(text: &str, place: &Path, policy: &GatePolicy) -> Option<GateReason> {
    let rule = policy.protected_paths().find(|rule| rule.starts_with(place))?;
    let inside = Path::new(text).join(rule.strip_prefix(place).ok()?);
    find_objection(&inside.display().to_string(), rule, policy)
}

/// Whether programs run what files there say, without anyone looking at them: `git status` obeys `.git/config`.
pub(crate) fn steers_programs(place: &Path) -> bool {
    place.components().any(|component| {
        STEERING_FOLDERS.into_iter().any(|name| component.as_os_str().eq_ignore_ascii_case(name))
    })
}

/// Names of what steers programs.
pub(crate) const STEERING_FOLDERS: [&str; 2] = [".git", ".hg"];

/// Whether a tool may go to a place at all. What speaks against it is added.
fn check_allowed(text: &str, place: &Path, policy: &GatePolicy, findings: &mut GateFindings) -> bool {
    let against = find_objection(text, place, policy);
    let may = against.is_none();
    against.into_iter().for_each(|reason| findings.add(reason));
    may
}

/// What speaks against a place.
pub(crate) fn find_objection(text: &str, place: &Path, policy: &GatePolicy) -> Option<GateReason> {
    let path = || text.to_owned();
    if policy.is_own(place) {
        Some(GateReason::OwnHome { path: path() })
    } else if let Some(rule) = policy.forbidden_paths.iter().find(|rule| place.starts_with(rule)) {
        Some(GateReason::ForbiddenPath { path: path(), rule: rule.display().to_string() })
    } else if policy.bounds == PathBounds::Workspace && !place.starts_with(&policy.workspace) {
        Some(GateReason::OutsideWorkspace { path: path() })
    } else if !place.starts_with(&policy.workspace)
        && let Some(rule) = KERNEL_PATHS.iter().find(|rule| place.starts_with(rule))
    {
        Some(GateReason::ForbiddenPath { path: path(), rule: (*rule).to_owned() })
    } else {
        None
    }
}

/// What lies there is no file of anyone: it is the kernel, processes with their secrets, and devices.
const KERNEL_PATHS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A path without `.` and `..`, as if it held no links.
#[must_use]
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
        }
    }
    plain
}
