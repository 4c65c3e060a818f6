//! Has every program that a tree executes judged before the program's first instruction.
//!
//! A thread of its own traces the tree and waits for its events (`ptrace(2)`; a tracee belongs to one thread). If this
//! thread ends, the kernel kills the tree. Killing and timing out a traced tree needs nothing from the thread but that it
//! reaps its tracees.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;

use crate::sys::barrier::StartBarrier;
use crate::sys::child;
use crate::sys::trace::{self, EventWait, NextEvent, TraceeEvent};
use crate::sys::wait::{reap, wait_readable};

/// Judges the programs that a tree executes.
pub trait ExecJudge: Send {
    /// Decides about a program before its first instruction. The process waits for the answer.
    fn judge(&mut self, image: &ExecutedImage) -> ExecDecision;

    /// Decides about a program whose arguments or environment can't be read.
    fn judge_unreadable(&mut self, error: io::Error) -> ExecDecision;
}

/// A number that a process gets from its judge and passes on to the processes that it forks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ProcessLabel(pub u8);

/// A program that a process has just executed, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedImage {
    /// The process, in our own PID namespace.
    pub pid: i32,
    /// The real path of the executed file. For a script with `#!`, this is the interpreter.
    pub program: PathBuf,
    /// A path under which the executed file can be read even if it was moved or removed.
    pub file: PathBuf,
    /// The arguments, starting with `argv[0]`.
    pub arguments: Vec<OsString>,
    /// The environment as `NAME=value`.
    pub environment: Vec<OsString>,
    /// The working directory.
    pub folder: PathBuf,
    /// The label of the process before this program.
    pub label: ProcessLabel,
    /// Number of other processes of the tree that are alive, with those that have been created but have not run yet.
    pub other_processes: usize,
}

/// The decision about an executed program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecDecision {
    /// The program runs, and its process gets this label.
    Run(ProcessLabel),
    /// The process is killed.
    KillProcess,
    /// All processes of the tree are killed.
    KillTree,
    /// The process stays stopped, and the judge is asked again in a moment. Meanwhile other processes of the tree go on.
    AskAgain,
}

/// The time until a judge is asked again.
const ASK_AGAIN_INTERVAL: Duration = Duration::from_millis(1);

/// Checks that this process may trace its descendants, by tracing a child that does nothing.
///
/// # Errors
/// Fails with the reason, and what would help.
pub fn probe_exec_judging() -> Result<(), String> {
    let failed = |errno: Errno| {
        let help = "allow ptrace of own processes: set kernel.yama.ptrace_scope to 0 or 1, or lift the seccomp filter of \
                    the container";
        format!("programs can't be traced ({errno}); {help}")
    };
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let (ready, ready_writer) = pipe().map_err(failed)?;
    let barrier = StartBarrier::new(pipe().map_err(failed)?);
    let waiter = barrier.waiter();
    let child = child::try_in_namespaces(0, None, || {
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
        rustix::io::write(&ready_writer, b"1")?;
        // The child ends with this process, too.
        waiter.wait_for_release();
        Ok(())
    })
    .map_err(failed)?;
    let traced =
        rustix::io::read(&ready, &mut [0_u8]).and_then(|_| trace::seize(child.pid.as_raw_nonzero().get()));
    let _ = rustix::process::pidfd_send_signal(&child.pidfd, rustix::process::Signal::KILL);
    let _ = wait_readable(child.pidfd.as_fd(), None);
    let _ = reap(child.pidfd.as_fd());
    drop(barrier);
    traced.map_err(failed)
}

/// Starts a thread that traces a process and all its descendants. When this returns, the process is traced.
pub(crate) fn attach(pid: i32, judge: Box<dyn ExecJudge>) -> io::Result<()> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("exec-judge".to_owned()).spawn(move || {
        let seized = trace::seize(pid);
        let traces = seized.is_ok();
        // The receiver waits, unless its thread has panicked; then the end of this thread kills the tracee.
        if sender.send(seized).is_ok() && traces {
            TracedProcesses::new(pid, judge).follow();
        }
    })?;
    match receiver.recv() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(errno)) => Err(errno.into()),
        Err(_) => Err(io::Error::other("the tracing thread ended")),
    }
}

