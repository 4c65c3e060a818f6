//! Reaps processes and removes cgroups and temporary folders that dropped tree handles left behind.
//!
//! Children belong to the whole process, so all supervisors share one list of pending cleanups. Every spawn
//! and every poll works through the list.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, TryLockError};

use crate::cgroup::Cgroup;
use crate::output::OutputRecorder;
use crate::sandbox::{self, PreparedSandbox};
use crate::tree::RootHandle;

static PENDING: Mutex<Vec<TreeCleanup>> = Mutex::new(Vec::new());

/// The remains of a tree. The entry leaves the list when all of them are cleaned up.
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
    /// A folder that an earlier supervisor process made, known from a tree record.
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

/// Cleans up at once if possible, and puts the rest on the list.
pub(crate) fn defer_cleanup(mut cleanup: TreeCleanup) {
    cleanup.reap();
    if !cleanup.is_done() {
        PENDING.lock().unwrap_or_else(PoisonError::into_inner).push(cleanup);
    }
}

/// Reaps processes that have ended and removes empty groups. Never waits, neither for a process nor for
/// another thread.
pub(crate) fn reap_pending() {
    let mut pending = match PENDING.try_lock() {
        Ok(pending) => pending,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    pending.retain_mut(|cleanup| {
        cleanup.reap();
        !cleanup.is_done()
    });
}

/// Does the work of [`reap_pending`] and also removes the temporary folders of trees that have ended. A
/// program can make this slow by filling its folder.
pub(crate) fn reap_and_remove() {
    reap_pending();
    let mut folders = Vec::new();
    for cleanup in PENDING.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
        if cleanup.has_ended() {
            folders.extend(cleanup.folder.take());
        }
    }
    // The lock is released here, so a slow removal doesn't block other threads.
    folders.into_iter().for_each(SandboxFolder::remove);
    reap_pending();
}

/// Returns true if a group of this name is waiting for its removal.
pub(crate) fn is_group_pending(name: &str) -> bool {
    let pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    pending.iter().filter_map(|cleanup| cleanup.group.as_ref()).any(|group| group.name() == name)
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
