//! The secret that makes a log unforgeable, and the file it lives in.

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

/// As long as the output of the hash, which is what RFC 2104 recommends.
const KEY_BYTES: usize = 32;

/// What the name of a key is the MAC of; nothing that is signed begins like it.
const KEY_ID_LABEL: &[u8] = b"ward-ledger key id";

/// What a MAC is made for. Its label goes before the message, so that what was signed for one
/// purpose never passes for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MacPurpose {
    Record,
    Head,
}

impl MacPurpose {
    /// Ends in a byte that no JSON has.
    fn label(self) -> &'static [u8] {
        match self {
            Self::Record => b"record\0",
            Self::Head => b"head\0",
        }
    }
}

/// A secret of 32 random bytes; never printed. All clones share one copy of the bytes, which is
/// wiped from memory with the last of them. That holds for these bytes, not for what others made
/// of them: the inner state of a MAC that is being computed, and the caller's own copy.
#[derive(Clone)]
pub struct LedgerKey {
    bytes: Arc<Zeroizing<[u8; KEY_BYTES]>>,
    id: KeyId,
}

/// The public name of a key: 16 hexadecimal digits that tell keys apart and give nothing away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId([u8; 8]);

/// Why there is no key.
#[derive(Debug, Error)]
pub enum LedgerKeyError {
    /// The file can't be opened, read, written or made.
    #[error("can't {step} the key file {}", path.display())]
    File {
        /// What was being done.
        step: &'static str,
        /// The key file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder, a symbolic link, a pipe.
    #[error("the key file {} is not a regular file", path.display())]
    NotRegular {
        /// The key file.
        path: PathBuf,
    },
    /// Others might read the key, and with it forge the log; or it was not made by us.
    #[error("the key file {0} has mode {mode:04o}, and a key file must have 0600; run `chmod 600 {0}`", path.display())]
    Mode {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Its owner could exchange the key.
    #[error("the key file {0} belongs to user {owner}; run `chown {user} {0}`", path.display())]
    Owner {
        /// The key file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be.
        user: u32,
    },
    /// Not 64 hexadecimal digits and a newline.
    #[error("the key file {} does not hold a key: 64 lower-case hexadecimal digits and a newline", path.display())]
    Content {
        /// The key file.
        path: PathBuf,
    },
    /// The system has no randomness to give.
    #[error("no randomness for a new key: {0}")]
    Randomness(String),
}

impl LedgerKey {
    /// Makes a key of given bytes, for those who keep it elsewhere than in a file; wiping those is
    /// up to them.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Self {
        // Filled where it stays: a value that is moved leaves its old bytes behind.
        let mut kept = Arc::new(Zeroizing::new([0; KEY_BYTES]));
        Arc::make_mut(&mut kept).copy_from_slice(bytes);
        let mut mac = new_hmac(&kept);
        mac.update(KEY_ID_LABEL);
        let name: [u8; 32] = mac.finalize().into_bytes().into();
        let mut id = [0; 8];
        id.copy_from_slice(name.split_at(8).0);
        Self { bytes: kept, id: KeyId(id) }
    }

    /// Reads a key file, which must be a regular file of ours with mode 0600.
    ///
    /// # Errors
    /// When there is none, when others can use it, when it holds something else.
    pub fn load(path: &Path) -> Result<Self, LedgerKeyError> {
        let file_error = |step| move |source| LedgerKeyError::File { step, path: path.to_owned(), source };
        let mut file = files::open_existing(path).map_err(|source| match source.raw_os_error() {
            Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
                LedgerKeyError::NotRegular { path: path.to_owned() }
            }
            // A mode without the right to read has a cure that the system's answer doesn't name.
            Some(code) if code == rustix::io::Errno::ACCESS.raw_os_error() => fs::symlink_metadata(path)
                .map_or(Ok(()), |metadata| check_access(path, &metadata))
                .err()
                .unwrap_or_else(|| file_error("open")(source)),
            _ => file_error("open")(source),
        })?;
        check_access(path, &file.metadata().map_err(file_error("look at"))?)?;
        Self::read_key_file(&mut file)
            .map_err(file_error("read"))?
            .ok_or(LedgerKeyError::Content { path: path.to_owned() })
    }

    fn read_key_file(file: &mut File) -> io::Result<Option<Self>> {
        // One byte more than a key file has, to notice what is longer.
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

    /// Reads the key file, or makes one with a new random key of mode 0600 where there is none.
    /// When several processes come first at the same time, all get the same key.
    ///
    /// # Errors
    /// As [`LedgerKey::load`], and when the file can't be made.
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

        // Written aside and linked into place, so that nobody ever reads half a key and the first
        // of several processes wins.
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

    /// The public name of this key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// A MAC that has taken in the key and its purpose, and waits for a message.
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

    /// Whether the MAC is of this message; takes the same time whatever the answer.
    pub(crate) fn verify_mac(&self, purpose: MacPurpose, message: &[u8], mac: Sha256Hash) -> bool {
        let mut expected = self.mac(purpose);
        expected.update(message);
        expected.verify_slice(mac.as_bytes()).is_ok()
    }
}

/// A key file is a regular file of ours with mode 0600.
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
        formatter.write_str("Key(***)")
    }
}

impl KeyId {
    /// Reads exactly 16 lower-case hexadecimal digits.
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
