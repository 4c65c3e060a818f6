//! Converts a process spec into the C strings, ids and descriptors that the child passes to the kernel.

use std::ffi::{CString, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::Mode;
use rustix::thread::{Gid, Uid};

use super::SpawnError;
use super::launch::TreeLaunch;
use crate::containment;
use crate::process_spec::{ProcessSpec, UserIdentity, set_variable};
use crate::record::MARKER;
use crate::sandbox::PreparedSandbox;
use crate::sys::child::{CStringArray, KernelIdentity, PreparedProgram, ProgramParent};
use crate::sys::fork::ChildStack;

/// Prepares everything that the child needs, because the child can't allocate after the fork.
pub(super) fn prepare_program(
    launch: &TreeLaunch<'_>,
    spec: &ProcessSpec,
    stdio: [OwnedFd; 3],
    failure_pipe: OwnedFd,
) -> Result<PreparedProgram, SpawnError> {
    let TreeLaunch { supervisor, id, sandbox, .. } = launch;
    let mut env = vec![(OsString::from(MARKER), OsString::from(id.as_str()))];
    env.extend(spec.env.iter().filter(|(name, _)| name != MARKER).cloned());
    for (name, value) in sandbox.map(PreparedSandbox::environment).unwrap_or_default() {
        set_variable(&mut env, name.clone(), value.clone());
    }
    let env = env.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    });
    Ok(PreparedProgram {
        path: c_string(spec.program.as_os_str().to_owned(), "the program's path")?,
        argv: c_strings(spec.argv.iter().cloned(), "an argument")?,
        env: c_strings(env, "an environment variable")?,
        directory: c_string(spec.directory.as_os_str().to_owned(), "the working directory")?,
        grouping: spec.grouping,
        identity: spec.identity.as_ref().map(kernel_identity),
        parent: if supervisor.needs_keeper(spec) { ProgramParent::Keeper } else { ProgramParent::Supervisor },
        limits: launch.limits.resources.clone(),
        umask: Mode::from_raw_mode(spec.umask),
        stdio,
        identity_maps: containment::identity_maps(launch.namespaces),
        failure_pipe,
        barrier: None,
        tracer_barrier: None,
        stack: ChildStack::new(),
        ignored_signals: supervisor.ignored_signals,
    })
}

fn kernel_identity(identity: &UserIdentity) -> KernelIdentity {
    KernelIdentity {
        user: Uid::from_raw(identity.user),
        group: Gid::from_raw(identity.group),
        supplementary: identity.supplementary.iter().map(|id| Gid::from_raw(*id)).collect(),
    }
}

fn c_string(text: OsString, what: &'static str) -> Result<CString, SpawnError> {
    CString::new(text.into_vec()).map_err(|_| SpawnError::NulByte { what })
}

fn c_strings(
    texts: impl IntoIterator<Item = OsString>,
    what: &'static str,
) -> Result<CStringArray, SpawnError> {
    let strings = texts.into_iter().map(|text| c_string(text, what)).collect::<Result<Vec<_>, _>>()?;
    Ok(CStringArray::new(strings))
}
