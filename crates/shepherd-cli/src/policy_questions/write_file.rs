//! Writes the policy file as a whole.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::ShepherdCliError;

/// Most old files that are kept side by side.
const MAX_OLD: usize = 100;

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks before the first question that a file can be written.
pub(super) fn check_folder(file: &Path) -> Result<(), ShepherdCliError> {
    let folder = folder_of(file);
    std::fs::create_dir_all(folder).map_err(ShepherdCliError::file(folder))?;
    tempfile::NamedTempFile::new_in(folder).map(drop).map_err(ShepherdCliError::file(folder))
}

/// Writes the file, and returns where the old one is kept if there was one.
pub(super) fn replace_file(file: &Path, text: &str) -> Result<Option<PathBuf>, ShepherdCliError> {
    let folder = folder_of(file);
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(ShepherdCliError::file(folder))?;
    let written = new.write_all(text.as_bytes());
    let written = written.and_then(|()| new.as_file().set_permissions(Permissions::from_mode(0o644)));
    written.and_then(|()| new.as_file().sync_all()).map_err(ShepherdCliError::file(file))?;
    let old = keep_old(file)?;
    // The file is replaced only if it was kept before; another one that appears now stays.
    let placed = if old.is_some() { new.persist(file) } else { new.persist_noclobber(file) };
    placed.map_err(|error| ShepherdCliError::file(file)(error.error))?;
    Ok(old)
}

/// Gives the old file a second name. Returns `None` if there is no old file.
fn keep_old(file: &Path) -> Result<Option<PathBuf>, ShepherdCliError> {
    for number in 1..=MAX_OLD {
        let mut name = file.as_os_str().to_owned();
        name.push(if number == 1 { ".old".to_owned() } else { format!(".old{number}") });
        let old = PathBuf::from(name);
        match std::fs::hard_link(file, &old) {
            Ok(()) => return Ok(Some(old)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(ShepherdCliError::file(old)(error)),
        }
    }
    Err(ShepherdCliError::PolicyExists { file: file.to_owned() })
}
