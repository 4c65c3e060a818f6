//! Notes that one person writes to another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest note, in characters: two sentences fit a notification and a line of the audit log.
pub const MAX_NOTE_LENGTH: usize = 280;

/// A short note from a person: one line without control characters, because it is shown on another person's
/// terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Note(#[schemars(length(max = MAX_NOTE_LENGTH))] String);

/// The error for a text that can't be a note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The text is longer than [`MAX_NOTE_LENGTH`].
    #[error("a note can have at most {MAX_NOTE_LENGTH} characters, not {length}")]
    TooLong {
        /// The length of the text in characters.
        length: usize,
    },
    /// The text has a character that could control a terminal or reverse the direction of the text.
    #[error("a note can't contain {character:?}; write plain text in one line")]
    BadCharacter {
        /// The refused character.
        character: char,
    },
}

impl Note {
    /// Returns the text of the note.
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

/// Returns whether a character could control a terminal or change the direction in which text is shown.
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
