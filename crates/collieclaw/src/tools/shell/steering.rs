//! What makes programs that the operator starts in the workspace later run something else. Where it is there, the sandbox
//! keeps it as it is; where it is not, nothing in the kernel keeps a command from making it, so it is set aside afterwards.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::super::room::STEERING;

/// Names of such things that are missing in a folder that is there.
pub(super) struct Steering {
    missing: Vec<PathBuf>,
}

impl Steering {
    /// Looks before a line begins.
    pub(super) fn look(workspace: &Path) -> Self {
        let could_be_made =
            |path: &PathBuf| path.symlink_metadata().is_err() && path.parent().is_some_and(Path::is_dir);
        Self { missing: STEERING.iter().map(|name| workspace.join(name)).filter(could_be_made).collect() }
    }

    /// Sets aside what has come since. What is told of it, a line each.
    pub(super) fn set_aside(self) -> Vec<String> {
        let come = self.missing.into_iter().filter(|path| path.symlink_metadata().is_ok());
        come.map(|path| match aside(&path) {
            Ok(place) => format!(
                "collieclaw: `{}` would steer other programs; it was set aside as {}",
                path.display(),
                place.display()
            ),
            Err(error) => format!(
                "collieclaw: `{}` steers other programs, and can't be set aside ({error}): remove it before you use \
                 them here",
                path.display()
            ),
        })
        .collect()
    }
}

/// Beside it, under a name that means nothing to anyone.
fn aside(path: &Path) -> std::io::Result<PathBuf> {
    let named = |number: u32| {
        let mut name = OsString::from(path);
        name.push(format!(".set-aside-{number}"));
        PathBuf::from(name)
    };
    let free = (1..).map(named).find(|place| place.symlink_metadata().is_err());
    let place = free.ok_or(std::io::ErrorKind::AlreadyExists)?;
    std::fs::rename(path, &place)?;
    Ok(place)
}
