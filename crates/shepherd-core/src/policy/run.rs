//! Settings for a running program: user, limits and display (S6.5, S6.7).

use std::path::PathBuf;
use std::time::Duration;

use super::LoginPolicy;

/// The way in which an entry is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// The user that the program runs as; `None` is the daemon's own. Only root can choose another.
    pub user: Option<String>,
    pub limits: ResourceLimits,
    /// The grace period between the request to end and the kill; `None` is the policy's default.
    pub stop_grace: Option<Duration>,
    /// The number of bytes of output that are kept; `None` is the default.
    pub output_limit: Option<u64>,
    pub display: WindowDisplay,
    /// The settings of an entry that stands for being logged in.
    pub login: LoginPolicy,
}

/// Resource limits; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of memory, of all processes together where the host can, else of each.
    pub memory: Option<u64>,
    pub processes: Option<u32>,
    pub cpu_percent: Option<u32>,
    /// Open files of each process.
    pub open_files: Option<u32>,
    /// The largest size of one file, in bytes.
    pub file_size: Option<u64>,
}

/// The display of a window, where the host can control it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowDisplay {
    #[default]
    Unchanged,
    Foreground,
    Fullscreen,
}

/// The compositor that the daemon works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompositorConfig {
    /// A compositor that is already running; `None` is the one that the environment names.
    Connect { socket: Option<PathBuf> },
    /// A compositor that the daemon starts.
    Start {
        argv: Vec<String>,
        /// The user that the compositor runs as; `None` is the daemon's own. Only root can choose another.
        user: Option<String>,
    },
}

/// A program that runs entries of a custom type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomDriver {
    /// The program and its arguments; the payload comes on its standard input.
    pub argv: Vec<String>,
}
