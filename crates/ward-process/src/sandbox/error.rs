//! Why a sandbox could not be prepared.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use super::SandboxReport;

/// Why a sandbox could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A tree of the order can't be named in a rule.
    #[error("sandbox tree `{path}` can't be opened", path = path.display())]
    Tree {
        /// The tree.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A tree lies inside another one that can be written, behind a link that the program of an earlier
    /// run may have put there.
    #[error("the way to sandbox tree `{path}` has a link or `..` in `{writable}`, which can be written",
        path = path.display(), writable = writable.display())]
    Link {
        /// The tree.
        path: PathBuf,
        /// The one that can be written.
        writable: PathBuf,
    },
    /// The temporary folder could not be made.
    #[error("no private temporary folder in `{path}`", path = path.display())]
    Temporary {
        /// Where it was to be.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The kernel did not take the file rules.
    #[error("Landlock refused the rules")]
    Rules(#[source] Box<dyn Error + Send + Sync>),
    /// The system call filter could not be made for this machine.
    #[error("the system call filter can't be built")]
    Filter(#[source] Box<dyn Error + Send + Sync>),
    /// A descriptor could not be had.
    #[error("the sandbox could not be held ready")]
    Descriptor(#[source] io::Error),
    /// The kernel can't enforce what the [`SandboxStrictness`](super::Strictness) of the order demands.
    #[error("this machine can't enforce these parts of the sandbox: {}", missing.join(", "))]
    Incomplete {
        /// The names of these parts, as in [`SandboxReport::parts`].
        missing: Vec<&'static str>,
        /// What could be enforced, and what would bring the rest.
        report: Box<SandboxReport>,
    },
}
