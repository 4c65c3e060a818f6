//! A running process tree: one handle to wait for, signal and kill all of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::cgroup::Cgroup;
use crate::containment::Containment;
use crate::exit::{Ended, Exit, Usage};
use crate::ladder::StopSignal;
use crate::limits::LimitReport;
use crate::output::{Capture, Recorder};
use crate::record::{TreeId, TreeRecord};
use crate::sandbox::{Prepared, SandboxReport};
use crate::sys::procfs::ProcRoot;
use crate::sys::sweep::Sweep;

mod root;
pub(crate) use root::{KeeperLink, Root};

/// What a tree is held by.
pub(crate) enum Reins {
    Cgroup(Cgroup),
    /// The root is the namespace's init.
    Namespace,
    /// The root is the subreaper.
    Subreaper(Box<Sweep>),
    /// The root leads the process group.
    Group,
}

/// What a tree is made of, besides its reins.
pub(crate) struct Parts {
    pub(crate) id: TreeId,
    pub(crate) containment: Containment,
    pub(crate) boot: String,
    pub(crate) root: Root,
    pub(crate) keeper: Option<KeeperLink>,
    /// Kept open for as long as the tree is to live.
    pub(crate) life: Option<OwnedFd>,
    pub(crate) recorders: Vec<Recorder>,
    pub(crate) stdout: Option<Capture>,
    pub(crate) stderr: Option<Capture>,
    pub(crate) sandbox: Option<Prepared>,
    pub(crate) limits: Vec<LimitReport>,
}

/// A program and everything that came of it.
///
/// It has ended when no member is left, not when its first program exits. Dropping the handle leaves
/// an independent tree running; one that was ordered to die with its supervisor ends then.
pub struct Tree {
    parts: Parts,
    reins: Reins,
    proc: Arc<ProcRoot>,
    readiness: OwnedFd,
    ended: Option<Ended>,
}

/// Marks in the readiness set; only the root's is ever removed again.
const ROOT: u64 = 1;
const GROUP: u64 = 2;

impl Tree {
    pub(crate) fn assemble(parts: Parts, reins: Reins, proc: Arc<ProcRoot>) -> io::Result<Self> {
        let readiness = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        if let Some(pidfd) = parts.root.pidfd() {
            epoll::add(&readiness, pidfd, epoll::EventData::new_u64(ROOT), epoll::EventFlags::IN)?;
        }
        if let Reins::Cgroup(group) = &reins {
            // Looked at once, so that only later changes are news.
            group.is_populated()?;
            let flags = epoll::EventFlags::PRI;
            epoll::add(&readiness, group.events(), epoll::EventData::new_u64(GROUP), flags)?;
        }
        Ok(Self { parts, reins, proc, readiness, ended: None })
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &TreeId {
        &self.parts.id
    }

    /// What holds it together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.parts.containment
    }

    /// What a later process needs to take it back.
    #[must_use]
    pub fn record(&self) -> TreeRecord {
        TreeRecord {
            id: self.parts.id.clone(),
            containment: self.parts.containment,
            pid: self.parts.root.pid(),
            start_time: self.parts.root.start_time(&self.proc),
            boot: self.parts.boot.clone(),
            cgroup: if let Reins::Cgroup(group) = &self.reins { Some(group.inode()) } else { None },
        }
    }

    /// What of its sandbox is in force, if it was ordered with one.
    #[must_use]
    pub fn sandbox_report(&self) -> Option<&SandboxReport> {
        self.parts.sandbox.as_ref().map(Prepared::report)
    }

    /// How each bound of the order is kept.
    #[must_use]
    pub fn limit_reports(&self) -> &[LimitReport] {
        &self.parts.limits
    }

    /// Captured standard output.
    pub fn stdout(&mut self) -> Option<&mut Capture> {
        self.parts.stdout.as_mut()
    }

