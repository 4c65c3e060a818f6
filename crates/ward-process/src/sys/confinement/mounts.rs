//! Makes every mount read-only except the writable trees, in the child's own mount namespace.
//!
//! Landlock doesn't restrict `chmod`, `chown`, `utimensat` or extended attributes, so a program could make
//! any file of its user public or inaccessible. A read-only mount refuses all of these. See
//! `mount_setattr(2)`.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

/// A plan of mounts for a mount namespace in which everything but the writable trees is read-only.
#[derive(Debug)]
pub(crate) struct ReadOnlyMounts {
    writable: Vec<MountTree>,
    /// Folders between a writable tree and a read-only or closed tree inside of it, the outer ones first.
    /// They must not be renamed, or the program could move the inner tree away and replace it.
    fixed: Vec<MountTree>,
    /// Trees inside of writable trees that stay read-only.
    read_only: Vec<MountTree>,
    /// Trees that are covered with an empty folder or file.
    closed: Vec<MountTree>,
    /// The folder that is mounted over `/tmp`.
    private_tmp: Option<MountTree>,
}

/// A folder or a regular file that the parent has opened. The child can't mount over the parent's handle,
/// which belongs to the parent's mount namespace. It opens the path again and checks that it reaches the same
/// file.
#[derive(Debug)]
struct MountTree {
    path: CString,
    status: Stat,
    /// Keeps the inode number from being reused by another file.
    _pinned: OwnedFd,
    /// The child's handles on the tree and on the clone of its mount, stored here because the child can't
    /// allocate.
    target_fd: AtomicI32,
    clone_fd: AtomicI32,
}

impl ReadOnlyMounts {
    /// Plans read-only mounts everywhere except in these trees. Devices need no exception, because a
    /// read-only mount doesn't prevent writing to them.
    pub(crate) fn all_but(trees: Vec<OwnedFd>) -> Result<Self, Errno> {
        Ok(Self {
            writable: outermost_trees(trees)?,
            fixed: Vec::new(),
            read_only: Vec::new(),
            closed: Vec::new(),
            private_tmp: None,
        })
    }

    /// Adds trees that stay read-only, even inside of writable trees.
    pub(crate) fn with_read_only(self, trees: Vec<OwnedFd>) -> Result<Self, Errno> {
        Self { read_only: outermost_trees(trees)?, ..self }.with_fixed_parents()
    }

    /// Returns the folders between a writable tree and a tree inside of it.
    fn folders_around(&self, tree: &MountTree) -> Vec<PathBuf> {
        let path = tree.path();
        let root = self.writable.iter().map(MountTree::path).find(|root| path.starts_with(root));
        let inside = |folder: &&Path| root.is_some_and(|root| *folder != root && folder.starts_with(root));
        path.ancestors().skip(1).take_while(inside).map(Path::to_owned).collect()
    }

    /// Adds trees that are closed, even inside of readable or writable trees.
    pub(crate) fn with_closed(self, trees: Vec<OwnedFd>) -> Result<Self, Errno> {
        Self { closed: outermost_trees(trees)?, ..self }.with_fixed_parents()
    }

    /// Adds a writable folder that takes the place of `/tmp`.
    pub(crate) fn with_private_tmp(self, folder: &Path) -> Result<Self, Errno> {
        Ok(Self { private_tmp: Some(MountTree::open_path(folder)?), ..self })
    }

    fn with_fixed_parents(self) -> Result<Self, Errno> {
        let inner_trees = self.read_only.iter().chain(&self.closed);
        let mut around: Vec<PathBuf> = inner_trees.flat_map(|tree| self.folders_around(tree)).collect();
        around.sort();
        around.dedup();
        let fixed = around.iter().map(|folder| MountTree::open_path(folder)).collect::<Result<_, _>>()?;
        Ok(Self { fixed, ..self })
    }

    /// Applies the plan. To be called by a child in a mount namespace of its own, while it still has
    /// privileges over the namespace and before it changes to its working directory. Async-signal-safe.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        let root = c"/";
        set_attributes(
            root,
            &MountAttributes { propagation: libc::MS_PRIVATE, ..MountAttributes::default() },
        )?;
        if !self.writable.iter().any(|tree| tree.path.as_c_str() == root) {
            self.writable.iter().try_for_each(MountTree::clone_mount)?;
            set_attributes(root, &MountAttributes::read_only())?;
            self.writable.iter().try_for_each(MountTree::mount_clone)?;
        }
        // A folder that is mounted over itself is a mount point, which can't be renamed or removed (`EBUSY`).
        self.fixed.iter().try_for_each(|tree| tree.bind_over_itself(&MountAttributes::default()))?;
        let read_only = MountAttributes::read_only();
        self.read_only.iter().try_for_each(|tree| tree.bind_over_itself(&read_only))?;
        self.closed.iter().try_for_each(MountTree::mount_empty_over)?;
        // Last, because it hides the folder's own path.
        self.private_tmp.as_ref().map_or(Ok(()), MountTree::mount_over_tmp)
    }
}

