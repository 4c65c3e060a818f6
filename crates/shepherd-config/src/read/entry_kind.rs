//! Reads the kind of an entry and the keys that belong to it.

use std::collections::BTreeMap;

use shepherd_api::EntryKind;
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, closest, code};

use super::{payload, values};
use crate::raw::RawKind;
use crate::settings::{BUILT_IN_TYPES, driver_settings};

const KINDS: [&str; 4] = ["process", "vm", "media", "custom"];

/// Keys that belong to certain kinds only.
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

/// Drivers of virtual machines (S6.6).
const DRIVERS: [(&str, &str); 2] = [("qemu", "qemu"), ("command", "command")];

/// Reads the kind of an entry, and the names it uses.
pub(super) fn read_kind(table: &mut TomlTable<'_>) -> RawKind {
    let name = match table.value("kind") {
        None => Some("process"),
        Some(value) => read_kind_name(value),
    };
    let kind = match name {
        Some("vm") => RawKind { kind: read_vm(table), ..RawKind::default() },
        Some("media") => read_media(table),
        Some("custom") => read_custom(table),
        Some(_) => RawKind { kind: read_process(table), ..RawKind::default() },
        None => RawKind::default(),
    };
    report_foreign_keys(table, name);
    kind
}

fn read_kind_name<'a>(value: TomlValue<'a>) -> Option<&'a str> {
    let text = value.text()?;
    if KINDS.contains(&text) {
        return Some(text);
    }
    let near = closest(text, KINDS);
    let question = near.map_or("the kind".to_owned(), |near| format!("did you mean `{near}`? The kind"));
    let shown = values::escape_name(text);
    value.reject(
        InvalidValue::new(format!("there is no kind `{shown}`"))
            .code(code::NOT_ALLOWED)
            .help(format!("{question} can be `process`, `vm` or `media`, or `custom` with a `type`")),
    );
    None
}

/// Reports keys of another kind, and names that kind.
fn report_foreign_keys(table: &mut TomlTable<'_>, kind: Option<&str>) {
    for (key, owners) in KEYS {
        let Some(span) = table.key_span(key) else { continue };
        if kind.is_some_and(|kind| owners.contains(&kind)) {
            continue;
        }
        // Reading the key marks it as known, so that it is not reported twice.
        let _ = table.value(key);
        if let (Some(kind), Some(owner)) = (kind, owners.first()) {
            let message =
                format!("`{key}` is for entries of kind `{owner}`, but this entry is of kind `{kind}`");
            let help = format!("remove it, or write `kind = \"{owner}\"`");
            table.faults().push(ConfigFault::new(code::UNKNOWN_KEY, span, message).help(help));
        }
    }
}

fn read_process(table: &mut TomlTable<'_>) -> Option<EntryKind> {
    let argv = table.required_with("argv", read_argv);
    table.help_if_missing(
        "argv",
        "add the program and its arguments: `argv = [\"tuxmath\", \"--fullscreen\"]`",
    );
    let env = table.optional_with("env", |value| value.inline_table("{ LANG = \"de_DE.UTF-8\" }"));
    let env = env.map(read_environment).unwrap_or_default();
    let cwd = table.optional_with("cwd", values::read_absolute_path);
    Some(EntryKind::Process { argv: argv?, env, cwd })
}

/// Reads a program and its arguments.
pub(super) fn read_argv(value: TomlValue<'_>) -> Option<Vec<String>> {
    let name = value.name();
    let key = name.trim_matches('`');
    if let ValueKind::Text(line) = value.kind() {
        let words: Vec<String> = line.split_whitespace().map(|word| format!("{word:?}")).collect();
        let message = format!("{name} must be a list of the program and its arguments");
        value.reject(
            InvalidValue::new(message)
                .code(code::WRONG_TYPE)
                .help(format!("write `{key} = [{}]`", words.join(", "))),
        );
        return None;
    }
    let elements = value.elements()?;
    let Some(program) = elements.first().copied() else {
        value.reject(
            InvalidValue::new(format!("{name} is empty, but needs a program")).code(code::EMPTY).help(
                format!(
                    "put the program first, then its arguments: `{key} = [\"tuxmath\", \"--fullscreen\"]`"
                ),
            ),
        );
        return None;
    };
    if matches!(program.kind(), ValueKind::Text(name) if name.trim().is_empty()) {
        program.reject(
            InvalidValue::new(format!("the program in {name} has no name"))
                .code(code::EMPTY)
                .help(format!("put the program first: `{key} = [\"tuxmath\", \"--fullscreen\"]`")),
        );
    }
    values::read_all(elements, values::read_system_text)
}

fn read_environment(mut table: TomlTable<'_>) -> BTreeMap<String, String> {
    let faults = table.faults();
    let mut variables = BTreeMap::new();
    for (key, value) in table.entries() {
        let usable = !key.value.is_empty() && !key.value.contains(['=', '\0']);
        if !usable {
            faults.push(
                ConfigFault::new(code::INVALID, key.span, "this can't be the name of a variable")
                    .help("use letters, digits and `_`, such as `SDL_VIDEODRIVER`"),
            );
        }
        if let Some(text) = values::read_system_text(value) {
            variables.insert(key.value.to_owned(), text);
        }
    }
    variables
}

fn read_vm(table: &mut TomlTable<'_>) -> Option<EntryKind> {
    let driver = table.required_with("driver", |value| value.one_of(&DRIVERS));
    table.help_if_missing(
        "driver",
        "add `driver = \"qemu\"`, or `driver = \"command\"` for any other program",
    );
    let args = match driver.and_then(driver_settings) {
        Some(settings) => payload::read_required_settings(table, "args", settings),
        // The driver is unknown and already reported, so its settings can't be checked.
        None => table.optional_with("args", payload::read_json),
    };
    let args = match args? {
        serde_json::Value::Object(args) => args.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    Some(EntryKind::Vm { driver: driver?.to_owned(), args })
}

fn read_media(table: &mut TomlTable<'_>) -> RawKind {
    let library = table.required_with("library", values::read_name);
    table.help_if_missing("library", "name one of `[libraries]`: `library = \"films\"`");
    let args =
        table.optional_with("args", |value| values::read_all(value.elements()?, values::read_system_text));
    let kind = library.as_ref().map(|library| EntryKind::Media {
        library_id: library.value.clone(),
        args: args.unwrap_or_default(),
    });
    RawKind { kind, library, driver: None }
}

fn read_custom(table: &mut TomlTable<'_>) -> RawKind {
    let driver = table.required_with("type", values::read_name);
    table.help_if_missing("type", "name the driver: `type = \"flatpak\"`");
    let built_in = driver.as_ref().filter(|driver| BUILT_IN_TYPES.contains(&driver.value.as_str()));
    let payload = match built_in.and_then(|driver| driver_settings(&driver.value)) {
        Some(settings) => payload::read_required_settings(table, "payload", settings),
        None => Some(table.optional_with("payload", payload::read_json).unwrap_or_default()),
    };
    let type_name = driver.as_ref().map(|driver| driver.value.clone());
    let kind = type_name.zip(payload).map(|(type_name, payload)| EntryKind::Custom { type_name, payload });
    RawKind { kind, library: None, driver }
}
