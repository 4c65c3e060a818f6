//! The first message each way (S10.1).
//!
//! Each side says the newest version it speaks, and the client also the oldest. They speak the newest that both know.
//! If there is none, the daemon says so, with [`ErrorCode::UnsupportedVersion`] and both versions in the sentence, and
//! ends the connection. Enforcement does not depend on any client, so nothing else happens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::ClientId;

use crate::{API_VERSION, ApiError, ErrorCode, OLDEST_API_VERSION};

/// What a client says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientHello {
    /// The newest version that the client speaks.
    pub api_version: u32,
    /// The oldest that it speaks; the same if absent.
    pub oldest_api_version: Option<u32>,
    /// What the client calls itself. For the log: nothing is permitted because of it.
    pub client: String,
}

impl ClientHello {
    /// What a client made with this code says.
    #[must_use]
    pub fn for_client(client: impl Into<String>) -> Self {
        Self { api_version: API_VERSION, oldest_api_version: Some(OLDEST_API_VERSION), client: client.into() }
    }

    /// The version to speak with this client.
    ///
    /// # Errors
    /// There is none that both know.
    pub fn negotiate_version(&self) -> Result<u32, ApiError> {
        let oldest = self.oldest_api_version.unwrap_or(self.api_version);
        let newest_common = self.api_version.min(API_VERSION);
        if newest_common >= oldest.max(OLDEST_API_VERSION) {
            return Ok(newest_common);
        }
        let cure = if self.api_version < OLDEST_API_VERSION { "client" } else { "daemon" };
        let sentence = format!(
            "This daemon speaks version {} of the protocol, the client {}. Update the {cure}.",
            format_version_range(OLDEST_API_VERSION, API_VERSION),
            format_version_range(oldest, self.api_version),
        );
        Err(ApiError::new(ErrorCode::UnsupportedVersion, sentence))
    }
}

fn format_version_range(oldest: u32, newest: u32) -> String {
    if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") }
}

/// What the daemon answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerWelcome {
    /// The newest version that the daemon speaks.
    pub api_version: u32,
    /// The version of this conversation.
    pub speaks: u32,
    /// The daemon's own version.
    pub daemon_version: String,
    /// What the daemon calls this connection.
    #[schemars(with = "String")]
    pub client_id: ClientId,
    /// What the client may do.
    pub role: ClientRole,
}

/// What a client may do (S11.3). Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientRole {
    /// Look.
    Observer,
    /// Launch, stop what it launched, ask for time.
    Shell,
    /// All.
    Admin,
}
