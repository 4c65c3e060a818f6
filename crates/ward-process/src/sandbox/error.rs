//! Errors of preparing a sandbox.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use super::SandboxReport;

/// An error that kept a sandbox from being prepared.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A tree of the sandbox could not be opened.
    #[error("could not open sandbox tree `{path}`", path = path.display())]
    Tree {
        /// Path of the tree.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The path to a tree goes through a writable tree and contains a symlink or `..` there. The program may
    /// have placed the symlink in an earlier run to redirect the rule.
    #[error("the path to sandbox tree `{path}` has a symlink or `..` inside of writable tree `{writable}`",
        path = path.display(), writable = writable.display())]
    Link {
        /// Path of the tree.
        path: PathBuf,
        /// Path of the writable tree with the symlink.
        writable: PathBuf,
    },
    /// The temporary folder could not be created.
    #[error("could not create a private temporary folder in `{path}`", path = path.display())]
    Temporary {
        /// Parent of the temporary folder.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The kernel did not accept the file rules.
    #[error("could not create the Landlock rules")]
    Rules(#[source] Box<dyn Error + Send + Sync>),
    /// The system call filter could not be built for this machine.
    #[error("could not build the system call filter")]
    Filter(#[source] Box<dyn Error + Send + Sync>),
    /// A descriptor that the sandbox needs could not be opened or duplicated.
    #[error("could not open the descriptors of the sandbox")]
    Descriptor(#[source] io::Error),
    /// The kernel can't enforce parts that the [`SandboxStrictness`](super::SandboxStrictness) demands.
    #[error("this machine can't enforce these parts of the sandbox: {}", missing.join(", "))]
    Incomplete {
        /// Names of the missing parts, as in [`SandboxReport::parts`].
        missing: Vec<&'static str>,
        /// State of every part, with cures for the missing ones.
        report: Box<SandboxReport>,
    },
}
