//! Folders of supervisors that were killed before they could clean up.
//!
//! Only those of programs that die with their supervisor are swept away; others may outlive it, and their records tell
//! of their folders. Whoever uses such a folder holds a lock on it, and is alive: both are looked at, because a lock is
//! gone with its handle, and a process in another namespace has no number here.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;

use super::{PrivateFolder, RemovalBudget, open_for_removal};

/// What the names of these folders begin with; then the number of the process that made it, and a dash.
pub(in super::super) const PREFIX: &str = "ward-run-";

/// Names looked at in one sweep. A crowded folder is swept bit by bit.
const NAMES: usize = 10_000;

/// Entries and time of one sweep: a first start waits for it.
const ENTRIES: u32 = 100_000;
const TIME: Duration = Duration::from_secs(1);

/// Takes the lock of a new folder. Whether it is ours: a sweep may have been faster than its maker.
pub(super) fn lock_new_folder(folder: &impl std::os::fd::AsFd) -> Result<bool, Errno> {
    // Where there are no locks nothing is swept, either.
    let taken = flock(folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    Ok(!taken && rustix::fs::fstat(folder)?.st_nlink > 0)
}

/// Removes what was left in a folder, as far as that is done soon. What can't be removed stays.
pub(in super::super) fn remove_abandoned(parent: &Path) {
    let mut budget = RemovalBudget::new(ENTRIES, TIME);
    let deadline = Instant::now() + TIME;
    for entry in std::fs::read_dir(parent).into_iter().flatten().take(NAMES).flatten() {
        if Instant::now() > deadline {
            break;
        }
        if entry.file_name().to_str().is_some_and(creator_has_exited)
            && let Some(folder) = open_abandoned(&entry.path())
        {
            folder.remove_within(&mut budget);
        }
    }
}

fn creator_has_exited(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).map(|(number, _)| number);
    let maker = number.and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    maker.is_some_and(|maker| rustix::process::test_kill_process(maker) == Err(Errno::SRCH))
}

/// A folder of our user that nobody holds. While the handle lives nobody else sweeps it.
fn open_abandoned(path: &Path) -> Option<PrivateFolder> {
    let us = rustix::process::geteuid().as_raw();
    if rustix::fs::lstat(path).ok()?.st_uid != us {
        return None;
    }
    let handle = open_for_removal(rustix::fs::CWD, path).ok()?;
    let ours = rustix::fs::fstat(&handle).ok()?.st_uid == us;
    let free = ours && flock(&handle, FlockOperation::NonBlockingLockExclusive).is_ok();
    free.then(|| PrivateFolder { path: path.to_owned(), handle })
}
