//! Every command, run against a real daemon.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::terminal::TmuxTerminal;
use crate::support::{CliTestDaemon, command, disabled_entry, entry, policy, program, text, wait_until};

/// Entries that only wait, one whose program is missing, and one that is switched off.
const POLICY: &str = policy!(
    r#"
[modes]
names = ["school", "holiday"]

[profiles.anna]
label = "Anna"

[budgets.games]
daily = "1h"
"#,
    entry!(
        "racing",
        "Racing",
        r#"["sleep", "600"]"#,
        r#"max_run = "10m"
budgets = ["games"]"#
    ),
    entry!("blink", "Blink", r#"["sleep", "0.2"]"#, r#"max_run = "10m""#),
    entry!("missing", "Missing", r#"["/nonexistent/program"]"#, r#"max_run = "10m""#),
    entry!(
        "crash",
        "Crash",
        r#"["sh", "-c", "printf 'no display\\033[2J\\n' >&2; exit 3"]"#,
        r#"max_run = "10m""#
    ),
    disabled_entry!()
);

fn is_session_running(daemon: &CliTestDaemon) -> bool {
    !daemon.json(&["status"])["snapshot"]["session"].is_null()
}

#[test]
fn a_session_from_launch_to_stop() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    assert!(daemon.run_text(&["status"]).contains("Nothing is running."));
    assert!(daemon.run_text(&["launch", "racing"]).contains("Racing is starting, for up to 10 minutes"));
    wait_until("the session runs", || daemon.json(&["status"])["snapshot"]["session"]["phase"] == "running");
    assert!(daemon.run_text(&["status"]).contains("Racing · running · Anna"));
    let second = daemon.run(&["launch", "blink"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("Racing is running. Each child can run one program at a time."));
    let extended = daemon.json(&["extend", "5m"]);
    assert_eq!(extended["type"], "extended");
    assert!(extended["session"]["remaining"].as_u64().unwrap() > 14 * 60 * 1000);
    assert_eq!(daemon.json(&["stop", "--force"])["type"], "stopping");
    wait_until("the session has ended", || !is_session_running(&daemon));
    assert_eq!(daemon.run(&["stop"]).status.code(), Some(1));
}

#[test]
fn launch_waits_for_the_end_and_shows_the_reason() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let shown = daemon.run_text(&["launch", "blink", "--wait"]);
    assert!(
        shown.contains("▶ Blink is running") && shown.contains("■ Blink has ended: the program exited\n"),
        "{shown}"
    );
    let events = text(&daemon.run(&["launch", "blink", "--wait", "--output", "json"]).stdout);
    let kinds: Vec<String> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("launched"), "{events}");
    assert_eq!(kinds.last().map(String::as_str), Some("session_ended"), "{events}");
    for failing in [&["launch", "missing", "--wait"][..], &["launch", "missing"]] {
        let failed = daemon.run(failing);
        assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stdout));
        assert!(!text(&failed.stdout).contains("has ended"), "the reason comes once");
        assert!(text(&failed.stderr).contains("could not start the program: "), "{}", text(&failed.stderr));
    }
}

/// A child must not wonder why nothing appears.
#[test]
fn a_launch_tells_of_a_program_that_fails_at_once() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let shown = daemon.run_text(&["launch", "crash"]);
    assert!(shown.contains("Crash has ended: the program exited with code 3; see `shepherd log`"), "{shown}");
    let shown = daemon.run_text(&["launch", "racing"]);
    assert_eq!(shown, "▶ Racing is starting, for up to 10 minutes\n");
    assert!(is_session_running(&daemon));
}

#[test]
fn the_output_of_a_session_is_shown_and_named_where_a_program_fails() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let nothing = daemon.run(&["log"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("Nothing has run yet."), "{}", text(&nothing.stderr));
    let shown = daemon.run_text(&["launch", "crash", "--wait"]);
    let hint = "Crash has ended: the program exited with code 3; see `shepherd log`";
    assert!(shown.contains(hint), "{shown}");
    let log = daemon.run_text(&["log"]);
    assert!(log.starts_with("Crash for Anna, started "), "{log}");
    assert!(log.contains("the program exited with code 3\nno display\\u{1b}[2J\n"), "{log}");
    let json = daemon.json(&["log", "--profile", "anna"]);
    let id = json["log"]["session_id"].as_str().unwrap().to_owned();
    daemon.run_text(&["launch", "blink", "--wait"]);
    assert!(daemon.run_text(&["log"]).contains("Blink"));
    assert!(daemon.run_text(&["log"]).contains("The program wrote no output."));
    assert_eq!(daemon.run_text(&["log", &id[..16]]), log, "an earlier session");
    assert_eq!(daemon.run(&["log", "session-nosuch"]).status.code(), Some(1));
}

