//! Texts, names and lists.

use shepherd_util::{EntryId, IdProblem, MAX_NAME_LENGTH};
use ward_diag::{ConfigFault, FaultCollector, InvalidValue, Spanned, TomlValue, code};

use crate::raw::SpannedName;

/// Words that mean something where a name could stand: on the command line, in amounts and in examples.
const RESERVED: [&str; 5] = ["all", "auto", "in", "none", "unlimited"];

/// Longest name that a message repeats.
const MAX_SHOWN: usize = 60;

/// A name in a sentence: cut short, and with nothing in it that a terminal would not show as it is.
pub(crate) fn escape_name(name: &str) -> String {
    name.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect()
}

/// A text that is shown to people: something, on one line.
pub(super) fn read_label(value: TomlValue<'_>) -> Option<String> {
    let text = value.non_empty_text()?;
    let Some((at, control)) = text.char_indices().find(|(_, character)| character.is_control()) else {
        return Some(text.to_owned());
    };
    let message = format!("{} can't contain the control character {control:?}", value.name());
    value.reject(
        InvalidValue::new(message).at(at..at + control.len_utf8()).help("write it on one line, without tabs"),
    );
    None
}

/// A text for the operating system: anything but the byte that ends its texts.
pub(super) fn read_system_text(value: TomlValue<'_>) -> Option<String> {
    let text = value.text()?;
    if text.contains('\0') {
        value.reject(InvalidValue::new("there is a zero byte in this text").help("take `\\u0000` out"));
        return None;
    }
    Some(text.to_owned())
}

/// A path that means the same wherever the daemon was started.
pub(super) fn read_absolute_path(value: TomlValue<'_>) -> Option<String> {
    let text = read_system_text(value)?;
    if text.starts_with('/') {
        return Some(text);
    }
    value.reject(
        InvalidValue::new(format!(
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
pub(super) fn read_name(value: TomlValue<'_>) -> Option<SpannedName> {
    value.non_empty_text().map(|text| value.spanned(text.to_owned()))
}

/// A list of names, at least one.
pub(super) fn read_names(value: TomlValue<'_>, if_empty: &str) -> Option<Vec<SpannedName>> {
    read_all(non_empty_list(value, if_empty)?, read_name)
}

/// The elements of a list that has at least one.
pub(super) fn non_empty_list<'a>(value: TomlValue<'a>, if_empty: &str) -> Option<Vec<TomlValue<'a>>> {
    let elements = value.elements()?;
    if elements.is_empty() {
        value
            .reject(InvalidValue::new(format!("{} is empty", value.name())).code(code::EMPTY).help(if_empty));
        return None;
    }
    Some(elements)
}

/// No more elements than this: what is beyond them is left out, and a fault.
pub(crate) fn limit_elements<'a>(
    mut elements: Vec<TomlValue<'a>>,
    most: usize,
    what: &str,
    cure: &str,
) -> Vec<TomlValue<'a>> {
    if let Some(beyond) = elements.get(most) {
        let message = format!("there can be no more than {most} {what}, but there are {}", elements.len());
        beyond.reject(InvalidValue::new(message).help(cure));
        elements.truncate(most);
    }
    elements
}

/// A name that is given to something new. It is kept even if it is bad, so that whatever uses it is not told
/// that it does not exist.
pub(super) fn check_new_name(faults: &FaultCollector, name: Spanned<&str>) -> SpannedName {
    if let Some((message, help)) = name_problem(name.value) {
        faults.push(ConfigFault::new(code::INVALID, name.span, message).help(help));
    }
    name.map(str::to_owned)
}

fn name_problem(name: &str) -> Option<(String, String)> {
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
            format!("use lower-case letters, digits, `-`, `_` and `.`{}", suggest_name(name)),
        ),
        IdProblem::BadStart { character } => (
            format!("a name must begin with a letter or a digit, not with {character:?}"),
            format!("use lower-case letters and digits{}", suggest_name(name)),
        ),
        IdProblem::Malformed { .. } => ("this is not a name".to_owned(), "write a short word".to_owned()),
    })
}

/// The same name in the form that is allowed, where something is left of it.
fn suggest_name(name: &str) -> String {
    let allowed = |character: char| match character {
        'a'..='z' | '0'..='9' | '.' | '_' => character,
        _ => '-',
    };
    let mended: String = name.to_lowercase().chars().map(allowed).collect();
    let mended = mended.trim_matches(['-', '_', '.']);
    if mended.parse::<EntryId>().is_ok() { format!(": `{mended}`") } else { String::new() }
}

/// Every element, each read before the first bad one ends it.
pub(super) fn read_all<'a, T>(
    elements: Vec<TomlValue<'a>>,
    read: impl Fn(TomlValue<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = elements.into_iter().map(read).collect();
    read.into_iter().collect()
}

/// Those elements that can be read.
pub(super) fn read_valid<'a, T>(
    elements: Vec<TomlValue<'a>>,
    read: impl Fn(TomlValue<'a>) -> Option<T>,
) -> Vec<T> {
    elements.into_iter().filter_map(read).collect()
}
