//! From a fresh fork to the ordered program: prepared by the parent, carried out by the child.

use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use rustix::thread::{Gid, Uid};

use super::confine::Confinement;
use super::fork::{Birth, ChildStack, Forked, fork, fork_to_execute, leave};
use super::last_error;
use super::signals::IgnoredSignals;
use crate::order::{Grouping, Identity};

/// Exit code of a child that never became the program; shells use the same.
const NEVER_STARTED: i32 = 127;

/// A step on the way to the program, so that a failure can name it.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    UserNamespace,
    Grouping,
    Stdio,
    Limits,
    Mounts,
    Identity,
    Directory,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    Descriptors,
    Keeper,
    Execute,
}

impl Step {
    const ALL: [Self; 13] = [
        Self::UserNamespace,
        Self::Grouping,
        Self::Stdio,
        Self::Limits,
        Self::Mounts,
        Self::Identity,
        Self::Directory,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Descriptors,
        Self::Keeper,
        Self::Execute,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == byte)
    }

    /// For the sentence "could not …".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::UserNamespace => "enter a user namespace",
            Self::Grouping => "start a process group of its own",
            Self::Stdio => "connect standard input and output",
            Self::Limits => "set the resource limits",
            Self::Mounts => "make the file system read-only",
            Self::Identity => "become the ordered user",
            Self::Directory => "enter the working directory",
            Self::NoNewPrivileges => "give up new privileges",
            Self::Landlock => "restrict file access with Landlock",
            Self::Seccomp => "restrict system calls with seccomp",
            Self::Descriptors => "close the descriptors of the parent",
            Self::Keeper => "start the keeper of the process tree",
            Self::Execute => "execute the program",
        }
    }
}

/// A step that failed, with the kernel's reason.
pub(crate) type Failure = (Step, Errno);

/// The texts that map the only identity we may map, our own, into a user namespace.
pub(crate) struct IdentityMaps {
    pub(crate) users: Vec<u8>,
    pub(crate) groups: Vec<u8>,
}

/// Everything the child needs, in memory that exists before the fork.
pub(crate) struct Program {
    pub(crate) path: CString,
    pub(crate) argv: CStringArray,
    pub(crate) env: CStringArray,
    pub(crate) directory: CString,
    pub(crate) grouping: Grouping,
    pub(crate) identity: Option<Identity>,
    pub(crate) limits: Vec<(Resource, Rlimit)>,
    pub(crate) umask: Mode,
    /// Standard input, output, error; none of them is below 3.
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) identity_maps: Option<IdentityMaps>,
    /// Write end of the pipe that carries a [`Failure`], and closes by itself at `execve`.
    pub(crate) failure: OwnedFd,
    pub(crate) stack: ChildStack,
    pub(crate) ignored_signals: IgnoredSignals,
}

/// `argv` or `envp`: strings and the null-terminated array of pointers to them.
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

/// Makes a program without a keeper.
pub(crate) fn spawn(
    birth: Birth<'_>,
    program: &Program,
    confinement: Option<&Confinement>,
) -> Result<Forked, Errno> {
    fork_program(birth, program, confinement, begin)
}

/// Makes the program of a keeper, who has mapped its identity already.
pub(crate) fn spawn_leader(program: &Program, confinement: Option<&Confinement>) -> Result<Forked, Errno> {
    fork_program(Birth::default(), program, confinement, become_program)
}

fn fork_program(
    birth: Birth<'_>,
    program: &Program,
    confinement: Option<&Confinement>,
    life: fn(&Program, Option<&Confinement>) -> Infallible,
) -> Result<Forked, Errno> {
    let life = || life(program, confinement);
    // A change of identity, or of what a namespace means, would reach the memory we share.
    let may_share = program.identity.is_none() && birth.namespaces == 0 && confinement.is_none();
    // SAFETY: on its way to the program the child only makes system calls on what it was given.
    unsafe { if may_share { fork_to_execute(birth, &program.stack, life) } else { fork(birth, life) } }
}

fn begin(program: &Program, confinement: Option<&Confinement>) -> Infallible {
    match program.identity_maps.as_ref().map_or(Ok(()), map_identity) {
        Ok(()) => become_program(program, confinement),
        Err(errno) => report_failure(program, Step::UserNamespace, errno),
    }
}

/// Turns this child into the program, or tells the parent why not.
fn become_program(program: &Program, confinement: Option<&Confinement>) -> Infallible {
    let Err((step, errno)) = try_to_become(program, confinement);
    report_failure(program, step, errno)
}

/// Tells the parent which step failed, and ends.
pub(crate) fn report_failure(program: &Program, step: Step, errno: Errno) -> Infallible {
    let [a, b, c, d] = errno.raw_os_error().to_le_bytes();
    // Nothing can be done about a parent that no longer listens.
    let _ = rustix::io::write(&program.failure, &[step as u8, a, b, c, d]);
    leave(NEVER_STARTED)
}

