//! Finds out which protections this machine offers, by running a command that does nothing.

use std::time::Duration;

use collieclaw_gate::{GatePolicy, MachineFacts};
use ward_diag::ErrorChain;
use ward_process::sandbox::SandboxNetwork;
use ward_process::{Containment, LimitEnforcement, LimitReport, StopLadder};

use super::super::tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};
use super::super::toolchain_access::ToolchainAccess;
use super::executor::next_tree_id;
use super::report::{describe_missing, missing_protections};
use crate::security::{SystemFacts, exec_judging_fault};

/// The time limit of the probe, from which other limits are derived.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of a probe.
#[derive(Debug)]
pub struct SandboxProbe {
    /// The mechanism that holds the processes of a command together.
    pub containment: Containment,
    limits: Vec<LimitReport>,
    missing: Vec<String>,
}

impl SandboxProbe {
    /// Runs `true` in the sandbox of a command, without access to the workspace.
    ///
    /// # Errors
    /// Fails if the program can't be run. In that case no command can be run.
    pub fn run(policy: &GatePolicy) -> Result<Self, String> {
        let access = SandboxAccess {
            workspace: WorkspaceAccess::Closed,
            network: SandboxNetwork::Loopback,
            own_program: None,
            programs: Vec::new(),
            toolchain: ToolchainAccess::default(),
            timeout: PROBE_TIMEOUT,
        };
        let sandbox = ToolSandbox::new(&access, policy)?;
        let program = SystemFacts.find_program("true").ok_or("could not find the program `true`")?;
        let spec = sandbox.prepare_spawn(&program, &["true".to_owned()], &[], "/".as_ref());
        let supervisor = sandbox.supervisor();
        let mut tree =
            supervisor.spawn(next_tree_id()?, spec).map_err(|error| ErrorChain(&error).to_string())?;
        let probe = Self {
            containment: tree.containment(),
            limits: tree.limit_reports().to_vec(),
            missing: missing_protections(&tree),
        };
        supervisor.stop(&mut tree, StopLadder::force()).map_err(|error| ErrorChain(&error).to_string())?;
        Ok(probe)
    }

    /// Returns the level of the sandbox, as in a receipt.
    #[must_use]
    pub fn sandbox_level(&self) -> String {
        describe_missing(&self.missing)
    }

    /// Returns the reason why this machine can't judge programs when they are executed, or `None` if it can.
    #[must_use]
    pub fn exec_judging_fault(&self) -> Option<&'static str> {
        exec_judging_fault()
    }

    /// Returns the limits that this machine can't enforce, with the reasons.
    pub fn unenforced_limits(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.limits.iter().filter_map(|report| match &report.kept {
            LimitEnforcement::Not { reason } => Some((report.limit, reason.as_str())),
            LimitEnforcement::ByCgroup | LimitEnforcement::ByResourceLimit | LimitEnforcement::ByWatching => {
                None
            }
        })
    }
}
