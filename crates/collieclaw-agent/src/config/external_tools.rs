//! Settings of external tools: plugins and MCP servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use collieclaw_gate::{AutonomyLevel, RiskLevel, WriteAccess};
use serde::{Deserialize, Serialize, Serializer};

/// Separates the name of an MCP server from the name of its tool. Names of built-in tools and plugin tools
/// never contain it.
pub const TOOL_SEPARATOR: &str = "__";

/// Permissions of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PluginSettings {
    /// True if tools whose manifest asks for network access get it.
    pub network: bool,
    /// Risk levels that replace those of the manifest, by tool.
    pub risks: BTreeMap<String, RiskLevel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct McpSettings {
    pub servers: BTreeMap<String, McpServerSettings>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct McpServerSettings {
    #[serde(flatten)]
    pub connection: McpConnection,
    /// The risk level of the server's tools.
    pub risk: RiskLevel,
    /// Risk levels that differ from `risk`, by tool.
    pub risks: BTreeMap<String, RiskLevel>,
    /// The tools that may be used; all tools if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<String>>,
    /// The maximum time for one call, if shorter than the limit for all tools.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_duration")]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum McpConnection {
    /// A program that CollieClaw starts in a sandbox and talks to over its standard streams.
    Program {
        /// The name of an installed program, or an absolute path.
        command: String,
        args: Vec<String>,
        /// Names of environment variables that are passed to the server.
        env: Vec<String>,
        network: bool,
        workspace: WorkspaceUse,
        /// Folders that the server may read and run programs from.
        programs: Vec<PathBuf>,
    },
    /// A server that already runs on this machine.
    Http {
        /// The server's URL, always on a loopback address.
        url: String,
        /// The environment variable that holds the token; empty if the server needs no token.
        token_env: String,
    },
}

/// The access of an external tool to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceUse {
    #[default]
    None,
    Read,
    Write,
}

impl WorkspaceUse {
    /// Returns the write access that the gate is asked about.
    #[must_use]
    pub fn writes(self) -> WriteAccess {
        match self {
            Self::None | Self::Read => WriteAccess::None,
            Self::Write => WriteAccess::Workspace,
        }
    }

    /// Reduces the access to what the autonomy level allows.
    #[must_use]
    pub fn limited_by(self, autonomy: AutonomyLevel) -> Self {
        match (self, autonomy) {
            (Self::Write, AutonomyLevel::ReadOnly) => Self::Read,
            (other, _) => other,
        }
    }
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn serialize_optional_duration<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => super::serialize_duration(duration, serializer),
        None => serializer.serialize_none(),
    }
}

impl McpServerSettings {
    /// Returns true if the configuration enables this tool of the server.
    #[must_use]
    pub fn enables_tool(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }
}
