//! What is in a plugin's folder: plain files, few and small, read whole. What was read is what is shown, pinned and
//! copied.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use ward_ledger::Sha256Hash;

use super::manifest;
use crate::security::is_securely_owned;

/// Files of one plugin.
const MOST_FILES: usize = 256;

/// Bytes of one plugin: they are read and hashed before each call.
const MOST_BYTES: u64 = 16 << 20;

/// Folders in folders.
const DEEPEST: usize = 8;

/// The record of the installation.
pub(crate) const RECORD_FILE: &str = ".installed.json";

/// What of a folder is no part of the plugin.
const EXCLUDED_NAMES: [&str; 2] = [".git", RECORD_FILE];

/// Why a folder is no plugin's.
#[derive(Debug, Error)]
pub enum PluginFolderError {
    /// No manifest.
    #[error("there is no `{}` in {}", manifest::FILE, .0.display())]
    NoManifest(PathBuf),
    /// A link, a device, a pipe.
    #[error("`{0}` is neither a plain file nor a folder")]
    NotPlain(String),
    /// Somebody else could change it.
    #[error("`{0}` can be changed by others")]
    WritableByOthers(String),
    /// A name that is no text.
    #[error("a name in {} is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
    /// Too much.
    #[error("it has more than {MOST_FILES} files, {} MB or {DEEPEST} levels", MOST_BYTES >> 20)]
    TooLarge,
    /// The machine says no.
    #[error("`{path}` can't be read")]
    Io {
        /// What.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// The files of a folder, by their paths in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PluginFiles {
    pub(crate) files: BTreeMap<String, PluginFile>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

/// What is kept of a file, to know it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePin {
    sha256: String,
    executable: bool,
}

/// Whose the files must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredOwner {
    /// Anybody's: they are copied.
    Anyone,
    /// Ours: they run.
    Ours,
}

impl PluginFiles {
    /// Reads a folder that is to be installed.
    ///
    /// # Errors
    /// When there is something in it that belongs into no plugin.
    pub fn read(folder: &Path) -> Result<Self, PluginFolderError> {
        let contents = Self::read_owned_by(folder, RequiredOwner::Anyone)?;
        if !contents.files.contains_key(manifest::FILE) {
            return Err(PluginFolderError::NoManifest(folder.to_owned()));
        }
        Ok(contents)
    }

    pub(crate) fn read_owned_by(folder: &Path, whose: RequiredOwner) -> Result<Self, PluginFolderError> {
        let mut walk = PluginFolderReader { contents: Self::default(), bytes: 0, owner: whose };
        walk.read_folder(folder, "", 0)?;
        Ok(walk.contents)
    }

    /// What is in a file.
    pub(crate) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|file| file.bytes.as_slice())
    }

    /// Whether a file can be run; `None` where there is no such file.
    pub(crate) fn is_executable(&self, path: &str) -> Option<bool> {
        self.files.get(path).map(|file| file.executable)
    }

    /// How many files and bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.files.len(), self.files.values().map(|file| file.bytes.len()).sum())
    }

    pub(crate) fn pins(&self) -> BTreeMap<String, FilePin> {
        let pin = |file: &PluginFile| FilePin {
            sha256: Sha256Hash::of(&[&file.bytes]).to_string(),
            executable: file.executable,
        };
        self.files.iter().map(|(path, file)| (path.clone(), pin(file))).collect()
    }
}

/// What is not as it was pinned, if anything.
pub(crate) fn find_difference(
    pinned: &BTreeMap<String, FilePin>,
    found: &BTreeMap<String, FilePin>,
) -> Option<String> {
    let gone = pinned.keys().find(|path| !found.contains_key(*path));
    if let Some(path) = gone {
        return Some(format!("`{path}` is gone"));
    }
    let (path, _) = found.iter().find(|(path, pin)| pinned.get(*path) != Some(pin))?;
    Some(if pinned.contains_key(path) { format!("`{path}` was changed") } else { format!("`{path}` is new") })
}

struct PluginFolderReader {
    contents: PluginFiles,
    bytes: u64,
    owner: RequiredOwner,
}

impl PluginFolderReader {
    fn read_folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), PluginFolderError> {
        let shown = || if prefix.is_empty() { folder.display().to_string() } else { prefix.to_owned() };
        let failed = |source| PluginFolderError::Io { path: shown(), source };
        if depth > DEEPEST {
            return Err(PluginFolderError::TooLarge);
        }
        let known = fs::symlink_metadata(folder).map_err(failed)?;
        if self.owner == RequiredOwner::Ours && !is_securely_owned(&known) {
            return Err(PluginFolderError::WritableByOthers(shown()));
        }
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name =
                entry.file_name().into_string().map_err(|_| PluginFolderError::NotUtf8(folder.to_owned()))?;
            if prefix.is_empty() && EXCLUDED_NAMES.contains(&name.as_str()) {
                continue;
            }
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                self.read_folder(&entry.path(), &path, depth + 1)?;
            } else if kind.is_file() {
                self.read_file(&entry.path(), path)?;
            } else {
                return Err(PluginFolderError::NotPlain(path));
            }
        }
        Ok(())
    }

    fn read_file(&mut self, place: &Path, path: String) -> Result<(), PluginFolderError> {
        let failed = |source| PluginFolderError::Io { path: path.clone(), source };
        // It may have become a link or a pipe since it was listed.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(place).map_err(failed)?;
        let known = file.metadata().map_err(failed)?;
        if !known.is_file() {
            return Err(PluginFolderError::NotPlain(path));
        }
        if self.owner == RequiredOwner::Ours && !is_securely_owned(&known) {
            return Err(PluginFolderError::WritableByOthers(path));
        }
        let left = MOST_BYTES - self.bytes;
        let mut bytes = Vec::new();
        file.take(left + 1).read_to_end(&mut bytes).map_err(failed)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MOST_BYTES || self.contents.files.len() >= MOST_FILES {
            return Err(PluginFolderError::TooLarge);
        }
        let executable = known.mode() & 0o111 != 0;
        self.contents.files.insert(path, PluginFile { bytes, executable });
        Ok(())
    }
}
