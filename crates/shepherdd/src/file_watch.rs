//! Watches files that change from outside: the policy, the system's time zone and its accounts. Their folders are
//! watched, because these files are replaced by a rename.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify;
use shepherd_ipc::{GROUPS_FILE, USERS_FILE};
use tokio::io::unix::AsyncFd;

use crate::sys;
use crate::zone::ZONE_FILE;

/// A file that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedFile {
    Policy,
    Zone,
    /// The users or groups of this machine.
    Accounts,
}

/// Watches all these files.
pub(crate) struct FileWatcher {
    descriptor: AsyncFd<OwnedFd>,
    watched: Vec<(i32, OsString, WatchedFile)>,
    pending: Vec<WatchedFile>,
}

impl FileWatcher {
    /// Watches what can be watched, and returns the reason for each file that can't.
    pub(crate) fn new(policy: &Path) -> io::Result<(Self, Vec<String>)> {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let descriptor = sys::register_readable(inotify::init(flags)?)?;
        let mut watch = Self { descriptor, watched: Vec::new(), pending: Vec::new() };
        let files = [
            (policy, WatchedFile::Policy),
            (Path::new(ZONE_FILE), WatchedFile::Zone),
            (Path::new(USERS_FILE), WatchedFile::Accounts),
            (Path::new(GROUPS_FILE), WatchedFile::Accounts),
        ];
        let failed = files.iter().filter_map(|(path, change)| {
            let error = watch.add(path, *change).err()?;
            Some(format!("could not watch {} for changes: {error}", path.display()))
        });
        let failed = failed.collect();
        Ok((watch, failed))
    }

    fn add(&mut self, path: &Path, change: WatchedFile) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let flags =
            inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::CREATE;
        let number = inotify::add_watch(self.descriptor.get_ref(), folder, flags)?;
        self.watched.push((number, name.to_owned(), change));
        Ok(())
    }

    /// Waits for the next change. Several changes of one file count as one.
    pub(crate) async fn next_change(&mut self) -> io::Result<WatchedFile> {
        loop {
            if let Some(change) = self.pending.pop() {
                return Ok(change);
            }
            let mut guard = self.descriptor.readable().await?;
            let watched = &self.watched;
            let seen = guard.try_io(|descriptor| read_changes(descriptor.get_ref(), watched));
            match seen {
                Ok(changes) => self.pending = changes?,
                Err(_would_block) => {}
            }
        }
    }
}

/// Reads all pending notifications.
fn read_changes(
    descriptor: &OwnedFd,
    watched: &[(i32, OsString, WatchedFile)],
) -> io::Result<Vec<WatchedFile>> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(descriptor, &mut buffer);
    let mut changes = Vec::new();
    let first = reader.next()?;
    let mut next = Some((first.wd(), event_file_name(&first), first.events()));
    while let Some((number, name, events)) = next {
        let overflow = events.contains(inotify::ReadFlags::QUEUE_OVERFLOW);
        for (known, file, change) in watched {
            if (overflow || (*known == number && name.as_ref() == Some(file))) && !changes.contains(change) {
                changes.push(*change);
            }
        }
        if reader.is_buffer_empty() {
            break;
        }
        next = reader.next().ok().map(|event| (event.wd(), event_file_name(&event), event.events()));
    }
    Ok(changes)
}

fn event_file_name(event: &inotify::Event<'_>) -> Option<OsString> {
    event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned())
}
