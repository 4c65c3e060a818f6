//! Judges the destinations of files that are copied, moved or linked: `cp -r n/.ssh .` writes `./.ssh`.

use std::path::Path;

use super::{CommandFolder, ShellEvaluation};
use crate::facts::PathStatus;
use crate::path::{self, PathAccess, STEERING_FOLDERS};
use crate::programs::FileTransfer;
use crate::reason::GateReason;

/// The maximum depth of folders that are merged into existing folders.
const MAX_MERGE_DEPTH: usize = 16;

const TOO_MUCH: &str = "replace more files than the gate can check";

/// The placeholder of `find -exec` for the name of a file.
const FOUND_NAME: &str = "{}";

impl ShellEvaluation<'_> {
    /// Judges the destinations of a transfer. The caller judges the target itself as a written path.
    pub(super) fn judge_transfer(&mut self, name: &str, transfer: &FileTransfer<'_>, cwd: &CommandFolder) {
        let FileTransfer { source, target, .. } = *transfer;
        if !self.spend_transfer(name, source) {
            return;
        }
        if source.contains(FOUND_NAME) {
            return self.judge_found_files(name, transfer, cwd);
        }
        let target_is = self.facts.inspect_path(&self.base_folder(cwd).join(target));
        let inside = last_name(source).map(|last| join_name(target, last));
        match (inside, target_is) {
            // After `--`, the word that looks like the flag `-T` may be a file, so judge both destinations.
            (Some(inside), PathStatus::Folder { .. }) if transfer.replaces_target => {
                self.judge_destination(name, (source, &inside), cwd, MAX_MERGE_DEPTH);
                self.judge_destination(name, (source, target), cwd, MAX_MERGE_DEPTH);
            }
            (Some(inside), PathStatus::Folder { .. }) => {
                self.judge_destination(name, (source, &inside), cwd, MAX_MERGE_DEPTH);
            }
            // When the command runs, the target may exist as a folder.
            (Some(inside), PathStatus::Missing { .. }) => {
                self.judge_destination(name, (source, &inside), cwd, MAX_MERGE_DEPTH);
                self.judge_destination(name, (source, target), cwd, MAX_MERGE_DEPTH);
            }
            (None, _) => self.judge_destination(name, (source, target), cwd, MAX_MERGE_DEPTH),
            (Some(_), PathStatus::File { .. } | PathStatus::Special { .. } | PathStatus::Unreachable) => {}
        }
    }

    /// Judges a symbolic link. Its text is a path that starts in the folder of the link, and a later command may
    /// write through the link, so the path is judged as if it were written.
    pub(super) fn judge_link(&mut self, name: &str, source: &str, target: &str, cwd: &CommandFolder) {
        if !self.spend_transfer(name, source) {
            return;
        }
        let in_folder = target.ends_with('/')
            || matches!(
                self.facts.inspect_path(&self.base_folder(cwd).join(target)),
                PathStatus::Folder { .. }
            );
        let folder = match target.trim_end_matches('/').rsplit_once('/') {
            _ if in_folder => target,
            Some((folder, _)) => folder,
            None => ".",
        };
        self.judge_path(&join_name(folder, source), PathAccess::Write, cwd);
        if let Some(last) = last_name(source).filter(|_| in_folder) {
            self.judge_path(&join_name(target, last), PathAccess::Write, cwd);
        }
    }

    /// Spends a unit of the transfer budget. Returns false, after adding a reason, if the budget is used up.
    fn spend_transfer(&mut self, name: &str, source: &str) -> bool {
        self.budget.transfers = self.budget.transfers.saturating_sub(1);
        if self.budget.transfers == 0 {
            self.add_argument_reason(name, source, TOO_MUCH);
        }
        self.budget.transfers > 0
    }

    /// Judges a destination, and the destinations inside it if the source folder merges into an existing
    /// folder.
    fn judge_destination(
        &mut self,
        name: &str,
        (source, place): (&str, &str),
        cwd: &CommandFolder,
        deepest: usize,
    ) {
        if !self.spend_transfer(name, source) {
            return;
        }
        if deepest == 0 {
            return self.add_argument_reason(name, source, TOO_MUCH);
        }
        self.judge_path(place, PathAccess::Write, cwd);
        self.judge_rules_below(name, (source, place), cwd);
        let from = self.base_folder(cwd);
        let seen = |path: &str| self.facts.inspect_path(&from.join(path));
        if !matches!(seen(place), PathStatus::Folder { .. }) {
            return;
        }
        match seen(source) {
            PathStatus::Folder { .. } => {}
            PathStatus::Missing { .. } => {
                return self.add_argument_reason(
                    name,
                    source,
                    "fill a folder from a folder that doesn't exist yet",
                );
            }
            _ => return,
        }
        let Some(names) = self.facts.names_in(&from.join(source)) else {
            return self.add_argument_reason(
                name,
                source,
                "replace files with those of a folder that can't be listed",
            );
        };
        for inner in names {
            self.judge_destination(
                name,
                (&join_name(source, &inner), &join_name(place, &inner)),
                cwd,
                deepest - 1,
            );
            if self.budget.transfers == 0 {
                break;
            }
        }
    }

    /// Judges the protected paths beneath a destination: the contents of the source may end up there.
    fn judge_rules_below(&mut self, name: &str, (source, place): (&str, &str), cwd: &CommandFolder) {
        let from = self.base_folder(cwd);
        let written = path::normalize_path(&from.join(place));
        for rule in self.policy.protected_paths() {
            let Some(rest) = rule.strip_prefix(&written).ok().filter(|rest| *rest != Path::new("")) else {
                continue;
            };
            if matches!(self.facts.inspect_path(&from.join(source).join(rest)), PathStatus::Missing { .. }) {
                self.add_argument_reason(name, source, "possibly write to a forbidden path");
            } else {
                let path = rule.display().to_string();
                self.findings.add(GateReason::ForbiddenPath { rule: path.clone(), path });
            }
        }
    }

    /// Judges the transfer of files that `find` finds; their names are known only when the line runs.
    fn judge_found_files(&mut self, name: &str, transfer: &FileTransfer<'_>, cwd: &CommandFolder) {
        let from = self.base_folder(cwd);
        let folder = from.join(transfer.target);
        let written = path::normalize_path(&folder);
        // Writing to a hard link or a symbolic link also changes a file elsewhere.
        let leads_elsewhere = |inner: String| match self.facts.inspect_path(&folder.join(&inner)) {
            PathStatus::File { link_count, leads_to } => link_count > 1 || leads_to != written.join(inner),
            PathStatus::Missing { .. } => true,
            PathStatus::Folder { .. } | PathStatus::Special { .. } | PathStatus::Unreachable => false,
        };
        let steers = |name: &str| self.name_pattern.as_deref().is_none_or(|pattern| may_match(pattern, name));
        let hits = transfer.recursive
            || transfer.keeps_links
            || STEERING_FOLDERS.into_iter().any(steers)
            || self.policy.protected_paths().any(|rule| rule.starts_with(&written))
            || self.facts.names_in(&folder).is_some_and(|names| names.into_iter().any(leads_elsewhere));
        if hits {
            self.add_file_name_reason(
                name,
                transfer.source,
                "write to places that are known only when it runs; limit them with one `-name '*.txt'`",
            );
        }
    }
}

/// Returns true if a name may match a pattern, judging only by the literal end of the pattern.
fn may_match(pattern: &str, name: &str) -> bool {
    let end = pattern.rsplit(['*', '?', '[', ']', '\\']).next().unwrap_or_default();
    let length = if end.len() == pattern.len() { name.len() } else { end.len() };
    name.len()
        .checked_sub(length)
        .and_then(|from| name.get(from..))
        .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// Returns the name that a source gets in the target folder; `None` if the contents of the source go there
/// (`dir/.`).
fn last_name(source: &str) -> Option<&str> {
    let last = source.trim_end_matches('/').rsplit('/').next()?;
    (!matches!(last, "" | "." | "..")).then_some(last)
}

fn join_name(folder: &str, name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    match folder.trim_end_matches('/') {
        "" if folder.starts_with('/') => format!("/{name}"),
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
