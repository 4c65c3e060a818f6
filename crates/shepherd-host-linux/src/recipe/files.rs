//! The files of a library.

use std::fs;
use std::path::{Path, PathBuf};

use crate::start::Fault;

/// What is taken for media in a folder. A file that a library names itself is taken as it is.
const ENDINGS: &[&str] = &[
    "aac", "avi", "bmp", "flac", "flv", "gif", "jpeg", "jpg", "m4a", "m4v", "mka", "mkv", "mov", "mp3",
    "mp4", "mpeg", "mpg", "oga", "ogg", "ogv", "opus", "png", "ts", "wav", "webm", "webp", "wma", "wmv",
    "y4m",
];

/// Folders in folders.
const DEPTH: u32 = 16;

/// A command line has no room for more.
const MAX_BYTES: usize = 1 << 20;

/// All files of a library: in the order in which it names them, and by name inside of folders.
pub(super) fn of_library(library_id: &str, paths: &[String]) -> Result<Vec<PathBuf>, Fault> {
    let mut files = Vec::new();
    for path in paths {
        let path = Path::new(path);
        let unreadable = |why: String| {
            let place = format!("library `{library_id}`: `{}`", path.display());
            Fault::new(format!("{place} {why}"), "correct its `paths`, or mount what is missing")
        };
        if !path.is_absolute() {
            return Err(unreadable("is no whole path".to_owned()));
        }
        let metadata = fs::metadata(path).map_err(|error| unreadable(format!("can't be read ({error})")))?;
        if metadata.is_dir() {
            walk(path, DEPTH, &mut files).map_err(|error| unreadable(format!("can't be read ({error})")))?;
        } else {
            files.push(path.to_owned());
        }
    }
    if files.is_empty() {
        return Err(Fault::new(
            format!("library `{library_id}` has no files to play"),
            "put some into its folders, or correct its `paths`",
        ));
    }
    let bytes: usize = files.iter().map(|file| file.as_os_str().len() + 1).sum();
    if bytes > MAX_BYTES {
        return Err(Fault::new(
            format!("library `{library_id}` has {} files, more than a command line holds", files.len()),
            "make several libraries of it",
        ));
    }
    Ok(files)
}

fn walk(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.flatten().collect();
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A link to a folder may lead in a circle; one to a file does not.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_hidden {
            continue;
        }
        if is_folder && depth > 0 {
            // One that can't be read has nothing to show.
            let _ = walk(&path, depth - 1, files);
        } else if is_media(&path) && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn is_media(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}
