//! What it takes to start an entry.

use std::collections::BTreeMap;

use shepherd_api::EntryKind;
use ward_diag::{Fault, Invalid, Shape, Table, Value, closest, code};

use super::{payload, values};
use crate::raw::RawKind;
use crate::settings::{BUILT_IN_TYPES, settings};

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

/// The kind of an entry, and the names that it uses for it.
pub(super) fn kind(table: &mut Table<'_>) -> RawKind {
    let said = table.value("kind");
    let name = match said {
        None => Some("process"),
        Some(value) => known_kind(value),
    };
    let kind = match name {
        Some("vm") => RawKind { kind: vm(table), ..RawKind::default() },
        Some("media") => media(table),
        Some("custom") => custom(table),
        Some(_) => RawKind { kind: process(table), ..RawKind::default() },
        None => RawKind::default(),
    };
    foreign_keys(table, name);
    kind
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

/// A program and its arguments.
pub(super) fn argv(value: Value<'_>) -> Option<Vec<String>> {
    let name = value.name();
    let key = name.trim_matches('`');
    if let Shape::Text(line) = value.shape() {
        let words: Vec<String> = line.split_whitespace().map(|word| format!("{word:?}")).collect();
        let message = format!("{name} must be a list: no shell takes a line apart here");
        value.refuse(
            Invalid::new(message)
                .code(code::WRONG_TYPE)
                .help(format!("write `{key} = [{}]`", words.join(", "))),
        );
        return None;
    }
    let elements = value.elements()?;
    let Some(program) = elements.first().copied() else {
        value.refuse(
            Invalid::new(format!("{name} is empty: there is nothing to start")).code(code::EMPTY).help(
                format!(
                    "put the program first, then its arguments: `{key} = [\"tuxmath\", \"--fullscreen\"]`"
                ),
            ),
        );
        return None;
    };
    if matches!(program.shape(), Shape::Text(name) if name.trim().is_empty()) {
        program.refuse(
            Invalid::new(format!("the program in {name} has no name"))
                .code(code::EMPTY)
                .help(format!("put the program first: `{key} = [\"tuxmath\", \"--fullscreen\"]`")),
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
    let args = match driver.and_then(settings) {
        Some(settings) => payload::required(table, "args", settings),
        // Whose settings these are is not known; the fault is on record.
        None => table.optional_with("args", payload::json),
    };
    let args = match args? {
        serde_json::Value::Object(args) => args.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    Some(EntryKind::Vm { driver: driver?.to_owned(), args })
}

fn media(table: &mut Table<'_>) -> RawKind {
    let library = table.required_with("library", values::name);
    table.if_missing("library", "name one of `[libraries]`: `library = \"films\"`");
    let args = table.optional_with("args", |value| values::all(value.elements()?, values::system_text));
    let kind = library.as_ref().map(|library| EntryKind::Media {
        library_id: library.value.clone(),
        args: args.unwrap_or_default(),
    });
    RawKind { kind, library, driver: None }
}

fn custom(table: &mut Table<'_>) -> RawKind {
    let driver = table.required_with("type", values::name);
    table.if_missing("type", "name the driver: `type = \"flatpak\"`");
    let built_in = driver.as_ref().filter(|driver| BUILT_IN_TYPES.contains(&driver.value.as_str()));
    let payload = match built_in.and_then(|driver| settings(&driver.value)) {
        Some(settings) => payload::required(table, "payload", settings),
        None => Some(table.optional_with("payload", payload::json).unwrap_or_default()),
    };
    let type_name = driver.as_ref().map(|driver| driver.value.clone());
    let kind = type_name.zip(payload).map(|(type_name, payload)| EntryKind::Custom { type_name, payload });
    RawKind { kind, library: None, driver }
}
