//! Turns a [`Sandbox`] into opened trees, rules, a filter and a temporary folder that the child can apply.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Once;

use super::temporary::{PrivateFolder, abandoned};
use super::trees::{OpenTree, SandboxTrees};
use super::{
    MemoryFiles, Sandbox, SandboxError, SandboxNetwork, SandboxReport, TemporaryFiles, landlock_rules, probe,
    seccomp_filter,
};
use crate::output;
use crate::process_spec::TreeLifetime;
use crate::sys::confinement::{Confinement, LateRules, LoopbackSetup, MemoryMounts, ReadOnlyMounts};

/// Parent of private temporary folders, unless the sandbox names another. `TMPDIR` is ignored, because the
/// environment may come from an untrusted caller.
const SYSTEM_TEMPORARY: &str = "/tmp";

/// A sandbox that a child can enter.
///
/// Dropping it keeps the temporary folder, because an independent program outlives its handle. The owner
/// calls [`clean_up`](Self::clean_up) when the tree has ended or was never started.
#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    report: SandboxReport,
    /// True if the child gets a network namespace of its own. Without a loopback interface, the filter alone
    /// refuses all sockets, and the namespace is a second barrier in case the filter has a bug. It costs
    /// 0.6 ms of each start, more than any other part.
    network_namespace: bool,
    environment: Vec<(OsString, OsString)>,
    confinement: Confinement,
    temporary: Option<PrivateFolder>,
}

impl Sandbox {
    /// Does everything that can be done before the program is started. Leaves nothing behind if it fails.
    pub(crate) fn prepare(&self, lifetime: TreeLifetime) -> Result<PreparedSandbox, SandboxError> {
        let report = self.check_report(probe::kernel_support().report(self))?;
        let trees = SandboxTrees::open(self)?;
        let temporary = match &self.temporary {
            TemporaryFiles::Private | TemporaryFiles::PrivateTmp => {
                let parent = Path::new(SYSTEM_TEMPORARY);
                static SWEPT: Once = Once::new();
                SWEPT.call_once(|| abandoned::remove_abandoned(parent));
                Some(PrivateFolder::create_in(parent, lifetime, &trees)?)
            }
            TemporaryFiles::PrivateIn(parent) => Some(PrivateFolder::create_in(parent, lifetime, &trees)?),
            TemporaryFiles::None => None,
        };
        let replaces_tmp =
            self.temporary == TemporaryFiles::PrivateTmp && probe::kernel_support().read_only_mounts.is_ok();
        let seen_folder = |folder: &PrivateFolder| {
            let path = if replaces_tmp { Path::new(SYSTEM_TEMPORARY) } else { folder.path() };
            PrivateFolder::environment(path, self.home.as_deref().unwrap_or(path))
        };
        match self.build_confinement(trees, temporary.as_ref()) {
            Ok(confinement) => Ok(PreparedSandbox {
                report,
                network_namespace: self.network != SandboxNetwork::On
                    && probe::kernel_support().network_namespace.is_ok(),
                environment: temporary.as_ref().map(seen_folder).unwrap_or_default(),
                confinement,
                temporary,
            }),
            Err(error) => {
                temporary.as_ref().map(PrivateFolder::remove);
                Err(error)
            }
        }
    }

    fn build_confinement(
        &self,
        trees: SandboxTrees,
        temporary: Option<&PrivateFolder>,
    ) -> Result<Confinement, SandboxError> {
        let host = probe::kernel_support();
        let network = host.available_network(self.network);
        let ruleset = landlock_rules::build_ruleset(self, network, &trees, temporary.map(AsFd::as_fd))?;
        let ruleset = ruleset.map(output::move_above_stdio).transpose().map_err(SandboxError::Descriptor)?;
        let filter_error = |error| SandboxError::Filter(Box::new(error));
        let filter =
            if host.seccomp.is_ok() { seccomp_filter::compiled(network).map_err(filter_error)? } else { &[] };
        let mounts = host.read_only_mounts.is_ok().then(|| build_mounts(trees, temporary)).transpose()?;
        let mounts = match (mounts, temporary) {
            (Some(mounts), Some(folder)) if self.temporary == TemporaryFiles::PrivateTmp => Some(
                mounts
                    .with_private_tmp(folder.path())
                    .map_err(|errno| SandboxError::Descriptor(errno.into()))?,
            ),
            (mounts, _) => mounts,
        };
        let memory = self.memory_files.as_ref().filter(|_| mounts.is_some());
        let memory =
            memory.map(|files| build_memory(files, host.landlock.unwrap_or_default())).transpose()?;
        let confinement = Confinement::new(mounts, ruleset, filter)
            .map_err(|errno| SandboxError::Filter(Box::new(errno)))?;
        let late_rules = build_late_rules(&self.read)?;
        Ok(confinement
            .with_memory(memory)
            .with_loopback(build_loopback(network)?)
            .with_late_rules(late_rules))
    }
}

