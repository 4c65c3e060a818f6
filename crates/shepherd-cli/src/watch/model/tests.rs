use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use shepherd_api::{
    AdminPin, EndReason, EntryScope, GrantView, Millis, SessionView, StopMode, TimeRequestDecision,
    TimeRequestState, WarningSeverity,
};
use shepherd_util::{GrantId, RequestId, SessionId};

use super::*;
use jiff::tz::TimeZone;

pub(in crate::watch) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_794_823_200 + second).unwrap()
}

pub(in crate::watch) fn entry(id: &str, label: &str) -> EntryView {
    EntryView {
        entry_id: id.parse().unwrap(),
        label: label.to_owned(),
        icon_ref: None,
        kind: "process".to_owned(),
        enabled: true,
        reasons: Vec::new(),
        max_run_if_started_now: Some(Millis(20_000)),
        next_available: None,
        left_today: None,
        grants: Vec::new(),
    }
}

pub(in crate::watch) fn session(remaining: Option<u64>, phase: SessionPhase) -> SessionView {
    SessionView {
        session_id: SessionId::from_random(1),
        entry_id: "racing".parse().unwrap(),
        label: "Racing".to_owned(),
        profile: "anna".parse().unwrap(),
        slot: Default::default(),
        counting: Default::default(),
        phase,
        warned: None,
        started_at: at(0),
        remaining: remaining.map(Millis),
        hours_end: None,
        ran: None,
    }
}

pub(in crate::watch) fn state(session: Option<SessionView>) -> Box<ClientState> {
    Box::new(ClientState::new(DaemonStateSnapshot {
        api_version: 1,
        at: at(0),
        session,
        sessions: Vec::new(),
        entry_count: 2,
        mode: "school".to_owned(),
        clock_trusted: true,
        profiles: Vec::new(),
        language: None,
    }))
}

/// Returns a connected view with two entries.
pub(in crate::watch) fn connected(session: Option<SessionView>) -> LiveViewModel {
    let display = DisplaySettings::new(at(0), TimeZone::UTC, 80);
    let mut model = LiveViewModel::new(display, None, DaemonLifetime::Independent, Vec::new());
    assert!(matches!(
        model.handle_input(LiveViewInput::Resynced { state: state(session), missed: 0 }),
        LiveViewAction::Send(_)
    ));
    let entries = vec![entry("racing", "Racing"), entry("maths", "数学の練習")];
    assert!(matches!(
        model.handle_input(LiveViewInput::ReplyReceived(LiveViewReply::Entries(entries))),
        LiveViewAction::Nothing
    ));
    model
}

