//! The rules of `.gitignore` and `.ignore` files. The files are read through the workspace's handle like all others.

use std::io::Read;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{FileAccess, OpenFolder};

/// The names of files with rules. The later name wins.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The maximum size of a file with rules. The rest is not read.
const MAX_RULE_BYTES: u64 = 64 * 1024;

/// The rules of the folders that the walk is in, the outermost first.
pub(super) struct IgnoreRules {
    /// `None` if nothing is ignored.
    levels: Option<Vec<Gitignore>>,
}

impl IgnoreRules {
    pub(super) fn none() -> Self {
        Self { levels: None }
    }

    /// Reads the rules of all folders of the workspace that contain the folder `root`.
    pub(super) fn above(access: &FileAccess<'_>, root: &Path) -> Self {
        let workspace = access.workspace.path();
        let mut folders: Vec<&Path> =
            root.ancestors().skip(1).take_while(|folder| folder.starts_with(workspace)).collect();
        folders.reverse();
        let rules = |folder: &Path| match access.open_folder(folder) {
            Ok(handle) => read_rules(access, &handle, folder),
            Err(_) => Gitignore::empty(),
        };
        Self { levels: Some(folders.into_iter().map(rules).collect()) }
    }

    /// Adds the rules of a folder that the walk has entered.
    pub(super) fn enter(&mut self, access: &FileAccess<'_>, folder: Option<&OpenFolder>) {
        if let (Some(levels), Some(folder)) = (&mut self.levels, folder) {
            levels.push(read_rules(access, &folder.handle, &folder.real));
        }
    }

    pub(super) fn leave(&mut self) {
        if let Some(levels) = &mut self.levels {
            levels.pop();
        }
    }

    /// Returns true if the innermost rule about a path excludes it.
    pub(super) fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        for rules in self.levels.iter().flatten().rev() {
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn read_rules(access: &FileAccess<'_>, folder: &std::os::fd::OwnedFd, path: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    let mut has_rules = false;
    for name in RULE_FILES {
        let Ok(file) = access.open_in_folder(folder, name.as_ref(), None) else { continue };
        let mut bytes = Vec::new();
        if file.take(MAX_RULE_BYTES).read_to_end(&mut bytes).is_err() {
            continue;
        }
        has_rules = true;
        for line in String::from_utf8_lossy(&bytes).lines() {
            // A line that isn't a valid rule excludes nothing, as in git.
            let _ = builder.add_line(None, line);
        }
    }
    if has_rules { builder.build().unwrap_or_else(|_| Gitignore::empty()) } else { Gitignore::empty() }
}
