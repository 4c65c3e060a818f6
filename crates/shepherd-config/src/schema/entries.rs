//! What can be launched.

use serde_json::{Value, json};

use super::builders::{self, SchemaKey, any_of, boolean, list, map_of, object, object_with, one_of, text};
use crate::read::DISPLAYS;
use crate::settings::{BUILT_IN_TYPES, DriverSetting, SettingType, driver_settings};

/// One of `[[entries]]`.
pub(super) fn entry() -> Value {
    let keys = description_keys()
        .into_iter()
        .chain(kind())
        .chain(builders::availability())
        .chain(builders::limits());
    object_with("Something that can be launched.", &["id"], keys.chain(rules()).chain(run()))
}

fn description_keys() -> [SchemaKey; 5] {
    [
        ("id", text("A short name that never changes: time is counted under it.")),
        ("label", text("The name to show.")),
        ("icon", text("The picture to show; the front end knows where it is.")),
        ("profiles", list("Who may launch it. Without it: everybody.", &text("A profile."))),
        (
            "disabled",
            any_of("Switched off, perhaps with a reason.", [boolean("Switched off."), text("Why.")]),
        ),
    ]
}

fn kind() -> [SchemaKey; 9] {
    let arguments = json!({ "type": "array", "items": { "type": "string" } });
    let payload = BUILT_IN_TYPES.iter().map(|name| driver_settings_schema(name));
    let payload = payload.chain([json!({ "description": "Whatever your own driver understands." })]);
    [
        ("kind", one_of("What it is. Usually \"process\".", &["process", "vm", "media", "custom"])),
        ("argv", list("process: the program and its arguments.", &text("An argument."))),
        ("env", map_of("process: variables for it.", &text("A value."))),
        ("cwd", text("process: the folder it starts in, as a full path.")),
        ("driver", one_of("vm: what runs it.", &["qemu", "command"])),
        (
            "args",
            any_of(
                "vm: settings for the driver. media: arguments for the player.",
                [driver_settings_schema("qemu"), driver_settings_schema("command"), arguments],
            ),
        ),
        ("library", text("media: which of `[libraries]`.")),
        ("type", text("custom: \"flatpak\", \"snap\", \"steam\", or one of `[drivers]`.")),
        ("payload", any_of("custom: whatever the driver understands.", payload)),
    ]
}

/// The settings of a built-in driver.
fn driver_settings_schema(driver: &str) -> Value {
    let keys = driver_settings(driver).into_iter().flat_map(|settings| settings.all);
    object(&format!("For `{driver}`."), keys.map(|setting| (setting.key, setting_schema(setting))))
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
            any_of(meaning, [text("A full path."), list("Several of them.", &text("A full path."))])
        }
        SettingType::Boolean => boolean(meaning),
        SettingType::TextList | SettingType::Program => list(meaning, &text("An argument.")),
        SettingType::OneOf(allowed) => one_of(meaning, allowed),
    }
}

/// How it is run.
pub(super) fn run() -> [SchemaKey; 5] {
    let resources = object(
        "Bounds on what it may use; \"unlimited\" is without.",
        [
            ("memory", builders::size("Memory, all its processes together, such as \"2GiB\".")),
            ("processes", builders::count("How many processes it may have.")),
            ("cpu", text("Its share of the processors: \"150%\" is one and a half of them.")),
            ("open_files", builders::count("How many files each process may have open.")),
            ("file_size", builders::size("How large a file it may write, such as \"100MiB\".")),
        ],
    );
    let displays = DISPLAYS.map(|(word, _)| word);
    [
        ("user", text("The user it runs as. Only a Shepherd that runs as root can do this.")),
        ("stop_grace", builders::duration("How long it may take to end when asked to.")),
        ("output_limit", builders::size("How much of its output is kept, such as \"1MiB\".")),
        ("display", one_of("How its window is shown. Usually \"as-it-is\".", &displays)),
        ("resources", resources),
    ]
}

fn rules() -> [SchemaKey; 4] {
    let earns = object_with(
        "Its use adds time to a budget, for the day.",
        &["budget", "for_each", "earned", "ceiling"],
        [
            ("budget", text("Which budget.")),
            ("for_each", builders::duration("For so much use …")),
            ("earned", builders::duration("… so much is earned.")),
            ("ceiling", builders::duration("At most so much a day.")),
        ],
    );
    let unlock = object_with(
        "What has to be done first, on the same day.",
        &["entry", "at_least"],
        [("entry", text("Which entry.")), ("at_least", builders::duration("For how long."))],
    );
    [
        ("budgets", list("Budgets that it draws on.", &text("A budget."))),
        ("cost", one_of("Whether its time counts. Usually \"counts\".", &["counts", "free"])),
        ("earns", earns),
        ("unlock", unlock),
    ]
}