/// S13.2: the daemon tries a launch when it starts, and every command that a parent would run tells of a failure.
#[test]
fn health_doctor_and_policy_check_say_that_nothing_can_be_launched() {
    let daemon = CliTestDaemon::start_in_user_namespace(POLICY);
    let fault =
        "no program can be launched: could not start a program: could not switch to the requested user";
    let health = daemon.run(&["health"]);
    assert_eq!(health.status.code(), Some(1), "{}", text(&health.stderr));
    let shown = |output: &[u8]| text(output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown(&health.stdout).contains(fault), "{}", text(&health.stdout));
    let doctor = daemon.run(&["doctor"]);
    assert!(shown(&doctor.stdout).contains(&format!("✗ host: {fault}")), "{}", text(&doctor.stdout));
    let policy = daemon.path("policy.toml");
    let check = ["policy", "check", policy.to_str().unwrap()];
    let checked = daemon.run(&check);
    assert_eq!(checked.status.code(), Some(0), "the policy itself is valid");
    let warning = format!("warning: the daemon on this machine: {fault}");
    assert!(text(&checked.stderr).contains(&warning), "{}", text(&checked.stderr));
    let can_launch = CliTestDaemon::start(Some(POLICY));
    assert!(!text(&can_launch.run(&check).stderr).contains("the daemon on this machine"));
}

#[test]
fn list_why_and_week_show_availability() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let listed = daemon.run_text(&["list"]);
    assert!(listed.contains("✓  Racing        racing   up to 10 minutes"), "{listed}");
    assert!(listed.contains("✗  Switched off  off      Switched off: broken"), "{listed}");
    assert_eq!(daemon.json(&["list"])["entries"][4]["reasons"][0]["code"], "disabled");
    assert!(daemon.run_text(&["list", "--at", "sat 10:00"]).contains("For Anna on Sat "));
    let why = daemon.run_text(&["why", "off", "--at", "tomorrow 9:00"]);
    assert!(why.contains("→ Switched off: broken"), "{why}");
    assert_eq!(daemon.json(&["why", "racing"])["why"]["entry"]["enabled"], true);
    let unknown = daemon.run(&["why", "nosuch"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("`shepherd list`"), "{}", text(&unknown.stderr));
    assert!(daemon.run_text(&["week"]).contains("Racing"));
    assert!(daemon.run_text(&["week", "racing"]).contains("█ open"));
    assert_eq!(daemon.json(&["week"])["timeline"]["entries"].as_array().unwrap().len(), 5);
    assert_eq!(daemon.run(&["week", "nosuch"]).status.code(), Some(1));
}

#[test]
fn entries_and_children_are_found_by_their_labels() {
    let two_children = POLICY.replace("[profiles.anna]", "[profiles.ben]\n[profiles.anna]");
    let daemon = CliTestDaemon::start(Some(&two_children));
    let of_anna = |arguments: &[&str]| daemon.run_text(&[arguments, &["--profile", "ANNA"]].concat());
    assert!(of_anna(&["why", "Racing"]).contains("Racing for Anna"));
    assert!(of_anna(&["week", "Switched off"]).starts_with("Switched off"));
    assert!(of_anna(&["request", "RACING", "15m"]).contains("Asked for 15 minutes of Racing"));
    assert!(of_anna(&["usage"]).contains("No time was used today."));
    assert!(of_anna(&["launch", "Blink", "--wait"]).contains("Blink has ended"));
    assert!(of_anna(&["log"]).starts_with("Blink for Anna"));
    for entry in ["Racing", "racing"] {
        let granted = daemon.run_text(&["grant", "10m", "--entry", entry, "--for", "Anna"]);
        assert!(granted.contains("Racing for Anna: 10 minutes more"), "{granted}");
    }
    let for_everybody = daemon.run_text(&["grant", "10m", "--entry", "Racing"]);
    assert!(for_everybody.contains("Racing for everybody"), "{for_everybody}");
}

