//! The files of a plugin: regular files only, limited in number and size, and read completely. The same
//! content is shown, hashed and copied.

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

const MAX_FILES: usize = 256;

/// The maximum size of a plugin, whose files are read and hashed before each call.
const MAX_BYTES: u64 = 16 << 20;

/// The maximum depth of folders.
const MAX_DEPTH: usize = 8;

/// The file with the record of the installation.
pub(crate) const RECORD_FILE: &str = ".installed.json";

/// Names in the folder that are not part of the plugin.
const EXCLUDED_NAMES: [&str; 2] = [".git", RECORD_FILE];

/// An error that makes a folder unusable as a plugin.
#[derive(Debug, Error)]
pub enum PluginFolderError {
    #[error("no such file `{}` in {}", manifest::FILE, .0.display())]
    NoManifest(PathBuf),
    /// The entry is a symlink, a device, a pipe or a socket.
    #[error("`{0}` is neither a regular file nor a folder")]
    NotPlain(String),
    #[error("`{0}` can be changed by other users")]
    WritableByOthers(String),
    #[error("a file name in {} is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
    #[error("the plugin has more than {MAX_FILES} files, {} MB or {MAX_DEPTH} levels of folders", MAX_BYTES >> 20)]
    TooLarge,
    #[error("could not read `{path}`")]
    Io { path: String, source: io::Error },
}

/// The files of a folder, by relative path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PluginFiles {
    pub(crate) files: BTreeMap<String, PluginFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

/// The recorded hash and mode of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePin {
    sha256: String,
    executable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredOwner {
    /// Any user, because the files are copied.
    Anyone,
    /// The current user or root, because the files are run.
    Ours,
}

impl PluginFiles {
    /// Reads a folder that is to be installed.
    ///
    /// # Errors
    /// Fails if the folder has no manifest, or contains something that a plugin must not contain.
    pub fn read(folder: &Path) -> Result<Self, PluginFolderError> {
        let contents = Self::read_owned_by(folder, RequiredOwner::Anyone)?;
        if !contents.files.contains_key(manifest::FILE) {
            return Err(PluginFolderError::NoManifest(folder.to_owned()));
        }
        Ok(contents)
    }

    pub(crate) fn read_owned_by(folder: &Path, owner: RequiredOwner) -> Result<Self, PluginFolderError> {
        let mut reader = PluginFolderReader { contents: Self::default(), bytes: 0, owner };
        reader.read_folder(folder, "", 0)?;
        Ok(reader.contents)
    }

    pub(crate) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|file| file.bytes.as_slice())
    }

    /// Returns whether a file is executable, or `None` if it doesn't exist.
    pub(crate) fn is_executable(&self, path: &str) -> Option<bool> {
        self.files.get(path).map(|file| file.executable)
    }

    /// Returns the number of files and their total size.
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

/// Returns a description of the first difference from the recorded files, if there is one.
pub(crate) fn find_difference(
    pinned: &BTreeMap<String, FilePin>,
    found: &BTreeMap<String, FilePin>,
) -> Option<String> {
    let removed = pinned.keys().find(|path| !found.contains_key(*path));
    if let Some(path) = removed {
        return Some(format!("`{path}` was removed"));
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
        if depth > MAX_DEPTH {
            return Err(PluginFolderError::TooLarge);
        }
        let metadata = fs::symlink_metadata(folder).map_err(failed)?;
        if self.owner == RequiredOwner::Ours && !is_securely_owned(&metadata) {
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

    fn read_file(&mut self, full_path: &Path, path: String) -> Result<(), PluginFolderError> {
        let failed = |source| PluginFolderError::Io { path: path.clone(), source };
        // The entry may have been replaced by a symlink or a pipe since it was listed.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(full_path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(PluginFolderError::NotPlain(path));
        }
        if self.owner == RequiredOwner::Ours && !is_securely_owned(&metadata) {
            return Err(PluginFolderError::WritableByOthers(path));
        }
        let left = MAX_BYTES - self.bytes;
        let mut bytes = Vec::new();
        file.take(left + 1).read_to_end(&mut bytes).map_err(failed)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES || self.contents.files.len() >= MAX_FILES {
            return Err(PluginFolderError::TooLarge);
        }
        let executable = metadata.mode() & 0o111 != 0;
        self.contents.files.insert(path, PluginFile { bytes, executable });
        Ok(())
    }
}
