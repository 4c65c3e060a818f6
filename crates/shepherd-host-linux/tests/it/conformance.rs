//! The suite that every host is held to (S5.4), in every containment that this machine gives.

use std::path::PathBuf;
use std::time::Duration;

use shepherd_core::policy::Entry;
use shepherd_host_api::conformance::{Part, Stage, run};
use shepherd_host_linux::{LinuxHost, LinuxHostOptions};
use shepherd_util::SessionId;
use ward_process::Containment;

use crate::harness::{containments, entry, new_session, process, script};

struct LinuxStage {
    state: PathBuf,
    containment: Containment,
}

impl Stage for LinuxStage {
    type Host = LinuxHost;

    fn host(&mut self) -> LinuxHost {
        let mut options = LinuxHostOptions::new(self.state.clone());
        options.containment = Some(self.containment);
        LinuxHost::new(options).unwrap()
    }

    fn entry(&mut self, part: Part) -> Entry {
        match part {
            Part::Runs => entry(process(&["sleep", "600"])),
            Part::Ignores => script("ignore term; sleep 600000"),
            Part::Exits { after, code } => script(&format!("sleep {}; exit {code}", after.as_millis())),
            Part::KillsItself => entry(process(&["sh", "-c", "kill -9 $$"])),
            // What a process group can't hold it can't see, so that its wrapper stays.
            Part::HandsOver if self.containment == Containment::ProcessGroup => {
                script("fork 1 [ sleep 600000 ]; sleep 600000")
            }
            Part::HandsOver => script("daemon [ sleep 600000 ]; exit 0"),
            Part::Fails => entry(process(&["no-such-program"])),
        }
    }

    fn session_id(&mut self) -> SessionId {
        new_session()
    }

    /// A thousand are made elsewhere.
    fn pairs(&self) -> usize {
        25
    }

    fn pass(&mut self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[test]
fn the_host_holds_to_everything_in_every_containment() {
    // Mostly waiting, so all at once.
    std::thread::scope(|scope| {
        for containment in containments() {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut stage = LinuxStage { state: folder.path().to_owned(), containment };
                assert_eq!(run(&mut stage), [], "{containment}");
            });
        }
    });
}
