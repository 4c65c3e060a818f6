//! Words that one person writes to another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest note, in characters: two sentences, which fit a notification and a line of the audit log.
pub const MAX_NOTE_LENGTH: usize = 280;

/// A note from a person: one line, short, and without control characters, because it will be shown on somebody
/// else's terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Note(#[schemars(length(max = MAX_NOTE_LENGTH))] String);

/// Why a text can't be a note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// More than [`MAX_NOTE_LENGTH`].
    #[error("a note can have at most {MAX_NOTE_LENGTH} characters, not {length}")]
    TooLong {
        /// Its length in characters.
        length: usize,
    },
    /// A character that could do something to a terminal, or that turns the text round.
    #[error("a note can't contain {character:?}; write plain text in one line")]
    BadCharacter {
        /// The character.
        character: char,
    },
}

impl Note {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Note {
    type Error = NoteError;

    fn try_from(text: String) -> Result<Self, NoteError> {
        let length = text.chars().count();
        if length > MAX_NOTE_LENGTH {
            return Err(NoteError::TooLong { length });
        }
        match text.chars().find(|character| is_unsafe_to_display(*character)) {
            Some(character) => Err(NoteError::BadCharacter { character }),
            None => Ok(Self(text)),
        }
    }
}

/// Whether a character could do something to a terminal, or changes the direction in which the rest is shown.
pub(crate) fn is_unsafe_to_display(character: char) -> bool {
    let turns =
        matches!(character, '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}' | '\u{2066}'..='\u{2069}');
    turns || character.is_control()
}

impl From<Note> for String {
    fn from(note: Note) -> Self {
        note.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
