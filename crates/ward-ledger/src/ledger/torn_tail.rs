//! Torn tails: half-written lines that a crash left at the end of a log.
//!
//! A torn tail is handled in three steps, and a crash may come after any of them: the bytes are copied to
//! `NAME.torn-N-I`, then cut off the log, and then reported by the next record of the log, which gets the
//! number N itself. So if N is the number of the next record, the file `torn-N-I` hasn't been reported yet.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::TornTail;
use crate::files::{self, TornFileName};

/// The maximum number of torn files that a recovery record lists. A crash creates one torn file, and a crash
/// while moving the tail creates another.
const MAX_REPORTED_TAILS: usize = 64;

/// Copies the bytes after `end` to a new file, and then cuts them off the log. After a crash in between, the
/// next opener makes a second copy.
pub(super) fn move_to_torn_file(
    log: &Path,
    file: &File,
    end: u64,
    sequence: u64,
) -> io::Result<TornFileName> {
    let (name, mut kept) = create_torn_file(log, sequence)?;
    let path = name.path(log);
    let mut copy = || {
        let mut source = file.try_clone()?;
        source.seek(SeekFrom::Start(end))?;
        io::copy(&mut source, &mut kept)?;
        kept.sync_all()?;
        files::sync_parent_folder(&path)
    };
    copy().inspect_err(|_: &io::Error| {
        // The log still has all the bytes, so the partial copy can go. It is harmless if removing it fails.
        drop(fs::remove_file(&path));
    })?;
    file.set_len(end)?;
    file.sync_data()?;
    Ok(name)
}

fn create_torn_file(log: &Path, sequence: u64) -> io::Result<(TornFileName, File)> {
    let mut name = TornFileName { sequence, counter: 1 };
    loop {
        match files::create_new(&name.path(log)) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => name.counter += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Returns the torn files that no record reports yet, given that the next record has the number `sequence`.
pub(super) fn unreported_tails(
    log: &Path,
    names: &[TornFileName],
    sequence: u64,
) -> io::Result<Vec<TornTail>> {
    let mut tails = Vec::new();
    for name in names.iter().filter(|name| name.sequence == sequence).take(MAX_REPORTED_TAILS) {
        let kept_in = name.path(log);
        if let Some((_, bytes)) = files::stat_path(&kept_in)? {
            tails.push(TornTail { sequence, bytes, kept_in });
        }
    }
    Ok(tails)
}
