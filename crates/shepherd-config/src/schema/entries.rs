//! What can be launched.

use serde_json::{Value, json};

use super::parts::{self, Key, any_of, list, named, object, object_with, text, truth, words};
use crate::read::DISPLAYS;
use crate::settings::{BUILT_IN_TYPES, Form, Setting, settings};

/// One of `[[entries]]`.
pub(super) fn entry() -> Value {
    let keys = about().into_iter().chain(kind()).chain(parts::availability()).chain(parts::limits());
    object_with("Something that can be launched.", &["id"], keys.chain(rules()).chain(run()))
}

fn about() -> [Key; 5] {
    [
        ("id", text("A short name that never changes: time is counted under it.")),
        ("label", text("The name to show.")),
        ("icon", text("The picture to show; the front end knows where it is.")),
        ("profiles", list("Who may launch it. Without it: everybody.", &text("A profile."))),
        ("disabled", any_of("Switched off, perhaps with a reason.", [truth("Switched off."), text("Why.")])),
    ]
}

fn kind() -> [Key; 9] {
    let arguments = json!({ "type": "array", "items": { "type": "string" } });
    let payload = BUILT_IN_TYPES.iter().map(|name| built_in(name));
    let payload = payload.chain([json!({ "description": "Whatever your own driver understands." })]);
    [
        ("kind", words("What it is. Usually \"process\".", &["process", "vm", "media", "custom"])),
        ("argv", list("process: the program and its arguments.", &text("An argument."))),
        ("env", named("process: variables for it.", &text("A value."))),
        ("cwd", text("process: the folder it starts in, as a full path.")),
        ("driver", words("vm: what runs it.", &["qemu", "command"])),
        (
            "args",
            any_of(
                "vm: settings for the driver. media: arguments for the player.",
                [built_in("qemu"), built_in("command"), arguments],
            ),
        ),
        ("library", text("media: which of `[libraries]`.")),
        ("type", text("custom: \"flatpak\", \"snap\", \"steam\", or one of `[drivers]`.")),
        ("payload", any_of("custom: whatever the driver understands.", payload)),
    ]
}

/// The settings of a built-in driver.
fn built_in(driver: &str) -> Value {
    let keys = settings(driver).into_iter().flat_map(|settings| settings.all);
    object(&format!("For `{driver}`."), keys.map(|setting| (setting.key, of_form(setting))))
}

fn of_form(setting: &Setting) -> Value {
    let meaning = setting.meaning;
    match setting.form {
        Form::Memory => parts::size(meaning),
        Form::Count { .. } => json!({ "description": meaning, "type": "integer", "minimum": 1 }),
        Form::Path | Form::Text | Form::FlatpakName | Form::SnapName => text(meaning),
        Form::Paths => {
            any_of(meaning, [text("A full path."), list("Several of them.", &text("A full path."))])
        }
        Form::Truth => truth(meaning),
        Form::Texts | Form::Program => list(meaning, &text("An argument.")),
        Form::Word(allowed) => words(meaning, allowed),
    }
}

/// How it is run.
pub(super) fn run() -> [Key; 5] {
    let resources = object(
        "Bounds on what it may use; \"unlimited\" is without.",
        [
            ("memory", parts::size("Memory, all its processes together, such as \"2GiB\".")),
            ("processes", parts::count("How many processes it may have.")),
            ("cpu", text("Its share of the processors: \"150%\" is one and a half of them.")),
            ("open_files", parts::count("How many files each process may have open.")),
            ("file_size", parts::size("How large a file it may write, such as \"100MiB\".")),
        ],
    );
    let displays = DISPLAYS.map(|(word, _)| word);
    [
        ("user", text("The user it runs as. Only a Shepherd that runs as root can do this.")),
        ("stop_grace", parts::duration("How long it may take to end when asked to.")),
        ("output_limit", parts::size("How much of its output is kept, such as \"1MiB\".")),
        ("display", words("How its window is shown. Usually \"as-it-is\".", &displays)),
        ("resources", resources),
    ]
}

fn rules() -> [Key; 4] {
    let earns = object_with(
        "Its use adds time to a budget, for the day.",
        &["budget", "for_each", "earned", "ceiling"],
        [
            ("budget", text("Which budget.")),
            ("for_each", parts::duration("For so much use …")),
            ("earned", parts::duration("… so much is earned.")),
            ("ceiling", parts::duration("At most so much a day.")),
        ],
    );
    let unlock = object_with(
        "What has to be done first, on the same day.",
        &["entry", "at_least"],
        [("entry", text("Which entry.")), ("at_least", parts::duration("For how long."))],
    );
    [
        ("budgets", list("Budgets that it draws on.", &text("A budget."))),
        ("cost", words("Whether its time counts. Usually \"counts\".", &["counts", "free"])),
        ("earns", earns),
        ("unlock", unlock),
    ]
}
