//! Restarts of the daemon: recovered sessions, repeated events, and charging for the time without a daemon (S9).

use std::time::Duration;

use shepherd_api::{EndReason, StopMode, StopRequester, WarningSeverity};
use shepherd_core::policy::DailyQuota;
use shepherd_core::{CoreEvent, LaunchDecision, SessionLiveness, SessionStage, StopDecision, StopRequest};
use shepherd_util::MonotonicInstant;

use crate::harness::{EngineHarness, MONDAY_NOON, boot, entry, entry_with_max_run, hours, minutes, policy};

/// The cost of a power cut after the last heartbeat: the heartbeat interval, and the time to write a heartbeat.
const MAX_LOST: Duration = Duration::from_secs(31);

fn world_with_half_hour_session() -> EngineHarness {
    let mut game = entry_with_max_run(minutes(30));
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    EngineHarness::new(policy(vec![game]), MONDAY_NOON)
}

fn recover(world: &mut EngineHarness, liveness: SessionLiveness) -> Vec<CoreEvent> {
    world.crash();
    let events = world.engine.recover(liveness, world.now());
    world.sync();
    events
}

fn found_alive() -> SessionLiveness {
    SessionLiveness::Alive { handle: "found".to_owned() }
}

fn count_expirations(events: &[CoreEvent]) -> usize {
    events.iter().filter(|event| matches!(event, CoreEvent::ExpireDue { .. })).count()
}

fn stop(world: &mut EngineHarness) -> StopDecision {
    let request =
        StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "child".to_owned() };
    let decision = world.engine.stop_current(&request, world.now());
    world.sync();
    decision
}

#[test]
fn a_session_expires_once_and_again_for_a_restarted_daemon() {
    // S9.1, S13.4.
    let mut world = world_with_half_hour_session();
    world.launch("game");
    assert_eq!(count_expirations(&world.run_for(minutes(31))), 1);
    assert_eq!(count_expirations(&world.run_for(minutes(1))), 0);
    assert_eq!(count_expirations(&recover(&mut world, found_alive())), 1);
    assert_eq!(count_expirations(&world.run_for(minutes(1))), 0);
    let ended = world.exit();
    assert!(matches!(&ended[0], CoreEvent::SessionEnded { reason: EndReason::Expired, .. }));
}

#[test]
fn a_program_that_starts_after_its_session_was_stopped_is_ended() {
    // S3.6: the daemon dies between the stop and the start of the program, or after both.
    let mut world = world_with_half_hour_session();
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!() };
    let _ = stop(&mut world);
    let by = StopRequester::User;
    let stage = |world: &EngineHarness| world.engine.sessions().only().unwrap().stage.clone();
    assert_eq!(stage(&world), SessionStage::Withdrawn { reason: EndReason::Stopped { by } });
    assert_eq!(stage(&world).host_session_handle(), None);
    assert_eq!(count_expirations(&recover(&mut world, found_alive())), 1);
    let expiring = SessionStage::Expiring {
        host_session_handle: "found".to_owned(),
        reason: EndReason::Stopped { by },
        called: world.now().mono,
    };
    assert_eq!(stage(&world), expiring);
    let late = world.engine.start_session(&plan.session_id, "second".to_owned(), world.now());
    assert!(late.is_err(), "nobody waits for a second program");
}

#[test]
fn a_program_that_started_during_the_crash_is_found_with_its_handle() {
    // S5.2, S9.1: its time counts from the launch.
    let mut world = world_with_half_hour_session();
    let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!() };
    world.clock.advance(minutes(2));
    recover(&mut world, found_alive());
    let session = world.engine.sessions().only().cloned().unwrap();
    assert_eq!(
        session.stage,
        SessionStage::Running { host_session_handle: "found".to_owned(), warned: None }
    );
    assert_eq!((world.used("game"), world.remaining()), (minutes(2), Some(minutes(28))));
}

#[test]
fn an_unrecorded_run_that_is_gone_is_charged() {
    // S9.2b: killing the daemon before it can record the start of the program gains nothing.
    for (away, used) in [(minutes(5), 5), (hours(3), 30)] {
        let mut world = world_with_half_hour_session();
        let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!() };
        world.clock.advance(away);
        let events = recover(&mut world, SessionLiveness::GoneAfterStart);
        assert!(matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::Lost, .. }));
        assert_eq!(world.used("game"), minutes(used), "away for {away:?}");
    }
}

