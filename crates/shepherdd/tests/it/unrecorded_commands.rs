//! Commands on a full disk: what gives something is undone, what takes something away holds (S8.2).

use shepherd_api::{Command, CommandReply, EntryScope, EventKind, GrantKind, Millis, TimeRequestDecision};
use shepherd_util::EntryId;

use crate::disk_failures::{assert_not_recorded, fill_disk, fixture_on_small_disk, free_disk_space};

/// House rule: judge, write down, act. What the answer refused is not there, neither before there is room nor after,
/// nor for the next daemon (S8.2).
#[test]
fn a_gift_that_could_not_be_recorded_is_not_given() {
    let household = fixture_on_small_disk();
    household.launch("brief");
    household.wait_until_idle();
    let entry_id: EntryId = "brief".parse().unwrap();
    let ask = Command::RequestTime { entry_id: entry_id.clone(), minutes: 5, note: None, profile: None };
    let Ok(CommandReply::Request { request }) = household.call(ask) else { panic!("not asked") };
    let request_id = request.request_id.clone();
    let requests = || match household.call(Command::ListRequests {}) {
        Ok(CommandReply::Requests { requests }) => requests,
        other => panic!("{other:?}"),
    };
    let decide = || Command::DecideRequest {
        request_id: request_id.clone(),
        decision: TimeRequestDecision::Grant { minutes: None },
    };
    fill_disk(&household);
    assert_not_recorded(household.call(decide()));
    assert_eq!(requests(), std::slice::from_ref(&request), "it is still to be answered");
    free_disk_space(&household);
    assert_eq!(requests(), [request]);
    assert_eq!(household.refusal("brief").reasons[0].code(), "quota-exhausted");
    fill_disk(&household);
    let scope = EntryScope::Entry { entry_id };
    let gift = GrantKind::Extra { amount: Millis(60_000) };
    let (profile, valid_from, lapses_at, why) = (None, None, None, None);
    assert_not_recorded(household.call(Command::Grant { profile, scope, gift, valid_from, lapses_at, why }));
    free_disk_space(&household);
    assert_eq!(household.refusal("brief").reasons[0].code(), "quota-exhausted");
    // Now it is given, once.
    assert!(matches!(household.call(decide()), Ok(CommandReply::Decided { grant: Some(_), .. })));
    household.launch("brief");
}

/// The same for what opens more than a gift: other rules, and a clock that is believed again.
#[test]
fn a_mode_that_could_not_be_recorded_does_not_apply() {
    let household = fixture_on_small_disk();
    let mut listener = household.subscriber();
    fill_disk(&household);
    assert_not_recorded(household.call(Command::SwitchMode { mode: Some("holiday".to_owned()) }));
    assert_eq!(household.state().mode, "school");
    free_disk_space(&household);
    assert_eq!(household.state().mode, "school");
    household.call(Command::SwitchMode { mode: Some("holiday".to_owned()) }).unwrap();
    let told = listener.wait_for(|event| match event {
        EventKind::ModeSwitched { mode } => Some(mode.clone()),
        _ => None,
    });
    assert_eq!((told, household.state().mode), ("holiday".to_owned(), "holiday".to_owned()));
}

/// What takes something away holds all the same, and the answer says so.
#[test]
fn what_is_taken_back_is_taken_back_even_if_it_could_not_be_recorded() {
    let household = fixture_on_small_disk();
    let (scope, gift) = (EntryScope::Everything {}, GrantKind::Extra { amount: Millis(60_000) });
    let (profile, valid_from, lapses_at, why) = (None, None, None, None);
    let grant = Command::Grant { profile, scope, gift, valid_from, lapses_at, why };
    let Ok(CommandReply::Grant { grant }) = household.call(grant) else { panic!("not given") };
    fill_disk(&household);
    let outcome = household.call(Command::RevokeGrant { grant_id: grant.grant_id });
    let error = outcome.expect_err("nothing can be recorded");
    let error = error.api_error().expect("an answer");
    assert!(error.sentence.starts_with("This took effect, but could not be recorded yet"), "{error:?}");
    let Ok(CommandReply::Grants { grants }) = household.call(Command::ListGrants {}) else {
        panic!("no list")
    };
    assert_eq!(grants, []);
}
