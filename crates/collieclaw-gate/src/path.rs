//! Paths: where they lead, and whether a tool may go there (C7.4).
//!
//! A path is judged twice: as it is written, and as the kernel follows it. Both must be allowed.

use std::path::{Component, Path, PathBuf};

use crate::facts::{Facts, Seen};
use crate::policy::{Bounds, GatePolicy};
use crate::reason::Reason;
use crate::verdict::Findings;

/// The kernel follows no longer one.
const LONGEST_PATH: usize = 4096;

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A file is read, or a folder listed or entered.
    Look,
    /// A file is made or replaced.
    Write,
    /// A file or a folder goes away, with all that is in it: it is moved or removed.
    Move,
}

/// Judges a path that a tool was given, relative to a folder of the workspace.
pub(crate) fn judge(
    text: &str,
    from: &Path,
    used: Use,
    (policy, facts): (&GatePolicy, &dyn Facts),
    findings: &mut Findings,
) {
    let path = || text.to_owned();
    if text.is_empty() || text.contains('\0') {
        findings.add(Reason::NotAPath { path: path(), what: "is no path" });
        return;
    }
    if text.len() > LONGEST_PATH {
        findings.add(Reason::NotAPath { path: "this".to_owned(), what: "is longer than a path can be" });
        return;
    }
    let written = plain(&from.join(text));
    if !may_be(text, &written, policy, findings) {
        return;
    }
    let seen = facts.look(&from.join(text));
    let (Seen::Nothing { leads_to }
    | Seen::File { leads_to, .. }
    | Seen::Folder { leads_to }
    | Seen::Special { leads_to }) = &seen
    else {
        findings.add(Reason::WrongKind { path: path(), what: "can't be reached" });
        return;
    };
    if !may_be(text, leads_to, policy, findings) {
        return;
    }
    if matches!(seen, Seen::Special { .. }) {
        findings.add(Reason::WrongKind { path: path(), what: "is neither a file nor a folder" });
        return;
    }
    let changes = used != Use::Look;
    if used == Use::Move
        && let Some(reason) =
            [&written, leads_to].into_iter().find_map(|place| holds_rule(text, place, policy))
    {
        findings.add(reason);
        return;
    }
    if changes && matches!(seen, Seen::File { names, .. } if names > 1) {
        findings.add(Reason::HardLink { path: path() });
        return;
    }
    if changes && [&written, leads_to].into_iter().any(|place| steers_programs(place)) {
        findings.add(Reason::SteersPrograms { path: path() });
    }
    let inside = leads_to.starts_with(&policy.workspace) && written.starts_with(&policy.workspace);
    findings.add(match (used, inside) {
        (Use::Write | Use::Move, true) => Reason::WritesInside { path: path() },
        (Use::Write | Use::Move, false) => Reason::WritesOutside { path: path() },
        (Use::Look, true) => Reason::ReadsInside { path: path() },
        (Use::Look, false) => Reason::ReadsOutside { path: path() },
    });
}

/// What speaks against moving a folder: with it goes what a rule is about, and then has a name that no rule knows.
fn holds_rule(text: &str, place: &Path, policy: &GatePolicy) -> Option<Reason> {
    let rule = policy.rules().find(|rule| rule.starts_with(place))?;
    let inside = Path::new(text).join(rule.strip_prefix(place).ok()?);
    against(&inside.display().to_string(), rule, policy)
}

/// Whether programs run what files there say, without anyone looking at them: `git status` obeys `.git/config`.
pub(crate) fn steers_programs(place: &Path) -> bool {
    place
        .components()
        .any(|component| STEERING.into_iter().any(|name| component.as_os_str().eq_ignore_ascii_case(name)))
}

/// Names of what steers programs.
pub(crate) const STEERING: [&str; 2] = [".git", ".hg"];

/// Whether a tool may go to a place at all. What speaks against it is added.
fn may_be(text: &str, place: &Path, policy: &GatePolicy, findings: &mut Findings) -> bool {
    let against = against(text, place, policy);
    let may = against.is_none();
    against.into_iter().for_each(|reason| findings.add(reason));
    may
}

/// What speaks against a place.
pub(crate) fn against(text: &str, place: &Path, policy: &GatePolicy) -> Option<Reason> {
    let path = || text.to_owned();
    if policy.is_own(place) {
        Some(Reason::OwnHome { path: path() })
    } else if let Some(rule) = policy.forbidden_paths.iter().find(|rule| place.starts_with(rule)) {
        Some(Reason::ForbiddenPath { path: path(), rule: rule.display().to_string() })
    } else if policy.bounds == Bounds::Workspace && !place.starts_with(&policy.workspace) {
        Some(Reason::OutsideWorkspace { path: path() })
    } else if !place.starts_with(&policy.workspace)
        && let Some(rule) = OF_THE_KERNEL.iter().find(|rule| place.starts_with(rule))
    {
        Some(Reason::ForbiddenPath { path: path(), rule: (*rule).to_owned() })
    } else {
        None
    }
}

/// What lies there is no file of anyone: it is the kernel, processes with their secrets, and devices.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A path without `.` and `..`, as if it held no links.
#[must_use]
pub fn plain(path: &Path) -> PathBuf {
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
