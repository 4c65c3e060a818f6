//! What a host is told to do: complete, so that it has nothing to decide.

use std::time::Duration;

use shepherd_core::policy::PolicyEntry;
use shepherd_util::{ProfileId, SessionId};

/// Start this.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpawnRequest {
    /// For which session.
    pub session_id: SessionId,
    /// What to start, as the policy had it when it was approved.
    pub entry: PolicyEntry,
    /// Whose time it is.
    pub profile: ProfileId,
}

/// End this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStopRequest {
    /// Which session.
    pub session_id: SessionId,
    /// How long it may take after it was asked; zero is the kill at once.
    pub grace: Duration,
}
