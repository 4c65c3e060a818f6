//! The role that each command needs (S11.3).

use crate::{ClientRole, Command};

impl Command {
    /// Returns the lowest role that may give this command.
    ///
    /// The daemon checks more than the role: which profile's requests a client sees, and whether a session is its own
    /// to stop, depends on the client and the session.
    #[must_use]
    pub fn required_role(&self) -> ClientRole {
        match self {
            // Any connected client may try to authenticate.
            Self::Authenticate { .. }
            | Self::GetState { .. }
            | Self::ListEntries { .. }
            | Self::Why { .. }
            | Self::Timeline { .. }
            | Self::Usage { .. }
            | Self::ListRequests { .. }
            | Self::SubscribeEvents { .. }
            | Self::Health { .. }
            | Self::CheckLogin { .. }
            | Self::Metrics { .. } => ClientRole::Observer,
            // The daemon returns only the output of sessions of the client's own profile, except to an administrator.
            Self::Launch { .. }
            | Self::StopCurrent { .. }
            | Self::RequestTime { .. }
            | Self::ReadSessionLog { .. } => ClientRole::Shell,
            // The policy's text, the audit log and the list of all grants reveal data of the whole household.
            Self::GetPolicy { .. }
            | Self::ReadAudit { .. }
            | Self::ListGrants { .. }
            | Self::ReloadConfig { .. }
            | Self::ExtendCurrent { .. }
            | Self::SetPolicy { .. }
            | Self::MarkRequestSeen { .. }
            | Self::DecideRequest { .. }
            | Self::Grant { .. }
            | Self::RevokeGrant { .. }
            | Self::SwitchMode { .. }
            | Self::ConfirmClock { .. }
            | Self::SetPin { .. } => ClientRole::Admin,
        }
    }
}
