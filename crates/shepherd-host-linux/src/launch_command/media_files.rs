//! The files of a library.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::start_job::LaunchError;

/// What is taken for media in a folder. A file that a library names itself is taken as it is.
const MEDIA_EXTENSIONS: &[&str] = &[
    "aac", "avi", "bmp", "flac", "flv", "gif", "jpeg", "jpg", "m4a", "m4v", "mka", "mkv", "mov", "mp3",
    "mp4", "mpeg", "mpg", "oga", "ogg", "ogv", "opus", "png", "ts", "wav", "webm", "webp", "wma", "wmv",
    "y4m",
];

/// Folders in folders.
const DEPTH: u32 = 16;

/// A command line has no room for more.
const MAX_BYTES: usize = 1 << 20;

/// Names that are looked at. Whoever fills a folder with more has no library, and may be after our memory.
const MAX_NAMES: usize = 50_000;

/// All files of a library: in the order in which it names them, and by name inside of folders.
pub(super) fn library_files(library_id: &str, paths: &[String]) -> Result<Vec<PathBuf>, LaunchError> {
    let mut found = MediaScan::default();
    for path in paths {
        let path = Path::new(path);
        let unreadable = |why: String| {
            let place = format!("library `{library_id}`: `{}`", path.display());
            LaunchError::new(format!("{place} {why}"), "correct its `paths`, or mount what is missing")
        };
        if !path.is_absolute() {
            return Err(unreadable("is no whole path".to_owned()));
        }
        let metadata = fs::metadata(path).map_err(|error| unreadable(format!("can't be read ({error})")))?;
        let looked =
            if metadata.is_dir() { found.walk(path, DEPTH) } else { found.add_file(path.to_owned()) };
        looked.map_err(|trouble| match trouble {
            MediaScanError::Unreadable(error) => unreadable(format!("can't be read ({error})")),
            MediaScanError::TooMany => LaunchError::new(
                format!("library `{library_id}` has more files than a command line holds"),
                "make several libraries of it",
            ),
        })?;
    }
    if found.files.is_empty() {
        return Err(LaunchError::new(
            format!("library `{library_id}` has no files to play"),
            "put some into its folders, or correct its `paths`",
        ));
    }
    Ok(found.files)
}

/// What was found so far, and what that took.
#[derive(Default)]
struct MediaScan {
    files: Vec<PathBuf>,
    bytes: usize,
    names: usize,
}

/// Why nothing more is looked for.
enum MediaScanError {
    Unreadable(io::Error),
    TooMany,
}

impl MediaScan {
    fn walk(&mut self, folder: &Path, depth: u32) -> Result<(), MediaScanError> {
        for entry in self.list(folder)? {
            let path = entry.path();
            // A link to a folder may lead in a circle; one to a file does not.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth > 0 {
                match self.walk(&path, depth - 1) {
                    // One that can't be read has nothing to show.
                    Ok(()) | Err(MediaScanError::Unreadable(_)) => {}
                    Err(MediaScanError::TooMany) => return Err(MediaScanError::TooMany),
                }
            } else if is_media(&path) && path.is_file() {
                self.add_file(path)?;
            }
        }
        Ok(())
    }

    /// What is not hidden in a folder, by name.
    fn list(&mut self, folder: &Path) -> Result<Vec<fs::DirEntry>, MediaScanError> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(MediaScanError::Unreadable)?.flatten() {
            self.names += 1;
            if self.names > MAX_NAMES {
                return Err(MediaScanError::TooMany);
            }
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                entries.push(entry);
            }
        }
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        Ok(entries)
    }

    fn add_file(&mut self, file: PathBuf) -> Result<(), MediaScanError> {
        self.bytes += file.as_os_str().len() + 1;
        if self.bytes > MAX_BYTES {
            return Err(MediaScanError::TooMany);
        }
        self.files.push(file);
        Ok(())
    }
}

fn is_media(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| MEDIA_EXTENSIONS.contains(&ending.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It gives up in the middle, not when all of it is in memory.
    #[test]
    fn a_folder_is_read_only_as_far_as_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.mp4", "b.mp4", ".hidden"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let walk = |mut found: MediaScan| found.walk(folder.path(), DEPTH).map(|()| found.files.len());
        assert!(matches!(walk(MediaScan::default()), Ok(2)));
        assert!(matches!(walk(MediaScan { names: MAX_NAMES - 3, ..MediaScan::default() }), Ok(2)));
        assert!(matches!(
            walk(MediaScan { names: MAX_NAMES - 2, ..MediaScan::default() }),
            Err(MediaScanError::TooMany)
        ));
        assert!(matches!(
            walk(MediaScan { bytes: MAX_BYTES - 8, ..MediaScan::default() }),
            Err(MediaScanError::TooMany)
        ));
        let too_many = library_files("films", &vec![folder.path().to_str().unwrap().to_owned(); MAX_NAMES]);
        let fault = too_many.err().map(|fault| fault.message);
        assert_eq!(fault.as_deref(), Some("library `films` has more files than a command line holds"));
    }
}
