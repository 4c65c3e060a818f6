//! What the program is told by its surroundings, read once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use collieclaw::config::Surroundings;
use collieclaw::events::{Form, Level};
use collieclaw::home::Home;

use super::failure::Failure;

/// Home, variables, and how to log.
pub(crate) struct Environment {
    pub(crate) home: Home,
    pub(crate) surroundings: Surroundings,
}

impl Environment {
    pub(crate) fn read() -> Result<Self, Failure> {
        // What is not UTF-8 can't be named in a configuration either.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let folder = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user_home = folder("HOME").filter(|home| home.is_absolute()).ok_or(Failure::NoUserHome)?;
        let own = folder("COLLIECLAW_HOME").unwrap_or_else(|| user_home.join(".collieclaw"));
        if !own.is_absolute() {
            return Err(Failure::RelativeHome { path: own });
        }
        let own = own.canonicalize().unwrap_or(own);
        let user_home = user_home.canonicalize().unwrap_or(user_home);
        Ok(Self { home: Home::new(&own), surroundings: Surroundings { home: own, user_home, variables } })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.surroundings.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// How events are told: to people at a terminal what matters, to whoever keeps the output everything.
    pub(crate) fn log(&self, at_terminal: bool) -> (Form, Level) {
        let usual = if at_terminal { Level::Off } else { Level::Info };
        match self.variable("COLLIECLAW_LOG") {
            Some("json") => (Form::Json, Level::Info),
            Some("info" | "debug") => (Form::Human, Level::Info),
            Some("warn") => (Form::Human, Level::Warn),
            Some("off") => (Form::Human, Level::Off),
            _ => (Form::Human, usual),
        }
    }
}
