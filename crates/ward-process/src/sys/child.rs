//! Turns a new child into the program. The parent prepares all data, and the child carries out the steps to
//! `execve`.

use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{Gid, Uid};

use super::barrier::BarrierWaiter;
use super::confinement::Confinement;
use super::fork::{ChildStack, ForkOptions, ForkedChild, exit_child, fork, fork_to_execute};
use super::last_error;
use super::signals::IgnoredSignals;
use super::start::{READY, TRACEABLE};
pub(crate) use super::start::{StartFailure, StartStep};
use crate::process_spec::ProcessGrouping;

/// Exit code of a child that never executed the program; shells use the same.
const EXIT_NOT_STARTED: i32 = 127;

/// The contents of `uid_map` and `gid_map` for a user namespace. An unprivileged process may map only its own
/// ids.
pub(crate) struct UserNamespaceMaps {
    pub(crate) users: Vec<u8>,
    pub(crate) groups: Vec<u8>,
}

/// The user and groups to switch to before `execve`.
pub(crate) struct KernelIdentity {
    pub(crate) user: Uid,
    pub(crate) group: Gid,
    pub(crate) supplementary: Vec<Gid>,
}

/// The process that forks the program. It decides whether the program gets a parent-death signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramParent {
    /// The supervisor, which may have many threads. The kernel sends the parent-death signal when the
    /// *thread* ends that forked the child (`PR_SET_PDEATHSIG` of `prctl(2)`), so the signal can't be used
    /// here.
    Supervisor,
    /// The keeper, whose only thread lives as long as the tree.
    Keeper,
}

/// Everything that the child needs, allocated before the fork.
pub(crate) struct PreparedProgram {
    pub(crate) path: CString,
    pub(crate) argv: CStringArray,
    pub(crate) env: CStringArray,
    pub(crate) directory: CString,
    pub(crate) grouping: ProcessGrouping,
    pub(crate) identity: Option<KernelIdentity>,
    pub(crate) parent: ProgramParent,
    pub(crate) limits: Vec<(Resource, Rlimit)>,
    pub(crate) umask: Mode,
    /// Standard input, output and error; no descriptor is below 3.
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) identity_maps: Option<UserNamespaceMaps>,
    /// Writing end of the pipe that carries `READY` or a [`StartFailure`]. `execve` closes it.
    pub(crate) failure_pipe: OwnedFd,
    /// Barrier to wait at before the steps to `execve`.
    pub(crate) barrier: Option<BarrierWaiter>,
    /// Barrier to wait at until a tracer is attached.
    pub(crate) tracer_barrier: Option<BarrierWaiter>,
    pub(crate) stack: ChildStack,
    pub(crate) ignored_signals: IgnoredSignals,
}

/// The strings of `argv` or `envp` with the null-terminated array of pointers to them.
pub(crate) struct CStringArray {
    pointers: Vec<*const c_char>,
    _strings: Vec<CString>,
}

impl CStringArray {
    pub(crate) fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { pointers, _strings: strings }
    }
}

/// Forks a program that has no keeper.
pub(crate) fn spawn(
    options: ForkOptions<'_>,
    program: &PreparedProgram,
    confinement: Option<&Confinement>,
) -> Result<ForkedChild, Errno> {
    fork_program(options, program, confinement, enter_namespace_and_run)
}

/// Forks the program of a keeper, which has mapped the identity already.
pub(crate) fn spawn_leader(
    options: ForkOptions<'_>,
    program: &PreparedProgram,
    confinement: Option<&Confinement>,
) -> Result<ForkedChild, Errno> {
    fork_program(options, program, confinement, wait_and_run)
}

fn fork_program(
    options: ForkOptions<'_>,
    program: &PreparedProgram,
    confinement: Option<&Confinement>,
    child_main: fn(&PreparedProgram, Option<&Confinement>) -> Infallible,
) -> Result<ForkedChild, Errno> {
    let child_main = || child_main(program, confinement);
    // A child that shares our memory must not change its identity or its namespaces, because that would
    // affect the protection of the shared memory. A child with a barrier waits for us, while sharing memory
    // makes us wait for it.
    let may_share = program.identity.is_none()
        && options.namespaces == 0
        && confinement.is_none()
        && program.barrier.is_none()
        && program.tracer_barrier.is_none();
    // SAFETY: until `execve` the child only makes system calls on prepared data.
    unsafe {
        if may_share {
            fork_to_execute(options, &program.stack, child_main)
        } else {
            fork(options, child_main)
        }
    }
}

