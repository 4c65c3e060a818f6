//! What dropped handles leave to be reaped and removed, once it can be.
//!
//! Children belong to the whole process, so that there is one list for all supervisors. It is looked
//! through whenever something is spawned or polled.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, TryLockError};

use crate::cgroup::Cgroup;
use crate::output::Recorder;
use crate::sandbox::{self, Prepared};
use crate::tree::Root;

static LEFTOVERS: Mutex<Vec<Leftover>> = Mutex::new(Vec::new());

/// What is left of one tree. When nothing is, it leaves the list.
#[derive(Default)]
pub(crate) struct Leftover {
    pub(crate) root: Option<Root>,
    pub(crate) group: Option<Cgroup>,
    pub(crate) recorders: Vec<Recorder>,
    pub(crate) folder: Option<Folder>,
}

/// The temporary folder of a sandbox.
pub(crate) enum Folder {
    Made(Box<Prepared>),
    /// By an earlier process.
    Known(PathBuf),
}

impl Folder {
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Made(prepared) => prepared.temporary_folder().map(Path::to_owned),
            Self::Known(path) => Some(path.clone()),
        }
    }

    pub(crate) fn remove(self) {
        match self {
            Self::Made(mut prepared) => prepared.clean_up(),
            Self::Known(path) => sandbox::remove_private_folder(&path),
        }
    }
}

/// Puts something on the list, unless it is gone at once.
pub(crate) fn leave(mut leftover: Leftover) {
    leftover.reap();
    if !leftover.is_nothing() {
        LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).push(leftover);
    }
}

/// Reaps and removes what has ended. Never waits, neither for a process nor for another thread.
pub(crate) fn reap() {
    let mut leftovers = match LEFTOVERS.try_lock() {
        Ok(leftovers) => leftovers,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    leftovers.retain_mut(|leftover| {
        leftover.reap();
        !leftover.is_nothing()
    });
}

/// The same, and removes the temporary folders of what has ended, which may take as long as a program
/// likes that has filled its own.
pub(crate) fn tidy() {
    reap();
    let mut done = Vec::new();
    for leftover in LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
        if leftover.has_ended() {
            done.extend(leftover.folder.take());
        }
    }
    // Not while others wait for the list.
    done.into_iter().for_each(Folder::remove);
    reap();
}

/// Whether a group of this name is on its way out.
pub(crate) fn has_group(name: &str) -> bool {
    let leftovers = LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner);
    leftovers.iter().filter_map(|leftover| leftover.group.as_ref()).any(|group| group.name() == name)
}

impl Leftover {
    fn reap(&mut self) {
        self.root.take_if(|root| !matches!(root.reap(), Ok(None)));
        self.group.take_if(|group| group.remove().is_ok());
        self.recorders.retain(|recorder| !recorder.has_finished());
    }

    fn has_ended(&self) -> bool {
        self.root.is_none() && self.group.is_none()
    }

    fn is_nothing(&self) -> bool {
        self.has_ended() && self.recorders.is_empty() && self.folder.is_none()
    }
}
