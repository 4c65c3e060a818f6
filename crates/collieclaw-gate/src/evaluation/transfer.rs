//! What comes to lie where when files are copied, moved or linked: `cp -r n/.ssh .` writes `./.ssh`.

use std::path::Path;

use super::{CommandFolder, ShellEvaluation};
use crate::facts::PathStatus;
use crate::path::{self, PathAccess, STEERING_FOLDERS};
use crate::programs::FileTransfer;
use crate::reason::GateReason;

/// Folders in folders that are put over others.
const MAX_MERGE_DEPTH: usize = 16;

const TOO_MUCH: &str = "replace more files than can be looked at";

/// Stands for the name of a file that is found.
const FOUND_NAME: &str = "{}";

impl ShellEvaluation<'_> {
    /// Judges the places that something is put at. The target itself is judged as a path that is written.
    pub(super) fn judge_transfer(&mut self, name: &str, put: &FileTransfer<'_>, stand: &CommandFolder) {
        let FileTransfer { source, target, .. } = *put;
        if !self.spend_transfer(name, source) {
            return;
        }
        if source.contains(FOUND_NAME) {
            return self.judge_found_files(name, put, stand);
        }
        let target_is = self.facts.inspect_path(&self.base_folder(stand).join(target));
        let inside = last_name(source).map(|last| join_name(target, last));
        match (inside, target_is) {
            // A word that looks like the flag may be none, behind `--`.
            (Some(inside), PathStatus::Folder { .. }) if put.replaces_target => {
                self.judge_destination(name, (source, &inside), stand, MAX_MERGE_DEPTH);
                self.judge_destination(name, (source, target), stand, MAX_MERGE_DEPTH);
            }
            (Some(inside), PathStatus::Folder { .. }) => {
                self.judge_destination(name, (source, &inside), stand, MAX_MERGE_DEPTH);
            }
            // By then it may be a folder.
            (Some(inside), PathStatus::Missing { .. }) => {
                self.judge_destination(name, (source, &inside), stand, MAX_MERGE_DEPTH);
                self.judge_destination(name, (source, target), stand, MAX_MERGE_DEPTH);
            }
            (None, _) => self.judge_destination(name, (source, target), stand, MAX_MERGE_DEPTH),
            (Some(_), PathStatus::File { .. } | PathStatus::Special { .. } | PathStatus::Unreachable) => {}
        }
    }

    /// Whether one more thing that is put somewhere will be looked at. If not, that is found.
    fn spend_transfer(&mut self, name: &str, source: &str) -> bool {
        self.budget.transfers = self.budget.transfers.saturating_sub(1);
        if self.budget.transfers == 0 {
            self.add_argument_reason(name, source, TOO_MUCH);
        }
        self.budget.transfers > 0
    }

    /// Judges one place, and those below if two folders become one.
    fn judge_destination(
        &mut self,
        name: &str,
        (source, place): (&str, &str),
        stand: &CommandFolder,
        deepest: usize,
    ) {
        if !self.spend_transfer(name, source) {
            return;
        }
        if deepest == 0 {
            return self.add_argument_reason(name, source, TOO_MUCH);
        }
        self.judge_path(place, PathAccess::Write, stand);
        self.judge_rules_below(name, (source, place), stand);
        let from = self.base_folder(stand);
        let seen = |path: &str| self.facts.inspect_path(&from.join(path));
        if !matches!(seen(place), PathStatus::Folder { .. }) {
            return;
        }
        match seen(source) {
            PathStatus::Folder { .. } => {}
            PathStatus::Missing { .. } => {
                return self.add_argument_reason(name, source, "fill a folder with what is not there yet");
            }
            _ => return,
        }
        let Some(names) = self.facts.names_in(&from.join(source)) else {
            return self.add_argument_reason(name, source, "replace files that can't be looked at");
        };
        for inner in names {
            self.judge_destination(
                name,
                (&join_name(source, &inner), &join_name(place, &inner)),
                stand,
                deepest - 1,
            );
            if self.budget.transfers == 0 {
                break;
            }
        }
    }

    /// What a folder holds may come to lie where a rule forbids it.
    fn judge_rules_below(&mut self, name: &str, (source, place): (&str, &str), stand: &CommandFolder) {
        let from = self.base_folder(stand);
        let written = path::normalize_path(&from.join(place));
        for rule in self.policy.protected_paths() {
            let Some(rest) = rule.strip_prefix(&written).ok().filter(|rest| *rest != Path::new("")) else {
                continue;
            };
            if matches!(self.facts.inspect_path(&from.join(source).join(rest)), PathStatus::Missing { .. }) {
                self.add_argument_reason(name, source, "put something at a forbidden path, perhaps");
            } else {
                let path = rule.display().to_string();
                self.findings.add(GateReason::ForbiddenPath { rule: path.clone(), path });
            }
        }
    }

    /// Files that are found are put into a folder; which ones is known only when it runs.
    fn judge_found_files(&mut self, name: &str, put: &FileTransfer<'_>, stand: &CommandFolder) {
        let from = self.base_folder(stand);
        let folder = from.join(put.target);
        let written = path::normalize_path(&folder);
        // A file with two names, or a link: what is written there is written elsewhere, too.
        let leads_on = |inner: String| match self.facts.inspect_path(&folder.join(&inner)) {
            PathStatus::File { link_count: names, leads_to } => names > 1 || leads_to != written.join(inner),
            PathStatus::Missing { .. } => true,
            PathStatus::Folder { .. } | PathStatus::Special { .. } | PathStatus::Unreachable => false,
        };
        let steers = |name: &str| self.name_pattern.as_deref().is_none_or(|pattern| may_match(pattern, name));
        let hits = put.recursive
            || put.keeps_links
            || STEERING_FOLDERS.into_iter().any(steers)
            || self.policy.protected_paths().any(|rule| rule.starts_with(&written))
            || self.facts.names_in(&folder).is_some_and(|names| names.into_iter().any(leads_on));
        if hits {
            self.add_argument_reason(
                name,
                put.source,
                "put files in a place that is known only when it runs",
            );
        }
    }
}

/// Whether a name may fit a pattern: if it ends as the pattern does behind all that stands for other letters.
fn may_match(pattern: &str, name: &str) -> bool {
    let end = pattern.rsplit(['*', '?', '[', ']', '\\']).next().unwrap_or_default();
    let length = if end.len() == pattern.len() { name.len() } else { end.len() };
    name.len()
        .checked_sub(length)
        .and_then(|from| name.get(from..))
        .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// The name that a source keeps in a folder; `None` if it is what the source holds that is put there.
fn last_name(source: &str) -> Option<&str> {
    let last = source.trim_end_matches('/').rsplit('/').next()?;
    (!matches!(last, "" | "." | "..")).then_some(last)
}

fn join_name(folder: &str, name: &str) -> String {
    match folder.trim_end_matches('/') {
        "" if folder.starts_with('/') => format!("/{name}"),
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
