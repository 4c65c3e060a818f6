//! The conformance suite notices hosts that make mistakes.

use std::time::Duration;

use shepherd_core::policy::{Policy, PolicyEntry, WindowDisplay};
use shepherd_host_api::conformance::{ConformanceHarness, ConformanceViolation, TestProgram, run};
use shepherd_host_api::{
    FakeHost, HostAdapter, HostCapabilities, HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest,
};
use shepherd_util::SessionId;

use crate::conformance::FakeHarness;

/// The mistake that a host makes on purpose.
#[derive(Clone, Copy)]
enum HostFlaw {
    IgnoresStops,
    ReattachesNothing,
    StopsWrongSession,
}

/// A fake host with a flaw. It remembers the session that was started last.
struct FlawedHost {
    inner: FakeHost,
    flaw: HostFlaw,
    latest: Option<SessionId>,
}

impl HostAdapter for FlawedHost {
    fn capabilities(&self) -> HostCapabilities {
        self.inner.capabilities()
    }
    fn limitations(&self) -> Vec<String> {
        self.inner.limitations()
    }
    fn subscribe(&mut self) -> HostEvents {
        self.inner.subscribe()
    }
    fn apply_policy(&mut self, policy: &Policy) {
        self.inner.apply_policy(policy);
    }
    fn spawn(&mut self, request: HostSpawnRequest) {
        self.latest = Some(request.session_id.clone());
        self.inner.spawn(request);
    }
    fn stop(&mut self, mut request: HostStopRequest) {
        match (self.flaw, &self.latest) {
            (HostFlaw::IgnoresStops, _) => return,
            (HostFlaw::StopsWrongSession, Some(latest)) => request.session_id = latest.clone(),
            _ => {}
        }
        self.inner.stop(request);
    }
    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        match self.flaw {
            HostFlaw::ReattachesNothing => self.inner.reattach(&SessionId::from_random(0), None),
            _ => self.inner.reattach(session_id, handle),
        }
    }
    fn recorded_sessions(&self) -> Vec<SessionId> {
        self.inner.recorded_sessions()
    }
    fn show_window(&mut self, session_id: &SessionId, display: WindowDisplay) {
        self.inner.show_window(session_id, display);
    }
}

struct FlawedHarness(FakeHarness, HostFlaw);

impl ConformanceHarness for FlawedHarness {
    type TestedHost = FlawedHost;

    fn host(&mut self) -> FlawedHost {
        FlawedHost { inner: self.0.host(), flaw: self.1, latest: None }
    }
    fn entry_for(&mut self, program: TestProgram) -> PolicyEntry {
        self.0.entry_for(program)
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
        "a stop of an unknown session reports it as gone",
    ] {
        assert!(violated.contains(&case), "{case}");
    }
}

#[test]
fn a_host_that_reattaches_nothing_fails_the_suite() {
    let violated = violated_cases(HostFlaw::ReattachesNothing);
    assert!(violated.contains(&"a program is reattached without its handle and can be stopped"));
}

#[test]
fn a_host_that_stops_another_session_fails_the_suite() {
    let violated = violated_cases(HostFlaw::StopsWrongSession);
    assert_eq!(violated, ["of two sessions only the named session is stopped"]);
}
