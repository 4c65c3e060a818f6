//! What people write to each other is short and harmless to a terminal.

use shepherd_api::{MAX_NOTE_LENGTH, Note, NoteError};

fn check(text: &str, expected: &Result<(), NoteError>) {
    assert_eq!(
        Note::try_from(text.to_owned()).map(|note| assert_eq!(note.as_str(), text)),
        *expected,
        "{text:?}"
    );
}

#[test]
fn plain_text_of_any_language_is_a_note() {
    check("", &Ok(()));
    check("nur noch dieses Level, bitte 🙂", &Ok(()));
    check(&"ü".repeat(MAX_NOTE_LENGTH), &Ok(()));
}

#[test]
fn long_and_harmful_texts_are_refused() {
    check(&"x".repeat(281), &Err(NoteError::TooLong { length: 281 }));
    check("one\ntwo", &Err(NoteError::BadCharacter { character: '\n' }));
    check("\u{1b}[2J", &Err(NoteError::BadCharacter { character: '\u{1b}' }));
    check("\u{202e}knird", &Err(NoteError::BadCharacter { character: '\u{202e}' }));
}
