//! What can be launched.

use serde_json::{Value, json};

use super::parts::{self, Key, any_of, list, named, object_with, text, truth, words};

/// One of `[[entries]]`.
pub(super) fn entry() -> Value {
    let keys = about().into_iter().chain(kind()).chain(parts::availability()).chain(parts::limits());
    object_with("Something that can be launched.", &["id"], keys.chain(rules()))
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
    let settings = json!({ "type": "object" });
    [
        ("kind", words("What it is. Usually \"process\".", &["process", "vm", "media", "custom"])),
        ("argv", list("process: the program and its arguments.", &text("An argument."))),
        ("env", named("process: variables for it.", &text("A value."))),
        ("cwd", text("process: the folder it starts in, as a full path.")),
        ("driver", words("vm: what runs it.", &["qemu", "command"])),
        (
            "args",
            any_of("vm: settings for the driver. media: arguments for the player.", [settings, arguments]),
        ),
        ("library", text("media: which of `[libraries]`.")),
        ("type", text("custom: the driver, such as \"flatpak\".")),
        ("payload", json!({ "description": "custom: whatever the driver understands." })),
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
