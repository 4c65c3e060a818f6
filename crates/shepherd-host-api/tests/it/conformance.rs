//! The conformance suite, played by the fake host (S5.4), and by hosts that are wrong, so that it is known to notice.

use std::time::Duration;

use shepherd_core::policy::{Policy, PolicyEntry, WindowDisplay};
use shepherd_host_api::conformance::{ConformanceHarness, ConformanceViolation, TestProgram, run};
use shepherd_host_api::{
    ExitStatus, FakeHost, FakePlatform, FakeProgram, FakeStart, HostAdapter, HostCapabilities, HostEvents,
    HostSessionHandle, HostSpawnRequest, HostStopRequest, StopResponse,
};
use shepherd_util::SessionId;

use crate::fake::entry;

#[derive(Default)]
struct FakeHarness {
    world: FakePlatform,
    sessions: u128,
}

impl ConformanceHarness for FakeHarness {
    type TestedHost = FakeHost;

    fn host(&mut self) -> FakeHost {
        self.world.host()
    }

    fn entry_for(&mut self, part: TestProgram) -> PolicyEntry {
        let (name, program) = match part {
            TestProgram::EndsOnRequest | TestProgram::ForksAndExits => ("runs", FakeProgram::default()),
            TestProgram::IgnoresRequests => {
                ("ignores", FakeProgram { stop_response: StopResponse::Ignores, ..FakeProgram::default() })
            }
            TestProgram::Exits { after, code } => {
                let status = ExitStatus { code: Some(code), signal: None };
                ("exits", FakeProgram { exits: Some((after, status)), ..FakeProgram::default() })
            }
            TestProgram::KillsItself => {
                let status = ExitStatus { code: None, signal: Some(9) };
                ("dies", FakeProgram { exits: Some((Duration::ZERO, status)), ..FakeProgram::default() })
            }
            TestProgram::FailsToStart => {
                let detail = "entry `fails`: there is no such program; install it".to_owned();
                ("fails", FakeProgram { start: FakeStart::Fails { detail }, ..FakeProgram::default() })
            }
        };
        let entry = entry(name);
        self.world.set_script(&entry.entry_id, program);
        entry
    }

    fn new_session_id(&mut self) -> SessionId {
        self.sessions += 1;
        SessionId::from_random(self.sessions)
    }

    fn advance_time(&mut self, duration: Duration) {
        self.world.advance_time(duration);
    }
}

#[test]
fn the_fake_host_conforms() {
    assert_eq!(run(&mut FakeHarness::default()), []);
}

/// What is wrong with a host.
#[derive(Clone, Copy)]
enum HostFlaw {
    IgnoresStops,
    ReattachesNothing,
    StopsWrongSession,
}

/// The fake host with a flaw.
struct FlawedHost(FakeHost, HostFlaw, Option<SessionId>);

impl HostAdapter for FlawedHost {
    fn capabilities(&self) -> HostCapabilities {
        self.0.capabilities()
    }
    fn limitations(&self) -> Vec<String> {
        self.0.limitations()
    }
    fn subscribe(&mut self) -> HostEvents {
        self.0.subscribe()
    }
    fn apply_policy(&mut self, policy: &Policy) {
        self.0.apply_policy(policy);
    }
    fn spawn(&mut self, order: HostSpawnRequest) {
        self.2 = Some(order.session_id.clone());
        self.0.spawn(order);
    }
    fn stop(&mut self, mut order: HostStopRequest) {
        match (self.1, &self.2) {
            (HostFlaw::IgnoresStops, _) => return,
            (HostFlaw::StopsWrongSession, Some(latest)) => order.session_id = latest.clone(),
            _ => {}
        }
        self.0.stop(order);
    }
    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        match self.1 {
            HostFlaw::ReattachesNothing => self.0.reattach(&SessionId::from_random(0), None),
            _ => self.0.reattach(session_id, handle),
        }
    }
    fn recorded_sessions(&self) -> Vec<SessionId> {
        self.0.recorded_sessions()
    }
    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay) {
        self.0.show_window(session_id, display);
    }
}

struct FlawedHarness(FakeHarness, HostFlaw);

impl ConformanceHarness for FlawedHarness {
    type TestedHost = FlawedHost;

    fn host(&mut self) -> FlawedHost {
        FlawedHost(self.0.host(), self.1, None)
    }
    fn entry_for(&mut self, part: TestProgram) -> PolicyEntry {
        self.0.entry_for(part)
    }
    fn new_session_id(&mut self) -> SessionId {
        self.0.new_session_id()
    }
    fn advance_time(&mut self, duration: Duration) {
        self.0.advance_time(duration);
    }
}

fn violated_cases(flaw: HostFlaw) -> Vec<&'static str> {
    let violations: Vec<ConformanceViolation> = run(&mut FlawedHarness(FakeHarness::default(), flaw));
    violations.into_iter().map(|violation| violation.case).collect()
}

#[test]
fn a_host_that_ignores_stops_fails_the_suite() {
    let violated = violated_cases(HostFlaw::IgnoresStops);
    for case in [
        "a program that starts is reported and ends when it is killed",
        "a program that ignores the request is killed when its grace is over",
        "a session that nobody knows is gone",
    ] {
        assert!(violated.contains(&case), "{case}");
    }
}

#[test]
fn a_host_that_reattaches_nothing_fails_the_suite() {
    let violated = violated_cases(HostFlaw::ReattachesNothing);
    assert!(violated.contains(&"a program is taken back without its handle and can be ended"));
}

#[test]
fn a_host_that_stops_another_session_fails_the_suite() {
    let violated = violated_cases(HostFlaw::StopsWrongSession);
    assert_eq!(violated, ["of two sessions only the one that is meant is ended"]);
}
