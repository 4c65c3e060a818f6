//! The file `audit.log`, with one JSON object on each line. A full log is renamed and replaces the previous
//! one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use serde_json::Value;

/// The size at which the log becomes `audit.log.1` and a new log starts, which is after some 50,000
/// decisions.
const MAX_LOG_BYTES: u64 = 16 << 20;

pub struct AgentAuditLog {
    path: PathBuf,
}

impl AgentAuditLog {
    /// Creates an audit log at this path. The file is created by the first write.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn write(&self, line: &Value) -> io::Result<()> {
        let mut file = self.open()?;
        if file.metadata()?.len() > MAX_LOG_BYTES {
            file = self.rotate(&file)?;
        }
        // One write for each line, so that lines of several processes don't mix.
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)
    }

    /// Renames the full log. If several processes find the log full, the first one renames it and the others
    /// open the new one.
    fn rotate(&self, full: &File) -> io::Result<File> {
        full.lock()?;
        if full.metadata()?.ino() == std::fs::metadata(&self.path)?.ino() {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            std::fs::rename(&self.path, older)?;
        }
        self.open()
    }
}
