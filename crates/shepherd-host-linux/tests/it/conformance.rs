//! The Linux host passes the conformance suite (S5.4) in every containment that this machine supports.

use std::path::PathBuf;
use std::time::Duration;

use shepherd_core::policy::PolicyEntry;
use shepherd_host_api::conformance::{ConformanceHarness, TestProgram, run};
use shepherd_host_linux::{LinuxHost, LinuxHostOptions};
use shepherd_util::SessionId;
use ward_process::Containment;

use crate::harness::{containments, entry, new_session, process, script};

struct LinuxHarness {
    state: PathBuf,
    containment: Containment,
}

impl ConformanceHarness for LinuxHarness {
    type TestedHost = LinuxHost;

    fn host(&mut self) -> LinuxHost {
        let mut options = LinuxHostOptions::new(self.state.clone());
        options.containment = Some(self.containment);
        LinuxHost::new(options).unwrap()
    }

    fn entry_for(&mut self, program: TestProgram) -> PolicyEntry {
        match program {
            TestProgram::EndsOnRequest => entry(process(&["sleep", "600"])),
            TestProgram::IgnoresRequests => script("ignore term; sleep 600000"),
            TestProgram::Exits { after, code } => {
                script(&format!("sleep {}; exit {code}", after.as_millis()))
            }
            TestProgram::KillsItself => entry(process(&["sh", "-c", "kill -9 $$"])),
            // A process group can't see a daemon that left it, so the first process stays here.
            TestProgram::ForksAndExits if self.containment == Containment::ProcessGroup => {
                script("fork 1 [ sleep 600000 ]; sleep 600000")
            }
            TestProgram::ForksAndExits => script("daemon [ sleep 600000 ]; exit 0"),
            TestProgram::FailsToStart => entry(process(&["no-such-program"])),
        }
    }

    fn new_session_id(&mut self) -> SessionId {
        new_session()
    }

    /// A test in `many_sessions` makes a thousand rounds.
    fn stop_start_rounds(&self) -> usize {
        25
    }

    /// A real host has no other clock than the real one.
    fn advance_time(&mut self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[test]
fn the_linux_host_conforms_in_every_containment() {
    // The cases mostly wait, so all containments run at the same time.
    std::thread::scope(|scope| {
        for containment in containments() {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut harness = LinuxHarness { state: folder.path().to_owned(), containment };
                assert_eq!(run(&mut harness), [], "{containment}");
            });
        }
    });
}
