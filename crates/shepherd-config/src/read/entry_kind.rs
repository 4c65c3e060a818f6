//! Reads the kind of an entry and the keys that belong to it.

use std::collections::BTreeMap;

use shepherd_api::EntryKind;
use shepherd_core::policy::{IdleTime, LoginCounting, LoginEnd, LoginPolicy, LoginWithoutDaemon};
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, closest, code};

use super::{payload, values};
use crate::raw::RawKind;
use crate::settings::{BUILT_IN_TYPES, driver_settings};

const KINDS: [&str; 5] = ["process", "vm", "media", "login", "custom"];

/// Keys that belong to certain kinds only.
const KEYS: [(&str, &[&str]); 12] = [
    ("argv", &["process"]),
    ("env", &["process"]),
    ("cwd", &["process"]),
    ("driver", &["vm"]),
    ("args", &["vm", "media"]),
    ("library", &["media"]),
    ("type", &["custom"]),
    ("payload", &["custom"]),
    ("counts", &["login"]),
    ("idle", &["login"]),
    ("end", &["login"]),
    ("without_daemon", &["login"]),
];

/// Keys about a program that Shepherd starts.
const KEYS_OF_PROGRAMS: [&str; 5] = ["user", "resources", "output_limit", "display", "slot"];

pub(crate) const LOGIN_COUNTING: [(&str, LoginCounting); 3] = [
    ("active", LoginCounting::Active),
    ("unlocked", LoginCounting::Unlocked),
    ("always", LoginCounting::Always),
];

pub(crate) const IDLE_TIME: [(&str, IdleTime); 2] = [("counts", IdleTime::Counts), ("free", IdleTime::Free)];

pub(crate) const LOGIN_ENDS: [(&str, LoginEnd); 2] =
    [("terminate", LoginEnd::Terminate), ("lock", LoginEnd::Lock)];

pub(crate) const WITHOUT_DAEMON: [(&str, LoginWithoutDaemon); 2] =
    [("refuse", LoginWithoutDaemon::Refuse), ("allow", LoginWithoutDaemon::Allow)];

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
        Some("login") => read_login(table),
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
        InvalidValue::new(format!("there is no kind `{shown}`")).code(code::NOT_ALLOWED).help(format!(
            "{question} can be `process`, `vm`, `media` or `login`, or `custom` with a `type`"
        )),
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
    RawKind { kind, library, ..RawKind::default() }
}

fn read_custom(table: &mut TomlTable<'_>) -> RawKind {
    let driver = table.required_with("type", values::read_name);
    table.help_if_missing("type", "name the driver: `type = \"flatpak\"`");
    if let Some(login) = driver.as_ref().filter(|driver| driver.value == EntryKind::LOGIN_TYPE) {
        let _ = table.value("payload");
        table.faults().push(
            ConfigFault::new(code::NOT_ALLOWED, login.span, "`login` is a kind of entry, not a type")
                .help("write `kind = \"login\"`, without `type`"),
        );
        return RawKind::default();
    }
    let built_in = driver.as_ref().filter(|driver| BUILT_IN_TYPES.contains(&driver.value.as_str()));
    let payload = match built_in.and_then(|driver| driver_settings(&driver.value)) {
        Some(settings) => payload::read_required_settings(table, "payload", settings),
        None => Some(table.optional_with("payload", payload::read_json).unwrap_or_default()),
    };
    let type_name = driver.as_ref().map(|driver| driver.value.clone());
    let kind = type_name.zip(payload).map(|(type_name, payload)| EntryKind::Custom { type_name, payload });
    RawKind { kind, driver, ..RawKind::default() }
}

fn read_login(table: &mut TomlTable<'_>) -> RawKind {
    let login = LoginPolicy {
        counts: table.optional_with("counts", |value| value.one_of(&LOGIN_COUNTING)).unwrap_or_default(),
        idle: table.optional_with("idle", |value| value.one_of(&IDLE_TIME)).unwrap_or_default(),
        end: table.optional_with("end", |value| value.one_of(&LOGIN_ENDS)).unwrap_or_default(),
        without_daemon: table
            .optional_with("without_daemon", |value| value.one_of(&WITHOUT_DAEMON))
            .unwrap_or_default(),
    };
    for key in KEYS_OF_PROGRAMS {
        let Some(span) = table.key_span(key) else { continue };
        let message = format!("`{key}` has no effect on a login, because Shepherd doesn't start it");
        table.faults().push(ConfigFault::new(code::INVALID, span, message).help("remove it"));
    }
    if let Some(span) = table.key_span("earns") {
        let message = "a login can't earn time: being logged in is no work";
        let help = "move `earns` to the program that is to be used";
        table.faults().push(ConfigFault::new(code::NOT_ALLOWED, span, message).help(help));
    }
    RawKind { kind: Some(EntryKind::login()), login, ..RawKind::default() }
}
