//! Decides which folders can become a workspace, and recognises a trusted folder again.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The marks by which a trusted folder is recognised. The device is not among them, because many file systems get
/// another number with every start of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderIdentity {
    pub inode: u64,
    pub owner: u32,
    /// The time at which the operator trusted the folder.
    pub since: Timestamp,
}

/// The folders that no workspace may be, contain or lie in.
#[derive(Debug, Clone, Copy)]
pub struct TrustBounds<'b> {
    /// The user's home, with symlinks resolved.
    pub user_home: &'b Path,
    /// CollieClaw's own home, with symlinks resolved.
    pub own_home: &'b Path,
    /// CollieClaw's own files and caches, which are elsewhere.
    pub own_files: &'b [PathBuf],
    /// Paths that no tool may touch.
    pub forbidden_paths: &'b [PathBuf],
}

/// A folder that can't be a workspace, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FolderRefusal {
    #[error("there is no such folder: {0}")]
    Missing(String),
    #[error("it is not a folder")]
    NotAFolder,
    #[error("its path is not UTF-8")]
    NotUtf8,
    #[error("it is the whole file system")]
    Root,
    #[error("it belongs to the system")]
    System,
    #[error("it is your home folder, with everything you have")]
    UserHome,
    #[error("it contains your home folder")]
    ContainsUserHome,
    #[error("it belongs to CollieClaw itself, and no tool may touch it")]
    InsideOwnHome,
    #[error("it contains CollieClaw's own files ({})", .0.display())]
    ContainsOwnFiles(PathBuf),
    #[error("it is under the forbidden path {}", .0.display())]
    Forbidden(PathBuf),
    #[error("it belongs to another user (user id {0})")]
    OtherOwner(u32),
    #[error("every user of this machine can write to {}", .0.display())]
    OthersWrite(PathBuf),
}

impl TrustBounds<'_> {
    /// Returns the real path and the identity of a folder that can be a workspace.
    ///
    /// # Errors
    /// Fails with the reason why the folder can't be one.
    pub fn inspect(&self, folder: &Path) -> Result<(PathBuf, FolderIdentity), FolderRefusal> {
        let real = folder.canonicalize().map_err(|error| FolderRefusal::Missing(error.to_string()))?;
        let metadata = real.metadata().map_err(|error| FolderRefusal::Missing(error.to_string()))?;
        self.check_place(&real, &metadata)?;
        let owner = metadata.uid();
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(FolderRefusal::OtherOwner(owner));
        }
        if metadata.mode() & OTHERS_WRITE != 0 {
            return Err(FolderRefusal::OthersWrite(real));
        }
        if let Some(open) = real.ancestors().skip(1).find(|ancestor| is_open_to_replacement(ancestor)) {
            return Err(FolderRefusal::OthersWrite(open.to_owned()));
        }
        Ok((real, FolderIdentity { inode: metadata.ino(), owner, since: Timestamp::now() }))
    }

    fn check_place(&self, real: &Path, metadata: &Metadata) -> Result<(), FolderRefusal> {
        if !metadata.is_dir() {
            return Err(FolderRefusal::NotAFolder);
        }
        if real.to_str().is_none() {
            return Err(FolderRefusal::NotUtf8);
        }
        if real.parent().is_none() {
            return Err(FolderRefusal::Root);
        }
        let is_under = |places: &[&str]| places.iter().any(|place| real.starts_with(place));
        if is_under(SYSTEM_FOLDERS) && !is_under(LOCAL_FOLDERS) {
            return Err(FolderRefusal::System);
        }
        if real == self.user_home {
            return Err(FolderRefusal::UserHome);
        }
        if real.starts_with(self.own_home) {
            return Err(FolderRefusal::InsideOwnHome);
        }
        if self.own_home.starts_with(real) {
            return Err(FolderRefusal::ContainsOwnFiles(self.own_home.to_owned()));
        }
        if self.user_home.starts_with(real) {
            return Err(FolderRefusal::ContainsUserHome);
        }
        if let Some(own) = self.own_files.iter().find(|own| own.starts_with(real) || real.starts_with(own)) {
            return Err(FolderRefusal::ContainsOwnFiles(own.clone()));
        }
        if let Some(rule) = self.forbidden_paths.iter().find(|rule| real.starts_with(rule)) {
            return Err(FolderRefusal::Forbidden(rule.clone()));
        }
        Ok(())
    }
}

impl FolderIdentity {
    /// Returns whether this is the folder that was trusted: not another one that was put into its place.
    #[must_use]
    pub fn is_same_folder(&self, now: &Self) -> bool {
        self.inode == now.inode && self.owner == now.owner
    }
}

/// Folders whose files belong to the system, whoever owns them.
const SYSTEM_FOLDERS: &[&str] =
    &["/bin", "/boot", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"];

/// Folders in them where people keep sources of their own.
const LOCAL_FOLDERS: &[&str] = &["/usr/local", "/usr/src"];

const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Returns whether every user could put another folder in the place of one in here.
pub(super) fn is_open_to_replacement(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|known| known.mode() & OTHERS_WRITE != 0 && known.mode() & STICKY == 0)
}
