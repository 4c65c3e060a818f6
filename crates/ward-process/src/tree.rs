//! A running process tree: one handle to wait for, signal and kill all of it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::cgroup::Cgroup;
use crate::cleanup::{self, SandboxFolder, TreeCleanup};
use crate::containment::Containment;
use crate::exit::TreeExit;
use crate::limits::LimitReport;
use crate::output::{OutputRecorder, StreamCapture};
use crate::process_spec::{EscapeePolicy, UserIdentity};
use crate::record::{TreeId, TreeRecord};
use crate::sandbox::SandboxReport;
use crate::sys::descendants::DescendantScan;
use crate::sys::procfs::ProcRoot;

mod actions;
mod end;
mod escapees;
mod member_snapshot;
mod membership;
mod process_group;
mod readiness;
mod resident_memory;
mod root;
mod signal_request;

pub(crate) use escapees::EscapeeTracker;
pub use member_snapshot::MemberSnapshot;
pub use membership::TreeMembership;
pub(crate) use readiness::TreeReadiness;
pub use resident_memory::MemoryMeasure;
pub(crate) use root::{KeeperStatusPipe, RootHandle};
pub use signal_request::SignalDelivery;
use signal_request::SignalRequest;

/// The means by which the supervisor controls a tree.
pub(crate) enum TreeControl {
    Cgroup(Cgroup),
    /// The root is a keeper outside of the group, which adopts escapees.
    CgroupWithKeeper(Cgroup, Box<EscapeeTracker>),
    /// The root is the keeper and init of the namespace.
    PidNamespace,
    /// The root is the keeper and child subreaper.
    Subreaper(Box<DescendantScan>),
    /// The root is the program and leader of the process group.
    ProcessGroup,
}

impl TreeControl {
    pub(crate) fn group(&self) -> Option<&Cgroup> {
        match self {
            Self::Cgroup(group) | Self::CgroupWithKeeper(group, _) => Some(group),
            Self::PidNamespace | Self::Subreaper(_) | Self::ProcessGroup => None,
        }
    }

    pub(crate) fn into_group(self) -> Option<Cgroup> {
        match self {
            Self::Cgroup(group) | Self::CgroupWithKeeper(group, _) => Some(group),
            Self::PidNamespace | Self::Subreaper(_) | Self::ProcessGroup => None,
        }
    }
}

/// The parts of a tree, except for its [`TreeControl`].
pub(crate) struct TreeParts {
    pub(crate) id: TreeId,
    pub(crate) containment: Containment,
    pub(crate) boot: String,
    pub(crate) escapees: EscapeePolicy,
    pub(crate) identity: Option<UserIdentity>,
    pub(crate) root: RootHandle,
    pub(crate) keeper: Option<KeeperStatusPipe>,
    /// Supervisor's end of the keeper's liveness pipe. The keeper kills the tree when this is closed.
    pub(crate) liveness_pipe: Option<OwnedFd>,
    pub(crate) readiness: TreeReadiness,
    pub(crate) recorders: Vec<OutputRecorder>,
    pub(crate) stdout: Option<StreamCapture>,
    pub(crate) stderr: Option<StreamCapture>,
    pub(crate) folder: Option<SandboxFolder>,
    pub(crate) sandbox: Option<SandboxReport>,
    /// Listening socket on the loopback interface of the sandbox.
    pub(crate) loopback_listener: Option<OwnedFd>,
    pub(crate) limits: Vec<LimitReport>,
    /// Limits in the files of the cgroup, for the record.
    pub(crate) cgroup_limits: Vec<(String, String)>,
}

/// A handle on a program and all its descendants.
///
/// A tree has ended when no member is left, not when its first program exits. Dropping the handle leaves an
/// independent tree running, and kills a tree that dies with its supervisor.
pub struct ProcessTree {
    parts: TreeParts,
    control: TreeControl,
    marker: Vec<u8>,
    proc: Arc<ProcRoot>,
    /// A signal that may not have reached all members yet.
    signal_request: Option<SignalRequest>,
    ended: Option<TreeExit>,
}

