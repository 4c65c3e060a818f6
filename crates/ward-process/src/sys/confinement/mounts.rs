//! Every mount read-only but the trees that can be written, in a mount namespace of the child's own.
//!
//! Landlock has no right for `chmod`, `chown`, `touch` or extended attributes, so that a program
//! could lay open or lock away any file of its user. A read-only mount refuses them all.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

/// The trees that stay writable.
#[derive(Debug)]
pub(crate) struct ReadOnlyMounts {
    writable: Vec<MountTree>,
    /// Folders in them that stay where they are, because of what they hold, the outer ones first.
    fixed: Vec<MountTree>,
    /// What lies in them and is read-only all the same.
    read_only: Vec<MountTree>,
    /// What lies in other trees and is covered with something empty.
    closed: Vec<MountTree>,
}

/// A folder or a regular file that the parent has opened. The child can't use that handle, which
/// belongs to the parent's mounts; it opens the path and makes sure that it leads to the same.
#[derive(Debug)]
struct MountTree {
    path: CString,
    status: Stat,
    /// Keeps the number of the file from being given to another one.
    _pinned: OwnedFd,
    /// The child, which can't allocate, keeps its handles here: on the tree and on a copy of it.
    target_fd: AtomicI32,
    clone_fd: AtomicI32,
}

impl ReadOnlyMounts {
    /// Devices need no exception: what is written to them does not reach the mount.
    pub(crate) fn all_but(trees: Vec<OwnedFd>) -> Result<Self, Errno> {
        Ok(Self {
            writable: outermost_trees(trees)?,
            fixed: Vec::new(),
            read_only: Vec::new(),
            closed: Vec::new(),
        })
    }

    /// These stay as they are, wherever they lie.
    pub(crate) fn with_read_only(self, trees: Vec<OwnedFd>) -> Result<Self, Errno> {
        Self { read_only: outermost_trees(trees)?, ..self }.with_fixed_parents()
    }

    /// The folders between a writable tree and something in it.
    fn folders_around(&self, tree: &MountTree) -> Vec<PathBuf> {
        let path = tree.path();
        let root = self.writable.iter().map(MountTree::path).find(|root| path.starts_with(root));
        let inside = |folder: &&Path| root.is_some_and(|root| *folder != root && folder.starts_with(root));
        path.ancestors().skip(1).take_while(inside).map(Path::to_owned).collect()
    }

    /// These stay out of reach, wherever they lie.
    pub(crate) fn with_closed(self, trees: Vec<OwnedFd>) -> Result<Self, Errno> {
        Self { closed: outermost_trees(trees)?, ..self }.with_fixed_parents()
    }

    fn with_fixed_parents(self) -> Result<Self, Errno> {
        let held = self.read_only.iter().chain(&self.closed);
        let mut around: Vec<PathBuf> = held.flat_map(|tree| self.folders_around(tree)).collect();
        around.sort();
        around.dedup();
        let fixed = around.iter().map(|folder| MountTree::open_path(folder)).collect::<Result<_, _>>()?;
        Ok(Self { fixed, ..self })
    }

    /// To be called by a child in a mount namespace of its own, while it still has the privileges
    /// over it and before it enters its working directory. Async-signal-safe.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        let root = c"/";
        set_attributes(
            root,
            &MountAttributes { propagation: libc::MS_PRIVATE, ..MountAttributes::default() },
        )?;
        if !self.writable.iter().any(|tree| tree.path.as_c_str() == root) {
            self.writable.iter().try_for_each(MountTree::clone_mount)?;
            set_attributes(root, &MountAttributes { set: MOUNT_ATTR_RDONLY, ..MountAttributes::default() })?;
            self.writable.iter().try_for_each(MountTree::mount_clone)?;
        }
        // Over itself: nobody can rename or remove what something is mounted on.
        self.fixed.iter().try_for_each(|tree| tree.bind_over_itself(&MountAttributes::default()))?;
        let read_only = MountAttributes { set: MOUNT_ATTR_RDONLY, ..MountAttributes::default() };
        self.read_only.iter().try_for_each(|tree| tree.bind_over_itself(&read_only))?;
        self.closed.iter().try_for_each(MountTree::mount_empty_over)
    }
}