/// The processes and threads of a traced tree.
struct TracedProcesses {
    judge: Box<dyn ExecJudge>,
    /// Processes and threads that have stopped once and have not ended, with the id of their process.
    living: BTreeMap<i32, i32>,
    /// Labels by the id of the process.
    labels: BTreeMap<i32, ProcessLabel>,
    /// Processes and threads that have stopped or ended before the event of their creator. The event must not give them a
    /// label, because another process may get the id of one that has ended.
    unannounced: BTreeSet<i32>,
    /// Processes about whose program the judge has to be asked again.
    deferred: BTreeSet<i32>,
    /// Set when the whole tree has to end: new processes are killed at their first stop.
    ending: bool,
}

impl TracedProcesses {
    fn new(pid: i32, judge: Box<dyn ExecJudge>) -> Self {
        let labels = BTreeMap::from([(pid, ProcessLabel::default())]);
        let living = BTreeMap::from([(pid, pid)]);
        Self { judge, living, labels, unannounced: BTreeSet::new(), deferred: BTreeSet::new(), ending: false }
    }

    /// Handles events until no tracee is left. An error of a request means that the tracee was killed, and its end is
    /// the next event.
    fn follow(mut self) {
        loop {
            let wait = if self.deferred.is_empty() { EventWait::Block } else { EventWait::ReturnAtOnce };
            match trace::next_event(wait) {
                NextEvent::Of(pid, event) => self.handle_event(pid, event),
                NextEvent::NotYet => {
                    std::thread::sleep(ASK_AGAIN_INTERVAL);
                    for pid in std::mem::take(&mut self.deferred) {
                        self.ask_judge(pid);
                    }
                }
                NextEvent::NeverAgain => return,
            }
        }
    }

    fn handle_event(&mut self, pid: i32, event: TraceeEvent) {
        match event {
            TraceeEvent::Ended => self.forget(pid),
            TraceeEvent::Created(new) => {
                self.pass_label_on(pid, new);
                self.resume(pid, 0);
            }
            TraceeEvent::Executed(former) => self.judge_program(pid, former),
            TraceeEvent::Paused => {
                self.register(pid);
                self.resume(pid, 0);
            }
            TraceeEvent::GroupStopped if self.ending => trace::kill(pid),
            TraceeEvent::GroupStopped => {
                self.register(pid);
                let _ = trace::keep_stopped(pid);
            }
            TraceeEvent::Signal(signal) => self.resume(pid, signal),
        }
    }

    fn resume(&self, pid: i32, signal: i32) {
        if self.ending {
            trace::kill(pid);
        } else {
            let _ = trace::resume(pid, signal);
        }
    }

    fn forget(&mut self, pid: i32) {
        self.deferred.remove(&pid);
        let was_living = self.living.remove(&pid).is_some();
        let was_announced = self.labels.remove(&pid).is_some();
        if !was_living && !was_announced {
            self.unannounced.insert(pid);
        }
    }

    /// Gives a new process the label of its creator. The creator can't have executed another program since, because it
    /// is still stopped in the call that created the process.
    fn pass_label_on(&mut self, creator: i32, new: i32) {
        if !self.unannounced.remove(&new) {
            let process = self.living.get(&creator).copied().unwrap_or(creator);
            let label = self.labels.get(&process).copied().unwrap_or_default();
            self.labels.insert(new, label);
        }
    }

    /// Registers a tracee at its first stop. If the event of its creator has not come yet, the creator is found by
    /// `/proc`. A process whose creator is gone has the first label, which is the strictest.
    fn register(&mut self, pid: i32) {
        if self.living.contains_key(&pid) {
            return;
        }
        let (process, parent) = read_relatives(pid).unwrap_or((pid, 0));
        self.living.insert(pid, process);
        if !self.labels.contains_key(&pid) {
            self.unannounced.insert(pid);
            let label = self.labels.get(&parent).copied().unwrap_or_default();
            self.labels.insert(pid, label);
        }
        // The threads of a process have its label.
        if process != pid {
            self.labels.remove(&pid);
        }
    }

    fn judge_program(&mut self, pid: i32, former_thread: i32) {
        // `execve` ends all other threads, and the calling thread takes over the id of the process.
        if former_thread != pid {
            self.living.remove(&former_thread);
        }
        self.living.insert(pid, pid);
        self.ask_judge(pid);
    }

