//! The notifier with a real daemon and a real message bus. Only the desktop's notification service is a double: it keeps
//! what it is asked to show, and presses buttons.

pub(crate) mod desktop;
mod missed_events;
mod relay;
mod service_starts;
mod tray;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::channel;
use std::time::Duration;

use shepherd_api::{
    ApiError, Command, CommandReply, EntryScope, ErrorCode, GrantKind, Millis, ServerMessage, StopMode,
    TimeRequestDecision, TimeRequestState, TimeRequestView,
};
use shepherd_notify::NotifierError;

use crate::harness::{PATIENCE, ShepherddFixture, policy, sleep_entry, wait_until};
use desktop::{DesktopEvent, ShownNotification, TestDesktop, metric};

/// The warnings come at once, and long before the end.
const POLICY: &str = policy!(
    "[profiles.anna]\nlabel = \"Anna\"\n[profiles.ben]\nlabel = \"Ben\"\n",
    sleep_entry!(
        "maths",
        "label = \"Maths\"\nmax_run = \"5m\"\nstop_grace = \"0s\"\nwarnings = [{ before = \"299s\", severity = \"critical\" }]"
    ),
    sleep_entry!("racing", "label = \"Racing\"\nmax_run = \"30m\""),
    sleep_entry!("puzzle", "label = \"Puzzle\"\nmax_run = \"30m\"")
);

/// The tests run between 12:00 and 13:00, so the hours end before the longest run.
const HOURS_END_FIRST: &str = policy!(
    "[profiles.anna]\nlabel = \"Anna\"\n",
    "[[entries]]\nid = \"racing\"\nlabel = \"Racing\"\nargv = [\"sleep\", \"TOKEN\"]\nmax_run = \"4h\"\n",
    "windows = [{ from = \"11:00\", to = \"14:00\" }]\n"
);

fn texts(shown: &ShownNotification) -> (&str, &str) {
    (&shown.title, &shown.body)
}

fn launch_for(daemon: &ShepherddFixture, entry: &str, profile: &str) {
    let (entry_id, profile) = (entry.parse().unwrap(), Some(profile.parse().unwrap()));
    let launched = daemon.call(Command::Launch { entry_id, profile, display: None });
    assert!(matches!(launched, Ok(CommandReply::Launched { .. })), "{launched:?}");
}

/// Launches maths for Anna, and returns the warning on her desktop.
fn launch_with_warning(daemon: &ShepherddFixture, desktop: &TestDesktop) -> ShownNotification {
    launch_for(daemon, "maths", "anna");
    let warned = desktop.next_shown();
    assert_eq!(warned.title, "Maths");
    warned
}

fn ask_for_time(daemon: &ShepherddFixture, profile: &str, note: &str) {
    ask_for_time_of(daemon, "racing", profile, note);
}

fn ask_for_time_of(daemon: &ShepherddFixture, entry: &str, profile: &str, note: &str) {
    let asked = daemon.call(Command::RequestTime {
        entry_id: entry.parse().unwrap(),
        minutes: 15,
        note: Some(note.to_owned().try_into().unwrap()),
        profile: Some(profile.parse().unwrap()),
    });
    assert!(matches!(asked, Ok(CommandReply::Request { .. })), "{asked:?}");
}

fn requests(daemon: &ShepherddFixture) -> Vec<TimeRequestView> {
    match daemon.call(Command::ListRequests {}) {
        Ok(CommandReply::Requests { requests }) => requests,
        other => panic!("{other:?}"),
    }
}

fn request_states(daemon: &ShepherddFixture) -> Vec<TimeRequestState> {
    requests(daemon).into_iter().map(|request| request.state).collect()
}

/// Denies all open requests, as another parent.
fn deny_requests(daemon: &ShepherddFixture) {
    for request in requests(daemon).into_iter().filter(|request| request.state.is_open()) {
        let decision = TimeRequestDecision::Deny { why: None };
        daemon.call(Command::DecideRequest { request_id: request.request_id, decision }).unwrap();
    }
}

fn wait_for_denial(daemon: &ShepherddFixture) {
    wait_until("the request is denied", || {
        request_states(daemon) == [TimeRequestState::Denied { why: None }]
    });
}

fn give_ten_minutes_of_maths(daemon: &ShepherddFixture) {
    let grant = Command::Grant {
        profile: Some("anna".parse().unwrap()),
        scope: EntryScope::Entry { entry_id: "maths".parse().unwrap() },
        gift: GrantKind::Extra { amount: Millis::from(Duration::from_secs(600)) },
        valid_from: None,
        lapses_at: None,
        why: None,
    };
    daemon.call(grant).unwrap();
}

// S19.3
#[test]
fn a_child_sees_the_warning_the_closing_and_the_end() {
    let short = POLICY.replace("5m", "8s").replace("299s", "7s");
    let daemon = ShepherddFixture::running(&short);
    let desktop = TestDesktop::start();
    desktop.show_for_child(&daemon, "anna");
    let warned = launch_with_warning(&daemon, &desktop);
    assert!(warned.body.starts_with("Maths ends in "), "{}", warned.body);
    assert_eq!(
        (warned.urgency, warned.buttons.as_slice()),
        (2, ["Ask for 10 more minutes".to_owned()].as_slice())
    );
    let closing = desktop.next_shown();
    assert_eq!(texts(&closing), ("Maths is closing", "The time is up. Save now."));
    let ended = desktop.next_shown();
    assert_eq!(texts(&ended), ("Maths has ended", "The time is up."));
    assert_eq!((closing.id, ended.id), (warned.id, warned.id), "each replaces the one before");
}

