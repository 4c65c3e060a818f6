//! One type for each kind of id, checked where it comes in, so that none can be taken for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name that a policy can give to a thing. It becomes part of file and cgroup names.
pub const MAX_NAME_LENGTH: usize = 64;

/// Hex digits of a random id: 128 bits, which nobody guesses and no two share.
const RANDOM_DIGITS: usize = 32;

/// Why a text is not the id that it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {problem}")]
pub struct IdError {
    /// The kind of id.
    pub what: &'static str,
    /// What is wrong with the text.
    pub problem: IdProblem,
}

/// What can be wrong with an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdProblem {
    /// Nothing there.
    #[error("can't be empty")]
    Empty,
    /// More than [`MAX_NAME_LENGTH`].
    #[error("can have at most {MAX_NAME_LENGTH} characters, not {length}")]
    TooLong {
        /// Its length in characters.
        length: usize,
    },
    /// A character that is not allowed.
    #[error("can't contain {character:?}; use lower-case letters, digits, `-`, `_` and `.`")]
    BadCharacter {
        /// The character.
        character: char,
        /// The byte at which it stands.
        at: usize,
    },
    /// A first character that is neither letter nor digit.
    #[error("must begin with a lower-case letter or a digit, not with {character:?}")]
    BadStart {
        /// The character.
        character: char,
    },
    /// Not what the daemon gives out.
    #[error("looks like `{prefix}-` with {RANDOM_DIGITS} digits (0-9, a-f)")]
    Malformed {
        /// How it begins.
        prefix: &'static str,
    },
}

/// What every kind of id has: a checked way in from text, and the same text out.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $what:literal, $check:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
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

/// An id that the daemon gives out. The random bits are passed in: whoever is pure can't have any.
macro_rules! random_id {
    ($(#[$meta:meta])* $name:ident, $what:literal, $prefix:literal) => {
        id!($(#[$meta])* $name, $what, |text| check_random(text, $prefix));

        impl $name {
            /// The id made from 128 random bits.
            #[must_use]
            pub fn from_random(bits: u128) -> Self {
                Self(format!(concat!($prefix, "-{:032x}"), bits))
            }
        }
    };
}

id! {
    /// A whitelisted thing that can be launched. Stable: usage is counted under it.
    EntryId, "an entry id", check_name
}
id! {
    /// A child or an agent whose usage is counted.
    ProfileId, "a profile id", check_name
}
id! {
    /// A quota that several entries share.
    BudgetId, "a budget id", check_name
}
random_id! {
    /// One run of an entry.
    SessionId, "a session id", "session"
}
random_id! {
    /// One connected front end.
    ClientId, "a client id", "client"
}
random_id! {
    /// A child's request for time.
    RequestId, "a request id", "request"
}
random_id! {
    /// Time given beyond the policy.
    GrantId, "a grant id", "grant"
}

impl Default for ProfileId {
    /// The profile of a policy that names none.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

fn check_name(text: &str) -> Result<(), IdProblem> {
    let Some(first) = text.chars().next() else { return Err(IdProblem::Empty) };
    let word = |character: char| matches!(character, 'a'..='z' | '0'..='9');
    let bad = text.char_indices().find(|(_, character)| !word(*character) && !"-_.".contains(*character));
    if let Some((at, character)) = bad {
        return Err(IdProblem::BadCharacter { character, at });
    }
    if !word(first) {
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
