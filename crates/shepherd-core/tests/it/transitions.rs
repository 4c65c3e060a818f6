//! Every event in every state (S3.6): its result and the next state.

use shepherd_api::{SessionPhase, StopMode, StopRequester, WarningSeverity};
use shepherd_core::policy::{OnShutdown, Policy, WarningPolicy, WarningThreshold};
use shepherd_core::{
    CoreEvent, ExitInfo, LaunchDecision, SessionLiveness, SessionStage, StopDecision, StopRequest,
};
use shepherd_util::SessionId;

use crate::harness::{EngineHarness, entry_with_max_run, minutes, policy_with, warning};

const STATES: [&str; 6] = ["idle", "launching", "withdrawn", "running", "warned", "expiring"];

fn half_hour_policy() -> Policy {
    let mut game = entry_with_max_run(minutes(30));
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    policy_with(vec![game], |rules| rules.on_shutdown = OnShutdown::EndSessions)
}

/// Returns an engine in a state.
fn world_in(state: &str) -> EngineHarness {
    let mut world = EngineHarness::new(half_hour_policy(), "2026-11-16 12:00");
    match state {
        "idle" => {}
        "launching" => assert!(matches!(world.request_launch("game"), LaunchDecision::Approved(_))),
        "withdrawn" => {
            assert!(matches!(world.request_launch("game"), LaunchDecision::Approved(_)));
            assert_eq!(apply_event(&mut world, "stop"), "stop");
        }
        "running" => {
            world.launch("game");
        }
        "warned" => {
            world.launch("game");
            world.run_for(minutes(26));
        }
        "expiring" => {
            world.launch("game");
            world.run_for(minutes(31));
        }
        other => panic!("no state {other}"),
    }
    world.tick();
    assert_eq!(stored_phase(&world), state);
    world
}

/// Returns the state that clients see, or `withdrawn` for a session that ends before its program has started.
fn stored_phase(world: &EngineHarness) -> &'static str {
    let stage = world.engine.sessions().only().map(|session| &session.stage);
    if matches!(stage, Some(SessionStage::Withdrawn { .. })) {
        assert_eq!(shown_phase(world), "expiring");
        return "withdrawn";
    }
    shown_phase(world)
}

fn shown_phase(world: &EngineHarness) -> &'static str {
    match world.engine.get_state(world.now()).session.map(|session| session.phase) {
        None => "idle",
        Some(SessionPhase::Launching) => "launching",
        Some(SessionPhase::Running) => "running",
        Some(SessionPhase::Warned) => "warned",
        Some(SessionPhase::Expiring) => "expiring",
    }
}

