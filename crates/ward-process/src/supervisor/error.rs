//! Why a program did not start.

use std::io;
use std::path::PathBuf;

use crate::containment::Containment;
use crate::sandbox::SandboxError;

/// Why a program did not start. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A text of the order can't be given to the kernel.
    #[error("{what} contains a NUL character")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// The program is not named by an absolute path.
    #[error("`{}` is not an absolute path", program.display())]
    RelativeProgram {
        /// As ordered.
        program: PathBuf,
    },
    /// A process group can be left by its members, so nobody could promise to end them.
    #[error("a {0} can't promise to end with its supervisor; choose a stronger containment")]
    NoPromise(Containment),
    /// The sandbox could not be prepared.
    #[error("could not prepare the sandbox")]
    Sandbox(#[from] SandboxError),
    /// The tree's cgroup could not be made or set up.
    #[error("could not set up cgroup `{name}`")]
    Cgroup {
        /// Its name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A stream could not be opened.
    #[error("could not open {stream}")]
    Stream {
        /// Which.
        stream: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// No process could be made.
    #[error("could not make a process")]
    Fork(#[source] io::Error),
    /// The new process did not get as far as the program.
    #[error("could not {step} for `{}`", program.display())]
    Start {
        /// What it was doing.
        step: &'static str,
        /// As ordered.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}