impl ProcessTree {
    pub(crate) fn new(parts: TreeParts, control: TreeControl, proc: Arc<ProcRoot>) -> Self {
        Self { marker: parts.id.marker_entry(), parts, control, proc, signal_request: None, ended: None }
    }

    /// Returns the name of the tree.
    #[must_use]
    pub fn id(&self) -> &TreeId {
        &self.parts.id
    }

    /// Returns the mechanism that holds the tree together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.parts.containment
    }

    /// Returns the user that the tree runs as, if it isn't the supervisor's.
    #[must_use]
    pub fn identity(&self) -> Option<&UserIdentity> {
        self.parts.identity.as_ref()
    }

    /// Returns the record that lets a later process take the tree back.
    #[must_use]
    pub fn record(&self) -> TreeRecord {
        TreeRecord {
            id: self.parts.id.clone(),
            containment: self.parts.containment,
            root: self.parts.root.identity(&self.proc),
            boot: self.parts.boot.clone(),
            escapees: self.parts.escapees,
            cgroup: self.control.group().map(Cgroup::inode),
            cgroup_limits: self.parts.cgroup_limits.clone(),
            identity: self.parts.identity.clone(),
            private_folder: self.parts.folder.as_ref().and_then(SandboxFolder::path),
        }
    }

    /// Returns the report of which parts of the sandbox are enforced, if the tree has a sandbox.
    #[must_use]
    pub fn sandbox_report(&self) -> Option<&SandboxReport> {
        self.parts.sandbox.as_ref()
    }

    /// Takes the listening socket on the loopback interface of the sandbox, if the sandbox has
    /// [`LoopbackWithListener`](crate::sandbox::SandboxNetwork::LoopbackWithListener). The socket doesn't
    /// block. A later call returns `None`.
    pub fn take_loopback_listener(&mut self) -> Option<OwnedFd> {
        self.parts.loopback_listener.take()
    }

    /// Returns how each requested limit is enforced.
    #[must_use]
    pub fn limit_reports(&self) -> &[LimitReport] {
        &self.parts.limits
    }

    /// Returns the captured standard output, if it is captured.
    pub fn stdout(&mut self) -> Option<&mut StreamCapture> {
        self.parts.stdout.as_mut()
    }

    /// Returns the captured standard error, if it is captured.
    pub fn stderr(&mut self) -> Option<&mut StreamCapture> {
        self.parts.stderr.as_mut()
    }

    /// Returns a descriptor that is readable when [`ProcessTree::program_exit`] may return an exit although
    /// the tree has not ended, which [`ProcessTree::readiness_fd`] doesn't signal. `None` if the tree has no
    /// keeper. Stop polling it once the exit is known, because it may stay readable.
    #[must_use]
    pub fn program_exit_fd(&self) -> Option<BorrowedFd<'_>> {
        self.parts.keeper.as_ref().map(KeeperStatusPipe::as_fd)
    }

    /// Returns a descriptor that is readable once the first process of the tree has ended: the keeper, which ends
    /// last, or the program in a tree without a keeper. `None` if that process is gone.
    #[must_use]
    pub fn root_exit_fd(&self) -> Option<BorrowedFd<'_>> {
        self.parts.root.pidfd()
    }

    /// Returns a descriptor that is readable when [`ProcessTree::poll_ended`] should be called.
    #[must_use]
    pub fn readiness_fd(&self) -> BorrowedFd<'_> {
        self.parts.readiness.as_fd()
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.parts.liveness_pipe.is_some() && self.ended.is_none() {
            self.kill();
        }
        let group = std::mem::replace(&mut self.control, TreeControl::ProcessGroup).into_group();
        let mut folder = self.parts.folder.take();
        if self.ended.is_some()
            && let Some(folder) = folder.take()
        {
            folder.remove();
        }
        cleanup::defer_cleanup(TreeCleanup {
            root: Some(std::mem::replace(&mut self.parts.root, RootHandle::unknown())),
            group,
            recorders: std::mem::take(&mut self.parts.recorders),
            folder,
        });
    }
}

impl std::fmt::Debug for ProcessTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessTree")
            .field("record", &self.record())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
