//! The schema of `[[entries]]` and of driver settings.

use serde_json::{Value, json};

use super::builders::{self, SchemaKey, any_of, boolean, list, map_of, object, object_with, one_of, text};
use crate::read::{DISPLAYS, IDLE_TIME, LOGIN_COUNTING, LOGIN_ENDS, WITHOUT_DAEMON};
use crate::settings::{BUILT_IN_TYPES, DriverSetting, SettingType, driver_settings};

pub(super) fn entry() -> Value {
    let keys = description_keys()
        .into_iter()
        .chain(kind())
        .chain(login())
        .chain(builders::availability())
        .chain(builders::limits());
    object_with("A program, game or film that can be launched.", &["id"], keys.chain(rules()).chain(run()))
}

fn description_keys() -> [SchemaKey; 5] {
    [
        ("id", text("Short name that never changes; used time is recorded under it.")),
        ("label", text("The name to show.")),
        ("icon", text("Picture to show; its meaning depends on the front end.")),
        ("profiles", list("Profiles that may launch the entry. Default: all profiles.", &text("A profile."))),
        (
            "disabled",
            any_of(
                "Switch the entry off.",
                [boolean("Switch the entry off."), text("Reason, which is shown.")],
            ),
        ),
    ]
}

fn login() -> [SchemaKey; 4] {
    [
        (
            "counts",
            one_of(
                "login: time that counts: while in the foreground (\"active\"), while also not locked (\"unlocked\"), or until the log-out (\"always\"). Default: \"active\".",
                &LOGIN_COUNTING.map(|(word, _)| word),
            ),
        ),
        (
            "idle",
            one_of(
                "login: count time without input (\"counts\") or not (\"free\"). Default: \"counts\".",
                &IDLE_TIME.map(|(word, _)| word),
            ),
        ),
        (
            "end",
            one_of(
                "login: at the end, log out and end everything that the account runs (\"terminate\"), or lock the screen (\"lock\"). Default: \"terminate\".",
                &LOGIN_ENDS.map(|(word, _)| word),
            ),
        ),
        (
            "without_daemon",
            one_of(
                "login: allow a log-in while Shepherd doesn't run (\"allow\") or not (\"refuse\"). Default: \"refuse\".",
                &WITHOUT_DAEMON.map(|(word, _)| word),
            ),
        ),
    ]
}

fn kind() -> [SchemaKey; 9] {
    let arguments = json!({ "type": "array", "items": { "type": "string" } });
    let payload = BUILT_IN_TYPES.iter().map(|name| driver_settings_schema(name));
    let payload = payload.chain([json!({ "description": "Any settings of your own driver." })]);
    [
        (
            "kind",
            one_of(
                "Kind of the entry. Default: \"process\".",
                &["process", "vm", "media", "login", "custom"],
            ),
        ),
        ("argv", list("process: program and its arguments.", &text("An argument."))),
        ("env", map_of("process: environment variables.", &text("A value."))),
        ("cwd", text("process: working folder, as a full path.")),
        ("driver", one_of("vm: driver of the virtual machine.", &["qemu", "command"])),
        (
            "args",
            any_of(
                "vm: settings of the driver. media: arguments of the player.",
                [driver_settings_schema("qemu"), driver_settings_schema("command"), arguments],
            ),
        ),
        ("library", text("media: name of a library in `[libraries]`.")),
        ("type", text("custom: \"flatpak\", \"snap\", \"steam\", or the name of a driver in `[drivers]`.")),
        ("payload", any_of("custom: settings of the driver.", payload)),
    ]
}

/// Returns the schema of a built-in driver's settings.
fn driver_settings_schema(driver: &str) -> Value {
    let keys = driver_settings(driver).into_iter().flat_map(|settings| settings.all);
    object(&format!("Settings of `{driver}`."), keys.map(|setting| (setting.key, setting_schema(setting))))
}

fn setting_schema(setting: &DriverSetting) -> Value {
    let meaning = setting.meaning;
    match setting.setting_type {
        SettingType::Memory => builders::size(meaning),
        SettingType::Count { .. } => json!({ "description": meaning, "type": "integer", "minimum": 1 }),
        SettingType::Path | SettingType::Text | SettingType::FlatpakName | SettingType::SnapName => {
            text(meaning)
        }
        SettingType::PathList => {
            any_of(meaning, [text("A full path."), list("Several full paths.", &text("A full path."))])
        }
        SettingType::Boolean => boolean(meaning),
        SettingType::TextList | SettingType::Program => list(meaning, &text("An argument.")),
        SettingType::OneOf(allowed) => one_of(meaning, allowed),
    }
}

/// Returns the keys for the way an entry runs.
pub(super) fn run() -> [SchemaKey; 5] {
    let resources = object(
        "Limits on resources; \"unlimited\" means no limit.",
        [
            ("memory", builders::size("Memory of all processes together, such as \"2GiB\".")),
            ("processes", builders::count("Number of processes.")),
            ("cpu", text("Processor time; \"150%\" is one and a half processors.")),
            ("open_files", builders::count("Number of open files per process.")),
            ("file_size", builders::size("Largest file that may be written, such as \"100MiB\".")),
        ],
    );
    let displays = DISPLAYS.map(|(word, _)| word);
    [
        ("user", text("User that runs the entry. Works only if Shepherd runs as root.")),
        ("stop_grace", builders::duration("Time that the program has to exit when asked to.")),
        ("output_limit", builders::size("Size of the output that is kept, such as \"1MiB\".")),
        ("display", one_of("How the window is shown. Default: \"as-it-is\".", &displays)),
        ("resources", resources),
    ]
}

fn rules() -> [SchemaKey; 5] {
    let earns = object_with(
        "Use of this entry earns time for a budget on the same day.",
        &["budget", "for_each", "earned", "ceiling"],
        [
            ("budget", text("Budget that gets the time.")),
            ("for_each", builders::duration("Time of use that earns.")),
            ("earned", builders::duration("Time that is earned.")),
            ("ceiling", builders::duration("Most time earned per day.")),
        ],
    );
    let unlock = object_with(
        "Entry that has to be used first on the same day.",
        &["entry", "at_least"],
        [
            ("entry", text("Id of that entry.")),
            ("at_least", builders::duration("Time of use that is needed.")),
        ],
    );
    [
        ("budgets", list("Budgets that the entry uses.", &text("A budget."))),
        (
            "cost",
            one_of(
                "Count the time of the entry (\"counts\") or not (\"free\"). Default: \"counts\".",
                &["counts", "free"],
            ),
        ),
        (
            "slot",
            one_of(
                "Run one such entry of a profile at a time (\"foreground\"), or beside others (\"background\"). Default: \
                 \"foreground\".",
                &["foreground", "background"],
            ),
        ),
        ("earns", earns),
        ("unlock", unlock),
    ]
}
