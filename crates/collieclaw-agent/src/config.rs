//! The configuration: a TOML file that a person edits. The file is checked as a whole, and every key has a
//! default (C3).
//!
//! Only the file in the home is read, never a file in the workspace. [`read`] takes its text and a
//! [`ConfigContext`]. It opens no files; it only follows the symlinks of the paths that the configuration
//! names.

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

use collieclaw_gate::{AutonomyLevel, GatePolicy, PathBounds, ProjectPrograms};
use serde::{Serialize, Serializer};

pub(crate) use expand::parse_duration;
pub use expand::{ConfigContext, format_duration};
pub use external_tools::{
    McpConnection, McpServerSettings, McpSettings, PluginSettings, TOOL_SEPARATOR, WorkspaceUse,
};
pub use gateway::GatewaySettings;
pub use providers::{ModelServerSettings, ModelTemperature, ProviderSettings, ProviderTable, RoutingRule};
pub use read::{PathChecks, check, read, read_for_workspace};
pub(crate) use real_path::resolve_real_path;
pub use template::{SetupChoices, config_template};

pub use collieclaw_providers::net::WebSearchSettings;

use crate::home::AgentHome;
use crate::memory::MemoryScope;
use crate::receipts::ReceiptSigning;
use crate::tools::ToolBounds;
use crate::usage::UsageBudget;
use crate::workspaces::{ToolchainPlaces, WorkspaceRules};

/// A valid configuration. All paths in it are expanded and absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// The folder that the agent works in.
    pub workspace_dir: PathBuf,
    /// The provider that answers unless a request names another one; a key of `providers.models`.
    pub default_provider: String,
    /// The model that the default provider is asked for.
    pub default_model: String,
    /// Instructions of the operator for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    pub security: SecuritySettings,
    pub providers: ProviderTable,
    /// The web search service, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchSettings>,
    pub channels: ChannelSettings,
    pub memory: MemorySettings,
    pub receipts: ReceiptSettings,
    pub limits: RuntimeLimits,
    /// Permissions of plugins, by plugin name.
    pub plugins: BTreeMap<String, PluginSettings>,
    pub mcp: McpSettings,
    /// The rules of the workspace in addition to those of the file (C16). They have files of their own.
    #[serde(skip)]
    pub workspace: WorkspaceRules,
}

/// The rules for what the agent may do (C7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecuritySettings {
    /// The amount of work that the agent may do without asking.
    pub autonomy: AutonomyLevel,
    /// True if paths outside the workspace are denied.
    pub workspace_only: bool,
    /// Paths that no tool may touch.
    pub forbidden_paths: Vec<PathBuf>,
    /// Programs that never run.
    pub forbidden_commands: BTreeSet<String>,
    /// Programs that run after the operator has approved the call.
    pub allowed_commands: BTreeSet<String>,
    /// Hosts that the tool `http` may contact.
    pub allowed_domains: Vec<String>,
    pub audit_log: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelSettings {
    pub cli: CliSettings,
    pub gateway: GatewaySettings,
}

