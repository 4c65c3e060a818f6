use super::*;

use jiff::tz::TimeZone;
use shepherd_api::{EntryView, Language, ReasonCode, StopRequester};
use shepherd_util::GrantId;

const NOON: Timestamp = Timestamp::constant(1_790_000_000, 0);

fn session(remaining_seconds: Option<u64>) -> SessionView {
    SessionView {
        session_id: SessionId::from_random(1),
        entry_id: "tuxmath".parse().unwrap(),
        label: "Maths".to_owned(),
        profile: "anna".parse().unwrap(),
        slot: Default::default(),
        counting: Default::default(),
        phase: SessionPhase::Running,
        started_at: NOON,
        remaining: remaining_seconds.map(|seconds| Millis(seconds * 1000)),
        hours_end: None,
        ran: None,
        warned: None,
    }
}

fn english() -> &'static SentenceCatalogue {
    SentenceCatalogue::of(Language::English)
}

fn noon() -> MessageTime {
    MessageTime { at: NOON, awake: Instant::now() }
}

/// Returns a later time, before which the machine was awake and slept for so many seconds.
fn later(than: MessageTime, awake: u64, asleep: u64) -> MessageTime {
    let at = than.at.checked_add(Duration::from_secs(awake + asleep)).unwrap();
    MessageTime { at, awake: than.awake + Duration::from_secs(awake) }
}

fn at_noon() -> Zoned {
    NOON.to_zoned(TimeZone::UTC)
}

fn maths(reasons: Vec<ReasonCode>) -> EntryView {
    EntryView {
        entry_id: "tuxmath".parse().unwrap(),
        label: "Maths".to_owned(),
        icon_ref: None,
        kind: "process".to_owned(),
        enabled: reasons.is_empty(),
        reasons,
        max_run_if_started_now: None,
        next_available: None,
        left_today: None,
        grants: Vec::new(),
    }
}

/// Returns the entry of the request, as these entries are listed.
fn listed(entries: &[EntryView]) -> Option<ListedEntry<'_>> {
    ListedEntry::find(entries, &"tuxmath".parse().unwrap())
}

/// Returns what a parent learns who has granted ten minutes of the listed entry.
fn announce_closed(entries: &[EntryView]) -> Option<Announcement> {
    let granted = request(TimeRequestState::Granted { grant_id: GrantId::from_random(1) });
    for_granted_closed_entry(english(), &granted, Millis(600_000), listed(entries)?, &at_noon())
}

fn known(remaining_seconds: Option<u64>) -> KnownSession {
    KnownSession::new(&session(remaining_seconds), noon())
}

fn request(state: TimeRequestState) -> TimeRequestView {
    TimeRequestView {
        request_id: RequestId::from_random(1),
        profile: "anna".parse().unwrap(),
        entry_id: "tuxmath".parse().unwrap(),
        amount: Millis(600_000),
        note: Some("one more level".to_owned()),
        asked_at: NOON,
        lapses_at: NOON,
        state,
    }
}

fn warning(severity: WarningSeverity) -> EventKind {
    let message = "Maths ends in 5 minutes.".to_owned();
    EventKind::WarningIssued { session: session(Some(300)), threshold_secs: 300, severity, message }
}

// S19.3
#[test]
fn a_warning_shows_its_message_and_a_button_that_asks_for_time() {
    let announced = for_session(english(), &warning(WarningSeverity::Warn), noon(), None).unwrap();
    assert_eq!((announced.title.as_str(), announced.body.as_str()), ("Maths", "Maths ends in 5 minutes."));
    let [button] = announced.buttons.as_slice() else { panic!("{:?}", announced.buttons) };
    assert_eq!(button.label, "Ask for 10 more minutes");
    assert_eq!(
        button.command,
        Command::RequestTime {
            entry_id: "tuxmath".parse().unwrap(),
            minutes: 10,
            note: None,
            profile: Some("anna".parse().unwrap()),
        }
    );
}

#[test]
fn the_severity_of_a_warning_decides_whether_it_covers_a_game() {
    let urgency = |severity| for_session(english(), &warning(severity), noon(), None).unwrap().urgency;
    assert_eq!(urgency(WarningSeverity::Info), AnnouncementUrgency::Passing);
    assert_eq!(urgency(WarningSeverity::Warn), AnnouncementUrgency::Important);
    assert_eq!(urgency(WarningSeverity::Critical), AnnouncementUrgency::Lasting);
}

