//! Forks with `clone3(2)`, which returns a pidfd and can create the child directly in a cgroup and in
//! namespaces.

use std::cell::UnsafeCell;
use std::convert::Infallible;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::last_error;
use rustix::io::Errno;
use rustix::process::Pid;

/// A child that was just forked.
pub(crate) struct ForkedChild {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// The cgroup and the namespaces in which a child is created.
#[derive(Clone, Copy, Default)]
pub(crate) struct ForkOptions<'fd> {
    /// `CLONE_NEW…` flags for `clone3`.
    pub(crate) namespaces: u64,
    /// Directory of the cgroup that the child is in from its first instruction.
    pub(crate) cgroup: Option<BorrowedFd<'fd>>,
}

/// Forks a child that runs `child_main` with all signals blocked.
///
/// # Safety
/// `child_main` runs in a copy of a possibly multi-threaded process. It may only make system calls and use
/// data that was prepared before: no allocation, no lock, no panic, no thread-local destructors.
pub(crate) unsafe fn fork(
    options: ForkOptions<'_>,
    child_main: impl FnOnce() -> Infallible,
) -> Result<ForkedChild, Errno> {
    let mut pidfd: RawFd = -1;
    let mut arguments = CloneArguments::new(options, &mut pidfd);
    let before = block_every_signal();
    // SAFETY: the structure has the layout that clone3 expects and outlives the call. Without CLONE_VM the
    // child has its own copy of this stack.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<CloneArguments>()) };
    if result == 0 {
        child_main();
    }
    let error = last_error();
    restore_signals(&before);
    // SAFETY: on success the kernel has stored a new descriptor in `pidfd`, which no other code owns.
    unsafe { forked_child(result, pidfd) }.ok_or(error)
}

/// The stack of a child that shares our memory. It is allocated beforehand, because the process that forks
/// may be a keeper, which must not allocate.
pub(crate) struct ChildStack(Box<[UnsafeCell<u128>]>);

impl ChildStack {
    pub(crate) fn new() -> Self {
        /// Enough for the few frames until `execve`, even without optimisation.
        const BYTES: usize = 32 * 1024;
        // SAFETY: all zeros is a valid value of an integer in a cell.
        Self(unsafe { Box::new_zeroed_slice(BYTES / size_of::<u128>()).assume_init() })
    }
}

/// Forks a child that soon calls `execve`. Until then the child shares our memory and this thread waits
/// (`CLONE_VM | CLONE_VFORK`), so nothing has to be copied. `posix_spawn(3)` does the same; it is about four
/// times as fast as a copying fork.
///
/// # Safety
/// The conditions of [`fork`] apply. In addition `child_main` must not change data that this process uses
/// afterwards, nor the identity of the child, which would affect the protection of the shared memory.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn fork_to_execute<F: FnOnce() -> Infallible>(
    options: ForkOptions<'_>,
    stack: &ChildStack,
    child_main: F,
) -> Result<ForkedChild, Errno> {
    extern "C" fn enter<F: FnOnce() -> Infallible>(child_main: *mut Option<F>) -> Infallible {
        // SAFETY: the parent waits and keeps the closure alive for the child.
        let child_main = unsafe { (*child_main).take() };
        child_main.map_or_else(|| exit_child(1), |child_main| child_main())
    }
    let mut pidfd: RawFd = -1;
    let mut arguments = CloneArguments::new(options, &mut pidfd);
    arguments.flags |= u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned());
    arguments.stack = stack.0.as_ptr().addr() as u64;
    arguments.stack_size = size_of_val(&*stack.0) as u64;
    let mut child_main = Some(child_main);
    let before = block_every_signal();
    let result: i64;
    // SAFETY: clone3 gets a valid structure and a separate stack for the child. The stack is aligned to 16
    // bytes, is made of cells, and lives until the child has left our memory, because CLONE_VFORK makes this
    // thread wait for that. The child calls `enter`, which never returns, and touches none of our stack
    // frames.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw mut arguments,
            in("rsi") size_of::<CloneArguments>(),
            in("r12") enter::<F> as *const (),
            in("r13") &raw mut child_main,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    restore_signals(&before);
    let error = i32::try_from(-result).ok().filter(|number| (1..4096).contains(number));
    let error = error.map_or(Errno::IO, Errno::from_raw_os_error);
    // SAFETY: on success the kernel has stored a new descriptor in `pidfd`, which no other code owns.
    unsafe { forked_child(result, pidfd) }.ok_or(error)
}

/// Forks a copying child, because the assembly for sharing memory exists only for x86-64.
///
/// # Safety
/// The conditions of [`fork`] apply.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn fork_to_execute<F: FnOnce() -> Infallible>(
    options: ForkOptions<'_>,
    _stack: &ChildStack,
    child_main: F,
) -> Result<ForkedChild, Errno> {
    // SAFETY: the caller guarantees the conditions of `fork`.
    unsafe { fork(options, child_main) }
}

/// Converts the result of `clone3` in the parent.
///
/// # Safety
/// If `result` is a process id, `pidfd` must be a descriptor that no other code owns.
unsafe fn forked_child(result: i64, pidfd: RawFd) -> Option<ForkedChild> {
    let pid = i32::try_from(result).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    // SAFETY: the caller guarantees that no other code owns the descriptor.
    Some(ForkedChild { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// The kernel's `struct clone_args` up to the version with `cgroup` (Linux 5.7).
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl CloneArguments {
    fn new(options: ForkOptions<'_>, pidfd: &mut RawFd) -> Self {
        let mut arguments = Self {
            flags: options.namespaces | u64::from(libc::CLONE_PIDFD.cast_unsigned()) | CLONE_CLEAR_SIGHAND,
            pidfd: std::ptr::from_mut(pidfd).addr() as u64,
            exit_signal: libc::SIGCHLD.cast_unsigned().into(),
            ..Self::default()
        };
        if let Some(cgroup) = options.cgroup {
            arguments.flags |= CLONE_INTO_CGROUP;
            arguments.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
        }
        arguments
    }
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Resets every signal handler to the default action in the child. One of our handlers would find only one
/// thread of the process there, or would write into memory that is shared with us.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Blocks all signals and returns the previous mask. The child starts with them blocked, so that a signal
/// meant for us, such as Ctrl-C for our process group, can't hit it before it has a process group of its own.
fn block_every_signal() -> libc::sigset_t {
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are live, writable memory of the right type, and a zeroed sigset_t is valid.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set was filled in by `pthread_sigmask`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Ends this child at once, without running exit handlers that belong to the parent.
pub(crate) fn exit_child(code: i32) -> Infallible {
    loop {
        // SAFETY: exit_group accesses no memory.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}
