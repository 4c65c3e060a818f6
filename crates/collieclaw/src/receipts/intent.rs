//! That a call begins or somebody is asked about it, on disk: a file for each, locked by the process that does it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::receipt::Attempt;

/// A call that has come so far. While this lives, its file is locked, and nobody takes it for one that a crash left
/// behind.
#[derive(Debug)]
#[must_use = "a call that has begun has to be concluded"]
pub struct Intent {
    written: Option<(File, PathBuf)>,
}

/// How far a call has come; the one that is further first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is about to run.
    Begun,
    /// Somebody is asked whether it may.
    Asked,
}

/// A call whose process is gone.
pub(super) struct Left {
    pub(super) stage: Stage,
    pub(super) intent: Intent,
    pub(super) attempt: Attempt,
}

/// The file is locked and whole before it gets the ending of its stage.
const UNFINISHED: &str = "new";

impl Stage {
    fn ending(self) -> &'static str {
        match self {
            Self::Begun => "json",
            Self::Asked => "asked",
        }
    }

    fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        [Self::Begun, Self::Asked].into_iter().find(|stage| ending == stage.ending())
    }
}

/// Nobody takes this long between making a file and naming it.
const OLD: Duration = Duration::from_secs(3600);

/// No intent is longer; what is, is not ours.
const LONGEST: u64 = 1 << 16;

impl Intent {
    pub(crate) fn none() -> Self {
        Self { written: None }
    }

    pub(super) fn write(folder: &Path, attempt: &Attempt, stage: Stage) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => folder.parent().map_or(Ok(()), |home| File::open(home)?.sync_all())?,
        }
        let path = folder.join(&attempt.id).with_extension(stage.ending());
        let unfinished = path.with_extension(UNFINISHED);
        let mut file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.lock()?;
        file.write_all(&serde_json::to_vec(attempt)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        File::open(folder)?.sync_all()?;
        Ok(Self { written: Some((file, path)) })
    }

    /// Its receipt is written, or it has come further. If the file can't be removed, the next who looks finds the receipt and removes it.
    pub(crate) fn forget(self) {
        if let Some((_, path)) = self.written {
            let _ = fs::remove_file(path);
        }
    }
}

/// Calls of processes that are gone. Of one that was asked about and then began, its beginning comes first.
pub(super) fn left_behind(folder: &Path) -> io::Result<Vec<Left>> {
    let mut left = Vec::new();
    for path in paths(folder)? {
        if let Some(stage) = Stage::of(&path) {
            let Some(file) = unlocked(&path)? else { continue };
            // Of what can't be read its name is known: that there was a call.
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let attempt = read(&file).unwrap_or_else(|| Attempt::unreadable(&name));
            left.push(Left { stage, intent: Intent { written: Some((file, path)) }, attempt });
        } else if path.extension().is_some_and(|ending| ending == UNFINISHED)
            && let Some(file) = unlocked(&path)?
            && (file.metadata()?.len() > 0 || is_old(&file))
        {
            // It never got its name, so its call never ran. An empty one may be about to be locked.
            fs::remove_file(&path)?;
        }
    }
    left.sort_by_key(|left| left.stage);
    Ok(left)
}

/// Calls that run, in processes that live.
pub(super) fn under_way(folder: &Path) -> io::Result<Vec<Attempt>> {
    let mut attempts = Vec::new();
    for path in paths(folder)? {
        if Stage::of(&path) != Some(Stage::Begun) {
            continue;
        }
        let Some(file) = opened(&path)? else { continue };
        if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            attempts.extend(read(&file));
        }
    }
    Ok(attempts)
}

/// What is in the folder, which need not be there.
fn paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

/// The file, if nobody has removed it.
fn opened(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// The file, locked by us now; `None` while its process lives, or when another has settled it.
fn unlocked(path: &Path) -> io::Result<Option<File>> {
    let Some(file) = opened(path)? else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    // Whoever held the lock before may have settled it.
    Ok(path.try_exists()?.then_some(file))
}

fn is_old(file: &File) -> bool {
    let made = file.metadata().and_then(|metadata| metadata.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > OLD))
}

fn read(file: &File) -> Option<Attempt> {
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
