//! The access token that every request must carry: random text in a file of CollieClaw's home that only its
//! owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use collieclaw_providers::secret::Secret;
use data_encoding::HEXLOWER;
use subtle::ConstantTimeEq;
use thiserror::Error;

/// An access token that is compared in constant time.
#[derive(Debug, Clone)]
pub struct AccessToken(Secret);

/// The reason why a token could not be loaded.
#[derive(Debug, Error)]
pub enum TokenError {
    #[error("could not load the token from {}", .path.display())]
    Unusable { path: PathBuf, source: io::Error },
    /// Other users can read or change the token file.
    #[error("the token in {} can be read or changed by others", .path.display())]
    NotPrivate { path: PathBuf },
}

const TOKEN_BYTES: usize = 32;

impl AccessToken {
    /// Reads the token file, and creates it first if it doesn't exist.
    ///
    /// # Errors
    /// Fails if the file can't be read or created, or if other users can access it.
    pub fn open_or_create(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Unusable { path: path.to_owned(), source };
        match create_token_file(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(failed)?,
        }
        Self::read(path)
    }

    /// Reads the token file without creating it.
    ///
    /// # Errors
    /// Fails if the file doesn't exist, can't be read, or if other users can access it.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Unusable { path: path.to_owned(), source };
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let owner = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_file() || !owner || metadata.mode() & 0o077 != 0 {
            return Err(TokenError::NotPrivate { path: path.to_owned() });
        }
        let mut text = String::new();
        file.take(1 << 10).read_to_string(&mut text).map_err(failed)?;
        let text = text.trim();
        if text.len() < TOKEN_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let invalid = io::Error::new(
                io::ErrorKind::InvalidData,
                "the file holds no valid token; remove it to create a new one",
            );
            return Err(failed(invalid));
        }
        Ok(Self::new(Secret::new(text.to_owned())))
    }

    /// Wraps a token that was read before.
    #[must_use]
    pub fn new(text: Secret) -> Self {
        Self(text)
    }

    /// Returns the token as text, for the link that its owner opens.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// Compares `given` with the token in constant time.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        self.0.reveal().as_bytes().ct_eq(given).into()
    }
}

/// Creates the token file under a temporary name and links it into place when it is complete, so a second
/// gateway that starts at the same time never reads half a token.
fn create_token_file(path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut random = [0; TOKEN_BYTES];
    getrandom::fill(&mut random)
        .map_err(|_| io::Error::other("could not get random numbers from the system"))?;
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = writeln!(file, "{}", HEXLOWER.encode(&random))
        .and_then(|()| file.sync_all())
        // Unlike a rename, a hard link never replaces an existing file.
        .and_then(|()| std::fs::hard_link(&temporary, path));
    std::fs::remove_file(&temporary)?;
    written?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_created_once_and_rejected_if_others_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.token");
        let token = AccessToken::open_or_create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = AccessToken::open_or_create(&path).unwrap();
        assert!(token.matches(again.reveal().as_bytes()) && token.reveal().len() == 2 * TOKEN_BYTES);
        assert!(!token.matches(b"") && !token.matches(&token.reveal().as_bytes()[1..]));
        assert_eq!(format!("{token:?}"), "AccessToken(***)");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(AccessToken::open_or_create(&path), Err(TokenError::NotPrivate { .. })));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(matches!(AccessToken::open_or_create(&path), Err(TokenError::Unusable { .. })));
    }
}
