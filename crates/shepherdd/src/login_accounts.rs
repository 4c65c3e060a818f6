//! The accounts that may not log in while no daemon runs (S19.2). The daemon writes them down, because PAM can't ask for
//! the policy then. Without the file, everybody may log in.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::policy_source::replace_file;

/// The mode of the file: only the daemon's user reads it.
const FILE_MODE: u32 = 0o600;

/// The accounts that may not log in while no daemon runs, by user id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginAccounts {
    refused: BTreeSet<u32>,
}

impl LoginAccounts {
    pub(crate) fn new(refused: BTreeSet<u32>) -> Self {
        Self { refused }
    }

    fn path(data: &Path) -> PathBuf {
        data.join("logins-without-daemon.json")
    }

    /// Reads the file in the daemon's data folder. There are no such accounts if there is no file.
    ///
    /// # Errors
    /// The file can't be read, or is damaged.
    pub fn load(data: &Path) -> io::Result<Self> {
        match std::fs::read(Self::path(data)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file in the daemon's data folder, or removes it if there are no such accounts.
    pub(crate) fn save(&self, data: &Path) -> io::Result<()> {
        if Self::load(data).is_ok_and(|known| known == *self) {
            return Ok(());
        }
        let path = Self::path(data);
        if self.refused.is_empty() {
            return std::fs::remove_file(path);
        }
        replace_file(&path, &serde_json::to_string(self)?, FILE_MODE)
    }

    /// Returns whether an account may not log in while no daemon runs. Root always may.
    #[must_use]
    pub fn refuses(&self, uid: u32) -> bool {
        uid != 0 && self.refused.contains(&uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S19.2
    #[test]
    fn the_file_lists_the_refused_accounts_and_never_root() {
        let folder = tempfile::tempdir().unwrap();
        let load = || LoginAccounts::load(folder.path());
        assert_eq!(load().unwrap(), LoginAccounts::default());
        let accounts = LoginAccounts::new([0, 1001].into());
        accounts.save(folder.path()).unwrap();
        let known = load().unwrap();
        assert_eq!([0, 1001, 1002].map(|uid| known.refuses(uid)), [false, true, false]);
        LoginAccounts::default().save(folder.path()).unwrap();
        LoginAccounts::default().save(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no accounts need no file");
        std::fs::write(LoginAccounts::path(folder.path()), "not JSON").unwrap();
        assert!(load().is_err());
        accounts.save(folder.path()).unwrap();
        assert_eq!(load().unwrap(), accounts, "a damaged file is replaced");
    }
}
