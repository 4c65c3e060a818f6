//! Opens every tree of a sandbox once. The Landlock rule and the mount of a tree are made from this handle.
//!
//! A program can place symlinks in its writable trees, and could so redirect the rules of its next run to
//! files outside. Therefore the path from the root of a writable tree to another tree may contain neither a
//! symlink nor `..`. The program can't change anything above the writable root, so symlinks there are
//! followed.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::{Sandbox, SandboxError};

/// Number of symlinks to follow on the path to a tree; the kernel has the same limit, see
/// `path_resolution(7)`.
const MAX_SYMLINKS: usize = 40;

/// The opened trees of a sandbox, in the order of its lists.
#[derive(Debug)]
pub(super) struct SandboxTrees {
    pub(super) read: Vec<OpenTree>,
    pub(super) write: Vec<OpenTree>,
    pub(super) execute: Vec<OpenTree>,
    pub(super) closed: Vec<OpenTree>,
    pub(super) read_only: Vec<OpenTree>,
    writable_roots: WritableRoots,
}

#[derive(Debug)]
pub(super) struct OpenTree {
    handle: OwnedFd,
    status: Stat,
}

impl SandboxTrees {
    pub(super) fn open(sandbox: &Sandbox) -> Result<Self, SandboxError> {
        let writable_roots = WritableRoots::resolve(&sandbox.write)?;
        let open = |paths: &[PathBuf]| {
            paths.iter().map(|path| writable_roots.open(path)).collect::<Result<Vec<_>, _>>()
        };
        let [read, write, execute] = [open(&sandbox.read)?, open(&sandbox.write)?, open(&sandbox.execute)?];
        let [closed, read_only] = [open(&sandbox.closed)?, open(&sandbox.read_only)?];
        Ok(Self { read, write, execute, closed, read_only, writable_roots })
    }

    /// Opens a folder that is in none of the lists, under the same rule on symlinks.
    pub(super) fn open_unlisted(&self, path: &Path) -> Result<OpenTree, SandboxError> {
        self.writable_roots.open(path)
    }
}

impl OpenTree {
    fn new(handle: OwnedFd) -> Result<Self, Errno> {
        Ok(Self { status: rustix::fs::fstat(&handle)?, handle })
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind() == FileType::Directory
    }

    pub(super) fn into_handle(self) -> OwnedFd {
        self.handle
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.status.st_mode)
    }

    fn is_same_file(&self, other: &Stat) -> bool {
        (self.status.st_dev, self.status.st_ino) == (other.st_dev, other.st_ino)
    }
}

impl AsFd for OpenTree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The roots of the writable trees. They are resolved with symlinks, so a symlink inside of one writable tree
/// may have redirected another root. That only makes the rule stricter, because opening the tree through that
/// symlink is refused.
#[derive(Debug)]
struct WritableRoots {
    roots: Vec<(PathBuf, Stat)>,
}

/// A reason why a tree can't be opened.
enum TreeOpenError<'a> {
    Kernel(Errno),
    /// The path has a symlink or `..` inside of this writable tree.
    LinkInWritableTree(&'a Path),
}

impl From<Errno> for TreeOpenError<'_> {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

impl WritableRoots {
    fn resolve(trees: &[PathBuf]) -> Result<Self, SandboxError> {
        let mut roots = Vec::new();
        // A symlink can't lead out of `/`, so a writable `/` needs no check.
        let root = open_status(Path::new("/"))?;
        for tree in trees {
            let found = open_status(tree)?;
            if found.is_folder() && !found.is_same_file(&root.status) {
                roots.push((tree.clone(), found.status));
            }
        }
        Ok(Self { roots })
    }

    fn open(&self, path: &Path) -> Result<OpenTree, SandboxError> {
        let found = match open_without_links(path) {
            Ok(handle) => OpenTree::new(handle).map_err(TreeOpenError::Kernel),
            // The walk finds the reason, and accepts symlinks outside of writable trees.
            Err(_) => self.open_step_by_step(path),
        };
        found.map_err(|refusal| match refusal {
            TreeOpenError::Kernel(errno) => tree_error(path, errno),
            TreeOpenError::LinkInWritableTree(writable) => {
                SandboxError::Link { path: path.to_owned(), writable: writable.to_owned() }
            }
        })
    }

    fn open_step_by_step(&self, path: &Path) -> Result<OpenTree, TreeOpenError<'_>> {
        let path = std::path::absolute(path)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))?;
        let mut remaining = reversed_components(&path);
        let mut current = OpenTree::new(open_step(CWD, OsStr::new("/"))?)?;
        let (mut inside, mut symlinks) = (None, 0);
        while let Some(step) = remaining.pop() {
            inside = inside.or_else(|| self.writable_root_at(&current));
            let next = OpenTree::new(open_step(&current, &step)?)?;
            let is_symlink = next.kind() == FileType::Symlink;
            match inside {
                Some(writable) if is_symlink || step == ".." => {
                    return Err(TreeOpenError::LinkInWritableTree(writable));
                }
                _ if is_symlink => {
                    symlinks += 1;
                    if symlinks > MAX_SYMLINKS {
                        return Err(Errno::LOOP.into());
                    }
                    let target = rustix::fs::readlinkat(&next, c"", Vec::new())?.into_bytes();
                    let target = PathBuf::from(OsString::from_vec(target));
                    if target.is_absolute() {
                        current = OpenTree::new(open_step(CWD, OsStr::new("/"))?)?;
                    }
                    remaining.append(&mut reversed_components(&target));
                }
                _ => current = next,
            }
        }
        Ok(current)
    }

    fn writable_root_at(&self, tree: &OpenTree) -> Option<&Path> {
        self.roots.iter().find(|(_, root)| tree.is_same_file(root)).map(|(path, _)| path.as_path())
    }
}

/// Opens a path without symlinks in a single call, which is sufficient for nearly every tree. Paths with `..`
/// are left to the walk: a program that moves a folder at the same time could make `..` lead elsewhere.
fn open_without_links(path: &Path) -> Result<OwnedFd, Errno> {
    if !path.is_absolute() || path.components().any(|step| step == Component::ParentDir) {
        return Err(Errno::LOOP);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

fn open_step(from: impl AsFd, step: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(from, step, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn open_status(path: &Path) -> Result<OpenTree, SandboxError> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .and_then(OpenTree::new)
        .map_err(|errno| tree_error(path, errno))
}

fn reversed_components(path: &Path) -> Vec<OsString> {
    let steps = path.components().rev().filter_map(|step| match step {
        Component::Normal(_) | Component::ParentDir => Some(step.as_os_str().to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    steps.collect()
}

fn tree_error(path: &Path, errno: Errno) -> SandboxError {
    SandboxError::Tree { path: path.to_owned(), source: errno.into() }
}

#[cfg(test)]
mod tests;
