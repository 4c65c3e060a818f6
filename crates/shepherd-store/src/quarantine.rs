//! Putting damaged files aside: nothing is ever thrown away.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::folder::sync_folder;

/// What the name of a folder with damaged files begins with.
pub(crate) const DAMAGED: &str = "damaged-";

/// Where damaged files are.
#[derive(Debug)]
pub enum QuarantineLocation {
    /// In a folder of their own.
    InFolder(PathBuf),
    /// Where they were: the system did not let them be moved.
    NotMoved(io::Error),
    /// Nowhere: somebody has removed them.
    Missing,
}

impl QuarantineLocation {
    /// The folder, if there is one.
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

/// Moves files of `folder` into a new folder within it. A crash in the middle leaves some of them where they were;
/// none of what is left can pass for a sound store, and the next opener moves the rest.
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
