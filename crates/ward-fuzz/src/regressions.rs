//! Loads and saves the inputs that failed in earlier runs, one file each.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// Reads the saved inputs in the order of their file names. A missing folder counts as empty.
pub(crate) fn load(folder: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).map(|input| (path, input))).collect()
}

/// Saves an input under a file name made from the hash of its content. If the checkout is read-only, the file goes to
/// the system's temporary folder instead.
pub(crate) fn keep(folder: &Path, input: &[u8]) -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let name = format!("{:016x}", hasher.finish());
    [folder.to_owned(), std::env::temp_dir().join("ward-fuzz")].into_iter().find_map(|folder| {
        let path = folder.join(&name);
        fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input)).ok().map(|()| path)
    })
}
