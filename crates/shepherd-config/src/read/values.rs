//! Reads texts, names and lists.

use shepherd_util::{EntryId, IdProblem, MAX_NAME_LENGTH};
use ward_diag::{ConfigFault, FaultCollector, InvalidValue, Spanned, TomlValue, code};

use crate::raw::SpannedName;

/// Words that can't be names, because they have a meaning on the command line, in amounts or in examples.
const RESERVED: [&str; 5] = ["all", "auto", "in", "none", "unlimited"];

/// Most characters of a name in a message.
const MAX_SHOWN: usize = 60;

/// Escapes and shortens a name for a message.
pub(crate) fn escape_name(name: &str) -> String {
    name.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect()
}

/// Reads a text for people: not empty, and on one line.
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

/// Reads a text for the operating system, which can't contain a zero byte.
pub(super) fn read_system_text(value: TomlValue<'_>) -> Option<String> {
    let text = value.text()?;
    if text.contains('\0') {
        value.reject(InvalidValue::new("this text contains a zero byte").help("remove `\\u0000`"));
        return None;
    }
    Some(text.to_owned())
}

/// Reads an absolute path, which does not depend on the daemon's working folder.
pub(super) fn read_absolute_path(value: TomlValue<'_>) -> Option<String> {
    let text = read_system_text(value)?;
    if text.starts_with('/') {
        return Some(text);
    }
    value.reject(
        InvalidValue::new(format!(
            "{} must be a full path, but {} does not start with `/`",
            value.name(),
            value.quoted()
        ))
        .help("write the full path, such as \"/home/anna\""),
    );
    None
}

/// Returns true if this has the form of a user or group name. The account need not exist.
pub(super) fn is_account_name(name: &str) -> bool {
    let is_forbidden = |character: char| {
        character.is_whitespace() || character.is_control() || matches!(character, ':' | '/' | ',')
    };
    !name.is_empty() && !name.starts_with(['-', '@']) && !name.contains(is_forbidden)
}

/// Reads a name that will be looked up later.
pub(super) fn read_name(value: TomlValue<'_>) -> Option<SpannedName> {
    value.non_empty_text().map(|text| value.spanned(text.to_owned()))
}

/// Reads a list of at least one name.
pub(super) fn read_names(value: TomlValue<'_>, if_empty: &str) -> Option<Vec<SpannedName>> {
    read_all(non_empty_list(value, if_empty)?, read_name)
}

/// Returns the elements of a list, and rejects an empty list.
pub(super) fn non_empty_list<'a>(value: TomlValue<'a>, if_empty: &str) -> Option<Vec<TomlValue<'a>>> {
    let elements = value.elements()?;
    if elements.is_empty() {
        value
            .reject(InvalidValue::new(format!("{} is empty", value.name())).code(code::EMPTY).help(if_empty));
        return None;
    }
    Some(elements)
}

/// Cuts a list to its limit, and records a fault if it is longer.
pub(crate) fn limit_elements<'a>(
    mut elements: Vec<TomlValue<'a>>,
    most: usize,
    what: &str,
    help: &str,
) -> Vec<TomlValue<'a>> {
    if let Some(beyond) = elements.get(most) {
        let message = format!("there can be at most {most} {what}, but there are {}", elements.len());
        beyond.reject(InvalidValue::new(message).help(help));
        elements.truncate(most);
    }
    elements
}

/// Checks the name of a new definition. An invalid name is kept, so that its uses are not reported as unknown.
pub(super) fn check_new_name(faults: &FaultCollector, name: Spanned<&str>) -> SpannedName {
    if let Some((message, help)) = name_problem(name.value) {
        faults.push(ConfigFault::new(code::INVALID, name.span, message).help(help));
    }
    name.map(str::to_owned)
}

fn name_problem(name: &str) -> Option<(String, String)> {
    if RESERVED.contains(&name) {
        return Some((
            format!("`{name}` can't be a name, because the word has a special meaning"),
            "choose another name".to_owned(),
        ));
    }
    // All names in a policy have the same form as entry ids.
    let problem = name.parse::<EntryId>().err()?.problem;
    Some(match problem {
        IdProblem::Empty => ("a name can't be empty".to_owned(), "write a short word".to_owned()),
        IdProblem::TooLong { length } => (
            format!("a name can have at most {MAX_NAME_LENGTH} characters, not {length}"),
            "write a shorter name, and put the long one in `label`".to_owned(),
        ),
        IdProblem::BadCharacter { character, .. } => (
            format!("a name can't contain {character:?}"),
            format!("use lower-case letters, digits, `-`, `_` and `.`{}", suggest_name(name)),
        ),
        IdProblem::BadStart { character } => (
            format!("a name must start with a letter or a digit, not with {character:?}"),
            format!("use lower-case letters and digits{}", suggest_name(name)),
        ),
        IdProblem::Malformed { .. } => ("this is not a name".to_owned(), "write a short word".to_owned()),
    })
}

/// Suggests the name with allowed characters, if anything is left of it.
fn suggest_name(name: &str) -> String {
    let allowed = |character: char| match character {
        'a'..='z' | '0'..='9' | '.' | '_' => character,
        _ => '-',
    };
    let plain = [("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")]
        .iter()
        .fold(name.to_lowercase(), |name, (letter, plain)| name.replace(letter, plain));
    let cleaned: String = plain.chars().map(allowed).collect();
    let cleaned = cleaned.trim_matches(['-', '_', '.']);
    if cleaned.parse::<EntryId>().is_ok() { format!(": `{cleaned}`") } else { String::new() }
}

/// Reads all elements, so that each fault is recorded. Returns `None` if any element is invalid.
pub(super) fn read_all<'a, T>(
    elements: Vec<TomlValue<'a>>,
    read: impl Fn(TomlValue<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = elements.into_iter().map(read).collect();
    read.into_iter().collect()
}

/// Reads all elements and returns the valid ones.
pub(super) fn read_valid<'a, T>(
    elements: Vec<TomlValue<'a>>,
    read: impl Fn(TomlValue<'a>) -> Option<T>,
) -> Vec<T> {
    elements.into_iter().filter_map(read).collect()
}
