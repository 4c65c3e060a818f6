//! The secret key that records and heads are signed with, and the file that stores it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, Serializer};
use sha2::Sha256;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::files;
use crate::hash::Sha256Hash;

/// The length of a key, which is the length of the hash as RFC 2104 recommends.
const KEY_BYTES: usize = 32;

/// The message whose MAC is the id of a key. No signed message starts like it.
const KEY_ID_LABEL: &[u8] = b"ward-ledger key id";

/// The purpose of a MAC. Its label is put before the message, so that a MAC made for one purpose is never
/// valid for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MacPurpose {
    Record,
    Head,
}

impl MacPurpose {
    /// Returns the label, which ends in a byte that never occurs in JSON.
    fn label(self) -> &'static [u8] {
        match self {
            Self::Record => b"record\0",
            Self::Head => b"head\0",
        }
    }
}

/// A secret of 32 random bytes that is never printed. All clones share one copy of the bytes, which is wiped
/// from memory when the last clone is dropped. Values derived from the bytes, such as the inner state of a
/// MAC, are not wiped, and neither are copies that the caller has.
#[derive(Clone)]
pub struct LedgerKey {
    bytes: Arc<Zeroizing<[u8; KEY_BYTES]>>,
    id: KeyId,
}

/// The public id of a key: 16 hexadecimal digits that identify the key without revealing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId([u8; 8]);

/// The error for a key that can't be loaded or created.
#[derive(Debug, Error)]
pub enum LedgerKeyError {
    /// An operation on the key file failed.
    #[error("could not {step} the key file {}", path.display())]
    File {
        /// The operation that failed, as a verb.
        step: &'static str,
        /// The path of the key file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path leads to something else, such as a folder, a symbolic link or a pipe.
    #[error("the key file {} is not a regular file", path.display())]
    NotRegular {
        /// The path of the key file.
        path: PathBuf,
    },
    /// The mode isn't exactly 0600. With a wider mode, other users might read the key and forge the log.
    #[error("the key file {0} has mode {mode:04o}, but must have mode 0600; run `chmod 600 {0}`", path.display())]
    Mode {
        /// The path of the key file.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The file belongs to another user, who could replace the key.
    #[error("the key file {0} belongs to user {owner}, not to user {user}; run `chown {user} {0}`", path.display())]
    Owner {
        /// The path of the key file.
        path: PathBuf,
        /// The user id of the owner.
        owner: u32,
        /// The user id of this process, which should be the owner.
        user: u32,
    },
    /// The content is not 64 hexadecimal digits and a newline.
    #[error("the key file {} is malformed: expected 64 lower-case hexadecimal digits and a newline", path.display())]
    Content {
        /// The path of the key file.
        path: PathBuf,
    },
    /// The operating system provided no random bytes.
    #[error("could not generate a random key: {0}")]
    Randomness(String),
}

impl LedgerKey {
    /// Creates a key from bytes, for callers that don't store it in a file. The caller has to wipe its own
    /// copy of the bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Self {
        // Filled in place, because moving the value would leave a copy of the bytes behind.
        let mut kept = Arc::new(Zeroizing::new([0; KEY_BYTES]));
        Arc::make_mut(&mut kept).copy_from_slice(bytes);
        let mut mac = new_hmac(&kept);
        mac.update(KEY_ID_LABEL);
        let name: [u8; 32] = mac.finalize().into_bytes().into();
        let mut id = [0; 8];
        id.copy_from_slice(name.split_at(8).0);
        Self { bytes: kept, id: KeyId(id) }
    }

    /// Loads a key from a file. The file must be a regular file with mode 0600 that belongs to the user of
    /// this process.
    ///
    /// # Errors
    /// Fails if the file doesn't exist, other users have access to it, or its content is not a key.
    pub fn load(path: &Path) -> Result<Self, LedgerKeyError> {
        let file_error = |step| move |source| LedgerKeyError::File { step, path: path.to_owned(), source };
        let mut file = files::open_existing(path).map_err(|source| match source.raw_os_error() {
            Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
                LedgerKeyError::NotRegular { path: path.to_owned() }
            }
            // A mode such as 0200 gives a plain "permission denied"; the error about the mode names the
            // remedy.
            Some(code) if code == rustix::io::Errno::ACCESS.raw_os_error() => fs::symlink_metadata(path)
                .map_or(Ok(()), |metadata| check_access(path, &metadata))
                .err()
                .unwrap_or_else(|| file_error("open")(source)),
            _ => file_error("open")(source),
        })?;
        check_access(path, &file.metadata().map_err(file_error("inspect"))?)?;
        Self::read_key_file(&mut file)
            .map_err(file_error("read"))?
            .ok_or(LedgerKeyError::Content { path: path.to_owned() })
    }

