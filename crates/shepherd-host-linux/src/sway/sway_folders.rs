//! The folders of a Sway that runs as a user of its own.
//!
//! Programs of other users can be let into the folder with the Wayland socket. Nobody else can enter the folder with the IPC
//! socket, by which Sway accepts commands. Both folders belong to the daemon.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use ward_process::{UserIdentity, sandbox};

use crate::access_list::{self, Access};
use crate::socket_folder;

/// The folder of X11 sockets. Xwayland refuses it unless root or its own user owns it.
const X11_FOLDER: &str = "/tmp/.X11-unix";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SwayFolders {
    /// Sway's runtime folder, with the Wayland socket.
    display: PathBuf,
    /// The folder with the IPC socket.
    control: PathBuf,
    /// The user id of Sway.
    pub(super) owner: u32,
}

impl SwayFolders {
    /// Creates the folders, open to Sway's user only.
    pub(super) fn make(parent: &Path, name: &str, identity: &UserIdentity) -> io::Result<Self> {
        let folder = |part: &str| parent.join(format!("{name}-{part}"));
        let folders = Self { display: folder("display"), control: folder("control"), owner: identity.user() };
        let made = [&folders.display, &folders.control]
            .into_iter()
            .try_for_each(|folder| socket_folder::make(folder, Some(identity)));
        match made {
            Ok(()) => {
                make_x11_folder();
                Ok(folders)
            }
            Err(error) => {
                folders.remove();
                Err(error)
            }
        }
    }

    pub(super) fn runtime_folder(&self) -> &Path {
        &self.display
    }

    pub(super) fn ipc_socket(&self) -> PathBuf {
        self.control.join("sway.sock")
    }

    /// Lets these users connect to the Wayland socket, and nobody else.
    pub(super) fn open_wayland_to(&self, socket: &Path, users: &[u32]) -> io::Result<()> {
        self.open_socket_to(socket, users)?;
        let entering = users.iter().map(|user| (*user, Access::Enter));
        let list: Vec<_> = [(self.owner, Access::Full)].into_iter().chain(entering).collect();
        access_list::set(&self.display, &list)
    }

    /// Lets these users connect to the X11 socket, and nobody else. Xwayland itself decides again, also about connections to
    /// its abstract socket, which has no permissions.
    pub(super) fn open_x11_to(&self, display: u32, users: &[u32]) -> io::Result<()> {
        self.open_socket_to(&Path::new(X11_FOLDER).join(format!("X{display}")), users)
    }

    /// Opens a socket that Sway's user can replace at any time, so only a socket of that user is opened to others.
    fn open_socket_to(&self, socket: &Path, users: &[u32]) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(socket, flags, Mode::empty())?;
        let metadata = std::fs::File::from(file.try_clone()?).metadata()?;
        if !metadata.file_type().is_socket() || metadata.uid() != self.owner {
            return Err(io::Error::other("it is not a socket of the compositor"));
        }
        let list: Vec<_> = users.iter().map(|user| (*user, Access::Connect)).collect();
        access_list::set_open_file(&file, &list)
    }

    pub(super) fn remove(&self) {
        for folder in [&self.display, &self.control] {
            let _ = sandbox::remove_folder(folder);
        }
    }
}

/// Creates the folder of X11 sockets if it is missing. If this fails, there is no Xwayland, and Sway's log shows why.
fn make_x11_folder() {
    let folder = Path::new(X11_FOLDER);
    if std::fs::DirBuilder::new().mode(0o1777).create(folder).is_ok() {
        // The daemon's umask has removed permissions.
        let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o1777));
    }
}
