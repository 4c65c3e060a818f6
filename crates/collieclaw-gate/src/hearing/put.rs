//! What comes to lie where when files are copied, moved or linked: `cp -r n/.ssh .` writes `./.ssh`.

use std::path::Path;

use super::{Hearing, Stand};
use crate::facts::Seen;
use crate::path::{self, STEERING, Use};
use crate::programs::Put;
use crate::reason::Reason;

/// Folders in folders that are put over others.
const DEEPEST: usize = 16;

const TOO_MUCH: &str = "replace more files than can be looked at";

/// Stands for the name of a file that is found.
const FOUND: &str = "{}";

impl Hearing<'_> {
    /// Judges the places that something is put at. The target itself is judged as a path that is written.
    pub(super) fn put(&mut self, name: &str, put: &Put<'_>, stand: &Stand) {
        let Put { source, target, .. } = *put;
        if !self.has_patience(name, source) {
            return;
        }
        if source.contains(FOUND) {
            return self.put_anything(name, put, stand);
        }
        let target_is = self.facts.look(&self.from(stand).join(target));
        let inside = last_name(source).map(|last| below(target, last));
        match (inside, target_is) {
            // A word that looks like the flag may be none, behind `--`.
            (Some(inside), Seen::Folder { .. }) if put.in_place => {
                self.put_at(name, (source, &inside), stand, DEEPEST);
                self.put_at(name, (source, target), stand, DEEPEST);
            }
            (Some(inside), Seen::Folder { .. }) => self.put_at(name, (source, &inside), stand, DEEPEST),
            // By then it may be a folder.
            (Some(inside), Seen::Nothing { .. }) => {
                self.put_at(name, (source, &inside), stand, DEEPEST);
                self.put_at(name, (source, target), stand, DEEPEST);
            }
            (None, _) => self.put_at(name, (source, target), stand, DEEPEST),
            (Some(_), Seen::File { .. } | Seen::Special { .. } | Seen::Unreachable) => {}
        }
    }

    /// Whether one more thing that is put somewhere will be looked at. If not, that is found.
    fn has_patience(&mut self, name: &str, source: &str) -> bool {
        self.patience.puts = self.patience.puts.saturating_sub(1);
        if self.patience.puts == 0 {
            self.argument(name, source, TOO_MUCH);
        }
        self.patience.puts > 0
    }

    /// Judges one place, and those below if two folders become one.
    fn put_at(&mut self, name: &str, (source, place): (&str, &str), stand: &Stand, deepest: usize) {
        if !self.has_patience(name, source) {
            return;
        }
        if deepest == 0 {
            return self.argument(name, source, TOO_MUCH);
        }
        self.path(place, Use::Write, stand);
        self.rules_below(name, (source, place), stand);
        let from = self.from(stand);
        let seen = |path: &str| self.facts.look(&from.join(path));
        if !matches!(seen(place), Seen::Folder { .. }) {
            return;
        }
        match seen(source) {
            Seen::Folder { .. } => {}
            Seen::Nothing { .. } => {
                return self.argument(name, source, "fill a folder with what is not there yet");
            }
            _ => return,
        }
        let Some(names) = self.facts.names_in(&from.join(source)) else {
            return self.argument(name, source, "replace files that can't be looked at");
        };
        for inner in names {
            self.put_at(name, (&below(source, &inner), &below(place, &inner)), stand, deepest - 1);
            if self.patience.puts == 0 {
                break;
            }
        }
    }

    /// What a folder holds may come to lie where a rule forbids it.
    fn rules_below(&mut self, name: &str, (source, place): (&str, &str), stand: &Stand) {
        let from = self.from(stand);
        let written = path::plain(&from.join(place));
        for rule in self.policy.rules() {
            let Some(rest) = rule.strip_prefix(&written).ok().filter(|rest| *rest != Path::new("")) else {
                continue;
            };
            if matches!(self.facts.look(&from.join(source).join(rest)), Seen::Nothing { .. }) {
                self.argument(name, source, "put something at a forbidden path, perhaps");
            } else {
                let path = rule.display().to_string();
                self.findings.add(Reason::ForbiddenPath { rule: path.clone(), path });
            }
        }
    }

    /// Files that are found are put into a folder; which ones is known only when it runs.
    fn put_anything(&mut self, name: &str, put: &Put<'_>, stand: &Stand) {
        let from = self.from(stand);
        let folder = from.join(put.target);
        let written = path::plain(&folder);
        // A file with two names, or a link: what is written there is written elsewhere, too.
        let leads_on = |inner: String| match self.facts.look(&folder.join(&inner)) {
            Seen::File { names, leads_to } => names > 1 || leads_to != written.join(inner),
            Seen::Nothing { .. } => true,
            Seen::Folder { .. } | Seen::Special { .. } | Seen::Unreachable => false,
        };
        let steers = |name: &str| self.named.as_deref().is_none_or(|pattern| may_fit(pattern, name));
        let hits = put.folders
            || put.keeps_links
            || STEERING.into_iter().any(steers)
            || self.policy.rules().any(|rule| rule.starts_with(&written))
            || self.facts.names_in(&folder).is_some_and(|names| names.into_iter().any(leads_on));
        if hits {
            self.argument(name, put.source, "put files in a place that is known only when it runs");
        }
    }
}

/// Whether a name may fit a pattern: if it ends as the pattern does behind all that stands for other letters.
fn may_fit(pattern: &str, name: &str) -> bool {
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

fn below(folder: &str, name: &str) -> String {
    match folder.trim_end_matches('/') {
        "" if folder.starts_with('/') => format!("/{name}"),
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