#[test]
fn an_end_that_moves_is_announced_with_the_direction() {
    let check = |before: Option<u64>, after: Option<u64>, expected: Option<(&str, &str)>| {
        assert_eq!(
            announced_change(before, after, 0, 0),
            expected.map(owned_texts),
            "{before:?} to {after:?}"
        );
    };
    check(Some(300), Some(900), Some(("More time for Maths", "Maths ends in 15 minutes.")));
    check(Some(900), Some(300), Some(("Less time for Maths", "Maths ends in 5 minutes.")));
    check(Some(300), Some(302), None);
    check(Some(300), None, Some(("More time for Maths", "Maths has no time limit now.")));
    check(None, Some(300), Some(("Less time for Maths", "Maths ends in 5 minutes.")));
    check(None, None, None);
}

#[test]
fn a_sleep_of_the_machine_is_no_change_of_the_end() {
    let check = |remaining: u64, asleep: u64, expected: Option<&str>| {
        // Half an hour remained, and the machine was awake for five minutes.
        let title = announced_change(Some(1800), Some(remaining), 300, asleep).map(|(title, _)| title);
        assert_eq!(title.as_deref(), expected, "{remaining} s after {asleep} s of sleep");
    };
    check(1500, 0, None);
    check(1500, 3600, None);
    // The hours of the entry end in spite of the sleep.
    check(600, 900, None);
    check(1800, 3600, Some("More time for Maths"));
    check(300, 900, Some("Less time for Maths"));
    // The end was moved by less than the time that has passed.
    check(1560, 0, Some("More time for Maths"));
    check(1440, 0, Some("Less time for Maths"));
}

/// Returns title and body of the announcement of a new remaining time, after the machine was awake and slept.
fn announced_change(
    before: Option<u64>,
    after: Option<u64>,
    awake: u64,
    asleep: u64,
) -> Option<(String, String)> {
    let start = noon();
    let known = KnownSession::new(&session(before), start);
    let kind = EventKind::DeadlineChanged { session: session(after) };
    let announced = for_session(english(), &kind, later(start, awake, asleep), Some(&known))?;
    Some((announced.title, announced.body))
}

fn owned_texts((title, body): (&str, &str)) -> (String, String) {
    (title.to_owned(), body.to_owned())
}

#[test]
fn a_session_that_is_being_ended_can_be_saved_but_offers_no_more_time() {
    let closing = SessionView { phase: SessionPhase::Expiring, ..session(Some(0)) };
    let kind = EventKind::SessionExpired { session: closing, end: EndReason::Expired };
    let announced = for_session(english(), &kind, noon(), None).unwrap();
    assert_eq!(announced.title, "Maths is closing");
    assert_eq!(announced.body, "The time is up. Save now.");
    assert_eq!(announced.urgency, AnnouncementUrgency::Lasting);
    assert_eq!(announced.buttons, []);
}

#[test]
fn an_end_is_explained_unless_the_child_caused_it() {
    let body = |end| for_end(english(), &known(None), &end).map(|announced| announced.body);
    assert_eq!(body(EndReason::Expired).as_deref(), Some("The time is up."));
    let by_parent = EndReason::Stopped { by: StopRequester::Admin };
    assert_eq!(body(by_parent).as_deref(), Some("A parent has stopped it."));
    assert_eq!(body(EndReason::Exited { code: Some(0), signal: None }), None);
    assert_eq!(body(EndReason::Stopped { by: StopRequester::User }), None);
}

#[test]
fn a_child_learns_the_answer_to_a_request() {
    let body = |state| {
        for_own_request(english(), &request(state), listed(&[maths(Vec::new())]), None, &at_noon())
            .map(|announced| announced.body)
    };
    assert_eq!(body(TimeRequestState::Asked).as_deref(), Some("You asked for 10 minutes of Maths."));
    let granted = TimeRequestState::Granted { grant_id: GrantId::from_random(1) };
    assert_eq!(body(granted).as_deref(), Some("You get more time for Maths."));
    let denied = TimeRequestState::Denied { why: Some("Dinner is ready".to_owned()) };
    assert_eq!(body(denied).as_deref(), Some("No more time for Maths. “Dinner is ready”"));
    assert_eq!(body(TimeRequestState::Seen), None);
}

