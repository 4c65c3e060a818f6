//! What a crash left half-written: moved to a file of its own, and never forgotten.
//!
//! Three steps, any of which may be the last: the bytes are copied to `NAME.torn-N-I`, cut off the
//! log, and told of by the log's next record, which has the number N itself. So a torn file of the
//! number that comes next is one that no record tells of yet.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::TornTail;
use crate::files::{self, TornFileName};

/// The most that one record tells of; a crash makes one, and a crash while putting it aside another.
const MAX_REPORTED_TAILS: usize = 64;

/// Copies what follows `end` to a new file, and then cuts it off. A crash in between leaves both;
/// the next opener makes a second copy.
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
        // Half a copy is of no use, and the log still has the whole; a failure here changes nothing.
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

/// Those of the torn files that no record tells of while `sequence` is the number that comes next.
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