impl MountTree {
    fn new(path: &Path, status: Stat, pinned: OwnedFd) -> Result<Self, Errno> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        let [place, copy] = [-1, -1].map(AtomicI32::new);
        Ok(Self { path, status, _pinned: pinned, target_fd: place, clone_fd: copy })
    }

    /// What is at a path without a link at its end.
    fn open_path(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        Self::new(path, rustix::fs::fstat(&handle)?, handle)
    }

    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.as_bytes()))
    }

    /// The same in the mounts of the child.
    fn open_in_child(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = rustix::fs::open(&self.path, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&place)?;
        if (status.st_dev, status.st_ino) != (self.status.st_dev, self.status.st_ino) {
            return Err(Errno::STALE);
        }
        Ok(place)
    }

    /// Puts something empty over it.
    fn mount_empty_over(&self) -> Result<(), Errno> {
        let place = self.open_in_child()?;
        let cover = if FileType::from_raw_mode(self.status.st_mode) == FileType::Directory {
            empty_tmpfs()?
        } else {
            let null = rustix::fs::open(c"/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            clone_mount_tree(null.as_fd())?
        };
        move_mount_over(&cover, &place)
    }

    fn bind_over_itself(&self, attributes: &MountAttributes) -> Result<(), Errno> {
        let place = self.open_in_child()?;
        let copy = clone_mount_tree(place.as_fd())?;
        set_attributes_at(copy.as_raw_fd(), c"", libc::AT_EMPTY_PATH, attributes)?;
        move_mount_over(&copy, &place)
    }

    fn clone_mount(&self) -> Result<(), Errno> {
        let place = self.open_in_child()?;
        self.clone_fd.store(clone_mount_tree(place.as_fd())?.into_raw_fd(), Ordering::Relaxed);
        self.target_fd.store(place.into_raw_fd(), Ordering::Relaxed);
        Ok(())
    }

    fn mount_clone(&self) -> Result<(), Errno> {
        // SAFETY: `clone_mount` opened both in this child, and nothing else here knows them.
        let [copy, place] = unsafe { [take_fd(&self.clone_fd), take_fd(&self.target_fd)] };
        move_mount_over(&copy, &place)
    }
}

/// Those that lie in no other of them, which is where they are dealt with.
fn outermost_trees(trees: Vec<OwnedFd>) -> Result<Vec<MountTree>, Errno> {
    let mut found: Vec<(PathBuf, Stat, OwnedFd)> = Vec::with_capacity(trees.len());
    for handle in trees {
        let status = rustix::fs::fstat(&handle)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        if matches!(kind, FileType::Directory | FileType::RegularFile) {
            found.push((path_of(handle.as_fd())?, status, handle));
        }
    }
    found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    found.dedup_by(|(inner, ..), (outer, ..)| inner.starts_with(outer));
    found.into_iter().map(|(path, status, handle)| MountTree::new(&path, status, handle)).collect()
}

fn move_mount_over(mount: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, c"", place, c"", flags)
}

/// A file system of its own without a file in it.
fn empty_tmpfs() -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn clone_mount_tree(place: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    rustix::mount::open_tree(place, c"", flags)
}

/// # Safety
/// The number must be that of an open descriptor which nobody else owns.
unsafe fn take_fd(number: &AtomicI32) -> OwnedFd {
    let number: RawFd = number.swap(-1, Ordering::Relaxed);
    // SAFETY: the caller vouches for it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Where the handle really leads, without a link.
fn path_of(handle: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let text = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(OsString::from_vec(text.into_bytes()).into())
}

const MOUNT_ATTR_RDONLY: u64 = 1;

/// `struct mount_attr`.
#[repr(C)]
#[derive(Default)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_attributes(path: &CStr, attributes: &MountAttributes) -> Result<(), Errno> {
    set_attributes_at(libc::AT_FDCWD, path, 0, attributes)
}

fn set_attributes_at(
    from: RawFd,
    path: &CStr,
    flags: libc::c_int,
    attributes: &MountAttributes,
) -> Result<(), Errno> {
    // SAFETY: the path is NUL-terminated, and the structure has the size that is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            from,
            path.as_ptr(),
            libc::AT_RECURSIVE | flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(crate::sys::last_error()) }
}
