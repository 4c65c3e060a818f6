//! The JSON Schema of the language, for editors (S7.4). It knows every key and what it takes; what keys mean
//! together, only [`load`](crate::load) knows.

mod builders;
mod entries;

use serde_json::{Value, json};

use self::builders::{list, map_of, object, object_with, one_of, text};

/// The schema. `policies/policy.schema.json` holds a copy that a test compares.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = object_with(
        "A policy: what may run, when and for how long.",
        &["config_version"],
        [
            ("config_version", json!({ "description": "The version of the language.", "const": 1 })),
            (
                "timezone",
                text(
                    "The time zone that hours are meant in, such as \"Europe/Berlin\". Without it: the machine's.",
                ),
            ),
            (
                "suspended_time",
                one_of("Whether time with the lid closed counts. Usually \"free\".", &["free", "counts"]),
            ),
            (
                "on_reload",
                one_of(
                    "Whether a running session keeps its plan when the policy changes. Usually \"keep-plan\".",
                    &["keep-plan", "replan"],
                ),
            ),
            (
                "on_shutdown",
                one_of(
                    "Whether a running session is ended when the daemon is. Usually \"leave-sessions\": the next daemon takes it back.",
                    &["leave-sessions", "end-sessions"],
                ),
            ),
            (
                "reload_on_change",
                builders::boolean(
                    "Whether the policy is read again as soon as its file has been written. Usually not.",
                ),
            ),
            ("launch_timeout", builders::duration("How long a program may take to start. Usually \"30s\".")),
            (
                "stop_grace",
                builders::duration("How long a program may take to end when asked to. Usually \"10s\"."),
            ),
            (
                "expect",
                list(
                    "Examples that must come out, such as \"sat 10:00 tuxmath: allow 30m\".",
                    &text("DAY TIME [in MODE] [PROFILE/]ENTRY: OUTCOME"),
                ),
            ),
            ("defaults", defaults()),
            ("profiles", map_of("Whose time is counted. Without any: one, called `default`.", &profile())),
            ("budgets", map_of("Time that several entries share.", &budget())),
            ("libraries", map_of("Where media entries find their files.", &library())),
            ("drivers", map_of("Programs that run custom entries, by type.", &driver())),
            ("compositor", compositor()),
            ("access", access()),
            ("modes", modes()),
            (
                "exceptions",
                list(
                    "Days on which the week does not apply. Of several for a day the last one counts.",
                    &exception(),
                ),
            ),
            ("breaks", breaks()),
            ("grants", grants()),
            ("clock", clock()),
            ("entries", list("What can be launched, in the order in which it is shown.", &entries::entry())),
        ],
    );
    if let Some(whole) = schema.as_object_mut() {
        whole.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        whole.insert("title".to_owned(), json!("Shepherd policy"));
    }
    schema
}

fn defaults() -> Value {
    let keys = builders::availability().into_iter().chain(builders::limits()).chain(entries::run());
    object("What applies to an entry that does not say otherwise.", keys)
}

fn profile() -> Value {
    object(
        "Somebody whose time is counted.",
        [("label", text("The name to show.")), ("accounts", accounts("Who this is to the machine."))],
    )
}

fn budget() -> Value {
    object(
        "Time that several entries share.",
        [
            ("label", text("The name to show.")),
            ("daily", builders::quota("How much a day.")),
            ("weekly", builders::amount("How much a week, from Monday.")),
        ],
    )
}

fn library() -> Value {
    object_with(
        "Films, music or pictures.",
        &["paths"],
        [
            ("paths", list("Files and folders, as full paths.", &text("A full path."))),
            ("player", text("The program that plays them. Usually \"mpv\".")),
        ],
    )
}

fn driver() -> Value {
    let argv = list("The program and its arguments; it gets the payload.", &text("An argument."));
    object_with("A program that runs custom entries of this type.", &["argv"], [("argv", argv)])
}

fn compositor() -> Value {
    object(
        "What shows the windows: one that runs already (`sway`), or one that Shepherd starts (`start`).",
        [
            ("sway", one_of("Works with the Sway that runs already.", &["connect"])),
            ("socket", text("Its socket, as a full path. Without it: the one that the environment names.")),
            ("start", list("Starts this one.", &text("The program, then its arguments."))),
        ],
    )
}

fn access() -> Value {
    object(
        "Who may do what. Root and the user that Shepherd runs as may do everything without being named.",
        [
            ("admins", accounts("May do everything.")),
            ("shells", accounts("May start entries, end what they started, and ask for time.")),
            ("observers", accounts("May look.")),
            (
                "others",
                one_of("What everybody else may do. Usually \"nothing\".", &["nothing", "observe", "shell"]),
            ),
        ],
    )
}

fn accounts(description: &str) -> Value {
    let number = json!({ "type": "integer", "minimum": 0, "description": "A user by number." });
    let account = builders::any_of(
        "A user by name, \"anna\", or number, 1000. A group with a sign before it: \"@family\", \"@100\".",
        [text("A user, or a group with `@`."), number],
    );
    list(description, &account)
}

fn modes() -> Value {
    let dates = object_with(
        "Days on which a mode applies.",
        &["mode"],
        std::iter::once(("mode", text("Which mode."))).chain(builders::days_of_the_calendar()),
    );
    object_with(
        "Modes of the household, such as school and holiday.",
        &["names"],
        [
            ("names", list("All modes, that of ordinary days first.", &text("A mode."))),
            ("default", text("The mode of ordinary days, if it is not the first.")),
            ("dates", list("When another mode applies. Of several for a day the last one counts.", &dates)),
        ],
    )
}

fn exception() -> Value {
    let hours = object_with("Hours of the day.", &["from", "to"], builders::hours());
    object(
        "Days on which the week does not apply.",
        std::iter::once(("label", text("The name to show."))).chain(builders::days_of_the_calendar()).chain(
            [
                ("entries", list("For which entries. Without it: for all.", &text("An entry."))),
                ("closed", builders::boolean("Nothing is open.")),
                ("open", builders::boolean("Open all day.")),
                ("windows", list("Open in these hours.", &hours)),
                ("as_on", one_of("As on this day of the week.", &crate::read::WEEKDAYS)),
            ],
        ),
    )
}

fn breaks() -> Value {
    object_with(
        "A break after so much time in a row, whatever it was spent on.",
        &["after", "length"],
        [
            ("after", builders::duration("After so much time.")),
            ("length", builders::duration("For so long.")),
        ],
    )
}

fn grants() -> Value {
    object(
        "How far extra time can go.",
        [
            ("extra_per_day", builders::amount("At most so much on a day. Without it: no limit.")),
            ("open_until", text("No window is stretched beyond this time of day, such as \"20:30\".")),
        ],
    )
}

fn clock() -> Value {
    object(
        "What is believed of the clock.",
        [(
            "tolerance",
            builders::duration("How far behind the latest time ever seen it may be. Usually \"10m\"."),
        )],
    )
}
