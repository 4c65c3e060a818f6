//! `clone3` used as a fork that also returns a pidfd and can be born in a cgroup or in namespaces.

use std::cell::UnsafeCell;
use std::convert::Infallible;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::last_error;
use rustix::io::Errno;
use rustix::process::Pid;

/// A child that was just made.
pub(crate) struct ForkedChild {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// What the child is born into, besides a copy of this process.
#[derive(Clone, Copy, Default)]
pub(crate) struct ForkOptions<'fd> {
    /// `CLONE_NEW…` flags.
    pub(crate) namespaces: u64,
    /// Directory of the cgroup it is in from its first instruction.
    pub(crate) cgroup: Option<BorrowedFd<'fd>>,
}

/// Makes a child that runs `life` with every signal blocked.
///
/// # Safety
/// `life` runs in a copy of a possibly threaded process: it may only make system calls and use what
/// was prepared before. No allocation, no lock, no panic, no use of thread-local destructors.
pub(crate) unsafe fn fork(
    birth: ForkOptions<'_>,
    life: impl FnOnce() -> Infallible,
) -> Result<ForkedChild, Errno> {
    let mut pidfd: RawFd = -1;
    let mut arguments = CloneArguments::new(birth, &mut pidfd);
    let before = block_every_signal();
    // SAFETY: the structure is what clone3 expects, outlives the call, and without CLONE_VM the child
    // has its own copy of this stack.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<CloneArguments>()) };
    if result == 0 {
        life();
    }
    let error = last_error();
    restore_signals(&before);
    // SAFETY: on success the kernel has just put a new descriptor there, and it is nobody else's.
    unsafe { forked_child(result, pidfd) }.ok_or(error)
}

/// Where a child runs that borrows our memory. Made before it is needed, since the one who needs it
/// may be a keeper, who may not allocate.
pub(crate) struct ChildStack(Box<[UnsafeCell<u128>]>);

impl ChildStack {
    pub(crate) fn new() -> Self {
        /// A few frames of our own, unoptimised.
        const BYTES: usize = 32 * 1024;
        // SAFETY: all zero is a valid value of an integer in a cell.
        Self(unsafe { Box::new_zeroed_slice(BYTES / size_of::<u128>()).assume_init() })
    }
}

/// The same for a child that soon executes another image: until then it borrows our memory and we
/// wait, so that nothing has to be copied. As `posix_spawn` does, and about four times as fast as a
/// copy.
///
/// # Safety
/// As [`fork_program`], and `life` must not change what this process goes on to use, nor the identity of the
/// child, which would reach our memory's own protection.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn fork_to_execute<F: FnOnce() -> Infallible>(
    birth: ForkOptions<'_>,
    stack: &ChildStack,
    life: F,
) -> Result<ForkedChild, Errno> {
    extern "C" fn enter<F: FnOnce() -> Infallible>(life: *mut Option<F>) -> Infallible {
        // SAFETY: the parent waits and holds the closure for us.
        let life = unsafe { (*life).take() };
        life.map_or_else(|| exit_child(1), |life| life())
    }
    let mut pidfd: RawFd = -1;
    let mut arguments = CloneArguments::new(birth, &mut pidfd);
    arguments.flags |= u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned());
    arguments.stack = stack.0.as_ptr().addr() as u64;
    arguments.stack_size = size_of_val(&*stack.0) as u64;
    let mut life = Some(life);
    let before = block_every_signal();
    let result: i64;
    // SAFETY: clone3 gets a valid structure and a stack of its own for the child, aligned to 16 bytes
    // and made of cells, that lives until the child has left our memory, because CLONE_VFORK makes us
    // wait for that. The child calls `enter`, which never returns, and touches no frame of ours.
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
            in("r13") &raw mut life,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    restore_signals(&before);
    let error = i32::try_from(-result).ok().filter(|number| (1..4096).contains(number));
    let error = error.map_or(Errno::IO, Errno::from_raw_os_error);
    // SAFETY: on success the kernel has just put a new descriptor there, and it is nobody else's.
    unsafe { forked_child(result, pidfd) }.ok_or(error)
}

/// Where nobody has written the few instructions that it takes, the child is a copy.
///
/// # Safety
/// As [`fork_program`].
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn fork_to_execute<F: FnOnce() -> Infallible>(
    birth: ForkOptions<'_>,
    _stack: &ChildStack,
    life: F,
) -> Result<ForkedChild, Errno> {
    // SAFETY: the caller's promise is passed on.
    unsafe { fork(birth, life) }
}

/// # Safety
/// If `result` is a process id, `pidfd` is a descriptor that nobody else owns.
unsafe fn forked_child(result: i64, pidfd: RawFd) -> Option<ForkedChild> {
    let pid = i32::try_from(result).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    // SAFETY: the caller's promise.
    Some(ForkedChild { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// The structure of `clone3(2)`, to the version that knows cgroups.
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
    fn new(birth: ForkOptions<'_>, pidfd: &mut RawFd) -> Self {
        let mut arguments = Self {
            flags: birth.namespaces | u64::from(libc::CLONE_PIDFD.cast_unsigned()) | CLONE_CLEAR_SIGHAND,
            pidfd: std::ptr::from_mut(pidfd).addr() as u64,
            exit_signal: libc::SIGCHLD.cast_unsigned().into(),
            ..Self::default()
        };
        if let Some(cgroup) = birth.cgroup {
            arguments.flags |= CLONE_INTO_CGROUP;
            arguments.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
        }
        arguments
    }
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Every handler of ours becomes the default action in the child: it would find only half of a
/// process there, or write into memory that is still ours.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Until the child is out of reach of what is meant for us, for example by being in another group.
fn block_every_signal() -> libc::sigset_t {
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are live, writable memory of the right type; a zeroed sigset_t is valid.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set is one that the kernel gave us.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Ends this child at once, without running anything that belongs to the parent.
pub(crate) fn exit_child(code: i32) -> Infallible {
    loop {
        // SAFETY: exit_group takes no memory.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}