/// Plans the loopback interface of a network that this host offers.
fn build_loopback(network: SandboxNetwork) -> Result<Option<LoopbackSetup>, SandboxError> {
    match network {
        SandboxNetwork::Off | SandboxNetwork::On => Ok(None),
        SandboxNetwork::Loopback => Ok(Some(LoopbackSetup::interface_only())),
        SandboxNetwork::LoopbackWithListener { port } => {
            LoopbackSetup::with_listener(port).map(Some).map_err(SandboxError::Descriptor)
        }
    }
}

/// Plans rules for the readable files of `/proc`, which the child may find in a mount of its own.
fn build_late_rules(readable: &[PathBuf]) -> Result<LateRules, SandboxError> {
    let mut rules = LateRules::default();
    for path in readable.iter().filter(|path| path.starts_with("/proc")) {
        let rights = landlock_rules::read_rights(path.is_dir());
        rules.add(path, rights).map_err(|errno| SandboxError::Descriptor(errno.into()))?;
    }
    Ok(rules)
}

fn build_memory(files: &MemoryFiles, landlock_abi: i64) -> Result<MemoryMounts, SandboxError> {
    let rights = landlock_rules::memory_rights(landlock_abi);
    let plan = MemoryMounts::new(files.max_bytes, rights).and_then(|plan| {
        let mut replacements = files.replacements.iter();
        replacements.try_fold(plan, |plan, file| plan.with_replacement(&file.path, &file.content))
    });
    plan.map_err(|errno| SandboxError::Descriptor(errno.into()))
}

fn build_mounts(
    trees: SandboxTrees,
    temporary: Option<&PrivateFolder>,
) -> Result<ReadOnlyMounts, SandboxError> {
    let mut writable: Vec<_> = trees.write.into_iter().map(OpenTree::into_handle).collect();
    let temporary = temporary.map(|folder| folder.as_fd().try_clone_to_owned()).transpose();
    writable.extend(temporary.map_err(SandboxError::Descriptor)?);
    let [read_only, closed] =
        [trees.read_only, trees.closed].map(|trees| trees.into_iter().map(OpenTree::into_handle).collect());
    ReadOnlyMounts::all_but(writable)
        .and_then(|mounts| mounts.with_read_only(read_only))
        .and_then(|mounts| mounts.with_closed(closed))
        .map_err(|errno| SandboxError::Descriptor(errno.into()))
}

impl PreparedSandbox {
    /// Returns the state of every part of the sandbox.
    pub(crate) fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// Returns the private temporary folder, or `None` once it has been removed.
    pub(crate) fn temporary_folder(&self) -> Option<&Path> {
        self.temporary.as_ref().map(PrivateFolder::path)
    }

    /// Removes the temporary folder. To be called when the tree has ended or was never started. If the
    /// removal fails, [`temporary_folder`](Self::temporary_folder) still returns the folder.
    pub(crate) fn clean_up(&mut self) {
        self.temporary.take_if(|folder| folder.remove());
    }

    /// Returns the flags of the namespaces that the child has to be created in. Unless we are root, the child
    /// also needs a user namespace.
    pub(crate) fn namespaces(&self) -> libc::c_int {
        let network = if self.network_namespace { libc::CLONE_NEWNET } else { 0 };
        let mounts = if self.confinement.wants_mount_namespace() { libc::CLONE_NEWNS } else { 0 };
        network | mounts
    }

    /// Returns the environment variables that override those of the process spec.
    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Returns the restrictions that the child applies to itself before `execve`.
    pub(crate) fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Returns the listening socket on the loopback interface, once the program has been executed.
    pub(crate) fn receive_listener(&self) -> Result<Option<OwnedFd>, rustix::io::Errno> {
        self.confinement.receive_listener()
    }

    /// Gives the temporary folder to the user that the program will run as. Removes the folder if that fails.
    pub(crate) fn change_folder_owner(&self, user: u32, group: u32) -> Result<(), SandboxError> {
        self.temporary.as_ref().map_or(Ok(()), |folder| folder.change_owner(user, group))
    }
}
