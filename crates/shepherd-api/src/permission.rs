//! Who may give a command (S11.3).

use crate::{ClientRole, Command};

impl Command {
    /// The least role that may give this command.
    ///
    /// It is the door, not the room: which profile's requests a client is shown, or whether a session is its own to
    /// stop, depends on what the daemon knows of both.
    #[must_use]
    pub fn required_role(&self) -> ClientRole {
        match self {
            // Whoever is connected at all may try to become more.
            Self::Authenticate { .. }
            | Self::GetState { .. }
            | Self::ListEntries { .. }
            | Self::Why { .. }
            | Self::Timeline { .. }
            | Self::Usage { .. }
            | Self::ListRequests { .. }
            | Self::SubscribeEvents { .. }
            | Self::Health { .. }
            | Self::Metrics { .. } => ClientRole::Observer,
            Self::Launch { .. } | Self::StopCurrent { .. } | Self::RequestTime { .. } => ClientRole::Shell,
            // The policy's text, the audit log and the list of all grants tell of everybody in the household.
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
