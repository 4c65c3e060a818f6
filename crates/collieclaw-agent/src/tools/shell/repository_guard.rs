//! Protection of repositories that a line creates or changes anywhere in the workspace.
//!
//! `git` trusts the settings of every repository that it finds: of a submodule, of a folder that merely looks like a
//! repository, of a folder that a file `.git` names. The kernel can't keep a command from creating such settings, so those
//! that could make `git` run a command are renamed after the line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use collieclaw_gate::normalize_path;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::super::ToolResult;
use super::vcs_guard::{rename_failure, rename_file};
use crate::security::{FileAccess, FileError};

/// The maximum number of folders that are searched for repositories.
const MAX_FOLDERS: usize = 20_000;

/// The maximum size of settings. Larger files count as harmful.
const MAX_CONFIG_BYTES: u64 = 64 * 1024;

/// Folders of a repository that contain no settings.
const DATA_FOLDERS: [&str; 3] = ["logs", "objects", "refs"];

/// Sections in which every key is harmless.
const HARMLESS_SECTIONS: [&str; 8] =
    ["advice", "branch", "color", "extensions", "pull", "push", "submodule", "user"];

/// Harmless keys of other sections.
const HARMLESS_KEYS: [(&str, &[&str]); 4] = [
    (
        "core",
        &[
            "autocrlf",
            "bare",
            "eol",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
            "worktree",
        ],
    ),
    ("init", &["defaultbranch"]),
    ("lfs", &["repositoryformatversion"]),
    ("remote", &["fetch", "partialclonefilter", "promisor", "pushurl", "tagopt", "url"]),
];

/// One version of a file. No program can forge the time of the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    /// The seconds and nanoseconds of the last change.
    changed: (i64, i64),
}

/// The settings of repositories in a workspace, as they were before a line ran or a file was written.
pub(super) struct RepositoryGuard {
    workspace: PathBuf,
    scope: SearchScope,
    before: RepositoryScan,
    /// A time in seconds, just before the scan.
    since: i64,
}

/// The folders in which repositories are searched.
enum SearchScope {
    /// All folders below the workspace.
    Workspace,
    /// Only these folders, without those below them.
    Folders(Vec<PathBuf>),
}

/// Changes a file of the workspace, and checks the repositories around it as after a shell line: a file can make a folder
/// a repository, or be a setting of one.
pub(in crate::tools) fn guard_repositories(
    access: FileAccess<'_>,
    path: &Path,
    change: impl FnOnce() -> Result<ToolResult, FileError>,
) -> Result<ToolResult, FileError> {
    let guard = RepositoryGuard::snapshot_around(access.workspace_path(), &normalize_path(path));
    let mut result = change()?;
    for notice in guard.set_aside_harmful_settings() {
        result.output.push_str(&format!("\n{notice}\n"));
    }
    Ok(result)
}

#[derive(Default)]
struct RepositoryScan {
    /// Files that steer `git`.
    settings: BTreeMap<PathBuf, FileVersion>,
    /// Folders that `git` would accept as a repository.
    repositories: BTreeSet<PathBuf>,
    folders: usize,
}

impl RepositoryGuard {
    pub(super) fn snapshot(workspace: &Path) -> Self {
        Self::with_scope(workspace, SearchScope::Workspace)
    }

    /// Looks only at the path, if it is a folder, and at the folders around it.
    fn snapshot_around(workspace: &Path, path: &Path) -> Self {
        let folders = path.ancestors().take_while(|folder| folder.starts_with(workspace));
        Self::with_scope(workspace, SearchScope::Folders(folders.map(Path::to_owned).collect()))
    }

