//! The folder for the control socket of a player or a virtual machine.
//!
//! The folder belongs to the daemon, and an access control list opens it to the user of the session.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use ward_process::UserIdentity;

use crate::access_list::{self, Access};

/// Creates the folder, open to the daemon's user and to the user of the session.
pub(crate) fn make(folder: &Path, identity: Option<&UserIdentity>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)?;
    // The daemon's umask may have removed permissions.
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    let Some(identity) = identity else { return Ok(()) };
    access_list::set(folder, &[(identity.user(), Access::Full)]).inspect_err(|_| {
        let _ = std::fs::remove_dir(folder);
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Returns whether a user can create a file in a folder and list the folder.
    fn can_use_folder(user: u32, folder: &Path) -> bool {
        let user = format!("--reuid={user}");
        let script = format!("cd '{0}' && : > made-by-$(id -u) && ls '{0}'", folder.display());
        let done = Command::new("setpriv")
            .args([&user, "--regid=65000", "--clear-groups", "sh", "-c", &script])
            .output()
            .unwrap();
        done.status.success()
    }

    #[test]
    fn the_folder_is_open_to_the_user_of_the_session_and_to_no_other() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
        let folder = parent.path().join("shepherd-1");
        if !rustix::process::geteuid().is_root() {
            make(&folder, None).unwrap();
            assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
            return;
        }
        make(&folder, Some(&UserIdentity::new(65_001, 65_000, &[65_000]))).unwrap();
        assert!(can_use_folder(65_001, &folder));
        // Another user of the same group.
        assert!(!can_use_folder(65_002, &folder));
        assert!(
            !Command::new("setpriv")
                .args(["--reuid=65001", "--regid=65000", "--clear-groups", "chmod", "777"])
                .arg(&folder)
                .output()
                .unwrap()
                .status
                .success()
        );
    }
}