#[test]
fn an_entry_may_have_its_own_grace() {
    let mut world = world_with_half_hour_session();
    world.launch("game");
    let common = world.engine.sessions().only().cloned().unwrap().stop_grace;
    let mut patient = entry("game");
    patient.run.stop_grace = Some(common + minutes(1));
    let mut world = EngineHarness::new(policy(vec![patient]), MONDAY_NOON);
    world.launch("game");
    assert_eq!(world.engine.sessions().only().cloned().unwrap().stop_grace, common + minutes(1));
}

#[test]
fn an_unrecorded_run_causes_a_pause_and_is_charged_across_a_reboot() {
    // S9.2b: program and daemon are killed right after the launch. A program that never ran costs nothing.
    for (liveness, same_boot, used) in [
        (SessionLiveness::GoneAfterStart, true, minutes(2)),
        (SessionLiveness::GoneAfterStart, false, minutes(2) + MAX_LOST),
        (SessionLiveness::Gone, true, Duration::ZERO),
        (SessionLiveness::Gone, false, Duration::ZERO),
    ] {
        let mut game = entry_with_max_run(minutes(30));
        game.limits.cooldown_after_run = minutes(10);
        let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
        let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!() };
        world.advance(minutes(2));
        world.place.boot = if same_boot { world.place.boot } else { boot(2) };
        let ran = liveness == SessionLiveness::GoneAfterStart;
        let events = recover(&mut world, liveness);
        let lost = matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::Lost, .. });
        assert_eq!((lost, world.used("game")), (ran, used), "ran: {ran}, same boot: {same_boot}");
        assert_eq!(world.view("game").enabled, !ran, "a pause follows a run");
    }
}

#[test]
fn a_lost_session_is_charged_up_to_now_but_not_beyond_its_planned_end() {
    // S9.2b: killing the daemon gains nothing, and days without a daemon cost nothing.
    for (away, used) in [(minutes(5), 15), (minutes(20), 30), (minutes(25), 30), (hours(3), 30)] {
        let mut world = world_with_half_hour_session();
        world.launch("game");
        world.run_for(minutes(10));
        world.clock.advance(away);
        let events = recover(&mut world, SessionLiveness::Gone);
        assert!(matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::Lost, .. }));
        assert_eq!(world.used("game"), minutes(used), "away for {away:?}");
    }
    // A session without a limit has no planned end.
    let mut world = EngineHarness::new(policy(vec![entry("piano")]), MONDAY_NOON);
    world.launch("piano");
    world.clock.advance(hours(3));
    recover(&mut world, SessionLiveness::Gone);
    assert_eq!(world.used("piano"), hours(3));
}

#[test]
fn a_lost_session_is_charged_to_the_days_on_which_it_ran() {
    // S4.6: played from 23:55 for at most half an hour, and recovered on Wednesday.
    let mut world = world_with_half_hour_session();
    world.clock.advance(hours(11) + minutes(55));
    world.launch("game");
    world.clock.advance(hours(36));
    recover(&mut world, SessionLiveness::Gone);
    let days: Vec<(String, Duration)> =
        world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect();
    assert_eq!(days, [("2026-11-16".to_owned(), minutes(5)), ("2026-11-17".to_owned(), minutes(25))]);
    assert_eq!(world.view("game").max_run_if_started_now.map(Duration::from), Some(minutes(30)));
}

#[test]
fn an_ending_session_that_is_lost_is_charged_to_its_planned_end_or_its_grace() {
    // S9.2b: the program may have ignored the request while no daemon was running.
    let mut world = world_with_half_hour_session();
    world.launch("game");
    world.run_for(minutes(10));
    let _ = stop(&mut world);
    world.clock.advance(hours(1));
    let events = recover(&mut world, SessionLiveness::Gone);
    assert!(matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::Lost, .. }));
    assert_eq!(world.used("game"), minutes(30));

    let mut world = world_with_half_hour_session();
    world.launch("game");
    world.run_for(minutes(30));
    world.clock.advance(hours(1));
    recover(&mut world, SessionLiveness::Gone);
    assert_eq!(world.used("game"), minutes(30) + Duration::from_secs(10));
}

