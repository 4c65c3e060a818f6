//! The reported state after the clock was set back, and the clients that get it.

use jiff::SignedDuration;
use shepherd_api::{AuditKind, GrantKind, ReasonCode, StopMode, StopRequester};
use shepherd_core::policy::{
    AvailabilityPolicy, OnShutdown, Policy, PolicyEntry, Profile, WarningPolicy, WarningThreshold,
};
use shepherd_core::{CoreEvent, SessionLiveness, WarningMessage};
use shepherd_util::{GrantId, ManualClock};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, boot, entry, entry_in_window, entry_with_max_run, extra, grant,
    hours, minutes, policy, policy_with, wall_time, warning,
};
use crate::queries::{add_modes, entry_with_quota_by_mode};

fn half_hour_entry() -> PolicyEntry {
    entry_with_max_run(minutes(30))
}

fn count_expirations(events: &[CoreEvent]) -> usize {
    events.iter().filter(|event| matches!(event, CoreEvent::ExpireDue { .. })).count()
}

fn count_audit_events(world: &EngineHarness, what: impl Fn(&AuditKind) -> bool) -> usize {
    world.audit.iter().filter(|event| what(&event.what)).count()
}

#[test]
fn a_warning_has_the_parents_message_and_the_labels_for_it() {
    // S2.5.
    let mut game = half_hour_entry();
    game.label = "Trains".to_owned();
    let template = Some("{profile}, {label}: {remaining} ({remaining}) left.".to_owned());
    game.warnings = WarningPolicy::new(vec![WarningThreshold {
        message_template: template.clone(),
        ..warning(minutes(5))
    }]);
    let test_policy = policy_with(vec![game], |rules| {
        let anna = Profile { label: "Anna".to_owned(), accounts: Vec::new() };
        rules.profiles = [("kid-1".parse().unwrap(), anna)].into();
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    world.launch("game");
    let messages: Vec<WarningMessage> = world
        .run_for(minutes(26))
        .into_iter()
        .filter_map(|event| match event {
            CoreEvent::Warning { message, .. } => Some(message),
            _ => None,
        })
        .collect();
    let expected = WarningMessage { template, label: "Trains".to_owned(), profile: "Anna".to_owned() };
    assert_eq!(messages, [expected]);
}

#[test]
fn an_opening_is_announced_by_the_trusted_time() {
    // S3.7, S4.7: the clock was set back by five minutes, which is trusted; the trusted time went on.
    let mut world = EngineHarness::new(policy(vec![entry_in_window((12, 30), (13, 0))]), MONDAY_NOON);
    world.run_for(minutes(10));
    world.move_wall(SignedDuration::from_mins(-5));
    assert_eq!(world.reason_codes("game"), ["outside-hours"]);
    let due = world.engine.next_due().unwrap();
    assert_eq!(due.total_since(world.now().mono), minutes(20));
    world.clock.advance(minutes(20));
    assert_eq!(world.tick(), [CoreEvent::EntryAvailabilityChanged]);
    assert!(world.view("game").enabled);
    assert_eq!(world.engine.next_due().unwrap().total_since(world.now().mono), minutes(30));
}

#[test]
fn the_mode_that_is_shown_is_the_one_that_counts() {
    // S3.7, S4.2: at 00:05 the clock is set back to 23:55.
    let mut world = EngineHarness::new(policy_with(vec![entry("game")], add_modes), "2026-11-17 23:50");
    world.run_for(minutes(15));
    let mode = |world: &EngineHarness| world.engine.get_state(world.now()).mode;
    let counted = mode(&world);
    world.move_wall(SignedDuration::from_mins(-9));
    assert_eq!(mode(&world), counted);
}

#[test]
fn the_state_names_every_profile_with_its_label() {
    // S3.7.
    let test_policy = policy_with(vec![entry("game")], |rules| {
        let named = |(id, label): (&str, &str)| {
            (id.parse().unwrap(), Profile { label: label.to_owned(), accounts: Vec::new() })
        };
        rules.profiles = [("kid-1", "Anna"), ("kid-2", "Ben")].map(named).into();
    });
    let world = EngineHarness::new(test_policy, MONDAY_NOON);
    let profiles = world.engine.get_state(world.now()).profiles;
    let shown: Vec<_> = profiles.iter().map(|view| (view.profile.as_str(), view.label.as_str())).collect();
    assert_eq!(shown, [("kid-1", "Anna"), ("kid-2", "Ben")]);
}

#[test]
fn an_untrusted_clock_shows_when_it_will_be_trusted() {
    // S3.2, S4.5: with ten minutes of tolerance, a clock that is an hour behind is trusted after fifty minutes.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.tick();
    world.move_wall(SignedDuration::from_hours(-1));
    assert_eq!(world.reason_codes("game"), ["clock-untrusted"]);
    assert_eq!(world.view("game").next_available, Some(wall_time(BERLIN, "2026-11-16 11:50")));
    assert_eq!(world.engine.next_due().unwrap().total_since(world.now().mono), minutes(50));
    world.clock.advance(minutes(50));
    assert_eq!(world.tick(), [CoreEvent::EntryAvailabilityChanged]);
    assert!(world.view("game").enabled);
}

#[test]
fn the_clock_is_trusted_again_on_time_after_a_restart() {
    // S4.5, S4.7: this engine has never seen the correct time itself.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.run_for(minutes(1));
    world.launch("game");
    world.exit();
    world.clock.move_wall(SignedDuration::from_hours(-1));
    world.crash();
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.tick();
    assert!(matches!(world.view("game").reasons[..], [ReasonCode::ClockUntrusted { .. }]));
    world.clock.advance(world.engine.next_due().unwrap().total_since(world.now().mono));
    assert_eq!(world.tick(), [CoreEvent::EntryAvailabilityChanged]);
    assert!(world.view("game").enabled);
}

fn policy_that_ends_sessions() -> Policy {
    policy_with(vec![half_hour_entry()], |rules| rules.on_shutdown = OnShutdown::EndSessions)
}

#[test]
fn a_shutdown_ends_the_session_once_and_records_it() {
    // S13.4, S8.3.
    let mut world = EngineHarness::new(policy_that_ends_sessions(), MONDAY_NOON);
    world.launch("game");
    assert_eq!(count_expirations(&world.engine.shut_down(world.now())), 1);
    world.sync();
    let by_policy = |what: &AuditKind| {
        let (wanted_by, wanted_mode) = (StopRequester::Policy, StopMode::Graceful);
        matches!(what, AuditKind::StopRequested { by, mode, .. } if (*by, *mode) == (wanted_by, wanted_mode))
    };
    assert_eq!(count_audit_events(&world, by_policy), 1);

    let mut world = EngineHarness::new(policy_that_ends_sessions(), MONDAY_NOON);
    world.launch("game");
    assert_eq!(count_expirations(&world.run_for(minutes(31))), 1);
    assert_eq!(count_expirations(&world.engine.shut_down(world.now())), 0, "it is being ended already");
    world.sync();
    assert_eq!(count_audit_events(&world, by_policy), 1);
}

#[test]
fn an_extension_is_announced_and_recorded_once() {
    // S2.7, S3.5b, S8.3: it moves the run and the window, which is one change.
    let mut game = entry_in_window((11, 0), (12, 20));
    game.limits.max_run = Some(minutes(15));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let session_id = world.launch("game").session_id;
    let id = GrantId::from_random(1);
    let events = world.engine.extend_current(minutes(30), &id, "parent", world.now()).unwrap();
    world.sync();
    let moved = CoreEvent::DeadlineChanged { session_id, remaining: Some(minutes(45)) };
    let given = CoreEvent::GrantChanged { grant: Box::new(world.engine.find_grant(&id).unwrap()) };
    assert_eq!(events, [CoreEvent::EntryAvailabilityChanged, moved, given]);
    assert_eq!(count_audit_events(&world, |what| matches!(what, AuditKind::DeadlineChanged { .. })), 1);
    world.engine.revoke(&id, "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(15)));
}

#[test]
fn an_extension_applies_after_the_clock_was_set_back_over_midnight() {
    // S2.7, S4.2: the wall clock shows the day before, whose grants have lapsed by the trusted time.
    let mut world = EngineHarness::new(policy(vec![half_hour_entry()]), "2026-11-16 23:55");
    world.launch("game");
    world.run_for(minutes(7));
    world.move_wall(SignedDuration::from_mins(-5));
    world.engine.extend_current(minutes(10), &GrantId::from_random(1), "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(33)));
}

#[test]
fn the_week_of_a_child_shows_nothing_of_another() {
    // S3.10: the listing shows the same.
    let mut bens = entry("trains");
    bens.profiles = Some(["ben".parse().unwrap()].into());
    let test_policy = policy_with(vec![bens, entry("game")], |rules| {
        let named =
            |name: &str| (name.parse().unwrap(), Profile { label: name.to_owned(), accounts: Vec::new() });
        rules.profiles = ["anna", "ben"].map(named).into();
    });
    let world = EngineHarness::new(test_policy, MONDAY_NOON);
    let (from, to) = (wall_time(BERLIN, "2026-11-16 00:00"), wall_time(BERLIN, "2026-11-23 00:00"));
    for (profile, expected) in [("anna", vec!["game"]), ("ben", vec!["trains", "game"])] {
        let profile = profile.parse().unwrap();
        let week = world.engine.timeline(&profile, from, to).unwrap().entries;
        let listed = world.engine.list_entries_for(&profile, world.now());
        assert_eq!(week.iter().map(|line| line.entry_id.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(listed.iter().map(|view| view.entry_id.as_str()).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_new_mode_changes_the_end_of_a_session_only_after_sleep() {
    // S2.4, S4.4: three hours in the holidays, half an hour in school time. Documented in docs/policy.md.
    let mut game = entry_with_quota_by_mode();
    game.availability = AvailabilityPolicy::Always;
    let mut world = EngineHarness::new(policy_with(vec![game], add_modes), "2026-11-18 12:00");
    world.launch("game");
    world.run_for(minutes(10));
    world.engine.switch_mode(Some("school".to_owned()), "parent", world.now()).unwrap();
    world.run_for(minutes(10));
    assert_eq!(world.remaining(), Some(hours(3) - minutes(20)));
    world.clock.suspend(hours(1));
    world.tick();
    assert_eq!(world.remaining(), Some(minutes(10)), "by the quota that is in force now");
}

#[test]
fn setting_the_clock_back_by_hours_lengthens_no_window() {
    // S4.5, SECURITY.md: three hours without a session, and then the rest of the previous hour.
    for reboots in [false, true] {
        let mut world =
            EngineHarness::new(policy(vec![entry_in_window((12, 0), (13, 0))]), "2026-11-16 12:00");
        world.launch("game");
        world.run_for(minutes(40));
        world.exit();
        world.move_wall(SignedDuration::from_hours(-3));
        if reboots {
            world.place.boot = boot(2);
            world.crash();
            world.clock = ManualClock::starting_at(world.now().wall);
            world.engine.recover(SessionLiveness::Gone, world.now());
            world.tick();
        }
        world.run_for(minutes(169));
        assert_eq!(world.reason_codes("game")[0], "clock-untrusted");
        world.run_for(minutes(1));
        world.launch("game");
        assert_eq!(world.remaining(), Some(minutes(20)), "rebooted: {reboots}");
    }
}

// S2.7
#[test]
fn a_session_says_if_its_hours_end_before_its_time_is_used_up() {
    let mut game = entry_in_window((11, 0), (13, 0));
    game.limits.max_run = Some(minutes(50));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.tick();
    let hours_end = |world: &EngineHarness| world.engine.get_state(world.now()).session.unwrap().hours_end;
    assert_eq!(hours_end(&world), None, "its time is used up at 12:50");
    world.grant(grant(1, extra(minutes(10))));
    assert_eq!(hours_end(&world), None, "all of the extra time can be used");
    world.grant(grant(2, extra(minutes(10))));
    assert_eq!(hours_end(&world), Some(wall_time(BERLIN, "2026-11-16 13:00")));
    assert_eq!(world.remaining(), Some(hours(1)));
    world.run_for(minutes(30));
    assert_eq!(hours_end(&world), Some(wall_time(BERLIN, "2026-11-16 13:00")));
    let open = GrantKind::OpenUntil { until: wall_time(BERLIN, "2026-11-16 14:00") };
    world.grant(grant(3, open));
    assert_eq!(hours_end(&world), None);
    world.revoke(3);
    world.engine.extend_current(minutes(10), &GrantId::from_random(4), "parent", world.now()).unwrap();
    assert_eq!(hours_end(&world), Some(wall_time(BERLIN, "2026-11-16 13:10")), "an extension moves it");
    world.run_for(minutes(40));
    assert_eq!(world.engine.get_state(world.now()).session.and_then(|session| session.hours_end), None);
}
