//! Effects are complete instructions, in the order in which the daemon carries them out.

use std::time::Duration;

use shepherd_api::{AuditEvent, AuditKind, EndReason, StopMode, StopRequester};
use shepherd_core::policy::{OnShutdown, Policy, Profile, SystemAccount, WindowDisplay};
use shepherd_core::{
    CoreEngine, CoreEvent, Effect, Effects, HostCapabilities, LaunchDecision, LaunchRequest,
    ProvisionalGrant, ShutdownDecision, StopRequest, StoreWrite, StoredState,
};
use shepherd_util::SessionId;

use crate::harness::{EngineHarness, MONDAY_NOON, entry, entry_with_max_run, minutes, policy, policy_with};

const GRACE: Duration = Duration::from_secs(7);

fn game_policy(on_shutdown: OnShutdown) -> Policy {
    let mut game = entry_with_max_run(minutes(30));
    game.run.stop_grace = Some(GRACE);
    game.run.display = WindowDisplay::Fullscreen;
    policy_with(vec![game], |rules| rules.on_shutdown = on_shutdown)
}

fn game_world() -> EngineHarness {
    EngineHarness::new(game_policy(OnShutdown::LeaveSessions), MONDAY_NOON)
}

fn stop_request(mode: StopMode) -> StopRequest {
    StopRequest { by: StopRequester::User, mode, actor: "child".to_owned() }
}

/// Returns the kinds of effects, in order.
fn names(effects: &Effects) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::Stop { .. } => "stop",
        Effect::ShowWindow { .. } => "show",
        Effect::Persist { grants: None, .. } => "persist",
        Effect::Persist { grants: Some(_), .. } => "persist a grant",
        Effect::Spawn(_) => "spawn",
        Effect::Announce(_) => "announce",
    };
    effects.into_iter().map(name).collect()
}

/// Returns an engine whose effects are not collected.
fn bare_engine(world: &EngineHarness) -> CoreEngine {
    let policy = world.engine.policy().clone();
    CoreEngine::new(policy, StoredState::default(), HostCapabilities::all_supported(), world.place.clone())
}

#[test]
fn a_session_from_its_launch_to_its_end_in_effects() {
    let world = game_world();
    let mut engine = bare_engine(&world);
    let session_id = SessionId::from_random(1);
    let request = LaunchRequest {
        entry_id: "game".parse().unwrap(),
        profile: None,
        session_id: session_id.clone(),
        actor: "child".to_owned(),
        display: None,
    };
    let launch = engine.request_launch(&request, world.now());
    assert_eq!(names(&launch.effects), ["persist a grant", "announce"]);
    let LaunchDecision::Approved(plan) = launch.answer else { panic!("denied") };
    assert_eq!(Some(plan.session_view(world.now().mono)), engine.session_view(&session_id, world.now()));
    let granted = ProvisionalGrant::Launch(plan.clone());
    let recorded = engine.persist_succeeded(granted, world.now());
    assert_eq!(recorded.into_iter().collect::<Vec<_>>(), [Effect::Spawn(plan)]);
    let started = engine.start_session(&session_id, "handle".to_owned(), world.now());
    assert_eq!(names(&started.effects), ["show", "persist", "announce"]);
    let stop = engine.stop_session(&session_id, &stop_request(StopMode::Graceful), world.now());
    assert_eq!(names(&stop.effects), ["stop", "persist", "announce"]);
    let announced = Effect::Announce(CoreEvent::StopRequested { session_id: session_id.clone() });
    assert_eq!(stop.effects.iter().last(), Some(&announced));
    let again = engine.shut_down(world.now());
    assert_eq!(names(&again.effects), ["persist"], "the session is left to be reattached");
    assert_eq!(again.answer, ShutdownDecision::ExitNow);
}

#[test]
fn a_program_starts_only_when_its_approval_is_durable() {
    let mut world = game_world();
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!("denied") };
    assert_eq!(world.engine.take_host_orders(), []);
    assert_eq!(world.engine.confirm_last_grant(world.now()), []);
    assert_eq!(world.engine.take_host_orders(), [Effect::Spawn(plan)]);
}

#[test]
fn a_program_that_was_stopped_before_its_approval_was_durable_never_starts() {
    let mut world = game_world();
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!("denied") };
    let _ = world.engine.stop_current(&stop_request(StopMode::Graceful), world.now());
    let events = world.engine.confirm_last_grant(world.now());
    let detail = "it was stopped before it was started".to_owned();
    let (session_id, reason) = (plan.session_id.clone(), EndReason::LaunchFailed { detail });
    assert_eq!(events.first(), Some(&CoreEvent::SessionEnded { session_id, reason }));
    let is_start = |effect: &Effect| matches!(effect, Effect::Spawn(_));
    assert!(!world.engine.take_host_orders().iter().any(is_start));
}

#[test]
fn a_stop_carries_the_rest_of_the_grace_period() {
    let mut world = game_world();
    let session_id = world.launch("game").session_id;
    let show = Effect::ShowWindow { session_id: session_id.clone(), display: WindowDisplay::Fullscreen };
    assert_eq!(world.engine.take_host_orders(), [show]);
    let stop = |grace| Effect::Stop { session_id: session_id.clone(), grace };
    world.run_for(minutes(30));
    assert_eq!(world.engine.take_host_orders(), [stop(GRACE)]);
    world.clock.advance(Duration::from_secs(3));
    let _ = world.engine.stop_current(&stop_request(StopMode::Graceful), world.now());
    assert_eq!(world.engine.take_host_orders(), [stop(Duration::from_secs(4))]);
    let _ = world.engine.stop_current(&stop_request(StopMode::Force), world.now());
    assert_eq!(world.engine.take_host_orders(), [stop(Duration::ZERO)]);
}

