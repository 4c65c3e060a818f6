//! The administrator's PIN on its way to the daemon.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Shortest PIN, in characters. With the daemon's throttle, ten thousand of them take weeks to try.
pub const MIN_PIN_LENGTH: usize = 4;

/// Longest PIN, in characters: a pass phrase fits, and hashing one costs the same as hashing four digits.
pub const MAX_PIN_LENGTH: usize = 64;

/// A PIN. It is written to the wire and nowhere else: it prints as `***`, and no error repeats it.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdminPin(#[schemars(length(min = MIN_PIN_LENGTH, max = MAX_PIN_LENGTH))] String);

/// Why a text can't be a PIN. It does not say what the text was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a PIN is a text of {MIN_PIN_LENGTH} to {MAX_PIN_LENGTH} characters")]
pub struct PinFormatError;

impl AdminPin {
    /// The PIN itself, for whoever has to check it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AdminPin {
    type Error = PinFormatError;

    fn try_from(text: String) -> Result<Self, PinFormatError> {
        let length = text.chars().count();
        if (MIN_PIN_LENGTH..=MAX_PIN_LENGTH).contains(&length) { Ok(Self(text)) } else { Err(PinFormatError) }
    }
}

impl<'de> Deserialize<'de> for AdminPin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The library's own error would repeat a PIN that was written as a number.
        let text = String::deserialize(deserializer).map_err(|_| serde::de::Error::custom(PinFormatError))?;
        Self::try_from(text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for AdminPin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
