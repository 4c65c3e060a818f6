//! Restricts the files, network, system calls and signals of a program.
//!
//! A [`Sandbox`] lists what a program may reach. The kernel closes everything else, for the program and for
//! all its descendants. The parent does everything that allocates or may fail; the child only applies the
//! result between fork and `execve`.
//!
//! Names, sizes and times of files (`stat`) stay visible, and so does the existence of files.
//!
//! Requirements, which [`probe()`] checks by trying:
//!
//! - [`SandboxStrictness::Essentials`] needs Linux 6.2 with Landlock and seccomp, or Linux 5.19 with both and
//!   with mount namespaces. Root can make these namespaces, other users can if user namespaces are
//!   permitted. The stock kernels of Debian 12 and Ubuntu 24.04 are sufficient.
//! - [`SandboxStrictness::Everything`] needs Linux 6.12 and mount namespaces.

mod denied_syscalls;
mod error;
mod landlock_rules;
mod memory_files;
mod prepared;
mod probe;
mod report;
mod seccomp_filter;
mod system_paths;
mod temporary;
mod trees;

use std::path::PathBuf;

pub use error::SandboxError;
pub use memory_files::{FileReplacement, MemoryFiles};
pub(crate) use prepared::PreparedSandbox;
pub use probe::probe;
pub use report::{SandboxPartStatus, SandboxReport};
pub use temporary::remove_folder;
pub(crate) use temporary::remove_private_folder;

/// The files, network and temporary folder that a program may reach.
///
/// The default allows nothing, not even reading the program's own executable; [`Sandbox::system_read_only`]
/// is a better start. In this module a tree is a folder with everything below it, or a single file.
///
/// A listed tree may be inside of a writable tree if the path from the writable root to it contains neither a
/// symlink nor `..`. Symlinks above the writable root are followed, so don't list a tree whose path goes
/// through a folder that the program of another sandbox can write to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Trees that can be read.
    pub read: Vec<PathBuf>,
    /// Trees that can be read and changed. Devices and sockets can't be created in them.
    pub write: Vec<PathBuf>,
    /// Trees that can be read and executed.
    pub execute: Vec<PathBuf>,
    /// Trees inside of the other trees that are closed: the program finds an empty folder or an empty file
    /// there. They must exist. Neither they nor the folders around them can be renamed or removed.
    pub closed: Vec<PathBuf>,
    /// Trees inside of writable trees that are read-only. They must exist. Neither they nor the folders
    /// around them can be renamed or removed. Enforced where [`SandboxReport::metadata`] is enforced.
    pub read_only: Vec<PathBuf>,
    /// Access to the network.
    pub network: SandboxNetwork,
    /// Place for temporary files.
    pub temporary: TemporaryFiles,
    /// The value of `HOME`; the folder for temporary files if left out.
    pub home: Option<PathBuf>,
    /// Files in memory; `None` leaves `/dev/shm` closed.
    pub memory_files: Option<MemoryFiles>,
    /// Parts of the sandbox that must be enforced before a program is started.
    pub strictness: SandboxStrictness,
}

/// The network access of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxNetwork {
    /// No socket of any kind can be made.
    #[default]
    Off,
    /// A loopback interface of the sandbox's own, so that its programs can talk to each other over TCP and
    /// UDP, and nothing else. Where the kernel permits no network namespace, the same as `Off`.
    Loopback,
    /// A loopback interface as above, with a socket that the supervisor serves on this port of 127.0.0.1; see
    /// [`ProcessTree::take_loopback_listener`](crate::ProcessTree::take_loopback_listener). Nothing is started
    /// where the kernel permits no network namespace.
    LoopbackWithListener {
        /// TCP port of the socket.
        port: u16,
    },
    /// Internet protocols to every host that this machine reaches, including the machine itself. Local
    /// services behind Unix socket files stay closed.
    On,
}

/// The place for temporary files of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TemporaryFiles {
    /// A private folder in `/tmp`, removed when the process tree has ended. `TMPDIR`, `TMP`, `TEMP` and also
    /// `HOME` point to it, because the real home is closed and tools such as git fail if they can't read
    /// their home. Files in the folder can be executed only if some other writable tree is executable too.
    #[default]
    Private,
    /// A private folder as above that takes the place of `/tmp`, so that a path such as `/tmp/x` works. No tree of the
    /// sandbox may be in `/tmp`. The same as `Private` where the kernel permits no mount namespace.
    PrivateTmp,
    /// A private folder as above, but inside of this folder.
    PrivateIn(PathBuf),
    /// No folder for temporary files.
    None,
}

/// The parts of a sandbox that the kernel must enforce, or nothing is started. Other parts that are missing
/// appear in the [`SandboxReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxStrictness {
    /// Every part must be enforced, without a gap.
    Everything,
    /// Files, network, system calls, privileges and temporary files must be enforced. A program may be able
    /// to change modes and times of its user's files outside of the sandbox and to signal its user's other
    /// processes, which older kernels and those without user namespaces can't prevent.
    #[default]
    Essentials,
    /// No part has to be enforced.
    BestEffort,
}

impl Sandbox {
    /// Allows the programs, libraries and harmless settings of the system, `/dev/null` and similar devices,
    /// and private temporary files, without network. Homes, secrets in `/etc` and other processes are closed.
    ///
    /// Tools notice that `/tmp` is closed (they should use `TMPDIR`), that `/dev/shm` is closed unless
    /// [`memory_files`](Self::memory_files) are requested (named POSIX semaphores don't work), and that `/proc/self` can't be read. A caller that needs one of these adds it to the
    /// trees. The program can't set the set-user-ID or set-group-ID bit of any file (`chmod +s`).
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

    /// Returns true if the trees already let the program execute a file that it has written.
    fn can_execute_written_files(&self) -> bool {
        let overlap = |left: &PathBuf, right: &PathBuf| left.starts_with(right) || right.starts_with(left);
        self.write.iter().any(|tree| self.execute.iter().any(|other| overlap(tree, other)))
    }
}

#[cfg(test)]
mod tests;
