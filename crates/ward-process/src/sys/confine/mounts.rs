//! Every mount read-only but the trees that can be written, in a mount namespace of the child's own.
//!
//! Landlock has no right for `chmod`, `chown`, `touch` or extended attributes, so that a program
//! could lay open or lock away any file of its user. A read-only mount refuses them all.

use std::ffi::{CStr, CString};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags};

/// The trees that stay writable.
#[derive(Debug)]
pub(crate) struct ReadOnlyMounts {
    writable: Vec<Tree>,
}

#[derive(Debug)]
struct Tree {
    path: CString,
    /// The child, which can't allocate, keeps its handle on a copy of the tree here.
    copy: AtomicI32,
}

impl ReadOnlyMounts {
    /// Devices need no exception: what is written to them does not reach the mount.
    pub(crate) fn all_but(trees: &[PathBuf]) -> Result<Self, (PathBuf, Errno)> {
        let mut writable = Vec::with_capacity(trees.len());
        for tree in trees {
            if let Some(path) = resolve(tree).map_err(|errno| (tree.clone(), errno))? {
                writable.push(Tree { path, copy: AtomicI32::new(-1) });
            }
        }
        Ok(Self { writable })
    }

    /// To be called by a child in a mount namespace of its own, while it still has the privileges
    /// over it and before it enters its working directory. Async-signal-safe.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        let root = c"/";
        if self.writable.iter().any(|tree| tree.path.as_c_str() == root) {
            return Ok(());
        }
        set_attributes(root, &Attributes { propagation: libc::MS_PRIVATE, ..Attributes::default() })?;
        for tree in &self.writable {
            tree.copy.store(copy_of(&tree.path)?, Ordering::Relaxed);
        }
        set_attributes(root, &Attributes { set: MOUNT_ATTR_RDONLY, ..Attributes::default() })?;
        for tree in &self.writable {
            put_over(tree.copy.load(Ordering::Relaxed), &tree.path)?;
        }
        Ok(())
    }
}

/// Where the tree really is, since a mount point can't be a link; `None` for what is neither a
/// folder nor a regular file.
fn resolve(tree: &Path) -> Result<Option<CString>, Errno> {
    let errno_of = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let path = std::fs::canonicalize(tree).map_err(errno_of)?;
    let mode = rustix::fs::stat(&path)?.st_mode;
    match FileType::from_raw_mode(mode) {
        FileType::Directory | FileType::RegularFile => {
            CString::new(path.as_os_str().as_bytes()).map(Some).map_err(|_| Errno::INVAL)
        }
        _ => Ok(None),
    }
}

const MOUNT_ATTR_RDONLY: u64 = 1;

/// `struct mount_attr`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_attributes(path: &CStr, attributes: &Attributes) -> Result<(), Errno> {
    // SAFETY: the path is NUL-terminated, and the structure has the size that is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            std::ptr::from_ref(attributes),
            size_of::<Attributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(crate::sys::last_error()) }
}

fn copy_of(path: &CStr) -> Result<RawFd, Errno> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    rustix::mount::open_tree(rustix::fs::CWD, path, flags).map(OwnedFd::into_raw_fd)
}

fn put_over(copy: RawFd, path: &CStr) -> Result<(), Errno> {
    // SAFETY: `copy_of` opened it in this child, and nothing else here knows it.
    let copy = unsafe { OwnedFd::from_raw_fd(copy) };
    rustix::mount::move_mount(copy, c"", rustix::fs::CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
