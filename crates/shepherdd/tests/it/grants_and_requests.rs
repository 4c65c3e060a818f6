//! Grants, extensions and requests for time (S2.7, S3.5b).

use std::time::{Duration, Instant};

use shepherd_api::{
    Command, CommandReply, EntryScope, ErrorCode, EventKind, GrantKind, GrantView, Millis, SessionPhase,
    SessionView, StopMode, TimeRequestDecision, TimeRequestState, TimeRequestView,
};
use shepherd_ipc::CallError;

use crate::harness::{EventSubscriber, ShepherddFixture, policy, sleep_entry, stubborn_entry, wait_until};

const POLICY: &str = policy!(
    sleep_entry!(
        "nap",
        r#"max_run = "3s"
warnings = [{ before = "2s" }, { before = "1s" }]"#
    ),
    // Its grace counts, so nothing is left of its quota afterwards, even if its launch takes a second or two.
    stubborn_entry!(
        "brief",
        r#"daily_quota = "2s"
stop_grace = "2s""#
    ),
    stubborn_entry!("stubborn", r#"max_run = "3s""#)
);

fn next_warning(listener: &mut EventSubscriber) -> u64 {
    listener.wait_for(|event| match event {
        EventKind::WarningIssued { threshold_secs, .. } => Some(*threshold_secs),
        _ => None,
    })
}

fn next_deadline(listener: &mut EventSubscriber) -> SessionView {
    listener.wait_for(|event| match event {
        EventKind::DeadlineChanged { session } => Some(session.clone()),
        _ => None,
    })
}

fn extend(fixture: &ShepherddFixture, by: Duration) -> SessionView {
    match fixture.call(Command::ExtendCurrent { by: Millis::from(by), session_id: None }) {
        Ok(CommandReply::Extended { session }) => session,
        other => panic!("{other:?}"),
    }
}

fn remaining(session: &SessionView) -> Duration {
    session.remaining.expect("an end").into()
}

#[test]
fn an_extension_moves_the_end_and_each_warning_comes_once_before_it() {
    let fixture = ShepherddFixture::running(POLICY);
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    fixture.launch("nap");
    assert_eq!(next_warning(&mut listener), 2);
    let session = extend(&fixture, Duration::from_secs(2));
    assert!(remaining(&session) > Duration::from_secs(3), "{session:?}");
    assert_eq!(next_deadline(&mut listener).session_id, session.session_id);
    // The one that was given comes again before the new end, and so does the other one.
    assert_eq!(next_warning(&mut listener), 2);
    assert!(launched.elapsed() >= Duration::from_secs(3), "{:?}", launched.elapsed());
    assert_eq!(next_warning(&mut listener), 1);
    assert!(launched.elapsed() >= Duration::from_secs(4), "{:?}", launched.elapsed());
    listener.wait_for(|event| match event {
        EventKind::WarningIssued { threshold_secs, .. } => panic!("{threshold_secs} again"),
        EventKind::SessionEnded { .. } => Some(()),
        _ => None,
    });
    assert!(launched.elapsed() >= Duration::from_secs(5), "{:?}", launched.elapsed());
    fixture.assert_no_processes_left();
}

#[test]
fn revoking_an_extension_ends_the_session_that_used_it() {
    let fixture = ShepherddFixture::running(POLICY);
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    fixture.launch("nap");
    fixture.wait_for_program();
    assert!(remaining(&extend(&fixture, Duration::from_secs(3_600))) > Duration::from_secs(3_600));
    next_deadline(&mut listener);
    let grants: Vec<GrantView> = match fixture.call(Command::ListGrants {}) {
        Ok(CommandReply::Grants { grants }) => grants,
        other => panic!("{other:?}"),
    };
    let [grant] = grants.as_slice() else { panic!("{grants:?}") };
    match fixture.call(Command::RevokeGrant { grant_id: grant.grant_id.clone() }) {
        Ok(CommandReply::Grant { grant }) => assert!(grant.revoked_at.is_some()),
        other => panic!("{other:?}"),
    }
    assert!(remaining(&next_deadline(&mut listener)) <= Duration::from_secs(3));
    fixture.wait_until_idle();
    assert!(launched.elapsed() >= Duration::from_secs(3), "not before its own end: {:?}", launched.elapsed());
}

fn submit_request(fixture: &ShepherddFixture, note: &str) -> TimeRequestView {
    let command = Command::RequestTime {
        entry_id: "brief".parse().unwrap(),
        minutes: 5,
        note: Some(note.to_owned().try_into().unwrap()),
        profile: None,
    };
    match fixture.call(command) {
        Ok(CommandReply::Request { request }) => request,
        other => panic!("{other:?}"),
    }
}

fn next_request(listener: &mut EventSubscriber) -> TimeRequestView {
    listener.wait_for(|event| match event {
        EventKind::RequestChanged { request } => Some(request.clone()),
        _ => None,
    })
}

#[test]
fn a_request_is_asked_seen_and_answered_and_everybody_hears_of_it() {
    let fixture = ShepherddFixture::running(POLICY);
    fixture.launch("brief");
    fixture.wait_until_idle();
    assert_eq!(fixture.refusal("brief").reasons[0].code(), "quota-exhausted");
    let mut listeners = [fixture.subscriber(), fixture.subscriber()];
    let request = submit_request(&fixture, "I am nearly through");
    assert_eq!(request.state, TimeRequestState::Asked);
    let request_id = request.request_id.clone();
    let seen = fixture.call(Command::MarkRequestSeen { request_id: request_id.clone() }).unwrap();
    assert!(matches!(seen, CommandReply::Request { request } if request.state == TimeRequestState::Seen));
    let decision = TimeRequestDecision::Grant { minutes: Some(1) };
    let Ok(CommandReply::Decided { request: decided, grant: Some(grant) }) =
        fixture.call(Command::DecideRequest { request_id: request_id.clone(), decision })
    else {
        panic!("not granted");
    };
    assert_eq!(grant.gift, GrantKind::Extra { amount: Duration::from_secs(60).into() });
    assert_eq!(grant.scope, EntryScope::Entry { entry_id: "brief".parse().unwrap() });
    for listener in &mut listeners {
        assert_eq!(next_request(listener).state, TimeRequestState::Asked);
        assert_eq!(next_request(listener).state, TimeRequestState::Seen);
        assert_eq!(next_request(listener), decided);
        let given = listener.wait_for(|event| match event {
            EventKind::GrantChanged { grant } => Some(grant.clone()),
            _ => None,
        });
        assert_eq!(given, grant);
    }
    let session = fixture.launch("brief");
    assert!(remaining(&session) > Duration::from_secs(50), "{session:?}");
    // A request is decided once.
    let again = fixture
        .call(Command::DecideRequest { request_id, decision: TimeRequestDecision::Deny { why: None } });
    assert_eq!(again.unwrap_err().api_error().unwrap().code, ErrorCode::AlreadyDecided);
}

#[test]
fn a_request_that_is_denied_gives_nothing() {
    let fixture = ShepherddFixture::running(POLICY);
    fixture.launch("brief");
    fixture.wait_until_idle();
    let request_id = submit_request(&fixture, "please").request_id;
    let why = Some("supper is ready".to_owned().try_into().unwrap());
    let Ok(CommandReply::Decided { request, grant: None }) =
        fixture.call(Command::DecideRequest { request_id, decision: TimeRequestDecision::Deny { why } })
    else {
        panic!("not denied");
    };
    assert_eq!(request.state, TimeRequestState::Denied { why: Some("supper is ready".to_owned()) });
    assert_eq!(fixture.refusal("brief").reasons[0].code(), "quota-exhausted");
}

/// S3.6: an extension doesn't depend on whether the program already runs.
#[test]
fn a_session_that_is_being_launched_can_be_extended() {
    let mut fixture = ShepherddFixture::running(POLICY);
    assert!(fixture.end().success());
    let mut fixture = fixture.on_a_slow_disk(Duration::from_millis(100));
    fixture.start();
    std::thread::scope(|scope| {
        scope.spawn(|| fixture.launch("stubborn"));
        wait_until("the session is being launched", || fixture.state().session.is_some());
        assert_eq!(fixture.state().session.unwrap().phase, SessionPhase::Launching);
        let session = extend(&fixture, Duration::from_secs(3_600));
        assert!(remaining(&session) > Duration::from_secs(3_600), "{session:?}");
    });
    fixture.wait_for_program();
    let session = fixture.state().session.unwrap();
    assert!(remaining(&session) > Duration::from_secs(3_500), "{session:?}");
    // A session that is being stopped can't be extended, and the message says why.
    fixture.stop(StopMode::Graceful).unwrap();
    let refused = fixture.call(Command::ExtendCurrent { by: Millis(1_000), session_id: None }).unwrap_err();
    let refused = refused.api_error().unwrap();
    assert_eq!(refused.code, ErrorCode::NoSession);
    assert_eq!(refused.sentence, "The session is already being ended.");
}

/// A number that the audit log can't store would block every later record.
#[test]
fn a_gift_of_many_years_is_refused_and_harms_no_other() {
    let fixture = ShepherddFixture::running(POLICY);
    let give = |amount| {
        fixture.call(Command::Grant {
            profile: None,
            scope: EntryScope::Entry { entry_id: "nap".parse().unwrap() },
            gift: GrantKind::Extra { amount },
            valid_from: None,
            lapses_at: None,
            why: None,
        })
    };
    for amount in [1 << 53, u64::MAX, 1_000 * 86_400_000] {
        match give(Millis(amount)) {
            Err(CallError::Refused(error)) => assert_eq!(error.code, ErrorCode::InvalidCommand, "{amount}"),
            other => panic!("{amount}: {other:?}"),
        }
    }
    assert!(matches!(give(Millis(60_000)), Ok(CommandReply::Grant { .. })));
    let mut listener = fixture.subscriber();
    fixture.launch("nap");
    listener.wait_for(|event| matches!(event, EventKind::SessionStarted { .. }).then_some(()));
    match fixture.call(Command::ExtendCurrent { by: Millis(1 << 53), session_id: None }) {
        Err(CallError::Refused(error)) => assert_eq!(error.code, ErrorCode::InvalidCommand),
        other => panic!("{other:?}"),
    }
    assert!(fixture.health().ready);
}

fn give_in_advance(
    fixture: &ShepherddFixture,
    entry: &str,
    amount: Duration,
) -> Result<CommandReply, CallError> {
    fixture.call(Command::Grant {
        profile: None,
        scope: EntryScope::Entry { entry_id: entry.parse().unwrap() },
        gift: GrantKind::Extra { amount: amount.into() },
        valid_from: None,
        lapses_at: None,
        why: None,
    })
}

#[test]
fn extra_time_given_in_advance_lengthens_the_next_run_and_is_used_up() {
    let mut fixture = ShepherddFixture::running(POLICY);
    assert!(give_in_advance(&fixture, "nap", Duration::from_secs(2)).is_ok());
    let launched = Instant::now();
    let session = fixture.launch("nap");
    assert!(remaining(&session) > Duration::from_secs(4), "{session:?}");
    fixture.wait_until_idle();
    assert!(launched.elapsed() >= Duration::from_secs(5), "{:?}", launched.elapsed());
    // The next daemon knows that it is used up, but for the moment that the launch took, which is free.
    fixture.kill();
    fixture.start();
    let session = fixture.launch("nap");
    assert!(remaining(&session) < Duration::from_secs(4), "{session:?}");
}

#[test]
fn time_for_an_entry_without_a_limit_is_refused_with_the_reason() {
    let free = "[[entries]]\nid = \"free\"\nargv = [\"sleep\", \"TOKEN\"]\nalways = true\n";
    let fixture = ShepherddFixture::running(&format!("{POLICY}\n{free}"));
    let refused = give_in_advance(&fixture, "free", Duration::from_secs(60)).unwrap_err();
    let refused = refused.api_error().unwrap();
    assert_eq!(refused.code, ErrorCode::InvalidCommand);
    assert!(refused.sentence.contains("`free` has no quota"), "{}", refused.sentence);
    assert!(refused.sentence.contains("--open-until"), "{}", refused.sentence);
}
