//! The daemon with a real Sway that it starts itself: a program fills the screen and ends on time (S6.7, S13.5), and so
//! do the programs that Sway starts for it (S13.6).

use std::time::{Duration, Instant};

use shepherd_api::{EndReason, StopMode};

use crate::harness::compositor::{SwayFixture, fullscreen_window, ipc_socket};
use crate::harness::{ShepherddFixture, assert_stays, processes_with, wait_until};

/// Returns a policy with one entry that runs for six seconds.
fn policy(screen: &SwayFixture, argv: &str) -> String {
    let home = screen.home();
    let home = home.display();
    screen.policy(&format!(
        r#"
id = "terminal"
argv = {argv}
env = {{ HOME = "{home}", XDG_RUNTIME_DIR = "{home}" }}
max_run = "6s"
"#
    ))
}

#[test]
fn a_program_fills_the_screen_until_its_time_is_over() {
    let screen = SwayFixture::new();
    let home = screen.home();
    let argv = format!(r#"["foot", "sh", "-c", "while :; do sleep 1; done", "{}"]"#, home.display());
    let mut fixture = ShepherddFixture::new(&policy(&screen, &argv)).with_variable("SHEPHERD_LOG", "debug");
    fixture.start();
    wait_until("the daemon starts Sway", || !screen.screenshot().is_empty());
    let empty = screen.screenshot();
    let mut listener = fixture.subscriber();
    let session = fixture.launch("terminal");
    wait_until("the window is noticed", || fixture.log().contains("the first window is shown"));
    let lacks_windows = |sentence: &String| sentence.starts_with("Windows are");
    assert!(!fixture.health().limitations.iter().any(lacks_windows));
    let socket = ipc_socket(&fixture);
    wait_until("the window fills the screen", || fullscreen_window(&socket).is_some());
    wait_until("the window is on the screen", || screen.screenshot() != empty);
    let home = home.to_str().unwrap();
    assert_eq!(processes_with(home).len(), 2, "a terminal and its shell");
    let end = listener.wait_for_end(&session.session_id);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(processes_with(home), [0; 0]);
    assert!(fullscreen_window(&socket).is_none());
    fixture.end();
    assert!(!socket.exists() && screen.screenshot().is_empty(), "Sway ends with the daemon");
}

/// S9.1: the session and its Sway go on without a daemon, and the next daemon reattaches both. The session keeps its end.
#[test]
fn a_session_and_its_window_survive_a_kill_of_the_daemon() {
    let screen = SwayFixture::new();
    let home = screen.home();
    let argv = format!(r#"["foot", "sh", "-c", "while :; do sleep 1; done", "{}"]"#, home.display());
    let policy = policy(&screen, &argv).replace("max_run = \"6s\"", "max_run = \"12s\"");
    let mut fixture = ShepherddFixture::new(&policy).with_variable("SHEPHERD_LOG", "debug");
    fixture.start();
    wait_until("the daemon starts Sway", || !screen.screenshot().is_empty());
    let launched = Instant::now();
    let session = fixture.launch("terminal");
    wait_until("the window is noticed", || fixture.log().contains("the first window is shown"));
    let socket = ipc_socket(&fixture);
    wait_until("the window fills the screen", || fullscreen_window(&socket).is_some());
    let window = fullscreen_window(&socket);
    let players = processes_with(home.to_str().unwrap());
    fixture.kill();
    assert_stays("the window stays without a daemon", Duration::from_millis(500), || {
        fullscreen_window(&socket) == window
    });
    fixture.start();
    let mut listener = fixture.subscriber();
    assert_eq!(fixture.state().session.map(|session| session.session_id), Some(session.session_id.clone()));
    let lacks_windows = |sentence: &String| sentence.starts_with("Windows are");
    wait_until("the window is seen again", || {
        fixture.log().matches("the first window is shown").count() == 2
    });
    assert!(!fixture.health().limitations.iter().any(lacks_windows));
    assert_eq!((fullscreen_window(&socket), processes_with(home.to_str().unwrap())), (window, players));
    assert_eq!(listener.wait_for_end(&session.session_id), EndReason::Expired);
    assert!(launched.elapsed() >= Duration::from_secs(12), "never early");
    assert_eq!(processes_with(home.to_str().unwrap()), [0; 0]);
    // The processes from before the session are not known, so Sway is replaced.
    wait_until("there is a screen again", || !screen.screenshot().is_empty() && !socket.exists());
    // Without a session, the next daemon reattaches Sway too.
    let sways = || processes_with(screen.configuration().to_str().unwrap());
    let before = sways();
    fixture.kill();
    fixture.start();
    fixture.launch("terminal");
    wait_until("the window is noticed", || fixture.log().matches("the first window is shown").count() == 3);
    assert_eq!(sways(), before);
    fixture.stop(StopMode::Force).unwrap();
    wait_until("the session is over", || fixture.state().session.is_none());
    fixture.end();
    assert_eq!(sways(), [0; 0], "without a session Sway ends with the daemon");
}

/// A program that Sway starts (`swaymsg exec`) is in no session's tree. The bar was there before the session.
pub(crate) fn a_program_that_sway_was_made_to_start_ends_with_the_session() {
    let screen = SwayFixture::new();
    let (bar, note) = (screen.home().join("bar"), screen.home().join("socket"));
    std::fs::write(&bar, "").unwrap();
    screen.configure(&format!("exec exec tail -f {}\n", bar.display()));
    let script = format!("swaymsg -s $(cat {}) exec 'exec sleep TOKEN'; exec sleep 600", note.display());
    let mut fixture = ShepherddFixture::new(&policy(&screen, &format!(r#"["sh", "-c", "{script}"]"#)));
    fixture.start();
    wait_until("the daemon starts Sway", || !screen.screenshot().is_empty());
    let bars = || processes_with(bar.to_str().unwrap());
    wait_until("Sway starts its bar", || bars().len() == 1);
    let resident = bars();
    std::fs::write(&note, ipc_socket(&fixture).to_str().unwrap()).unwrap();
    let mut listener = fixture.subscriber();
    let session = fixture.launch("terminal");
    let game = fixture.fill_token("sleep\0TOKEN");
    wait_until("Sway starts the game", || !processes_with(&game).is_empty());
    let end = listener.wait_for_end(&session.session_id);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(fixture.program_pids(), [0; 0]);
    assert_eq!(bars(), resident);
    fixture.end();
}