    /// Asks the judge about the program of a stopped process.
    fn ask_judge(&mut self, pid: i32) {
        if self.ending {
            return trace::kill(pid);
        }
        let label = self.labels.get(&pid).copied().unwrap_or_default();
        // A process that was created but has not stopped yet has only a label.
        let processes: BTreeSet<i32> = self.living.values().chain(self.labels.keys()).copied().collect();
        let decision = match read_image(pid, label, processes.len().saturating_sub(1)) {
            Ok(image) => self.judge.judge(&image),
            // The process was killed before it could be looked at.
            Err(Errno::NOENT | Errno::SRCH) => ExecDecision::KillProcess,
            Err(errno) => self.judge.judge_unreadable(errno.into()),
        };
        match decision {
            ExecDecision::Run(label) => {
                self.labels.insert(pid, label);
                self.resume(pid, 0);
            }
            ExecDecision::KillProcess => trace::kill(pid),
            ExecDecision::KillTree => {
                self.ending = true;
                self.living.keys().for_each(|pid| trace::kill(*pid));
            }
            ExecDecision::AskAgain => _ = self.deferred.insert(pid),
        }
    }
}

/// Returns the process that a thread belongs to, and the parent of that process.
fn read_relatives(pid: i32) -> Option<(i32, i32)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<i32>().ok()
    };
    Some((field("Tgid:")?, field("PPid:")?))
}

/// Reads what a stopped process is about to run.
fn read_image(pid: i32, label: ProcessLabel, other_processes: usize) -> Result<ExecutedImage, Errno> {
    let path = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    let link = |name: &str| {
        let text = rustix::fs::readlink(path(name), Vec::new())?;
        Ok::<_, Errno>(PathBuf::from(OsString::from_vec(text.into_bytes())))
    };
    let list = |name: &str| {
        let bytes =
            std::fs::read(path(name)).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        // Each text ends with a zero byte.
        let texts = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
        let is_empty = bytes.is_empty();
        let texts = texts.split(|byte| *byte == 0).filter(|_| !is_empty);
        Ok::<_, Errno>(texts.map(|text| std::ffi::OsStr::from_bytes(text).to_owned()).collect::<Vec<_>>())
    };
    Ok(ExecutedImage {
        pid,
        program: link("exe")?,
        file: path("exe"),
        arguments: list("cmdline")?,
        environment: list("environ")?,
        folder: link("cwd")?,
        label,
        other_processes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoJudge;

    impl ExecJudge for NoJudge {
        fn judge(&mut self, _: &ExecutedImage) -> ExecDecision {
            ExecDecision::KillTree
        }

        fn judge_unreadable(&mut self, _: io::Error) -> ExecDecision {
            ExecDecision::KillTree
        }
    }

    /// Ids that no process has.
    const CREATOR: i32 = i32::MAX - 1;
    const NEW: i32 = i32::MAX;

    fn traced() -> TracedProcesses {
        let mut traced = TracedProcesses::new(CREATOR, Box::new(NoJudge));
        traced.labels.insert(CREATOR, ProcessLabel(1));
        traced
    }

    #[test]
    fn a_new_process_has_the_label_of_its_creator_until_it_ends() {
        let mut traced = traced();
        traced.pass_label_on(CREATOR, NEW);
        traced.register(NEW);
        assert_eq!(traced.labels.get(&NEW), Some(&ProcessLabel(1)));
        traced.forget(NEW);
        assert_eq!(traced.labels.get(&NEW), None);
    }

    #[test]
    fn the_late_event_of_a_creator_leaves_no_label_for_an_id_that_is_free_again() {
        let mut traced = traced();
        traced.register(NEW);
        traced.forget(NEW);
        traced.pass_label_on(CREATOR, NEW);
        assert_eq!(traced.labels.get(&NEW), None);
        // The process was killed before it has stopped once.
        traced.forget(NEW);
        traced.pass_label_on(CREATOR, NEW);
        assert_eq!(traced.labels.get(&NEW), None);
        // The id is used again, in the usual order of events.
        traced.pass_label_on(CREATOR, NEW);
        assert_eq!(traced.labels.get(&NEW), Some(&ProcessLabel(1)));
    }
}
