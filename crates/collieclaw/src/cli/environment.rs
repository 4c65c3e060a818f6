//! What the program is told by its surroundings.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use collieclaw::config::Surroundings;
use collieclaw::events::{Form, Level};
use collieclaw::home::Home;
use collieclaw::mcp::Sessions;
use collieclaw::providers::Circuits;

use super::failure::Failure;

/// Home, variables, and how to log.
pub(crate) struct Environment {
    pub(crate) home: Home,
    pub(crate) surroundings: Surroundings,
    /// Which providers failed, as long as this process lives.
    pub(crate) circuits: Circuits,
    /// MCP servers that run, as long as this process lives.
    pub(crate) sessions: Sessions,
}

/// Known before all else: what is wrong with the rest is told in this form, too.
pub(crate) fn form_of_log() -> Form {
    match std::env::var_os("COLLIECLAW_LOG") {
        Some(log) if log == "json" => Form::Json,
        _ => Form::Human,
    }
}

impl Environment {
    pub(crate) fn read() -> Result<Self, Failure> {
        // What is not UTF-8 can't be named in a configuration either.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let folder = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user_home = folder("HOME").filter(|home| home.is_absolute());
        let own = folder("COLLIECLAW_HOME").or_else(|| Some(user_home.as_ref()?.join(".collieclaw")));
        let own = own.ok_or(Failure::NoUserHome)?;
        // Without one, `~` is a folder that there isn't.
        let user_home = user_home.unwrap_or_else(|| PathBuf::from("/nonexistent"));
        if !own.is_absolute() {
            return Err(Failure::RelativeHome { path: own });
        }
        let own = own.canonicalize().unwrap_or(own);
        let user_home = user_home.canonicalize().unwrap_or(user_home);
        Ok(Self {
            home: Home::new(&own),
            surroundings: Surroundings { home: own, user_home, variables },
            circuits: Circuits::default(),
            sessions: Sessions::default(),
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.surroundings.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// How events are told: to people at a terminal what matters, to whoever keeps the output everything.
    pub(crate) fn log(&self) -> Result<(Form, Level), Failure> {
        match self.variable("COLLIECLAW_LOG") {
            Some("json") => Ok((Form::Json, Level::Info)),
            Some("warn") => Ok((Form::Human, Level::Notice)),
            Some("off") => Ok((Form::Human, Level::Off)),
            None if std::io::stderr().is_terminal() => Ok((Form::Human, Level::Warn)),
            None | Some("info") => Ok((Form::Human, Level::Info)),
            Some(other) => Err(Failure::Wrong {
                what: format!("COLLIECLAW_LOG is `{other}`"),
                cure: "it can be info, warn, off or json",
            }),
        }
    }
}
