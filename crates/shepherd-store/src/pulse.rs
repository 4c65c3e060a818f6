//! The last sign of life: a file of one sector, written over itself and synced every time, on a thread of its own.
//!
//! It is not part of the database because of what a transaction costs: a daemon with a session running should hardly
//! wake up. It holds nothing that could not be done without; what can't be read, or was torn by the power cut that it
//! is for, is simply not there, and then the child pays for all that it may have played.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use shepherd_core::Pulse;
use ward_ledger::Hash;

use crate::error::StoreError;
use crate::folder::{private, pulse_path, sync_folder};

/// The smallest unit that disks write entirely or not at all.
const PULSE_BYTES: usize = 512;

/// Also what the checksum begins with, so that nothing else has it by chance.
const TITLE: &str = "shepherd pulse 1";

/// The file of the last sign of life. One process at a time writes it: whoever has the store.
#[derive(Debug)]
pub struct PulseFile {
    path: PathBuf,
    file: Option<File>,
    /// What it says, as far as we know.
    last: Option<Pulse>,
}

impl PulseFile {
    /// The one of the store in this folder. Only who has the store may write it.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: pulse_path(folder), file: None, last: None }
    }

    /// Makes the file, unless it is there: from then on it needs no room on the disk.
    ///
    /// # Errors
    /// When it can't be made or opened.
    pub fn prepare(&mut self) -> Result<(), StoreError> {
        self.file = Some(self.take_file()?);
        Ok(())
    }

    /// Makes a sign of life durable. One that is older than what is there changes nothing.
    ///
    /// # Errors
    /// When it can't be written. What the file says then is not known.
    pub fn write(&mut self, pulse: Pulse) -> Result<(), StoreError> {
        let text = text_of(pulse)?;
        let file = self.take_file()?;
        if !self.last.is_some_and(|last| is_older(pulse, last)) {
            file.write_all_at(&sector(&text), 0).map_err(|source| self.error(source))?;
            self.last = Some(pulse);
        }
        self.file = Some(file);
        Ok(())
    }

    /// The file, which is opened again after a failure: it may be another one by then.
    fn take_file(&mut self) -> Result<File, StoreError> {
        if let Some(file) = self.file.take() {
            return Ok(file);
        }
        let file = open(&self.path).map_err(|source| self.error(source))?;
        self.last = read(&self.path);
        Ok(file)
    }

    fn error(&self, source: io::Error) -> StoreError {
        StoreError::Pulse { path: self.path.clone(), source }
    }
}

/// What the file says, if it says anything that can be believed.
pub(crate) fn read(path: &Path) -> Option<Pulse> {
    let mut text = String::new();
    private().open(path).ok()?.take(PULSE_BYTES as u64).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let (title, pulse, checksum) = (lines.next()?, lines.next()?, lines.next()?);
    let sound = title == TITLE && Hash::from_hex(checksum.as_bytes())? == checksum_of(pulse);
    sound.then(|| serde_json::from_str(pulse).ok())?
}

/// Every write is on the disk when it returns.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::DSYNC;
    let mut options = private();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.len() < PULSE_BYTES as u64 {
        file.write_all_at(&sector(""), 0)?;
        file.sync_all()?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(file)
}

fn is_older(pulse: Pulse, last: Pulse) -> bool {
    pulse.boot == last.boot && pulse.at.mono.total() < last.at.mono.total()
}

fn text_of(pulse: Pulse) -> Result<String, StoreError> {
    let json = serde_json::to_string(&pulse).map_err(|source| StoreError::Encode { source })?;
    Ok(format!("{TITLE}\n{json}\n{}\n", checksum_of(&json)))
}

fn checksum_of(json: &str) -> Hash {
    Hash::of(&[TITLE.as_bytes(), json.as_bytes()])
}

fn sector(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(PULSE_BYTES, b'\n');
    bytes
}
