//! The JSON Schema of the policy language, for editors (S7.4). It describes every key and its values. Rules about several
//! keys together are checked only by [`load`](crate::load()).

mod builders;
mod entries;

use serde_json::{Value, json};

use self::builders::{list, map_of, object, object_with, one_of, text};

/// Returns the schema. A test compares it with `policies/policy.schema.json`.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = object_with(
        "A policy: the rules for what may run, when and for how long.",
        &["config_version"],
        [
            ("config_version", json!({ "description": "Version of the policy language.", "const": 1 })),
            (
                "timezone",
                text(
                    "Time zone of all hours, such as \"Europe/Berlin\". Default: the time zone of the machine.",
                ),
            ),
            (
                "language",
                one_of(
                    "Language of warnings, notifications and reasons: English (\"en\") or German (\"de\"). Default: \"en\".",
                    &shepherd_api::Language::ALL.map(shepherd_api::Language::code),
                ),
            ),
            (
                "suspended_time",
                one_of(
                    "Count time while the machine sleeps (\"counts\") or not (\"free\"). Default: \"free\".",
                    &["free", "counts"],
                ),
            ),
            (
                "on_reload",
                one_of(
                    "When the policy changes, keep the time of a running session (\"keep-plan\") or apply the new rules to it (\"replan\"). Default: \"keep-plan\".",
                    &["keep-plan", "replan"],
                ),
            ),
            (
                "on_shutdown",
                one_of(
                    "When Shepherd stops, leave a running session to the next start (\"leave-sessions\") or stop it (\"end-sessions\"). Default: \"leave-sessions\".",
                    &["leave-sessions", "end-sessions"],
                ),
            ),
            (
                "reload_on_change",
                builders::boolean("Read the policy again as soon as its file is saved. Default: false."),
            ),
            ("launch_timeout", builders::duration("Longest time for a program to start. Default: \"30s\".")),
            (
                "stop_grace",
                builders::duration("Time that a program has to exit when asked to. Default: \"10s\"."),
            ),
            (
                "expect",
                list(
                    "Examples with their expected result, such as \"sat 10:00 tuxmath: allow 30m\".",
                    &text("DAY TIME [in MODE] [PROFILE/]ENTRY: OUTCOME"),
                ),
            ),
            ("defaults", defaults()),
            (
                "profiles",
                map_of("People whose time is counted. Default: one profile called `default`.", &profile()),
            ),
            ("budgets", map_of("Time that several entries share.", &budget())),
            ("libraries", map_of("Files of media entries.", &library())),
            ("drivers", map_of("Programs that run custom entries, by type.", &driver())),
            ("compositor", compositor()),
            ("access", access()),
            ("modes", modes()),
            (
                "exceptions",
                list(
                    "Days with other hours than usual. If several match a day, the last one applies.",
                    &exception(),
                ),
            ),
            ("breaks", breaks()),
            ("grants", grants()),
            ("clock", clock()),
            (
                "entries",
                list(
                    "Programs, games and films that can be launched, in the order shown.",
                    &entries::entry(),
                ),
            ),
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
    object("Settings of all entries that do not set their own.", keys)
}

fn profile() -> Value {
    object(
        "A person whose time is counted.",
        [
            ("label", text("The name to show.")),
            ("accounts", accounts("Accounts of this person on the machine.")),
            ("bedtime", bedtime()),
        ],
    )
}

fn bedtime() -> Value {
    let nights = || {
        let night = |when: &str| {
            text(&format!("{when}: start and end such as \"20:00-07:00\", or \"none\" for no bedtime."))
        };
        [
            ("school_nights", night("Nights before Monday to Friday")),
            ("weekends", night("Nights before Saturday and Sunday")),
        ]
    };
    let mode_nights = builders::any_of(
        "Bedtime in this mode.",
        [text("Same hours every night."), object("By kind of night.", nights())],
    );
    let modes = ("modes", map_of("Other bedtimes in a mode of the household.", &mode_nights));
    let by_night = object_with(
        "By kind of night and by mode.",
        &["school_nights", "weekends"],
        nights().into_iter().chain([modes]),
    );
    let same =
        json!({ "type": "string", "description": "Same hours every night.", "examples": ["20:00-07:00"] });
    builders::any_of("Hours of the night in which everything is closed.", [same, by_night])
}

