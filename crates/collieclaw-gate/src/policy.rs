//! What the operator allows, as the gate needs it: everything expanded, nothing to look up.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::verdict::AutonomyLevel;

/// The operator's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatePolicy {
    /// How much the agent may do on its own.
    pub autonomy: AutonomyLevel,
    /// The folder the agent works in, with all links followed.
    pub workspace: PathBuf,
    /// Whether paths outside of it are refused.
    pub bounds: PathBounds,
    /// What `~` means.
    pub user_home: PathBuf,
    /// CollieClaw's own folder, which no tool may touch.
    pub own_home: PathBuf,
    /// Files of its own that may lie elsewhere, as they are written and with all links followed: no tool may touch them
    /// either, nor what stands beside them under their name and more (`.head`, `-wal`).
    pub own_files: Vec<PathBuf>,
    /// Paths that no tool may touch, nor what is beneath them: as they are written and with all links followed.
    pub forbidden_paths: Vec<PathBuf>,
    /// Commands that never run, by their last name.
    pub forbidden_commands: BTreeSet<String>,
    /// Commands that the operator may be asked about.
    pub allowed_commands: BTreeSet<String>,
    /// `example.org`, `*.example.org`, or `host:port`.
    pub allowed_domains: Vec<String>,
}

impl GatePolicy {
    /// Whether a place is CollieClaw's own.
    #[must_use]
    pub fn is_own(&self, place: &Path) -> bool {
        place.starts_with(&self.own_home) || self.own_files.iter().any(|file| belongs_to(place, file))
    }

    /// The places that no tool may touch.
    pub(crate) fn protected_paths(&self) -> impl Iterator<Item = &Path> {
        let own = [&self.own_home].into_iter().chain(&self.own_files);
        own.chain(&self.forbidden_paths).map(PathBuf::as_path)
    }
}

/// Whether a place is a file, or one that is kept beside it under its name and more.
fn belongs_to(place: &Path, file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
    let Ok(below) = place.strip_prefix(folder) else { return false };
    let Some(Component::Normal(found)) = below.components().next() else { return false };
    let more = found.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    matches!(more, Some([] | [b'.' | b'-', ..]))
}

/// Where the agent's paths may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathBounds {
    /// Into the workspace only.
    Workspace,
    /// Anywhere that is not forbidden; what lies outside weighs more.
    Anywhere,
}

/// What a new installation lists: programs that read and print, and four that make, copy and move files. None of them
/// runs another program unless an argument says so, and those arguments are known ([`GateReason::CommandArgument`](crate::Reason)).
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

/// What a new installation never runs (C3.1).
pub const DEFAULT_FORBIDDEN_COMMANDS: &[&str] = &["rm", "shutdown", "reboot", "mkfs", "dd"];

/// Where a new installation never goes (C3.1). `~` is the user's home, still to be expanded.
pub const DEFAULT_FORBIDDEN_PATHS: &[&str] = &["/etc", "/sys", "/boot", "~/.ssh"];
