//! The folder for the control socket of a player or a virtual machine.
//!
//! The folder belongs to the daemon, and an access control list opens it to the user of the session. Changing its owner
//! would need a capability (`CAP_CHOWN`) that the daemon needs for nothing else, and would let the session change the
//! permissions.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::XattrFlags;
use ward_process::UserIdentity;

/// The extended attribute that holds the list, and the only version of its format (`acl(5)`).
const ACL_ATTRIBUTE: &str = "system.posix_acl_access";
const ACL_VERSION: u32 = 2;

/// The tags of entries, in the order that the kernel requires.
const ACL_USER_OBJ: u16 = 0x01;
const ACL_USER: u16 = 0x02;
const ACL_GROUP_OBJ: u16 = 0x04;
const ACL_MASK: u16 = 0x10;
const ACL_OTHER: u16 = 0x20;

const READ_WRITE_EXECUTE: u16 = 0o7;
const NO_ACCESS: u16 = 0;

/// The id in entries that name no user or group.
const ACL_UNDEFINED_ID: u32 = u32::MAX;

/// Creates the folder, open to the daemon's user and to the user of the session.
pub(crate) fn make(folder: &Path, identity: Option<&UserIdentity>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)?;
    // The daemon's umask may have removed permissions.
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    let Some(identity) = identity else { return Ok(()) };
    let opened =
        rustix::fs::lsetxattr(folder, ACL_ATTRIBUTE, &access_list_for(identity.user()), XattrFlags::empty());
    opened.map_err(|error| {
        let _ = std::fs::remove_dir(folder);
        error.into()
    })
}

fn access_list_for(user: u32) -> Vec<u8> {
    let entries = [
        (ACL_USER_OBJ, READ_WRITE_EXECUTE, ACL_UNDEFINED_ID),
        (ACL_USER, READ_WRITE_EXECUTE, user),
        (ACL_GROUP_OBJ, NO_ACCESS, ACL_UNDEFINED_ID),
        (ACL_MASK, READ_WRITE_EXECUTE, ACL_UNDEFINED_ID),
        (ACL_OTHER, NO_ACCESS, ACL_UNDEFINED_ID),
    ];
    let mut list = ACL_VERSION.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
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