#[test]
fn an_id_counts_more_than_a_label_of_another_entry() {
    let policy = policy!(
        "[profiles.anna]\n[profiles.ben]\n",
        entry!("schach", "Chess", r#"["true"]"#, r#"profiles = ["anna"]"#),
        entry!("chess", "King", r#"["true"]"#, "daily_quota = \"10m\"\nprofiles = [\"ben\"]")
    );
    let daemon = CliTestDaemon::start(Some(policy));
    let refused = daemon.run(&["launch", "chess", "--profile", "anna"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).starts_with("error: Not available for this profile"), "{refused:?}");
    let granted = daemon.run_text(&["grant", "5m", "--entry", "Chess", "--for", "ben"]);
    assert!(granted.contains("King for ben"), "{granted}");
    assert!(daemon.run_text(&["why", "king", "--profile", "ben"]).contains("King"));
}

#[test]
fn a_mistyped_name_is_refused_with_the_one_that_was_meant() {
    let two_children = POLICY.replace("[profiles.anna]", "[profiles.ben]\n[profiles.anna]");
    let daemon = CliTestDaemon::start(Some(&two_children));
    let check = |arguments: &[&str], expected: &str| {
        let output = daemon.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(text(&output.stderr), expected, "{arguments:?}");
    };
    let entry_help = "help: did you mean `racing`? `shepherd list` shows all entries\n";
    for (arguments, sentence) in [
        (&["launch", "racign"][..], "There is no entry `racign`."),
        (&["why", "racign"], "No such entry `racign`."),
        (&["week", "racign"], "no such entry `racign`"),
        (&["request", "racign", "5m"], "No such entry `racign`."),
        (&["grant", "5m", "--entry", "racign"], "No such entry `racign`."),
        (&["launch", "Racig"], "no such entry `Racig`"),
    ] {
        let arguments = [arguments, &["--profile", "anna"]].concat();
        check(&arguments, &format!("error: {sentence}\n{entry_help}"));
    }
    check(&["list", "--profile", "Ana"], "error: no such profile `Ana`\nhelp: did you mean `anna`?\n");
    check(
        &["grant", "5m", "--for", "Max"],
        "error: no such profile `Max`\nhelp: the policy has `anna`, `ben`\n",
    );
    check(
        &["why", "racing"],
        "error: Say which child: `anna` or `ben`.\nhelp: add `--profile anna` or `--profile ben` to the command\n",
    );
}

/// S3.2, S3.10: a parent of several children does not have to name one.
#[test]
fn a_parent_sees_the_entries_and_the_week_of_all_children() {
    let daemon = CliTestDaemon::start(Some(policy!(
        "[profiles.anna]\nlabel = \"Anna\"\n[profiles.ben]\nlabel = \"Ben\"\n",
        entry!("racing", "Racing", r#"["sleep", "600"]"#, r#"max_run = "10m""#),
        entry!("chess", "Chess", r#"["true"]"#, r#"profiles = ["ben"]"#)
    )));
    daemon.run_text(&["launch", "racing", "--profile", "ben"]);
    let listed = daemon.run_text(&["list"]);
    let (anna, ben) = listed.split_once("\n\n").expect(&listed);
    assert!(anna.starts_with("Anna\n") && ben.starts_with("Ben\n"), "{listed}");
    // S19.1: each child has a place of its own.
    assert!(anna.contains("✓  Racing  racing  up to 10 minutes") && !anna.contains("Chess"), "{listed}");
    assert!(ben.contains("▶  Racing  racing  running") && ben.contains("Chess"), "{listed}");
    let at = daemon.run_text(&["list", "--at", "tomorrow 9:00"]);
    assert!(at.starts_with("For Anna on ") && at.contains("\n\nFor Ben on "), "{at}");
    let week = daemon.run_text(&["week"]);
    assert!(week.starts_with("Anna\n") && week.contains("\n\nBen\n"), "{week}");
    let only_ben = daemon.run_text(&["week", "chess"]);
    assert!(only_ben.starts_with("Ben\nChess\n") && !only_ben.contains("Anna"), "{only_ben}");
    for command in ["list", "week"] {
        let output = text(&daemon.run(&[command, "--output", "json"]).stdout);
        let objects = output.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
        assert_eq!(objects.count(), 2, "{output}");
    }
}

/// S7.3, S13.2
#[test]
fn after_a_mistake_the_old_rules_apply_and_can_be_put_back() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let file = daemon.path("policy.toml");
    std::fs::write(&file, POLICY.replace("max_run = \"10m\"", "max_run = \u{201c}10m\u{201d}")).unwrap();
    assert_eq!(daemon.run(&["reload"]).status.code(), Some(1));
    let health = daemon.run_text(&["health"]);
    assert!(
        health.starts_with("● shepherdd ") && health.contains(" is ready, with the old rules, up"),
        "{health}"
    );
    let health = health.split_whitespace().collect::<Vec<_>>().join(" ");
    let check = format!("`shepherd policy check {}` shows how to fix it", file.display());
    assert!(health.contains(&check), "{health}");
    assert_eq!(daemon.json(&["health"])["health"]["rejected_policy"]["path"], file.to_str().unwrap());
    assert!(daemon.run_text(&["doctor"]).contains("the old rules apply (5 entries)"));
    let line = 1 + POLICY.lines().position(|line| line == "max_run = \"10m\"").unwrap();
    let place = format!(
        "the old rules apply (5 entries): {} has 4 mistakes, the first in line {line} ",
        file.display()
    );
    assert!(health.contains(&place), "{health}");
    let unasked = format!(
        "  ! The old rules are in force: {} has 4 mistakes, the first in line {line}. `shepherd health` shows what helps.\n",
        file.display()
    );
    let status = daemon.run_text(&["status"]);
    assert!(status.ends_with(&unasked), "{status}");
    assert!(daemon.run_text(&["policy", "restore"]).contains("The policy is in force: 5 entries."));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), POLICY);
    assert!(!daemon.run_text(&["health"]).contains("old rules"));
    assert!(!daemon.run_text(&["status"]).contains("old rules"));
}

#[test]
fn restoring_the_rules_keeps_a_valid_file_unless_it_is_told_otherwise() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let file = daemon.path("policy.toml");
    let edited = POLICY.replace("max_run = \"10m\"", "max_run = \"20m\"");
    std::fs::write(&file, &edited).unwrap();
    let kept = daemon.run(&["policy", "restore"]);
    assert_eq!(kept.status.code(), Some(1));
    let sentence = "was not replaced: it has no mistake, but rules that are not in force yet\nhelp: `sudo shepherd reload`";
    assert!(text(&kept.stderr).contains(sentence), "{}", text(&kept.stderr));
    let line = format!("{} policy restore --socket {}", program().display(), daemon.socket().display());
    for (answer, code) in [("Enter", 1), ("y", 0)] {
        let terminal = TmuxTerminal::run(80, 12, &line);
        terminal.wait_for_text("[y/N]");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), edited);
        terminal.press(answer);
        terminal.press("Enter");
        terminal.wait_for_text(&format!("EXIT {code}"));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), POLICY);
    std::fs::write(&file, &edited).unwrap();
    daemon.run_text(&["policy", "restore", "--yes"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), POLICY);
    // A missing file has no rules to lose.
    std::fs::remove_file(&file).unwrap();
    daemon.run_text(&["policy", "restore"]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn grants_and_requests_are_created_listed_and_answered() {
    // S2.7.
    let daemon = CliTestDaemon::start(Some(POLICY));
    let given =
        daemon.run_text(&["grant", "30m", "--entry", "racing", "--for", "anna", "--why", "tidied up"]);
    assert!(given.contains("Racing for Anna: 30 minutes more"), "{given}");
    let opened = daemon.json(&["grant", "--open-until", "23:59", "--entry", "racing"]);
    assert_eq!(opened["grant"]["gift"]["type"], "open_until");
    let listed = daemon.run_text(&["grants"]);
    assert!(listed.contains("tidied up") && listed.lines().count() == 3, "{listed}");
    let id = opened["grant"]["grant_id"].as_str().unwrap();
    assert!(daemon.run_text(&["revoke", &id[..14]]).contains("Revoked grant-"));
    assert_eq!(daemon.run(&["revoke", "grant-0000nosuch"]).status.code(), Some(1));

    assert!(daemon.run_text(&["requests"]).contains("There are no requests."));
    let requested = daemon.json(&["request", "racing", "15m", "--note", "nearly done"]);
    let id = requested["request"]["request_id"].as_str().unwrap().trim_start_matches("request-").to_owned();
    assert!(daemon.run_text(&["requests"]).contains("nearly done"));
    let decided = daemon.json(&["decide", &id[..12], "yes", "--minutes", "10"]);
    assert_eq!(decided["grant"]["gift"]["amount"], 600_000);
    let again = daemon.run(&["decide", &id, "no"]);
    assert_eq!(again.status.code(), Some(1));
    let note = format!("a{}", "b".repeat(300));
    assert_eq!(daemon.run(&["request", "racing", "15m", "--note", &note]).status.code(), Some(2));
}

#[test]
fn the_rest_of_the_day_and_the_grants_that_help_are_shown() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let listed = daemon.run_text(&["list"]);
    assert!(listed.contains("up to 10 minutes, 1 hour left today"), "{listed}");
    daemon.run_text(&["grant", "30m", "--entry", "racing", "--for", "anna"]);
    let listed = daemon.run_text(&["list"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(listed.contains("1 hour 30 minutes left today (+30 minutes from "), "{listed}");
    daemon.run_text(&["launch", "racing"]);
    wait_until("the session runs", || daemon.json(&["status"])["snapshot"]["session"]["phase"] == "running");
    let status = daemon.run_text(&["status"]);
    assert!(status.contains(" left today (+30 minutes from "), "{status}");
    assert!(daemon.json(&["status"])["snapshot"]["session"]["ran"].is_u64());
}

#[test]
fn mode_clock_and_policy_can_be_changed() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    assert!(daemon.run_text(&["mode", "holiday"]).contains("The mode is holiday."));
    assert_eq!(daemon.json(&["mode"])["mode"], "holiday");
    daemon.run_text(&["mode", "auto"]);
    assert_eq!(daemon.run(&["mode", "nosuch"]).status.code(), Some(1));
    assert!(daemon.run_text(&["clock", "confirm"]).contains("The clock is confirmed: it is "));
    assert!(daemon.run_text(&["reload"]).contains("5 entries"));
    assert!(daemon.run_text(&["policy", "show"]).contains("Racing (racing)"));
    let file = daemon.path("new.toml");
    std::fs::write(&file, POLICY.replace("max_run = \"10m\"", "max_run = \"20m\"")).unwrap();
    assert!(daemon.run_text(&["policy", "set", file.to_str().unwrap()]).contains("5 entries"));
    assert!(daemon.run_text(&["list"]).contains("up to 20 minutes"));
    std::fs::write(&file, "config_version = 2\n").unwrap();
    let refused = daemon.run(&["policy", "set", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stdout).contains(":1:"), "{}", text(&refused.stdout));
    assert!(daemon.run_text(&["list"]).contains("up to 20 minutes"), "the old policy stays");
}

/// A parent who only reloads the rules learns the same as one who checks them.
#[test]
fn a_policy_that_is_put_into_force_comes_with_the_warnings_of_the_check() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let (in_force, other) = (daemon.path("policy.toml"), daemon.path("other.toml"));
    for file in [&in_force, &other] {
        std::fs::write(file, POLICY.replace("max_run = \"10m\"", "max_run = 20")).unwrap();
    }
    let checked = daemon.run(&["policy", "check", in_force.to_str().unwrap()]);
    let warnings = text(&checked.stderr);
    assert!(warnings.contains(": `max_run` is only 20 seconds, because "), "{warnings}");
    for command in [&["reload"][..], &["policy", "set", other.to_str().unwrap()]] {
        let applied = daemon.run(command);
        assert_eq!(text(&applied.stdout), "✓ The policy is in force: 5 entries.\n");
        assert_eq!(text(&applied.stderr), warnings, "{command:?}");
    }
}

