//! A wall around a program: files, network, system calls, signals.
//!
//! [`Sandbox`] says what a program may reach; everything else is closed by the kernel, for the
//! program and for all that it starts. [`Sandbox::prepare`] does in the parent whatever allocates
//! or can fail slowly; the child only applies the result, between fork and `execve`.
//!
//! What stays visible: names, sizes and times of files (`stat`), and whether they exist.

mod denied;
mod filter;
mod probe;
mod report;
mod rules;
mod system;
mod temporary;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use probe::probe;
pub use report::{Part, SandboxReport};

use crate::sys::confine::{Confinement, ReadOnlyMounts};
use temporary::PrivateFolder;

/// What a program may reach. The default may reach nothing, not even its own executable;
/// [`Sandbox::system_read_only`] is a better start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Trees, or single files, that can be read.
    pub read: Vec<PathBuf>,
    /// Trees that can be read and changed. No device and no socket can be made in them.
    pub write: Vec<PathBuf>,
    /// Trees that can be read and executed.
    pub execute: Vec<PathBuf>,
    /// Whether the network is open.
    pub network: Network,
    /// Where temporary files go.
    pub temporary: Temporary,
    /// What happens where the kernel lacks a part.
    pub strictness: Strictness,
}

/// The network of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// No socket of any kind.
    #[default]
    Off,
    /// Internet protocols. Services of this machine behind socket files stay closed.
    On,
}

/// Temporary files of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Temporary {
    /// A folder of its own in the system's temporary folder, removed with the process tree. `TMPDIR`,
    /// `TMP`, `TEMP` and `HOME` name it: the real home is closed, and tools such as git fail when they
    /// can't look there. Programs in it can be executed if that is so for any other tree that can be
    /// written.
    #[default]
    Private,
    /// The same inside this folder.
    PrivateIn(PathBuf),
    /// None.
    None,
}

/// What to do about a part that the kernel can't enforce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Refuse to start anything.
    #[default]
    Full,
    /// Start, enforce the rest, and say so in the report.
    BestEffort,
}

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
    Rules(#[from] landlock::RulesetError),
    /// The system call filter could not be made for this machine.
    #[error("the system call filter can't be built")]
    Filter(#[from] seccompiler::BackendError),
    /// A descriptor could not be had.
    #[error("the sandbox could not be held ready")]
    Descriptor(#[source] io::Error),
    /// The kernel lacks a part, and [`Strictness::Full`] was ordered.
    #[error("this machine can't enforce the whole sandbox:\n{0}")]
    Incomplete(Box<SandboxReport>),
}

impl Sandbox {
    /// Programs, libraries and harmless settings of the system, `/dev/null` and its like, private
    /// temporary files, no network. Homes, secrets in `/etc` and other processes are closed.
    ///
    /// Tools notice that `/tmp` and `/dev/shm` are closed (they should use `TMPDIR`; POSIX semaphores
    /// by name do not work), that `/proc/self` can't be read, and that numbers of users have no names.
    /// Whoever needs one of these adds it to the trees.
    #[must_use]
    pub fn system_read_only() -> Self {
        Self { read: system::read(), write: system::write(), execute: system::execute(), ..Self::default() }
    }

    /// Does all that can be done before the program is started.
    ///
    /// # Errors
    /// When a tree does not exist, the temporary folder can't be made, the kernel refuses, or a part
    /// is missing under [`Strictness::Full`].
    pub fn prepare(&self) -> Result<Prepared, SandboxError> {
        let host = probe::host();
        let report = self.accept(host.report(self))?;
        let temporary = match &self.temporary {
            Temporary::Private => Some(PrivateFolder::make_in(&std::env::temp_dir())?),
            Temporary::PrivateIn(parent) => Some(PrivateFolder::make_in(parent)?),
            Temporary::None => None,
        };
        let ruleset = rules::build(self, temporary.as_ref().map(PrivateFolder::path))?;
        let filter = if host.seccomp.is_ok() { filter::compile(self.network)? } else { Vec::new() };
        let mounts = host.read_only_mounts.is_ok().then(|| self.mounts(temporary.as_ref())).transpose()?;
        let confinement = Confinement::new(mounts, ruleset, filter)
            .map_err(|errno| SandboxError::Descriptor(errno.into()))?;
        Ok(Prepared {
            report,
            network_namespace: self.network == Network::Off && host.network_namespace.is_ok(),
            environment: temporary.as_ref().map(PrivateFolder::environment).unwrap_or_default(),
            confinement,
            temporary,
        })
    }

    fn accept(&self, report: SandboxReport) -> Result<SandboxReport, SandboxError> {
        match self.strictness {
            Strictness::Full if !report.is_complete() => Err(SandboxError::Incomplete(Box::new(report))),
            Strictness::Full | Strictness::BestEffort => Ok(report),
        }
    }

    fn mounts(&self, temporary: Option<&PrivateFolder>) -> Result<ReadOnlyMounts, SandboxError> {
        let mut writable = self.write.clone();
        writable.extend(temporary.map(|folder| folder.path().to_owned()));
        ReadOnlyMounts::all_but(&writable)
            .map_err(|(path, errno)| SandboxError::Tree { path, source: errno.into() })
    }

    /// Whether a program could anyway write a file and execute it.
    fn may_run_what_it_writes(&self) -> bool {
        self.write.iter().any(|tree| self.execute.contains(tree))
    }
}

/// A sandbox that is ready to be entered. It lives as long as the process tree, because dropping it
/// removes the temporary folder.
#[derive(Debug)]
pub struct Prepared {
    report: SandboxReport,
    network_namespace: bool,
    environment: Vec<(OsString, OsString)>,
    confinement: Confinement,
    temporary: Option<PrivateFolder>,
}

impl Prepared {
    /// What is in force.
    #[must_use]
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// The private temporary folder.
    #[must_use]
    pub fn temporary(&self) -> Option<&Path> {
        self.temporary.as_ref().map(PrivateFolder::path)
    }

    /// Flags of the namespaces that the child is to be born in. Unless we are root it needs a user
    /// namespace around them.
    pub(crate) fn namespaces(&self) -> libc::c_int {
        let network = if self.network_namespace { libc::CLONE_NEWNET } else { 0 };
        let mounts = if self.confinement.wants_mount_namespace() { libc::CLONE_NEWNS } else { 0 };
        network | mounts
    }

    /// Variables that take precedence over those of the order.
    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// What the child enters.
    pub(crate) fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Makes the temporary folder belong to the user that the program will run as.
    pub(crate) fn give_to(&self, user: u32, group: u32) -> Result<(), SandboxError> {
        self.temporary.as_ref().map_or(Ok(()), |folder| folder.give_to(user, group))
    }
}