fn press(model: &mut LiveViewModel, code: KeyCode) -> LiveViewAction {
    model.handle_input(LiveViewInput::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn sent_requests(step: LiveViewAction) -> Vec<LiveViewRequest> {
    match step {
        LiveViewAction::Send(requests) => requests,
        LiveViewAction::Nothing | LiveViewAction::Redraw | LiveViewAction::Exit(_) => Vec::new(),
    }
}

#[test]
fn keys_choose_launch_and_stop_entries() {
    let mut model = connected(None);
    assert_eq!(
        sent_requests(press(&mut model, KeyCode::Enter)),
        [LiveViewRequest::Launch("racing".parse().unwrap())]
    );
    for _ in 0..5 {
        press(&mut model, KeyCode::Down);
    }
    assert_eq!(
        sent_requests(press(&mut model, KeyCode::Enter)),
        [LiveViewRequest::Launch("maths".parse().unwrap())]
    );
    assert_eq!(
        sent_requests(press(&mut model, KeyCode::Char('w'))),
        [LiveViewRequest::Why("maths".parse().unwrap())]
    );
    for _ in 0..5 {
        press(&mut model, KeyCode::Char('k'));
    }
    assert_eq!(model.selected, 0);
    assert_eq!(
        sent_requests(press(&mut model, KeyCode::Char('s'))),
        [LiveViewRequest::Stop(StopMode::Graceful, None)]
    );
    assert_eq!(
        sent_requests(press(&mut model, KeyCode::Char('S'))),
        [LiveViewRequest::Stop(StopMode::Force, None)]
    );
    assert!(matches!(press(&mut model, KeyCode::Char('q')), LiveViewAction::Exit(LiveViewExit::Quit)));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(matches!(
        model.handle_input(LiveViewInput::Key(control_c)),
        LiveViewAction::Exit(LiveViewExit::Quit)
    ));
}

#[test]
fn only_digits_are_accepted_in_a_request_for_time() {
    let mut model = connected(None);
    press(&mut model, KeyCode::Char('r'));
    press(&mut model, KeyCode::Backspace);
    press(&mut model, KeyCode::Backspace);
    assert_eq!(sent_requests(press(&mut model, KeyCode::Enter)), [], "an empty request is not sent");
    for digit in "x2q".chars().take(2) {
        press(&mut model, KeyCode::Char(digit));
    }
    press(&mut model, KeyCode::Char('0'));
    let sent = sent_requests(press(&mut model, KeyCode::Enter));
    assert_eq!(sent, [LiveViewRequest::RequestTime { entry_id: "racing".parse().unwrap(), minutes: 20 }]);
    assert!(model.popup.is_none());
    press(&mut model, KeyCode::Char('r'));
    press(&mut model, KeyCode::Esc);
    assert!(model.popup.is_none());
}

#[test]
fn without_entries_keys_do_nothing() {
    let display = DisplaySettings::new(at(0), TimeZone::UTC, 80);
    let mut model = LiveViewModel::new(display, None, DaemonLifetime::Independent, Vec::new());
    for code in
        [KeyCode::Down, KeyCode::Up, KeyCode::End, KeyCode::Enter, KeyCode::Char('w'), KeyCode::Char('r')]
    {
        assert_eq!(sent_requests(press(&mut model, code)), []);
    }
}

#[test]
fn many_events_lead_to_few_requests() {
    let mut model = connected(None);
    let entries_changed = |model: &mut LiveViewModel| {
        let event = Box::new(Event { at: at(1), kind: EventKind::EntriesChanged {} });
        sent_requests(model.handle_input(LiveViewInput::EventReceived {
            state: state(None),
            event,
            refresh: RequiredRefresh::Entries,
        }))
    };
    assert_eq!(entries_changed(&mut model), [LiveViewRequest::Entries]);
    for _ in 0..100 {
        assert_eq!(entries_changed(&mut model), []);
    }
    let reply = || LiveViewInput::ReplyReceived(LiveViewReply::Entries(Vec::new()));
    assert_eq!(
        sent_requests(model.handle_input(reply())),
        [LiveViewRequest::Entries],
        "one more request for all events since"
    );
    assert_eq!(sent_requests(model.handle_input(reply())), []);
    assert_eq!(entries_changed(&mut model), [LiveViewRequest::Entries]);
}

#[test]
fn the_loop_wakes_once_a_second_only_while_a_countdown_is_shown() {
    let tick = |session, now| connected(session).next_tick(now);
    assert_eq!(tick(None, at(0)), None);
    assert_eq!(tick(Some(session(Some(5_000), SessionPhase::Expiring)), at(0)), None);
    let half = Some(session(Some(5_500), SessionPhase::Running));
    assert_eq!(tick(half.clone(), at(0)), Some(Duration::from_millis(500)));
    assert_eq!(tick(half.clone(), at(1)), Some(Duration::from_millis(500)));
    assert_eq!(tick(half.clone(), at(9)), Some(ENTRIES_REFRESH_INTERVAL), "the countdown stays at zero");
    let mut lost = connected(half);
    assert_eq!(
        sent_requests(lost.handle_input(LiveViewInput::Disconnected { why: "gone".to_owned() })),
        [LiveViewRequest::Disconnect]
    );
    assert_eq!(lost.next_tick(at(0)), None, "no countdown without a connection");
}

#[test]
fn entries_are_fetched_again_every_15_seconds_only_while_a_session_runs() {
    let mut model = connected(Some(session(None, SessionPhase::Running)));
    assert_eq!(model.next_tick(at(0)), Some(Duration::from_secs(15)));
    assert_eq!(model.next_tick(at(10)), Some(Duration::from_secs(5)), "a key or an event delays nothing");
    assert_eq!(sent_requests(model.refresh_if_due(at(10))), []);
    assert_eq!(sent_requests(model.refresh_if_due(at(15))), [LiveViewRequest::Entries]);
    assert_eq!(model.next_tick(at(16)), None, "the reply is pending");
    let reply = LiveViewReply::Entries(vec![entry("racing", "Racing")]);
    model.handle_input(LiveViewInput::ReplyReceived(reply));
    assert_eq!(model.next_tick(at(17)), Some(Duration::from_secs(15)));
    assert_eq!(model.next_tick(at(-3600)), Some(Duration::from_secs(15)), "the clock was set back");
    model.handle_input(LiveViewInput::Resynced { state: state(None), missed: 0 });
    model.handle_input(LiveViewInput::ReplyReceived(LiveViewReply::Entries(Vec::new())));
    assert_eq!(model.next_tick(at(99)), None);
    assert_eq!(sent_requests(model.refresh_if_due(at(999))), []);
}

#[test]
fn a_warning_stays_until_the_session_ends() {
    let mut model = connected(Some(session(Some(5_000), SessionPhase::Warned)));
    let warning = EventKind::WarningIssued {
        session: session(Some(5_000), SessionPhase::Warned),
        threshold_secs: 5,
        severity: WarningSeverity::Critical,
        message: "Save\x1b your game.".to_owned(),
    };
    let event = |kind| LiveViewInput::EventReceived {
        state: state(None),
        event: Box::new(Event { at: at(1), kind }),
        refresh: RequiredRefresh::Nothing,
    };
    model.handle_input(event(warning));
    let shown: Vec<_> = model.warnings.values().cloned().collect();
    assert_eq!(shown, [(TextTone::Bad, "Save\\u{1b} your game.".to_owned())]);
    let ended = EventKind::SessionEnded { session_id: SessionId::from_random(1), end: EndReason::Expired };
    model.handle_input(event(ended));
    assert!(model.warnings.is_empty());
    let lines: Vec<&str> = model.event_lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["Save\\u{1b} your game.", "Racing has ended: time is up"]);
}

#[test]
fn old_event_lines_are_dropped() {
    let mut model = connected(None);
    for number in 0..1_000 {
        model.push_line(at(0), TextTone::Faint, "·", number.to_string());
    }
    assert_eq!(model.event_lines.len(), MAX_EVENT_LINES);
    assert_eq!(model.event_lines.back().unwrap().text, "999");
}

/// S11.3b: a parent and a child may share a login.
#[test]
fn commands_for_administrators_ask_for_the_pin() {
    let mut model = connected(None);
    let request = LiveViewRequest::Stop(StopMode::Graceful, None);
    let refused = || LiveViewReply::PinRequired {
        request: request.clone(),
        message: "This session belongs to another profile.".to_owned(),
    };
    model.handle_input(LiveViewInput::ReplyReceived(refused()));
    for letter in "471xq".chars() {
        press(&mut model, KeyCode::Char(letter));
    }
    for key in [KeyCode::Backspace, KeyCode::Backspace, KeyCode::Char('1')] {
        press(&mut model, key);
    }
    let pin = AdminPin::try_from("4711".to_owned()).unwrap();
    let sent = sent_requests(press(&mut model, KeyCode::Enter));
    assert_eq!(sent, [LiveViewRequest::WithPin { pin, request: Box::new(request.clone()) }]);
    assert!(model.popup.is_none());
    model.handle_input(LiveViewInput::ReplyReceived(refused()));
    assert_eq!(sent_requests(press(&mut model, KeyCode::Enter)), [], "an empty PIN is not sent");
    assert!(matches!(&model.popup, Some(LiveViewPopup::Pin { message, .. }) if message.contains("a PIN is")));
    press(&mut model, KeyCode::Esc);
    assert!(model.popup.is_none());
}

pub(in crate::watch) fn time_request(number: u128, child: &str, note: Option<&str>) -> TimeRequestView {
    TimeRequestView {
        request_id: RequestId::from_random(number),
        profile: child.parse().unwrap(),
        entry_id: "racing".parse().unwrap(),
        amount: Millis(900_000),
        note: note.map(str::to_owned),
        asked_at: at(0),
        lapses_at: at(3_600),
        state: TimeRequestState::Asked,
    }
}

/// Returns a parent's view of two children, one of whom asks for time.
pub(in crate::watch) fn household() -> LiveViewModel {
    let mut model = connected(Some(session(Some(20_000), SessionPhase::Running)));
    let child = |id: &str, label: &str| {
        let profile = ProfileView { profile: id.parse().unwrap(), label: label.to_owned() };
        let reasons = vec![shepherd_api::ReasonCode::SessionActive {
            session_id: SessionId::from_random(1),
            entry_id: "racing".parse().unwrap(),
        }];
        (profile, vec![EntryView { enabled: false, reasons, ..entry("racing", "Racing") }])
    };
    let children = vec![child("anna", "Anna"), child("ben", "Ben")];
    model.handle_input(LiveViewInput::ReplyReceived(LiveViewReply::Household(children)));
    let requests = vec![time_request(1, "ben", Some("nearly\x1b done"))];
    model.handle_input(LiveViewInput::ReplyReceived(LiveViewReply::TimeRequests {
        requests,
        may_answer: true,
    }));
    model
}

#[test]
fn a_parent_acts_for_the_child_of_the_chosen_line() {
    let mut model = household();
    press(&mut model, KeyCode::Down);
    let launch = LiveViewRequest::Launch("racing".parse().unwrap());
    let for_ben = LiveViewRequest::ForProfile { profile: "ben".parse().unwrap(), request: Box::new(launch) };
    assert_eq!(sent_requests(press(&mut model, KeyCode::Enter)), [for_ben]);
}

#[test]
fn a_parent_answers_requests_with_keys() {
    let decide =
        |number, decision| [LiveViewRequest::Decide { request_id: RequestId::from_random(number), decision }];
    let changed = |request: TimeRequestView| LiveViewInput::EventReceived {
        state: state(None),
        event: Box::new(Event { at: at(1), kind: EventKind::RequestChanged { request } }),
        refresh: RequiredRefresh::Nothing,
    };
    let mut model = household();
    model.handle_input(changed(time_request(2, "anna", None)));
    press(&mut model, KeyCode::Char('a'));
    for key in [KeyCode::Backspace, KeyCode::Char('x'), KeyCode::Char('0')] {
        press(&mut model, key);
    }
    let granted = TimeRequestDecision::Grant { minutes: Some(10) };
    assert_eq!(sent_requests(press(&mut model, KeyCode::Char('y'))), decide(1, granted));
    let answered = TimeRequestState::Denied { why: None };
    model.handle_input(changed(TimeRequestView { state: answered, ..time_request(1, "ben", None) }));
    press(&mut model, KeyCode::Char('a'));
    let denied = TimeRequestDecision::Deny { why: None };
    assert_eq!(sent_requests(press(&mut model, KeyCode::Char('n'))), decide(2, denied));
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Esc);
    assert!(model.popup.is_none());
}