    fn with_scope(workspace: &Path, scope: SearchScope) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // The times of files come from a clock that may be some milliseconds behind.
        let since = i64::try_from(now.as_secs()).unwrap_or(i64::MAX).saturating_sub(1);
        let before = RepositoryScan::of(workspace, &scope);
        Self { workspace: workspace.to_owned(), scope, before, since }
    }

    /// Renames new and changed settings that could make `git` run a command, and returns one message for each.
    pub(super) fn set_aside_harmful_settings(self) -> Vec<String> {
        let after = RepositoryScan::of(&self.workspace, &self.scope);
        let changed = after.settings.iter().filter(|(path, version)| self.has_changed(path, **version));
        let harmful = changed.filter(|(path, _)| !is_harmless(path, &after.repositories));
        let mut messages: Vec<String> =
            harmful.map(|(path, _)| set_aside_beneath(&self.workspace, path)).collect();
        if after.is_incomplete() {
            messages.push(format!(
                "collieclaw: `{}` has more than {MAX_FOLDERS} folders, so not all were searched for new repositories",
                self.workspace.display()
            ));
        }
        messages
    }

    /// Returns true if a file is new or has changed since the snapshot. A snapshot that is incomplete may have missed the
    /// file, so then the time of its last change decides.
    fn has_changed(&self, path: &Path, version: FileVersion) -> bool {
        match self.before.settings.get(path) {
            Some(before) => *before != version,
            None => !self.before.is_incomplete() || version.changed.0 >= self.since,
        }
    }
}

/// Renames a file of the workspace, and returns a message. The commands of another line may run now, so no symlink on the
/// way is followed.
fn set_aside_beneath(workspace: &Path, file: &Path) -> String {
    let (folder, name) = (file.parent().unwrap_or(file), file.file_name().unwrap_or_default());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let below = folder.strip_prefix(workspace).unwrap_or(folder);
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let opened = openat(CWD, workspace, flags, Mode::empty()).and_then(|root| {
        openat2(root, below, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
    });
    match opened {
        Ok(folder) => rename_file(&folder, name, file),
        Err(error) => rename_failure(file, error),
    }
}

impl RepositoryScan {
    /// Returns true if there are more folders than were searched.
    fn is_incomplete(&self) -> bool {
        self.folders > MAX_FOLDERS
    }

    fn of(workspace: &Path, scope: &SearchScope) -> Self {
        let mut scan = Self::default();
        if let SearchScope::Folders(folders) = scope {
            folders.iter().for_each(|folder| scan.add_folder(folder, &mut Vec::new()));
            return scan;
        }
        let mut pending = vec![workspace.to_owned()];
        while let Some(folder) = pending.pop() {
            scan.folders += 1;
            if scan.folders > MAX_FOLDERS {
                break;
            }
            scan.add_folder(&folder, &mut pending);
        }
        scan
    }

    fn add_folder(&mut self, folder: &Path, pending: &mut Vec<PathBuf>) {
        let is_in_repository = folder.components().any(|part| part.as_os_str() == ".git");
        let mut is_repository = folder.file_name() == Some(OsStr::new(".git"));
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            is_repository |= name == "HEAD";
            if is_folder {
                let is_data = is_in_repository && DATA_FOLDERS.iter().any(|data| name == *data);
                pending.extend((!is_data).then(|| entry.path()));
            } else if name == ".git" {
                self.add_setting(entry.path());
            }
        }
        if is_repository {
            self.repositories.insert(folder.to_owned());
            ["config", "config.worktree", "commondir"]
                .iter()
                .for_each(|name| self.add_setting(folder.join(name)));
            let hooks = std::fs::read_dir(folder.join("hooks")).into_iter().flatten().flatten();
            let is_sample = |path: &Path| path.extension() == Some(OsStr::new("sample"));
            hooks
                .map(|hook| hook.path())
                .filter(|hook| !is_sample(hook))
                .for_each(|hook| self.add_setting(hook));
        }
    }

    fn add_setting(&mut self, path: PathBuf) {
        if let Ok(found) = path.symlink_metadata() {
            let version = FileVersion {
                device: found.dev(),
                inode: found.ino(),
                size: found.size(),
                changed: (found.ctime(), found.ctime_nsec()),
            };
            self.settings.insert(path, version);
        }
    }
}

/// Returns true if `git` can use a new file that steers it without running a command.
fn is_harmless(path: &Path, repositories: &BTreeSet<PathBuf>) -> bool {
    let folder = path.parent().unwrap_or(path);
    let is_known = |target: &Path| target.canonicalize().is_ok_and(|target| repositories.contains(&target));
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if name == ".git" && path.is_symlink() {
        return is_known(path);
    }
    let Some(text) = read_text(path) else { return false };
    match name {
        // The settings of a known repository have been checked, too.
        ".git" => text.strip_prefix("gitdir:").is_some_and(|target| is_known(&folder.join(target.trim()))),
        "commondir" => {
            let is_worktree = folder.parent().and_then(Path::file_name) == Some(OsStr::new("worktrees"));
            is_worktree && text.trim() == "../.."
        }
        "config" | "config.worktree" => has_harmless_settings(&text),
        _ => false,
    }
}

