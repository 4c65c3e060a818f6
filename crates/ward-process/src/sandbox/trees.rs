//! Every tree of a sandbox, opened once: its rule and its mount are made from this handle.
//!
//! A program can leave links in the trees that it can write, and so could lead the rules of its next
//! run out of them. From the root of a writable tree on, the way to another tree may hold neither a
//! link nor a `..`. Whatever lies above is out of its reach, and links there are followed.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::{Sandbox, SandboxError};

/// Links on the way to one tree; the kernel has the same limit.
const LINKS_FOLLOWED: usize = 40;

/// The trees of a sandbox, in the order of its lists.
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
        let borders = WritableRoots::resolve(&sandbox.write)?;
        let open =
            |paths: &[PathBuf]| paths.iter().map(|path| borders.open(path)).collect::<Result<Vec<_>, _>>();
        let [read, write, execute] = [open(&sandbox.read)?, open(&sandbox.write)?, open(&sandbox.execute)?];
        let [closed, read_only] = [open(&sandbox.closed)?, open(&sandbox.read_only)?];
        Ok(Self { read, write, execute, closed, read_only, writable_roots: borders })
    }

    /// Opens a folder that is in no list, by the same rule.
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

/// The roots of the trees that can be written. A link may have led to some of these already: they
/// only make the rule stricter, and the way through the tree with the link is refused.
#[derive(Debug)]
struct WritableRoots {
    roots: Vec<(PathBuf, Stat)>,
}

/// Why a tree can't be opened.
enum TreeOpenError<'a> {
    Kernel(Errno),
    /// The way leads on from this writable tree by a link.
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
        // From the root of everything no link leads out.
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
            // The walk finds out why, and whether it matters.
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
        let mut ahead = reversed_components(&path);
        let mut at = OpenTree::new(open_step(CWD, OsStr::new("/"))?)?;
        let (mut inside, mut links) = (None, 0);
        while let Some(step) = ahead.pop() {
            inside = inside.or_else(|| self.writable_root_at(&at));
            let next = OpenTree::new(open_step(&at, &step)?)?;
            let is_link = next.kind() == FileType::Symlink;
            match inside {
                Some(writable) if is_link || step == ".." => {
                    return Err(TreeOpenError::LinkInWritableTree(writable));
                }
                _ if is_link => {
                    links += 1;
                    if links > LINKS_FOLLOWED {
                        return Err(Errno::LOOP.into());
                    }
                    let target = rustix::fs::readlinkat(&next, c"", Vec::new())?.into_bytes();
                    let target = PathBuf::from(OsString::from_vec(target));
                    if target.is_absolute() {
                        at = OpenTree::new(open_step(CWD, OsStr::new("/"))?)?;
                    }
                    ahead.append(&mut reversed_components(&target));
                }
                _ => at = next,
            }
        }
        Ok(at)
    }

    fn writable_root_at(&self, place: &OpenTree) -> Option<&Path> {
        self.roots.iter().find(|(_, root)| place.is_same_file(root)).map(|(path, _)| path.as_path())
    }
}

/// One call for nearly every tree. With `..` a folder that is moved meanwhile could lead elsewhere.
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