#[test]
fn a_power_cut_charges_one_heartbeat_interval_but_no_more_than_the_plan() {
    // S9.2b: the uncertain time is charged.
    for (played, ends, used) in [
        (minutes(10), StopBeforeReboot::NotRequested, minutes(10) + MAX_LOST),
        (minutes(30) - Duration::from_secs(5), StopBeforeReboot::NotRequested, minutes(30)),
        (minutes(10), StopBeforeReboot::Requested, minutes(10) + MAX_LOST),
    ] {
        let mut world = world_with_half_hour_session();
        world.launch("game");
        world.run_for(played);
        if ends == StopBeforeReboot::Requested {
            let _ = stop(&mut world);
        }
        world.place.boot = boot(2);
        recover(&mut world, SessionLiveness::Gone);
        assert_eq!(world.used("game"), used, "{played:?}, {ends:?}");
    }
}

#[derive(Debug, PartialEq)]
enum StopBeforeReboot {
    NotRequested,
    Requested,
}

#[test]
fn a_program_that_seems_to_survive_a_reboot_is_ended() {
    // S9.2: no program survives a reboot.
    let mut world = world_with_half_hour_session();
    world.launch("game");
    world.advance(Duration::from_secs(3));
    world.place.boot = boot(2);
    assert_eq!(count_expirations(&recover(&mut world, found_alive())), 1);
    let ended = world.exit();
    assert!(matches!(&ended[0], CoreEvent::SessionEnded { reason: EndReason::Lost, .. }));
    assert_eq!(world.used("game"), MAX_LOST, "nobody knows better");
}

#[test]
fn a_program_that_was_being_ended_before_a_reboot_gets_its_grace_again() {
    // S9.2: the clock on which the grace period began is gone, even if the new one shows a later time.
    let mut world = world_with_half_hour_session();
    world.launch("game");
    world.run_for(minutes(31));
    world.place.boot = boot(2);
    world.clock.advance(hours(1));
    recover(&mut world, found_alive());
    let session = world.engine.sessions().only().cloned().unwrap();
    assert_eq!(session.grace_left(world.now().mono), session.stop_grace);
}

#[test]
fn restarts_do_not_lengthen_the_grace() {
    // S6.2, S9.1: killing the daemon repeatedly does not lengthen the grace.
    let mut world = world_with_half_hour_session();
    world.launch("game");
    let left = |world: &EngineHarness| {
        world.engine.sessions().only().unwrap().grace_left(world.now().mono).as_secs()
    };
    let grace = left(&world);
    assert!(grace > 3, "{grace}");
    assert_eq!(count_expirations(&world.run_for(minutes(30))), 1);
    assert_eq!(left(&world), grace);
    for passed in 1..=grace + 1 {
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(count_expirations(&recover(&mut world, found_alive())), 1);
        assert_eq!(left(&world), grace.saturating_sub(passed));
        let StopDecision::Stop { grace: again, .. } = stop(&mut world) else { panic!() };
        assert_eq!(again.as_secs(), grace.saturating_sub(passed), "asking again gives none");
    }
}

#[test]
fn stages_can_be_read_again() {
    // S9.1: stages are part of the stored snapshot.
    let reason = EndReason::Stopped { by: StopRequester::Admin };
    let host_session_handle = "handle".to_owned();
    for stage in [
        SessionStage::Launching,
        SessionStage::Withdrawn { reason: reason.clone() },
        SessionStage::Running { host_session_handle: host_session_handle.clone(), warned: None },
        SessionStage::Running {
            host_session_handle: host_session_handle.clone(),
            warned: Some(WarningSeverity::Critical),
        },
        SessionStage::Expiring { host_session_handle, reason, called: MonotonicInstant::BOOT },
    ] {
        let text = serde_json::to_string(&stage).unwrap();
        assert_eq!(serde_json::from_str::<SessionStage>(&text).unwrap(), stage, "{text}");
    }
}