fn enter_namespace_and_run(program: &PreparedProgram, confinement: Option<&Confinement>) -> Infallible {
    match program.identity_maps.as_ref().map_or(Ok(()), map_identity) {
        Ok(()) => wait_and_run(program, confinement),
        Err(errno) => report_failure(program, StartStep::UserNamespace, errno),
    }
}

fn wait_and_run(program: &PreparedProgram, confinement: Option<&Confinement>) -> Infallible {
    if let Some(barrier) = program.barrier {
        if let Err(errno) = close_foreign(program, confinement, barrier) {
            return report_failure(program, StartStep::Descriptors, errno);
        }
        if !barrier.wait_for_release() {
            return exit_child(EXIT_NOT_STARTED);
        }
    }
    if let Some(barrier) = program.tracer_barrier {
        if let Err(errno) = request_tracer(program) {
            return report_failure(program, StartStep::Tracing, errno);
        }
        if !barrier.wait_for_release() {
            return exit_child(EXIT_NOT_STARTED);
        }
    }
    run_program(program, confinement)
}

/// Closes the descriptors that this child doesn't need before a wait that may be long. It would hold the pipes of other
/// starts open meanwhile, and they would seem not to have ended. Only a confinement knows its own descriptors.
fn close_foreign(
    program: &PreparedProgram,
    confinement: Option<&Confinement>,
    barrier: BarrierWaiter,
) -> Result<(), Errno> {
    if confinement.is_some() {
        return Ok(());
    }
    let [input, output, errors] = program.stdio.each_ref().map(AsRawFd::as_raw_fd);
    let [reader, writer] = barrier.descriptors();
    let [tracer_reader, tracer_writer] = program.tracer_barrier.map_or([-1; 2], BarrierWaiter::descriptors);
    let failure = program.failure_pipe.as_raw_fd();
    close_all_but(&mut [input, output, errors, reader, writer, tracer_reader, tracer_writer, failure])
}

/// Asks the supervisor to trace this child. A keeper can't be traced, and its child inherits that.
fn request_tracer(program: &PreparedProgram) -> Result<(), Errno> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
    rustix::io::write(&program.failure_pipe, &[TRACEABLE]).map(drop)
}

/// Turns this child into the program, or reports the failure to the parent.
fn run_program(program: &PreparedProgram, confinement: Option<&Confinement>) -> Infallible {
    let Err((step, errno)) = try_execute(program, confinement);
    report_failure(program, step, errno)
}

/// Reports the failed step to the parent and exits.
pub(crate) fn report_failure(program: &PreparedProgram, step: StartStep, errno: Errno) -> Infallible {
    let [a, b, c, d] = errno.raw_os_error().to_le_bytes();
    // The write fails only if the parent no longer reads, and then nobody needs the report.
    let _ = rustix::io::write(&program.failure_pipe, &[step as u8, a, b, c, d]);
    exit_child(EXIT_NOT_STARTED)
}

