//! The conformance suite, played by the fake host (S5.4), and by hosts that are wrong, so that it is known to notice.

use std::time::Duration;

use shepherd_core::policy::{Display, Entry, Policy};
use shepherd_host_api::conformance::{Part, Stage, Violation, run};
use shepherd_host_api::{
    ExitStatus, FakeHost, FakeProgram, FakeStart, FakeWorld, Host, HostCapabilities, HostEvents,
    HostSessionHandle, SpawnOrder, StopOrder, WhenAsked,
};
use shepherd_util::SessionId;

use crate::fake::entry;

#[derive(Default)]
struct FakeStage {
    world: FakeWorld,
    sessions: u128,
}

impl Stage for FakeStage {
    type Host = FakeHost;

    fn host(&mut self) -> FakeHost {
        self.world.host()
    }

    fn entry(&mut self, part: Part) -> Entry {
        let (name, program) = match part {
            Part::Runs | Part::HandsOver => ("runs", FakeProgram::default()),
            Part::Ignores => {
                ("ignores", FakeProgram { when_asked: WhenAsked::Ignores, ..FakeProgram::default() })
            }
            Part::Exits { after, code } => {
                let status = ExitStatus { code: Some(code), signal: None };
                ("exits", FakeProgram { ends: Some((after, status)), ..FakeProgram::default() })
            }
            Part::KillsItself => {
                let status = ExitStatus { code: None, signal: Some(9) };
                ("dies", FakeProgram { ends: Some((Duration::ZERO, status)), ..FakeProgram::default() })
            }
            Part::Fails => {
                let detail = "entry `fails`: there is no such program; install it".to_owned();
                ("fails", FakeProgram { start: FakeStart::Fails { detail }, ..FakeProgram::default() })
            }
        };
        let entry = entry(name);
        self.world.script(&entry.entry_id, program);
        entry
    }

    fn session_id(&mut self) -> SessionId {
        self.sessions += 1;
        SessionId::from_random(self.sessions)
    }

    fn pass(&mut self, duration: Duration) {
        self.world.elapse(duration);
    }
}

#[test]
fn the_fake_host_holds_to_everything() {
    assert_eq!(run(&mut FakeStage::default()), []);
}

/// What is wrong with a host.
#[derive(Clone, Copy)]
enum Flaw {
    ForgetsStops,
    TakesNothingBack,
    StopsTheWrongOne,
}

/// The fake host with a flaw.
struct FlawedHost(FakeHost, Flaw, Option<SessionId>);

impl Host for FlawedHost {
    fn capabilities(&self) -> HostCapabilities {
        self.0.capabilities()
    }
    fn limitations(&self) -> Vec<String> {
        self.0.limitations()
    }
    fn subscribe(&mut self) -> HostEvents {
        self.0.subscribe()
    }
    fn policy_changed(&mut self, policy: &Policy) {
        self.0.policy_changed(policy);
    }
    fn spawn(&mut self, order: SpawnOrder) {
        self.2 = Some(order.session_id.clone());
        self.0.spawn(order);
    }
    fn stop(&mut self, mut order: StopOrder) {
        match (self.1, &self.2) {
            (Flaw::ForgetsStops, _) => return,
            (Flaw::StopsTheWrongOne, Some(latest)) => order.session_id = latest.clone(),
            _ => {}
        }
        self.0.stop(order);
    }
    fn reattach(&mut self, session_id: &SessionId, handle: Option<&HostSessionHandle>) {
        match self.1 {
            Flaw::TakesNothingBack => self.0.reattach(&SessionId::from_random(0), None),
            _ => self.0.reattach(session_id, handle),
        }
    }
    fn earlier_sessions(&self) -> Vec<SessionId> {
        self.0.earlier_sessions()
    }
    fn show(&mut self, session_id: &SessionId, display: Display) {
        self.0.show(session_id, display);
    }
}

struct FlawedStage(FakeStage, Flaw);

impl Stage for FlawedStage {
    type Host = FlawedHost;

    fn host(&mut self) -> FlawedHost {
        FlawedHost(self.0.host(), self.1, None)
    }
    fn entry(&mut self, part: Part) -> Entry {
        self.0.entry(part)
    }
    fn session_id(&mut self) -> SessionId {
        self.0.session_id()
    }
    fn pass(&mut self, duration: Duration) {
        self.0.pass(duration);
    }
}

fn violated(flaw: Flaw) -> Vec<&'static str> {
    let violations: Vec<Violation> = run(&mut FlawedStage(FakeStage::default(), flaw));
    violations.into_iter().map(|violation| violation.case).collect()
}

#[test]
fn a_host_that_forgets_stops_is_found_out() {
    let violated = violated(Flaw::ForgetsStops);
    for case in [
        "a program that starts is reported and ends when it is killed",
        "a program that ignores the request is killed when its grace is over",
        "a session that nobody knows is gone",
    ] {
        assert!(violated.contains(&case), "{case}");
    }
}

#[test]
fn a_host_that_takes_nothing_back_is_found_out() {
    let violated = violated(Flaw::TakesNothingBack);
    assert!(violated.contains(&"a program is taken back without its handle and can be ended"));
}

#[test]
fn a_host_that_stops_another_session_is_found_out() {
    let violated = violated(Flaw::StopsTheWrongOne);
    assert_eq!(violated, ["of two sessions only the one that is meant is ended"]);
}