#[test]
fn health_metrics_usage_and_doctor() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    assert!(daemon.run_text(&["health"]).contains("is ready"));
    assert_eq!(daemon.json(&["health"])["health"]["ready"], true);
    // S6.2: the containment that the daemon itself reports.
    let containment = ward_process::probe().strongest();
    assert_eq!(daemon.json(&["health"])["health"]["containment"], containment.code());
    assert_eq!(daemon.json(&["doctor"])["daemon"]["health"]["containment"], containment.code());
    let contained = format!("a {containment} keeps each program and everything it starts together");
    assert!(daemon.run_text(&["health"]).contains(&contained));
    assert!(daemon.run_text(&["doctor"]).contains(&contained));
    assert!(daemon.run_text(&["metrics"]).contains("# TYPE "));
    assert!(daemon.run_text(&["doctor"]).contains("you are an administrator"));
    assert_eq!(daemon.json(&["doctor"])["daemon"]["role"], "admin");
    assert!(daemon.run_text(&["usage"]).contains("No time was used today."));
    daemon.run_text(&["launch", "blink", "--wait"]);
    assert!(daemon.run_text(&["usage"]).contains("Blink"));
    assert!(daemon.run_text(&["usage", "--week", "--profile", "anna"]).contains("Anna: Blink"));
}

