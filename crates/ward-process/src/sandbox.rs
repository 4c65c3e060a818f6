//! A wall around a program: files, network, system calls, signals.
//!
//! [`Sandbox`] says what a program may reach; everything else is closed by the kernel, for the
//! program and for all that it starts. What allocates or can fail slowly is done in the parent; the
//! child only applies the result, between fork and `execve`.
//!
//! What stays visible: names, sizes and times of files (`stat`), and whether they exist.
//!
//! What it needs, and [`probe`] finds out by trying:
//!
//! - Linux 6.2 with Landlock and seccomp, or Linux 5.19 with them and with mount namespaces, for
//!   [`SandboxStrictness::Essentials`]. Root may make these namespaces; others may where user namespaces are
//!   permitted. The stock kernels of Debian 12 and Ubuntu 24.04 will do.
//! - Linux 6.12 and mount namespaces for [`SandboxStrictness::Everything`].

mod denied_syscalls;
mod error;
mod landlock_rules;
mod prepared;
mod probe;
mod report;
mod seccomp_filter;
mod system_paths;
mod temporary;
mod trees;

use std::path::PathBuf;

pub use error::SandboxError;
pub(crate) use prepared::PreparedSandbox;
pub use probe::probe;
pub use report::{SandboxPartStatus, SandboxReport};
pub use temporary::remove_folder;
pub(crate) use temporary::remove_private_folder;

/// What a program may reach. The default may reach nothing, not even its own executable;
/// [`Sandbox::system_read_only`] is a better start.
///
/// A tree may lie in another one that can be written, if the way there from that one's root holds
/// neither a link nor a `..`. Links above are followed: a tree whose way another sandbox's program can
/// write must not be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Trees, or single files, that can be read.
    pub read: Vec<PathBuf>,
    /// Trees that can be read and changed. No device and no socket can be made in them.
    pub write: Vec<PathBuf>,
    /// Trees that can be read and executed.
    pub execute: Vec<PathBuf>,
    /// Folders and files inside the others that are closed all the same: a program finds an empty folder or an empty
    /// file there. They must exist; neither they nor the folders around them can be renamed or removed.
    pub closed: Vec<PathBuf>,
    /// Folders and files inside trees that can be written which can only be read all the same. They must exist; neither
    /// they nor the folders around them can be renamed or removed. In force where [`SandboxReport::metadata`] is.
    pub read_only: Vec<PathBuf>,
    /// Whether the network is open.
    pub network: SandboxNetwork,
    /// Where temporary files go.
    pub temporary: TemporaryFiles,
    /// What happens where the kernel lacks a part.
    pub strictness: SandboxStrictness,
}

/// The network of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxNetwork {
    /// No socket of any kind.
    #[default]
    Off,
    /// Internet protocols, as far as the machine reaches, itself included. Its services behind socket
    /// files stay closed.
    On,
}

/// Temporary files of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TemporaryFiles {
    /// A folder of its own in `/tmp`, removed when the process tree has ended. `TMPDIR`, `TMP`, `TEMP`
    /// and `HOME` name it: the real home is closed, and tools such as git fail when they can't look
    /// there. Programs in it can be executed if that is so in any other tree that can be written.
    #[default]
    Private,
    /// The same inside this folder.
    PrivateIn(PathBuf),
    /// None.
    None,
}

/// Which parts the kernel has to enforce, lest nothing is started. What of the others is missing is
/// in the [`SandboxReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxStrictness {
    /// Every part, without a gap.
    Everything,
    /// Files, network, system calls, privileges and temporary files. A program may be able to change
    /// modes and times of its user's files outside, and to signal its user's other processes: older
    /// kernels, and those that permit no user namespaces, can't prevent it.
    #[default]
    Essentials,
    /// None.
    BestEffort,
}

impl Sandbox {
    /// Programs, libraries and harmless settings of the system, `/dev/null` and its like, private
    /// temporary files, no network. Homes, secrets in `/etc` and other processes are closed.
    ///
    /// Tools notice that `/tmp` and `/dev/shm` are closed (they should use `TMPDIR`; POSIX semaphores
    /// by name do not work) and that `/proc/self` can't be read. Whoever needs one of these adds it to
    /// the trees. No file can be given the right to run as its owner or its group (`chmod +s`).
    #[must_use]
    pub fn system_read_only() -> Self {
        Self {
            read: system_paths::readable_trees(),
            write: system_paths::writable_devices(),
            execute: system_paths::executable_trees(),
            ..Self::default()
        }
    }

    fn check_report(&self, report: SandboxReport) -> Result<SandboxReport, SandboxError> {
        let missing = report.missing_parts(self.strictness);
        if missing.is_empty() {
            Ok(report)
        } else {
            Err(SandboxError::Incomplete { missing, report: Box::new(report) })
        }
    }

    /// Whether a program could anyway write a file and execute it.
    fn can_execute_written_files(&self) -> bool {
        let overlap = |one: &PathBuf, other: &PathBuf| one.starts_with(other) || other.starts_with(one);
        self.write.iter().any(|tree| self.execute.iter().any(|other| overlap(tree, other)))
    }
}

#[cfg(test)]
mod tests;
