//! Where Shepherd keeps its things, as a function of the environment that it is given.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Longest path of a Unix socket: the kernel's `sun_path` has 108 bytes, the last of which is zero.
pub const MAX_SOCKET_PATH: usize = 107;

/// The environment variables that a program was started with; only its `main` reads them.
pub type EnvironmentVariables = BTreeMap<String, OsString>;

/// The places that daemon and command line agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShepherdPaths {
    /// The policy; `SHEPHERD_POLICY` overrides it.
    pub policy: PathBuf,
    /// Database, audit log and session logs; `SHEPHERD_DATA` overrides it.
    pub data: PathBuf,
    /// The daemon's socket; `SHEPHERD_SOCKET` overrides it.
    pub socket: PathBuf,
}

/// Why the places can't be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No `HOME`, and not everything is overridden.
    #[error("HOME is not set to an absolute path; set it, or run as a system service")]
    NoHome,
    /// An override that depends on where the program was started.
    #[error("{variable} must be an absolute path, not `{}`", value.display())]
    Relative {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: PathBuf,
    },
    /// A socket that the kernel can't bind.
    #[error(
        "the socket's path has {length} bytes, but the system allows {MAX_SOCKET_PATH}; set SHEPHERD_SOCKET to a shorter one"
    )]
    SocketTooLong {
        /// Its length.
        length: usize,
    },
}

impl ShepherdPaths {
    /// The places of a system service.
    ///
    /// # Errors
    /// If an override can't be used.
    pub fn system(environment: &EnvironmentVariables) -> Result<Self, PathError> {
        Self {
            policy: PathBuf::from("/etc/shepherd/policy.toml"),
            data: PathBuf::from("/var/lib/shepherd"),
            socket: PathBuf::from("/run/shepherd/shepherd.sock"),
        }
        .apply_overrides(environment)
    }

    /// The places of an ordinary user, by the XDG base directory specification. As it demands, a relative path in
    /// an `XDG_` variable is ignored. Without a runtime folder the socket is with the data.
    ///
    /// # Errors
    /// If there is no home folder, or an override can't be used.
    pub fn user(environment: &EnvironmentVariables) -> Result<Self, PathError> {
        let home = absolute_variable_path(environment, "HOME").ok_or(PathError::NoHome)?;
        let folder = |variable: &str, fallback: &str| {
            absolute_variable_path(environment, variable)
                .unwrap_or_else(|| home.join(fallback))
                .join("shepherd")
        };
        let data = folder("XDG_DATA_HOME", ".local/share");
        let runtime = absolute_variable_path(environment, "XDG_RUNTIME_DIR").unwrap_or_else(|| data.clone());
        let socket = runtime.join("shepherd.sock");
        Self { policy: folder("XDG_CONFIG_HOME", ".config").join("policy.toml"), data, socket }
            .apply_overrides(environment)
    }

    fn apply_overrides(mut self, environment: &EnvironmentVariables) -> Result<Self, PathError> {
        let overrides = [
            ("SHEPHERD_POLICY", &mut self.policy),
            ("SHEPHERD_DATA", &mut self.data),
            ("SHEPHERD_SOCKET", &mut self.socket),
        ];
        for (variable, path) in overrides {
            if let Some(value) = variable_path(environment, variable) {
                if value.is_relative() {
                    return Err(PathError::Relative { variable, value: value.to_owned() });
                }
                value.clone_into(path);
            }
        }
        let length = self.socket.as_os_str().len();
        if length > MAX_SOCKET_PATH { Err(PathError::SocketTooLong { length }) } else { Ok(self) }
    }
}

/// A variable's path; empty is as good as not set.
fn variable_path<'e>(environment: &'e EnvironmentVariables, variable: &str) -> Option<&'e Path> {
    environment.get(variable).filter(|value| !value.is_empty()).map(Path::new)
}

fn absolute_variable_path(environment: &EnvironmentVariables, variable: &str) -> Option<PathBuf> {
    variable_path(environment, variable).filter(|path| path.is_absolute()).map(Path::to_owned)
}
