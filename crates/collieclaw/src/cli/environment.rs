//! The environment of the process: home, variables and log format.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use collieclaw_agent::config::ConfigContext;
use collieclaw_agent::events::{EventFormat, EventLevel};
use collieclaw_agent::home::AgentHome;
use collieclaw_mcp::McpSessionPool;
use collieclaw_providers::CircuitBreakers;

use super::failure::CommandFailure;

/// The environment of the process: home, variables and log format.
pub(crate) struct CliEnvironment {
    pub(crate) home: AgentHome,
    pub(crate) config_context: ConfigContext,
    /// The health of providers, for the lifetime of this process.
    pub(crate) circuits: CircuitBreakers,
    /// The running MCP servers, for the lifetime of this process.
    pub(crate) sessions: McpSessionPool,
}

/// Returns the event format before anything else is parsed, so that early errors use it as well.
pub(crate) fn log_format() -> EventFormat {
    match std::env::var_os("COLLIECLAW_LOG") {
        Some(log) if log == "json" => EventFormat::Json,
        _ => EventFormat::Human,
    }
}

impl CliEnvironment {
    pub(crate) fn read() -> Result<Self, CommandFailure> {
        // A configuration can't name a variable that isn't UTF-8, so it is skipped.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let folder = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user_home = folder("HOME").filter(|home| home.is_absolute());
        let own = folder("COLLIECLAW_HOME").or_else(|| Some(user_home.as_ref()?.join(".collieclaw")));
        let own = own.ok_or(CommandFailure::NoUserHome)?;
        // Without `HOME`, `~` expands to a folder that doesn't exist.
        let user_home = user_home.unwrap_or_else(|| PathBuf::from("/nonexistent"));
        if !own.is_absolute() {
            return Err(CommandFailure::RelativeHome { path: own });
        }
        let own = own.canonicalize().unwrap_or(own);
        let user_home = user_home.canonicalize().unwrap_or(user_home);
        Ok(Self {
            home: AgentHome::new(&own),
            config_context: ConfigContext { home: own, user_home, variables },
            circuits: CircuitBreakers::default(),
            sessions: McpSessionPool::default(),
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.config_context.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the event level and format: only warnings at a terminal, everything if the output is kept.
    pub(crate) fn log_settings(&self) -> Result<(EventFormat, EventLevel), CommandFailure> {
        match self.variable("COLLIECLAW_LOG") {
            Some("json") => Ok((EventFormat::Json, EventLevel::Info)),
            Some("warn") => Ok((EventFormat::Human, EventLevel::Notice)),
            Some("off") => Ok((EventFormat::Human, EventLevel::Off)),
            None if std::io::stderr().is_terminal() => Ok((EventFormat::Human, EventLevel::Warn)),
            None | Some("info") => Ok((EventFormat::Human, EventLevel::Info)),
            Some(other) => Err(CommandFailure::InvalidInput {
                what: format!("invalid COLLIECLAW_LOG `{other}`"),
                cure: "use info, warn, off or json",
            }),
        }
    }
}
