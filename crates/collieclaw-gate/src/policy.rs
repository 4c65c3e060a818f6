//! The operator's rules in the form that the gate needs: all paths expanded, nothing left to look up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::verdict::AutonomyLevel;

/// The operator's rules for tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatePolicy {
    pub autonomy: AutonomyLevel,
    /// The folder the agent works in, with all links resolved.
    pub workspace: PathBuf,
    pub bounds: PathBounds,
    /// The user's home folder, the meaning of `~`.
    pub user_home: PathBuf,
    /// CollieClaw's own folder, which no tool may touch.
    pub own_home: PathBuf,
    /// CollieClaw's own files outside of `own_home`, as written and with all links resolved. No tool may
    /// touch these files, nor their companions with a longer name (`.head`, `-wal`).
    pub own_files: Vec<PathBuf>,
    /// Paths that no tool may touch, and everything beneath them: as written and with all links resolved.
    pub forbidden_paths: Vec<PathBuf>,
    /// Commands that never run, by the last part of their path.
    pub forbidden_commands: BTreeSet<String>,
    /// Commands that run after the operator's approval.
    pub allowed_commands: BTreeSet<String>,
    /// `example.org`, `*.example.org`, or `host:port`.
    pub allowed_domains: Vec<String>,
    /// The network of the commands that the shell tool runs.
    pub command_network: CommandNetwork,
    /// Programs outside of the system's folders, such as those of a toolchain in the user's home: the name of
    /// each command and the real path that the operator has accepted for it (C16).
    pub pinned_programs: BTreeMap<String, PathBuf>,
    /// Scripts of the workspace that may run: the real path of each and the SHA-256 of the accepted content, in
    /// hexadecimal digits (C16).
    pub allowed_scripts: BTreeMap<PathBuf, String>,
    /// Whether programs of the workspace may run by their path, such as those that a compiler has built there.
    pub project_programs: ProjectPrograms,
    /// The folder with the home and the caches of commands, if they have one.
    pub command_cache: Option<PathBuf>,
}

impl GatePolicy {
    /// Returns true for CollieClaw's own files and folders.
    #[must_use]
    pub fn is_own(&self, place: &Path) -> bool {
        place.starts_with(&self.own_home) || self.own_files.iter().any(|file| belongs_to(place, file))
    }

    /// Returns the paths that no tool may touch.
    pub(crate) fn protected_paths(&self) -> impl Iterator<Item = &Path> {
        let own = [&self.own_home].into_iter().chain(&self.own_files);
        own.chain(&self.forbidden_paths).map(PathBuf::as_path)
    }
}

/// The rule for programs that are files of the workspace, whatever their content is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProjectPrograms {
    /// Only the scripts in [`GatePolicy::allowed_scripts`] run.
    #[default]
    Refused,
    /// They run after the operator's approval, where every program is judged when it is executed.
    Allowed,
}

/// Returns true if a path is the file itself, or a companion whose name starts with the file's name
/// (`x.db-wal`).
fn belongs_to(place: &Path, file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
    let Ok(below) = place.strip_prefix(folder) else { return false };
    let Some(Component::Normal(found)) = below.components().next() else { return false };
    let suffix = found.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    matches!(suffix, Some([] | [b'.' | b'-', ..]))
}

/// The network that commands of the shell tool reach (C19.4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandNetwork {
    /// Only the loopback interface of the command's own sandbox.
    #[default]
    None,
    /// The allowed domains, through a proxy that judges every connection.
    Listed,
}

/// The bounds on the agent's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathBounds {
    /// Only paths inside the workspace are allowed.
    Workspace,
    /// All paths are allowed that are not forbidden; paths outside of the workspace weigh more.
    Anywhere,
}

/// The allowed commands of a new installation: programs that read and print, and four that create, copy and
/// move files. These programs run another program only if an argument says so, and the gate knows those
/// arguments ([`GateReason::Argument`](crate::GateReason::Argument)).
pub const DEFAULT_ALLOWED_COMMANDS: &[&str] = &[
    "[",
    "awk",
    "basename",
    "cat",
    "cmp",
    "comm",
    "cp",
    "cut",
    "date",
    "diff",
    "dirname",
    "du",
    "echo",
    "false",
    "file",
    "find",
    "grep",
    "head",
    "jq",
    "ls",
    "md5sum",
    "mkdir",
    "mv",
    "nl",
    "printf",
    "pwd",
    "realpath",
    "rev",
    "sed",
    "seq",
    "sha256sum",
    "sort",
    "stat",
    "tac",
    "tail",
    "test",
    "touch",
    "tr",
    "tree",
    "true",
    "uniq",
    "wc",
    "which",
];

/// The forbidden commands of a new installation (C3.1).
pub const DEFAULT_FORBIDDEN_COMMANDS: &[&str] = &["rm", "shutdown", "reboot", "mkfs", "dd"];

/// The forbidden paths of a new installation (C3.1). The configuration expands `~` to the user's home.
pub const DEFAULT_FORBIDDEN_PATHS: &[&str] = &["/etc", "/sys", "/boot", "~/.ssh"];
