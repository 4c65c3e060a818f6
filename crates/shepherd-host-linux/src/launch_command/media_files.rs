//! Finds the media files of a library.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::launch_error::LaunchError;

/// The extensions of media files in a folder. A file that a library names itself may have any extension.
const MEDIA_EXTENSIONS: &[&str] = &[
    "aac", "avi", "bmp", "flac", "flv", "gif", "jpeg", "jpg", "m4a", "m4v", "mka", "mkv", "mov", "mp3",
    "mp4", "mpeg", "mpg", "oga", "ogg", "ogv", "opus", "png", "ts", "wav", "webm", "webp", "wma", "wmv",
    "y4m",
];

/// The greatest depth of nested folders.
const MAX_DEPTH: u32 = 16;

/// The total length of all paths, which has to fit into a command line.
const MAX_BYTES: usize = 1 << 20;

/// The number of directory entries that are read. A folder with more is no library, and may be an attempt to exhaust
/// the daemon's memory.
const MAX_NAMES: usize = 50_000;

/// Returns all files of a library, in the order of its `paths`, and sorted by name inside of folders.
pub(super) fn library_files(library_id: &str, paths: &[String]) -> Result<Vec<PathBuf>, LaunchError> {
    let mut scan = MediaScan::default();
    for path in paths {
        let path = Path::new(path);
        let failed = |message: String| {
            let help = "correct its `paths`, or mount the missing disk";
            LaunchError::new(format!("library `{library_id}`: {message}"), help)
        };
        let unreadable = |error| failed(format!("could not read `{}`: {error}", path.display()));
        if !path.is_absolute() {
            return Err(failed(format!("`{}` is not an absolute path", path.display())));
        }
        let metadata = fs::metadata(path).map_err(unreadable)?;
        let scanned =
            if metadata.is_dir() { scan.walk(path, MAX_DEPTH) } else { scan.add_file(path.to_owned()) };
        scanned.map_err(|error| match error {
            MediaScanError::Unreadable(error) => unreadable(error),
            MediaScanError::TooMany => LaunchError::new(
                format!("library `{library_id}` has too many files for a command line"),
                "split it into several libraries",
            ),
        })?;
    }
    if scan.files.is_empty() {
        return Err(LaunchError::new(
            format!("library `{library_id}` contains no media files"),
            "add some to its folders, or correct its `paths`",
        ));
    }
    Ok(scan.files)
}

/// The files that were found so far, and the resources that they used.
#[derive(Default)]
struct MediaScan {
    files: Vec<PathBuf>,
    bytes: usize,
    names: usize,
}

enum MediaScanError {
    Unreadable(io::Error),
    TooMany,
}

impl MediaScan {
    fn walk(&mut self, folder: &Path, depth: u32) -> Result<(), MediaScanError> {
        for entry in self.list(folder)? {
            let path = entry.path();
            // A symlink to a folder could lead in a circle, so only symlinks to files are followed.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth > 0 {
                match self.walk(&path, depth - 1) {
                    // An unreadable folder inside of a library counts as empty.
                    Ok(()) | Err(MediaScanError::Unreadable(_)) => {}
                    Err(MediaScanError::TooMany) => return Err(MediaScanError::TooMany),
                }
            } else if is_media(&path) && path.is_file() {
                self.add_file(path)?;
            }
        }
        Ok(())
    }

    /// Returns the entries of a folder that are not hidden, sorted by name.
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
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| MEDIA_EXTENSIONS.contains(&extension.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scan stops at its limit, and doesn't read the rest into memory.
    #[test]
    fn a_folder_is_read_up_to_the_maximum_number_of_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.mp4", "b.mp4", ".hidden"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let walk = |mut scan: MediaScan| scan.walk(folder.path(), MAX_DEPTH).map(|()| scan.files.len());
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
        let message = too_many.err().map(|error| error.message);
        assert_eq!(message.as_deref(), Some("library `films` has too many files for a command line"));
    }
}
