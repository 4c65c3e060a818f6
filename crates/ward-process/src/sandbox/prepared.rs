//! A sandbox between its order and its end.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Once;

use super::temporary::{PrivateFolder, abandoned};
use super::trees::{OpenTree, Trees};
use super::{Network, Sandbox, SandboxError, SandboxReport, Temporary, filter, probe, rules};
use crate::order::Lifetime;
use crate::output;
use crate::sys::confine::{Confinement, ReadOnlyMounts};

/// Where private temporary folders are, unless the order says otherwise. A library does not ask the
/// environment (`TMPDIR`), which may come from whoever called us.
const SYSTEM_TEMPORARY: &str = "/tmp";

/// A sandbox that is ready to be entered.
///
/// Dropping it leaves the temporary folder alone, because an independent program outlives its
/// handle: whoever sees the end of the tree, or that nothing was started, calls
/// [`clean_up`](Self::clean_up).
#[derive(Debug)]
pub(crate) struct Prepared {
    report: SandboxReport,
    /// A second wall: the filter alone refuses all sockets, but one mistake in it would open the
    /// network. It costs 0.6 ms of a start, more than any other part.
    network_namespace: bool,
    environment: Vec<(OsString, OsString)>,
    confinement: Confinement,
    temporary: Option<PrivateFolder>,
}

impl Sandbox {
    /// Does all that can be done before the program is started; leaves nothing behind if it fails.
    pub(crate) fn prepare(&self, lifetime: Lifetime) -> Result<Prepared, SandboxError> {
        let report = self.accept(probe::host().report(self))?;
        let trees = Trees::open(self)?;
        let temporary = match &self.temporary {
            Temporary::Private => {
                let parent = Path::new(SYSTEM_TEMPORARY);
                static SWEPT: Once = Once::new();
                SWEPT.call_once(|| abandoned::sweep(parent));
                Some(PrivateFolder::make_in(parent, lifetime, &trees)?)
            }
            Temporary::PrivateIn(parent) => Some(PrivateFolder::make_in(parent, lifetime, &trees)?),
            Temporary::None => None,
        };
        match self.confine(trees, temporary.as_ref()) {
            Ok(confinement) => Ok(Prepared {
                report,
                network_namespace: self.network == Network::Off && probe::host().network_namespace.is_ok(),
                environment: temporary.as_ref().map(PrivateFolder::environment).unwrap_or_default(),
                confinement,
                temporary,
            }),
            Err(error) => {
                temporary.as_ref().map(PrivateFolder::remove);
                Err(error)
            }
        }
    }

    fn confine(&self, trees: Trees, temporary: Option<&PrivateFolder>) -> Result<Confinement, SandboxError> {
        let host = probe::host();
        let ruleset = rules::build(self, &trees, temporary.map(AsFd::as_fd))?;
        let ruleset = ruleset.map(output::above_stdio).transpose().map_err(SandboxError::Descriptor)?;
        let unfit = |error| SandboxError::Filter(Box::new(error));
        let filter = if host.seccomp.is_ok() { filter::compiled(self.network).map_err(unfit)? } else { &[] };
        let mounts = host.read_only_mounts.is_ok().then(|| mounts(trees, temporary)).transpose()?;
        Confinement::new(mounts, ruleset, filter).map_err(|errno| SandboxError::Filter(Box::new(errno)))
    }
}

fn mounts(trees: Trees, temporary: Option<&PrivateFolder>) -> Result<ReadOnlyMounts, SandboxError> {
    let mut writable: Vec<_> = trees.write.into_iter().map(OpenTree::into_handle).collect();
    let temporary = temporary.map(|folder| folder.as_fd().try_clone_to_owned()).transpose();
    writable.extend(temporary.map_err(SandboxError::Descriptor)?);
    let [kept, closed] =
        [trees.read_only, trees.closed].map(|trees| trees.into_iter().map(OpenTree::into_handle).collect());
    ReadOnlyMounts::all_but(writable)
        .and_then(|mounts| mounts.keeping(kept))
        .and_then(|mounts| mounts.closing(closed))
        .map_err(|errno| SandboxError::Descriptor(errno.into()))
}

impl Prepared {
    /// What is in force.
    pub(crate) fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// The private temporary folder, until it has been removed.
    pub(crate) fn temporary_folder(&self) -> Option<&Path> {
        self.temporary.as_ref().map(PrivateFolder::path)
    }

    /// Removes the temporary folder. To be called when the tree has ended, or was never started. If
    /// somebody keeps it from going, [`temporary_folder`](Self::temporary_folder) still tells of it.
    pub(crate) fn clean_up(&mut self) {
        self.temporary.take_if(|folder| folder.remove());
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

    /// Makes the temporary folder belong to the user that the program will run as; if that is refused,
    /// the folder is gone.
    pub(crate) fn give_to(&self, user: u32, group: u32) -> Result<(), SandboxError> {
        self.temporary.as_ref().map_or(Ok(()), |folder| folder.give_to(user, group))
    }
}
