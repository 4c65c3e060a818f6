//! The run file, with which `gateway --link` finds the running gateway of a home. It exists and is locked while the
//! gateway listens.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use collieclaw_agent::home::AgentHome;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RunFileContents {
    address: SocketAddr,
    /// The process id, for information only.
    pid: u32,
}

/// The run file of a listening gateway; dropping it removes the file.
pub(super) struct RunFile {
    path: PathBuf,
    /// The lock ends with the process, even after a crash. A file without a lock is stale, even if another
    /// process uses the port by now.
    locked_file: File,
}

/// The time limit for connecting to a port of this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_RUN_FILE_BYTES: u64 = 1 << 10;

fn run_file_path(home: &AgentHome) -> PathBuf {
    home.folder().join("gateway.run")
}

impl RunFile {
    /// Writes the address of this gateway, and replaces the file of an earlier gateway of this home.
    pub(super) fn create(home: &AgentHome, address: SocketAddr) -> io::Result<Self> {
        let path = run_file_path(home);
        let pid = std::process::id();
        let unfinished = path.with_extension(format!("run-{pid}"));
        // Removes the leftover of a killed process that had the same id.
        match std::fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut locked = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        locked.lock()?;
        locked.write_all(&serde_json::to_vec(&RunFileContents { address, pid })?)?;
        std::fs::rename(&unfinished, &path)?;
        Ok(Self { path, locked_file: locked })
    }

    /// Returns the address of a listening gateway, if there is one.
    pub(super) fn find_listening(home: &AgentHome) -> Option<SocketAddr> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(run_file_path(home))
            .ok()?;
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        let mut text = Vec::new();
        file.take(MAX_RUN_FILE_BYTES).read_to_end(&mut text).ok()?;
        let RunFileContents { address, .. } = serde_json::from_slice(&text).ok()?;
        TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok()?;
        Some(address)
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        let ours = self.locked_file.metadata().ok().zip(self.path.symlink_metadata().ok());
        // A gateway that started later has replaced the file, so it is not removed.
        if ours.is_some_and(|(ours, there)| (ours.dev(), ours.ino()) == (there.dev(), there.ino())) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_note_counts_while_its_writer_lives_and_listens() {
        let folder = tempfile::tempdir().unwrap();
        let home = AgentHome::new(folder.path());
        assert_eq!(RunFile::find_listening(&home), None);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let running = RunFile::create(&home, address).unwrap();
        assert_eq!(RunFile::find_listening(&home), Some(address));
        assert_eq!(run_file_path(&home).metadata().unwrap().mode() & 0o777, 0o600);

        // A second gateway replaces the file, and the end of the first leaves the second's file alone.
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let second = RunFile::create(&home, other.local_addr().unwrap()).unwrap();
        drop(running);
        assert_eq!(RunFile::find_listening(&home), other.local_addr().ok());
        drop(other);
        assert_eq!(RunFile::find_listening(&home), None, "nobody listens");
        drop(second);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        // Simulates the file of a killed gateway whose port is used by another program.
        let stale = serde_json::to_vec(&RunFileContents { address, pid: 1 }).unwrap();
        std::fs::write(run_file_path(&home), stale).unwrap();
        assert_eq!(RunFile::find_listening(&home), None);
    }
}