// S19.3
#[test]
fn a_german_family_reads_german() {
    let german = POLICY.replace("[profiles.anna]", "language = \"de\"\n[profiles.anna]");
    let daemon = ShepherddFixture::running(&german);
    let (anna, mum) = (TestDesktop::start(), TestDesktop::start());
    anna.show_for_child(&daemon, "anna");
    mum.show_for_parent(&daemon);
    let warned = launch_with_warning(&daemon, &anna);
    assert_eq!(warned.body, "Noch 4 Minuten 59 Sekunden Maths.");
    assert_eq!(warned.buttons, ["Um 10 Minuten mehr bitten"]);
    anna.press(&warned, "Um 10 Minuten mehr bitten");
    assert_eq!(texts(&anna.next_shown()), ("Gefragt", "Du hast um 10 Minuten Maths gebeten."));
    let asked = mum.next_shown();
    assert_eq!(
        (asked.title.as_str(), asked.buttons.as_slice()),
        ("Anna bittet um 10 Minuten", ["Ja, 10 Minuten".to_owned(), "Nein".to_owned()].as_slice())
    );
    // The language of new rules counts at once.
    daemon.write_policy(POLICY);
    daemon.call(Command::ReloadConfig {}).unwrap();
    daemon.stop(StopMode::Graceful).unwrap();
    assert_eq!(anna.next_shown().title, "Maths is closing");
}

// S19.3
#[test]
fn the_button_of_a_warning_asks_the_parents_for_time() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    desktop.show_for_child(&daemon, "anna");
    let warned = launch_with_warning(&daemon, &desktop);
    desktop.press(&warned, "Ask for 10 more minutes");
    let asked = desktop.next_shown();
    assert_eq!(texts(&asked), ("Asked", "You asked for 10 minutes of Maths."));
    assert_eq!(request_states(&daemon), [TimeRequestState::Asked]);
    desktop.press(&warned, "Ask for 10 more minutes");
    give_ten_minutes_of_maths(&daemon);
    let more = desktop.next_shown();
    assert_eq!(more.title, "More time for Maths", "a button works once");
    assert_eq!(more.id, warned.id, "it replaces the warning, which may still be on the screen");
    // Presses are handled in their order. If the second one came after the grant, it was one of the new button.
    desktop.press(&more, "Ask for 10 more minutes");
    assert_eq!(desktop.next_shown().title, "Asked");
    assert_eq!(request_states(&daemon).len(), 2, "each of the two buttons works once");
    daemon.stop(StopMode::Force).unwrap();
}

#[test]
fn a_child_sees_nothing_of_another_child() {
    let daemon = ShepherddFixture::running(POLICY);
    let (anna, ben) = (TestDesktop::start(), TestDesktop::start());
    anna.show_for_child(&daemon, "anna");
    ben.show_for_child(&daemon, "ben");
    launch_for(&daemon, "maths", "ben");
    assert_eq!(ben.next_shown().title, "Maths");
    daemon.stop(StopMode::Graceful).unwrap();
    assert_eq!(ben.next_shown().title, "Maths is closing");
    assert_eq!(ben.next_shown().title, "Maths has ended");
    // Events come in their order, so the others came before this one.
    ask_for_time(&daemon, "anna", "please");
    assert_eq!(anna.next_shown().title, "Asked");
}

// S2.7, S19.3
#[test]
fn a_parent_answers_a_request_with_a_button() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "<b>please</b>");
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let asked = desktop.next_shown();
    assert_eq!(texts(&asked), ("Anna asks for 15 minutes", "Racing\n“&lt;b&gt;please&lt;/b&gt;”"));
    assert_eq!(asked.buttons, ["Yes, 15 minutes", "No"]);
    desktop.press(&asked, "No");
    wait_for_denial(&daemon);
}

#[test]
fn a_request_keeps_its_buttons_if_the_answer_is_refused() {
    let strict = POLICY.replace("[profiles.anna]", "[grants]\nextra_per_day = \"10m\"\n[profiles.anna]");
    let daemon = ShepherddFixture::running(&strict);
    ask_for_time(&daemon, "anna", "please");
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let asked = desktop.next_shown();
    desktop.press(&asked, "Yes, 15 minutes");
    let refused = desktop.next_shown();
    assert_eq!((refused.id, &refused.title, &refused.buttons), (asked.id, &asked.title, &asked.buttons));
    let (reason, request) = refused.body.split_once('\n').unwrap();
    assert!(reason.starts_with("Could not do this: Yes, 15 minutes. "), "{reason}");
    assert_eq!(request, asked.body);
    desktop.press(&refused, "No");
    wait_for_denial(&daemon);
}

