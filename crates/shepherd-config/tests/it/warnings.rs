//! Warnings about values that are valid but probably not meant.

use shepherd_config::load;

fn warnings_of(text: &str) -> Vec<String> {
    load("policy.toml", &format!("config_version = 1\n{text}"))
        .unwrap_or_else(|report| panic!("{report}"))
        .warnings
}

fn entry_with(line: &str) -> String {
    format!(
        "[budgets.games]\ndaily = \"1h\"\n[[entries]]\nid = \"a\"\nargv = [\"a\"]\nalways = true\n{line}\n"
    )
}

#[test]
fn a_bare_number_that_probably_means_minutes_is_noticed() {
    assert_eq!(
        warnings_of(&entry_with("max_run = 30")),
        [
            "policy.toml:8:11: `max_run` is only 30 seconds, because a number without a unit is in seconds; write \"30m\" \
          for minutes, or \"30s\""
        ]
    );
    for line in [
        "max_run = 1",
        "max_run = 299",
        "daily_quota = 45",
        "daily_quota = { all = \"1h\", modes = {}, sat = 90 }",
        "weekly_quota = 240",
        "cooldown_after_run = 10",
        "warnings = [5]",
        "warnings = [{ before = 5 }]",
        "earns = { budget = \"games\", for_each = 20, earned = \"10m\", ceiling = \"30m\" }",
    ] {
        assert_eq!(warnings_of(&entry_with(line)).len(), 1, "{line}");
    }
    assert_eq!(warnings_of("[breaks]\nafter = 120\nlength = 15").len(), 2);
}

#[test]
fn long_numbers_texts_and_usual_seconds_are_not_noticed() {
    for line in [
        "max_run = 0",
        "max_run = 300",
        "max_run = 1800",
        "max_run = \"30s\"",
        "daily_quota = \"none\"",
        "stop_grace = 10",
        "cooldown_after_run = 0",
        "warnings = [60, { before = 30 }]",
    ] {
        assert_eq!(warnings_of(&entry_with(line)), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn a_list_of_durations_is_a_list_of_warnings() {
    let warnings = |line: &str| {
        let loaded = load("policy.toml", &format!("config_version = 1\n{}", entry_with(line)));
        loaded.unwrap_or_else(|report| panic!("{report}")).policy.entries()[0].warnings.clone()
    };
    assert_eq!(
        warnings("warnings = [\"5m\", 60]"),
        warnings("warnings = [{ before = \"5m\" }, { before = \"1m\" }]")
    );
    assert_ne!(warnings("warnings = [\"5m\"]"), warnings("warnings = []"));
}
