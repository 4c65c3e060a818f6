//! The person at this login, as far as Shepherd knows them.

use shepherd_api::{ClientRole, Command, CommandReply, ErrorCode};
use shepherd_ipc::{AsyncClient, CallError};
use shepherd_util::ProfileId;

/// The person who sees the notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// A child, or anybody else whose time is counted.
    Child(ProfileId),
    /// A parent, who may answer requests.
    Parent,
    /// Somebody whom the policy doesn't mention.
    Other,
}

impl Recipient {
    /// Asks the daemon who is at this login. The daemon recognises an account, and shows it by the role that it gives,
    /// and by the profile whose entries it lists.
    pub(crate) async fn identify(client: &mut AsyncClient) -> Result<Self, CallError> {
        if client.welcome().role == ClientRole::Admin {
            return Ok(Self::Parent);
        }
        match client.call(Command::ListEntries { at_time: None, profile: None }).await {
            Ok(CommandReply::Entries { profile, .. }) => Ok(Self::Child(profile)),
            Ok(_) => Err(CallError::InvalidReply),
            Err(CallError::Refused(refusal)) if refusal.code == ErrorCode::UnknownProfile => Ok(Self::Other),
            Err(error) => Err(error),
        }
    }
}
