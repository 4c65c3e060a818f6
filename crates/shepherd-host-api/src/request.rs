//! The requests that a host carries out. Each is complete, so that the host has nothing to decide.

use std::time::Duration;

use shepherd_core::UserDisplay;
use shepherd_core::policy::PolicyEntry;
use shepherd_util::{ProfileId, SessionId};

/// A request to start the program of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpawnRequest {
    /// The session that the program belongs to.
    pub session_id: SessionId,
    /// The entry to start, as the policy had it when the launch was approved.
    pub entry: PolicyEntry,
    /// The profile that the session is charged to.
    pub profile: ProfileId,
    /// The display of the desktop from which the program was launched. A host shows the program there if the program
    /// runs as the same user and the host has no screen of its own for it.
    pub display: Option<UserDisplay>,
}

/// A request to stop the program of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStopRequest {
    /// The session to stop.
    pub session_id: SessionId,
    /// The time between the request to the program and its kill. Zero kills at once, without a request.
    pub grace: Duration,
}
