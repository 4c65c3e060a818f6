//! Detects the end of a tree and cleans up after it.

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

/// Time that recorders get to write the last output after the end of their tree. A recorder that takes longer
/// hangs, or its stream is held open by a process outside of the tree.
const RECORDER_TIMEOUT: Duration = Duration::from_secs(1);

impl ProcessTree {
    /// Returns the exit of the spawned program, which may come long before the end of its tree.
    ///
    /// # Errors
    /// Fails if the kernel refuses to report the state of the program.
    pub fn program_exit(&mut self) -> io::Result<Option<ProcessExit>> {
        match &mut self.parts.keeper {
            Some(keeper) => Ok(keeper.program_exit()),
            None => Ok(self.poll_root()?.map(|(exit, _)| exit)),
        }
    }

    /// Returns the end of the tree once no member is left. Never waits. Recorders may still be writing, and
    /// temporary files may still exist, until [`ProcessTree::wait`], [`crate::Supervisor::stop`] or dropping
    /// the handle has finished them.
    ///
    /// # Errors
    /// Fails if the kernel refuses to report whether the tree is alive. The tree is not considered ended
    /// then.
    pub fn poll_ended(&mut self) -> io::Result<Option<TreeExit>> {
        cleanup::reap_pending();
        if self.ended.is_some() {
            self.parts.recorders.retain(|recorder| !recorder.has_finished());
            return Ok(self.ended);
        }
        self.parts.readiness.drain_timer();
        // The cgroup is read first in any case, because its descriptor stays ready until it has been read.
        let populated = self.control.group().map_or(Ok(false), Cgroup::is_populated)?;
        let Some((root_exit, usage)) = self.poll_root()? else { return Ok(None) };
        if populated || !self.is_empty_without_root(root_exit) {
            self.watch_members_without_root(root_exit)?;
            return Ok(None);
        }
        let exit = match &mut self.parts.keeper {
            // A keeper that was killed before it could report the exit was killed together with its tree.
            Some(keeper) => keeper.program_exit().unwrap_or(match root_exit {
                ProcessExit::Signal(signal) => ProcessExit::Signal(signal),
                ProcessExit::Code(_) | ProcessExit::Unknown => ProcessExit::Unknown,
            }),
            None => root_exit,
        };
        self.mark_ended(TreeExit { exit, usage });
        Ok(self.ended)
    }

    /// Ends a tree whose members are all zombies, and returns its end. To be called when a kill has had
    /// enough time.
    ///
    /// A tracer outside of the tree that never waits for its tracees keeps them from being reaped, and so
    /// keeps the keeper from exiting (see `ptrace(2)`). It must not be able to keep the tree from ending.
    pub fn end_if_only_zombies(&mut self) -> Option<TreeExit> {
        let is_empty =
            self.control.group().map_or(Ok(false), Cgroup::is_populated).is_ok_and(|members| !members);
        // If /proc can't be read, living members would be overlooked.
        let can_read_proc = self.proc.stat(self.parts.root.pid()).is_ok();
        if self.ended.is_none() && is_empty && can_read_proc && self.processes().is_empty() {
            self.parts.root.signal(Signal::KILL);
            self.mark_ended(TreeExit { exit: ProcessExit::Unknown, usage: ResourceUsage::default() });
        }
        self.ended
    }

    fn poll_root(&mut self) -> Result<Option<(ProcessExit, ResourceUsage)>, Errno> {
        if let TreeControl::ProcessGroup = self.control
            && self.parts.root.exit().is_none()
        {
            // The same look decides about the kill and the reaping: members of a root that ended in between would live on.
            if !self.parts.root.is_unreaped() {
                return Ok(None);
            }
            process_group::signal_group(&self.parts.root, &self.proc, &self.marker, Signal::KILL);
        }
        match self.parts.root.poll(&self.proc)? {
            // A tracer must not keep the tree from ending. The root is reaped later, when its tracer is gone.
            None if self.parts.root.is_held_by_tracer() => {
                Ok(Some((ProcessExit::Unknown, ResourceUsage::default())))
            }
            None => Ok(self.parts.root.exit()),
            ended => Ok(ended),
        }
    }