#[test]
fn a_parent_sees_a_request_with_its_note_until_it_is_answered() {
    let announced =
        for_request_of_child(english(), &request(TimeRequestState::Asked), "Anna", "Maths").unwrap();
    assert_eq!(announced.title, "Anna asks for 10 minutes");
    assert_eq!(announced.body, "Maths\n“one more level”");
    let labels: Vec<_> = announced.buttons.iter().map(|button| button.label.as_str()).collect();
    assert_eq!(labels, ["Yes, 10 minutes", "No"]);
    let denied = TimeRequestState::Denied { why: None };
    assert_eq!(for_request_of_child(english(), &request(denied), "Anna", "Maths"), None);
}

/// A session whose hours end in two minutes.
fn session_in_last_hours() -> SessionView {
    let end = NOON.checked_add(Duration::from_secs(120)).unwrap();
    SessionView { hours_end: Some(end), ..session(Some(120)) }
}

// S2.7
#[test]
fn a_child_learns_that_the_hours_end_before_the_granted_time_is_used() {
    let granted = request(TimeRequestState::Granted { grant_id: GrantId::from_random(1) });
    let body = |request: &TimeRequestView, session: SessionView| {
        let session = KnownSession::new(&session, noon());
        for_own_request(english(), request, listed(&[maths(Vec::new())]), Some(&session), &at_noon())
            .map(|announced| announced.body)
    };
    assert_eq!(
        body(&granted, session_in_last_hours()).as_deref(),
        Some("You get more time for Maths. But it still ends in 2 minutes, because its hours end then.")
    );
    assert_eq!(body(&granted, session(Some(120))).as_deref(), Some("You get more time for Maths."));
    let other = TimeRequestView { entry_id: "racing".parse().unwrap(), ..granted };
    assert_eq!(body(&other, session_in_last_hours()).as_deref(), Some("You get more time for Maths."));
}

// S2.7
#[test]
fn a_child_learns_that_a_yes_opens_no_hours() {
    let granted = request(TimeRequestState::Granted { grant_id: GrantId::from_random(1) });
    let body = |days: Option<i64>, session: Option<&KnownSession>| {
        let next_opening = days.map(|days| NOON + jiff::SignedDuration::from_hours(24 * days));
        let closed = maths(vec![ReasonCode::OutsideHours { next_opening }]);
        for_own_request(english(), &granted, listed(&[closed]), session, &at_noon())
            .map(|announced| announced.body)
    };
    let but = |closed: &str| {
        Some(format!("You get more time for Maths. But it stays {closed}, because of its hours."))
    };
    let time = at_noon().strftime("%H:%M");
    assert_eq!(body(None, None), but("closed"));
    assert_eq!(body(Some(0), None), but(&format!("closed until {time}")));
    assert_eq!(body(Some(1), None), but(&format!("closed until tomorrow {time}")));
    assert_eq!(body(Some(3), None), but(&format!("closed until Thu {time}")));
    let open = known(Some(120));
    assert_eq!(
        body(Some(1), Some(&open)).as_deref(),
        Some("You get more time for Maths."),
        "a parent has opened it"
    );
}

// S2.7
#[test]
fn a_parent_learns_that_the_entry_of_a_granted_request_stays_closed() {
    let tomorrow = Some(NOON + jiff::SignedDuration::from_hours(24));
    let closed = maths(vec![ReasonCode::OutsideHours { next_opening: tomorrow }]);
    let announced = announce_closed(&[closed]).unwrap();
    assert_eq!(announced.title, "Maths stays closed");
    let opens = at_noon().strftime("%H:%M");
    assert_eq!(
        announced.body,
        format!("It is closed until tomorrow {opens}, because of its hours. Extra time doesn't open it.")
    );
    let until = NOON.checked_add(Duration::from_secs(600)).unwrap();
    let [button] = announced.buttons.as_slice() else { panic!("{:?}", announced.buttons) };
    let time = until.to_zoned(at_noon().time_zone().clone()).strftime("%H:%M").to_string();
    assert_eq!(button.label, format!("Open it until {time}"));
    let Command::Grant { profile, scope, gift, .. } = &button.command else { panic!("{:?}", button.command) };
    assert_eq!(*profile, Some("anna".parse().unwrap()));
    assert_eq!(*scope, EntryScope::Entry { entry_id: "tuxmath".parse().unwrap() });
    assert_eq!(*gift, GrantKind::OpenUntil { until });
    assert_eq!(announce_closed(&[maths(Vec::new())]), None);
}

