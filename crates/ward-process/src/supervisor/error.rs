//! Why there is no supervisor, or no program.

use std::io;
use std::path::PathBuf;

use crate::containment::Containment;
use crate::sandbox::SandboxError;

/// Why there is no supervisor.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// This host does not give that containment.
    #[error("no {containment} here: {reason}")]
    Missing {
        /// What was asked for.
        containment: Containment,
        /// Why not, and what would help.
        reason: String,
    },
    /// The name of this boot can't be read, so that no tree could be taken back later.
    #[error("could not read the boot id")]
    BootId(#[source] io::Error),
    /// Nothing can be watched without it.
    #[error("could not open /proc")]
    Proc(#[source] io::Error),
}

/// Why a program did not start. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A text of the order can't be given to the kernel.
    #[error("{what} contains a NUL character")]
    NulByte {
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
    CannotDieWithSupervisor(Containment),
    /// A bound that lets nothing run.
    #[error("nothing can run with `{limit}` limited to zero")]
    ZeroLimit {
        /// Which.
        limit: &'static str,
    },
    /// What was to be written down before the program runs could not be; it never ran.
    #[error("could not write down the tree before its program runs")]
    NotRecorded(#[source] io::Error),
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
    /// Somebody killed the new process before it came to the program.
    #[error("killed on the way to `{}`", program.display())]
    Killed {
        /// As ordered.
        program: PathBuf,
    },
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
