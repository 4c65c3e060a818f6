//! The trash: entries that the tool `file_delete` took out of a workspace, until the operator restores or removes
//! them.
//!
//! The trash is in the agent's home, which no tool can reach. Each item has a folder of its own with a record and the
//! entry itself. The record is on disk before the entry is moved, so a crash loses nothing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::home::AgentHome;
use crate::ids;
use crate::security::{EntryKind, FileAccess, FileError, remove_tree};

/// The file with the record of an item.
const RECORD_FILE: &str = "record.json";

/// The name of the entry in the item's folder.
const CONTENT_NAME: &str = "content";

const ID_PREFIX: &str = "trash";

/// The maximum size of a record.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// The items of one home.
#[derive(Debug, Clone)]
pub struct TrashStore {
    folder: PathBuf,
}

/// An entry in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedItem {
    pub id: String,
    pub deleted_at: Timestamp,
    /// The workspace that the entry was in.
    pub workspace: PathBuf,
    /// The path at which the entry was.
    pub path: PathBuf,
}

/// The reason why the trash could not be used.
#[derive(Debug, Error)]
pub enum TrashError {
    #[error("could not {step} {}", .path.display())]
    Io {
        /// The operation that failed, as a verb.
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("no such item `{0}` in the trash")]
    Unknown(String),
    /// The entry could not be moved.
    #[error("`{}` {source}", .path.display())]
    Entry { path: PathBuf, source: FileError },
}

fn io_error(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TrashError {
    let path = path.to_owned();
    move |source| TrashError::Io { step, path, source }
}

impl TrashStore {
    #[must_use]
    pub fn new(home: &AgentHome) -> Self {
        Self { folder: home.trash() }
    }

    /// Moves an entry of a workspace into the trash.
    ///
    /// # Errors
    /// Fails if the entry can't be moved. Then it is still at its place, except after [`FileError::PartlyRemoved`]: then
    /// the trash has all of it.
    pub fn put(
        &self,
        access: FileAccess<'_>,
        workspace: &Path,
        path: &Path,
    ) -> Result<(TrashedItem, EntryKind), TrashError> {
        let item = TrashedItem {
            id: ids::random_id(ID_PREFIX),
            deleted_at: Timestamp::now(),
            workspace: workspace.to_owned(),
            path: path.to_owned(),
        };
        let folder = self.folder.join(&item.id);
        DirBuilder::new().mode(0o700).recursive(true).create(&folder).map_err(io_error("create", &folder))?;
        let moved = write_record(&folder, &item).map_err(io_error("write", &folder)).and_then(|()| {
            let handle = open_folder(&folder)?;
            let moved = access.move_entry_out(path, &handle, CONTENT_NAME);
            moved.map_err(|source| TrashError::Entry { path: path.to_owned(), source })
        });
        match moved {
            Ok(kind) => Ok((item, kind)),
            // The trash has the whole entry, and the workspace only a part of it, so the record is needed.
            Err(error @ TrashError::Entry { source: FileError::PartlyRemoved(_), .. }) => Err(error),
            Err(error) => {
                // A part of the entry that a failed copy has left is not removed.
                let _ = fs::remove_file(folder.join(RECORD_FILE)).and_then(|()| fs::remove_dir(&folder));
                Err(error)
            }
        }
    }

    /// Returns the items, newest first.
    ///
    /// # Errors
    /// Fails if the trash can't be read.
    pub fn list(&self) -> Result<Vec<TrashedItem>, TrashError> {
        let listed = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(io_error("read", &self.folder))?,
        };
        let mut items: Vec<TrashedItem> =
            listed.flatten().filter_map(|entry| read_item(&entry.path())).collect();
        items.sort_by(|one, other| other.deleted_at.cmp(&one.deleted_at).then_with(|| one.id.cmp(&other.id)));
        Ok(items)
    }

    /// Returns the item with this id.
    ///
    /// # Errors
    /// Fails if there is no such item.
    pub fn find(&self, id: &str) -> Result<TrashedItem, TrashError> {
        let is_name = id.starts_with(ID_PREFIX) && !id.contains(['/', '\0', '.']);
        let item = is_name.then(|| read_item(&self.folder.join(id))).flatten();
        item.ok_or_else(|| TrashError::Unknown(id.to_owned()))
    }

    /// Moves an item back to its path. An existing file is not replaced.
    ///
    /// # Errors
    /// Fails if the path is taken or not allowed. Then the item stays in the trash.
    pub fn restore(&self, item: &TrashedItem, access: FileAccess<'_>) -> Result<(), TrashError> {
        let folder = self.folder.join(&item.id);
        let handle = open_folder(&folder)?;
        access
            .move_entry_in(&handle, CONTENT_NAME, &item.path)
            .map_err(|source| TrashError::Entry { path: item.path.clone(), source })?;
        remove_tree(&folder).map_err(io_error("remove", &folder))
    }

    /// Removes all items for good, and returns their number.
    ///
    /// # Errors
    /// Fails if an item can't be removed.
    pub fn empty(&self) -> Result<usize, TrashError> {
        let count = self.list()?.len();
        match remove_tree(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            removed => removed.map(|()| count).map_err(io_error("remove", &self.folder)),
        }
    }
}

fn open_folder(path: &Path) -> Result<OwnedFd, TrashError> {
    File::open(path).map(OwnedFd::from).map_err(io_error("open", path))
}

fn write_record(folder: &Path, item: &TrashedItem) -> io::Result<()> {
    let path = folder.join(RECORD_FILE);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec_pretty(item)?)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

/// Reads an item. `None` for a folder without a record, and for an item that a crash left without its entry.
fn read_item(folder: &Path) -> Option<TrashedItem> {
    let record = folder.join(RECORD_FILE);
    let size = fs::symlink_metadata(&record).ok().filter(fs::Metadata::is_file)?.len();
    if size > MAX_RECORD_BYTES {
        return None;
    }
    let item: TrashedItem = serde_json::from_slice(&fs::read(&record).ok()?).ok()?;
    let is_whole =
        folder.file_name()? == item.id.as_str() && folder.join(CONTENT_NAME).symlink_metadata().is_ok();
    is_whole.then_some(item)
}
