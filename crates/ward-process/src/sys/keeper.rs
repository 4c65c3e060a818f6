//! The keeper: a small process that every orphan of the tree falls back to.
//!
//! It forks the program, reaps whatever ends, tells how the program itself ended, and leaves when it
//! has no child left; so its pidfd becomes readable exactly when the tree is empty. In a PID namespace
//! it is init, whose death the rest does not survive; elsewhere it is a child subreaper.
//!
//! It never executes another image and never allocates, keeps the supervisor's identity, and can't be
//! traced by what it keeps.

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

/// What the keeper is, and so how it ends its tree when the supervisor has gone.
pub(crate) enum KeeperRole {
    /// Init of a PID namespace.
    Init,
    /// Child subreaper that walks its descendants.
    Subreaper,
    /// Child subreaper outside of the tree's cgroup, whose kill it survives to hold those who left it.
    BesideCgroup {
        /// The program is born there.
        directory: OwnedFd,
        /// Its `cgroup.kill`.
        kill: OwnedFd,
    },
}

/// Everything the keeper needs, made before the fork.
pub(crate) struct Keeper {
    pub(crate) role: KeeperRole,
    /// Where to wait before the program is made.
    pub(crate) barrier: Option<BarrierWaiter>,
    /// Where the program waits until we have let go of its streams and of the pipe that tells of its
    /// start. One that may stop us could otherwise keep the supervisor waiting.
    pub(crate) program_barrier: Option<StartBarrier>,
    pub(crate) program: PreparedProgram,
    /// How the program ended is written here, for whoever still listens.
    pub(crate) status: OwnedFd,
    /// Its other end is held by the supervisor; end of file means that the supervisor has gone.
    pub(crate) liveness_pipe: Option<OwnedFd>,
    pub(crate) proc: Arc<ProcRoot>,
    pub(crate) sweep: DescendantScan,
    pub(crate) null: [OwnedFd; 3],
}

/// The name in `/proc/PID/comm`, for people. Any program can have the same: nothing relies on it.
const NAME: &std::ffi::CStr = c"ward-keeper";

/// Between two strikes at members that have outlived the supervisor.
const KILL_RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Makes a keeper, which makes the program.
pub(crate) fn spawn(
    birth: ForkOptions<'_>,
    keeper: Keeper,
    confinement: Option<&Confinement>,
) -> Result<ForkedChild, Errno> {
    // SAFETY: a keeper only makes system calls on what it was given.
    unsafe { fork(birth, || run_keeper(keeper, confinement)) }
}

fn run_keeper(mut keeper: Keeper, confinement: Option<&Confinement>) -> Infallible {
    let signals = match prepare_keeper(&keeper) {
        Ok(signals) => signals,
        Err(errno) => return child::report_failure(&keeper.program, StartStep::Keeper, errno),
    };
    if keeper.barrier.is_some_and(|gate| !gate.wait_for_release()) {
        return exit_child(1);
    }
    let program = &keeper.program;
    let birth = match &keeper.role {
        KeeperRole::BesideCgroup { directory, .. } => {
            ForkOptions { cgroup: Some(directory.as_fd()), ..ForkOptions::default() }
        }
        KeeperRole::Init | KeeperRole::Subreaper => ForkOptions::default(),
    };
    let leader = match child::spawn_leader(birth, program, confinement) {
        Ok(forked) => forked,
        Err(errno) => return child::report_failure(program, StartStep::Keeper, errno),
    };
    let retired = release_inherited(&keeper, signals.as_fd());
    if retired.and_then(|()| keeper.program_barrier.take().map_or(Ok(()), StartBarrier::release)).is_err() {
        return exit_child(1);
    }
    supervise_tree(&mut keeper, signals.as_fd(), leader.pid.as_raw_nonzero().get())
}

/// Before the program is forked: reap orphans, be nobody's debugging target, hear signals.
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

