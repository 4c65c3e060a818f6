//! A trial at start-up: starts and ends a harmless program in the same way as entries are started.
//!
//! Kernel settings and versions don't show whether a launch works. On a real machine every probe passed, and the
//! kernel still refused to start a program in its cgroup.

use std::ffi::OsStr;

use shepherd_util::ErrorChain;
use ward_process::{EscapeePolicy, ProcessSpec, StopLadder, Supervisor, UserIdentity, find_program};

use crate::options::LinuxHostOptions;

/// The user and group of the trial, if the daemon is root: `nobody` and `nogroup` on every distribution.
const NOBODY: u32 = 65534;

/// Starts and ends a harmless program. Returns the reason if no program can be started.
pub(crate) fn find_launch_fault(supervisor: &Supervisor, options: &LinuxHostOptions) -> Option<String> {
    // A machine without `true` can't be tried; its launches report their own faults.
    let program = find_program(OsStr::new("true"), &options.search_path)?;
    let mut spec = ProcessSpec::new(program).directory("/").escapees(EscapeePolicy::Held);
    if rustix::process::geteuid().is_root() {
        spec = spec.identity(UserIdentity::new(NOBODY, NOBODY, &[]));
    }
    try_launch(supervisor, spec).err()
}

fn try_launch(supervisor: &Supervisor, spec: ProcessSpec) -> Result<(), String> {
    let id = format!("trial-{}", std::process::id()).parse().map_err(|error| format!("{error}"))?;
    let mut tree = supervisor
        .spawn(id, spec)
        .map_err(|error| format!("could not start a program: {}", ErrorChain(&error)))?;
    supervisor
        .stop(&mut tree, StopLadder::force())
        .map_err(|error| format!("could not end a program: {}", ErrorChain(&error)))?;
    Ok(())
}
