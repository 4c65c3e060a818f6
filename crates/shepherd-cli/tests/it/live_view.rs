//! The live view in a real terminal, with a real daemon.

use rustix::process::{Signal, kill_process};

use crate::support::terminal::TmuxTerminal;
use crate::support::{CliTestDaemon, disabled_entry, entry, policy, program, wait_until};

const POLICY: &str = policy!(
    entry!("racing", "Racing 数学", r#"["sleep", "600"]"#, r#"max_run = "3m""#),
    entry!(
        "brief",
        "Brief",
        r#"["sleep", "600"]"#,
        r#"max_run = "4s"
warnings = [{ before = "2s", severity = "critical", message = "Save your game." }]"#
    ),
    disabled_entry!()
);

fn watch(daemon: &CliTestDaemon, width: u16, height: u16) -> TmuxTerminal {
    let line = format!("{} watch --socket {}", program().display(), daemon.socket().display());
    TmuxTerminal::run(width, height, &line)
}

#[test]
fn the_demonstration_launches_and_stops_an_entry_in_the_live_view() {
    let line = format!("{} demo", program().display());
    let terminal = TmuxTerminal::run(90, 26, &line);
    terminal.wait_for_text("Welcome.");
    terminal.wait_for_text("✓ Twenty seconds");
    terminal.press("?");
    terminal.wait_for_text("Closing this view ends this temporary Shepherd and its programs.");
    terminal.press("x");
    terminal.press("Enter");
    terminal.wait_for_text("▶ Twenty seconds · running");
    terminal.wait_for_text("0:18");
    terminal.press("w");
    terminal.wait_for_text("─┐");
    terminal.wait_for_text("Twenty seconds is running.");
    terminal.press("x");
    terminal.press("S");
    terminal.wait_for_text("Twenty seconds has ended: stopped by a parent");
    terminal.press("q");
    let screen = terminal.wait_for_text("EXIT 0");
    assert!(screen.contains("no program it started is left"), "{screen}");
    assert!(!screen.contains("Events ─"), "the terminal was not restored:\n{screen}");
}

#[test]
fn without_a_command_the_live_view_opens_if_a_daemon_listens() {
    let mut daemon = CliTestDaemon::start(Some(POLICY));
    let line = format!("SHEPHERD_SOCKET={} {}", daemon.socket().display(), program().display());
    let terminal = TmuxTerminal::run(90, 26, &line);
    let screen = terminal.wait_for_text("✓ Racing 数学");
    assert!(!screen.contains("Welcome."), "{screen}");
    terminal.press("q");
    terminal.wait_for_text("EXIT 0");
    daemon.stop();
    let terminal = TmuxTerminal::run(90, 26, &line);
    terminal.wait_for_text("Welcome.");
    terminal.press("q");
    terminal.wait_for_text("EXIT 0");
}

#[test]
fn warnings_and_the_end_of_a_session_are_shown() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 80, 24);
    terminal.wait_for_text("Brief");
    terminal.press("j");
    terminal.press("Enter");
    terminal.wait_for_text("! Save your game.");
    terminal.wait_for_text("Brief has ended: time is up");
    terminal.wait_for_text("Nothing is running.");
    terminal.press("j");
    terminal.press("Enter");
    terminal.wait_for_text("Switched off: broken");
    terminal.press("q");
    terminal.wait_for_text("EXIT 0");
}

#[test]
fn the_view_reconnects_and_shows_a_lost_connection() {
    let mut daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 80, 24);
    terminal.wait_for_text("Racing 数学");
    daemon.stop();
    terminal.wait_for_text("Not connected: ");
    daemon.restart();
    terminal.wait_for_text("connected again");
    terminal.wait_until_hidden("Not connected: ");
    terminal.press("Enter");
    terminal.wait_for_text("▶ Racing 数学 · running");
    assert!(daemon.run_text(&["status"]).contains("running"));
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 120, 30);
    terminal.wait_for_text("✓ Racing 数学");
    assert!(terminal.screen().contains("Events ─"));
    terminal.press("Enter");
    terminal.wait_for_text("▶ Racing 数学 · running");
    terminal.resize(30, 4);
    terminal.wait_until_hidden("Events ─");
    terminal.wait_for_text("2:5");
    terminal.resize(8, 2);
    terminal.resize(80, 24);
    terminal.wait_for_text("Events ─");
    terminal.press("?");
    terminal.wait_for_text("choose an entry");
}

