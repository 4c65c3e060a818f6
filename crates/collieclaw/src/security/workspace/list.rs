//! Listing folders.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat, statat};
use rustix::io::Errno;

use super::{Access, FileError, kind, place_of, resolved};

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by their paths.
    pub entries: Vec<Entry>,
    /// Whether there is more than that.
    pub left_out: bool,
}

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path from the folder that is listed.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// What a thing in a folder is. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// How large.
        bytes: u64,
    },
    /// A folder.
    Folder,
    /// A link.
    Link {
        /// As it is written.
        to: PathBuf,
    },
    /// A device, a pipe, a socket.
    Special,
}

/// How far a listing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What is in the folder itself.
    This,
    /// What is in the folders in it, too.
    All,
}

/// Names, sorted by their bytes.
pub(crate) struct Names {
    pub(crate) names: Vec<OsString>,
    /// Whether there are more.
    pub(crate) left_out: bool,
}

impl Access<'_> {
    /// Lists a folder, at most so many entries; if there are more, those nearest to it are listed.
    ///
    /// # Errors
    /// When it is not there, no folder, or out of reach.
    pub fn list(&self, path: &Path, depth: Depth, most: usize) -> Result<Listing, FileError> {
        let root = self.folder(path)?;
        let mut listing = Listing { entries: Vec::new(), left_out: false };
        self.list_one(&root, Path::new(""), most, &mut listing)?;
        let mut next: VecDeque<_> = folders(&listing, 0).collect();
        let mut too_deep = false;
        while depth == Depth::All
            && !listing.left_out
            && let Some(below) = next.pop_front()
        {
            let without_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let before = listing.entries.len();
            let folder = resolved(&root, &below, without_links);
            let place = folder.as_ref().map_err(|errno| *errno).and_then(|folder| place_of(folder.as_fd()));
            // The kernel follows no path that is longer than it wants.
            too_deep |= place == Err(Errno::NAMETOOLONG);
            let (Ok(folder), Ok(place)) = (folder, place) else { continue };
            if self.judge(&place).is_ok() {
                let listed = self.list_one(&folder, &below, most, &mut listing);
                // One that is closed to us, or gone, is shown and not entered.
                if let Err(FileError::Stopped(_)) = listed {
                    return listed.map(|()| listing);
                }
            }
            next.extend(folders(&listing, before));
        }
        listing.left_out |= too_deep;
        listing.entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listing)
    }

    fn list_one(
        &self,
        folder: &OwnedFd,
        below: &Path,
        most: usize,
        listing: &mut Listing,
    ) -> Result<(), FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(folder, c".", flags, Mode::empty())?;
        let found = names_of(&opened, most - listing.entries.len())?;
        listing.left_out |= found.left_out;
        for name in found.names {
            self.goes_on()?;
            // What is gone meanwhile is not listed.
            if let Ok(kind) = kind_of(&opened, &name) {
                listing.entries.push(Entry { path: below.join(name), kind });
            }
        }
        Ok(())
    }
}

fn folders(listing: &Listing, from: usize) -> impl Iterator<Item = PathBuf> {
    let entries = listing.entries.get(from..).unwrap_or_default();
    entries.iter().filter(|entry| entry.kind == Kind::Folder).map(|entry| entry.path.clone())
}

fn kind_of(folder: &OwnedFd, name: &OsString) -> Result<Kind, Errno> {
    let status = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(match kind(&status) {
        FileType::RegularFile => Kind::File { bytes: u64::try_from(status.st_size).unwrap_or_default() },
        FileType::Directory => Kind::Folder,
        FileType::Symlink => {
            let to = rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes();
            Kind::Link { to: OsString::from_vec(to).into() }
        }
        _ => Kind::Special,
    })
}

/// The names in an opened folder, at most so many.
pub(crate) fn names_of(folder: &OwnedFd, most: usize) -> Result<Names, Errno> {
    let mut names = Vec::new();
    let mut left_out = false;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == most {
            left_out = true;
            break;
        }
        names.push(OsString::from_vec(name.to_vec()));
    }
    names.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    Ok(Names { names, left_out })
}