// S2.7, S19.3
#[test]
fn parent_and_child_learn_that_the_hours_end_before_the_granted_time_is_used() {
    let daemon = ShepherddFixture::running(HOURS_END_FIRST);
    let (mum, anna) = (TestDesktop::start(), TestDesktop::start());
    mum.show_for_parent(&daemon);
    anna.show_for_child(&daemon, "anna");
    launch_for(&daemon, "racing", "anna");
    ask_for_time(&daemon, "anna", "please");
    assert_eq!(anna.next_shown().title, "Asked");
    mum.press(&mum.next_shown(), "Yes, 15 minutes");
    let granted = anna.next_shown();
    assert!(granted.body.starts_with("You get more time for Racing. But it still ends in "), "{granted:?}");
    let told = next_shown_after_closing(&mum);
    assert!(told.title.starts_with("Racing still ends in "), "{told:?}");
    mum.press(&told, "Let it go on for 15 minutes");
    assert_eq!(anna.next_shown().title, "More time for Racing");
    daemon.stop(StopMode::Force).unwrap();
}

// S2.7, S19.3
#[test]
fn a_parent_learns_that_a_granted_entry_stays_closed_and_opens_it() {
    let daemon = ShepherddFixture::running(&HOURS_END_FIRST.replace("11:00", "13:30"));
    let mum = TestDesktop::start();
    mum.show_for_parent(&daemon);
    ask_for_time(&daemon, "anna", "please");
    mum.press(&mum.next_shown(), "Yes, 15 minutes");
    let told = next_shown_after_closing(&mum);
    assert_eq!(told.title, "Racing stays closed");
    assert!(told.body.starts_with("It is closed until ") && told.body.contains("its hours"), "{told:?}");
    mum.press(&told, &told.buttons[0]);
    wait_until("the entry is open", || {
        let list = Command::ListEntries { at_time: None, profile: Some("anna".parse().unwrap()) };
        let Ok(CommandReply::Entries { entries, .. }) = daemon.call(list) else { panic!("another reply") };
        entries[0].enabled
    });
}

/// Returns the next notification. The answered request disappears from the desktop before or after it.
fn next_shown_after_closing(desktop: &TestDesktop) -> ShownNotification {
    let shown = std::iter::repeat_with(|| desktop.next()).find_map(|event| match event {
        DesktopEvent::Shown(shown) => Some(shown),
        DesktopEvent::Closed(_) => None,
    });
    shown.unwrap()
}

#[test]
fn a_request_that_another_parent_answers_disappears() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "ben", "please");
    let (mum, dad) = (TestDesktop::start(), TestDesktop::start());
    mum.show_for_parent(&daemon);
    dad.show_for_parent(&daemon);
    let (asked_mum, asked_dad) = (mum.next_shown(), dad.next_shown());
    mum.press(&asked_mum, "Yes, 15 minutes");
    assert_eq!(dad.next_closed(), asked_dad.id);
}

/// Listings are limited, and the parent's own commands share the limit.
#[test]
fn waiting_requests_cost_one_listing_for_each_child() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "ben", "answered");
    deny_requests(&daemon);
    for entry in ["racing", "puzzle"] {
        ask_for_time_of(&daemon, entry, "anna", "please");
    }
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let labels = [desktop.next_shown().body, desktop.next_shown().body];
    assert_eq!(labels, ["Racing\n“please”", "Puzzle\n“please”"]);
    assert_eq!(metric(&daemon, "commands_total{command=\"list_entries\"}"), 1);
}

#[test]
fn a_login_has_one_notifier() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let second = desktop.runtime.block_on(shepherd_notify::run(desktop.options(daemon.socket())));
    assert!(matches!(second, Err(NotifierError::AlreadyRunning)), "{second:?}");
}

#[test]
fn a_button_of_another_programs_notification_answers_nothing() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "please");
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let asked = desktop.next_shown();
    desktop.press_key(asked.id, "0");
    desktop.press_key(asked.id, "default");
    desktop.press_key(asked.id + 1, &asked.keys[0]);
    desktop.press(&asked, "No");
    wait_for_denial(&daemon);
}

/// A notifier that waits before its next connection must not outlive the login.
#[test]
fn the_notifier_of_a_refused_account_ends_with_the_login() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let daemon = UnixListener::bind(&socket).unwrap();
    let mut desktop = TestDesktop::start();
    let running = desktop.run(desktop.options(socket));
    let (mut client, _) = daemon.accept().unwrap();
    BufReader::new(&client).read_line(&mut String::new()).unwrap();
    let refusal =
        ServerMessage::Closing { error: ApiError::new(ErrorCode::NotPermitted, "Permission denied.") };
    client.write_all(format!("{}\n", serde_json::to_string(&refusal).unwrap()).as_bytes()).unwrap();
    // The notifier has read the refusal when it closes the connection.
    let _ = BufReader::new(&client).read_line(&mut String::new());
    desktop.end_bus();
    let (ended, end) = channel();
    desktop.runtime.spawn(async move { ended.send(running.await.unwrap()) });
    end.recv_timeout(PATIENCE).expect("the notifier still runs").unwrap();
}
