//! Intents: files that say which calls run or wait for an approval. Each file is locked by the process of its call, so
//! that a file without a lock belongs to a process that died.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::receipt::CallAttempt;

/// The intent of an unfinished call. While this value lives, its file is locked, so that no other process treats the
/// intent as abandoned.
#[derive(Debug, Default)]
#[must_use = "an intent on disk needs a receipt"]
pub struct CallIntent {
    locked_file: Option<(File, PathBuf)>,
}

/// The stage that a call has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentStage {
    /// The operator is asked whether the call may run.
    AwaitingApproval,
    /// The tool is about to run, or runs.
    Started,
}

/// The intent of a call whose process died.
pub(super) struct AbandonedIntent {
    pub(super) stage: IntentStage,
    pub(super) intent: CallIntent,
    pub(super) attempt: CallAttempt,
}

/// The extension of an intent that is being created. The file gets the extension of its stage when it is locked and
/// complete.
const UNFINISHED_EXTENSION: &str = "new";

/// The age from which an unfinished intent belongs to no living process: creating and renaming one takes far less.
const STALE_AGE: Duration = Duration::from_secs(3600);

/// The limit for reading an intent. Every intent is shorter.
const MAX_INTENT_BYTES: u64 = 1 << 16;

impl IntentStage {
    fn extension(self) -> &'static str {
        match self {
            Self::AwaitingApproval => "asked",
            Self::Started => "json",
        }
    }

    fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        [Self::AwaitingApproval, Self::Started].into_iter().find(|stage| ending == stage.extension())
    }
}

impl CallIntent {
    /// Writes to disk that a call has reached a stage. A call keeps its file and its lock: at the next stage the file gets
    /// another line and another name.
    pub(super) fn advance(
        &mut self,
        stage: IntentStage,
        attempt: &CallAttempt,
        folder: &Path,
    ) -> io::Result<()> {
        let named = folder.join(&attempt.id).with_extension(stage.extension());
        let line = serde_json::to_vec(attempt)?;
        if self.locked_file.is_none() {
            self.locked_file = Some(create_locked(folder, &named.with_extension(UNFINISHED_EXTENSION))?);
        }
        let Some((file, path)) = &mut self.locked_file else { return Ok(()) };
        file.write_all(&[line.as_slice(), b"\n"].concat())?;
        file.sync_all()?;
        fs::rename(&*path, &named)?;
        *path = named;
        File::open(folder)?.sync_all()
    }

    /// Removes the intent of a call that has its receipt. If that fails, the next process finds the receipt in the log and
    /// removes the file.
    pub(super) fn remove(self) {
        if let Some((_, path)) = self.locked_file {
            let _ = fs::remove_file(path);
        }
    }
}

/// Creates a locked file that only this user can read.
fn create_locked(folder: &Path, path: &Path) -> io::Result<(File, PathBuf)> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
        Ok(()) => folder.parent().map_or(Ok(()), |home| File::open(home)?.sync_all())?,
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.lock()?;
    Ok((file, path.to_owned()))
}

/// Returns the intents of processes that died, each locked by us now.
pub(super) fn find_abandoned(folder: &Path) -> io::Result<Vec<AbandonedIntent>> {
    let mut abandoned = Vec::new();
    for (path, id) in intent_files(folder)? {
        if let Some(stage) = IntentStage::from_path(&path) {
            let Some(file) = lock_abandoned(&path)? else { continue };
            // An intent that can't be read still proves by its name that there was a call.
            let attempt = read_attempt(&file, stage).unwrap_or_else(|| CallAttempt::unreadable(&id));
            abandoned.push(AbandonedIntent {
                stage,
                intent: CallIntent { locked_file: Some((file, path)) },
                attempt,
            });
        } else if path.extension().is_some_and(|ending| ending == UNFINISHED_EXTENSION)
            && let Some(file) = lock_abandoned(&path)?
            && (file.metadata()?.len() > 0 || is_stale(&file))
        {
            // The file never got its final name, so the operator was not asked and nothing ran. An empty file may belong
            // to a process that is about to lock it.
            fs::remove_file(&path)?;
        }
    }
    Ok(abandoned)
}

/// Returns the calls of living processes that run or wait for an approval.
pub(super) fn find_in_progress(folder: &Path) -> io::Result<Vec<CallAttempt>> {
    let mut attempts = Vec::new();
    for (path, _) in intent_files(folder)? {
        let (Some(stage), Some(file)) = (IntentStage::from_path(&path), open_regular_file(&path)?) else {
            continue;
        };
        if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            attempts.extend(read_attempt(&file, stage));
        }
    }
    Ok(attempts)
}

/// Returns the files in the folder that have the name of an intent, with the id in the name. The folder may be missing.
fn intent_files(folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let id = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .filter(|stem| is_receipt_id(stem))
            .map(str::to_owned);
        files.extend(id.map(|id| (path, id)));
    }
    Ok(files)
}

fn is_receipt_id(name: &str) -> bool {
    name.strip_prefix("receipt-")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Opens a regular file; `None` if it is something else or was removed. Opening a named pipe would block.
fn open_regular_file(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(None),
    }
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Opens and locks a file whose process died; `None` if the process lives, or another process wrote the receipt already.
fn lock_abandoned(path: &Path) -> io::Result<Option<File>> {
    let Some(file) = open_regular_file(path)? else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    // The holder of the lock before us may have removed the file, or renamed it for the next stage.
    Ok(path.try_exists()?.then_some(file))
}

fn is_stale(file: &File) -> bool {
    let made = file.metadata().and_then(|metadata| metadata.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > STALE_AGE))
}

/// Reads the attempt as it was known at that stage.
fn read_attempt(file: &File, stage: IntentStage) -> Option<CallAttempt> {
    let mut text = String::new();
    file.take(MAX_INTENT_BYTES).read_to_string(&mut text).ok()?;
    let line = match stage {
        IntentStage::AwaitingApproval => text.lines().next()?,
        IntentStage::Started => text.lines().next_back()?,
    };
    serde_json::from_str(line).ok()
}
