//! Removes folders of supervisors that were killed before they could clean up.
//!
//! Only folders of programs that die with their supervisor are removed. Other programs may outlive the
//! supervisor, and their tree records name their folders. The supervisor that uses a folder is alive and
//! holds a lock on the folder. Both facts are checked: a lock vanishes when its handle is closed, and the pid
//! of a process in another PID namespace says nothing here.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;

use super::{PrivateFolder, RemovalBudget, open_for_removal};

/// Prefix of the names of these folders. The pid of the creator and a dash follow.
pub(in super::super) const PREFIX: &str = "ward-run-";

/// Number of names to check in one call. The rest of a crowded folder is left to later calls.
const MAX_NAMES: usize = 10_000;

/// Limits of one call on removed entries and time, because the first start of a program waits for it.
const MAX_ENTRIES: u32 = 100_000;
const MAX_TIME: Duration = Duration::from_secs(1);

/// Locks a new folder. Returns false if the folder can't be used because another process has locked or
/// removed it as an abandoned one, between its creation and this call.
pub(super) fn lock_new_folder(folder: &impl std::os::fd::AsFd) -> Result<bool, Errno> {
    // A file system without locks is no error: abandoned folders are never removed there.
    let taken = flock(folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    Ok(!taken && rustix::fs::fstat(folder)?.st_nlink > 0)
}

/// Removes the abandoned folders in `parent` within the limits above. Folders that can't be removed stay.
pub(in super::super) fn remove_abandoned(parent: &Path) {
    let mut budget = RemovalBudget::new(MAX_ENTRIES, MAX_TIME);
    let deadline = Instant::now() + MAX_TIME;
    for entry in std::fs::read_dir(parent).into_iter().flatten().take(MAX_NAMES).flatten() {
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
    let creator = number.and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    creator.is_some_and(|creator| rustix::process::test_kill_process(creator) == Err(Errno::SRCH))
}

/// Opens and locks a folder of our own user that no process has locked. As long as the handle lives, no other
/// process removes the folder.
fn open_abandoned(path: &Path) -> Option<PrivateFolder> {
    let own_user = rustix::process::geteuid().as_raw();
    if rustix::fs::lstat(path).ok()?.st_uid != own_user {
        return None;
    }
    let handle = open_for_removal(rustix::fs::CWD, path).ok()?;
    let is_ours = rustix::fs::fstat(&handle).ok()?.st_uid == own_user;
    let is_locked = is_ours && flock(&handle, FlockOperation::NonBlockingLockExclusive).is_ok();
    is_locked.then(|| PrivateFolder { path: path.to_owned(), handle })
}
