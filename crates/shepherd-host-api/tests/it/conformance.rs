//! The fake host passes the conformance suite (S5.4).
//!
//! The suite covers the whole interface of a host (S5.3).

use std::time::Duration;

use shepherd_core::policy::PolicyEntry;
use shepherd_host_api::conformance::{ConformanceHarness, TestProgram, run};
use shepherd_host_api::{ExitStatus, FakeHost, FakePlatform, FakeProgram, FakeStart, StopResponse};
use shepherd_util::SessionId;

use crate::fake::entry;

#[derive(Default)]
pub(crate) struct FakeHarness {
    platform: FakePlatform,
    sessions: u128,
}

impl ConformanceHarness for FakeHarness {
    type TestedHost = FakeHost;

    fn host(&mut self) -> FakeHost {
        self.platform.host()
    }

    fn entry_for(&mut self, program: TestProgram) -> PolicyEntry {
        let (name, script) = match program {
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
        self.platform.set_script(&entry.entry_id, script);
        entry
    }

    fn new_session_id(&mut self) -> SessionId {
        self.sessions += 1;
        SessionId::from_random(self.sessions)
    }

    fn advance_time(&mut self, duration: Duration) {
        self.platform.advance_time(duration);
    }
}

#[test]
fn the_fake_host_conforms() {
    assert_eq!(run(&mut FakeHarness::default()), []);
}
