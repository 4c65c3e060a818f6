//! What stands around a command on this machine, found out by running one that does nothing.

use std::time::Duration;

use collieclaw_gate::{Facts, GatePolicy};
use ward_diag::Chain;
use ward_process::sandbox::Network;
use ward_process::{Containment, Kept, Ladder, LimitReport};

use super::super::room::{Ground, Reach, Room};
use super::carry_out::next_id;
use super::told::{missing, words};
use crate::security::SystemFacts;

/// The limits of a command depend on its time; of one that does nothing, this.
const A_MOMENT: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub struct Trial {
    /// What holds the processes of a command together.
    pub containment: Containment,
    limits: Vec<LimitReport>,
    missing: Vec<String>,
}

impl Trial {
    /// Runs `true` as a command would be run, with nothing of the workspace.
    ///
    /// # Errors
    /// When it can't be run, which is why no command can.
    pub fn run(policy: &GatePolicy) -> Result<Self, String> {
        let reach = Reach {
            workspace: Ground::Closed,
            network: Network::Off,
            own: None,
            programs: Vec::new(),
            time: A_MOMENT,
        };
        let room = Room::new(&reach, policy)?;
        let program = SystemFacts.program("true").ok_or("there is no `true` to try it with")?;
        let order = room.order(&program, &["true".to_owned()], &[], "/".as_ref());
        let supervisor = room.supervisor();
        let mut tree = supervisor.spawn(next_id()?, order).map_err(|error| Chain(&error).to_string())?;
        let trial = Self {
            containment: tree.containment(),
            limits: tree.limit_reports().to_vec(),
            missing: missing(&tree),
        };
        supervisor.stop(&mut tree, Ladder::force()).map_err(|error| Chain(&error).to_string())?;
        Ok(trial)
    }

    /// What of the sandbox is in force, in the words of a receipt.
    #[must_use]
    pub fn level(&self) -> String {
        words(&self.missing)
    }

    /// The limits that nothing keeps, with the reason.
    pub fn unkept(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.limits.iter().filter_map(|report| match &report.kept {
            Kept::Not { reason } => Some((report.limit, reason.as_str())),
            Kept::ByCgroup | Kept::ByResourceLimit => None,
        })
    }
}
