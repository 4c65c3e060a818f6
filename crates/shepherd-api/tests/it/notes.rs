//! Notes between people are short and can't control a terminal.

use shepherd_api::{MAX_NOTE_LENGTH, Note, NoteError};

fn assert_note(text: &str, expected: &Result<(), NoteError>) {
    assert_eq!(
        Note::try_from(text.to_owned()).map(|note| assert_eq!(note.as_str(), text)),
        *expected,
        "{text:?}"
    );
}

#[test]
fn plain_text_of_any_language_is_a_note() {
    assert_note("", &Ok(()));
    assert_note("nur noch dieses Level, bitte 🙂", &Ok(()));
    assert_note(&"ü".repeat(MAX_NOTE_LENGTH), &Ok(()));
}

#[test]
fn long_and_harmful_texts_are_refused() {
    assert_note(&"x".repeat(281), &Err(NoteError::TooLong { length: 281 }));
    assert_note("one\ntwo", &Err(NoteError::BadCharacter { character: '\n' }));
    assert_note("\u{1b}[2J", &Err(NoteError::BadCharacter { character: '\u{1b}' }));
    assert_note("\u{202e}knird", &Err(NoteError::BadCharacter { character: '\u{202e}' }));
}