#[test]
fn a_child_is_told_who_answers_a_request() {
    let mut model = connected(None);
    let requests = vec![time_request(1, "anna", None)];
    let listed = LiveViewReply::TimeRequests { requests, may_answer: false };
    model.handle_input(LiveViewInput::ReplyReceived(listed));
    press(&mut model, KeyCode::Char('a'));
    assert!(model.popup.is_none());
    assert_eq!(model.notice.unwrap().1, "Your parents answer this.");
}

fn grant_for_anna() -> GrantView {
    GrantView {
        grant_id: GrantId::from_random(1),
        profile: Some("anna".parse().unwrap()),
        scope: EntryScope::Entry { entry_id: "racing".parse().unwrap() },
        gift: GrantKind::Extra { amount: Millis(900_000) },
        by: "uid 1000".to_owned(),
        why: None,
        given_at: at(0),
        valid_from: at(0),
        lapses_at: at(3_600),
        revoked_at: None,
    }
}

/// Returns Racing, which its hours keep closed for two days.
pub(in crate::watch) fn closed_racing() -> EntryView {
    let reasons = vec![shepherd_api::ReasonCode::OutsideHours { next_opening: Some(at(172_800)) }];
    EntryView { enabled: false, reasons, ..entry("racing", "Racing") }
}

