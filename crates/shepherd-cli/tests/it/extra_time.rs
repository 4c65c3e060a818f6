//! Extra time opens no hours, and parents learn what does (S2.7).

use jiff::civil::{Time, time};

use crate::support::{CliTestDaemon, entry, policy, text};

/// Extra time opens no hours, and a parent who gives it outside of them learns how to open the entry.
#[test]
fn extra_time_outside_the_hours_is_given_with_a_hint() {
    let daemon = CliTestDaemon::start(Some(policy!(
        "[profiles.anna]\n",
        "[[entries]]\nid = \"late\"\nlabel = \"Late\"\nargv = [\"true\"]\nmax_run = \"5m\"\n\
         windows = [{ from = \"20:00\", to = \"21:00\" }]\n",
        entry!("open", "Open", r#"["true"]"#, r#"max_run = "5m""#)
    )));
    let granted = daemon.run_text(&["grant", "10m", "--entry", "late"]);
    assert_opens_for_an_hour(&granted, " --entry late`\n");
    daemon.run_text(&["request", "late", "15m"]);
    let id = daemon.json(&["requests"])["requests"][0]["request_id"].as_str().unwrap().to_owned();
    let waiting = "\nFor anna, Late stays closed until 20:00, because of its hours. A yes gives time, but doesn't open it.\n";
    let listed = daemon.run_text(&["requests"]);
    assert!(listed.ends_with(waiting), "{listed}");
    let decided = daemon.run_text(&["decide", &id, "yes"]);
    assert_opens_for_an_hour(&decided, " --entry late --for anna`\n");
    let listed = daemon.run_text(&["requests"]);
    let granted = "\nFor anna, Late stays closed until 20:00, because of its hours. To open it for an hour: `shepherd grant";
    assert!(listed.contains(granted), "{listed}");
    daemon.run_text(&["grant", "--open-until", "19:00", "--entry", "late"]);
    assert!(!daemon.run_text(&["requests"]).contains("stays closed"));
    for other in
        [&["grant", "10m", "--entry", "open"][..], &["grant", "--open-until", "20:00", "--entry", "late"]]
    {
        let granted = daemon.run_text(other);
        assert!(!granted.contains("stays closed"), "{granted}");
    }
    let refused = daemon.run(&["grant", "30", "--entry", "open"]);
    assert!(text(&refused.stderr).contains("add `s`, `m`, `h` or `d`"), "{}", text(&refused.stderr));
}

/// A yes to a request opens no hours, and a child who asks outside of them learns it at once.
// S2.7
#[test]
fn a_child_who_asks_outside_the_hours_learns_that_the_entry_stays_closed() {
    let daemon = CliTestDaemon::start(Some(policy!(
        "[profiles.anna]\n",
        "[[entries]]\nid = \"late\"\nlabel = \"Late\"\nargv = [\"true\"]\nmax_run = \"5m\"\n\
         windows = [{ from = \"20:00\", to = \"21:00\" }]\n",
        entry!("open", "Open", r#"["true"]"#, r#"max_run = "5m""#)
    )));
    let asked = daemon.run_text(&["request", "late", "15m"]);
    let hint =
        "\n  It stays closed until 20:00, because of its hours. A yes gives time, but doesn't open it.\n";
    assert!(asked.ends_with(hint), "{asked}");
    let asked = daemon.run_text(&["request", "open", "15m"]);
    assert!(!asked.contains("stays closed"), "{asked}");
}

/// Neither extra time nor longer hours open an entry that another entry unlocks, and the parent who gives them learns it.
// S2.7
#[test]
fn a_parent_who_gives_time_learns_that_another_entry_has_to_be_used_first() {
    let daemon = CliTestDaemon::start(Some(policy!(
        "[profiles.anna]\nlabel = \"Anna\"\n",
        entry!("maths", "Maths", r#"["true"]"#, r#"max_run = "30m""#),
        entry!(
            "kart",
            "Racing",
            r#"["true"]"#,
            "max_run = \"5m\"\nunlock = { entry = \"maths\", at_least = \"10m\" }"
        )
    )));
    let stays = "\n  It stays closed until 10 minutes of Maths are done.\n";
    for gift in [&["15m"][..], &["--open-until", "20:00"]] {
        let granted = daemon.run_text(&[&["grant"], gift, &["--entry", "kart", "--for", "anna"]].concat());
        assert!(granted.ends_with(stays), "{granted}");
    }
    daemon.run_text(&["request", "kart", "15m"]);
    let id = daemon.json(&["requests"])["requests"][0]["request_id"].as_str().unwrap().to_owned();
    let decided = daemon.run_text(&["decide", &id, "yes"]);
    assert!(decided.ends_with(stays), "{decided}");
    let listed = daemon.run_text(&["requests"]);
    let line = "\nFor Anna, Racing stays closed until 10 minutes of Maths are done.\n";
    assert!(listed.ends_with(line), "{listed}");
}

/// Checks the hint after extra time outside the hours: the command opens the entry for an hour from now.
fn assert_opens_for_an_hour(shown: &str, rest: &str) {
    let hint = "  It stays closed until 20:00, because of its hours. To open it for an hour: `shepherd grant --open-until ";
    let (_, command) = shown.split_once(hint).unwrap_or_else(|| panic!("{shown}"));
    let until: Time = command.strip_suffix(rest).and_then(|until| until.parse().ok()).expect(shown);
    // The daemon's zone was chosen when it was between 12:00 and 13:00, a moment ago.
    assert!((time(13, 0, 0, 0)..time(14, 30, 0, 0)).contains(&until), "{shown}");
}

/// The tests run between 12:00 and 13:00.
const HOURS_END_FIRST: &str = policy!(
    "[profiles.anna]\n",
    "[[entries]]\nid = \"maths\"\nlabel = \"Maths\"\nargv = [\"sleep\", \"600\"]\nmax_run = \"4h\"\n\
     windows = [{ from = \"11:00\", to = \"14:00\" }]\n",
    entry!("racing", "Racing", r#"["sleep", "600"]"#, r#"max_run = "10m""#)
);

// S2.7
#[test]
fn a_parent_who_gives_time_learns_that_the_hours_end_before_it() {
    let daemon = CliTestDaemon::start(Some(HOURS_END_FIRST));
    let still_ends = |end: &str, command: &str| {
        format!("  Maths still ends at {end}, because its hours end then. To let it go on: `{command}`\n")
    };
    let granted = daemon.run_text(&["grant", "15m", "--entry", "maths"]);
    assert!(!granted.contains("still ends"), "nothing is running: {granted}");
    daemon.run_text(&["launch", "maths"]);
    let granted = daemon.run_text(&["grant", "15m", "--entry", "maths"]);
    assert!(granted.ends_with(&still_ends("14:00", "shepherd extend 15m maths --profile anna")), "{granted}");
    let granted = daemon.run_text(&["grant", "15m", "--entry", "racing"]);
    assert!(!granted.contains("still ends"), "another entry is running: {granted}");
    daemon.run_text(&["request", "maths", "10m"]);
    let id = daemon.json(&["requests"])["requests"][0]["request_id"].as_str().unwrap().to_owned();
    let decided = daemon.run_text(&["decide", &id, "yes"]);
    assert!(decided.ends_with(&still_ends("14:00", "shepherd extend 10m maths --profile anna")), "{decided}");
    let listed = daemon.run_text(&["requests"]);
    assert!(
        listed.ends_with(still_ends("14:00", "shepherd extend 10m maths --profile anna").trim_start()),
        "{listed}"
    );
    // The advice works.
    daemon.run_text(&["extend", "10m", "maths", "--profile", "anna"]);
    let granted = daemon.run_text(&["grant", "5m"]);
    assert!(granted.ends_with(&still_ends("14:10", "shepherd extend 5m maths --profile anna")), "{granted}");
    let granted = daemon.run_text(&["grant", "--open-until", "20:00", "--entry", "maths"]);
    assert!(!granted.contains("still ends"), "{granted}");
}

/// A parent who opens an entry "until 11:00" in the afternoon opens it until tomorrow.
// S2.7
#[test]
fn an_opening_until_a_time_that_has_passed_names_the_day() {
    let daemon = CliTestDaemon::start(Some(HOURS_END_FIRST));
    let granted = daemon.run_text(&["grant", "--open-until", "11:00", "--entry", "maths"]);
    assert!(granted.contains("Maths for everybody: open until tomorrow 11:00. To revoke"), "{granted}");
    let granted = daemon.run_text(&["grant", "--open-until", "20:00", "--entry", "maths"]);
    assert!(granted.contains("Maths for everybody: open until 20:00. To revoke"), "{granted}");
}
