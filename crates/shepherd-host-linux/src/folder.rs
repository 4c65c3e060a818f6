//! The state folder: what runs, and what it said.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use shepherd_host_api::HostSessionHandle;
use shepherd_util::SessionId;

use crate::options::HostError;

/// Logs that are kept: some weeks of an ordinary household, and at the default bound at most 200 MB.
const KEPT_LOGS: usize = 200;

/// Logs by which there may be more.
const PRUNED_AT_ONCE: usize = 20;

/// No handle of ours comes near it.
const MAX_HANDLE: u64 = 1 << 20;

const HANDLE: &str = "handle";

/// Where everything is that outlives the host.
#[derive(Clone, Debug)]
pub(crate) struct StateFolder {
    sessions: PathBuf,
    logs: PathBuf,
}

impl StateFolder {
    pub(crate) fn open(state: &Path) -> Result<Self, HostError> {
        let folder = Self { sessions: state.join("sessions"), logs: state.join("logs") };
        for path in [&folder.sessions, &folder.logs] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|source| HostError::Folder { folder: path.clone(), source })?;
        }
        Ok(folder)
    }

    /// Written before the program runs. Not synced: it names a process tree of this boot, and whatever the disk has
    /// lost after a power failure, that tree is lost as well. There is none yet: a session is started once.
    pub(crate) fn write(&self, session_id: &SessionId, handle: &HostSessionHandle) -> io::Result<()> {
        let path = self.handle_path(session_id);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(handle.as_str().as_bytes()).inspect_err(|_| self.forget(session_id))
    }

    /// What was written down; `None` if nothing was. A half-written one is none: its program never ran.
    pub(crate) fn read(&self, session_id: &SessionId) -> io::Result<Option<HostSessionHandle>> {
        let mut text = String::new();
        match File::open(self.handle_path(session_id)) {
            Ok(file) => _ = file.take(MAX_HANDLE).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(HostSessionHandle::new(text)))
    }

    /// A file that can't be removed is removed by a later daemon, when it finds nothing behind it.
    pub(crate) fn forget(&self, session_id: &SessionId) {
        let _ = fs::remove_file(self.handle_path(session_id));
    }

    /// Sessions of which something is written down.
    pub(crate) fn written_down(&self) -> Vec<SessionId> {
        let entries = fs::read_dir(&self.sessions).into_iter().flatten().flatten();
        let mut found: Vec<SessionId> = entries
            .filter_map(|entry| {
                let path = entry.path();
                let is_handle = path.extension().is_some_and(|extension| extension == HANDLE);
                path.file_stem().filter(|_| is_handle)?.to_str()?.parse().ok()
            })
            .collect();
        found.sort_unstable();
        found
    }

    pub(crate) fn log_path(&self, session_id: &SessionId) -> PathBuf {
        self.logs.join(format!("{session_id}.log"))
    }

    /// Of a compositor that we start.
    pub(crate) fn compositor_log_path(&self) -> PathBuf {
        self.logs.join("compositor.log")
    }

    /// Removes the oldest logs beyond those that are kept, some at a time, so that not every session looks at all.
    pub(crate) fn prune_logs(&self) {
        let entries = fs::read_dir(&self.logs).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let logs: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
        if logs.len() <= KEPT_LOGS + PRUNED_AT_ONCE {
            return;
        }
        let age = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
        let mut logs: Vec<(SystemTime, PathBuf)> = logs.into_iter().filter_map(age).collect();
        logs.sort_unstable();
        let surplus = logs.len().saturating_sub(KEPT_LOGS);
        for (_, path) in logs.into_iter().take(surplus) {
            let _ = fs::remove_file(path);
        }
    }

    fn handle_path(&self, session_id: &SessionId) -> PathBuf {
        self.sessions.join(format!("{session_id}.{HANDLE}"))
    }
}
