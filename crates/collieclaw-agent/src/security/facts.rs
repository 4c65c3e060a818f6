//! The gate's view of the real machine. Files are inspected through `O_PATH` handles, which don't open the file itself,
//! so that no pipe blocks, no device reacts and no automount is triggered.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use collieclaw_gate::{MachineFacts, PathStatus, ScriptContent};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use ward_ledger::Sha256Hash;

use super::blocking_workers::BlockingWorkers;
use super::workspace::{read_folder_names, real_path};
use crate::workspaces::read_program_file;

/// The folders that are searched for programs, in this order. Folders with locally installed programs come last, so that
/// the name of an allowed program finds the system's program.
pub(crate) const PROGRAM_FOLDERS: [&str; 6] =
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// The maximum number of names in a folder. A pattern is not compared with the names of a larger folder.
const MAX_NAMES: usize = 100_000;

/// The maximum number of symlinks in one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// The time after which a file system counts as unreachable.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads for lookups, because a lookup may block on an unreachable file system.
static LOOKUP_WORKERS: BlockingWorkers = BlockingWorkers::new(64);

/// The current state of the real machine.
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

    fn is_trusted_program(&self, path: &Path) -> bool {
        let path = path.to_owned();
        let real = path.clone();
        let found = LOOKUP_WORKERS.run(LOOKUP_TIMEOUT, move || trusted_home_program(&path)).flatten();
        found.is_some_and(|found| found == real)
    }

    fn judges_executions(&self) -> bool {
        exec_judging_fault().is_none()
    }

    fn is_same_program(&self, file: &Path, program: &Path) -> bool {
        has_same_content(file, program).unwrap_or(false)
    }

    fn read_script(&self, path: &Path) -> Option<ScriptContent> {
        let path = path.to_owned();
        let content = LOOKUP_WORKERS.run(LOOKUP_TIMEOUT, move || read_program_file(&path).ok()).flatten()?;
        let first_line =
            content.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next());
        let interpreter_line = first_line.and_then(|line| String::from_utf8(line.to_vec()).ok());
        Some(ScriptContent { sha256: Sha256Hash::of(&[&content]).to_string(), interpreter_line })
    }
}

/// Returns the reason why programs can't be judged when they are executed, or `None` if they can. The answer is found
/// once per process.
pub(crate) fn exec_judging_fault() -> Option<&'static str> {
    static FAULT: OnceLock<Option<String>> = OnceLock::new();
    FAULT.get_or_init(|| ward_process::probe_exec_judging().err()).as_deref()
}

fn has_same_content(file: &Path, program: &Path) -> std::io::Result<bool> {
    let [one, other] = [std::fs::metadata(file)?, std::fs::metadata(program)?];
    if (one.dev(), one.ino()) == (other.dev(), other.ino()) {
        return Ok(true);
    }
    Ok(one.len() == other.len() && read_program_file(file)? == read_program_file(program)?)
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

/// Returns the real path of an executable program, unless everybody can write to the file or its folder.
fn trusted_program_at(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let file = std::fs::metadata(&real).ok()?;
    let folder = std::fs::metadata(real.parent()?).ok()?;
    let mode = |status: &std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&status.permissions());
    let others_write = mode(&file) & 0o002 != 0 || mode(&folder) & 0o002 != 0;
    let runs = file.is_file() && rustix::fs::access(&real, rustix::fs::Access::EXEC_OK).is_ok();
    (runs && !others_write).then_some(real)
}

/// Returns the real path of a program outside of the system's folders, unless another user can replace it: the program
/// and its folders belong to this user or to root, and no folder on the way is open to everybody.
pub(crate) fn trusted_home_program(path: &Path) -> Option<PathBuf> {
    let real = trusted_program_at(path)?;
    let owners = [0, rustix::process::geteuid().as_raw()];
    let is_ours = |place: &Path| std::fs::metadata(place).is_ok_and(|known| owners.contains(&known.uid()));
    let is_open = |place: &Path| {
        // Everybody may write to a sticky folder such as `/tmp`, but not replace what belongs to others.
        std::fs::metadata(place).is_ok_and(|known| known.mode() & 0o1002 == 0o002)
    };
    let folders = [real.parent()?, path.parent()?];
    let others_can_replace = folders.iter().any(|folder| {
        folder.ancestors().any(is_open)
            || std::fs::metadata(folder).is_ok_and(|known| known.mode() & 0o002 != 0)
    });
    (is_ours(&real) && folders.iter().all(|folder| is_ours(folder)) && !others_can_replace).then_some(real)
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

/// Returns the path at which a missing file would be created. Symlinks are followed one by one, because the last one may
/// be broken.
fn resolve_missing(path: &Path) -> Option<PathStatus> {
    let mut pending = reversed_components(path)?;
    let mut at = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut links = 0;
    while let Some(name) = pending.pop() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = match openat(&at, &name, flags, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) => {
                let mut leads_to = real_path(at.as_fd()).ok()?.join(name);
                leads_to.extend(pending.iter().rev());
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
        // The leading slash is only needed to split a relative target; `at` says where the target starts.
        pending.append(&mut reversed_components(Path::new("/").join(target).as_path())?);
    }
    // The path exists now, so the file was created in the meantime.
    inspect_handle(&at)
}

/// Returns the components of an absolute path in reverse order.
fn reversed_components(path: &Path) -> Option<Vec<OsString>> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.is_absolute().then(|| path.components().rev().filter_map(step).collect())
}