    fn read_key_file(file: &mut File) -> io::Result<Option<Self>> {
        // One byte longer than a key file, to detect a file that is too long.
        let mut text = Zeroizing::new([0; 2 * KEY_BYTES + 2]);
        let mut filled = 0;
        while let Some(rest) = text.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read(rest)? {
                0 => break,
                count => filled += count,
            }
        }
        let digits = text.get(..filled).and_then(|text| text.strip_suffix(b"\n"));
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let decoded = digits.filter(|digits| digits.len() == 2 * KEY_BYTES);
        let decoded = decoded.is_some_and(|digits| HEXLOWER.decode_mut(digits, &mut *bytes).is_ok());
        Ok(decoded.then(|| Self::from_bytes(&bytes)))
    }

    /// Loads a key from a file, or creates the file with a new random key if it doesn't exist. If several
    /// processes do this at the same time, all get the same key.
    ///
    /// # Errors
    /// Fails like [`LedgerKey::load`], and if the file can't be created.
    pub fn load_or_create(path: &Path) -> Result<Self, LedgerKeyError> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create_key_file(path)?,
            _ => {}
        }
        Self::load(path)
    }

    fn create_key_file(path: &Path) -> Result<(), LedgerKeyError> {
        let file_error = |step| move |source| LedgerKeyError::File { step, path: path.to_owned(), source };
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let mut suffix = [0; 8];
        getrandom::fill(&mut *bytes)
            .and_then(|()| getrandom::fill(&mut suffix))
            .map_err(|error| LedgerKeyError::Randomness(error.to_string()))?;
        let mut text = Zeroizing::new(HEXLOWER.encode(&*bytes));
        text.push('\n');

        // Write a draft and link it into place, so that no process reads half a key and the first of several
        // wins.
        let draft = files::path_with_suffix(path, &format!("new-{}", HEXLOWER.encode(&suffix)));
        let written = files::create_new(&draft).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            match fs::hard_link(&draft, path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => files::sync_parent_folder(path),
            }
        });
        let removed = fs::remove_file(&draft);
        written.map_err(file_error("create"))?;
        removed.map_err(file_error("create"))
    }

    /// Returns the public id of this key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns a MAC that is initialised with the key and the purpose, ready for a message.
    pub(crate) fn mac(&self, purpose: MacPurpose) -> Hmac<Sha256> {
        let mut mac = new_hmac(&self.bytes);
        mac.update(purpose.label());
        mac
    }

    pub(crate) fn sign(&self, purpose: MacPurpose, message: &[u8]) -> Sha256Hash {
        let mut mac = self.mac(purpose);
        mac.update(message);
        Sha256Hash::new(mac.finalize().into_bytes().into())
    }

    /// Returns true if `mac` is the MAC of the message. The comparison takes constant time.
    pub(crate) fn verify_mac(&self, purpose: MacPurpose, message: &[u8], mac: Sha256Hash) -> bool {
        let mut expected = self.mac(purpose);
        expected.update(message);
        expected.verify_slice(mac.as_bytes()).is_ok()
    }
}

/// Checks that a key file is a regular file with mode 0600 that belongs to the user of this process.
fn check_access(path: &Path, metadata: &fs::Metadata) -> Result<(), LedgerKeyError> {
    if !metadata.is_file() {
        return Err(LedgerKeyError::NotRegular { path: path.to_owned() });
    }
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(LedgerKeyError::Owner { path: path.to_owned(), owner: metadata.uid(), user });
    }
    match metadata.mode() & 0o7777 {
        0o600 => Ok(()),
        mode => Err(LedgerKeyError::Mode { path: path.to_owned(), mode }),
    }
}

fn new_hmac(bytes: &[u8; KEY_BYTES]) -> Hmac<Sha256> {
    Hmac::new_from_slice(bytes).expect("HMAC takes keys of every length")
}

impl fmt::Debug for LedgerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LedgerKey(***)")
    }
}

impl KeyId {
    /// Parses exactly 16 lower-case hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 8];
        (text.len() == 16 && HEXLOWER.decode_mut(text, &mut bytes).is_ok()).then_some(Self(bytes))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
