//! What a host is made from.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use ward_process::{Containment, SetupError};

/// Where programs that are named without a path are looked for, and what they get as their own `PATH`. Nobody but
/// root can write there.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games:/snap/bin";

/// What a host is made from. It reads no environment variable itself.
#[derive(Clone, Debug)]
pub struct LinuxHostOptions {
    /// Where it keeps what outlives it: `sessions/` for what runs, `logs/` for what it said. Made if missing, and
    /// nobody else's to read.
    pub state_folder: PathBuf,
    /// Where folders for the control sockets of players and virtual machines are made. Short, because the path of a
    /// socket is; and open to the users that entries run as.
    pub socket_folder: PathBuf,
    /// The daemon's environment. Programs get of it what the list in `environment.rs` names, and nothing else.
    pub environment: Vec<(OsString, OsString)>,
    /// Where programs are looked for.
    pub search_path: OsString,
    /// What holds programs together; `None` is the strongest that this machine gives.
    pub containment: Option<Containment>,
    /// Whether anything may run as root, if we do.
    pub as_root: RunAsRoot,
}

/// Whether a program may run as root: nothing could hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAsRoot {
    /// Whatever names no account is not to be started.
    Never,
    /// Whatever names no account. For trying things out where nobody but root is.
    WithoutAccount,
}

impl LinuxHostOptions {
    /// The defaults: an empty environment, the usual places for programs, the strongest containment.
    #[must_use]
    pub fn new(state_folder: PathBuf) -> Self {
        Self {
            state_folder,
            socket_folder: PathBuf::from("/tmp"),
            environment: Vec::new(),
            search_path: SEARCH_PATH.into(),
            containment: None,
            as_root: RunAsRoot::Never,
        }
    }
}

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
pub enum HostSetupError {
    /// Nothing can be held together.
    #[error("could not set up supervision")]
    Supervisor(#[from] SetupError),
    /// Nothing can be written down.
    #[error("could not make `{}`", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No descriptor or no thread was to be had.
    #[error("could not start the host's threads")]
    Threads(#[source] io::Error),
}
