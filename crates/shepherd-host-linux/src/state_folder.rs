//! The state folder: handles of running sessions, and logs of their output.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use shepherd_host_api::HostSessionHandle;
use shepherd_util::SessionId;

use crate::options::HostSetupError;

/// The number of logs of ended sessions that are kept: some weeks in an ordinary family.
const MAX_LOGS: usize = 200;

/// The bytes that all these logs may have together. A policy can't allow a session a longer log, so that no log is too
/// long to be kept. With the default limit of a session, [`MAX_LOGS`] is reached first.
const MAX_LOG_BYTES: u64 = 1 << 30;

/// The largest handle file that is read. Real handles are much smaller.
const MAX_HANDLE: u64 = 1 << 20;

const HANDLE_EXTENSION: &str = "handle";
const LOG_EXTENSION: &str = "log";

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

    /// Writes the handle of a session before its program runs. The file is not synced: it names a process tree of this
    /// boot, and a power failure that loses the file also ends the tree. The file must not exist yet, because a session
    /// is started only once.
    pub(crate) fn write_handle(&self, session_id: &SessionId, handle: &HostSessionHandle) -> io::Result<()> {
        let path = self.handle_path(session_id);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(handle.as_str().as_bytes()).inspect_err(|_| self.remove_handle(session_id))
    }

    /// Reads the handle of a session. A handle that is only half written belongs to a program that never ran.
    pub(crate) fn read_handle(&self, session_id: &SessionId) -> io::Result<Option<HostSessionHandle>> {
        let mut text = String::new();
        match File::open(self.handle_path(session_id)) {
            Ok(file) => _ = file.take(MAX_HANDLE).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(HostSessionHandle::new(text)))
    }

    /// Removes the handle of a session. If that fails, a later daemon removes it when it finds no program.
    pub(crate) fn remove_handle(&self, session_id: &SessionId) {
        let _ = fs::remove_file(self.handle_path(session_id));
    }

    /// Returns the sessions that have a handle file, sorted.
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

    pub(crate) fn log_folder(&self) -> PathBuf {
        self.logs.clone()
    }

    pub(crate) fn log_path(&self, session_id: &SessionId) -> PathBuf {
        self.logs.join(format!("{session_id}.{LOG_EXTENSION}"))
    }

    #[cfg(feature = "sway")]
    pub(crate) fn compositor_log_path(&self) -> PathBuf {
        self.logs.join("compositor.log")
    }

    /// Returns the path of the record by which a later daemon reattaches a compositor.
    #[cfg(feature = "sway")]
    pub(crate) fn compositor_record_path(&self) -> PathBuf {
        self.sessions.join("compositor.record")
    }

    /// Removes the oldest logs beyond the limits. Sessions that run, or may run, keep their logs.
    pub(crate) fn prune_logs(&self) {
        let running = self.recorded_sessions();
        let mut logs: Vec<SessionLog> = fs::read_dir(&self.logs)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| SessionLog::from_path(entry.path()))
            .filter(|log| running.binary_search(&log.session_id).is_err())
            .collect();
        logs.sort_unstable_by(|a, b| (b.written, &b.path).cmp(&(a.written, &a.path)));
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

struct SessionLog {
    session_id: SessionId,
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
}

impl SessionLog {
    /// Returns `None` for files that are not logs of sessions.
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

    /// Makes a sparse log of this length. A session with a higher number has a newer log.
    fn write_log(folder: &StateFolder, number: u64, bytes: u64) -> PathBuf {
        let path = folder.log_path(&session(number));
        let file = File::create(&path).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number)).unwrap();
        path
    }

    /// S13: the output of programs can't fill the disk, however much a policy keeps.
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
        // A log of the greatest length that a policy can allow is kept, and all others go.
        let longest = write_log(&folder, 9, MAX_LOG_BYTES);
        folder.prune_logs();
        assert_eq!(left(), [false; 6]);
        assert!(longest.exists() && running.exists());
        // The session of the oldest log has ended now.
        folder.remove_handle(&session(1));
        folder.prune_logs();
        assert!(longest.exists() && !running.exists());
    }
}
