//! Tools of others. What they do with their arguments nobody here knows: they are judged by what they were configured
//! to be, and by what their sandbox lets them reach.

use crate::reason::GateReason;
use crate::verdict::{GateFindings, RiskLevel};

/// A tool of a plugin or of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignToolInfo<'a> {
    /// What the model calls it.
    pub name: &'a str,
    /// Whose it is, for people: "the plugin `weather`".
    pub origin: &'a str,
    /// What the configuration says of it.
    pub risk: RiskLevel,
    /// Whether its sandbox lets it write to the workspace.
    pub writes: WriteAccess,
    /// Whether its sandbox lets it reach the network.
    pub network: NetworkReach,
}

/// What of the workspace a tool may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAccess {
    /// Nothing.
    None,
    /// All that no rule closes.
    Workspace,
}

/// What of the network a tool may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkReach {
    /// Nothing.
    None,
    /// Everything that the machine reaches.
    Full,
}

impl ForeignToolInfo<'_> {
    pub(crate) fn add_findings(&self, findings: &mut GateFindings) {
        let name = || self.name.to_owned();
        findings.add(GateReason::ForeignTool {
            name: name(),
            origin: self.origin.to_owned(),
            weight: self.risk.into(),
        });
        if self.writes == WriteAccess::Workspace {
            findings.add(GateReason::ForeignWrites { name: name() });
        }
        if self.network == NetworkReach::Full {
            findings.add(GateReason::ForeignNetwork { name: name() });
        }
    }
}
