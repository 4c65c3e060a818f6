//! The daemon with a real Sway that it starts itself: a program is shown, fills the screen, and ends with its time
//! (S6.7, S13.5), and so does what it has Sway start (S13.6).

use shepherd_api::{EndReason, EventKind, SessionView};

use crate::harness::screen::{Screen, fullscreen_window, ipc_socket};
use crate::harness::{Household, Subscriber, processes_with, until};

/// With one entry that runs for six seconds.
fn policy(screen: &Screen, argv: &str) -> String {
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
    let screen = Screen::new();
    let home = screen.home();
    let argv = format!(r#"["foot", "sh", "-c", "while :; do sleep 1; done", "{}"]"#, home.display());
    let mut household = Household::new(&policy(&screen, &argv)).with_variable("SHEPHERD_LOG", "debug");
    household.start();
    until("the daemon starts Sway", || !screen.picture().is_empty());
    let empty = screen.picture();
    let mut listener = household.subscriber();
    let session = household.launch("terminal");
    until("its window is noticed", || household.log().contains("shows its window"));
    let lacks_windows = |sentence: &String| sentence.starts_with("Windows are");
    assert!(!household.health().limitations.iter().any(lacks_windows));
    let socket = ipc_socket(&household);
    until("it fills the screen", || fullscreen_window(&socket).is_some());
    until("it is seen", || screen.picture() != empty);
    let home = home.to_str().unwrap();
    assert_eq!(processes_with(home).len(), 2, "a terminal and its shell");
    let end = end_of(&mut listener, &session);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(processes_with(home), [0; 0]);
    assert!(fullscreen_window(&socket).is_none());
    household.end();
    assert!(!socket.exists() && screen.picture().is_empty(), "Sway ends with the daemon");
}

/// What a program has Sway start is in no session, and nowhere below one. The bar was there before.
pub(crate) fn a_program_that_sway_was_made_to_start_ends_with_the_session() {
    let screen = Screen::new();
    let (bar, note) = (screen.home().join("bar"), screen.home().join("socket"));
    std::fs::write(&bar, "").unwrap();
    screen.configure(&format!("exec exec tail -f {}\n", bar.display()));
    let script = format!("swaymsg -s $(cat {}) exec 'exec sleep TOKEN'; exec sleep 600", note.display());
    let mut household = Household::new(&policy(&screen, &format!(r#"["sh", "-c", "{script}"]"#)));
    household.start();
    until("the daemon starts Sway", || !screen.picture().is_empty());
    let bars = || processes_with(bar.to_str().unwrap());
    until("Sway starts its bar", || bars().len() == 1);
    let resident = bars();
    std::fs::write(&note, ipc_socket(&household).to_str().unwrap()).unwrap();
    let mut listener = household.subscriber();
    let session = household.launch("terminal");
    let game = household.filled("sleep\0TOKEN");
    until("Sway starts the game", || !processes_with(&game).is_empty());
    let end = end_of(&mut listener, &session);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(household.players(), [0; 0]);
    assert_eq!(bars(), resident);
    household.end();
}

fn end_of(listener: &mut Subscriber, session: &SessionView) -> EndReason {
    listener.wait_for(|event| match event {
        EventKind::SessionEnded { session_id, end } if *session_id == session.session_id => Some(end.clone()),
        _ => None,
    })
}