    /// Captured standard error.
    pub fn stderr(&mut self) -> Option<&mut Capture> {
        self.parts.stderr.as_mut()
    }

    /// Readable when [`Tree::poll_ended`] may have news. Nothing wakes it otherwise.
    #[must_use]
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }

    /// How the ordered program itself ended, which may be long before its tree does.
    ///
    /// # Errors
    /// When the kernel refuses to say.
    pub fn program_exit(&mut self) -> io::Result<Option<Exit>> {
        match &mut self.parts.keeper {
            Some(keeper) => Ok(keeper.program_exit()),
            None => Ok(self.poll_root()?.map(|(exit, _)| exit)),
        }
    }

    /// The end of the tree, once no member is left. Never waits.
    ///
    /// # Errors
    /// When the kernel refuses to say whether it lives. It is never taken for ended then.
    pub fn poll_ended(&mut self) -> io::Result<Option<Ended>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let Some((root_exit, usage)) = self.poll_root()? else { return Ok(None) };
        if !self.is_empty_without_root(root_exit)? {
            return Ok(None);
        }
        let exit = match &mut self.parts.keeper {
            // A keeper that was killed before it could tell went down with its tree.
            Some(keeper) => keeper.program_exit().unwrap_or(match root_exit {
                Exit::Signal(signal) => Exit::Signal(signal),
                Exit::Code(_) | Exit::Unknown => Exit::Unknown,
            }),
            None => root_exit,
        };
        self.finish(Ended { exit, usage });
        Ok(self.ended)
    }

    fn poll_root(&mut self) -> Result<Option<(Exit, Usage)>, Errno> {
        if let Reins::Group = self.reins
            && self.parts.root.is_waiting_to_be_reaped()
        {
            // Its zombie still keeps the group's number from being given to somebody else.
            signal_group(&self.parts.root, Signal::KILL);
        }
        let known = self.parts.root.exit().is_some();
        let exit = self.parts.root.poll(&self.proc)?;
        // Where the last members end a moment after the root, its handle goes on waking us.
        let tells_of_the_end = matches!(self.reins, Reins::Cgroup(_) | Reins::Namespace);
        if !known
            && exit.is_some()
            && tells_of_the_end
            && let Some(pidfd) = self.parts.root.pidfd()
        {
            epoll::delete(&self.readiness, pidfd)?;
        }
        Ok(exit)
    }

    fn is_empty_without_root(&mut self, root_exit: Exit) -> Result<bool, Errno> {
        match &mut self.reins {
            Reins::Cgroup(group) => match group.is_populated() {
                // The group is gone, and nothing outlives its group.
                Err(Errno::NODEV) => Ok(true),
                populated => Ok(!populated?),
            },
            Reins::Namespace => Ok(true),
            Reins::Group => Ok(root::members_of_group(&self.proc, self.parts.root.pid()).is_empty()),
            // It left of its own accord, which it does only without children.
            Reins::Subreaper(_) if root_exit == Exit::Code(0) => Ok(true),
            Reins::Subreaper(sweep) => {
                let marker = self.parts.id.marker();
                Ok(sweep.signal_marked(&self.proc, &marker, &[Signal::KILL]) == 0)
            }
        }
    }

    fn finish(&mut self, ended: Ended) {
        if let Reins::Cgroup(group) = &self.reins {
            remove_when_empty(group);
        }
        for recorder in self.parts.recorders.drain(..) {
            recorder.finish();
        }
        self.parts.life = None;
        self.ended = Some(ended);
    }

    /// Whether a member has killed the subreaper that held the tree.
    pub(crate) fn has_lost_its_keeper(&self) -> bool {
        matches!(self.reins, Reins::Subreaper(_)) && self.parts.root.has_ended()
    }

    /// Waits for the end of the tree, at most so long; `None` means without end. Captured output is
    /// taken meanwhile.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, at_most: Option<Duration>) -> io::Result<Option<Ended>> {
        let deadline = at_most.and_then(|duration| Instant::now().checked_add(duration));
        loop {
            let ended = self.poll_ended()?;
            self.take_output()?;
            if ended.is_some() {
                return Ok(ended);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            self.wait_for_news(left)?;
        }
    }

    fn take_output(&mut self) -> io::Result<()> {
        for capture in [&mut self.parts.stdout, &mut self.parts.stderr].into_iter().flatten() {
            capture.take_available()?;
        }
        Ok(())
    }

    fn wait_for_news(&self, at_most: Option<Duration>) -> io::Result<()> {
        let captures = [&self.parts.stdout, &self.parts.stderr];
        let pipes = captures.into_iter().flatten().filter_map(Capture::readiness);
        let mut fds: Vec<_> = std::iter::once(self.readiness())
            .chain(pipes)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = at_most.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks every member to end. A stopped member is continued so that it can hear it.
    pub fn signal(&mut self, signal: StopSignal) {
        let signals = [signal.to_kernel(), Signal::CONT];
        match &mut self.reins {
            Reins::Cgroup(group) => group.signal(&self.proc, &signals),
            // The keeper passes on nothing but SIGTERM; the others reach the members one by one.
            Reins::Namespace if signal == StopSignal::Terminate => self.parts.root.signal(Signal::TERM),
            Reins::Namespace => {
                Sweep::new().signal_descendants(&self.proc, self.parts.root.pid(), &signals);
            }
            Reins::Subreaper(sweep) => {
                sweep.signal_descendants(&self.proc, self.parts.root.pid(), &signals);
            }
            Reins::Group => signals.into_iter().for_each(|signal| signal_group(&self.parts.root, signal)),
        }
    }

    /// Kills every member. Needs no memory and no new process, so that a starved machine can't
    /// prevent it. Not waited for: a tree that forks while it is being killed may need another strike.
    pub fn kill(&mut self) {
        match &mut self.reins {
            Reins::Cgroup(group) => {
                // The group is gone only together with its members.
                let _ = group.kill();
            }
            Reins::Namespace => self.parts.root.signal(Signal::KILL),
            Reins::Subreaper(sweep) => {
                // A member may have stopped the subreaper, which then could not notice the end.
                self.parts.root.signal(Signal::CONT);
                if !self.parts.root.has_ended() {
                    sweep.signal_descendants(&self.proc, self.parts.root.pid(), &[Signal::KILL]);
                }
            }
            Reins::Group => signal_group(&self.parts.root, Signal::KILL),
        }
    }

    /// Stops every member without its consent, or lets all go on. Only a cgroup can.
    ///
    /// # Errors
    /// With `Unsupported` where there is no cgroup.
    pub fn freeze(&self, frozen: bool) -> io::Result<()> {
        match &self.reins {
            Reins::Cgroup(group) => group.freeze(frozen),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "only a cgroup can be frozen")),
        }
    }

    /// The numbers of all members, as of a moment ago.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        match &self.reins {
            Reins::Cgroup(group) => group.processes(),
            Reins::Namespace | Reins::Subreaper(_) => {
                Sweep::new().descendants(&self.proc, self.parts.root.pid())
            }
            Reins::Group => root::members_of_group(&self.proc, self.parts.root.pid()),
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.parts.life.is_some() && self.ended.is_none() {
            self.kill();
        }
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("record", &self.record())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The leader is alive or our own zombie, so the number of its group is still its own.
fn signal_group(leader: &Root, signal: Signal) {
    if leader.exit().is_none()
        && let Some(group) = rustix::process::Pid::from_raw(leader.pid())
    {
        // No member left: nothing to signal.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// The kernel may take a moment to let go of a group after its last member has ended.
pub(crate) fn remove_when_empty(group: &Cgroup) {
    const ATTEMPTS: u32 = 200;
    for _ in 0..ATTEMPTS {
        if group.remove() != Err(Errno::BUSY) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
