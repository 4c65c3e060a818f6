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
mod root;
mod signal_request;

pub(crate) use escapees::EscapeeTracker;
pub use member_snapshot::MemberSnapshot;
pub use membership::TreeMembership;
pub(crate) use readiness::TreeReadiness;
pub(crate) use root::{KeeperStatusPipe, RootHandle};
pub use signal_request::SignalReach;
use signal_request::SignalRequest;

/// What a tree is held by.
pub(crate) enum TreeControl {
    Cgroup(Cgroup),
    /// The root is a subreaper outside of the group, to whom those belong who leave it.
    CgroupWithKeeper(Cgroup, Box<EscapeeTracker>),
    /// The root is the namespace's init.
    PidNamespace,
    /// The root is the subreaper.
    Subreaper(Box<DescendantScan>),
    /// The root leads the process group.
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

/// What a tree is made of, besides its reins.
pub(crate) struct TreeParts {
    pub(crate) id: TreeId,
    pub(crate) containment: Containment,
    pub(crate) boot: String,
    pub(crate) escapees: EscapeePolicy,
    pub(crate) identity: Option<UserIdentity>,
    pub(crate) root: RootHandle,
    pub(crate) keeper: Option<KeeperStatusPipe>,
    /// Kept open for as long as the tree is to live.
    pub(crate) liveness_pipe: Option<OwnedFd>,
    pub(crate) readiness: TreeReadiness,
    pub(crate) recorders: Vec<OutputRecorder>,
    pub(crate) stdout: Option<StreamCapture>,
    pub(crate) stderr: Option<StreamCapture>,
    pub(crate) folder: Option<SandboxFolder>,
    pub(crate) sandbox: Option<SandboxReport>,
    pub(crate) limits: Vec<LimitReport>,
}

/// A program and everything that came of it.
///
/// It has ended when no member is left, not when its first program exits. Dropping the handle leaves
/// an independent tree running; one that was ordered to die with its supervisor ends then.
pub struct ProcessTree {
    parts: TreeParts,
    control: TreeControl,
    marker: Vec<u8>,
    proc: Arc<ProcRoot>,
    /// What not everybody is known to have heard.
    signal_request: Option<SignalRequest>,
    ended: Option<TreeExit>,
}

impl ProcessTree {
    pub(crate) fn new(parts: TreeParts, reins: TreeControl, proc: Arc<ProcRoot>) -> Self {
        Self {
            marker: parts.id.marker_entry(),
            parts,
            control: reins,
            proc,
            signal_request: None,
            ended: None,
        }
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

    /// Whom it runs as, if not as its supervisor.
    #[must_use]
    pub fn identity(&self) -> Option<&UserIdentity> {
        self.parts.identity.as_ref()
    }

    /// What a later process needs to take it back.
    #[must_use]
    pub fn record(&self) -> TreeRecord {
        TreeRecord {
            id: self.parts.id.clone(),
            containment: self.parts.containment,
            root: self.parts.root.identity(&self.proc),
            boot: self.parts.boot.clone(),
            leavers: self.parts.escapees,
            cgroup: self.control.group().map(Cgroup::inode),
            identity: self.parts.identity.clone(),
            private_folder: self.parts.folder.as_ref().and_then(SandboxFolder::path),
        }
    }

    /// What of its sandbox is in force, if it was ordered with one.
    #[must_use]
    pub fn sandbox_report(&self) -> Option<&SandboxReport> {
        self.parts.sandbox.as_ref()
    }

    /// How each bound of the order is kept.
    #[must_use]
    pub fn limit_reports(&self) -> &[LimitReport] {
        &self.parts.limits
    }

    /// Captured standard output.
    pub fn stdout(&mut self) -> Option<&mut StreamCapture> {
        self.parts.stdout.as_mut()
    }

    /// Captured standard error.
    pub fn stderr(&mut self) -> Option<&mut StreamCapture> {
        self.parts.stderr.as_mut()
    }

    /// Readable when [`ProcessTree::program_exit`] has news that [`ProcessTree::readiness_fd`] does not tell of: the program has ended,
    /// but its tree has not. `None` where there is no keeper to tell. To be asked for until the exit is known.
    #[must_use]
    pub fn program_exit_fd(&self) -> Option<BorrowedFd<'_>> {
        self.parts.keeper.as_ref().map(KeeperStatusPipe::as_fd)
    }

    /// Readable when [`ProcessTree::poll_ended`] may have news.
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
        f.debug_struct("Tree")
            .field("record", &self.record())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
