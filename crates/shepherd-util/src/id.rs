//! A type for each kind of id. Ids are validated when they are parsed, and one kind can't be used in place of
//! another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest id that a policy may use, in bytes. Such ids become part of file and cgroup names.
pub const MAX_NAME_LENGTH: usize = 64;

/// The number of hex digits in a random id: 128 bits, so ids can't be guessed and don't collide.
const RANDOM_DIGITS: usize = 32;

/// The error for a text that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {problem}")]
pub struct IdError {
    /// The kind of id with its article, such as `an entry id`.
    pub what: &'static str,
    pub problem: IdProblem,
}

/// The ways in which a text can fail to be a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdProblem {
    #[error("can't be empty")]
    Empty,
    /// The text is longer than [`MAX_NAME_LENGTH`].
    #[error("can have at most {MAX_NAME_LENGTH} characters, not {length}")]
    TooLong { length: usize },
    #[error("can't contain {character:?}; use lower-case letters, digits, `-`, `_` and `.`")]
    BadCharacter {
        character: char,
        /// The byte offset of the character.
        at: usize,
    },
    #[error("must begin with a lower-case letter or a digit, not with {character:?}")]
    BadStart { character: char },
    /// The text doesn't have the form of the ids that the daemon generates.
    #[error("must be `{prefix}-` followed by {RANDOM_DIGITS} digits (0-9, a-f)")]
    Malformed { prefix: &'static str },
}

/// Defines an id type: a string that `$check` validates on the way in, from text and from serialised data.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $what:literal, $check:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                let check: fn(&str) -> Result<(), IdProblem> = $check;
                match check(&text) {
                    Ok(()) => Ok(Self(text)),
                    Err(problem) => Err(IdError { what: $what, problem }),
                }
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

/// Defines the type of an id that the daemon generates. The caller supplies the random bits, because the
/// engine has no source of randomness.
macro_rules! random_id {
    ($(#[$meta:meta])* $name:ident, $what:literal, $prefix:literal) => {
        id!($(#[$meta])* $name, $what, |text| check_random(text, $prefix));

        impl $name {
            /// Creates an id from 128 random bits.
            #[must_use]
            pub fn from_random(bits: u128) -> Self {
                Self(format!(concat!($prefix, "-{:032x}"), bits))
            }
        }
    };
}

id! {
    /// The id of a policy entry that can be launched. Usage is counted under it, so it must stay stable.
    EntryId, "an entry id", check_name
}
id! {
    /// The id of a profile: a child or an agent whose usage is counted.
    ProfileId, "a profile id", check_name
}
id! {
    /// The id of a budget: a quota that several entries share.
    BudgetId, "a budget id", check_name
}
random_id! {
    /// The id of a session: a single run of an entry.
    SessionId, "a session id", "session"
}
random_id! {
    /// The id of a client that is connected to the daemon.
    ClientId, "a client id", "client"
}
random_id! {
    /// The id of a child's request for more time.
    RequestId, "a request id", "request"
}
random_id! {
    /// The id of a grant: time allowed beyond the policy.
    GrantId, "a grant id", "grant"
}

impl Default for ProfileId {
    /// Returns the id of the profile that a policy without profiles has.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

fn check_name(text: &str) -> Result<(), IdProblem> {
    let Some(first) = text.chars().next() else { return Err(IdProblem::Empty) };
    let is_alphanumeric = |character: char| matches!(character, 'a'..='z' | '0'..='9');
    let bad = text
        .char_indices()
        .find(|(_, character)| !is_alphanumeric(*character) && !"-_.".contains(*character));
    if let Some((at, character)) = bad {
        return Err(IdProblem::BadCharacter { character, at });
    }
    if !is_alphanumeric(first) {
        return Err(IdProblem::BadStart { character: first });
    }
    if text.len() > MAX_NAME_LENGTH {
        return Err(IdProblem::TooLong { length: text.len() });
    }
    Ok(())
}

fn check_random(text: &str, prefix: &'static str) -> Result<(), IdProblem> {
    let digits = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
    let well_formed =
        digits.len() == RANDOM_DIGITS && digits.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f'));
    if well_formed { Ok(()) } else { Err(IdProblem::Malformed { prefix }) }
}