    /// Returns true if no member is left after the end of the root, apart from members of the cgroup, which
    /// the caller has checked. Kills marked members of a tree that has lost its keeper.
    fn is_empty_without_root(&mut self, root_exit: ProcessExit) -> bool {
        match &mut self.control {
            TreeControl::Cgroup(_) | TreeControl::PidNamespace => true,
            TreeControl::ProcessGroup => {
                process_group::group_members(&self.parts.root, &self.proc, &self.marker).is_empty()
            }
            // The keeper exited by itself, which it does only when it has no children.
            TreeControl::Subreaper(_) | TreeControl::CgroupWithKeeper(..)
                if root_exit == ProcessExit::Code(0) =>
            {
                true
            }
            TreeControl::CgroupWithKeeper(_, tracker) => tracker.kill_marked(&self.proc, &self.marker) == 0,
            TreeControl::Subreaper(scan) => {
                scan.signal_marked(&self.proc, &self.marker, &[Signal::KILL]) == 0
            }
        }
    }

    /// Watches the members that are left after the end of the root, and kills them if the keeper was killed.
    fn watch_members_without_root(&mut self, root_exit: ProcessExit) -> Result<(), Errno> {
        let had_keeper =
            self.parts.keeper.is_some() || matches!(self.control, TreeControl::CgroupWithKeeper(..));
        if had_keeper && root_exit != ProcessExit::Code(0) {
            // A keeper exits by itself only after its tree. It was killed, perhaps by a member that wants to
            // outlive us.
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
            // If the removal fails, it is repeated when this handle is dropped and after that.
            let _ = group.remove();
        }
        self.parts.recorders.iter().for_each(crate::output::OutputRecorder::resume);
        self.parts.recorders.retain(|recorder| !recorder.has_finished());
        self.parts.liveness_pipe = None;
        self.parts.readiness.stop_polling();
        self.ended = Some(ended);
    }

    /// Returns true if the keeper of a tree without PID namespace has ended, because its tree has ended or
    /// because it was killed.
    pub(crate) fn has_lost_keeper(&self) -> bool {
        matches!(self.control, TreeControl::Subreaper(_) | TreeControl::CgroupWithKeeper(..))
            && self.parts.root.has_ended()
    }

    /// Waits for the end of the tree and reads captured output meanwhile. Returns `None` if the tree has not
    /// ended within `limit`; without a limit it waits forever.
    ///
    /// After the end, temporary files are removed and recordings are complete, unless a recorder hangs for
    /// longer than a second or than the rest of the limit.
    ///
    /// # Errors
    /// Fails if the kernel refuses to wait.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<Option<TreeExit>> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
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

    /// Waits for the recorders of a tree that has ended, and removes its temporary files. A recorder is
    /// killed only if it has had the whole [`RECORDER_TIMEOUT`].
    pub(crate) fn finish_recordings_and_files(&mut self, limit: Option<Duration>) {
        let deadline = Instant::now() + limit.map_or(RECORDER_TIMEOUT, |limit| limit.min(RECORDER_TIMEOUT));
        let may_kill = limit.is_none_or(|limit| limit >= RECORDER_TIMEOUT);
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

    fn wait_for_event(&self, limit: Option<Duration>) -> io::Result<()> {
        let captures = [&self.parts.stdout, &self.parts.stderr];
        let pipes = captures.into_iter().flatten().filter_map(StreamCapture::readiness_fd);
        let mut fds: Vec<_> = std::iter::once(self.readiness_fd())
            .chain(pipes)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reaps members that were created with `CLONE_PARENT` by the program. They are our children instead of the
/// program's, and would stay zombies for as long as this process lives.
fn reap_stray_children(tree: &ProcessTree) {
    // With a keeper they are children of the keeper.
    if tree.parts.keeper.is_some() {
        return;
    }
    let proc = &tree.proc;
    let is_stray = |pid, stat: ProcessStat| match &tree.control {
        TreeControl::Cgroup(group) | TreeControl::CgroupWithKeeper(group, _) => group.contains(proc, pid),
        // The root's own pid is excluded, because by now it may belong to another program of ours.
        TreeControl::ProcessGroup => stat.group == tree.parts.root.pid() && pid != stat.group,
        TreeControl::PidNamespace | TreeControl::Subreaper(_) => false,
    };
    let own = std::process::id().cast_signed();
    // A child that can't be read in /proc stays a zombie, which costs only a pid.
    let _ = proc.each_child(own, |pid| {
        if proc.stat(pid).is_ok_and(|stat| !stat.is_alive() && stat.parent == own && is_stray(pid, stat)) {
            let _ = open_pidfd(pid).and_then(|pidfd| reap(pidfd.as_fd()));
        }
    });
}
