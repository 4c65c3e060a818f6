//! The last heartbeat: a file of one sector, overwritten and synced every time, on its own thread.
//!
//! The heartbeat isn't part of the database because of the cost of a transaction: a daemon with a running session
//! should hardly wake up. The file isn't essential: without a readable heartbeat, the child is charged for all the time
//! that may have been played.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use shepherd_core::DaemonHeartbeat;
use ward_ledger::Sha256Hash;

use crate::error::StoreError;
use crate::folder::{heartbeat_path, private_open_options, sync_folder};

/// The smallest unit that disks write completely or not at all.
const HEARTBEAT_BYTES: usize = 512;

/// The first bytes of the file and of the checksum, so that no other file matches by chance.
const TITLE: &str = "shepherd pulse 1";

/// The file of the last heartbeat. Only the process that holds the store writes it.
#[derive(Debug)]
pub struct HeartbeatFile {
    path: PathBuf,
    file: Option<File>,
    /// The content of the file, as far as it is known.
    last: Option<DaemonHeartbeat>,
}

impl HeartbeatFile {
    /// Returns the file of the store in this folder. Only the holder of the store may write it.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: heartbeat_path(folder), file: None, last: None }
    }

    /// Creates the file unless it exists; from then on it needs no more space on the disk.
    ///
    /// # Errors
    /// The file can't be created or opened.
    pub fn prepare(&mut self) -> Result<(), StoreError> {
        self.file = Some(self.take_file()?);
        Ok(())
    }

    /// Makes a heartbeat durable. An older heartbeat than the stored one changes nothing.
    ///
    /// # Errors
    /// The file can't be written. Its content is unknown then.
    pub fn write(&mut self, pulse: DaemonHeartbeat) -> Result<(), StoreError> {
        let text = encode_heartbeat(pulse)?;
        let file = self.take_file()?;
        if !self.last.is_some_and(|last| is_older(pulse, last)) {
            file.write_all_at(&pad_to_sector(&text), 0).map_err(|source| self.write_error(source))?;
            self.last = Some(pulse);
        }
        self.file = Some(file);
        Ok(())
    }

    /// Returns the file, which is opened again after a failure because it may have been replaced.
    fn take_file(&mut self) -> Result<File, StoreError> {
        if let Some(file) = self.file.take() {
            return Ok(file);
        }
        let file = open_heartbeat_file(&self.path).map_err(|source| self.write_error(source))?;
        self.last = read_heartbeat(&self.path);
        Ok(file)
    }

    fn write_error(&self, source: io::Error) -> StoreError {
        StoreError::Heartbeat { path: self.path.clone(), source }
    }
}

/// Reads the file, and returns its content if it is valid.
pub(crate) fn read_heartbeat(path: &Path) -> Option<DaemonHeartbeat> {
    let mut text = String::new();
    private_open_options().open(path).ok()?.take(HEARTBEAT_BYTES as u64).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let (title, pulse, checksum) = (lines.next()?, lines.next()?, lines.next()?);
    let sound = title == TITLE && Sha256Hash::from_hex(checksum.as_bytes())? == heartbeat_checksum(pulse);
    sound.then(|| serde_json::from_str(pulse).ok())?
}

/// Every write is on disk when it returns.
fn open_heartbeat_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::DSYNC;
    let mut options = private_open_options();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.len() < HEARTBEAT_BYTES as u64 {
        file.write_all_at(&pad_to_sector(""), 0)?;
        file.sync_all()?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(file)
}

fn is_older(pulse: DaemonHeartbeat, last: DaemonHeartbeat) -> bool {
    pulse.boot == last.boot && pulse.at.mono.total() < last.at.mono.total()
}

fn encode_heartbeat(pulse: DaemonHeartbeat) -> Result<String, StoreError> {
    let json = serde_json::to_string(&pulse).map_err(|source| StoreError::Encode { source })?;
    Ok(format!("{TITLE}\n{json}\n{}\n", heartbeat_checksum(&json)))
}

fn heartbeat_checksum(json: &str) -> Sha256Hash {
    Sha256Hash::of(&[TITLE.as_bytes(), json.as_bytes()])
}

fn pad_to_sector(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(HEARTBEAT_BYTES, b'\n');
    bytes
}
