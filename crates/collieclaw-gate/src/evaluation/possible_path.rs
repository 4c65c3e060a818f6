//! Judges words that may be paths, because the table doesn't know their meaning.

use std::path::{Component, Path};

use super::walk::DEV_NULL;
use super::{CommandFolder, ShellEvaluation};
use crate::facts::PathStatus;
use crate::path::{self, PathAccess, normalize_path, steers_programs};
use crate::reason::GateReason;

impl ShellEvaluation<'_> {
    /// Judges a word, or its value after `=`, as a path if it leads out of the folder or into the settings of a
    /// repository.
    pub(super) fn judge_possible_path(&mut self, text: &str, cwd: &CommandFolder) {
        let value = text.split_once('=').map_or(text, |(_, value)| value);
        for path in [text, value].map(|path| path.strip_prefix('@').unwrap_or(path)) {
            let leads_away = path.starts_with(['/', '~']) || path.split('/').any(|name| name == "..");
            if leads_away && path != DEV_NULL && !self.names_nothing(path) {
                self.judge_path(path, PathAccess::Read, cwd);
            }
            // The program may as well write the file.
            if path.contains('/') && !path.ends_with('/') && steers_programs(Path::new(path)) {
                self.judge_path(path, PathAccess::Write, cwd);
            }
        }
    }

    /// Returns true for a text such as `/api/users`, which looks like a path but names no file of this machine:
    /// its first folder doesn't exist, and no command can create it.
    fn names_nothing(&mut self, text: &str) -> bool {
        let Some(left) = self.budget.paths.checked_sub(1) else { return false };
        self.budget.paths = left;
        let place = normalize_path(Path::new(text));
        let mut components = place.components();
        // A colon may separate several paths.
        if components.next() != Some(Component::RootDir) || text.contains(':') {
            return false;
        }
        let Some(first) = components.next() else { return false };
        let objection = path::find_objection(text, &place, self.policy);
        matches!(objection, None | Some(GateReason::OutsideWorkspace { .. }))
            && !place.starts_with(&self.policy.workspace)
            && matches!(self.facts.inspect_path(&Path::new("/").join(first)), PathStatus::Missing { .. })
    }
}
