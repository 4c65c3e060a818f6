//! The language of a family.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The language in which Shepherd talks to a family, as the policy sets it.
///
/// A client that doesn't know a newer language uses English.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Language {
    /// German.
    #[serde(rename = "de")]
    German,
    /// English.
    #[default]
    #[serde(rename = "en", other)]
    English,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::English, Self::German];

    /// Returns the code of the language (ISO 639-1), as a policy has it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }
}
