//! `audit.log`: one JSON object a line. A full one is set aside, in the place of the one before.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use serde_json::Value;

/// Beyond this the log becomes `audit.log.1`, and a new one begins. Some 50,000 decisions.
const MAX_LOG_BYTES: u64 = 16 << 20;

/// The audit log.
pub struct AgentAuditLog {
    path: PathBuf,
}

impl AgentAuditLog {
    /// At a path; it is made when something is written.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn write(&self, line: &Value) -> io::Result<()> {
        let mut file = self.open()?;
        if file.metadata()?.len() > MAX_LOG_BYTES {
            file = self.rotate(&file)?;
        }
        // One write a line, so that processes which share it don't mix theirs.
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)
    }

    /// One of several processes that see it full sets it aside; the others find the new one.
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