/// Settings of the terminal channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CliSettings {
    /// True if `collieclaw agent` may be used.
    pub enabled: bool,
    /// The tools that are offered to the model.
    pub tools_allow: Vec<String>,
    /// The tools that are offered as well in a project folder that the operator trusts.
    pub project_tools: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemorySettings {
    pub backend: MemoryBackendKind,
    /// The path of the database.
    pub path: PathBuf,
    /// The number of earlier messages of a conversation that the model is shown.
    pub recent_turns: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBackendKind {
    Sqlite,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceiptSettings {
    pub enabled: bool,
    /// The path of the receipt log.
    pub path: PathBuf,
    /// True if receipts are signed with the key in the home.
    pub signed: bool,
}

impl ReceiptSettings {
    /// Returns the signing mode, with the path of the key in this home.
    #[must_use]
    pub fn signing(&self, home: &AgentHome) -> ReceiptSigning {
        if self.signed { ReceiptSigning::With { key: home.receipts_key() } } else { ReceiptSigning::Off }
    }
}

/// Limits on sizes, durations and cost (C9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuntimeLimits {
    /// The number of times that the model may call tools before it has to answer.
    pub max_tool_rounds: u32,
    /// The same number in a project folder that the operator trusts.
    pub project_tool_rounds: u32,
    /// The maximum size of one model answer, and of the data that one tool reads or receives.
    pub max_response_bytes: u32,
    /// The maximum size of one tool result for the model.
    pub max_tool_output_bytes: u32,
    #[serde(serialize_with = "serialize_duration")]
    pub tool_timeout: Duration,
    #[serde(serialize_with = "serialize_duration")]
    pub shell_timeout: Duration,
    /// The same time in a project folder that the operator trusts, where commands build and test.
    #[serde(serialize_with = "serialize_duration")]
    pub project_shell_timeout: Duration,
    #[serde(serialize_with = "serialize_duration")]
    pub http_timeout: Duration,
    /// The maximum time for one answer of a provider.
    #[serde(serialize_with = "serialize_duration")]
    pub provider_timeout: Duration,
    /// The maximum pause within an answer that has started to arrive.
    #[serde(serialize_with = "serialize_duration")]
    pub stall_timeout: Duration,
    #[serde(flatten)]
    pub budget: UsageBudget,
}

/// The name of the tool for web pages.
const HTTP_TOOL: &str = "http";

impl Config {
    /// Returns the rules in the form that the gate uses. Symlinks are resolved now, so that a protected path
    /// is also protected under its real name.
    #[must_use]
    pub fn gate_policy(&self, workspace: PathBuf, context: &ConfigContext) -> GatePolicy {
        let security = &self.security;
        let home = AgentHome::new(&context.home);
        let places = ToolchainPlaces {
            user_home: &context.user_home,
            own_home: &context.home,
            variables: &context.variables,
        };
        let own = [self.receipts.path.clone(), self.memory.path.clone(), home.config(), home.audit_log()];
        GatePolicy {
            autonomy: security.autonomy,
            workspace,
            bounds: if security.workspace_only { PathBounds::Workspace } else { PathBounds::Anywhere },
            user_home: context.user_home.clone(),
            own_home: context.home.clone(),
            own_files: real_path::with_real_paths(&own),
            forbidden_paths: real_path::with_real_paths(&security.forbidden_paths),
            forbidden_commands: security.forbidden_commands.clone(),
            allowed_commands: security.allowed_commands.clone(),
            allowed_domains: security.allowed_domains.clone(),
            command_network: self.workspace.network.into(),
            pinned_programs: self
                .workspace
                .programs
                .iter()
                .map(|(name, pinned)| (name.clone(), pinned.real.clone()))
                .collect(),
            allowed_scripts: self.workspace.scripts.clone(),
            project_programs: if self.workspace.project_programs {
                ProjectPrograms::Allowed
            } else {
                ProjectPrograms::Refused
            },
            command_cache: self.workspace.needs_cache().then(|| places.cache_folder(&self.workspace.path)),
        }
    }

    /// Adds the rules of the workspace. Commands that the configuration forbids stay forbidden.
    pub fn apply_workspace_rules(&mut self, rules: WorkspaceRules) {
        self.security.allowed_commands.extend(rules.allowed_commands.iter().cloned());
        for domain in &rules.allowed_domains {
            if !self.security.allowed_domains.contains(domain) {
                self.security.allowed_domains.push(domain.clone());
            }
        }
        self.workspace = rules;
        if self.works_in_project() {
            let channel = &mut self.channels.cli;
            // Without an allowed domain, every request would need the operator.
            let has_domain = !self.security.allowed_domains.is_empty();
            for tool in channel.project_tools.iter().filter(|tool| has_domain || *tool != HTTP_TOOL) {
                if !channel.tools_allow.contains(tool) {
                    channel.tools_allow.push(tool.clone());
                }
            }
        }
    }

    /// Returns true if the workspace is a project folder that the operator trusts, and not that of the configuration.
    #[must_use]
    pub fn works_in_project(&self) -> bool {
        self.workspace.trusted.is_some()
    }

    /// Returns the number of times that the model may call tools in one turn.
    #[must_use]
    pub fn tool_rounds(&self) -> u32 {
        if self.works_in_project() { self.limits.project_tool_rounds } else { self.limits.max_tool_rounds }
    }

    /// Returns the scope of conversations: those of the workspace.
    #[must_use]
    pub fn memory_scope(&self) -> MemoryScope {
        let other =
            self.workspace.trusted.as_ref().map(|_| self.workspace.path.to_string_lossy().into_owned());
        MemoryScope::Workspace(other.unwrap_or_default())
    }

    /// Returns CollieClaw's own files, which no workspace may contain, with all symlinks resolved.
    #[must_use]
    pub fn own_files(&self) -> Vec<PathBuf> {
        real_path::with_real_paths(&[self.receipts.path.clone(), self.memory.path.clone()])
    }

    /// Returns the forbidden paths as written and with all symlinks resolved.
    #[must_use]
    pub fn real_forbidden_paths(&self) -> Vec<PathBuf> {
        real_path::with_real_paths(&self.security.forbidden_paths)
    }

    /// Returns the limits in the form that tools use.
    #[must_use]
    pub fn tool_bounds(&self) -> ToolBounds {
        let limits = &self.limits;
        ToolBounds {
            tool_timeout: limits.tool_timeout,
            shell_timeout: if self.works_in_project() {
                limits.project_shell_timeout
            } else {
                limits.shell_timeout.min(limits.tool_timeout)
            },
            http_timeout: limits.http_timeout.min(limits.tool_timeout),
            max_response_bytes: limits.max_response_bytes as usize,
            max_output_bytes: limits.max_tool_output_bytes.min(limits.max_response_bytes) as usize,
        }
    }
}

/// Serializes a duration as text, such as `30s` or `1500ms`.
fn serialize_duration<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}