#[test]
fn a_program_without_a_session_is_stopped_at_once() {
    let mut world = game_world();
    let stranger = SessionId::from_random(99);
    assert!(world.engine.start_session(&stranger, "handle".to_owned(), world.now()).is_err());
    let stop = Effect::Stop { session_id: stranger, grace: Duration::ZERO };
    assert_eq!(world.engine.take_host_orders(), [stop]);
}

#[test]
fn a_shutdown_waits_for_the_session_if_the_policy_ends_it() {
    // S9.3.
    let mut world = EngineHarness::new(game_policy(OnShutdown::EndSessions), MONDAY_NOON);
    world.launch("game");
    world.engine.take_host_orders();
    world.sync();
    let mut engine = CoreEngine::new(
        world.engine.policy().clone(),
        world.store.clone(),
        HostCapabilities::all_supported(),
        world.place.clone(),
    );
    let first = engine.shut_down(world.now());
    assert_eq!(first.answer, ShutdownDecision::AwaitSessionEnd { grace: GRACE });
    assert_eq!(names(&first.effects), ["stop", "persist", "announce"]);
    let second = engine.shut_down(world.now());
    assert_eq!(second.answer, ShutdownDecision::AwaitSessionEnd { grace: GRACE });
    assert_eq!(names(&second.effects), ["persist"], "the program was already asked to end");
}

#[test]
fn a_plan_names_the_user_that_its_program_runs_as() {
    // S6.5: the profile's account, where the host can run programs as another user.
    let anna = Profile { label: "Anna".to_owned(), accounts: vec![SystemAccount::User("anna".to_owned())] };
    let test_policy = policy_with(vec![entry("game")], |rules| {
        rules.profiles = [("anna".parse().unwrap(), anna)].into();
    });
    for (can_switch_user, user) in [(true, Some("anna".to_owned())), (false, None)] {
        let mut world = EngineHarness::new(test_policy.clone(), MONDAY_NOON);
        let host = HostCapabilities { can_switch_user, ..HostCapabilities::all_supported() };
        let place = world.place.clone();
        world.engine = CoreEngine::new(test_policy.clone(), StoredState::default(), host, place).into();
        let plan = world.launch("game");
        assert_eq!(plan.entry.run.user, user);
    }
}

#[test]
fn a_store_that_fails_and_works_again_is_announced_once_each() {
    // S8.4b.
    let world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    let mut engine = bare_engine(&world);
    assert_eq!(names(&engine.store_failed("no space left".to_owned())), ["announce"]);
    assert_eq!(names(&engine.store_failed("still none".to_owned())), [""; 0]);
    assert_eq!(engine.store_trouble(), Some("still none"));
    engine.restart_from(StoredState::default());
    assert_eq!(engine.store_trouble(), Some("still none"), "nothing has been written since");
    let recovered = engine.store_recovered();
    assert_eq!((names(&recovered), recovered.is_empty()), (vec!["announce"], false));
    let again = engine.store_recovered();
    assert_eq!((names(&again), again.is_empty()), (vec![], true));
}

#[test]
fn an_engine_that_starts_over_has_the_state_of_the_store() {
    // S8.4b: the store could not be read when the daemon started.
    let mut game = entry_with_max_run(minutes(30));
    game.limits.cooldown_after_run = minutes(10);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(5));
    world.exit();
    let stored = StoredState { heartbeat: None, ..world.store.clone() };
    assert_eq!((stored.usage.len(), stored.cooldowns.len()), (1, 1));
    assert_eq!(world.engine.stored_state(), stored);
    let mut engine = bare_engine(&world);
    assert_eq!(engine.stored_state(), StoredState::default());
    engine.restart_from(stored.clone());
    assert_eq!(engine.stored_state(), stored);
}

#[test]
fn an_event_outside_the_engine_is_recorded() {
    // S8.3.
    let world = game_world();
    let effects = bare_engine(&world).record_audit("parent", AuditKind::DaemonStopped, world.now());
    let line =
        AuditEvent { at: world.now().wall, actor: "parent".to_owned(), what: AuditKind::DaemonStopped };
    let writes = vec![StoreWrite::AppendAudit(Box::new(line))];
    assert_eq!(effects.into_iter().collect::<Vec<_>>(), [Effect::Persist { writes, grants: None }]);
}

#[test]
fn discarded_audit_lines_are_not_written_but_everything_else_is() {
    let world = game_world();
    let mut engine = bare_engine(&world);
    let request = LaunchRequest {
        entry_id: "lost".parse().unwrap(),
        profile: None,
        session_id: SessionId::from_random(1),
        actor: "child".to_owned(),
        display: None,
    };
    let mut effects = engine.request_launch(&request, world.now()).effects;
    let written = |effects: &Effects| -> Vec<&'static str> {
        let writes = effects.iter().flat_map(|effect| match effect {
            Effect::Persist { writes, .. } => writes.as_slice(),
            _ => &[],
        });
        let name = |write: &StoreWrite| match write {
            StoreWrite::AppendAudit(_) => "audit",
            StoreWrite::SaveSnapshot(_) => "snapshot",
            StoreWrite::AddUsage { .. }
            | StoreWrite::SetCooldown { .. }
            | StoreWrite::SaveSession(_)
            | StoreWrite::DeleteSession(_) => "other",
        };
        writes.map(name).collect()
    };
    effects.discard_audit_lines(|what| matches!(what, AuditKind::DaemonStopped));
    assert_eq!(written(&effects), ["audit", "snapshot"]);
    effects.discard_audit_lines(|what| matches!(what, AuditKind::LaunchDenied { .. }));
    assert_eq!(written(&effects), ["snapshot"]);
}
