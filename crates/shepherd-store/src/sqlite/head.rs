//! A small file that records the generation of the database and its checksum.
//!
//! SQLite silently ignores a write-ahead log that is missing, cut or damaged, and with it the last batches. The head
//! remembers that there were more. It is overwritten after the commit, within one sector, and not synced: after a power
//! cut it may be behind, and then the synced database counts.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ward_ledger::Sha256Hash;

use crate::folder::{private_open_options, sync_folder};

/// The smallest unit that disks write completely or not at all.
const HEAD_BYTES: usize = 512;

const TITLE: &str = "shepherd store head 1";

/// The content of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreHeadContent {
    pub(super) generation: i64,
    pub(super) checksum: Sha256Hash,
}

/// The state of the head file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreHeadState {
    Missing,
    Unreadable,
    Valid(StoreHeadContent),
}

/// The head file, which is created at the first write.
#[derive(Debug)]
pub(super) struct StoreHeadFile {
    path: PathBuf,
    file: Option<File>,
    written: Option<StoreHeadContent>,
}

impl StoreHeadFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, written: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> io::Result<StoreHeadState> {
        match private_open_options().open(&self.path).and_then(io::read_to_string) {
            Ok(text) => Ok(parse_head(&text).map_or(StoreHeadState::Unreadable, StoreHeadState::Valid)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StoreHeadState::Missing),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(StoreHeadState::Unreadable),
            Err(error) => Err(error),
        }
    }

    /// Writes this content to the head, unless it is already there.
    pub(super) fn write(&mut self, recorded: StoreHeadContent) -> io::Result<()> {
        if self.written == Some(recorded) {
            return Ok(());
        }
        let text = format!("{TITLE}\ngeneration {}\nchecksum {}\n", recorded.generation, recorded.checksum);
        let mut bytes = text.into_bytes();
        bytes.resize(HEAD_BYTES, b'\n');
        match &self.file {
            Some(file) => file.write_all_at(&bytes, 0)?,
            None => {
                let file =
                    private_open_options().write(true).create(true).truncate(false).open(&self.path)?;
                file.write_all_at(&bytes, 0)?;
                // This happens once, so that the file has its space; later writes only overwrite it.
                file.sync_all()?;
                sync_folder(self.path.parent().unwrap_or(Path::new(".")))?;
                self.file = Some(file);
            }
        }
        self.written = Some(recorded);
        Ok(())
    }
}

fn parse_head(text: &str) -> Option<StoreHeadContent> {
    let mut lines = text.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let generation = lines.next()?.strip_prefix("generation ")?.parse().ok()?;
    let checksum = Sha256Hash::from_hex(lines.next()?.strip_prefix("checksum ")?.as_bytes())?;
    Some(StoreHeadContent { generation, checksum })
}
