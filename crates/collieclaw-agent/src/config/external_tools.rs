//! What the operator says of tools that others wrote: plugins and MCP servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use collieclaw_gate::{AutonomyLevel, RiskLevel, WriteAccess};
use serde::{Deserialize, Serialize, Serializer};

/// Separates the name of an MCP server from that of its tool. No built-in tool and no plugin has it in a name.
pub const TOOL_SEPARATOR: &str = "__";

/// Of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PluginSettings {
    /// Whether those of its tools that ask for the network get it.
    pub network: bool,
    /// Another risk than its manifest names, by tool.
    pub risks: BTreeMap<String, RiskLevel>,
}

/// MCP, as far as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct McpSettings {
    /// By name.
    pub servers: BTreeMap<String, McpServerSettings>,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct McpServerSettings {
    /// How it is reached.
    #[serde(flatten)]
    pub connection: McpConnection,
    /// How much its tools can do.
    pub risk: RiskLevel,
    /// The same, by tool.
    pub risks: BTreeMap<String, RiskLevel>,
    /// The tools of it that are used; all, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<String>>,
    /// How long a call may take, if that is less than other tools.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_in_words")]
    pub timeout: Option<Duration>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum McpConnection {
    /// It is a program that we start, in the sandbox.
    Program {
        /// A program of the system, or its absolute path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of our environment that it gets.
        env: Vec<String>,
        /// Whether it reaches the network.
        network: bool,
        /// What of the workspace it may use.
        workspace: WorkspaceUse,
        /// Folders that it may read and run programs of.
        programs: Vec<PathBuf>,
    },
    /// It is there already, on this machine.
    Http {
        /// Where; always a loopback address.
        url: String,
        /// The variable that holds its token; empty if there is none.
        token_env: String,
    },
}

/// What of the workspace a tool of others may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceUse {
    /// Nothing.
    #[default]
    None,
    /// It may read there.
    Read,
    /// It may read and write there.
    Write,
}

impl WorkspaceUse {
    /// For the gate.
    #[must_use]
    pub fn writes(self) -> WriteAccess {
        match self {
            Self::None | Self::Read => WriteAccess::None,
            Self::Write => WriteAccess::Workspace,
        }
    }

    /// As far as the level allows.
    #[must_use]
    pub fn limited_by(self, autonomy: AutonomyLevel) -> Self {
        match (self, autonomy) {
            (Self::Write, AutonomyLevel::ReadOnly) => Self::Read,
            (other, _) => other,
        }
    }
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn maybe_in_words<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => super::in_words(duration, serializer),
        None => serializer.serialize_none(),
    }
}

impl McpServerSettings {
    /// Whether the configuration takes a tool of it.
    #[must_use]
    pub fn enables_tool(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }
}
