//! Listing of folders.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat, statat};
use rustix::io::Errno;

use super::{FileAccess, FileError, file_type, open_path, real_path};

/// The content of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// Sorted by path.
    pub entries: Vec<ListingEntry>,
    /// True if entries were left out.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// The path relative to the listed folder.
    pub path: PathBuf,
    pub kind: ListingKind,
}

/// The type of an entry. Symlinks are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListingKind {
    File {
        bytes: u64,
    },
    Folder,
    Link {
        /// The target as stored in the symlink.
        to: PathBuf,
    },
    /// A device, a pipe or a socket.
    Special,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingDepth {
    /// Only the folder itself.
    Shallow,
    /// The folder and all folders in it.
    Recursive,
}

/// The names in a folder, sorted by their bytes.
pub(crate) struct FolderNames {
    pub(crate) names: Vec<OsString>,
    /// True if names were left out.
    pub(crate) truncated: bool,
}

impl FileAccess<'_> {
    /// Lists up to `max_entries` entries of a folder. If there are more, those closest to the folder are
    /// listed.
    ///
    /// # Errors
    /// Fails if the folder doesn't exist, isn't a folder, or is not allowed.
    pub fn list(
        &self,
        path: &Path,
        depth: ListingDepth,
        max_entries: usize,
    ) -> Result<FolderListing, FileError> {
        let root = self.open_folder(path)?;
        let mut listing = FolderListing { entries: Vec::new(), truncated: false };
        self.list_folder(&root, Path::new(""), max_entries, &mut listing)?;
        let mut next: VecDeque<_> = subfolders(&listing, 0).collect();
        let mut too_deep = false;
        while depth == ListingDepth::Recursive
            && !listing.truncated
            && let Some(below) = next.pop_front()
        {
            let without_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let before = listing.entries.len();
            let folder = open_path(&root, &below, without_links);
            let real = folder.as_ref().map_err(|errno| *errno).and_then(|folder| real_path(folder.as_fd()));
            // The kernel refuses paths beyond its length limit.
            too_deep |= real == Err(Errno::NAMETOOLONG);
            let (Ok(folder), Ok(real)) = (folder, real) else { continue };
            if self.check_place(&real).is_ok() {
                let listed = self.list_folder(&folder, &below, max_entries, &mut listing);
                // A folder that can't be read, or was removed, is listed but not entered.
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
        max_entries: usize,
        listing: &mut FolderListing,
    ) -> Result<(), FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(folder, c".", flags, Mode::empty())?;
        let found = read_folder_names(&opened, max_entries - listing.entries.len())?;
        listing.truncated |= found.truncated;
        for name in found.names {
            self.check_time()?;
            // Entries that were removed in the meantime are skipped.
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

/// Returns up to `max_names` names of an opened folder.
pub(crate) fn read_folder_names(folder: &OwnedFd, max_names: usize) -> Result<FolderNames, Errno> {
    let mut names = Vec::new();
    let mut truncated = false;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == max_names {
            truncated = true;
            break;
        }
        names.push(OsString::from_vec(name.to_vec()));
    }
    names.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    Ok(FolderNames { names, truncated })
}
