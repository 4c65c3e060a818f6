//! The one way to run a tool.

use collieclaw_gate::Permit;
use collieclaw_gate::plan::Plan;

/// The right to run one prepared call, once. Only the door makes one, after gate, approval, stop and intent.
#[derive(Debug)]
pub struct Granted {
    permit: Permit,
}

impl Granted {
    /// What a shell line runs; `None` for other tools, and for a line that only a real shell can run.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.permit.plan()
    }
}
