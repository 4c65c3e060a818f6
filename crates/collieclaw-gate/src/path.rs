//! Judges paths: resolves them and checks them against the policy (C7.4).
//!
//! A path is judged twice, as written and as the kernel resolves it. Both must be allowed.

use std::path::{Component, Path, PathBuf};

use crate::facts::{MachineFacts, PathStatus};
use crate::policy::{GatePolicy, PathBounds};
use crate::reason::GateReason;
use crate::system_files::is_system_file;
use crate::verdict::GateFindings;

/// The longest path that the kernel accepts (`PATH_MAX`).
pub(crate) const LONGEST_PATH: usize = 4096;

pub(crate) const INVALID_PATH: &str = "is not a valid path: it is empty or contains a NUL byte";

/// The way a path is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    /// Reads a file, or lists or enters a folder.
    Read,
    /// Creates or replaces a file.
    Write,
    /// Moves or removes a file, or a folder with its contents.
    Move,
    /// Takes away one name of a file, a folder or a symlink. Other hard links of a file are not affected.
    Remove,
}

/// A function that judges one path: [`judge`] or [`judge_entry`].
pub(crate) type PathJudge = fn(&str, &Path, PathAccess, (&GatePolicy, &dyn MachineFacts), &mut GateFindings);

/// Returns the place that a path names, links aside, if no rule forbids it; otherwise adds the objection to the findings.
fn check_written(
    text: &str,
    from: &Path,
    policy: &GatePolicy,
    findings: &mut GateFindings,
) -> Option<PathBuf> {
    let what = if text.is_empty() || text.contains('\0') {
        INVALID_PATH
    } else if text.len() > LONGEST_PATH {
        "is longer than 4096 bytes, the limit for a path"
    } else {
        let written = normalize_path(&from.join(text));
        return check_allowed(text, &written, policy, findings).then_some(written);
    };
    findings.add(GateReason::NotAPath { path: text.to_owned(), what });
    None
}

/// The temporary folder of the system. The sandbox has one of its own under this name.
const TEMPORARY_FOLDER: &str = "/tmp";

/// Returns true for a path in a folder that only commands use: the temporary folder of the sandbox, or their home and
/// caches. A workspace inside the temporary folder of the system rules the former out.
pub(crate) fn is_command_folder(place: &Path, policy: &GatePolicy) -> bool {
    let is_temporary = place.starts_with(TEMPORARY_FOLDER) && !policy.workspace.starts_with(TEMPORARY_FOLDER);
    let is_cached = policy.command_cache.as_ref().is_some_and(|cache| place.starts_with(cache));
    (is_temporary || is_cached) && !is_protected(place, policy)
}

/// Returns true if the operator forbids a path, or it belongs to CollieClaw.
fn is_protected(place: &Path, policy: &GatePolicy) -> bool {
    policy.is_own(place) || policy.forbidden_paths.iter().any(|rule| place.starts_with(rule))
}

/// Judges a path that a command names. In the sandbox, the temporary folder is a private one, so the files of
/// the real one don't matter. The same holds for the commands' own home and caches, which only the sandbox opens. Files
/// of the system that every program needs can be read.
pub(crate) fn judge_in_command(
    text: &str,
    from: &Path,
    access: PathAccess,
    (policy, facts): (&GatePolicy, &dyn MachineFacts),
    findings: &mut GateFindings,
) {
    let written = normalize_path(&from.join(text));
    let is_path = !text.is_empty() && !text.contains('\0') && text.len() <= LONGEST_PATH;
    let read_only = access == PathAccess::Read;
    if is_path && is_command_folder(&written, policy) {
        if !read_only && steers_programs(&written) {
            findings.add(GateReason::ExecutableConfig { path: text.to_owned() });
        }
        findings.add(GateReason::UsesTemporary { path: text.to_owned(), read_only });
    } else if is_path && read_only && reads_system_file(&from.join(text), (policy, facts)) {
        findings.add(GateReason::ReadsSystem { path: text.to_owned() });
    } else {
        judge(text, from, access, (policy, facts), findings);
    }
}

/// Returns true if a path names a file of the system that every program can read in the sandbox, and leads to one.
pub(crate) fn reads_system_file(path: &Path, (policy, facts): (&GatePolicy, &dyn MachineFacts)) -> bool {
    let is_readable = |place: &Path| {
        is_system_file(place) && !place.starts_with(&policy.workspace) && !is_protected(place, policy)
    };
    is_readable(&normalize_path(path))
        && match facts.inspect_path(path) {
            PathStatus::Missing { leads_to }
            | PathStatus::File { leads_to, .. }
            | PathStatus::Folder { leads_to }
            | PathStatus::Special { leads_to } => is_readable(&leads_to),
            PathStatus::Unreachable => false,
        }
}

