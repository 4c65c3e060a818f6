//! Listing folders.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat, statat};
use rustix::io::Errno;

use super::{FileAccess, FileError, file_type, open_path, real_path};

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// Sorted by their paths.
    pub entries: Vec<ListingEntry>,
    /// Whether there is more than that.
    pub truncated: bool,
}

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// Its path from the folder that is listed.
    pub path: PathBuf,
    /// What it is.
    pub kind: ListingKind,
}

/// What a thing in a folder is. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListingKind {
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
pub enum ListingDepth {
    /// What is in the folder itself.
    Shallow,
    /// What is in the folders in it, too.
    Recursive,
}

/// Names, sorted by their bytes.
pub(crate) struct FolderNames {
    pub(crate) names: Vec<OsString>,
    /// Whether there are more.
    pub(crate) truncated: bool,
}

impl FileAccess<'_> {
    /// Lists a folder, at most so many entries; if there are more, those nearest to it are listed.
    ///
    /// # Errors
    /// When it is not there, no folder, or out of reach.
    pub fn list(&self, path: &Path, depth: ListingDepth, most: usize) -> Result<FolderListing, FileError> {
        let root = self.open_folder(path)?;
        let mut listing = FolderListing { entries: Vec::new(), truncated: false };
        self.list_folder(&root, Path::new(""), most, &mut listing)?;
        let mut next: VecDeque<_> = subfolders(&listing, 0).collect();
        let mut too_deep = false;
        while depth == ListingDepth::Recursive
            && !listing.truncated
            && let Some(below) = next.pop_front()
        {
            let without_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let before = listing.entries.len();
            let folder = open_path(&root, &below, without_links);
            let place = folder.as_ref().map_err(|errno| *errno).and_then(|folder| real_path(folder.as_fd()));
            // The kernel follows no path that is longer than it wants.
            too_deep |= place == Err(Errno::NAMETOOLONG);
            let (Ok(folder), Ok(place)) = (folder, place) else { continue };
            if self.check_place(&place).is_ok() {
                let listed = self.list_folder(&folder, &below, most, &mut listing);
                // One that is closed to us, or gone, is shown and not entered.
                if let Err(FileError::Stopped(_)) = listed {
                    return listed.map(|()| listing);
                }
            }
            next.extend(subfolders(&listing, before));
        }
        listing.truncated |= too_deep;
        listing.entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listing)
    }

    fn list_folder(
        &self,
        folder: &OwnedFd,
        below: &Path,
        most: usize,
        listing: &mut FolderListing,
    ) -> Result<(), FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(folder, c".", flags, Mode::empty())?;
        let found = read_folder_names(&opened, most - listing.entries.len())?;
        listing.truncated |= found.truncated;
        for name in found.names {
            self.check_time()?;
            // What is gone meanwhile is not listed.
            if let Ok(kind) = entry_kind(&opened, &name) {
                listing.entries.push(ListingEntry { path: below.join(name), kind });
            }
        }
        Ok(())
    }
}

fn subfolders(listing: &FolderListing, from: usize) -> impl Iterator<Item = PathBuf> {
    let entries = listing.entries.get(from..).unwrap_or_default();
    entries.iter().filter(|entry| entry.kind == ListingKind::Folder).map(|entry| entry.path.clone())
}

fn entry_kind(folder: &OwnedFd, name: &OsString) -> Result<ListingKind, Errno> {
    let status = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(match file_type(&status) {
        FileType::RegularFile => {
            ListingKind::File { bytes: u64::try_from(status.st_size).unwrap_or_default() }
        }
        FileType::Directory => ListingKind::Folder,
        FileType::Symlink => {
            let to = rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes();
            ListingKind::Link { to: OsString::from_vec(to).into() }
        }
        _ => ListingKind::Special,
    })
}

/// The names in an opened folder, at most so many.
pub(crate) fn read_folder_names(folder: &OwnedFd, most: usize) -> Result<FolderNames, Errno> {
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
    Ok(FolderNames { names, truncated: left_out })
}
