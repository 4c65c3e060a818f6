//! Noticing the end of a tree, and what there is to do after it.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;

use super::{ProcessTree, TreeControl, process_group};
use crate::cgroup::Cgroup;
use crate::cleanup::{self, SandboxFolder};
use crate::exit::{ProcessExit, ResourceUsage, TreeExit};
use crate::output::StreamCapture;
use crate::sys::procfs::{ProcessStat, open_pidfd};
use crate::sys::wait::reap;

/// How long recorders may take to write the last words of a tree that is gone. One that takes longer
/// is held by somebody outside of the tree, or hangs.
const RECORDER_TIMEOUT: Duration = Duration::from_secs(1);

impl ProcessTree {
    /// How the ordered program itself ended, which may be long before its tree does.
    ///
    /// # Errors
    /// When the kernel refuses to say.
    pub fn program_exit(&mut self) -> io::Result<Option<ProcessExit>> {
        match &mut self.parts.keeper {
            Some(keeper) => Ok(keeper.program_exit()),
            None => Ok(self.poll_root()?.map(|(exit, _)| exit)),
        }
    }

    /// The end of the tree, once no member is left. Never waits: recorders may still be writing the
    /// last words, and temporary files be there, until [`Tree::wait`], [`crate::Supervisor::stop`] or
    /// the drop of the handle has seen to them.
    ///
    /// # Errors
    /// When the kernel refuses to say whether it lives. It is never taken for ended then.
    pub fn poll_ended(&mut self) -> io::Result<Option<TreeExit>> {
        cleanup::reap_pending();
        if self.ended.is_some() {
            self.parts.recorders.retain(|recorder| !recorder.has_finished());
            return Ok(self.ended);
        }
        self.parts.readiness.drain_timer();
        // Before anything else: what is not looked at goes on being news.
        let populated = self.control.group().map_or(Ok(false), Cgroup::is_populated)?;
        let Some((root_exit, usage)) = self.poll_root()? else { return Ok(None) };
        if populated || !self.is_empty_without_root(root_exit) {
            self.watch_members_without_root(root_exit)?;
            return Ok(None);
        }
        let exit = match &mut self.parts.keeper {
            // A keeper that was killed before it could tell went down with its tree.
            Some(keeper) => keeper.program_exit().unwrap_or(match root_exit {
                ProcessExit::Signal(signal) => ProcessExit::Signal(signal),
                ProcessExit::Code(_) | ProcessExit::Unknown => ProcessExit::Unknown,
            }),
            None => root_exit,
        };
        self.mark_ended(TreeExit { exit, usage });
        Ok(self.ended)
    }

    /// For when a kill has had all its time: the end of a tree of which only dead are left. A tracer outside that never
    /// asks for them keeps them from being reaped, and so their keeper from leaving; it can't keep the tree by that.
    pub fn end_if_only_zombies(&mut self) -> Option<TreeExit> {
        let is_empty =
            self.control.group().map_or(Ok(false), Cgroup::is_populated).is_ok_and(|members| !members);
        // Where nothing can be looked at, nobody seems to live.
        let can_look = self.proc.stat(self.parts.root.pid()).is_ok();
        if self.ended.is_none() && is_empty && can_look && self.processes().is_empty() {
            self.parts.root.signal(Signal::KILL);
            self.mark_ended(TreeExit { exit: ProcessExit::Unknown, usage: ResourceUsage::default() });
        }
        self.ended
    }

    fn poll_root(&mut self) -> Result<Option<(ProcessExit, ResourceUsage)>, Errno> {
        if let TreeControl::ProcessGroup = self.control
            && self.parts.root.is_unreaped()
        {
            process_group::signal_group(&self.parts.root, &self.proc, &self.marker, Signal::KILL);
        }
        match self.parts.root.poll(&self.proc)? {
            // Nobody may keep a tree by that; it is reaped when its tracer is gone.
            None if self.parts.root.is_held_by_tracer() => {
                Ok(Some((ProcessExit::Unknown, ResourceUsage::default())))
            }
            None => Ok(self.parts.root.exit()),
            ended => Ok(ended),
        }
    }

    /// Where a cgroup says that somebody is left, nobody else is asked.
    fn is_empty_without_root(&mut self, root_exit: ProcessExit) -> bool {
        match &mut self.control {
            TreeControl::Cgroup(_) | TreeControl::PidNamespace => true,
            TreeControl::ProcessGroup => {
                process_group::group_members(&self.parts.root, &self.proc, &self.marker).is_empty()
            }
            // It left of its own accord, which it does only without children.
            TreeControl::Subreaper(_) | TreeControl::CgroupWithKeeper(..)
                if root_exit == ProcessExit::Code(0) =>
            {
                true
            }
            TreeControl::CgroupWithKeeper(_, pursuit) => pursuit.kill_marked(&self.proc, &self.marker) == 0,
            TreeControl::Subreaper(sweep) => {
                sweep.signal_marked(&self.proc, &self.marker, &[Signal::KILL]) == 0
            }
        }
    }

