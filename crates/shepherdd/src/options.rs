//! What the daemon is told on its command line and by its environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;
use shepherd_util::{Environment, PathError, Paths};

/// Decides what may run, when and for how long, and ends it when time is up.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "shepherdd",
    version,
    after_help = "Without options it uses /etc/shepherd, /var/lib/shepherd and /run/shepherd as root, and the XDG\nfolders \
                  as an ordinary user. SHEPHERD_POLICY, SHEPHERD_DATA and SHEPHERD_SOCKET override them.\n\
                  SHEPHERD_LOG sets what is logged to standard error (default: info).\n\n\
                  Signals: SIGHUP reads the policy again, SIGTERM and SIGINT end the daemon in order.\n\n\
                  Exit codes: 0 ended in order, 2 the command line is wrong, 3 something outside failed.\n\n\
                  Examples:\n  shepherdd\n  shepherdd --policy ./policy.toml --data-dir ./data --socket ./shepherd.sock"
)]
pub struct Options {
    /// The policy file.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The folder for database, audit log and session logs.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The socket for front ends and the command line.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Lets what names no account run as root, if the daemon is root: for trying things out, since nothing can hold
    /// such a program.
    #[arg(long)]
    pub allow_root: bool,
}

/// Why the daemon does not know where its things are.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The environment does not say.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// The folder that we were started in can't be told.
    #[error("can't make {} an absolute path", path.display())]
    Absolute {
        /// What was given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Options {
    /// The places to use: an option wins over the environment, and that over the defaults of the user.
    ///
    /// # Errors
    /// When there is no way to tell.
    pub fn paths(&self, environment: &Environment, is_root: bool) -> Result<Paths, OptionsError> {
        let mut environment = environment.clone();
        let given = [
            ("SHEPHERD_POLICY", &self.policy),
            ("SHEPHERD_DATA", &self.data_dir),
            ("SHEPHERD_SOCKET", &self.socket),
        ];
        for (variable, path) in given {
            if let Some(path) = path {
                environment.insert(variable.to_owned(), absolute(path)?);
            }
        }
        Ok(if is_root { Paths::system(&environment) } else { Paths::user(&environment) }?)
    }
}

fn absolute(path: &Path) -> Result<OsString, OptionsError> {
    let absolute = std::path::absolute(path);
    absolute
        .map(PathBuf::into_os_string)
        .map_err(|source| OptionsError::Absolute { path: path.to_owned(), source })
}
