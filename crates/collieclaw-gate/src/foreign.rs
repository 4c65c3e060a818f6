//! Tools of others. What they do with their arguments nobody here knows: they are judged by what they were configured
//! to be, and by what their sandbox lets them reach.

use crate::reason::Reason;
use crate::verdict::{Findings, Risk};

/// A tool of a plugin or of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// What the model calls it.
    pub name: &'a str,
    /// Whose it is, for people: "the plugin `weather`".
    pub origin: &'a str,
    /// What the configuration says of it.
    pub risk: Risk,
    /// Whether its sandbox lets it write to the workspace.
    pub writes: Writes,
    /// Whether its sandbox lets it reach the network.
    pub network: Reaches,
}

/// What of the workspace a tool may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Nothing.
    Nothing,
    /// All that no rule closes.
    Workspace,
}

/// What of the network a tool may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    /// Nothing.
    Nothing,
    /// Everything that the machine reaches.
    Network,
}

impl Foreign<'_> {
    pub(crate) fn found(&self, findings: &mut Findings) {
        let name = || self.name.to_owned();
        findings.add(Reason::ForeignTool {
            name: name(),
            origin: self.origin.to_owned(),
            weight: self.risk.into(),
        });
        if self.writes == Writes::Workspace {
            findings.add(Reason::ForeignWrites { name: name() });
        }
        if self.network == Reaches::Network {
            findings.add(Reason::ForeignNetwork { name: name() });
        }
    }
}
