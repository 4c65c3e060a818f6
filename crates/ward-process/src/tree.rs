//! A running process tree: one handle to wait for, signal and kill all of it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::cgroup::Cgroup;
use crate::containment::Containment;
use crate::exit::Ended;
use crate::leftovers::{self, Folder, Leftover};
use crate::limits::LimitReport;
use crate::order::{Identity, Leavers};
use crate::output::{Capture, Recorder};
use crate::record::{TreeId, TreeRecord};
use crate::sandbox::SandboxReport;
use crate::sys::procfs::ProcRoot;
use crate::sys::sweep::Sweep;

mod census;
mod end;
mod group;
mod membership;
mod pursuit;
mod readiness;
mod request;
mod root;
mod strike;

pub use census::Census;
pub use membership::Membership;
pub(crate) use pursuit::Pursuit;
pub(crate) use readiness::Readiness;
pub use request::Reach;
use request::Request;
pub(crate) use root::{KeeperLink, Root};

/// What a tree is held by.
pub(crate) enum Reins {
    Cgroup(Cgroup),
    /// The root is a subreaper outside of the group, to whom those belong who leave it.
    KeptCgroup(Cgroup, Box<Pursuit>),
    /// The root is the namespace's init.
    Namespace,
    /// The root is the subreaper.
    Subreaper(Box<Sweep>),
    /// The root leads the process group.
    Group,
}

impl Reins {
    pub(crate) fn group(&self) -> Option<&Cgroup> {
        match self {
            Self::Cgroup(group) | Self::KeptCgroup(group, _) => Some(group),
            Self::Namespace | Self::Subreaper(_) | Self::Group => None,
        }
    }

    pub(crate) fn into_group(self) -> Option<Cgroup> {
        match self {
            Self::Cgroup(group) | Self::KeptCgroup(group, _) => Some(group),
            Self::Namespace | Self::Subreaper(_) | Self::Group => None,
        }
    }
}

/// What a tree is made of, besides its reins.
pub(crate) struct Parts {
    pub(crate) id: TreeId,
    pub(crate) containment: Containment,
    pub(crate) boot: String,
    pub(crate) leavers: Leavers,
    pub(crate) identity: Option<Identity>,
    pub(crate) root: Root,
    pub(crate) keeper: Option<KeeperLink>,
    /// Kept open for as long as the tree is to live.
    pub(crate) life: Option<OwnedFd>,
    pub(crate) readiness: Readiness,
    pub(crate) recorders: Vec<Recorder>,
    pub(crate) stdout: Option<Capture>,
    pub(crate) stderr: Option<Capture>,
    pub(crate) folder: Option<Folder>,
    pub(crate) sandbox: Option<SandboxReport>,
    pub(crate) limits: Vec<LimitReport>,
}

/// A program and everything that came of it.
///
/// It has ended when no member is left, not when its first program exits. Dropping the handle leaves
/// an independent tree running; one that was ordered to die with its supervisor ends then.
pub struct Tree {
    parts: Parts,
    reins: Reins,
    marker: Vec<u8>,
    proc: Arc<ProcRoot>,
    /// What not everybody is known to have heard.
    request: Option<Request>,
    ended: Option<Ended>,
}

impl Tree {
    pub(crate) fn new(parts: Parts, reins: Reins, proc: Arc<ProcRoot>) -> Self {
        Self { marker: parts.id.marker(), parts, reins, proc, request: None, ended: None }
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
    pub fn identity(&self) -> Option<&Identity> {
        self.parts.identity.as_ref()
    }

    /// What a later process needs to take it back.
    #[must_use]
    pub fn record(&self) -> TreeRecord {
        TreeRecord {
            id: self.parts.id.clone(),
            containment: self.parts.containment,
            root: self.parts.root.process(&self.proc),
            boot: self.parts.boot.clone(),
            leavers: self.parts.leavers,
            cgroup: self.reins.group().map(Cgroup::inode),
            identity: self.parts.identity.clone(),
            private_folder: self.parts.folder.as_ref().and_then(Folder::path),
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
    pub fn stdout(&mut self) -> Option<&mut Capture> {
        self.parts.stdout.as_mut()
    }

    /// Captured standard error.
    pub fn stderr(&mut self) -> Option<&mut Capture> {
        self.parts.stderr.as_mut()
    }

    /// Readable when [`Tree::program_exit`] has news that [`Tree::readiness`] does not tell of: the program has ended,
    /// but its tree has not. `None` where there is no keeper to tell. To be asked for until the exit is known.
    #[must_use]
    pub fn program_readiness(&self) -> Option<BorrowedFd<'_>> {
        self.parts.keeper.as_ref().map(KeeperLink::as_fd)
    }

    /// Readable when [`Tree::poll_ended`] may have news.
    #[must_use]
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.parts.readiness.as_fd()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.parts.life.is_some() && self.ended.is_none() {
            self.kill();
        }
        let group = std::mem::replace(&mut self.reins, Reins::Group).into_group();
        let mut folder = self.parts.folder.take();
        if self.ended.is_some()
            && let Some(folder) = folder.take()
        {
            folder.remove();
        }
        leftovers::leave(Leftover {
            root: Some(std::mem::replace(&mut self.parts.root, Root::unknown())),
            group,
            recorders: std::mem::take(&mut self.parts.recorders),
            folder,
        });
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
