//! Changes that the daemon could not report to the notifier, because there was no connection.

use super::desktop::wait_for_subscribers;
use super::relay::DaemonRelay;
use super::*;

#[test]
fn the_notifier_connects_again_after_the_daemon_was_killed() {
    let mut daemon = ShepherddFixture::running(POLICY);
    let (desktop, relay) = (TestDesktop::start(), DaemonRelay::to(daemon.socket()));
    desktop.show_for_child_through(&daemon, relay.socket(), "anna");
    launch_with_warning(&daemon, &desktop);
    relay.hold();
    daemon.kill();
    daemon.start();
    relay.resume();
    wait_for_subscribers(&daemon, 1);
    give_ten_minutes_of_maths(&daemon);
    assert_eq!(desktop.next_shown().title, "More time for Maths");
    daemon.stop(StopMode::Force).unwrap();
}

#[test]
fn a_warning_disappears_if_its_session_has_ended_meanwhile() {
    let daemon = ShepherddFixture::running(POLICY);
    let (desktop, relay) = (TestDesktop::start(), DaemonRelay::to(daemon.socket()));
    desktop.show_for_child_through(&daemon, relay.socket(), "anna");
    let warned = launch_with_warning(&daemon, &desktop);
    relay.hold();
    daemon.stop(StopMode::Force).unwrap();
    daemon.wait_until_idle();
    relay.resume();
    assert_eq!(desktop.next_closed(), warned.id);
}

#[test]
fn a_child_learns_an_answer_that_was_given_meanwhile() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time_of(&daemon, "puzzle", "ben", "me too");
    let (desktop, relay) = (TestDesktop::start(), DaemonRelay::to(daemon.socket()));
    desktop.show_for_child_through(&daemon, relay.socket(), "anna");
    ask_for_time(&daemon, "anna", "please");
    assert_eq!(desktop.next_shown().title, "Asked");
    relay.hold();
    deny_requests(&daemon);
    relay.resume();
    let answer = desktop.next_shown();
    assert_eq!(texts(&answer), ("Not this time", "No more time for Racing."));
}

#[test]
fn a_child_learns_an_answer_that_could_not_be_shown_at_first() {
    let daemon = ShepherddFixture::running(POLICY);
    let (mut desktop, relay) = (TestDesktop::start(), DaemonRelay::to(daemon.socket()));
    desktop.show_for_child_through(&daemon, relay.socket(), "anna");
    ask_for_time(&daemon, "anna", "please");
    assert_eq!(desktop.next_shown().title, "Asked");
    relay.hold();
    deny_requests(&daemon);
    desktop.end_service();
    relay.resume();
    // The notifier asks for the label of the entry right before it shows the answer.
    wait_until("the answer is to be shown", || {
        metric(&daemon, "commands_total{command=\"list_entries\"}") == 2
    });
    desktop.start_service();
    assert_eq!(desktop.next_shown().title, "Not this time");
}

#[test]
fn a_parent_sees_a_request_that_a_busy_daemon_did_not_list_at_first() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "please");
    let (desktop, relay) = (TestDesktop::start(), DaemonRelay::to(daemon.socket()));
    relay.lose("list_requests");
    desktop.show_for_parent_through(&daemon, relay.socket());
    assert_eq!(desktop.next_shown().title, "Anna asks for 15 minutes");
}

#[test]
fn a_parent_sees_which_requests_still_wait() {
    let daemon = ShepherddFixture::running(POLICY);
    let (desktop, relay) = (TestDesktop::start(), DaemonRelay::to(daemon.socket()));
    desktop.show_for_parent_through(&daemon, relay.socket());
    ask_for_time(&daemon, "anna", "please");
    let answered = desktop.next_shown();
    relay.hold();
    deny_requests(&daemon);
    ask_for_time(&daemon, "ben", "me too");
    relay.resume();
    assert_eq!(desktop.next(), DesktopEvent::Closed(answered.id));
    let waiting = desktop.next_shown();
    assert_eq!(waiting.title, "Ben asks for 15 minutes");
    relay.hold();
    ask_for_time_of(&daemon, "puzzle", "anna", "please");
    relay.resume();
    assert_eq!(desktop.next_shown().title, "Anna asks for 15 minutes", "Ben's is still on the screen");
    desktop.press(&waiting, "No");
    assert_eq!(desktop.next_closed(), waiting.id);
}
