//! The files of a log: their names, and how they are opened.
//!
//! Beside the log `NAME` lie its head `NAME.head`, its closed segments `NAME.000001` and so on, and
//! half-written lines that crashes left behind, `NAME.torn-SEQUENCE-COUNTER`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The minimum number of digits in the name of a segment. With six, the first million segments sort by name.
const SEGMENT_DIGITS: usize = 6;

fn base_open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // NOFOLLOW: an attacker could plant a symlink at our path and so choose the file that we write to.
    // NONBLOCK: an attacker could plant a pipe and so block us.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.read(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

/// Opens an existing file for reading, without following a symlink.
pub(crate) fn open_existing(path: &Path) -> io::Result<File> {
    base_open_options().open(path)
}

/// Creates a file that must not exist yet.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    base_open_options().write(true).create_new(true).open(path)
}

/// Opens a file for writing at any offset, and creates it if it doesn't exist.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    require_regular_file(base_open_options().write(true).create(true).truncate(false).open(path)?)
}

/// Opens a file for appending, and creates it if it doesn't exist.
pub(crate) fn open_or_create_to_append(path: &Path) -> io::Result<File> {
    require_regular_file(base_open_options().append(true).create(true).open(path)?)
}

fn require_regular_file(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(crate) fn from_metadata(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Returns the identity and length of the file at a path, or `None` if there is no file.
pub(crate) fn stat_path(path: &Path) -> io::Result<Option<(FileIdentity, u64)>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some((FileIdentity::from_metadata(&metadata), metadata.len()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Appends a dot and `suffix` to a path.
pub(crate) fn path_with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) fn head_path(log: &Path) -> PathBuf {
    path_with_suffix(log, "head")
}

pub(crate) fn segment_path(log: &Path, number: u64) -> PathBuf {
    path_with_suffix(log, &segment_suffix(number))
}

fn segment_suffix(number: u64) -> String {
    format!("{number:0SEGMENT_DIGITS$}")
}

fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the folder of `path`, so that created and renamed files survive a crash.
pub(crate) fn sync_parent_folder(path: &Path) -> io::Result<()> {
    File::open(parent_folder(path))?.sync_all()
}

/// The name of a file that contains a torn line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TornFileName {
    /// The number that the record would have had.
    pub(crate) sequence: u64,
    /// Distinguishes several files with the same sequence number.
    pub(crate) counter: u64,
}

impl TornFileName {
    pub(crate) fn path(self, log: &Path) -> PathBuf {
        path_with_suffix(log, &format!("torn-{}-{}", self.sequence, self.counter))
    }

    fn parse(suffix: &str) -> Option<Self> {
        let (sequence, counter) = suffix.strip_prefix("torn-")?.split_once('-')?;
        Some(Self { sequence: sequence.parse().ok()?, counter: counter.parse().ok()? })
    }
}

/// The files of a log, other than the current segment and the head.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SiblingFiles {
    /// The numbers of the closed segments, in order.
    pub(crate) closed: Vec<u64>,
    /// The first number that is missing among the closed segments.
    pub(crate) missing: Option<u64>,
    /// The files with torn lines, in order.
    pub(crate) torn: Vec<TornFileName>,
    /// The names of files that are named like segments but are not part of the log, in order.
    pub(crate) strays: Vec<String>,
}

/// Lists the files beside a log. `current` is the number of the current segment according to the head, if
/// there is a head. A crash may have left that segment closed already, but there is never a segment with a
/// higher number.
pub(crate) fn list_siblings(log: &Path, current: Option<u64>) -> io::Result<SiblingFiles> {
    let Some(name) = log.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
    };
    let mut siblings = SiblingFiles::default();
    for entry in fs::read_dir(parent_folder(log))? {
        let entry = entry?;
        let entry_name = entry.file_name();
        let suffix = entry_name.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let suffix = suffix.and_then(|suffix| suffix.strip_prefix(b".")).unwrap_or_default();
        let Ok(suffix) = std::str::from_utf8(suffix) else { continue };
        if suffix.len() < SEGMENT_DIGITS || !suffix.bytes().all(|byte| byte.is_ascii_digit()) {
            siblings.torn.extend(TornFileName::parse(suffix));
            continue;
        }
        let number = segment_number(suffix).filter(|number| current.is_none_or(|current| *number <= current));
        match number {
            Some(number) if !is_empty_file(&entry)? => siblings.closed.push(number),
            _ => siblings.strays.push(entry_name.to_string_lossy().into_owned()),
        }
    }
    siblings.closed.sort_unstable();
    siblings.torn.sort_unstable();
    siblings.strays.sort_unstable();
    siblings.missing = first_missing(&siblings.closed, current);
    Ok(siblings)
}

/// Parses the number of a closed segment. Returns `None` for spellings that the ledger never uses, such as
/// extra zeros.
fn segment_number(suffix: &str) -> Option<u64> {
    let number = suffix.parse().ok().filter(|number| *number > 0)?;
    (segment_suffix(number) == suffix).then_some(number)
}

/// Returns true for an empty file. An empty file is never a segment, because empty segments are never closed.
fn is_empty_file(entry: &fs::DirEntry) -> io::Result<bool> {
    let metadata = entry.metadata()?;
    Ok(metadata.is_file() && metadata.len() == 0)
}

fn first_missing(closed: &[u64], current: Option<u64>) -> Option<u64> {
    let in_row = (1..).zip(closed).take_while(|(expected, number)| expected == *number).count();
    let expected = current.map_or(0, |current| current.saturating_sub(1));
    (in_row < closed.len() || (in_row as u64) < expected).then_some(in_row as u64 + 1)
}

#[cfg(test)]
mod tests;