/// A terminal that is made smaller and larger again before the next drawing has lost lines, and its size is the old one.
/// Text of another program spoils the view, too, until Ctrl-L.
#[test]
fn the_view_is_whole_again_after_a_quick_resize_and_after_foreign_text() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 80, 24);
    terminal.wait_for_text("✓ Racing 数学");
    let whole = terminal.wait_for_text("? help  q quit");
    let view = terminal.program();
    // The view can't draw between the two changes of the size.
    kill_process(view, Signal::STOP).unwrap();
    for height in [10, 24] {
        terminal.resize(80, height);
        wait_until("the kernel knows the size", || terminal.kernel_height() == height);
    }
    assert_ne!(terminal.screen(), whole, "tmux has dropped the upper lines");
    kill_process(view, Signal::CONT).unwrap();
    wait_until("the view is whole", || terminal.screen() == whole);
    terminal.write("\x1b[24;1Hthe system goes down for maintenance");
    terminal.wait_for_text("goes down for maintenance");
    terminal.press("C-l");
    wait_until("the text is gone", || terminal.screen() == whole);
}

#[test]
fn a_signal_restores_the_terminal() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 80, 24);
    terminal.wait_for_text("Events ─");
    kill_process(terminal.program(), Signal::TERM).unwrap();
    // 128 plus the number of the signal, as for any program ended by a signal.
    let screen = terminal.wait_for_text("EXIT 143");
    assert!(!screen.contains("Events ─"), "{screen}");
    terminal.press("echo");
    terminal.press("Space");
    terminal.wait_for_text("echo");
}

/// S7.3: a parent is told unasked.
#[test]
fn the_live_view_says_when_the_rules_in_force_are_not_those_of_the_file() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 120, 24);
    terminal.wait_for_text("Racing");
    let file = daemon.path("policy.toml");
    std::fs::write(&file, "config_version = 2\n").unwrap();
    assert_eq!(daemon.run(&["reload"]).status.code(), Some(1));
    terminal.wait_for_text("! The old rules are in force: ");
    std::fs::write(&file, POLICY).unwrap();
    daemon.run_text(&["reload"]);
    terminal.wait_until_hidden("The old rules are in force");
    terminal.press("q");
    terminal.wait_for_text("EXIT 0");
}

const HOUSEHOLD: &str = r#"
config_version = 1
on_shutdown = "end-sessions"

[profiles.anna]
label = "Anna"

[profiles.ben]
label = "Ben"

[[entries]]
id = "racing"
label = "Racing"
argv = ["sleep", "600"]
always = true
daily_quota = "30m"
max_run = "10m"
"#;

#[test]
fn a_parent_sees_all_children_and_answers_their_requests() {
    // S2.7.
    let daemon = CliTestDaemon::start(Some(HOUSEHOLD));
    daemon.run_text(&["request", "racing", "15m", "--note", "nearly done", "--profile", "ben"]);
    let terminal = watch(&daemon, 100, 30);
    terminal.wait_for_text("Anna: Racing");
    terminal.wait_for_text("Ben: Racing");
    terminal.wait_for_text("? Ben asks for 15 minutes of Racing: “nearly done”");
    terminal.press("a");
    terminal.wait_for_text("n to deny");
    terminal.press("y");
    terminal.wait_for_text("The request was granted.");
    terminal.wait_until_hidden("Ben asks for 15 minutes of Racing: “nearly done”");
    terminal.wait_for_text("45 minutes left today (+15 minutes from ");
    daemon.run_text(&["request", "racing", "5m", "--profile", "anna"]);
    terminal.wait_for_text("? Anna asks for 5 minutes of Racing");
    terminal.press("a");
    terminal.wait_for_text("n to deny");
    terminal.press("n");
    terminal.wait_for_text("The request was denied.");
    terminal.press("j");
    terminal.press("Enter");
    terminal.wait_for_text("▶ Racing · running · Ben");
    terminal.wait_for_text("▶ Ben: Racing");
    terminal.press("S");
    terminal.wait_for_text("■ Ben: Racing has ended: ");
}
