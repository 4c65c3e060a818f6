//! Commands and the live view while several sessions run (S19.1).

use crate::support::terminal::TmuxTerminal;
use crate::support::{CliTestDaemon, entry, policy, program, text, wait_until};

const POLICY: &str = policy!(
    r#"
[profiles.anna]
label = "Anna"

[profiles.ben]
label = "Ben"
"#,
    entry!("racing", "Racing", r#"["sleep", "600"]"#, r#"max_run = "10m""#),
    entry!("film", "Film", r#"["sleep", "600"]"#, r#"max_run = "30m""#),
    entry!("music", "Music", r#"["sleep", "600"]"#, r#"slot = "background""#)
);

/// Starts a daemon with these sessions, each an entry and its child.
fn start(sessions: &[(&str, &str)]) -> CliTestDaemon {
    let daemon = CliTestDaemon::start(Some(POLICY));
    for (entry, child) in sessions {
        daemon.run_text(&["launch", entry, "--profile", child]);
    }
    daemon
}

/// Returns the running sessions as "entry of profile", sorted.
fn running(daemon: &CliTestDaemon) -> Vec<String> {
    let state = daemon.json(&["status"]);
    let sessions = state["snapshot"]["sessions"].as_array().cloned().unwrap_or_default();
    let name = |session: &serde_json::Value| {
        format!("{} of {}", session["entry_id"].as_str().unwrap(), session["profile"].as_str().unwrap())
    };
    let mut names: Vec<String> = sessions.iter().map(name).collect();
    names.sort();
    names
}

/// Runs a command that must fail, and returns what it says.
fn refusal(daemon: &CliTestDaemon, arguments: &[&str]) -> String {
    let output = daemon.run(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

#[test]
fn stop_ends_the_named_session_and_no_other() {
    let daemon = start(&[("racing", "anna"), ("film", "ben"), ("music", "anna")]);
    for command in [&["stop"][..], &["extend", "5m"]] {
        let unclear = refusal(&daemon, command);
        assert!(unclear.contains("Racing of Anna") && unclear.contains("Film of Ben"), "{unclear}");
        assert!(unclear.contains("help: add the program or the child to the command"), "{unclear}");
    }
    assert_eq!(running(&daemon).len(), 3);
    daemon.run_text(&["stop", "Film"]);
    wait_until("the film has ended", || running(&daemon) == ["music of anna", "racing of anna"]);
    assert!(refusal(&daemon, &["stop", "film"]).contains("no such running program `film`"));
    // The foreground comes before the music.
    daemon.run_text(&["stop", "--profile", "anna"]);
    wait_until("the game has ended", || running(&daemon) == ["music of anna"]);
    assert!(refusal(&daemon, &["stop", "--profile", "ben"]).contains("nothing is running for this child"));
    daemon.run_text(&["stop", "music"]);
    wait_until("nothing runs", || running(&daemon).is_empty());
}

#[test]
fn extend_gives_time_to_the_named_session_and_no_other() {
    let daemon = start(&[("racing", "anna"), ("film", "ben")]);
    let lefts = || {
        let state = daemon.json(&["status"]);
        ["racing", "film"].map(|entry| {
            let sessions = state["snapshot"]["sessions"].as_array().unwrap();
            let session = sessions.iter().find(|session| session["entry_id"] == entry).unwrap();
            session["remaining"].as_u64().unwrap() / 60_000
        })
    };
    assert_eq!(lefts(), [9, 29]);
    let shown = daemon.run_text(&["extend", "5m", "film"]);
    assert!(shown.contains("Film now has 34 minutes left."), "{shown}");
    assert_eq!(lefts(), [9, 34]);
    daemon.run_text(&["extend", "10m", "--profile", "anna"]);
    assert_eq!(lefts(), [19, 34]);
}

#[test]
fn an_entry_that_two_children_run_needs_the_child_or_the_session() {
    let daemon = start(&[("racing", "anna"), ("racing", "ben")]);
    for command in [&["stop", "racing"][..], &["extend", "5m", "Racing"]] {
        let unclear = refusal(&daemon, command);
        assert!(unclear.contains("several children run `"), "{unclear}");
        assert!(unclear.contains("help: add `--profile anna` or `--profile ben`"), "{unclear}");
    }
    daemon.run_text(&["extend", "5m", "racing", "--profile", "ben"]);
    daemon.run_text(&["stop", "racing", "--profile", "anna"]);
    wait_until("one of them has ended", || running(&daemon) == ["racing of ben"]);
    // The status shows the first characters of an id if several sessions run.
    daemon.run_text(&["launch", "film", "--profile", "anna"]);
    let status = daemon.run_text(&["status"]);
    let of_ben =
        status.lines().skip_while(|line| !line.contains("Ben")).find(|line| line.contains("session-"));
    daemon.run_text(&["stop", of_ben.unwrap().trim()]);
    wait_until("the other one has ended", || running(&daemon) == ["film of anna"]);
}

#[test]
fn the_live_view_names_the_child_of_each_session_and_stops_only_the_selected_one() {
    let daemon = start(&[("racing", "anna"), ("music", "anna")]);
    let line = format!("{} watch --socket {}", program().display(), daemon.socket().display());
    let terminal = TmuxTerminal::run(100, 30, &line);
    terminal.wait_for_text("▶ Racing · running · Anna");
    terminal.wait_for_text("▶ Music · running, in the background · Anna");
    daemon.run_text(&["launch", "racing", "--profile", "ben"]);
    terminal.wait_for_text("▶ Racing · running · Ben");
    terminal.wait_for_text("▶ Ben: Racing is running, for up to 10 minutes");
    // The first line is Anna's game.
    terminal.press("S");
    terminal.wait_for_text("■ Anna: Racing has ended: ");
    assert_eq!(running(&daemon), ["music of anna", "racing of ben"]);
    // On the line of an entry that doesn't run, the key stops what the same child runs.
    terminal.press("S");
    terminal.wait_for_text("■ Anna: Music has ended: ");
    terminal.press("S");
    terminal.wait_for_text("Nothing is running for Anna.");
    assert_eq!(running(&daemon), ["racing of ben"]);
}
