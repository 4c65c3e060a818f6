//! What it takes to start an entry.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value as Json};
use shepherd_api::EntryKind;
use ward_diag::{Fault, Invalid, Shape, Table, Value, closest, code};

use super::values;
use crate::raw::Name;

/// The kinds, as they are written.
const KINDS: [&str; 4] = ["process", "vm", "media", "custom"];

/// Which keys are of which kinds, for those who mix them up.
const KEYS: [(&str, &[&str]); 8] = [
    ("argv", &["process"]),
    ("env", &["process"]),
    ("cwd", &["process"]),
    ("driver", &["vm"]),
    ("args", &["vm", "media"]),
    ("library", &["media"]),
    ("type", &["custom"]),
    ("payload", &["custom"]),
];

/// Programs that run virtual machines (S6.6).
const DRIVERS: [(&str, &str); 2] = [("qemu", "qemu"), ("command", "command")];

/// The kind of an entry, and the library that it names.
pub(super) fn kind(table: &mut Table<'_>) -> (Option<EntryKind>, Option<Name>) {
    let said = table.value("kind");
    let name = match said {
        None => Some("process"),
        Some(value) => known_kind(value),
    };
    let (kind, library) = match name {
        Some("vm") => (vm(table), None),
        Some("media") => media(table),
        Some("custom") => (custom(table), None),
        Some(_) => (process(table), None),
        None => (None, None),
    };
    foreign_keys(table, name);
    (kind, library)
}

fn known_kind<'a>(value: Value<'a>) -> Option<&'a str> {
    let text = value.text()?;
    if KINDS.contains(&text) {
        return Some(text);
    }
    let near = closest(text, KINDS);
    let question = near.map_or("it".to_owned(), |near| format!("did you mean `{near}`? It"));
    let shown = values::shown(text);
    value.refuse(Invalid::new(format!("there is no kind `{shown}`")).code(code::NOT_ALLOWED).help(format!(
        "{question} can be `process`, `vm` or `media`; for all else `kind = \"custom\"` with a `type`"
    )));
    None
}

/// Keys of another kind are no slips of the finger: they are told whose they are.
fn foreign_keys(table: &mut Table<'_>, kind: Option<&str>) {
    for (key, owners) in KEYS {
        let Some(span) = table.key_span(key) else { continue };
        if kind.is_some_and(|kind| owners.contains(&kind)) {
            continue;
        }
        // From here on it counts as known, so that it is not reported twice.
        let _ = table.value(key);
        if let (Some(kind), Some(owner)) = (kind, owners.first()) {
            let message =
                format!("`{key}` is for entries of kind `{owner}`, and this one is of kind `{kind}`");
            let help = format!("take it out, or write `kind = \"{owner}\"`");
            table.faults().push(Fault::new(code::UNKNOWN_KEY, span, message).help(help));
        }
    }
}

fn process(table: &mut Table<'_>) -> Option<EntryKind> {
    let argv = table.required_with("argv", argv);
    table.if_missing("argv", "add the program and its arguments: `argv = [\"tuxmath\", \"--fullscreen\"]`");
    let env = table.table("env").map(environment).unwrap_or_default();
    let cwd = table.optional_with("cwd", values::absolute_path);
    Some(EntryKind::Process { argv: argv?, env, cwd })
}

fn argv(value: Value<'_>) -> Option<Vec<String>> {
    if let Shape::Text(line) = value.shape() {
        let words: Vec<String> = line.split_whitespace().map(|word| format!("{word:?}")).collect();
        let message = "`argv` must be a list: no shell takes a line apart here";
        value.refuse(
            Invalid::new(message)
                .code(code::WRONG_TYPE)
                .help(format!("write `argv = [{}]`", words.join(", "))),
        );
        return None;
    }
    let elements = value.elements()?;
    let Some(program) = elements.first().copied() else {
        value.refuse(
            Invalid::new("`argv` is empty: there is nothing to start")
                .code(code::EMPTY)
                .help("put the program first, then its arguments: `argv = [\"tuxmath\", \"--fullscreen\"]`"),
        );
        return None;
    };
    if matches!(program.shape(), Shape::Text(name) if name.trim().is_empty()) {
        program.refuse(
            Invalid::new("the program in `argv` has no name")
                .code(code::EMPTY)
                .help("put the program first: `argv = [\"tuxmath\", \"--fullscreen\"]`"),
        );
    }
    values::all(elements, values::system_text)
}

fn environment(mut table: Table<'_>) -> BTreeMap<String, String> {
    let faults = table.faults();
    let mut variables = BTreeMap::new();
    for (key, value) in table.entries() {
        let usable = !key.value.is_empty() && !key.value.contains(['=', '\0']);
        if !usable {
            faults.push(
                Fault::new(code::INVALID, key.span, "this can't be the name of a variable")
                    .help("use letters, digits and `_`, such as `SDL_VIDEODRIVER`"),
            );
        }
        if let Some(text) = values::system_text(value) {
            variables.insert(key.value.to_owned(), text);
        }
    }
    variables
}

fn vm(table: &mut Table<'_>) -> Option<EntryKind> {
    let driver = table.required_with("driver", |value| value.one_of(&DRIVERS));
    table.if_missing("driver", "add `driver = \"qemu\"`, or `driver = \"command\"` for any other program");
    let args = table.table("args").and_then(|mut table| object(&mut table));
    Some(EntryKind::Vm { driver: driver?.to_owned(), args: args.unwrap_or_default().into_iter().collect() })
}

fn media(table: &mut Table<'_>) -> (Option<EntryKind>, Option<Name>) {
    let library = table.required_with("library", values::name);
    table.if_missing("library", "name one of `[libraries]`: `library = \"films\"`");
    let args = table.optional_with("args", |value| values::all(value.elements()?, values::system_text));
    let kind = library.as_ref().map(|library| EntryKind::Media {
        library_id: library.value.clone(),
        args: args.unwrap_or_default(),
    });
    (kind, library)
}

fn custom(table: &mut Table<'_>) -> Option<EntryKind> {
    let type_name = table.required_with("type", values::label);
    table.if_missing("type", "name the driver: `type = \"flatpak\"`");
    let payload = table.optional_with("payload", json).unwrap_or_default();
    Some(EntryKind::Custom { type_name: type_name?, payload })
}

/// Whatever a driver understands.
fn json(value: Value<'_>) -> Option<Json> {
    Some(match value.shape() {
        Shape::Text(text) | Shape::DateTime(text) => Json::from(text),
        Shape::Boolean(flag) => Json::from(flag),
        Shape::Integer(number) => Json::from(i64::try_from(number).ok().or_else(|| {
            value.refuse(Invalid::new("this number is too large").help("put it in quotes"));
            None
        })?),
        Shape::Float(number) => Json::Number(Number::from_f64(number).or_else(|| {
            value.refuse(Invalid::new("this is not a number that a driver can be given").help("take it out"));
            None
        })?),
        Shape::Array => Json::Array(values::all(value.elements()?, json)?),
        Shape::Table => Json::Object(object(&mut value.table()?)?),
    })
}

fn object(table: &mut Table<'_>) -> Option<Map<String, Json>> {
    let read: Vec<Option<_>> =
        table.entries().into_iter().map(|(key, value)| Some((key.value.to_owned(), json(value)?))).collect();
    read.into_iter().collect()
}
