//! The daemon with a real Sway that it starts itself: a program is shown, fills the screen, and ends with its time
//! (S6.7, S13.5), and so does what it has Sway start (S13.6).

use std::time::{Duration, Instant};

use shepherd_api::{EndReason, EventKind, SessionView, StopMode};

use crate::harness::compositor::{SwayFixture, fullscreen_window, ipc_socket};
use crate::harness::{EventSubscriber, ShepherddFixture, processes_with, wait_until};

/// With one entry that runs for six seconds.
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
    let mut household = ShepherddFixture::new(&policy(&screen, &argv)).with_variable("SHEPHERD_LOG", "debug");
    household.start();
    wait_until("the daemon starts Sway", || !screen.screenshot().is_empty());
    let empty = screen.screenshot();
    let mut listener = household.subscriber();
    let session = household.launch("terminal");
    wait_until("its window is noticed", || household.log().contains("the first window is shown"));
    let lacks_windows = |sentence: &String| sentence.starts_with("Windows are");
    assert!(!household.health().limitations.iter().any(lacks_windows));
    let socket = ipc_socket(&household);
    wait_until("it fills the screen", || fullscreen_window(&socket).is_some());
    wait_until("it is seen", || screen.screenshot() != empty);
    let home = home.to_str().unwrap();
    assert_eq!(processes_with(home).len(), 2, "a terminal and its shell");
    let end = end_of(&mut listener, &session);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(processes_with(home), [0; 0]);
    assert!(fullscreen_window(&socket).is_none());
    household.end();
    assert!(!socket.exists() && screen.screenshot().is_empty(), "Sway ends with the daemon");
}

/// S9.1: whatever becomes of the daemon, the session goes on with its window, and so does the Sway that shows it; the
/// next daemon takes both back, and the end is where it was.
#[test]
fn a_session_goes_on_with_its_window_when_the_daemon_is_killed() {
    let screen = SwayFixture::new();
    let home = screen.home();
    let argv = format!(r#"["foot", "sh", "-c", "while :; do sleep 1; done", "{}"]"#, home.display());
    let policy = policy(&screen, &argv).replace("max_run = \"6s\"", "max_run = \"12s\"");
    let mut household = ShepherddFixture::new(&policy).with_variable("SHEPHERD_LOG", "debug");
    household.start();
    wait_until("the daemon starts Sway", || !screen.screenshot().is_empty());
    let launched = Instant::now();
    let session = household.launch("terminal");
    wait_until("its window is noticed", || household.log().contains("the first window is shown"));
    let socket = ipc_socket(&household);
    wait_until("it fills the screen", || fullscreen_window(&socket).is_some());
    let window = fullscreen_window(&socket);
    let players = processes_with(home.to_str().unwrap());
    household.kill();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(fullscreen_window(&socket), window, "nobody has ended it");
    household.start();
    let mut listener = household.subscriber();
    assert_eq!(household.state().session.map(|session| session.session_id), Some(session.session_id.clone()));
    let lacks_windows = |sentence: &String| sentence.starts_with("Windows are");
    wait_until("the window is seen again", || {
        household.log().matches("the first window is shown").count() == 2
    });
    assert!(!household.health().limitations.iter().any(lacks_windows));
    assert_eq!((fullscreen_window(&socket), processes_with(home.to_str().unwrap())), (window, players));
    assert_eq!(end_of(&mut listener, &session), EndReason::Expired);
    assert!(launched.elapsed() >= Duration::from_secs(12), "never early");
    assert_eq!(processes_with(home.to_str().unwrap()), [0; 0]);
    // Nobody knows who was there before the session, so that Sway is started afresh.
    wait_until("there is a screen again", || !screen.screenshot().is_empty() && !socket.exists());
    // Where there is no session, the next daemon takes it back as well, and starts no other.
    let sways = || processes_with(screen.configuration().to_str().unwrap());
    let before = sways();
    household.kill();
    household.start();
    household.launch("terminal");
    wait_until("its window is noticed", || household.log().matches("the first window is shown").count() == 3);
    assert_eq!(sways(), before);
    household.stop(StopMode::Force).unwrap();
    wait_until("it is over", || household.state().session.is_none());
    household.end();
    assert_eq!(sways(), [0; 0], "without a session Sway ends with the daemon");
}

/// What a program has Sway start is in no session, and nowhere below one. The bar was there before.
pub(crate) fn a_program_that_sway_was_made_to_start_ends_with_the_session() {
    let screen = SwayFixture::new();
    let (bar, note) = (screen.home().join("bar"), screen.home().join("socket"));
    std::fs::write(&bar, "").unwrap();
    screen.configure(&format!("exec exec tail -f {}\n", bar.display()));
    let script = format!("swaymsg -s $(cat {}) exec 'exec sleep TOKEN'; exec sleep 600", note.display());
    let mut household = ShepherddFixture::new(&policy(&screen, &format!(r#"["sh", "-c", "{script}"]"#)));
    household.start();
    wait_until("the daemon starts Sway", || !screen.screenshot().is_empty());
    let bars = || processes_with(bar.to_str().unwrap());
    wait_until("Sway starts its bar", || bars().len() == 1);
    let resident = bars();
    std::fs::write(&note, ipc_socket(&household).to_str().unwrap()).unwrap();
    let mut listener = household.subscriber();
    let session = household.launch("terminal");
    let game = household.fill_token("sleep\0TOKEN");
    wait_until("Sway starts the game", || !processes_with(&game).is_empty());
    let end = end_of(&mut listener, &session);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(household.program_pids(), [0; 0]);
    assert_eq!(bars(), resident);
    household.end();
}

fn end_of(listener: &mut EventSubscriber, session: &SessionView) -> EndReason {
    listener.wait_for(|event| match event {
        EventKind::SessionEnded { session_id, end } if *session_id == session.session_id => Some(end.clone()),
        _ => None,
    })
}