/// Inside a PID namespace `/proc` should speak of it. Where a container forbids that, programs see
/// the outer numbers, which hurts nobody but the curious.
fn mount_own_proc() {
    let private = rustix::mount::MountPropagationFlags::REC | rustix::mount::MountPropagationFlags::PRIVATE;
    if rustix::mount::mount_change(c"/", private).is_ok() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let _ = rustix::mount::mount(c"proc", c"/proc", c"proc", flags, None);
    }
}

/// Signals are blocked since the fork, so that they queue up here even for an init.
fn open_signalfd() -> Result<OwnedFd, Errno> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is live memory of the right type; signalfd only reads it.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// After the fork: hold on to nothing of the program's or the supervisor's.
fn release_inherited(keeper: &Keeper, signals: BorrowedFd<'_>) -> Result<(), Errno> {
    child::connect_stdio(&keeper.null)?;
    let _ = rustix::process::chdir(c"/");
    let kill = if let KeeperRole::BesideCgroup { kill, .. } = &keeper.role { kill.as_raw_fd() } else { -1 };
    let life = keeper.liveness_pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    let [reader, writer] = keeper.program_barrier.as_ref().map_or([-1; 2], StartBarrier::descriptors);
    child::close_all_but(&mut [
        reader,
        writer,
        signals.as_raw_fd(),
        keeper.status.as_raw_fd(),
        keeper.proc.as_ref().as_fd().as_raw_fd(),
        kill,
        life,
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

/// Waits for a signal or the end of the supervisor. Returns whether the supervisor has gone.
fn wait_for_event(keeper: &Keeper, signals: BorrowedFd<'_>, supervisor_gone: bool) -> bool {
    let signals = PollFd::from_borrowed_fd(signals, PollFlags::IN);
    // Interrupted or not, the caller looks for itself.
    match &keeper.liveness_pipe {
        Some(life) if !supervisor_gone => {
            let mut waiting = [signals, PollFd::new(life, PollFlags::IN)];
            let _ = rustix::event::poll(&mut waiting, None);
            waiting.get(1).is_some_and(|life| !life.revents().is_empty())
        }
        life => {
            // The end of file stays readable: waiting for it again would be no waiting.
            let timeout = life.as_ref().map(|_| &KILL_RETRY);
            let _ = rustix::event::poll(&mut [signals], timeout);
            supervisor_gone
        }
    }
}

/// Empties the queue. Returns whether the supervisor asked for a polite end.
fn drain_signals(signals: BorrowedFd<'_>) -> bool {
    let mut asked = false;
    let mut information = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(signals, &mut information).is_ok_and(|length| length == information.len()) {
        let [a, b, c, d, ..] = information;
        asked |= u32::from_ne_bytes([a, b, c, d]) == libc::SIGTERM.cast_unsigned();
    }
    asked
}

fn signal_namespace() {
    for signal in [libc::SIGTERM, libc::SIGCONT] {
        // SAFETY: kill takes two numbers; -1 is everyone in this namespace but its init.
        unsafe { libc::kill(-1, signal) };
    }
}

/// Reaps what has ended; true when no child is left.
fn reap_all(keeper: &Keeper, leader: i32) -> bool {
    loop {
        let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the structure is live, writable, and valid when all zero.
        let (result, information) = unsafe {
            let flags = libc::WEXITED | libc::WNOHANG;
            let result = libc::waitid(libc::P_ALL, 0, information.as_mut_ptr(), flags);
            (result, information.assume_init())
        };
        if result < 0 {
            return last_error() == Errno::CHILD;
        }
        // SAFETY: waitid filled these members, or left them zero.
        let (pid, status) = unsafe { (information.si_pid(), information.si_status()) };
        if pid == 0 {
            return false;
        }
        if pid == leader {
            report_program_exit(keeper, information.si_code, status);
        }
    }
}

/// Eight bytes, little-endian: `si_code` and `si_status`.
fn report_program_exit(keeper: &Keeper, code: i32, status: i32) {
    let [a, b, c, d] = code.to_le_bytes();
    let [e, f, g, h] = status.to_le_bytes();
    // SIGPIPE is blocked; a supervisor that has gone asks nobody.
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
    keeper.sweep.signal_descendants(&keeper.proc, own, || true, &[Signal::KILL]);
}
