//! What stands around a command on this machine, found out by running one that does nothing.

use std::time::Duration;

use collieclaw_gate::{GatePolicy, MachineFacts};
use ward_diag::ErrorChain;
use ward_process::sandbox::SandboxNetwork;
use ward_process::{Containment, LimitEnforcement, LimitReport, StopLadder};

use super::super::tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};
use super::executor::next_tree_id;
use super::report::{describe_missing, missing_protections};
use crate::security::SystemFacts;

/// The limits of a command depend on its time; of one that does nothing, this.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub struct SandboxProbe {
    /// What holds the processes of a command together.
    pub containment: Containment,
    limits: Vec<LimitReport>,
    missing: Vec<String>,
}

impl SandboxProbe {
    /// Runs `true` as a command would be run, with nothing of the workspace.
    ///
    /// # Errors
    /// When it can't be run, which is why no command can.
    pub fn run(policy: &GatePolicy) -> Result<Self, String> {
        let reach = SandboxAccess {
            workspace: WorkspaceAccess::Closed,
            network: SandboxNetwork::Off,
            own_program: None,
            programs: Vec::new(),
            timeout: PROBE_TIMEOUT,
        };
        let room = ToolSandbox::new(&reach, policy)?;
        let program = SystemFacts.find_program("true").ok_or("there is no `true` to try it with")?;
        let order = room.prepare_spawn(&program, &["true".to_owned()], &[], "/".as_ref());
        let supervisor = room.supervisor();
        let mut tree =
            supervisor.spawn(next_tree_id()?, order).map_err(|error| ErrorChain(&error).to_string())?;
        let trial = Self {
            containment: tree.containment(),
            limits: tree.limit_reports().to_vec(),
            missing: missing_protections(&tree),
        };
        supervisor.stop(&mut tree, StopLadder::force()).map_err(|error| ErrorChain(&error).to_string())?;
        Ok(trial)
    }

    /// What of the sandbox is in force, in the words of a receipt.
    #[must_use]
    pub fn sandbox_level(&self) -> String {
        describe_missing(&self.missing)
    }

    /// The limits that nothing keeps, with the reason.
    pub fn unenforced_limits(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.limits.iter().filter_map(|report| match &report.kept {
            LimitEnforcement::Not { reason } => Some((report.limit, reason.as_str())),
            LimitEnforcement::ByCgroup | LimitEnforcement::ByResourceLimit => None,
        })
    }
}
