//! The rules of one workspace, as its file in the home has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use collieclaw_gate::CommandNetwork;
use serde::{Deserialize, Serialize};

use super::trust::FolderIdentity;

/// The rules of a workspace. They add to the configuration: a program or a domain is allowed if either lists it, and
/// nothing in here can allow a forbidden command or path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRules {
    /// The folder, with all symlinks resolved.
    pub path: PathBuf,
    /// The network that commands may use.
    #[serde(default)]
    pub network: WorkspaceNetwork,
    /// True if programs of the workspace may run by their path, whatever their content is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub project_programs: bool,
    /// The presets that were applied, for people to read.
    #[serde(default)]
    pub presets: BTreeSet<String>,
    #[serde(default)]
    pub allowed_commands: BTreeSet<String>,
    #[serde(default)]
    pub allowed_domains: BTreeSet<String>,
    /// Folders of the user's home that commands may read.
    #[serde(default)]
    pub toolchain_folders: BTreeSet<PathBuf>,
    /// The folder that was trusted. `None` for the workspace of the configuration, which needs no trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<FolderIdentity>,
    /// Programs outside of the system's folders, by the name of their command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, PinnedProgram>,
    /// Scripts of the workspace that may run: the real path, and the SHA-256 of the accepted content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scripts: BTreeMap<PathBuf, String>,
}

/// A program that was found through the user's `PATH` and accepted with its real path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedProgram {
    /// The path at which `PATH` has it.
    pub found: PathBuf,
    /// The same path with all symlinks resolved.
    pub real: PathBuf,
}

/// The network that commands of a workspace may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceNetwork {
    #[default]
    None,
    /// Only the allowed domains.
    Listed,
}

impl fmt::Display for WorkspaceNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Listed => "listed",
        })
    }
}

impl From<WorkspaceNetwork> for CommandNetwork {
    fn from(network: WorkspaceNetwork) -> Self {
        match network {
            WorkspaceNetwork::None => Self::None,
            WorkspaceNetwork::Listed => Self::Listed,
        }
    }
}

impl WorkspaceRules {
    /// Creates the rules of a workspace in which nothing is allowed in addition to the configuration.
    #[must_use]
    pub fn new(path: &Path, trusted: Option<FolderIdentity>) -> Self {
        Self { path: path.to_owned(), trusted, ..Self::default() }
    }

    /// Returns whether commands of this workspace get folders for their caches: only if the operator allowed any.
    #[must_use]
    pub fn needs_cache(&self) -> bool {
        !(self.allowed_commands.is_empty() && self.scripts.is_empty()) || self.project_programs
    }
}