    /// Members are left without their root.
    fn watch_members_without_root(&mut self, root_exit: ProcessExit) -> Result<(), Errno> {
        let had_keeper =
            self.parts.keeper.is_some() || matches!(self.control, TreeControl::CgroupWithKeeper(..));
        if had_keeper && root_exit != ProcessExit::Code(0) {
            // A keeper leaves only after its tree: somebody has killed it, perhaps to outlive us.
            self.kill();
        }
        match self.parts.root.pidfd() {
            Some(root) => self.parts.readiness.watch_last_members(root),
            None => Ok(()),
        }
    }

    fn mark_ended(&mut self, ended: TreeExit) {
        reap_stray_children(self);
        if let Some(group) = self.control.group() {
            // If it does not work yet, it is tried again when this handle is dropped, and after.
            let _ = group.remove();
        }
        self.parts.recorders.iter().for_each(crate::output::OutputRecorder::resume);
        self.parts.recorders.retain(|recorder| !recorder.has_finished());
        self.parts.liveness_pipe = None;
        self.parts.readiness.stop_polling();
        self.ended = Some(ended);
    }

    /// Whether the subreaper that held the tree is gone, as it is after its tree, or when somebody has killed it.
    pub(crate) fn has_lost_keeper(&self) -> bool {
        matches!(self.control, TreeControl::Subreaper(_) | TreeControl::CgroupWithKeeper(..))
            && self.parts.root.has_ended()
    }

    /// Waits for the end of the tree, at most so long; `None` means without end. Captured output is
    /// taken meanwhile. After the end recordings are complete, unless their recorder hangs for longer
    /// than a second or for as long as may be waited, and temporary files are gone.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, at_most: Option<Duration>) -> io::Result<Option<TreeExit>> {
        let deadline = at_most.and_then(|duration| Instant::now().checked_add(duration));
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        loop {
            let ended = self.poll_ended()?;
            self.read_output()?;
            if ended.is_some() {
                self.finish_recordings_and_files(left());
                return Ok(ended);
            }
            if left().is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            self.wait_for_event(left())?;
        }
    }

    /// After the end: recordings and temporary files.
    pub(crate) fn finish_recordings_and_files(&mut self, at_most: Option<Duration>) {
        let deadline = Instant::now() + at_most.map_or(RECORDER_TIMEOUT, |left| left.min(RECORDER_TIMEOUT));
        let may_kill = at_most.is_none_or(|left| left >= RECORDER_TIMEOUT);
        self.parts.recorders.retain(|recorder| {
            let finished = recorder.wait_until_finished(deadline.saturating_duration_since(Instant::now()));
            if !finished && may_kill {
                recorder.kill();
            }
            !finished
        });
        self.parts.folder.take().into_iter().for_each(SandboxFolder::remove);
    }

    fn read_output(&mut self) -> io::Result<()> {
        for capture in [&mut self.parts.stdout, &mut self.parts.stderr].into_iter().flatten() {
            capture.read_available()?;
        }
        Ok(())
    }

    fn wait_for_event(&self, at_most: Option<Duration>) -> io::Result<()> {
        let captures = [&self.parts.stdout, &self.parts.stderr];
        let pipes = captures.into_iter().flatten().filter_map(StreamCapture::readiness_fd);
        let mut fds: Vec<_> = std::iter::once(self.readiness_fd())
            .chain(pipes)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = at_most.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reaps members that made themselves children of ours, not of their own parent (`CLONE_PARENT`), and
/// would stay zombies for as long as we live.
fn reap_stray_children(tree: &ProcessTree) {
    // With a keeper they became children of the keeper.
    if tree.parts.keeper.is_some() {
        return;
    }
    let proc = &tree.proc;
    let is_stray = |pid, stat: ProcessStat| match &tree.control {
        TreeControl::Cgroup(group) | TreeControl::CgroupWithKeeper(group, _) => group.contains(proc, pid),
        // Not the number itself: by now it may belong to another program of ours.
        TreeControl::ProcessGroup => stat.group == tree.parts.root.pid() && pid != stat.group,
        TreeControl::PidNamespace | TreeControl::Subreaper(_) => false,
    };
    let own = std::process::id().cast_signed();
    // A child that can't be looked at stays a zombie, which costs a number and nothing else.
    let _ = proc.each_child(own, |pid| {
        if proc.stat(pid).is_ok_and(|stat| !stat.is_alive() && stat.parent == own && is_stray(pid, stat)) {
            let _ = open_pidfd(pid).and_then(|pidfd| reap(pidfd.as_fd()));
        }
    });
}
