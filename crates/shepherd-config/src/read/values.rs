//! Texts, names and lists.

use shepherd_util::{EntryId, IdProblem, MAX_NAME_LENGTH};
use ward_diag::{Fault, Faults, Invalid, Spanned, Value, code};

use crate::raw::Name;

/// Words that mean something where a name could stand: on the command line, in amounts and in examples.
const RESERVED: [&str; 5] = ["all", "auto", "in", "none", "unlimited"];

/// Longest name that a message repeats.
const MAX_SHOWN: usize = 60;

/// A name in a sentence: cut short, and with nothing in it that a terminal would not show as it is.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect()
}

/// A text that is shown to people: something, on one line.
pub(super) fn label(value: Value<'_>) -> Option<String> {
    let text = value.filled_text()?;
    let Some((at, control)) = text.char_indices().find(|(_, character)| character.is_control()) else {
        return Some(text.to_owned());
    };
    let message = format!("{} can't contain the control character {control:?}", value.name());
    value.refuse(
        Invalid::new(message).at(at..at + control.len_utf8()).help("write it on one line, without tabs"),
    );
    None
}

/// A text for the operating system: anything but the byte that ends its texts.
pub(super) fn system_text(value: Value<'_>) -> Option<String> {
    let text = value.text()?;
    if text.contains('\0') {
        value.refuse(Invalid::new("there is a zero byte in this text").help("take `\\u0000` out"));
        return None;
    }
    Some(text.to_owned())
}

/// A path that means the same wherever the daemon was started.
pub(super) fn absolute_path(value: Value<'_>) -> Option<String> {
    let text = system_text(value)?;
    if text.starts_with('/') {
        return Some(text);
    }
    value.refuse(
        Invalid::new(format!(
            "{} must be a full path, but {} does not begin with `/`",
            value.name(),
            value.quoted()
        ))
        .help("write the whole path, such as \"/home/anna\""),
    );
    None
}

/// Whether this could be the name of a user or group. Whether there is one, the machine knows.
pub(super) fn is_account_name(name: &str) -> bool {
    let strange = |character: char| {
        character.is_whitespace() || character.is_control() || matches!(character, ':' | '/' | ',')
    };
    !name.is_empty() && !name.starts_with(['-', '@']) && !name.contains(strange)
}

/// A name that is used, not yet looked up.
pub(super) fn name(value: Value<'_>) -> Option<Name> {
    value.filled_text().map(|text| value.spanned(text.to_owned()))
}

/// A list of names, at least one.
pub(super) fn names(value: Value<'_>, if_empty: &str) -> Option<Vec<Name>> {
    all(filled(value, if_empty)?, name)
}

/// The elements of a list that has at least one.
pub(super) fn filled<'a>(value: Value<'a>, if_empty: &str) -> Option<Vec<Value<'a>>> {
    let elements = value.elements()?;
    if elements.is_empty() {
        value.refuse(Invalid::new(format!("{} is empty", value.name())).code(code::EMPTY).help(if_empty));
        return None;
    }
    Some(elements)
}

/// No more elements than this: what is beyond them is left out, and a fault.
pub(crate) fn few<'a>(mut elements: Vec<Value<'a>>, most: usize, what: &str, cure: &str) -> Vec<Value<'a>> {
    if let Some(beyond) = elements.get(most) {
        let message = format!("there can be no more than {most} {what}, but there are {}", elements.len());
        beyond.refuse(Invalid::new(message).help(cure));
        elements.truncate(most);
    }
    elements
}

/// A name that is given to something new. It is kept even if it is bad, so that whatever uses it is not told
/// that it does not exist.
pub(super) fn new_name(faults: &Faults, name: Spanned<&str>) -> Name {
    if let Some((message, help)) = what_is_wrong_with(name.value) {
        faults.push(Fault::new(code::INVALID, name.span, message).help(help));
    }
    name.map(str::to_owned)
}

fn what_is_wrong_with(name: &str) -> Option<(String, String)> {
    if RESERVED.contains(&name) {
        return Some((
            format!("`{name}` can't be a name: the word has a meaning of its own"),
            "choose another one".to_owned(),
        ));
    }
    // All names of a policy have one form; that of entries stands for it.
    let problem = name.parse::<EntryId>().err()?.problem;
    Some(match problem {
        IdProblem::Empty => ("a name can't be empty".to_owned(), "write a short word".to_owned()),
        IdProblem::TooLong { length } => (
            format!("a name can have at most {MAX_NAME_LENGTH} characters, not {length}"),
            "write a shorter one, and the long one as `label`".to_owned(),
        ),
        IdProblem::BadCharacter { character, .. } => (
            format!("a name can't contain {character:?}"),
            format!("use lower-case letters, digits, `-`, `_` and `.`{}", proposal(name)),
        ),
        IdProblem::BadStart { character } => (
            format!("a name must begin with a letter or a digit, not with {character:?}"),
            format!("use lower-case letters and digits{}", proposal(name)),
        ),
        IdProblem::Malformed { .. } => ("this is not a name".to_owned(), "write a short word".to_owned()),
    })
}

/// The same name in the form that is allowed, where something is left of it.
fn proposal(name: &str) -> String {
    let allowed = |character: char| match character {
        'a'..='z' | '0'..='9' | '.' | '_' => character,
        _ => '-',
    };
    let mended: String = name.to_lowercase().chars().map(allowed).collect();
    let mended = mended.trim_matches(['-', '_', '.']);
    if mended.parse::<EntryId>().is_ok() { format!(": `{mended}`") } else { String::new() }
}

/// Every element, each read before the first bad one ends it.
pub(super) fn all<'a, T>(elements: Vec<Value<'a>>, read: impl Fn(Value<'a>) -> Option<T>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = elements.into_iter().map(read).collect();
    read.into_iter().collect()
}

/// Those elements that can be read.
pub(super) fn each<'a, T>(elements: Vec<Value<'a>>, read: impl Fn(Value<'a>) -> Option<T>) -> Vec<T> {
    elements.into_iter().filter_map(read).collect()
}
