//! Commands on a full disk: a command that grants something is undone, and one that takes something away holds (S8.2).

use shepherd_api::{Command, CommandReply, EntryScope, EventKind, GrantKind, Millis, TimeRequestDecision};
use shepherd_util::EntryId;

use crate::disk_failures::{assert_not_recorded, fill_disk, fixture_on_small_disk, free_disk_space};

/// S8.2: a refused grant doesn't exist, neither before nor after the disk has space again, nor for the next daemon.
#[test]
fn a_grant_that_could_not_be_recorded_is_refused() {
    let fixture = fixture_on_small_disk();
    fixture.launch("brief");
    fixture.wait_until_idle();
    let entry_id: EntryId = "brief".parse().unwrap();
    let ask = Command::RequestTime { entry_id: entry_id.clone(), minutes: 5, note: None, profile: None };
    let Ok(CommandReply::Request { request }) = fixture.call(ask) else { panic!("not asked") };
    let request_id = request.request_id.clone();
    let requests = || match fixture.call(Command::ListRequests {}) {
        Ok(CommandReply::Requests { requests }) => requests,
        other => panic!("{other:?}"),
    };
    let decide = || Command::DecideRequest {
        request_id: request_id.clone(),
        decision: TimeRequestDecision::Grant { minutes: None },
    };
    fill_disk(&fixture);
    assert_not_recorded(fixture.call(decide()));
    assert_eq!(requests(), std::slice::from_ref(&request), "it is still to be answered");
    free_disk_space(&fixture);
    assert_eq!(requests(), [request]);
    assert_eq!(fixture.refusal("brief").reasons[0].code(), "quota-exhausted");
    fill_disk(&fixture);
    let scope = EntryScope::Entry { entry_id };
    let gift = GrantKind::Extra { amount: Millis(60_000) };
    let (profile, valid_from, lapses_at, why) = (None, None, None, None);
    assert_not_recorded(fixture.call(Command::Grant { profile, scope, gift, valid_from, lapses_at, why }));
    free_disk_space(&fixture);
    assert_eq!(fixture.refusal("brief").reasons[0].code(), "quota-exhausted");
    // Now it is granted once.
    assert!(matches!(fixture.call(decide()), Ok(CommandReply::Decided { grant: Some(_), .. })));
    fixture.launch("brief");
}

/// The same for commands that open more than a grant does: another mode, and a confirmed clock.
#[test]
fn a_mode_that_could_not_be_recorded_does_not_apply() {
    let fixture = fixture_on_small_disk();
    let mut listener = fixture.subscriber();
    fill_disk(&fixture);
    assert_not_recorded(fixture.call(Command::SwitchMode { mode: Some("holiday".to_owned()) }));
    assert_eq!(fixture.state().mode, "school");
    free_disk_space(&fixture);
    assert_eq!(fixture.state().mode, "school");
    fixture.call(Command::SwitchMode { mode: Some("holiday".to_owned()) }).unwrap();
    let mode = listener.wait_for(|event| match event {
        EventKind::ModeSwitched { mode } => Some(mode.clone()),
        _ => None,
    });
    assert_eq!((mode, fixture.state().mode), ("holiday".to_owned(), "holiday".to_owned()));
}

/// A command that takes something away holds, and its reply says that it was not recorded.
#[test]
fn a_revocation_applies_even_if_it_could_not_be_recorded() {
    let fixture = fixture_on_small_disk();
    let (scope, gift) = (EntryScope::Everything {}, GrantKind::Extra { amount: Millis(60_000) });
    let (profile, valid_from, lapses_at, why) = (None, None, None, None);
    let grant = Command::Grant { profile, scope, gift, valid_from, lapses_at, why };
    let Ok(CommandReply::Grant { grant }) = fixture.call(grant) else { panic!("not given") };
    fill_disk(&fixture);
    let outcome = fixture.call(Command::RevokeGrant { grant_id: grant.grant_id });
    let error = outcome.expect_err("nothing can be recorded");
    let error = error.api_error().expect("an answer");
    assert!(error.sentence.starts_with("This took effect, but could not be recorded yet"), "{error:?}");
    let Ok(CommandReply::Grants { grants }) = fixture.call(Command::ListGrants {}) else { panic!("no list") };
    assert_eq!(grants, []);
}
