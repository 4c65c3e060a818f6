//! The paths of Shepherd's files, computed from environment variables that the caller passes in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The longest path of a Unix socket: the kernel's `sun_path` has 108 bytes, the last of which is zero
/// (see `man 7 unix`).
pub const MAX_SOCKET_PATH: usize = 107;

/// The environment variables of a program. Only `main` reads them from the process.
pub type EnvironmentVariables = BTreeMap<String, OsString>;

/// The paths that the daemon and the command line share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShepherdPaths {
    /// The policy file; `SHEPHERD_POLICY` overrides it.
    pub policy: PathBuf,
    /// The folder of the database, audit log and session logs; `SHEPHERD_DATA` overrides it.
    pub data: PathBuf,
    /// The daemon's socket; `SHEPHERD_SOCKET` overrides it.
    pub socket: PathBuf,
}

/// The error for an environment from which the paths can't be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("HOME is not set to an absolute path; set it, or run as a system service")]
    NoHome,
    /// An override is relative, so it would depend on the folder the program was started in.
    #[error("{variable} must be an absolute path, not `{}`", value.display())]
    Relative { variable: &'static str, value: PathBuf },
    /// The path is longer than the kernel allows for a socket.
    #[error(
        "the socket path has {length} bytes, but the system allows {MAX_SOCKET_PATH}; set SHEPHERD_SOCKET to a shorter path"
    )]
    SocketTooLong { length: usize },
}

impl ShepherdPaths {
    /// Returns the paths of a system service.
    ///
    /// # Errors
    /// Fails if an override is relative, or the socket path is too long.
    pub fn system(environment: &EnvironmentVariables) -> Result<Self, PathError> {
        Self {
            policy: PathBuf::from("/etc/shepherd/policy.toml"),
            data: PathBuf::from("/var/lib/shepherd"),
            socket: PathBuf::from("/run/shepherd/shepherd.sock"),
        }
        .apply_overrides(environment)
    }

    /// Returns the paths of an ordinary user, following the XDG Base Directory Specification. As the
    /// specification demands, a relative path in an `XDG_` variable is ignored. Without a runtime folder, the
    /// socket is put in the data folder.
    ///
    /// # Errors
    /// Fails if `HOME` is not an absolute path, an override is relative, or the socket path is too long.
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

/// Returns the path in a variable. An empty variable counts as unset.
fn variable_path<'e>(environment: &'e EnvironmentVariables, variable: &str) -> Option<&'e Path> {
    environment.get(variable).filter(|value| !value.is_empty()).map(Path::new)
}

fn absolute_variable_path(environment: &EnvironmentVariables, variable: &str) -> Option<PathBuf> {
    variable_path(environment, variable).filter(|path| path.is_absolute()).map(Path::to_owned)
}
