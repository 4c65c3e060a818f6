//! The keeper: a small process per tree that adopts and reaps the tree's orphans.
//!
//! The keeper forks the program, reaps members that end, reports the exit of the program itself, and exits
//! when it has no child left. Its pidfd therefore becomes readable exactly when the tree is empty. In a PID
//! namespace the keeper is init, and the kernel kills all members when it ends; elsewhere it is a child
//! subreaper.
//!
//! The keeper never calls `execve`, never allocates, keeps the supervisor's identity, and can't be traced by
//! members.

use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::process::Signal;

use super::barrier::{BarrierWaiter, StartBarrier};
use super::child::{self, PreparedProgram, StartStep};
use super::confinement::Confinement;
use super::descendants::DescendantScan;
use super::fork::{ForkOptions, ForkedChild, exit_child, fork};
use super::last_error;
use super::procfs::ProcRoot;

/// The role of a keeper, which decides how it kills its tree when the supervisor is gone.
pub(crate) enum KeeperRole {
    /// Init of a PID namespace.
    Init,
    /// Child subreaper that walks its descendants.
    Subreaper,
    /// Child subreaper outside of the tree's cgroup. It survives the kill of the group and adopts escapees.
    BesideCgroup {
        /// Directory of the cgroup in which the program is created.
        directory: OwnedFd,
        /// Handle on `cgroup.kill` of that cgroup.
        kill: OwnedFd,
    },
}

/// Everything that the keeper needs, allocated before the fork.
pub(crate) struct Keeper {
    pub(crate) role: KeeperRole,
    /// Barrier to wait at before the program's barrier is released. The program is forked before, so that less is left to
    /// do after the wait. Needs a `program_barrier`.
    pub(crate) barrier: Option<BarrierWaiter>,
    /// Barrier at which the program waits until the keeper has closed the program's streams and the start
    /// pipe. A program that may send `SIGSTOP` to the keeper could otherwise keep these open and so block the
    /// supervisor.
    pub(crate) program_barrier: Option<StartBarrier>,
    pub(crate) program: PreparedProgram,
    /// Pipe to which the exit of the program is written.
    pub(crate) status: OwnedFd,
    /// Pipe whose other end the supervisor holds. End of file means that the supervisor is gone.
    pub(crate) liveness_pipe: Option<OwnedFd>,
    pub(crate) proc: Arc<ProcRoot>,
    pub(crate) scan: DescendantScan,
    pub(crate) null: [OwnedFd; 3],
}

/// Name in `/proc/PID/comm`, for people. Nothing relies on it, because any program can use the same name.
const NAME: &std::ffi::CStr = c"ward-keeper";

/// Time between two attempts to kill members after the supervisor is gone.
const KILL_RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Forks a keeper, which then forks the program.
pub(crate) fn spawn(
    options: ForkOptions<'_>,
    keeper: Keeper,
    confinement: Option<&Confinement>,
) -> Result<ForkedChild, Errno> {
    // SAFETY: the keeper only makes system calls on prepared data.
    unsafe { fork(options, || run_keeper(keeper, confinement)) }
}

fn run_keeper(mut keeper: Keeper, confinement: Option<&Confinement>) -> Infallible {
    let signals = match prepare_keeper(&keeper) {
        Ok(signals) => signals,
        Err(errno) => return child::report_failure(&keeper.program, StartStep::Keeper, errno),
    };
    if let Some(barrier) = &mut keeper.barrier {
        barrier.close_writer();
    }
    let program = &keeper.program;
    let options = match &keeper.role {
        KeeperRole::BesideCgroup { directory, .. } => {
            ForkOptions { cgroup: Some(directory.as_fd()), ..ForkOptions::default() }
        }
        KeeperRole::Init | KeeperRole::Subreaper => ForkOptions::default(),
    };
    let leader = match child::spawn_leader(options, program, confinement) {
        Ok(forked) => forked,
        Err(errno) => return child::report_failure(program, StartStep::Keeper, errno),
    };
    // This comes before the wait, which may be long: otherwise this keeper would hold the pipes of other starts open.
    if release_inherited(&keeper, signals.as_fd()).is_err()
        || keeper.barrier.is_some_and(|barrier| !barrier.wait_for_release())
        || keeper.program_barrier.take().map_or(Ok(()), StartBarrier::release).is_err()
    {
        // The program, if it waits, exits because its barrier can't be released any more.
        return exit_child(1);
    }
    supervise_tree(&mut keeper, signals.as_fd(), leader.pid.as_raw_nonzero().get())
}

/// Prepares the keeper before the program is forked: it adopts orphans, can't be traced and receives signals
/// through a signalfd.
fn prepare_keeper(keeper: &Keeper) -> Result<OwnedFd, Errno> {
    if let Some(maps) = &keeper.program.identity_maps {
        child::map_identity(maps)?;
    }
    rustix::thread::set_name(NAME)?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    match keeper.role {
        KeeperRole::Init => mount_own_proc(),
        KeeperRole::Subreaper | KeeperRole::BesideCgroup { .. } => {
            rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
        }
    }
    open_signalfd()
}

/// Mounts a `/proc` that shows the new PID namespace. A container may forbid the mount; then programs see the
/// pids of the outer namespace, which is harmless.
fn mount_own_proc() {
    let private = rustix::mount::MountPropagationFlags::REC | rustix::mount::MountPropagationFlags::PRIVATE;
    if rustix::mount::mount_change(c"/", private).is_ok() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let _ = rustix::mount::mount(c"proc", c"/proc", c"proc", flags, None);
    }
}

