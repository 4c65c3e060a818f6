//! The administrator's PIN, as a client sends it to the daemon.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The shortest PIN, in characters. The daemon slows attempts down, so trying ten thousand PINs takes weeks.
pub const MIN_PIN_LENGTH: usize = 4;

/// The longest PIN, in characters: a pass phrase fits, and hashing it costs the same as hashing four digits.
pub const MAX_PIN_LENGTH: usize = 64;

/// A PIN. It appears only in the message to the daemon: `Debug` prints `***`, and no error repeats it.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdminPin(#[schemars(length(min = MIN_PIN_LENGTH, max = MAX_PIN_LENGTH))] String);

/// The error for a text that can't be a PIN. It doesn't repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a PIN is a text of {MIN_PIN_LENGTH} to {MAX_PIN_LENGTH} characters")]
pub struct PinFormatError;

impl AdminPin {
    /// Returns the PIN itself, for the code that checks it.
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
        // serde's own error would repeat a PIN that was written as a number.
        let text = String::deserialize(deserializer).map_err(|_| serde::de::Error::custom(PinFormatError))?;
        Self::try_from(text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for AdminPin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
