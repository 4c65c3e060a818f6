//! The live view in a real terminal, with a real daemon.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::terminal::TmuxTerminal;
use crate::support::{CliTestDaemon, program};

const POLICY: &str = r#"
config_version = 1
on_shutdown = "end-sessions"

[[entries]]
id = "racing"
label = "Racing 数学"
argv = ["sleep", "600"]
always = true
max_run = "3m"

[[entries]]
id = "brief"
label = "Brief"
argv = ["sleep", "600"]
always = true
max_run = "4s"
warnings = [{ before = "2s", severity = "critical", message = "Save your game." }]

[[entries]]
id = "off"
label = "Switched off"
argv = ["true"]
always = true
disabled = "broken"
"#;

fn watch(daemon: &CliTestDaemon, width: u16, height: u16) -> TmuxTerminal {
    let line = format!("{} watch --socket {}", program().display(), daemon.socket().display());
    TmuxTerminal::run(width, height, &line)
}

#[test]
fn a_newcomer_launches_an_entry_is_warned_and_sees_it_end() {
    let line = program().into_string().unwrap();
    let terminal = TmuxTerminal::run(90, 26, &line);
    terminal.wait_for_text("Welcome.");
    terminal.wait_for_text("✓ Twenty seconds");
    terminal.press("Enter");
    terminal.wait_for_text("▶ Twenty seconds · running");
    terminal.wait_for_text("0:18");
    terminal.press("w");
    terminal.wait_for_text("─┐");
    terminal.wait_for_text("`twenty-seconds` is running.");
    terminal.press("x");
    terminal.press("S");
    terminal.wait_for_text("Twenty seconds has ended: stopped by an administrator");
    terminal.press("q");
    let screen = terminal.wait_for_text("EXIT 0");
    assert!(screen.contains("nothing that it started is left"), "{screen}");
    assert!(!screen.contains("What happens"), "the terminal is as it was:\n{screen}");
}

#[test]
fn warnings_and_the_end_come_by_themselves() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 80, 24);
    terminal.wait_for_text("Brief");
    terminal.press("j");
    terminal.press("Enter");
    terminal.wait_for_text("! Save your game.");
    terminal.wait_for_text("Brief has ended: time was up");
    terminal.wait_for_text("Nothing is running.");
    terminal.press("j");
    terminal.press("Enter");
    terminal.wait_for_text("Switched off: broken");
    terminal.press("q");
    terminal.wait_for_text("EXIT 0");
}

#[test]
fn it_follows_a_daemon_that_comes_back_and_says_when_there_is_none() {
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
fn it_fits_a_terminal_that_changes_its_size() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 120, 30);
    terminal.wait_for_text("✓ Racing 数学");
    assert!(terminal.screen().contains("What happens"));
    terminal.press("Enter");
    terminal.wait_for_text("▶ Racing 数学 · running");
    terminal.resize(30, 4);
    terminal.wait_until_hidden("What happens");
    terminal.wait_for_text("2:5");
    terminal.resize(8, 2);
    terminal.resize(80, 24);
    terminal.wait_for_text("What happens");
    terminal.press("?");
    terminal.wait_for_text("choose an entry");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let daemon = CliTestDaemon::start(Some(POLICY));
    let terminal = watch(&daemon, 80, 24);
    terminal.wait_for_text("What happens");
    let shell = terminal.shell();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let view = Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap()).unwrap();
    kill_process(view, Signal::TERM).unwrap();
    // 128 and the number of the signal, as of any program that a signal ended.
    let screen = terminal.wait_for_text("EXIT 143");
    assert!(!screen.contains("What happens"), "{screen}");
    terminal.press("echo");
    terminal.press("Space");
    terminal.wait_for_text("echo");
}