/// Returns the events as words.
fn event_names(events: &[CoreEvent]) -> String {
    let word = |event: &CoreEvent| match event {
        CoreEvent::SessionLaunching { .. } => "launching".to_owned(),
        CoreEvent::SessionStarted { .. } => "started".to_owned(),
        CoreEvent::Warning { threshold_secs, .. } => format!("warning {threshold_secs}"),
        CoreEvent::DeadlineChanged { .. } => "deadline".to_owned(),
        CoreEvent::ExpireDue { .. } => "expire".to_owned(),
        CoreEvent::StopRequested { .. } => "stop requested".to_owned(),
        CoreEvent::SessionEnded { reason, .. } => {
            let json = serde_json::to_value(reason).unwrap();
            format!("ended {}", json["reason"].as_str().unwrap())
        }
        CoreEvent::EntryAvailabilityChanged => "availability".to_owned(),
        CoreEvent::PolicyReloaded { .. } => "reloaded".to_owned(),
        CoreEvent::GrantChanged { .. } => "grant".to_owned(),
        CoreEvent::RequestChanged { .. } => "request".to_owned(),
    };
    events.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Applies an event, and returns the result as words.
fn apply_event(world: &mut EngineHarness, event: &str) -> String {
    // The current session, or an unknown one.
    let known = world.engine.sessions().only().map(|session| session.session_id.clone());
    let stranger = SessionId::from_random(999);
    let own = known.unwrap_or_else(|| stranger.clone());
    let exit = |session_id: SessionId| ExitInfo { session_id, code: Some(0), signal: None };
    let now = world.now();
    let reply = match event {
        "launch" => match world.request_launch("game") {
            LaunchDecision::Approved(_) => "approved".to_owned(),
            LaunchDecision::Denied { reasons } => {
                format!(
                    "denied {}",
                    reasons.iter().map(shepherd_api::ReasonCode::code).collect::<Vec<_>>().join(" ")
                )
            }
        },
        "start" => world
            .engine
            .start_session(&own, "handle".to_owned(), now)
            .map_or("not awaited".to_owned(), |events| event_names(&events)),
        "strange start" => world
            .engine
            .start_session(&stranger, "handle".to_owned(), now)
            .map_or("not awaited".to_owned(), |events| event_names(&events)),
        "failure" => event_names(&world.engine.launch_failed(&own, "no such file".to_owned(), now)),
        "strange failure" => event_names(&world.engine.launch_failed(&stranger, String::new(), now)),
        "exit" => event_names(&world.engine.notify_session_exited(&exit(own), now)),
        "strange exit" => event_names(&world.engine.notify_session_exited(&exit(stranger), now)),
        "stop" => {
            let (by, mode) = (StopRequester::User, StopMode::Graceful);
            match world.engine.stop_current(&StopRequest { by, mode, actor: "child".to_owned() }, now) {
                StopDecision::Stop { .. } => "stop".to_owned(),
                StopDecision::NothingToStop => "nothing to stop".to_owned(),
            }
        }
        "tick" => event_names(&world.engine.tick(now)),
        "five minutes" => {
            world.clock.advance(minutes(5));
            event_names(&world.engine.tick(world.now()))
        }
        "an hour" => {
            world.clock.advance(minutes(60));
            event_names(&world.engine.tick(world.now()))
        }
        "reload" => event_names(&world.engine.reload(half_hour_policy(), None, "parent", now)),
        "crash, alive" => {
            world.crash();
            let liveness = SessionLiveness::Alive { handle: "handle".to_owned() };
            event_names(&world.engine.recover(liveness, now))
        }
        "crash, gone" => {
            world.crash();
            event_names(&world.engine.recover(SessionLiveness::Gone, now))
        }
        "crash, gone unseen" => {
            world.crash();
            event_names(&world.engine.recover(SessionLiveness::GoneAfterStart, now))
        }
        "shut down" => event_names(&world.engine.shut_down(now)),
        other => panic!("no event {other}"),
    };
    world.sync();
    reply
}

/// Checks the result of an event and the next state, for each state.
fn check(event: &str, expected: [(&str, &str); 6]) {
    for (state, (out, after)) in STATES.into_iter().zip(expected) {
        let mut world = world_in(state);
        let reply = apply_event(&mut world, event);
        assert_eq!((reply.as_str(), stored_phase(&world)), (out, after), "{event} while {state}");
    }
}

#[test]
fn a_launch_is_approved_only_when_nothing_runs() {
    let denied = "denied session-active";
    check(
        "launch",
        [
            ("approved", "launching"),
            (denied, "launching"),
            (denied, "withdrawn"),
            (denied, "running"),
            (denied, "warned"),
            (denied, "expiring"),
        ],
    );
}

#[test]
fn only_a_launch_that_waits_can_start_or_fail() {
    check(
        "start",
        [
            ("not awaited", "idle"),
            ("started", "running"),
            ("expire", "expiring"),
            ("not awaited", "running"),
            ("not awaited", "warned"),
            ("not awaited", "expiring"),
        ],
    );
    check(
        "failure",
        [
            ("", "idle"),
            ("ended launch_failed, availability", "idle"),
            ("ended launch_failed, availability", "idle"),
            ("", "running"),
            ("", "warned"),
            ("", "expiring"),
        ],
    );
}

#[test]
fn an_exit_ends_in_any_state() {
    check(
        "exit",
        [
            ("", "idle"),
            ("ended launch_failed, availability", "idle"),
            ("ended stopped, availability", "idle"),
            ("ended exited, availability", "idle"),
            ("ended exited, availability", "idle"),
            ("ended expired, availability", "idle"),
        ],
    );
}

#[test]
fn events_of_another_session_change_nothing() {
    // S6.2b.
    let same = STATES.map(|state| ("", state));
    check("strange exit", same);
    check("strange failure", same);
    check("strange start", STATES.map(|state| ("not awaited", state)));
}

#[test]
fn a_stop_ends_a_session_in_any_state() {
    check(
        "stop",
        [
            ("nothing to stop", "idle"),
            ("stop", "withdrawn"),
            ("stop", "withdrawn"),
            ("stop", "expiring"),
            ("stop", "expiring"),
            ("stop", "expiring"),
        ],
    );
}

#[test]
fn time_alone_warns_and_expires_each_once() {
    // S13.4.
    check("tick", STATES.map(|state| ("", state)));
    check(
        "five minutes",
        [
            ("", "idle"),
            ("ended launch_timed_out, availability", "idle"),
            ("ended launch_timed_out, availability", "idle"),
            ("", "running"),
            ("expire", "expiring"),
            ("", "expiring"),
        ],
    );
    check(
        "an hour",
        [
            ("", "idle"),
            ("ended launch_timed_out, availability", "idle"),
            ("ended launch_timed_out, availability", "idle"),
            ("warning 300, expire", "expiring"),
            ("expire", "expiring"),
            ("", "expiring"),
        ],
    );
}

#[test]
fn a_reload_leaves_the_state_alone() {
    // S7.3.
    check("reload", STATES.map(|state| ("reloaded, availability", state)));
}

#[test]
fn a_restart_continues_or_ends_the_session() {
    // S9.1, S9.2.
    check(
        "crash, alive",
        [
            ("", "idle"),
            ("", "running"),
            ("expire", "expiring"),
            ("", "running"),
            ("", "warned"),
            ("expire", "expiring"),
        ],
    );
    check(
        "crash, gone",
        [
            ("", "idle"),
            ("ended launch_failed, availability", "idle"),
            ("ended launch_failed, availability", "idle"),
            ("ended lost, availability", "idle"),
            ("ended lost, availability", "idle"),
            ("ended lost, availability", "idle"),
        ],
    );
    let lost = ("ended lost, availability", "idle");
    check("crash, gone unseen", [("", "idle"), lost, lost, lost, lost, lost]);
}

#[test]
fn a_shutdown_ends_each_session_once() {
    // S9.3, S13.4.
    check(
        "shut down",
        [
            ("", "idle"),
            ("expire", "withdrawn"),
            ("", "withdrawn"),
            ("expire", "expiring"),
            ("expire", "expiring"),
            ("", "expiring"),
        ],
    );
}

#[test]
fn a_warned_session_shows_the_severity() {
    // S3.6: the levels of `Warned` are those of S2.5. A softer warning after a louder one changes nothing.
    let levels = [(10, WarningSeverity::Info), (5, WarningSeverity::Critical), (1, WarningSeverity::Warn)];
    let warnings = levels.map(|(before, severity)| WarningThreshold { severity, ..warning(minutes(before)) });
    let mut game = entry_with_max_run(minutes(20));
    game.warnings = WarningPolicy::new(warnings.into());
    let mut world = EngineHarness::new(policy_with(vec![game], |_| {}), "2026-11-16 12:00");
    world.launch("game");
    let shown = |world: &EngineHarness| {
        let session = world.engine.get_state(world.now()).session.unwrap();
        (session.phase, session.warned)
    };
    assert_eq!(shown(&world), (SessionPhase::Running, None));
    for (passed, level) in
        [(10, WarningSeverity::Info), (5, WarningSeverity::Critical), (4, WarningSeverity::Critical)]
    {
        world.run_for(minutes(passed));
        assert_eq!(shown(&world), (SessionPhase::Warned, Some(level)));
        // A restarted daemon knows it, too.
        world.crash();
        world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
        assert_eq!(shown(&world), (SessionPhase::Warned, Some(level)));
    }
    world.run_for(minutes(1));
    assert_eq!(shown(&world), (SessionPhase::Expiring, None));
}