// S2.7
#[test]
fn a_granted_request_names_the_command_that_opens_a_closed_entry() {
    let mut model = household();
    let granted = LiveViewReply::Granted {
        entry_id: "racing".parse().unwrap(),
        grant: Box::new(grant_for_anna()),
        entries: vec![closed_racing()],
        sessions: Vec::new(),
    };
    model.handle_input(LiveViewInput::ReplyReceived(granted));
    let in_an_hour = at(3_600).to_zoned(TimeZone::UTC).strftime("%H:%M");
    let opens = at(172_800).to_zoned(TimeZone::UTC).strftime("%a %H:%M");
    let told = format!(
        "The request was granted. It stays closed until {opens}, because of its hours. To open it for an hour: \
         `shepherd grant --open-until {in_an_hour} --entry racing --for anna`"
    );
    assert_eq!(model.notice.unwrap().1, told);
}

// S2.7
#[test]
fn a_child_who_asks_for_a_closed_entry_learns_that_it_stays_closed() {
    let mut model = connected(None);
    let asked =
        || LiveViewInput::ReplyReceived(LiveViewReply::Asked(Box::new(time_request(1, "anna", None))));
    model.handle_input(asked());
    assert_eq!(model.notice.take().unwrap().1, "The request was sent to your parents.");
    model.handle_input(LiveViewInput::ReplyReceived(LiveViewReply::Entries(vec![closed_racing()])));
    model.handle_input(asked());
    let told = model.notice.take().unwrap().1;
    assert!(told.contains("parents. It stays closed until ") && told.ends_with("doesn't open it."), "{told}");
}

// S2.7
#[test]
fn a_granted_request_names_the_command_that_helps_if_the_hours_end_first() {
    let mut model = household();
    let mut notice = |session: Option<SessionView>| {
        let grant = Box::new(grant_for_anna());
        let (entry_id, sessions) = ("racing".parse().unwrap(), session.into_iter().collect());
        let granted = LiveViewReply::Granted { entry_id, grant, entries: Vec::new(), sessions };
        model.handle_input(LiveViewInput::ReplyReceived(granted));
        model.notice.clone().unwrap().1
    };
    let running = session(Some(600_000), SessionPhase::Running);
    let bound = SessionView { hours_end: Some(at(7_200)), ..running.clone() };
    let end = bound.hours_end.unwrap().to_zoned(TimeZone::UTC).strftime("%H:%M").to_string();
    let told = notice(Some(bound.clone()));
    assert_eq!(told, format!("Granted, but its hours end at {end}. To let it go on: `shepherd extend 15m`"));
    assert!(told.len() <= 80, "a narrow terminal shows the command");
    let of_ben = SessionView { profile: "ben".parse().unwrap(), ..bound };
    for other in [None, Some(running), Some(of_ben)] {
        assert_eq!(notice(other), "The request was granted.");
    }
}
