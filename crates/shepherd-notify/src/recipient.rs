//! The person at this login, as far as Shepherd knows them.

use shepherd_api::{ApiError, ClientRole, Command, CommandReply, ErrorCode};
use shepherd_ipc::{AsyncClient, CallError, ClientOptions, ConnectError};
use shepherd_util::ProfileId;

/// The person who sees the notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// A child, or anybody else whose time is counted.
    Child(ProfileId),
    /// A parent, who may answer requests.
    Parent,
    /// Somebody whom the policy doesn't mention, or a parent who needs the PIN.
    Other,
}

/// A call to the daemon that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonCallError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Call(#[from] CallError),
}

impl DaemonCallError {
    /// Returns the daemon's own error, if it sent one.
    pub(crate) fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Connect(ConnectError::Refused(error)) => Some(error),
            Self::Connect(_) => None,
            Self::Call(error) => error.api_error(),
        }
    }
}

impl Recipient {
    /// Asks the daemon who is at this login. The daemon recognises an account, and shows it by the role that it gives,
    /// and by the profile whose entries it lists.
    pub(crate) async fn identify(options: &ClientOptions) -> Result<Self, DaemonCallError> {
        match Self::ask(options).await {
            Err(error) if error.api_error().is_some_and(is_for_nobody) => Ok(Self::Other),
            asked => asked,
        }
    }

    async fn ask(options: &ClientOptions) -> Result<Self, DaemonCallError> {
        let mut client = AsyncClient::connect(options).await?;
        if client.welcome().role == ClientRole::Admin {
            return Ok(Self::Parent);
        }
        match client.call(Command::ListEntries { at_time: None, profile: None }).await? {
            CommandReply::Entries { profile, .. } => Ok(Self::Child(profile)),
            _ => Err(CallError::InvalidReply.into()),
        }
    }
}

/// Returns whether an error means that no profile belongs to this login, or none that it may see without the PIN. Only
/// new rules change that.
fn is_for_nobody(error: &ApiError) -> bool {
    matches!(error.code, ErrorCode::UnknownProfile | ErrorCode::NotPermitted | ErrorCode::PinRequired)
}

#[cfg(test)]
mod tests;
