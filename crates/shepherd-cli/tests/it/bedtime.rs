//! Bedtime, and one command that puts it off (S19.4). The tests run between 12:00 and 13:00.

use crate::support::{CliTestDaemon, entry, policy, text};

const ASLEEP: &str = policy!(
    "[profiles.anna]\nlabel = \"Anna\"\nbedtime = \"12:00-01:00\"\n[profiles.ben]\nlabel = \"Ben\"\n\
     bedtime = \"23:00-06:00\"\n",
    entry!(
        "maths",
        "Maths",
        r#"["sleep", "600"]"#,
        "max_run = \"4h\"\nprofiles = [\"anna\"]\ncost = \"free\""
    )
);

#[test]
fn bedtime_closes_everything_until_a_parent_puts_it_off() {
    let daemon = CliTestDaemon::start(Some(ASLEEP));
    let refused = text(&daemon.run(&["launch", "maths", "--profile", "anna"]).stderr);
    assert!(refused.contains("Bedtime until tomorrow 01:00."), "{refused}");
    let command = "`shepherd grant 20m --bedtime --entry maths --for anna` opens it for 20 minutes";
    assert!(refused.contains(command), "{refused}");
    let listed = daemon.run_text(&["list", "--profile", "anna"]);
    assert!(listed.contains("Bedtime until tomorrow 01:00"), "{listed}");
    let why = daemon.run_text(&["why", "maths", "--profile", "anna"]);
    assert!(why.lines().any(|line| line.contains("bedtime")), "{why}");
    // Extra time doesn't open it, and the parent learns what does.
    let given = daemon.run_text(&["grant", "15m", "--for", "anna"]);
    let hint = "  It is bedtime until tomorrow 01:00, and extra time doesn't open it. To open it: `shepherd grant 15m \
                --bedtime --for anna`\n";
    assert!(given.ends_with(hint), "{given}");
    let given = daemon.run_text(&["grant", "20m", "--bedtime", "--for", "Anna"]);
    assert!(given.contains("everything for Anna: open until 1"), "{given}");
    let listed = daemon.json(&["list", "--profile", "anna"]);
    assert_eq!(listed["entries"][0]["enabled"], true);
    assert!(listed["entries"][0]["max_run_if_started_now"].as_u64().unwrap() <= 20 * 60 * 1000);
    let week = daemon.run_text(&["week", "maths", "--profile", "anna"]);
    assert!(week.contains("z bedtime") && week.contains("zzzz"), "{week}");
}

#[test]
fn each_child_has_a_bedtime_of_its_own_to_put_off() {
    let daemon = CliTestDaemon::start(Some(ASLEEP));
    let given = daemon.run_text(&["grant", "20m", "--bedtime"]);
    let lines: Vec<&str> = given.lines().collect();
    assert_eq!(lines.len(), 2, "{given}");
    assert!(lines[0].contains("everything for Anna: open until 1"), "{given}");
    assert!(lines[1].contains("everything for Ben: open until 23:20."), "{given}");
    // Ben's begins with his bedtime, so that nothing else opens before.
    let grants = daemon.json(&["grants"]);
    let ben = grants["grants"].as_array().unwrap().iter().find(|grant| grant["profile"] == "ben").unwrap();
    assert!(ben["valid_from"].as_str() > ben["given_at"].as_str(), "{ben}");
}

#[test]
fn without_a_bedtime_there_is_nothing_to_put_off() {
    let rules = policy!("[profiles.anna]\n", entry!("maths", "Maths", r#"["true"]"#, ""));
    let daemon = CliTestDaemon::start(Some(rules));
    let refused = daemon.run(&["grant", "20m", "--bedtime"]);
    assert_eq!(refused.status.code(), Some(1));
    let refused = text(&refused.stderr);
    assert!(refused.contains("no bedtime begins within a day"), "{refused}");
    assert!(refused.contains("help: `shepherd grant --open-until 20:00`"), "{refused}");
    assert_eq!(daemon.run(&["grant", "--bedtime"]).status.code(), Some(2));
}