/// Reads what [`report_failure`] wrote; `None` when the pipe closed because the program runs.
pub(crate) fn read_failure(pipe: BorrowedFd<'_>) -> Result<Option<Failure>, Errno> {
    let mut message = [0_u8; 5];
    let length = loop {
        match rustix::io::read(pipe, &mut message) {
            Err(Errno::INTR) => {}
            result => break result?,
        }
    };
    let [step, a, b, c, d] = message;
    if length < message.len() {
        return Ok(None);
    }
    // What the child wrote is an error number; anything else would be our own mistake.
    let number = i32::from_le_bytes([a, b, c, d]);
    let errno = if (1..4096).contains(&number) { Errno::from_raw_os_error(number) } else { Errno::IO };
    Ok(Some((Step::from_byte(step).unwrap_or(Step::Execute), errno)))
}

fn try_to_become(program: &Program, confinement: Option<&Confinement>) -> Result<Infallible, Failure> {
    match program.grouping {
        Grouping::Group => rustix::process::setpgid(None, None).map_err(|e| (Step::Grouping, e))?,
        Grouping::Session => _ = rustix::process::setsid().map_err(|e| (Step::Grouping, e))?,
    }
    connect_stdio(&program.stdio).map_err(|e| (Step::Stdio, e))?;
    for (resource, limit) in &program.limits {
        rustix::process::setrlimit(*resource, *limit).map_err(|e| (Step::Limits, e))?;
    }
    rustix::process::umask(program.umask);
    if let Some(confinement) = confinement {
        confinement.enter_mounts().map_err(|e| (Step::Mounts, e))?;
    }
    if let Some(identity) = &program.identity {
        assume(identity).map_err(|e| (Step::Identity, e))?;
    }
    rustix::process::chdir(program.directory.as_c_str()).map_err(|e| (Step::Directory, e))?;
    rustix::thread::set_no_new_privs(true).map_err(|e| (Step::NoNewPrivileges, e))?;
    close_descriptors_on_exec().map_err(|e| (Step::Descriptors, e))?;
    program.ignored_signals.reset();
    if let Some(confinement) = confinement {
        confinement.enter()?;
    }
    // SAFETY: all three are null-terminated and live until the image is replaced.
    unsafe {
        libc::execve(program.path.as_ptr(), program.argv.pointers.as_ptr(), program.env.pointers.as_ptr());
    }
    Err((Step::Execute, last_error()))
}

/// In a new user namespace: maps our own user and group onto themselves.
pub(crate) fn map_identity(maps: &IdentityMaps) -> Result<(), Errno> {
    write_file(c"/proc/self/setgroups", b"deny")?;
    write_file(c"/proc/self/uid_map", &maps.users)?;
    write_file(c"/proc/self/gid_map", &maps.groups)
}

/// Makes a child in new namespaces that leaves at once: with 0 if it could map its identity.
pub(crate) fn try_namespaces(namespaces: u64, maps: Option<&IdentityMaps>) -> Result<Forked, Errno> {
    try_in_namespaces(namespaces, maps, || Ok(()))
}

/// The same, but it tries something there before it leaves: with 0, or with the number of the error.
/// The attempt runs in a copy of this process and may only make system calls.
pub(crate) fn try_in_namespaces(
    namespaces: u64,
    maps: Option<&IdentityMaps>,
    attempt: impl FnOnce() -> Result<(), Errno>,
) -> Result<Forked, Errno> {
    // SAFETY: the child makes three writes and the system calls of the attempt, and leaves.
    unsafe {
        fork(Birth { namespaces, cgroup: None }, || {
            let result = maps.map_or(Ok(()), map_identity).and_then(|()| attempt());
            leave(result.map_or_else(Errno::raw_os_error, |()| 0))
        })
    }
}

fn write_file(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(drop)
}

/// Puts the three descriptors where a program expects them.
pub(crate) fn connect_stdio(stdio: &[OwnedFd; 3]) -> Result<(), Errno> {
    for (target, source) in stdio.iter().enumerate() {
        // SAFETY: dup2 takes two numbers; in this child the targets 0, 1, 2 belong to nobody else.
        if unsafe { libc::dup2(source.as_raw_fd(), RawFd::try_from(target).unwrap_or(RawFd::MAX)) } < 0 {
            return Err(last_error());
        }
    }
    Ok(())
}

/// Groups first, user last: afterwards there is no right left to change them.
fn assume(identity: &Identity) -> Result<(), Errno> {
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    rustix::thread::set_thread_groups(&identity.kernel_groups)?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)
}

fn close_descriptors_on_exec() -> Result<(), Errno> {
    close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes every descriptor except those named, which need not be in order.
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
    // SAFETY: in this child no other code uses the descriptors it inherited.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}