fn read_text(path: &Path) -> Option<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
    let status = file.metadata().ok()?;
    let mut text = String::new();
    let is_short = status.is_file() && status.len() <= MAX_CONFIG_BYTES;
    (is_short && file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).is_ok()).then_some(text)
}

/// Returns true if every line is one that `git` itself writes into a new repository. Everything else counts as harmful,
/// also what `git` may read in another way.
fn has_harmless_settings(text: &str) -> bool {
    let mut section = String::new();
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(header) = line.strip_prefix('[') {
            let name = header.strip_suffix(']').filter(|name| !name.contains(']'));
            section =
                name.and_then(|name| name.split([' ', '"']).next()).unwrap_or_default().to_ascii_lowercase();
            return !section.is_empty();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        // A helper of the name before `::` runs for such an address. Quotes and backslashes could hide the colons.
        let runs_helper = value.contains("::") || value.contains(['"', '\\']);
        let is_listed =
            HARMLESS_KEYS.iter().any(|(name, keys)| section == *name && keys.contains(&key.as_str()));
        // A submodule can be updated by a command.
        let is_command = section == "submodule" && key == "update";
        let is_harmless = is_listed || HARMLESS_SECTIONS.contains(&section.as_str()) && !is_command;
        is_plain && !runs_helper && is_harmless
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_new_repository_are_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ../../../sub\n\
                    [remote \"origin\"]\n\turl = https://a.example/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                    [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n# end\n[user]\nname = A B\n";
        assert!(has_harmless_settings(text));
    }

    #[test]
    fn settings_that_run_commands_are_harmful() {
        for text in [
            "[core]\nfsmonitor = ./x",
            "[CORE] fsMonitor = ./x",
            "[core]\nsshCommand = x",
            "[core]\nhooksPath = x",
            "[include]\npath = x",
            "[init]\ntemplateDir = x",
            "[filter \"a\"]\nclean = x",
            "[alias]\nst = !x",
            "[remote \"a\"]\nurl = ext::sh -c x",
            "[remote \"a\"]\nuploadpack = x",
            "[remote \"a\"]\nurl = a\\\nb",
            "[remote \"a\"]\nurl = ext:\"\":sh -c x",
            "[submodule \"a\"]\nupdate = !x",
            "[user]\nname = a\n[user] x = 1\n[core]\rfsmonitor = x",
            "fsmonitor = x",
        ] {
            assert!(!has_harmless_settings(text), "{text}");
        }
    }

    #[test]
    fn settings_that_an_incomplete_snapshot_has_missed_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("inner/.git/config");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        std::fs::write(&config, "[core]\nfsmonitor = mine\n").unwrap();
        let changed = config.metadata().unwrap().ctime();
        let guard = |since| RepositoryGuard {
            scope: SearchScope::Workspace,
            workspace: folder.path().to_owned(),
            before: RepositoryScan { folders: MAX_FOLDERS + 1, ..RepositoryScan::default() },
            since,
        };
        assert_eq!(guard(changed + 1).set_aside_harmful_settings(), Vec::<String>::new());
        assert!(config.exists());
        assert_eq!(guard(changed).set_aside_harmful_settings().len(), 1);
        assert!(!config.exists());
    }

    #[test]
    fn a_file_behind_a_symlink_is_not_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let [workspace, outside] = ["workspace", "outside"].map(|name| folder.path().join(name));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir_all(outside.join(".git")).unwrap();
        std::fs::write(outside.join(".git/config"), "").unwrap();
        std::os::unix::fs::symlink(&outside, workspace.join("link")).unwrap();
        let message = set_aside_beneath(&workspace, &workspace.join("link/.git/config"));
        assert!(message.contains("could not be renamed"), "{message}");
        assert!(outside.join(".git/config").exists());
    }
}