impl MountTree {
    fn new(path: &Path, status: Stat, pinned: OwnedFd) -> Result<Self, Errno> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        let [target_fd, clone_fd] = [-1, -1].map(AtomicI32::new);
        Ok(Self { path, status, _pinned: pinned, target_fd, clone_fd })
    }

    /// Opens the file at a path, without following a symlink in the last component.
    fn open_path(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        Self::new(path, rustix::fs::fstat(&handle)?, handle)
    }

    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.as_bytes()))
    }

    /// Opens the same file in the child's mount namespace. Fails with `ESTALE` if the path now leads to
    /// another file.
    fn open_in_child(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = rustix::fs::open(&self.path, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&target)?;
        if (status.st_dev, status.st_ino) != (self.status.st_dev, self.status.st_ino) {
            return Err(Errno::STALE);
        }
        Ok(target)
    }

    /// Mounts an empty folder or file over the tree.
    fn mount_empty_over(&self) -> Result<(), Errno> {
        let target = self.open_in_child()?;
        let cover = if FileType::from_raw_mode(self.status.st_mode) == FileType::Directory {
            empty_tmpfs()?
        } else {
            let null = rustix::fs::open(c"/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            clone_mount_tree(null.as_fd())?
        };
        move_mount_over(&cover, &target)
    }

    fn bind_over_itself(&self, attributes: &MountAttributes) -> Result<(), Errno> {
        let target = self.open_in_child()?;
        let clone = clone_mount_tree(target.as_fd())?;
        set_attributes_at(clone.as_raw_fd(), c"", libc::AT_EMPTY_PATH, attributes)?;
        move_mount_over(&clone, &target)
    }

    /// Mounts the tree over the system's folder for temporary files.
    fn mount_over_tmp(&self) -> Result<(), Errno> {
        let clone = clone_mount_tree(self.open_in_child()?.as_fd())?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        move_mount_over(&clone, &rustix::fs::open(c"/tmp", flags, Mode::empty())?)
    }

    fn clone_mount(&self) -> Result<(), Errno> {
        let target = self.open_in_child()?;
        self.clone_fd.store(clone_mount_tree(target.as_fd())?.into_raw_fd(), Ordering::Relaxed);
        self.target_fd.store(target.into_raw_fd(), Ordering::Relaxed);
        Ok(())
    }

    fn mount_clone(&self) -> Result<(), Errno> {
        // SAFETY: `clone_mount` opened both descriptors in this child, and no other code owns them.
        let [clone, target] = unsafe { [take_fd(&self.clone_fd), take_fd(&self.target_fd)] };
        move_mount_over(&clone, &target)
    }
}

/// Returns the trees that are not inside of another tree of the list; an outer tree covers its inner ones.
fn outermost_trees(trees: Vec<OwnedFd>) -> Result<Vec<MountTree>, Errno> {
    let mut found: Vec<(PathBuf, Stat, OwnedFd)> = Vec::with_capacity(trees.len());
    for handle in trees {
        let status = rustix::fs::fstat(&handle)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        if matches!(kind, FileType::Directory | FileType::RegularFile) {
            found.push((path_of(handle.as_fd())?, status, handle));
        }
    }
    found.sort_by(|(left, ..), (right, ..)| left.cmp(right));
    found.dedup_by(|(inner, ..), (outer, ..)| inner.starts_with(outer));
    found.into_iter().map(|(path, status, handle)| MountTree::new(&path, status, handle)).collect()
}

pub(super) fn move_mount_over(mount: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, c"", target, c"", flags)
}

/// Creates an empty, read-only tmpfs that isn't mounted anywhere yet.
fn empty_tmpfs() -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn clone_mount_tree(tree: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    rustix::mount::open_tree(tree, c"", flags)
}

/// Takes ownership of a stored descriptor.
///
/// # Safety
/// The number must be that of an open descriptor that no other code owns.
unsafe fn take_fd(number: &AtomicI32) -> OwnedFd {
    let number: RawFd = number.swap(-1, Ordering::Relaxed);
    // SAFETY: the caller guarantees that the descriptor is open and owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Returns the path of an open file, with all symlinks resolved.
fn path_of(handle: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let text = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(OsString::from_vec(text.into_bytes()).into())
}

const MOUNT_ATTR_RDONLY: u64 = 1;

/// The kernel's `struct mount_attr`.
#[repr(C)]
#[derive(Default)]
pub(super) struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

impl MountAttributes {
    pub(super) fn read_only() -> Self {
        Self { set: MOUNT_ATTR_RDONLY, ..Self::default() }
    }
}

fn set_attributes(path: &CStr, attributes: &MountAttributes) -> Result<(), Errno> {
    set_attributes_at(libc::AT_FDCWD, path, 0, attributes)
}

pub(super) fn set_attributes_at(
    from: RawFd,
    path: &CStr,
    flags: libc::c_int,
    attributes: &MountAttributes,
) -> Result<(), Errno> {
    // SAFETY: the path is NUL-terminated, and the structure has the given size.
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
