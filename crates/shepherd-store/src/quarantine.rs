//! Sets damaged files aside: nothing is ever deleted.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::folder::sync_folder;

/// The prefix of folders with damaged files.
pub(crate) const DAMAGED: &str = "damaged-";

/// The place of damaged files.
#[derive(Debug)]
pub enum QuarantineLocation {
    /// In a folder of their own.
    InFolder(PathBuf),
    /// In their old place: the operating system refused to move them.
    NotMoved(io::Error),
    /// Nowhere: the files have been removed.
    Missing,
}

impl QuarantineLocation {
    /// Returns the folder, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::InFolder(folder) => Some(folder),
            Self::NotMoved(_) | Self::Missing => None,
        }
    }
}

impl fmt::Display for QuarantineLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InFolder(folder) => write!(formatter, "its files are kept in {}", folder.display()),
            Self::NotMoved(error) => write!(formatter, "its files could not be moved aside ({error})"),
            Self::Missing => formatter.write_str("its files are gone"),
        }
    }
}

/// Moves files of `folder` into a new folder within it. After a crash in the middle, the remaining files can't be taken
/// for a sound store, and the next start moves them.
pub(crate) fn quarantine_files(folder: &Path, names: &[String], now: Timestamp) -> io::Result<PathBuf> {
    let target = create_quarantine_folder(folder, now)?;
    for name in names {
        fs::rename(folder.join(name), target.join(name))?;
    }
    sync_folder(&target)?;
    sync_folder(folder)?;
    Ok(target)
}

fn create_quarantine_folder(folder: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let stamp = now.strftime("%Y%m%dT%H%M%SZ");
    let mut counter = 1;
    loop {
        let target = folder.join(format!("{DAMAGED}{stamp}-{counter}"));
        match fs::DirBuilder::new().mode(0o700).create(&target) {
            Ok(()) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => counter += 1,
            Err(error) => return Err(error),
        }
    }
}
