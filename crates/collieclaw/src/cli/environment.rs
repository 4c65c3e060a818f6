//! What the program is told by its surroundings.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use collieclaw_agent::config::ConfigContext;
use collieclaw_agent::events::{EventFormat, EventLevel};
use collieclaw_agent::home::AgentHome;
use collieclaw_mcp::McpSessionPool;
use collieclaw_providers::CircuitBreakers;

use super::failure::CommandFailure;

/// Home, variables, and how to log.
pub(crate) struct CliEnvironment {
    pub(crate) home: AgentHome,
    pub(crate) config_context: ConfigContext,
    /// Which providers failed, as long as this process lives.
    pub(crate) circuits: CircuitBreakers,
    /// MCP servers that run, as long as this process lives.
    pub(crate) sessions: McpSessionPool,
}

/// Known before all else: what is wrong with the rest is told in this form, too.
pub(crate) fn log_format() -> EventFormat {
    match std::env::var_os("COLLIECLAW_LOG") {
        Some(log) if log == "json" => EventFormat::Json,
        _ => EventFormat::Human,
    }
}

impl CliEnvironment {
    pub(crate) fn read() -> Result<Self, CommandFailure> {
        // What is not UTF-8 can't be named in a configuration either.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let folder = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user_home = folder("HOME").filter(|home| home.is_absolute());
        let own = folder("COLLIECLAW_HOME").or_else(|| Some(user_home.as_ref()?.join(".collieclaw")));
        let own = own.ok_or(CommandFailure::NoUserHome)?;
        // Without one, `~` is a folder that there isn't.
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

    /// How events are told: to people at a terminal what matters, to whoever keeps the output everything.
    pub(crate) fn log_settings(&self) -> Result<(EventFormat, EventLevel), CommandFailure> {
        match self.variable("COLLIECLAW_LOG") {
            Some("json") => Ok((EventFormat::Json, EventLevel::Info)),
            Some("warn") => Ok((EventFormat::Human, EventLevel::Notice)),
            Some("off") => Ok((EventFormat::Human, EventLevel::Off)),
            None if std::io::stderr().is_terminal() => Ok((EventFormat::Human, EventLevel::Warn)),
            None | Some("info") => Ok((EventFormat::Human, EventLevel::Info)),
            Some(other) => Err(CommandFailure::InvalidInput {
                what: format!("COLLIECLAW_LOG is `{other}`"),
                cure: "it can be info, warn, off or json",
            }),
        }
    }
}
