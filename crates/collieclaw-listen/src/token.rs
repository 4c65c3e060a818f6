//! What every request bears: a random word in a file of the home, for its owner alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use collieclaw_providers::secret::Secret;
use data_encoding::HEXLOWER;
use subtle::ConstantTimeEq;
use thiserror::Error;

/// The token. It is compared in a time that tells nothing of it.
#[derive(Debug, Clone)]
pub struct AccessToken(Secret);

/// Why there is no token.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The token can't be used.
    #[error("the token in {} can't be used", .path.display())]
    Unusable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else may read the token.
    #[error("the token in {} can be read or changed by others", .path.display())]
    NotPrivate {
        /// Where it is.
        path: PathBuf,
    },
}

/// As many as nobody guesses.
const TOKEN_BYTES: usize = 32;

impl AccessToken {
    /// Reads it, or makes it where there is none.
    ///
    /// # Errors
    /// When it can't be read or made, or is not its owner's alone.
    pub fn open_or_create(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Unusable { path: path.to_owned(), source };
        match create_token_file(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(failed)?,
        }
        Self::read(path)
    }

    /// Reads it, and makes none.
    ///
    /// # Errors
    /// When it is not there, can't be read, or is not its owner's alone.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Unusable { path: path.to_owned(), source };
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(failed)?;
        let known = file.metadata().map_err(failed)?;
        let owner = known.uid() == rustix::process::geteuid().as_raw();
        if !known.is_file() || !owner || known.mode() & 0o077 != 0 {
            return Err(TokenError::NotPrivate { path: path.to_owned() });
        }
        let mut text = String::new();
        file.take(1 << 10).read_to_string(&mut text).map_err(failed)?;
        let text = text.trim();
        if text.len() < TOKEN_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let short =
                io::Error::new(io::ErrorKind::InvalidData, "it is no token; remove the file for a new one");
            return Err(failed(short));
        }
        Ok(Self::new(Secret::new(text.to_owned())))
    }

    /// One that was read before.
    #[must_use]
    pub fn new(text: Secret) -> Self {
        Self(text)
    }

    /// For the link that its owner opens.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// Whether it was given, in a time that tells nothing of it.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        self.0.reveal().as_bytes().ct_eq(given).into()
    }
}

/// It gets its name when it is whole: a second gateway that starts at the same time reads all of it.
fn create_token_file(path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut chance = [0; TOKEN_BYTES];
    getrandom::fill(&mut chance).map_err(|_| io::Error::other("the machine gives no random numbers"))?;
    let unfinished = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    let written = writeln!(file, "{}", HEXLOWER.encode(&chance))
        .and_then(|()| file.sync_all())
        // A link, unlike a new name, never takes the place of what is there.
        .and_then(|()| std::fs::hard_link(&unfinished, path));
    std::fs::remove_file(&unfinished)?;
    written?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_made_once_for_its_owner_and_refused_when_others_can_read_it() {
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
