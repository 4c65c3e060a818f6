//! Boot ids, and instants that record the boot they belong to.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::MonotonicInstant;

/// The file in which Linux publishes the id of the running boot.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// The kernel's id of a boot: a random UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BootId(u128);

/// The error for a boot id that can't be read or parsed.
#[derive(Debug, thiserror::Error)]
pub enum BootIdError {
    #[error("could not read {BOOT_ID_FILE}")]
    Read(#[source] io::Error),
    #[error("`{0}` is not a boot id; a boot id looks like 3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e")]
    Malformed(String),
}

impl BootId {
    /// Reads the id of the running boot.
    ///
    /// # Errors
    /// Fails if the kernel doesn't provide the id, for example because `/proc` is not mounted.
    pub fn read() -> Result<Self, BootIdError> {
        std::fs::read_to_string(BOOT_ID_FILE).map_err(BootIdError::Read)?.trim().parse()
    }
}

impl FromStr for BootId {
    type Err = BootIdError;

    fn from_str(text: &str) -> Result<Self, BootIdError> {
        let malformed = || BootIdError::Malformed(text.chars().take(64).collect());
        let groups: Vec<&str> = text.split('-').collect();
        let shaped = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
        let digits = groups.concat();
        if !shaped || !digits.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f')) {
            return Err(malformed());
        }
        u128::from_str_radix(&digits, 16).map(Self).map_err(|_| malformed())
    }
}

impl TryFrom<String> for BootId {
    type Error = BootIdError;

    fn try_from(text: String) -> Result<Self, BootIdError> {
        text.parse()
    }
}

impl From<BootId> for String {
    fn from(id: BootId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut from = 128;
        for (index, digits) in [8_usize, 4, 4, 4, 12].into_iter().enumerate() {
            from -= digits * 4;
            let group = (self.0 >> from) & ((1_u128 << (digits * 4)) - 1);
            let dash = if index == 0 { "" } else { "-" };
            write!(formatter, "{dash}{group:0digits$x}")?;
        }
        Ok(())
    }
}

/// An instant that can be stored across reboots. It records its boot, and can't be compared with instants of
/// another boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootInstant {
    boot: BootId,
    at: MonotonicInstant,
}

impl BootInstant {
    #[must_use]
    pub fn new(boot: BootId, at: MonotonicInstant) -> Self {
        Self { boot, at }
    }

    #[must_use]
    pub fn boot(&self) -> BootId {
        self.boot
    }

    /// Returns the instant if it belongs to `boot`.
    #[must_use]
    pub fn during(&self, boot: BootId) -> Option<MonotonicInstant> {
        (self.boot == boot).then_some(self.at)
    }
}
