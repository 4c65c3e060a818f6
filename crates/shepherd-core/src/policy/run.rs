//! How an entry is run once it may: as whom, with what bounds, and how it is shown (S6.5, S6.7).

use std::path::PathBuf;
use std::time::Duration;

/// How an entry is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// As which user; `NotRequested` is the daemon's own. Only root can run something as somebody else.
    pub user: Option<String>,
    /// Bounds on what it may use.
    pub limits: ResourceLimits,
    /// How long it may take to end after it was asked to; `NotRequested` is what the policy says for all.
    pub stop_grace: Option<Duration>,
    /// Bytes of its output that are kept; `NotRequested` is the default.
    pub output_limit: Option<u64>,
    /// How its window is shown.
    pub display: WindowDisplay,
}

/// Bounds; `NotRequested` is without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of memory, all processes together where the host can, else each.
    pub memory: Option<u64>,
    /// Processes.
    pub processes: Option<u32>,
    /// Percent of one processor.
    pub cpu_percent: Option<u32>,
    /// Open files, each process.
    pub open_files: Option<u32>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
}

/// How a window is shown, where the host can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowDisplay {
    /// As the program likes.
    #[default]
    Unchanged,
    /// In front of the others.
    Foreground,
    /// In front, and filling the screen.
    Fullscreen,
}

/// The compositor that the daemon works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompositorConfig {
    /// One that runs already, by its socket; `NotRequested` is the one that the environment names.
    Connect {
        /// The socket.
        socket: Option<PathBuf>,
    },
    /// One that the daemon starts.
    Start {
        /// The program and its arguments.
        argv: Vec<String>,
    },
}

/// A program that runs entries of a kind that we do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomDriver {
    /// The program and its arguments; the payload comes on its standard input.
    pub argv: Vec<String>,
}
