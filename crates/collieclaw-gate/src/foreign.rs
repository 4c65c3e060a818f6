//! Tools of plugins and MCP servers. The gate can't interpret their arguments, so it judges such a tool by
//! the risk in its configuration and by the access that its sandbox grants.

use crate::reason::GateReason;
use crate::verdict::{GateFindings, RiskLevel};

/// The risk of a tool of a plugin or of an MCP server, and the access that its sandbox grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignToolAccess<'a> {
    /// The name by which the model calls the tool.
    pub name: &'a str,
    /// The owner of the tool, for people to read: "the plugin `weather`".
    pub origin: &'a str,
    /// The risk from the configuration.
    pub risk: RiskLevel,
    /// The write access that the sandbox grants.
    pub writes: WriteAccess,
    /// The network access that the sandbox grants.
    pub network: NetworkReach,
}

/// The part of the workspace that a tool may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAccess {
    None,
    /// Everything except protected paths.
    Workspace,
}

/// The part of the network that a tool may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkReach {
    None,
    Full,
}

impl ForeignToolAccess<'_> {
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