/// Judges a path that a call names, relative to the folder `from`.
pub(crate) fn judge(
    text: &str,
    from: &Path,
    access: PathAccess,
    (policy, facts): (&GatePolicy, &dyn MachineFacts),
    findings: &mut GateFindings,
) {
    let path = || text.to_owned();
    let Some(written) = check_written(text, from, policy, findings) else { return };
    let seen = facts.inspect_path(&from.join(text));
    let (PathStatus::Missing { leads_to }
    | PathStatus::File { leads_to, .. }
    | PathStatus::Folder { leads_to }
    | PathStatus::Special { leads_to }) = &seen
    else {
        let what = "can't be reached: a folder on the way is closed, or links form a loop";
        findings.add(GateReason::WrongKind { path: path(), what });
        return;
    };
    if !check_allowed(text, leads_to, policy, findings) {
        return;
    }
    if matches!(seen, PathStatus::Special { .. }) {
        findings.add(GateReason::WrongKind { path: path(), what: "is neither a file nor a folder" });
        return;
    }
    let is_linked = matches!(seen, PathStatus::File { link_count, .. } if link_count > 1);
    let links =
        if access != PathAccess::Read && is_linked { HardLinks::Several } else { HardLinks::Irrelevant };
    judge_places(text, access, [&written, leads_to], links, policy, findings);
}

/// The other names of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HardLinks {
    /// The call would change the file under its other names, too.
    Several,
    Irrelevant,
}

/// Judges the use of a path that no rule forbids, by its places: as written and as the kernel resolves it.
fn judge_places(
    text: &str,
    access: PathAccess,
    places: [&Path; 2],
    links: HardLinks,
    policy: &GatePolicy,
    findings: &mut GateFindings,
) {
    let path = || text.to_owned();
    if matches!(access, PathAccess::Move | PathAccess::Remove)
        && let Some(reason) = places.into_iter().find_map(|place| find_rule_inside(text, place, policy))
    {
        return findings.add(reason);
    }
    if links == HardLinks::Several {
        return findings.add(GateReason::HardLink { path: path() });
    }
    if access != PathAccess::Read && places.into_iter().any(steers_programs) {
        findings.add(GateReason::ExecutableConfig { path: path() });
    }
    let inside = places.into_iter().all(|place| place.starts_with(&policy.workspace));
    findings.add(match (access, inside) {
        (PathAccess::Write | PathAccess::Move | PathAccess::Remove, true) => {
            GateReason::WritesInside { path: path() }
        }
        (PathAccess::Write | PathAccess::Move | PathAccess::Remove, false) => {
            GateReason::WritesOutside { path: path() }
        }
        (PathAccess::Read, true) => GateReason::ReadsInside { path: path() },
        (PathAccess::Read, false) => GateReason::ReadsOutside { path: path() },
    });
}

/// Judges a path whose last name is taken itself, whatever it is: a symlink is moved or removed, and its target is
/// not touched.
pub(crate) fn judge_entry(
    text: &str,
    from: &Path,
    access: PathAccess,
    (policy, facts): (&GatePolicy, &dyn MachineFacts),
    findings: &mut GateFindings,
) {
    let path = || text.to_owned();
    let Some(written) = check_written(text, from, policy, findings) else { return };
    let whole = from.join(text);
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        let what = "has no name of its own; name a file or folder in the workspace";
        findings.add(GateReason::WrongKind { path: path(), what });
        return;
    };
    let PathStatus::Folder { leads_to } = facts.inspect_path(parent) else {
        // A folder on the way is missing or closed. The ordinary rules say what is wrong with it.
        return judge(text, from, access, (policy, facts), findings);
    };
    let place = leads_to.join(name);
    if !check_allowed(text, &place, policy, findings) {
        return;
    }
    if [&written, &place].into_iter().any(|place| policy.workspace.starts_with(place)) {
        let what = "is the workspace itself, or contains it";
        findings.add(GateReason::WrongKind { path: path(), what });
        return;
    }
    // A path that leads to another place is a symlink, and the links of its target don't matter.
    let is_linked = |status| matches!(status, PathStatus::File { leads_to, link_count } if link_count > 1 && leads_to == place);
    let links = if access != PathAccess::Remove && is_linked(facts.inspect_path(&whole)) {
        HardLinks::Several
    } else {
        HardLinks::Irrelevant
    };
    judge_places(text, access, [&written, &place], links, policy, findings);
}

/// Returns the objection to moving a folder that contains a protected path: after the move, the protected
/// file would have a path that no rule names.
pub(crate) fn find_rule_inside(text: &str, place: &Path, policy: &GatePolicy) -> Option<GateReason> {
    let rule = policy.protected_paths().find(|rule| rule.starts_with(place))?;
    let inside = Path::new(text).join(rule.strip_prefix(place).ok()?);
    find_objection(&inside.display().to_string(), rule, policy)
}

/// Returns true for paths inside a repository's own folder, whose files make programs run commands: `git
/// status` obeys `.git/config`.
pub(crate) fn steers_programs(place: &Path) -> bool {
    place.components().any(|component| {
        STEERING_FOLDERS.into_iter().any(|name| component.as_os_str().eq_ignore_ascii_case(name))
    })
}

/// Names of folders whose files make programs run commands.
pub(crate) const STEERING_FOLDERS: [&str; 2] = [".git", ".hg"];

/// Returns true if no rule forbids the path; otherwise adds the objection to the findings.
fn check_allowed(text: &str, place: &Path, policy: &GatePolicy, findings: &mut GateFindings) -> bool {
    let objection = find_objection(text, place, policy);
    let allowed = objection.is_none();
    objection.into_iter().for_each(|reason| findings.add(reason));
    allowed
}

/// Returns the rule that forbids a path, if a rule does. `text` is the path as the call named it.
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

/// File systems of the kernel: they hold devices, kernel settings, and the secrets of processes, but no
/// user's files.
const KERNEL_PATHS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Removes `.` and `..` from a path without looking at the file system, as if the path contained no links.
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
