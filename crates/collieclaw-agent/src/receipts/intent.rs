//! That a call begins or somebody is asked about it, on disk: a file for each, locked by the process that does it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::receipt::CallAttempt;

/// What is on disk of a call that is not over. While this lives, its file is locked, and nobody takes it for one that a
/// crash left behind.
#[derive(Debug, Default)]
#[must_use = "a call that is on disk has to be concluded"]
pub struct CallIntent {
    locked_file: Option<(File, PathBuf)>,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentStage {
    /// Somebody is asked whether it may run.
    AwaitingApproval,
    /// It is about to run.
    Started,
}

/// A call whose process is gone.
pub(super) struct AbandonedIntent {
    pub(super) stage: IntentStage,
    pub(super) intent: CallIntent,
    pub(super) attempt: CallAttempt,
}

/// The file is locked and whole before it gets the ending of its stage.
const UNFINISHED_EXTENSION: &str = "new";

/// Nobody takes this long between making a file and naming it.
const STALE_AGE: Duration = Duration::from_secs(3600);

/// No intent is longer; what is, is not ours.
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
    /// Makes durable how far a call has come. It has one file, with one lock: when it comes further, that gets another
    /// line and another name.
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

    /// Its receipt is written. If the file can't be removed, the next who looks finds the receipt and removes it.
    pub(super) fn remove(self) {
        if let Some((_, path)) = self.locked_file {
            let _ = fs::remove_file(path);
        }
    }
}

/// A file of our own, locked.
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

/// Calls of processes that are gone.
pub(super) fn find_abandoned(folder: &Path) -> io::Result<Vec<AbandonedIntent>> {
    let mut left = Vec::new();
    for (path, id) in intent_files(folder)? {
        if let Some(stage) = IntentStage::from_path(&path) {
            let Some(file) = lock_abandoned(&path)? else { continue };
            // Of what can't be read its name is known: that there was a call.
            let attempt = read_attempt(&file, stage).unwrap_or_else(|| CallAttempt::unreadable(&id));
            left.push(AbandonedIntent {
                stage,
                intent: CallIntent { locked_file: Some((file, path)) },
                attempt,
            });
        } else if path.extension().is_some_and(|ending| ending == UNFINISHED_EXTENSION)
            && let Some(file) = lock_abandoned(&path)?
            && (file.metadata()?.len() > 0 || is_stale(&file))
        {
            // It never got its name, so nobody was asked and nothing ran. An empty one may be about to be locked.
            fs::remove_file(&path)?;
        }
    }
    Ok(left)
}

/// Calls that run or are asked about, in processes that live.
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

/// What has the name of a call in the folder, which need not be there.
fn intent_files(folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut ours = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ours),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let id = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .filter(|stem| is_receipt_id(stem))
            .map(str::to_owned);
        ours.extend(id.map(|id| (path, id)));
    }
    Ok(ours)
}

fn is_receipt_id(name: &str) -> bool {
    name.strip_prefix("receipt-")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// The file, if it is a plain one that nobody has removed. A pipe in its place would make us wait.
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

/// The file, locked by us now; `None` while its process lives, or when another has settled it.
fn lock_abandoned(path: &Path) -> io::Result<Option<File>> {
    let Some(file) = open_regular_file(path)? else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    // Whoever held the lock before may have settled it, or come further.
    Ok(path.try_exists()?.then_some(file))
}

fn is_stale(file: &File) -> bool {
    let made = file.metadata().and_then(|metadata| metadata.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > STALE_AGE))
}

/// What was known at that stage.
fn read_attempt(file: &File, stage: IntentStage) -> Option<CallAttempt> {
    let mut text = String::new();
    file.take(MAX_INTENT_BYTES).read_to_string(&mut text).ok()?;
    let line = match stage {
        IntentStage::AwaitingApproval => text.lines().next()?,
        IntentStage::Started => text.lines().next_back()?,
    };
    serde_json::from_str(line).ok()
}
