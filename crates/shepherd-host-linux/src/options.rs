//! The options of a host, and the errors of its setup.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use ward_process::{Containment, SetupError};

/// The search path for programs that are named without a path, and the `PATH` that programs get. Only root can write to
/// these folders.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games:/snap/bin";

/// The options of a [`LinuxHost`](crate::LinuxHost), which reads no environment variable itself.
#[derive(Clone, Debug)]
pub struct LinuxHostOptions {
    /// The folder for data that survives the host: `sessions/` for records of running programs, `logs/` for their
    /// output. It is created if missing, and only the daemon's user can read it.
    pub state_folder: PathBuf,
    /// The folder in which folders for the control sockets of players and virtual machines are created. Its path must
    /// be short, because socket paths are limited, and the users of entries need access to it.
    pub socket_folder: PathBuf,
    /// The daemon's environment. Programs get only the variables that `environment.rs` lists.
    pub environment: Vec<(OsString, OsString)>,
    /// The folders in which programs are searched, separated by colons.
    pub search_path: OsString,
    /// The containment for programs. `None` selects the strongest that this machine supports.
    pub containment: Option<Containment>,
    pub as_root: RunAsRoot,
}

/// The rule for programs that would run as root, which no containment can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAsRoot {
    /// Entries without a `user` are not started.
    Never,
    /// Entries without a `user` run as root. For trials on machines where root is the only user.
    WithoutAccount,
}

impl LinuxHostOptions {
    /// Returns the defaults: an empty environment, the usual program folders, the strongest containment.
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

/// The reasons why a host can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum HostSetupError {
    #[error("could not prepare to start programs")]
    Supervisor(#[from] SetupError),
    #[error("could not create `{}`", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("could not start the host's threads")]
    Threads(#[source] io::Error),
}
