//! What dropped handles leave to be reaped and removed, once it can be.
//!
//! Children belong to the whole process, so that there is one list for all supervisors. It is looked
//! through whenever something is spawned or polled.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, TryLockError};

use crate::cgroup::Cgroup;
use crate::output::OutputRecorder;
use crate::sandbox::{self, PreparedSandbox};
use crate::tree::RootHandle;

static PENDING: Mutex<Vec<TreeCleanup>> = Mutex::new(Vec::new());

/// What is left of one tree. When nothing is, it leaves the list.
#[derive(Default)]
pub(crate) struct TreeCleanup {
    pub(crate) root: Option<RootHandle>,
    pub(crate) group: Option<Cgroup>,
    pub(crate) recorders: Vec<OutputRecorder>,
    pub(crate) folder: Option<SandboxFolder>,
}

/// The temporary folder of a sandbox.
pub(crate) enum SandboxFolder {
    Prepared(Box<PreparedSandbox>),
    /// By an earlier process.
    KnownPath(PathBuf),
}

impl SandboxFolder {
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Prepared(prepared) => prepared.temporary_folder().map(Path::to_owned),
            Self::KnownPath(path) => Some(path.clone()),
        }
    }

    pub(crate) fn remove(self) {
        match self {
            Self::Prepared(mut prepared) => prepared.clean_up(),
            Self::KnownPath(path) => sandbox::remove_private_folder(&path),
        }
    }
}

/// Puts something on the list, unless it is gone at once.
pub(crate) fn defer_cleanup(mut leftover: TreeCleanup) {
    leftover.reap();
    if !leftover.is_done() {
        PENDING.lock().unwrap_or_else(PoisonError::into_inner).push(leftover);
    }
}

/// Reaps and removes what has ended. Never waits, neither for a process nor for another thread.
pub(crate) fn reap_pending() {
    let mut leftovers = match PENDING.try_lock() {
        Ok(leftovers) => leftovers,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    leftovers.retain_mut(|leftover| {
        leftover.reap();
        !leftover.is_done()
    });
}

/// The same, and removes the temporary folders of what has ended, which may take as long as a program
/// likes that has filled its own.
pub(crate) fn reap_and_remove() {
    reap_pending();
    let mut done = Vec::new();
    for leftover in PENDING.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
        if leftover.has_ended() {
            done.extend(leftover.folder.take());
        }
    }
    // Not while others wait for the list.
    done.into_iter().for_each(SandboxFolder::remove);
    reap_pending();
}

/// Whether a group of this name is on its way out.
pub(crate) fn is_group_pending(name: &str) -> bool {
    let leftovers = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    leftovers.iter().filter_map(|leftover| leftover.group.as_ref()).any(|group| group.name() == name)
}

impl TreeCleanup {
    fn reap(&mut self) {
        self.root.take_if(|root| !matches!(root.reap(), Ok(None)));
        self.group.take_if(|group| group.remove().is_ok());
        self.recorders.retain(|recorder| !recorder.has_finished());
    }

    fn has_ended(&self) -> bool {
        self.root.is_none() && self.group.is_none()
    }

    fn is_done(&self) -> bool {
        self.has_ended() && self.recorders.is_empty() && self.folder.is_none()
    }
}
