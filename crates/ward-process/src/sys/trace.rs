//! Traces the processes of a tree with `ptrace(2)` and stops each of them where it executes a program.
//!
//! At `PTRACE_EVENT_EXEC` the new image exists, belongs to one thread only, and has not run an instruction. Its
//! arguments and its environment can't change any more, so a check at this point has no race.

use rustix::io::Errno;

use super::last_error;

/// The events that the tracer asks for. `EXITKILL` kills the tracees when the tracing thread ends, for whatever reason.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_EXITKILL;

/// A change of state of a tracee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceeEvent {
    /// The process or thread has ended and was reaped.
    Ended,
    /// A new process or thread was created, with this id. The creator is stopped.
    Created(i32),
    /// The process has executed a program and is stopped. The number is the id of the thread that called `execve`,
    /// which now has the id of the process.
    Executed(i32),
    /// A new tracee has stopped for the first time, or a stopped process was continued.
    Paused,
    /// All threads of the process were stopped by a signal such as `SIGSTOP`.
    GroupStopped,
    /// A signal is about to be delivered.
    Signal(libc::c_int),
}

/// Starts to trace a process from the calling thread, which must make all later calls too. The process isn't stopped.
pub(crate) fn seize(pid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_SEIZE, pid, OPTIONS)
}

/// Lets a stopped tracee run and delivers a signal to it; 0 delivers none. Fails if the tracee was killed meanwhile.
pub(crate) fn resume(pid: i32, signal: libc::c_int) -> Result<(), Errno> {
    request(libc::PTRACE_CONT, pid, signal)
}

/// Leaves a tracee in its group-stop, from which `SIGCONT` wakes it.
pub(crate) fn keep_stopped(pid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_LISTEN, pid, 0)
}

/// Kills a tracee. Its id can't be reused before this thread has reaped it.
pub(crate) fn kill(pid: i32) {
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// The answer to the question for the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextEvent {
    /// An event of the process or thread with this id.
    Of(i32, TraceeEvent),
    /// No event has happened yet.
    NotYet,
    /// No tracee is left.
    NeverAgain,
}

/// The behaviour while there is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventWait {
    Block,
    ReturnAtOnce,
}

/// Returns the next event of any tracee of this thread.
///
/// Only tracees and children of the calling thread are waited for, so the exits of other trees are left alone.
pub(crate) fn next_event(wait: EventWait) -> NextEvent {
    let flags = libc::__WALL | libc::__WNOTHREAD;
    let flags = if wait == EventWait::ReturnAtOnce { flags | libc::WNOHANG } else { flags };
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one integer to `status`.
        match unsafe { libc::waitpid(-1, &raw mut status, flags) } {
            0 => return NextEvent::NotYet,
            pid if pid > 0 => return NextEvent::Of(pid, decode_status(pid, status)),
            _ if last_error() == Errno::INTR => {}
            _ => return NextEvent::NeverAgain,
        }
    }
}

fn decode_status(pid: i32, status: libc::c_int) -> TraceeEvent {
    if !libc::WIFSTOPPED(status) {
        return TraceeEvent::Ended;
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 => TraceeEvent::Signal(signal),
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            event_message(pid).map_or(TraceeEvent::Paused, TraceeEvent::Created)
        }
        libc::PTRACE_EVENT_EXEC => TraceeEvent::Executed(event_message(pid).unwrap_or(pid)),
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => TraceeEvent::GroupStopped,
        _ => TraceeEvent::Paused,
    }
}

/// Returns the number that belongs to the current event: an id in our own PID namespace.
fn event_message(pid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one unsigned long to `message`.
    let result = unsafe {
        libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, std::ptr::null_mut::<libc::c_void>(), &raw mut message)
    };
    (result == 0).then(|| i32::try_from(message).ok()).flatten()
}

fn request(request: libc::c_uint, pid: i32, data: libc::c_int) -> Result<(), Errno> {
    // SAFETY: these requests take numbers only and access no memory of ours.
    let result = unsafe {
        libc::ptrace(
            request,
            pid,
            std::ptr::null_mut::<libc::c_void>(),
            std::ptr::without_provenance_mut::<libc::c_void>(usize::try_from(data).unwrap_or(0)),
        )
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}
