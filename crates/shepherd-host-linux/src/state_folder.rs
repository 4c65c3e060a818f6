//! The state folder: what runs, and what it said.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use shepherd_host_api::HostSessionHandle;
use shepherd_util::SessionId;

use crate::options::HostSetupError;

/// Logs of ended sessions that are kept: some weeks of an ordinary household.
const MAX_LOGS: usize = 200;

/// Bytes of them together: as much as a policy can let one session write, so that none is too long to be kept. At the
/// default bound of a session it is the number above that counts.
const MAX_LOG_BYTES: u64 = 1 << 30;

/// No handle of ours comes near it.
const MAX_HANDLE: u64 = 1 << 20;

const HANDLE_EXTENSION: &str = "handle";
const LOG_EXTENSION: &str = "log";

/// Where everything is that outlives the host.
#[derive(Clone, Debug)]
pub(crate) struct StateFolder {
    sessions: PathBuf,
    logs: PathBuf,
}

impl StateFolder {
    pub(crate) fn open(state: &Path) -> Result<Self, HostSetupError> {
        let folder = Self { sessions: state.join("sessions"), logs: state.join("logs") };
        for path in [&folder.sessions, &folder.logs] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|source| HostSetupError::Folder { folder: path.clone(), source })?;
        }
        Ok(folder)
    }

    /// Written before the program runs. Not synced: it names a process tree of this boot, and whatever the disk has
    /// lost after a power failure, that tree is lost as well. There is none yet: a session is started once.
    pub(crate) fn write_handle(&self, session_id: &SessionId, handle: &HostSessionHandle) -> io::Result<()> {
        let path = self.handle_path(session_id);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(handle.as_str().as_bytes()).inspect_err(|_| self.remove_handle(session_id))
    }

    /// What was written down; `None` if nothing was. A half-written one is none: its program never ran.
    pub(crate) fn read_handle(&self, session_id: &SessionId) -> io::Result<Option<HostSessionHandle>> {
        let mut text = String::new();
        match File::open(self.handle_path(session_id)) {
            Ok(file) => _ = file.take(MAX_HANDLE).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(HostSessionHandle::new(text)))
    }

    /// A file that can't be removed is removed by a later daemon, when it finds nothing behind it.
    pub(crate) fn remove_handle(&self, session_id: &SessionId) {
        let _ = fs::remove_file(self.handle_path(session_id));
    }

    /// Sessions of which something is written down.
    pub(crate) fn recorded_sessions(&self) -> Vec<SessionId> {
        let entries = fs::read_dir(&self.sessions).into_iter().flatten().flatten();
        let mut found: Vec<SessionId> = entries
            .filter_map(|entry| {
                let path = entry.path();
                let is_handle = path.extension().is_some_and(|extension| extension == HANDLE_EXTENSION);
                path.file_stem().filter(|_| is_handle)?.to_str()?.parse().ok()
            })
            .collect();
        found.sort_unstable();
        found
    }

    pub(crate) fn log_path(&self, session_id: &SessionId) -> PathBuf {
        self.logs.join(format!("{session_id}.{LOG_EXTENSION}"))
    }

    /// Of a compositor that we start.
    #[cfg(feature = "sway")]
    pub(crate) fn compositor_log_path(&self) -> PathBuf {
        self.logs.join("compositor.log")
    }

    /// What a later daemon needs to take back a compositor that we started.
    #[cfg(feature = "sway")]
    pub(crate) fn compositor_record_path(&self) -> PathBuf {
        self.sessions.join("compositor.record")
    }

    /// Removes the oldest logs beyond those that are kept. What still runs, or may, keeps its own.
    pub(crate) fn prune_logs(&self) {
        let running = self.recorded_sessions();
        let mut logs: Vec<SessionLog> = fs::read_dir(&self.logs)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| SessionLog::from_path(entry.path()))
            .filter(|log| running.binary_search(&log.session_id).is_err())
            .collect();
        logs.sort_unstable_by(|one, other| (other.written, &other.path).cmp(&(one.written, &one.path)));
        let mut bytes: u64 = 0;
        for (count, log) in logs.into_iter().enumerate() {
            bytes = bytes.saturating_add(log.bytes);
            if count >= MAX_LOGS || bytes > MAX_LOG_BYTES {
                let _ = fs::remove_file(log.path);
            }
        }
    }

    fn handle_path(&self, session_id: &SessionId) -> PathBuf {
        self.sessions.join(format!("{session_id}.{HANDLE_EXTENSION}"))
    }
}

/// What a session said.
struct SessionLog {
    session_id: SessionId,
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
}

impl SessionLog {
    /// `None` of every other file.
    fn from_path(path: PathBuf) -> Option<Self> {
        let is_log = path.extension().is_some_and(|extension| extension == LOG_EXTENSION);
        let session_id = path.file_stem().filter(|_| is_log)?.to_str()?.parse().ok()?;
        let metadata = fs::symlink_metadata(&path).ok()?;
        Some(Self { session_id, path, written: metadata.modified().ok()?, bytes: metadata.len() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn session(number: u64) -> SessionId {
        format!("session-{number:032x}").parse().unwrap()
    }

    /// A session's log of so many bytes, which take no space; a higher number is a later one.
    fn write_log(folder: &StateFolder, number: u64, bytes: u64) -> PathBuf {
        let path = folder.log_path(&session(number));
        let file = File::create(&path).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number)).unwrap();
        path
    }

    /// S13: what programs write can't fill the disk, however much of it a policy keeps.
    #[test]
    fn the_oldest_logs_go_when_all_together_are_too_long() {
        let state = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(state.path()).unwrap();
        let third = MAX_LOG_BYTES / 3;
        let running = write_log(&folder, 1, MAX_LOG_BYTES);
        folder.write_handle(&session(1), &HostSessionHandle::new("runs".to_owned())).unwrap();
        let compositor = folder.logs.join("compositor.log");
        fs::write(&compositor, "").unwrap();
        let logs: Vec<PathBuf> = (2..8).map(|number| write_log(&folder, number, third)).collect();
        let left = || logs.iter().map(|path| path.exists()).collect::<Vec<_>>();
        folder.prune_logs();
        assert_eq!(left(), [false, false, false, true, true, true]);
        assert!(running.exists() && compositor.exists());
        // One that is as long as a policy can allow is kept, and no other.
        let longest = write_log(&folder, 9, MAX_LOG_BYTES);
        folder.prune_logs();
        assert_eq!(left(), [false; 6]);
        assert!(longest.exists() && running.exists());
        // It has ended, and is the oldest.
        folder.remove_handle(&session(1));
        folder.prune_logs();
        assert!(longest.exists() && !running.exists());
    }
}
