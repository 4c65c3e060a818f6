//! What the gate is told about the real machine. Files are looked at, never opened: what is there is found out with
//! handles that can't read, so that no pipe blocks, no device wakes and no mount is made.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use collieclaw_gate::{MachineFacts, PathStatus};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

use super::blocking_workers::BlockingWorkers;
use super::workspace::{read_folder_names, real_path};

/// Where programs are looked for, in this order. What an administrator added comes last, so that a listed name means
/// the program of the system.
pub(crate) const PROGRAM_FOLDERS: [&str; 6] =
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Names in one folder that a pattern is compared with. More than this is no folder that anyone means by `*`.
const MAX_NAMES: usize = 100_000;

/// Links on one way; the kernel has the same limit.
const MAX_LINKS: usize = 40;

/// A file system that answers a look no sooner is one that nobody can use.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Looks that wait for a file system that is gone.
static LOOKUP_WORKERS: BlockingWorkers = BlockingWorkers::new(64);

/// The real machine, as it is now.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemFacts;

impl MachineFacts for SystemFacts {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let path = path.to_owned();
        LOOKUP_WORKERS.run(LOOKUP_TIMEOUT, move || inspect_path(&path)).unwrap_or(PathStatus::Unreachable)
    }

    fn names_in(&self, folder: &Path) -> Option<Vec<String>> {
        let folder = folder.to_owned();
        LOOKUP_WORKERS.run(LOOKUP_TIMEOUT, move || read_names(&folder))?
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") {
            return None;
        }
        PROGRAM_FOLDERS.iter().find_map(|folder| trusted_program_at(&Path::new(folder).join(name)))
    }
}

fn inspect_path(path: &Path) -> PathStatus {
    match openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(handle) => inspect_handle(&handle).unwrap_or(PathStatus::Unreachable),
        Err(Errno::NOENT) => resolve_missing(path).unwrap_or(PathStatus::Unreachable),
        Err(_) => PathStatus::Unreachable,
    }
}

fn read_names(folder: &Path) -> Option<Vec<String>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = openat(CWD, folder, flags, Mode::empty()).ok()?;
    let listed = read_folder_names(&handle, MAX_NAMES).ok()?;
    if listed.truncated {
        return None;
    }
    listed.names.into_iter().map(|name| name.into_string().ok()).collect()
}

/// The file of a program, if nobody but its owner and its group can put another in its place.
fn trusted_program_at(path: &Path) -> Option<PathBuf> {
    let place = path.canonicalize().ok()?;
    let file = std::fs::metadata(&place).ok()?;
    let folder = std::fs::metadata(place.parent()?).ok()?;
    let mode = |status: &std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&status.permissions());
    let others_write = mode(&file) & 0o002 != 0 || mode(&folder) & 0o002 != 0;
    let runs = file.is_file() && rustix::fs::access(&place, rustix::fs::Access::EXEC_OK).is_ok();
    (runs && !others_write).then_some(place)
}

fn inspect_handle(handle: &OwnedFd) -> Option<PathStatus> {
    let status = fstat(handle).ok()?;
    let leads_to = real_path(handle.as_fd()).ok()?;
    Some(match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => PathStatus::File { leads_to, link_count: link_count(&status) },
        FileType::Directory => PathStatus::Folder { leads_to },
        _ => PathStatus::Special { leads_to },
    })
}

#[expect(clippy::useless_conversion, reason = "the width of this number depends on the architecture")]
fn link_count(status: &Stat) -> u64 {
    status.st_nlink.into()
}

/// Where something that is not there would be made. The way is walked link by link, because the last link may be the
/// one that leads nowhere.
fn resolve_missing(path: &Path) -> Option<PathStatus> {
    let mut ahead = reversed_components(path)?;
    let mut at = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = match openat(&at, &step, flags, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) => {
                let mut leads_to = real_path(at.as_fd()).ok()?.join(step);
                leads_to.extend(ahead.iter().rev());
                return Some(PathStatus::Missing { leads_to: collieclaw_gate::normalize_path(&leads_to) });
            }
            Err(_) => return None,
        };
        if FileType::from_raw_mode(fstat(&next).ok()?.st_mode) != FileType::Symlink {
            at = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        let target = rustix::fs::readlinkat(&next, c"", Vec::new()).ok()?.into_bytes();
        let target = PathBuf::from(OsString::from_vec(target));
        if target.is_absolute() {
            at = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        }
        ahead.append(&mut reversed_components(Path::new("/").join(target).as_path())?);
    }
    // It came into being meanwhile.
    inspect_handle(&at)
}

/// The names of an absolute path, the first one last.
fn reversed_components(path: &Path) -> Option<Vec<OsString>> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.is_absolute().then(|| path.components().rev().filter_map(step).collect())
}
