//! The folder in which a player or a virtual machine listens for what the host has to say.
//!
//! It stays the host's, and a list of access rights opens it to the user of the session. To give it away would take
//! a right (`CAP_CHOWN`) that the daemon needs for nothing else, and would let the session change who gets in.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::XattrFlags;
use ward_process::UserIdentity;

/// The attribute in which the kernel keeps such a list, and the only version of it.
const ACL_ATTRIBUTE: &str = "system.posix_acl_access";
const ACL_VERSION: u32 = 2;

/// The kinds of lines, in the order that the kernel wants.
const ACL_USER_OBJ: u16 = 0x01;
const ACL_USER: u16 = 0x02;
const ACL_GROUP_OBJ: u16 = 0x04;
const ACL_MASK: u16 = 0x10;
const ACL_OTHER: u16 = 0x20;

const READ_WRITE_EXECUTE: u16 = 0o7;
const NO_ACCESS: u16 = 0;

/// The number in lines that are about nobody by number.
const ACL_UNDEFINED_ID: u32 = u32::MAX;

/// Makes the folder, for ourselves and for whom the session runs as.
pub(crate) fn make(folder: &Path, identity: Option<&UserIdentity>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)?;
    // A daemon's mask may be stricter than a folder can bear.
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
    let lines = [
        (ACL_USER_OBJ, READ_WRITE_EXECUTE, ACL_UNDEFINED_ID),
        (ACL_USER, READ_WRITE_EXECUTE, user),
        (ACL_GROUP_OBJ, NO_ACCESS, ACL_UNDEFINED_ID),
        (ACL_MASK, READ_WRITE_EXECUTE, ACL_UNDEFINED_ID),
        (ACL_OTHER, NO_ACCESS, ACL_UNDEFINED_ID),
    ];
    let mut list = ACL_VERSION.to_le_bytes().to_vec();
    for (kind, rights, number) in lines {
        list.extend(kind.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(number.to_le_bytes());
    }
    list
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Whether somebody can make a file in a folder, and look what is there.
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
    fn it_is_open_to_the_user_of_the_session_and_to_no_other() {
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
        // Of the same group.
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
