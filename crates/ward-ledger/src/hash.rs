//! The SHA-256 hashes that link the records of a chain.

use std::fmt;

use data_encoding::HEXLOWER;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256 hash, displayed and serialised as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha256Hash([u8; 32]);

impl Sha256Hash {
    /// The previous hash of the first record of a chain: 64 zeros.
    pub const GENESIS: Self = Self([0; 32]);

    pub(crate) const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Computes the hash of the concatenated pieces.
    #[must_use]
    pub fn of(pieces: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for piece in pieces {
            hasher.update(piece);
        }
        Self(hasher.finalize().into())
    }

    /// Parses exactly 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        (text.len() == 64 && HEXLOWER.decode_mut(text, &mut bytes).is_ok()).then_some(Self(bytes))
    }

    /// Returns the 32 bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Sha256Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for Sha256Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