fn budget() -> Value {
    object(
        "Time that several entries share.",
        [
            ("label", text("The name to show.")),
            ("daily", builders::quota("Time per day.")),
            ("weekly", builders::amount("Time per week, from Monday.")),
        ],
    )
}

fn library() -> Value {
    object_with(
        "Films, music or pictures.",
        &["paths"],
        [
            ("paths", list("Files and folders, as full paths.", &text("A full path."))),
            ("player", text("Program that plays the files. Default: \"mpv\".")),
        ],
    )
}

fn driver() -> Value {
    let argv = list("Program and its arguments. The program receives the payload.", &text("An argument."));
    object_with("Program that runs custom entries of this type.", &["argv"], [("argv", argv)])
}

fn compositor() -> Value {
    object(
        "Compositor that shows the windows: a running one (`sway`), or one that Shepherd starts (`start`).",
        [
            ("sway", one_of("Use the running Sway compositor.", &["connect"])),
            ("socket", text("Socket of Sway, as a full path. Default: the socket named in the environment.")),
            (
                "start",
                list(
                    "Start this compositor: the program, then its arguments.",
                    &text("The program or an argument."),
                ),
            ),
            (
                "user",
                text(
                    "User that the started compositor runs as, best one that runs nothing else. Default: the user that runs Shepherd.",
                ),
            ),
        ],
    )
}

fn access() -> Value {
    object(
        "Permissions. Root and the user that runs Shepherd may always do everything.",
        [
            ("admins", accounts("Accounts that may do everything.")),
            (
                "shells",
                accounts("Accounts that may launch entries, stop what they launched, and ask for time."),
            ),
            ("observers", accounts("Accounts that may only watch.")),
            (
                "others",
                one_of(
                    "Permission of everybody else. Default: \"nothing\".",
                    &["nothing", "observe", "shell"],
                ),
            ),
        ],
    )
}

fn accounts(description: &str) -> Value {
    let number = json!({ "type": "integer", "minimum": 0, "description": "Number of a user." });
    let account = builders::any_of(
        "User by name (\"anna\") or number (1000), or group with `@` (\"@family\", \"@100\").",
        [text("Name of a user, or of a group with `@`."), number],
    );
    list(description, &account)
}

fn modes() -> Value {
    let dates = object_with(
        "Days on which a mode applies.",
        &["mode"],
        std::iter::once(("mode", text("Name of the mode."))).chain(builders::days_of_the_calendar()),
    );
    object_with(
        "Modes of the household, such as school and holiday.",
        &["names"],
        [
            ("names", list("All modes, starting with the one of ordinary days.", &text("A mode."))),
            ("default", text("Mode of ordinary days. Default: the first of `names`.")),
            ("dates", list("Days with another mode. If several match a day, the last one applies.", &dates)),
        ],
    )
}

fn exception() -> Value {
    let hours = object_with("Hours of the day.", &["from", "to"], builders::hours());
    object(
        "Days with other hours than usual.",
        std::iter::once(("label", text("The name to show."))).chain(builders::days_of_the_calendar()).chain(
            [
                (
                    "entries",
                    list("Entries that the exception is for. Default: all entries.", &text("An entry.")),
                ),
                ("closed", builders::boolean("Closed all day.")),
                ("open", builders::boolean("Open all day.")),
                ("windows", list("Open during these hours.", &hours)),
                ("as_on", one_of("Same hours as on this weekday.", &crate::read::WEEKDAYS)),
            ],
        ),
    )
}

fn breaks() -> Value {
    object_with(
        "Break after a time of use without a pause, counted over all entries.",
        &["after", "length"],
        [
            ("after", builders::duration("Time of use until the break.")),
            ("length", builders::duration("Length of the break.")),
        ],
    )
}

fn grants() -> Value {
    object(
        "Limits on grants.",
        [
            ("extra_per_day", builders::amount("Most extra time per day. Default: no limit.")),
            ("open_until", text("Latest time of day that a grant can allow, such as \"20:30\".")),
        ],
    )
}

fn clock() -> Value {
    object(
        "Trust in the clock of the machine.",
        [(
            "tolerance",
            builders::duration(
                "Longest time that the clock may be set back and still be trusted. Default: \"10m\".",
            ),
        )],
    )
}
