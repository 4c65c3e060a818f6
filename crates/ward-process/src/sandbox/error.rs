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
    /// The kernel can't enforce what the [`Strictness`](super::Strictness) of the order demands.
    #[error("this machine can't enforce these parts of the sandbox: {}", missing.join(", "))]
    Incomplete {
        /// The names of these parts, as in [`SandboxReport::parts`].
        missing: Vec<&'static str>,
        /// What could be enforced, and what would bring the rest.
        report: Box<SandboxReport>,
    },
}
