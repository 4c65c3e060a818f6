//! The configuration: a TOML file that a person edits, checked whole, with a default for everything (C3).
//!
//! It is read from the home only, never from the workspace. [`read`] takes text and [`ConfigContext`]; it opens nothing,
//! and looks only where the paths in it lead.

mod expand;
mod external_tools;
mod gateway;
mod providers;
mod read;
mod real_path;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use collieclaw_gate::{AutonomyLevel, GatePolicy, PathBounds};
use serde::{Serialize, Serializer};

pub(crate) use expand::parse_duration;
pub use expand::{ConfigContext, format_duration};
pub use external_tools::{
    McpConnection, McpServerSettings, McpSettings, PluginSettings, TOOL_SEPARATOR, WorkspaceUse,
};
pub use gateway::GatewaySettings;
pub use providers::{ModelServerSettings, ProviderSettings, ProviderTable, RoutingRule};
pub use read::{PathChecks, check, read};
pub use template::{SetupChoices, config_template};

pub use collieclaw_providers::net::WebSearchSettings;

use crate::home::AgentHome;
use crate::receipts::ReceiptSigning;
use crate::tools::ToolBounds;
use crate::usage::UsageBudget;

/// A configuration in which every value is legal and every path is written out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Where the agent works.
    pub workspace_dir: PathBuf,
    /// Who answers, if nobody else is named; a key of `providers.models`.
    pub default_provider: String,
    /// With which model.
    pub default_model: String,
    /// What the agent may do.
    pub security: SecuritySettings,
    /// Who can answer.
    pub providers: ProviderTable,
    /// Who searches the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchSettings>,
    /// How people reach it.
    pub channels: ChannelSettings,
    /// What it remembers.
    pub memory: MemorySettings,
    /// What it leaves behind of every call.
    pub receipts: ReceiptSettings,
    /// How much and how long.
    pub limits: RuntimeLimits,
    /// What plugins may do beyond what they ask for in any case.
    pub plugins: BTreeMap<String, PluginSettings>,
    /// Other servers of tools.
    pub mcp: McpSettings,
}

/// What the agent may do (C7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecuritySettings {
    /// How much on its own.
    pub autonomy: AutonomyLevel,
    /// Whether paths outside of the workspace are refused.
    pub workspace_only: bool,
    /// What no tool may touch.
    pub forbidden_paths: Vec<PathBuf>,
    /// What never runs.
    pub forbidden_commands: BTreeSet<String>,
    /// What the operator may be asked about.
    pub allowed_commands: BTreeSet<String>,
    /// Where `http` may go.
    pub allowed_domains: Vec<String>,
    /// Whether decisions are also written to `audit.log`.
    pub audit_log: bool,
}

/// How people reach the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelSettings {
    /// In the terminal.
    pub cli: CliSettings,
    /// Over HTTP, on this machine.
    pub gateway: GatewaySettings,
}

/// The terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CliSettings {
    /// Whether `agent` may be used.
    pub enabled: bool,
    /// The tools that the model is told of.
    pub tools_allow: Vec<String>,
}

/// What the agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemorySettings {
    /// `sqlite`.
    pub backend: MemoryBackendKind,
    /// The database.
    pub path: PathBuf,
    /// How many earlier messages of a conversation the model is shown.
    pub recent_turns: u32,
}

/// What keeps the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBackendKind {
    /// A file.
    Sqlite,
}

/// What every call leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceiptSettings {
    /// Whether receipts are written.
    pub enabled: bool,
    /// The log.
    pub path: PathBuf,
    /// Whether they are signed, with the key in the home.
    pub signed: bool,
}

impl ReceiptSettings {
    /// How receipts are signed in this home.
    #[must_use]
    pub fn signing(&self, home: &AgentHome) -> ReceiptSigning {
        if self.signed { ReceiptSigning::With { key: home.receipts_key() } } else { ReceiptSigning::Off }
    }
}

/// How much and how long (C9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuntimeLimits {
    /// How often the model may ask for tools before it has to answer.
    pub max_tool_rounds: u32,
    /// Of one answer, and of what one tool returns.
    pub max_response_bytes: u32,
    /// Of any tool.
    #[serde(serialize_with = "in_words")]
    pub tool_timeout: Duration,
    /// Of a shell line.
    #[serde(serialize_with = "in_words")]
    pub shell_timeout: Duration,
    /// Of a request of the tool `http`.
    #[serde(serialize_with = "in_words")]
    pub http_timeout: Duration,
    /// Of one answer of a provider.
    #[serde(serialize_with = "in_words")]
    pub provider_timeout: Duration,
    /// How long an answer that has begun to come may stop coming.
    #[serde(serialize_with = "in_words")]
    pub stall_timeout: Duration,
    /// Of all that is asked of models.
    #[serde(flatten)]
    pub budget: UsageBudget,
}

impl Config {
    /// The rules as the gate needs them. Where paths lead is looked up now: what they were meant to protect is protected
    /// by its real name, too.
    #[must_use]
    pub fn gate_policy(&self, workspace: PathBuf, surroundings: &ConfigContext) -> GatePolicy {
        let security = &self.security;
        let home = AgentHome::new(&surroundings.home);
        let own = [self.receipts.path.clone(), self.memory.path.clone(), home.config(), home.audit_log()];
        GatePolicy {
            autonomy: security.autonomy,
            workspace,
            bounds: if security.workspace_only { PathBounds::Workspace } else { PathBounds::Anywhere },
            user_home: surroundings.user_home.clone(),
            own_home: surroundings.home.clone(),
            own_files: real_path::with_real_paths(&own),
            forbidden_paths: real_path::with_real_paths(&security.forbidden_paths),
            forbidden_commands: security.forbidden_commands.clone(),
            allowed_commands: security.allowed_commands.clone(),
            allowed_domains: security.allowed_domains.clone(),
        }
    }

    /// The limits as tools need them.
    #[must_use]
    pub fn tool_bounds(&self) -> ToolBounds {
        let limits = &self.limits;
        ToolBounds {
            tool_timeout: limits.tool_timeout,
            shell_timeout: limits.shell_timeout.min(limits.tool_timeout),
            http_timeout: limits.http_timeout.min(limits.tool_timeout),
            max_response_bytes: limits.max_response_bytes as usize,
        }
    }
}

/// `30s`, `1500ms`.
fn in_words<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}
