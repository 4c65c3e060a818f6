//! Access control lists of files (`acl(5)`), by which root's daemon opens a file to single users.
//!
//! Changing the owner would need a capability (`CAP_CHOWN`) that the daemon needs for nothing else, and would let the new
//! owner change the permissions.

use std::io;
use std::path::Path;

use rustix::fs::XattrFlags;

/// The extended attribute that holds the list, and the only version of its format.
const ACL_ATTRIBUTE: &str = "system.posix_acl_access";
const ACL_VERSION: u32 = 2;

/// The tags of entries, in the order that the kernel requires.
const ACL_USER_OBJ: u16 = 0x01;
const ACL_USER: u16 = 0x02;
const ACL_GROUP_OBJ: u16 = 0x04;
const ACL_MASK: u16 = 0x10;
const ACL_OTHER: u16 = 0x20;

/// The id in entries that name no user or group.
const ACL_UNDEFINED_ID: u32 = u32::MAX;

/// The permissions of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Full,
    /// Opens what is inside of a folder, without listing or changing the folder.
    #[cfg(feature = "sway")]
    Enter,
    /// Connects to a socket.
    #[cfg(feature = "sway")]
    Connect,
}

impl Access {
    fn mode(self) -> u16 {
        match self {
            Self::Full => 0o7,
            #[cfg(feature = "sway")]
            Self::Enter => 0o1,
            #[cfg(feature = "sway")]
            Self::Connect => 0o6,
        }
    }
}

/// Opens a file to its owner and to these users, and closes it to all others. The last part of the path must not be a
/// symlink.
pub(crate) fn set(path: &Path, users: &[(u32, Access)]) -> io::Result<()> {
    Ok(rustix::fs::lsetxattr(path, ACL_ATTRIBUTE, &encode(users), XattrFlags::empty())?)
}

/// As [`set`], for an open file.
#[cfg(feature = "sway")]
pub(crate) fn set_open_file(file: &std::os::fd::OwnedFd, users: &[(u32, Access)]) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    // `fsetxattr` refuses descriptors that only name a file (`O_PATH`), and no others can be opened for a socket.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::setxattr(path, ACL_ATTRIBUTE, &encode(users), XattrFlags::empty())?)
}

fn encode(users: &[(u32, Access)]) -> Vec<u8> {
    let users = users.iter().map(|(user, access)| (ACL_USER, access.mode(), *user));
    let entries = [(ACL_USER_OBJ, 0o7, ACL_UNDEFINED_ID)].into_iter().chain(users).chain([
        (ACL_GROUP_OBJ, 0, ACL_UNDEFINED_ID),
        (ACL_MASK, 0o7, ACL_UNDEFINED_ID),
        (ACL_OTHER, 0, ACL_UNDEFINED_ID),
    ]);
    let mut list = ACL_VERSION.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(u16::to_le_bytes(permissions));
        list.extend(id.to_le_bytes());
    }
    list
}
