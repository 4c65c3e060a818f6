//! Notification services that start, end and start again.

use super::*;

#[test]
fn a_request_is_shown_again_by_a_restarted_notification_service() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "please");
    let mut desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let before = desktop.next_shown();
    desktop.restart_service();
    let after = desktop.next_shown();
    assert_eq!(texts(&after), texts(&before));
    desktop.press(&after, "Yes, 15 minutes");
    wait_until("the request is answered", || {
        matches!(request_states(&daemon).as_slice(), [TimeRequestState::Granted { .. }])
    });
}

/// Many desktops start the notification service for the first notification only.
#[test]
fn the_buttons_of_the_notification_that_starts_the_service_work() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "please");
    let mut desktop = TestDesktop::with_activation();
    desktop.show_for_parent(&daemon);
    desktop.start_activated_service();
    let asked = desktop.next_shown();
    // An event that comes later, so that the start of the service has been handled.
    ask_for_time_of(&daemon, "puzzle", "ben", "me too");
    assert_eq!(desktop.next_shown().title, "Ben asks for 15 minutes", "the first request is shown once");
    desktop.press(&asked, "No");
    assert_eq!(desktop.next_closed(), asked.id);
    let states = request_states(&daemon);
    assert!(states.contains(&TimeRequestState::Denied { why: None }), "{states:?}");
}

#[test]
fn the_buttons_work_after_an_idle_service_has_ended() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "please");
    let mut desktop = TestDesktop::with_activation();
    desktop.show_for_parent(&daemon);
    desktop.start_activated_service();
    assert_eq!(desktop.next_shown().title, "Anna asks for 15 minutes");
    desktop.end_service();
    ask_for_time(&daemon, "ben", "me too");
    desktop.start_activated_service();
    // The new service counts its notifications from the start, like the old one.
    let shown = [desktop.next_shown(), desktop.next_shown()];
    let of_ben = shown.iter().find(|shown| shown.title == "Ben asks for 15 minutes").unwrap();
    desktop.press(of_ben, "No");
    assert_eq!(desktop.next_closed(), of_ben.id);
    let of_anna = shown.iter().find(|shown| shown.title == "Anna asks for 15 minutes").unwrap();
    desktop.press(of_anna, "No");
    assert_eq!(desktop.next_closed(), of_anna.id);
}
