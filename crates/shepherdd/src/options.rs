//! The daemon's options from its command line and environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;
use shepherd_ipc::{AccountsReadError, SystemAccounts};
use shepherd_util::{EnvironmentVariables, PathError, ShepherdPaths};

/// Decide what may run on this computer, when and for how long, and stop it when time is up
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "shepherdd",
    version,
    after_help = "Without options, shepherdd uses /etc/shepherd, /var/lib/shepherd and /run/shepherd as root, and the XDG\nfolders \
                  as an ordinary user. SHEPHERD_POLICY, SHEPHERD_DATA and SHEPHERD_SOCKET override them.\n\
                  SHEPHERD_LOG sets what is logged to standard error (default: info), and SHEPHERD_LOG_FORMAT=json\n\
                  logs JSON.\n\n\
                  Signals: SIGHUP reads the policy again, SIGTERM and SIGINT stop the daemon.\n\n\
                  Exit codes: 0 stopped on request, 2 mistake in the command line, 3 failure elsewhere.\n\n\
                  Examples:\n  shepherdd\n  shepherdd --policy ./policy.toml --data-dir ./data --socket ./shepherd.sock\n  \
                  shepherdd --socket-group family --socket-mode 660"
)]
pub struct DaemonOptions {
    /// Policy file
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Folder for the database, the audit log and the session logs
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Socket for front ends and the command line
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Run entries without an account as root; only for trying things out, because time limits can't be enforced
    #[arg(long)]
    pub allow_root: bool,
    /// Trust a clock that was wrong only after `shepherd clock confirm`, not when the system's time synchronisation
    /// says that it is right; for networks whose time server a child could replace
    #[arg(long)]
    pub ignore_time_sync: bool,
    /// File mode of the socket, in octal; the policy decides who may do what
    #[arg(long, value_name = "MODE", value_parser = octal)]
    pub socket_mode: Option<u32>,
    /// Group of the socket, by name or number
    #[arg(long, value_name = "GROUP")]
    pub socket_group: Option<String>,
    /// Disable the cgroup controllers of an ended daemon and exit; systemd before 254 needs this to restart it
    #[arg(long, hide = true)]
    pub release_controllers: bool,
}

/// File mode and group of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketAccess {
    pub(crate) mode: u32,
    pub(crate) group: Option<u32>,
}

/// Lets every user connect. The daemon checks the credentials from the kernel against the policy.
const DEFAULT_SOCKET_MODE: u32 = 0o666;

/// The error for options that can't be resolved.
#[derive(Debug, thiserror::Error)]
pub enum DaemonOptionsError {
    /// The environment lacks a variable.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// The current folder can't be determined.
    #[error("could not make {} an absolute path", path.display())]
    Absolute { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Accounts(#[from] AccountsReadError),
    #[error("no such group `{name}`; create it with `groupadd`, or name another group")]
    NoSuchGroup { name: String },
}

impl DaemonOptions {
    /// Returns the paths to use: an option overrides the environment, which overrides the user's defaults.
    ///
    /// # Errors
    /// A path can't be determined.
    pub fn paths(
        &self,
        environment: &EnvironmentVariables,
        is_root: bool,
    ) -> Result<ShepherdPaths, DaemonOptionsError> {
        let mut environment = environment.clone();
        let given = [
            ("SHEPHERD_POLICY", &self.policy),
            ("SHEPHERD_DATA", &self.data_dir),
            ("SHEPHERD_SOCKET", &self.socket),
        ];
        for (variable, path) in given {
            if let Some(path) = path {
                environment.insert(variable.to_owned(), absolute_path(path)?);
            }
        }
        Ok(if is_root { ShepherdPaths::system(&environment) } else { ShepherdPaths::user(&environment) }?)
    }

    pub(crate) fn socket_access(&self) -> Result<SocketAccess, DaemonOptionsError> {
        let group = self.socket_group.as_deref().map(resolve_group_id).transpose()?;
        Ok(SocketAccess { mode: self.socket_mode.unwrap_or(DEFAULT_SOCKET_MODE), group })
    }
}

fn resolve_group_id(name: &str) -> Result<u32, DaemonOptionsError> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    SystemAccounts::read()?
        .group_id(name)
        .ok_or_else(|| DaemonOptionsError::NoSuchGroup { name: name.to_owned() })
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "a mode is three octal digits, such as 660".to_owned())
}

fn absolute_path(path: &Path) -> Result<OsString, DaemonOptionsError> {
    let absolute = std::path::absolute(path);
    absolute
        .map(PathBuf::into_os_string)
        .map_err(|source| DaemonOptionsError::Absolute { path: path.to_owned(), source })
}