fn try_execute(
    program: &PreparedProgram,
    confinement: Option<&Confinement>,
) -> Result<Infallible, StartFailure> {
    match program.grouping {
        ProcessGrouping::Group => {
            rustix::process::setpgid(None, None).map_err(|e| (StartStep::Grouping, e))?;
        }
        ProcessGrouping::Session => _ = rustix::process::setsid().map_err(|e| (StartStep::Grouping, e))?,
    }
    connect_stdio(&program.stdio).map_err(|e| (StartStep::Stdio, e))?;
    for (resource, limit) in &program.limits {
        rustix::process::setrlimit(*resource, *limit).map_err(|e| (StartStep::Limits, e))?;
    }
    rustix::process::umask(program.umask);
    if let Some(confinement) = confinement {
        confinement.enter_mounts().map_err(|e| (StartStep::Mounts, e))?;
        confinement.enter_network().map_err(|e| (StartStep::Network, e))?;
    }
    if let Some(identity) = &program.identity {
        set_identity(identity).map_err(|e| (StartStep::Identity, e))?;
    }
    rustix::process::chdir(program.directory.as_c_str()).map_err(|e| (StartStep::Directory, e))?;
    rustix::thread::set_no_new_privs(true).map_err(|e| (StartStep::NoNewPrivileges, e))?;
    if program.parent == ProgramParent::Keeper {
        // Has to come after the change of identity, because that clears the parent-death signal (`prctl(2)`).
        let kill = Some(Signal::KILL);
        rustix::process::set_parent_process_death_signal(kill).map_err(|e| (StartStep::Keeper, e))?;
    }
    close_descriptors_on_exec().map_err(|e| (StartStep::Descriptors, e))?;
    program.ignored_signals.reset();
    if let Some(confinement) = confinement {
        confinement.enter()?;
    }
    rustix::io::write(&program.failure_pipe, &[READY]).map_err(|e| (StartStep::Execute, e))?;
    // SAFETY: the path and both arrays are null-terminated and live until `execve` replaces the process
    // image.
    unsafe {
        libc::execve(program.path.as_ptr(), program.argv.pointers.as_ptr(), program.env.pointers.as_ptr());
    }
    Err((StartStep::Execute, last_error()))
}

/// Maps our own user and group onto themselves, in a new user namespace. `setgroups` has to be denied before
/// `gid_map` can be written without privileges; see `user_namespaces(7)`.
pub(crate) fn map_identity(maps: &UserNamespaceMaps) -> Result<(), Errno> {
    write_file(c"/proc/self/setgroups", b"deny")?;
    write_file(c"/proc/self/uid_map", &maps.users)?;
    write_file(c"/proc/self/gid_map", &maps.groups)
}

/// Forks a child in new namespaces that exits at once, with 0 if it could map its identity.
pub(crate) fn try_namespaces(
    namespaces: u64,
    maps: Option<&UserNamespaceMaps>,
) -> Result<ForkedChild, Errno> {
    try_in_namespaces(namespaces, maps, || Ok(()))
}

/// Forks a child in new namespaces that runs `attempt` and exits with 0 or with the error number. `attempt`
/// runs in a copy of this process and may only make system calls.
pub(crate) fn try_in_namespaces(
    namespaces: u64,
    maps: Option<&UserNamespaceMaps>,
    attempt: impl FnOnce() -> Result<(), Errno>,
) -> Result<ForkedChild, Errno> {
    // SAFETY: the child makes three writes and the system calls of `attempt`, and exits.
    unsafe {
        fork(ForkOptions { namespaces, cgroup: None }, || {
            let result = maps.map_or(Ok(()), map_identity).and_then(|()| attempt());
            exit_child(result.map_or_else(Errno::raw_os_error, |()| 0))
        })
    }
}

fn write_file(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(drop)
}

/// Duplicates the three descriptors to 0, 1 and 2.
pub(crate) fn connect_stdio(stdio: &[OwnedFd; 3]) -> Result<(), Errno> {
    for (target, source) in stdio.iter().enumerate() {
        // SAFETY: dup2 takes two numbers; no other code in this child owns descriptors 0, 1 and 2.
        if unsafe { libc::dup2(source.as_raw_fd(), RawFd::try_from(target).unwrap_or(RawFd::MAX)) } < 0 {
            return Err(last_error());
        }
    }
    Ok(())
}

/// Switches to another user. The user comes last, because without root's privileges the groups can't be
/// changed.
fn set_identity(identity: &KernelIdentity) -> Result<(), Errno> {
    let KernelIdentity { user, group, ref supplementary } = *identity;
    rustix::thread::set_thread_groups(supplementary)?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)
}

fn close_descriptors_on_exec() -> Result<(), Errno> {
    close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes every descriptor from 3 on except those in `keep`, which may be in any order.
pub(crate) fn close_all_but(keep: &mut [RawFd]) -> Result<(), Errno> {
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep.iter().map(|fd| fd.cast_unsigned()).filter(|fd| *fd >= 3 && *fd < u32::MAX) {
        if fd > from {
            close_range(from, fd - 1, 0)?;
        }
        from = fd + 1;
    }
    close_range(from, u32::MAX, 0)
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: no other code in this child uses the inherited descriptors.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}
