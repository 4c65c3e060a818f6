//! Mounts a tmpfs over `/dev/shm`, and files of it over files of the system, in the child's own mount namespace.
//!
//! The rule set was made before these files existed, so the child adds their rules to it. A rule for the
//! covered `/dev/shm` would not count: Landlock skips directories that are hidden by a mount.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags};

use super::late_rules::add_rule;
use super::mounts::{MountAttributes, move_mount_over, set_attributes_at};

/// The folder in which POSIX semaphores and shared memory live. See `shm_overview(7)`.
const SHARED_MEMORY: &CStr = c"/dev/shm";

/// A plan for a tmpfs and its files, prepared by the parent.
#[derive(Debug)]
pub(crate) struct MemoryMounts {
    size: CString,
    replacements: Vec<ReplacementFile>,
    /// Landlock rights on the tmpfs and on the replacements.
    rights: MemoryRights,
}

/// The Landlock rights on files in memory, limited to those that the kernel knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryRights {
    pub(crate) shared_memory: u64,
    pub(crate) replacement: u64,
}

#[derive(Debug)]
struct ReplacementFile {
    path: CString,
    content: Vec<u8>,
}

impl MemoryMounts {
    pub(crate) fn new(max_bytes: u64, rights: MemoryRights) -> Result<Self, Errno> {
        let size = CString::new(max_bytes.to_string()).map_err(|_| Errno::INVAL)?;
        Ok(Self { size, replacements: Vec::new(), rights })
    }

    pub(crate) fn with_replacement(mut self, path: &Path, content: &[u8]) -> Result<Self, Errno> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        self.replacements.push(ReplacementFile { path, content: content.to_vec() });
        Ok(self)
    }

    /// Applies the plan after all other mounts. Async-signal-safe.
    pub(crate) fn enter(&self, ruleset: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        let Some(target) = open_target(SHARED_MEMORY, FileType::Directory)? else { return Ok(()) };
        let tmpfs = self.create_tmpfs()?;
        move_mount_over(&tmpfs, &target)?;
        for file in &self.replacements {
            if let Some(target) = open_target(&file.path, FileType::RegularFile)? {
                file.mount_over(&tmpfs, &target, ruleset, self.rights.replacement)?;
            }
        }
        add_rule(ruleset, tmpfs.as_fd(), self.rights.shared_memory)
    }

    fn create_tmpfs(&self) -> Result<OwnedFd, Errno> {
        let context = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(context.as_fd(), c"size", self.size.as_c_str())?;
        rustix::mount::fsconfig_set_string(context.as_fd(), c"mode", c"1777")?;
        rustix::mount::fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    }
}

impl ReplacementFile {
    /// Writes the file into the tmpfs, mounts it over the target and removes its name from the tmpfs, so that
    /// the program can reach it only through the read-only mount.
    fn mount_over(
        &self,
        tmpfs: &OwnedFd,
        target: &OwnedFd,
        ruleset: Option<BorrowedFd<'_>>,
        rights: u64,
    ) -> Result<(), Errno> {
        const NAME: &CStr = c".replacement";
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(tmpfs, NAME, flags, Mode::RUSR)?;
        let mut rest = self.content.as_slice();
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = rest.get(written..).unwrap_or_default();
        }
        // The umask of the program is in force already.
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        drop(file);
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let clone = rustix::mount::open_tree(tmpfs, NAME, flags)?;
        set_attributes_at(clone.as_raw_fd(), c"", libc::AT_EMPTY_PATH, &MountAttributes::read_only())?;
        move_mount_over(&clone, target)?;
        rustix::fs::unlinkat(tmpfs, NAME, AtFlags::empty())?;
        add_rule(ruleset, clone.as_fd(), rights)
    }
}

/// Opens a mount point. Returns `None` if there is no file of this kind, because then the system doesn't have
/// the file that is to be covered.
fn open_target(path: &CStr, kind: FileType) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let target = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        opened => opened?,
    };
    let found = FileType::from_raw_mode(rustix::fs::fstat(&target)?.st_mode);
    Ok((found == kind).then_some(target))
}
