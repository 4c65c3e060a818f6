//! What the operator allows, as the gate needs it: everything expanded, nothing to look up.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::verdict::Autonomy;

/// The operator's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatePolicy {
    /// How much the agent may do on its own.
    pub autonomy: Autonomy,
    /// The folder the agent works in, with all links followed.
    pub workspace: PathBuf,
    /// Whether paths outside of it are refused.
    pub bounds: Bounds,
    /// What `~` means.
    pub user_home: PathBuf,
    /// CollieClaw's own folder, which no tool may touch.
    pub own_home: PathBuf,
    /// Paths that no tool may touch, nor what is beneath them.
    pub forbidden_paths: Vec<PathBuf>,
    /// Commands that never run, by their last name.
    pub forbidden_commands: BTreeSet<String>,
    /// Commands that the operator may be asked about.
    pub allowed_commands: BTreeSet<String>,
    /// `example.org`, `*.example.org`, or `host:port`.
    pub allowed_domains: Vec<String>,
}

/// Where the agent's paths may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// Into the workspace only.
    Workspace,
    /// Anywhere that is not forbidden; what lies outside weighs more.
    Anywhere,
}