/// Opens a signalfd for `SIGCHLD` and `SIGTERM`. Both have been blocked since the fork, so they are queued
/// here, even for an init, for which the kernel otherwise discards unhandled signals.
fn open_signalfd() -> Result<OwnedFd, Errno> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is live memory of the right type, and signalfd only reads it.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: the descriptor is new, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes everything that the keeper inherited from the supervisor or shares with the program, after the
/// program is forked.
fn release_inherited(keeper: &Keeper, signals: BorrowedFd<'_>) -> Result<(), Errno> {
    child::connect_stdio(&keeper.null)?;
    let _ = rustix::process::chdir(c"/");
    let kill = if let KeeperRole::BesideCgroup { kill, .. } = &keeper.role { kill.as_raw_fd() } else { -1 };
    let liveness = keeper.liveness_pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    let [reader, writer] = keeper.program_barrier.as_ref().map_or([-1; 2], StartBarrier::descriptors);
    let [own_reader, own_writer] = keeper.barrier.map_or([-1; 2], BarrierWaiter::descriptors);
    child::close_all_but(&mut [
        reader,
        writer,
        own_reader,
        own_writer,
        signals.as_raw_fd(),
        keeper.status.as_raw_fd(),
        keeper.proc.as_ref().as_fd().as_raw_fd(),
        kill,
        liveness,
    ])
}

fn supervise_tree(keeper: &mut Keeper, signals: BorrowedFd<'_>, leader: i32) -> Infallible {
    let mut supervisor_gone = false;
    loop {
        supervisor_gone = wait_for_event(keeper, signals, supervisor_gone);
        if drain_signals(signals) && matches!(keeper.role, KeeperRole::Init) {
            signal_namespace();
        }
        if reap_all(keeper, leader) {
            return exit_child(0);
        }
        if supervisor_gone {
            kill_tree(keeper);
        }
    }
}

/// Waits for a signal or the end of the supervisor. Returns true if the supervisor is gone.
fn wait_for_event(keeper: &Keeper, signals: BorrowedFd<'_>, supervisor_gone: bool) -> bool {
    let signals = PollFd::from_borrowed_fd(signals, PollFlags::IN);
    // Errors such as EINTR are harmless, because the caller checks everything after each wake-up.
    match &keeper.liveness_pipe {
        Some(pipe) if !supervisor_gone => {
            let mut waiting = [signals, PollFd::new(pipe, PollFlags::IN)];
            let _ = rustix::event::poll(&mut waiting, None);
            waiting.get(1).is_some_and(|pipe| !pipe.revents().is_empty())
        }
        pipe => {
            // A pipe at its end stays readable, so polling it again would return at once. A timeout repeats
            // the kill.
            let timeout = pipe.as_ref().map(|_| &KILL_RETRY);
            let _ = rustix::event::poll(&mut [signals], timeout);
            supervisor_gone
        }
    }
}

/// Reads all queued signals. Returns true if there was a `SIGTERM`, by which the supervisor asks the tree to
/// end.
fn drain_signals(signals: BorrowedFd<'_>) -> bool {
    let mut terminated = false;
    let mut information = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(signals, &mut information).is_ok_and(|length| length == information.len()) {
        let [a, b, c, d, ..] = information;
        terminated |= u32::from_ne_bytes([a, b, c, d]) == libc::SIGTERM.cast_unsigned();
    }
    terminated
}

fn signal_namespace() {
    for signal in [libc::SIGTERM, libc::SIGCONT] {
        // SAFETY: kill takes two numbers; -1 means every process in this namespace except its init.
        unsafe { libc::kill(-1, signal) };
    }
}

/// Reaps all children that have ended. Returns true if no child is left.
fn reap_all(keeper: &Keeper, leader: i32) -> bool {
    loop {
        let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the structure is live and writable, and all zeros is a valid value.
        let (result, information) = unsafe {
            let flags = libc::WEXITED | libc::WNOHANG;
            let result = libc::waitid(libc::P_ALL, 0, information.as_mut_ptr(), flags);
            (result, information.assume_init())
        };
        if result < 0 {
            return last_error() == Errno::CHILD;
        }
        // SAFETY: waitid filled in these fields or left them zero.
        let (pid, status) = unsafe { (information.si_pid(), information.si_status()) };
        if pid == 0 {
            return false;
        }
        if pid == leader {
            report_program_exit(keeper, information.si_code, status);
        }
    }
}

/// Writes the program's `si_code` and `si_status` to the status pipe, as eight little-endian bytes.
fn report_program_exit(keeper: &Keeper, code: i32, status: i32) {
    let [a, b, c, d] = code.to_le_bytes();
    let [e, f, g, h] = status.to_le_bytes();
    // If the supervisor is gone, the write fails without harm, because SIGPIPE is blocked.
    let _ = rustix::io::write(&keeper.status, &[a, b, c, d, e, f, g, h]);
}

fn kill_tree(keeper: &mut Keeper) {
    match &keeper.role {
        KeeperRole::Init => {
            exit_child(1);
        }
        KeeperRole::BesideCgroup { kill, .. } => _ = rustix::io::write(kill, b"1"),
        KeeperRole::Subreaper => {}
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    keeper.scan.signal_descendants(&keeper.proc, own, || true, &[Signal::KILL]);
}