// S2.7
#[test]
fn both_learn_that_a_yes_unlocks_no_entry() {
    let locked = ReasonCode::NotUnlocked {
        entry_id: "typing".parse().unwrap(),
        done: Millis(0),
        needed: Millis(600_000),
    };
    let typing =
        EntryView { entry_id: "typing".parse().unwrap(), label: "Typing".to_owned(), ..maths(Vec::new()) };
    let entries = [typing, maths(vec![locked.clone()])];
    let granted = request(TimeRequestState::Granted { grant_id: GrantId::from_random(1) });
    let told_child = for_own_request(english(), &granted, listed(&entries), None, &at_noon()).unwrap();
    assert_eq!(
        told_child.body,
        "You get more time for Maths. But it stays closed until 10 minutes of Typing are done."
    );
    let told_parent = announce_closed(&entries).unwrap();
    assert_eq!(told_parent.title, "Maths stays closed");
    assert_eq!(
        told_parent.body,
        "It is closed until 10 minutes of Typing are done. Extra time doesn't open it."
    );
    assert_eq!(told_parent.buttons, []);
    let closed = maths(vec![ReasonCode::OutsideHours { next_opening: None }, locked]);
    let told_parent = announce_closed(&[closed]).unwrap();
    assert_eq!(
        told_parent.body,
        "It is closed, because of its hours, and until 10 minutes of typing are done. Extra time doesn't open it."
    );
    assert_eq!(told_parent.buttons, [], "longer hours don't help either");
}

// S2.7
#[test]
fn a_parent_learns_that_the_hours_end_before_the_granted_time_is_used() {
    let granted = request(TimeRequestState::Granted { grant_id: GrantId::from_random(1) });
    let announced =
        for_granted_request(english(), &granted, Millis(600_000), &session_in_last_hours()).unwrap();
    assert_eq!(announced.title, "Maths still ends in 2 minutes");
    assert_eq!(announced.body, "Its hours end then, and extra time doesn't move them.");
    let [button] = announced.buttons.as_slice() else { panic!("{:?}", announced.buttons) };
    assert_eq!(button.label, "Let it go on for 10 minutes");
    let Command::Grant { profile, scope, gift, .. } = &button.command else { panic!("{:?}", button.command) };
    assert_eq!(*profile, Some("anna".parse().unwrap()));
    assert_eq!(*scope, EntryScope::Entry { entry_id: "tuxmath".parse().unwrap() });
    assert_eq!(*gift, GrantKind::OpenUntil { until: NOON.checked_add(Duration::from_secs(720)).unwrap() });
    assert_eq!(for_granted_request(english(), &granted, Millis(600_000), &session(Some(120))), None);
    let of_ben = SessionView { profile: "ben".parse().unwrap(), ..session_in_last_hours() };
    assert_eq!(for_granted_request(english(), &granted, Millis(600_000), &of_ben), None);
}

// S19.3
#[test]
fn a_german_family_reads_german() {
    let german = SentenceCatalogue::of(Language::German);
    let moved = EventKind::DeadlineChanged { session: session(Some(900)) };
    let announced = for_session(german, &moved, noon(), Some(&known(Some(300)))).unwrap();
    assert_eq!(announced.title, "Mehr Zeit für Maths");
    assert_eq!(announced.body, "Noch 15 Minuten Maths.");
    assert_eq!(announced.buttons[0].label, "Um 10 Minuten mehr bitten");
    let asked = for_request_of_child(german, &request(TimeRequestState::Asked), "Anna", "Maths").unwrap();
    assert_eq!(asked.title, "Anna bittet um 10 Minuten");
    assert_eq!(asked.body, "Maths\n„one more level“");
    let tomorrow = Some(NOON + jiff::SignedDuration::from_hours(24));
    let closed = maths(vec![ReasonCode::OutsideHours { next_opening: tomorrow }]);
    let granted = request(TimeRequestState::Granted { grant_id: GrantId::from_random(1) });
    let time = at_noon().strftime("%H:%M");
    assert_eq!(
        for_own_request(german, &granted, listed(&[closed]), None, &at_noon()).unwrap().body,
        format!(
            "Du bekommst mehr Zeit für Maths. Aber es bleibt zu bis morgen, {time} Uhr, weil es vorher nicht erlaubt ist."
        )
    );
}
