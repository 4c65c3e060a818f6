//! Errors of creating a supervisor and of spawning a program.

use std::io;
use std::path::PathBuf;

use crate::containment::Containment;
use crate::sandbox::SandboxError;

/// An error that kept a supervisor from being created.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// This host does not offer the containment.
    #[error("could not use containment `{containment}`: {reason}")]
    Missing {
        /// Containment that was requested.
        containment: Containment,
        /// Reason, and what would help.
        reason: String,
    },
    /// The boot id can't be read, so no tree could be reattached later.
    #[error("could not read the boot id")]
    BootId(#[source] io::Error),
    /// `/proc` can't be opened, so no process could be watched.
    #[error("could not open /proc")]
    Proc(#[source] io::Error),
}

/// An error that kept a program from starting. Nothing of the tree is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A text of the spec contains a NUL byte and can't be passed to the kernel.
    #[error("{what} contains a NUL character")]
    NulByte {
        /// Description of the text.
        what: &'static str,
    },
    /// The program is not given as an absolute path.
    #[error("`{}` is not an absolute path", program.display())]
    RelativeProgram {
        /// Path from the spec.
        program: PathBuf,
    },
    /// Members can leave a process group, so it can't be guaranteed that all of them end with the supervisor.
    #[error("a tree in a {0} can't be made to end with its supervisor; choose a stronger containment")]
    CannotDieWithSupervisor(Containment),
    /// A limit of zero lets nothing run.
    #[error("nothing can run with `{limit}` limited to zero")]
    ZeroLimit {
        /// Name of the limit.
        limit: &'static str,
    },
    /// The record could not be stored before the program runs, so the program never ran.
    #[error("could not store the record of the tree")]
    NotRecorded(#[source] io::Error),
    /// The sandbox could not be prepared.
    #[error("could not prepare the sandbox")]
    Sandbox(#[from] SandboxError),
    /// The tree's cgroup could not be created or set up.
    #[error("could not set up cgroup `{name}`")]
    Cgroup {
        /// Name of the cgroup, or of a file in it.
        name: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A standard stream could not be opened.
    #[error("could not open {stream}")]
    Stream {
        /// Name of the stream.
        stream: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The new process, or a pipe or handle that it needs, could not be created.
    #[error("could not create a process")]
    Fork(#[source] io::Error),
    /// The programs of the tree can't be traced.
    #[error("could not trace `{}`", program.display())]
    Trace {
        /// Path from the spec.
        program: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The new process was killed before it executed the program.
    #[error("the new process was killed before it could execute `{}`", program.display())]
    Killed {
        /// Path from the spec.
        program: PathBuf,
    },
    /// The new process failed in a step before the program ran.
    #[error("could not {step} for `{}`", program.display())]
    Start {
        /// Description of the failed step, as a verb phrase.
        step: &'static str,
        /// Path from the spec.
        program: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
}