#[test]
fn usage_of_today_is_that_of_the_policys_day() {
    // The two zones are 26 hours apart, so their dates always differ.
    let policy =
        POLICY.replacen("config_version = 1", "config_version = 1\ntimezone = \"Pacific/Kiritimati\"", 1);
    let daemon = CliTestDaemon::start(Some(&policy));
    daemon.run_text(&["launch", "blink", "--wait"]);
    let usage = |arguments: &[&str]| {
        let mut command = command(&[&["usage"], arguments].concat());
        let output = command.env("TZ", "Etc/GMT+12").arg("--socket").arg(daemon.socket()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(usage(&[]).contains("Blink"), "{}", usage(&[]));
    assert!(usage(&["--week"]).contains("Anna: Blink"), "{}", usage(&["--week"]));
    let shown: Value = serde_json::from_str(&usage(&["--output", "json"])).unwrap();
    assert_eq!(shown["usage"][0]["day"], shown["today"]);
}

#[test]
fn the_log_is_listed_followed_exported_and_verified() {
    // S8.3.
    let daemon = CliTestDaemon::start(Some(POLICY));
    let mut follow = command(&["audit", "list", "--follow", "--last", "1", "--socket"]);
    let mut follow = follow.arg(daemon.socket()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    assert_eq!(daemon.run(&["launch", "off"]).status.code(), Some(1));
    let denied = lines.find(|line| line.as_ref().unwrap().contains("denied: disabled"));
    assert!(denied.is_some());
    follow.kill().unwrap();
    follow.wait().unwrap();

    let listed = daemon.run_text(&["audit", "list", "--last", "1"]);
    assert!(listed.contains("launch of off for anna denied: disabled"), "{listed}");
    let all = daemon.json(&["audit", "list", "--last", "1000"]);
    let numbers: Vec<u64> =
        all.as_array().unwrap().iter().map(|record| record["sequence"].as_u64().unwrap()).collect();
    let counted: Vec<u64> = (numbers[0]..).take(numbers.len()).collect();
    assert_eq!(numbers, counted);
    assert_eq!(daemon.run_text(&["audit", "export"]).lines().count(), numbers.len());
    assert_eq!(daemon.run_text(&["audit", "export", "--format", "csv"]).lines().count(), numbers.len() + 1);
    let log = daemon.path("data/audit.log");
    assert!(daemon.run_text(&["audit", "verify", log.to_str().unwrap()]).contains("every link is intact"));
    // Without a path, the log of the running daemon is verified.
    let verified = daemon.run(&["audit", "verify"]);
    assert!(text(&verified.stdout).contains("every link is intact"), "{}", text(&verified.stderr));
    assert!(text(&verified.stderr).contains(log.to_str().unwrap()));
}

#[test]
fn a_policy_too_long_to_send_is_refused_with_help() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let long = daemon.path("long.toml");
    std::fs::write(&long, format!("{POLICY}\n{}", "# a remark\n".repeat(30_000))).unwrap();
    let output = daemon.run(&["policy", "set", long.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stderr);
    assert!(shown.contains("long.toml is longer than the 262144 bytes"), "{shown}");
    assert!(shown.contains("help: copy it over the daemon's policy file"), "{shown}");
    // The advice works.
    std::fs::copy(&long, daemon.path("policy.toml")).unwrap();
    daemon.run_text(&["reload"]);
}

#[test]
fn following_the_log_ends_when_its_output_is_closed() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let mut follow = command(&["audit", "list", "--follow", "--last", "1", "--socket"]);
    let mut follow = follow.arg(daemon.socket()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    wait_until("the command notices the closed output", || {
        daemon.run(&["launch", "off"]);
        follow.try_wait().unwrap().is_some()
    });
    assert!(follow.wait().unwrap().success());
}

#[test]
fn up_writes_a_missing_policy_and_never_overwrites_one() {
    let mut daemon = CliTestDaemon::start(None);
    let file = daemon.path("policy.toml");
    assert!(daemon.run_text(&["list"]).contains("twenty-seconds"));
    daemon.stop();
    std::fs::write(&file, POLICY).unwrap();
    daemon.restart();
    assert!(daemon.run_text(&["list"]).contains("racing"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), POLICY);
}

#[test]
fn without_a_daemon_the_error_names_the_socket_and_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nobody");
    let output = crate::support::run_at(&socket, &["status"]);
    assert_eq!(output.status.code(), Some(3));
    let shown = text(&output.stderr);
    let place = format!("error: could not reach the daemon: no daemon listens at {}\n", socket.display());
    assert!(shown.starts_with(&place), "{shown}");
    assert!(shown.contains("help: `sudo systemctl start shepherdd` starts the service"), "{shown}");
}
