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

use super::child::{self, Program, Step};
use super::confine::Confinement;
use super::fork::{Birth, Forked, fork, leave};
use super::gate::{Gate, Waiting};
use super::last_error;
use super::procfs::ProcRoot;
use super::sweep::Sweep;

/// What the keeper is, and so how it ends its tree when the supervisor has gone.
pub(crate) enum Role {
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
    pub(crate) role: Role,
    /// Where to wait before the program is made.
    pub(crate) gate: Option<Waiting>,
    /// Where the program waits until we have let go of its streams and of the pipe that tells of its
    /// start. One that may stop us could otherwise keep the supervisor waiting.
    pub(crate) retired: Option<Gate>,
    pub(crate) program: Program,
    /// How the program ended is written here, for whoever still listens.
    pub(crate) status: OwnedFd,
    /// Its other end is held by the supervisor; end of file means that the supervisor has gone.
    pub(crate) life: Option<OwnedFd>,
    pub(crate) proc: Arc<ProcRoot>,
    pub(crate) sweep: Sweep,
    pub(crate) null: [OwnedFd; 3],
}

/// The name in `/proc/PID/comm`, for people. Any program can have the same: nothing relies on it.
const NAME: &std::ffi::CStr = c"ward-keeper";

/// Between two strikes at members that have outlived the supervisor.
const STRIKE_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Makes a keeper, which makes the program.
pub(crate) fn spawn(
    birth: Birth<'_>,
    keeper: Keeper,
    confinement: Option<&Confinement>,
) -> Result<Forked, Errno> {
    // SAFETY: a keeper only makes system calls on what it was given.
    unsafe { fork(birth, || keep(keeper, confinement)) }
}

fn keep(mut keeper: Keeper, confinement: Option<&Confinement>) -> Infallible {
    let signals = match settle(&keeper) {
        Ok(signals) => signals,
        Err(errno) => return child::report_failure(&keeper.program, Step::Keeper, errno),
    };
    if keeper.gate.is_some_and(|gate| !gate.pass()) {
        return leave(1);
    }
    let program = &keeper.program;
    let birth = match &keeper.role {
        Role::BesideCgroup { directory, .. } => Birth { cgroup: Some(directory.as_fd()), ..Birth::default() },
        Role::Init | Role::Subreaper => Birth::default(),
    };
    let leader = match child::spawn_leader(birth, program, confinement) {
        Ok(forked) => forked,
        Err(errno) => return child::report_failure(program, Step::Keeper, errno),
    };
    let retired = retire(&keeper, signals.as_fd());
    if retired.and_then(|()| keeper.retired.take().map_or(Ok(()), Gate::open)).is_err() {
        return leave(1);
    }
    watch(&mut keeper, signals.as_fd(), leader.pid.as_raw_nonzero().get())
}

/// Before the program is forked: reap orphans, be nobody's debugging target, hear signals.
fn settle(keeper: &Keeper) -> Result<OwnedFd, Errno> {
    if let Some(maps) = &keeper.program.identity_maps {
        child::map_identity(maps)?;
    }
    rustix::thread::set_name(NAME)?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    match keeper.role {
        Role::Init => mount_own_proc(),
        Role::Subreaper | Role::BesideCgroup { .. } => {
            rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
        }
    }
    hear_signals()
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
fn hear_signals() -> Result<OwnedFd, Errno> {
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
fn retire(keeper: &Keeper, signals: BorrowedFd<'_>) -> Result<(), Errno> {
    child::connect_stdio(&keeper.null)?;
    let _ = rustix::process::chdir(c"/");
    let kill = if let Role::BesideCgroup { kill, .. } = &keeper.role { kill.as_raw_fd() } else { -1 };
    let life = keeper.life.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    let [reader, writer] = keeper.retired.as_ref().map_or([-1; 2], Gate::descriptors);
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

fn watch(keeper: &mut Keeper, signals: BorrowedFd<'_>, leader: i32) -> Infallible {
    let mut supervisor_gone = false;
    loop {
        supervisor_gone = await_news(keeper, signals, supervisor_gone);
        if take_signals(signals) && matches!(keeper.role, Role::Init) {
            pass_on_to_namespace();
        }
        if reap_all(keeper, leader) {
            return leave(0);
        }
        if supervisor_gone {
            end_tree(keeper);
        }
    }
}

/// Waits for a signal or the end of the supervisor. Returns whether the supervisor has gone.
fn await_news(keeper: &Keeper, signals: BorrowedFd<'_>, supervisor_gone: bool) -> bool {
    let signals = PollFd::from_borrowed_fd(signals, PollFlags::IN);
    // Interrupted or not, the caller looks for itself.
    match &keeper.life {
        Some(life) if !supervisor_gone => {
            let mut waiting = [signals, PollFd::new(life, PollFlags::IN)];
            let _ = rustix::event::poll(&mut waiting, None);
            waiting.get(1).is_some_and(|life| !life.revents().is_empty())
        }
        life => {
            // The end of file stays readable: waiting for it again would be no waiting.
            let timeout = life.as_ref().map(|_| &STRIKE_AGAIN);
            let _ = rustix::event::poll(&mut [signals], timeout);
            supervisor_gone
        }
    }
}

/// Empties the queue. Returns whether the supervisor asked for a polite end.
fn take_signals(signals: BorrowedFd<'_>) -> bool {
    let mut asked = false;
    let mut information = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(signals, &mut information).is_ok_and(|length| length == information.len()) {
        let [a, b, c, d, ..] = information;
        asked |= u32::from_ne_bytes([a, b, c, d]) == libc::SIGTERM.cast_unsigned();
    }
    asked
}

fn pass_on_to_namespace() {
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
            tell(keeper, information.si_code, status);
        }
    }
}

/// Eight bytes, little-endian: `si_code` and `si_status`.
fn tell(keeper: &Keeper, code: i32, status: i32) {
    let [a, b, c, d] = code.to_le_bytes();
    let [e, f, g, h] = status.to_le_bytes();
    // SIGPIPE is blocked; a supervisor that has gone asks nobody.
    let _ = rustix::io::write(&keeper.status, &[a, b, c, d, e, f, g, h]);
}

fn end_tree(keeper: &mut Keeper) {
    match &keeper.role {
        Role::Init => {
            leave(1);
        }
        Role::BesideCgroup { kill, .. } => _ = rustix::io::write(kill, b"1"),
        Role::Subreaper => {}
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    keeper.sweep.signal_descendants(&keeper.proc, own, || true, &[Signal::KILL]);
}
