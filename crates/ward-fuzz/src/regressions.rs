//! Inputs that failed once, kept as files.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// The kept inputs in the order of their names; none if there is no folder.
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

/// Keeps an input under a name that follows from its content. A checkout that can't be written to gets it in the
/// folder for temporary files instead.
pub(crate) fn keep(folder: &Path, input: &[u8]) -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let name = format!("{:016x}", hasher.finish());
    [folder.to_owned(), std::env::temp_dir().join("ward-fuzz")].into_iter().find_map(|folder| {
        let path = folder.join(&name);
        fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input)).ok().map(|()| path)
    })
}
