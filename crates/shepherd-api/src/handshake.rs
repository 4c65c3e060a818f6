//! The handshake: the first message in each direction (S10.1).
//!
//! Each side names the newest version that it supports; the client also names the oldest. Both use the newest common
//! version. Without a common version the daemon answers [`ErrorCode::UnsupportedVersion`] with both versions in the
//! sentence and closes the connection. Enforcement doesn't depend on any client, so nothing else happens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::ClientId;

use crate::{API_VERSION, ApiError, ErrorCode, OLDEST_API_VERSION};

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientHello {
    /// The newest version that the client supports.
    pub api_version: u32,
    /// The oldest version that the client supports; the newest one if absent.
    pub oldest_api_version: Option<u32>,
    /// The client's own name, for the log. It grants no permission.
    pub client: String,
}

impl ClientHello {
    /// Creates the greeting of a client that is built with this crate.
    #[must_use]
    pub fn for_client(client: impl Into<String>) -> Self {
        Self { api_version: API_VERSION, oldest_api_version: Some(OLDEST_API_VERSION), client: client.into() }
    }

    /// Returns the version to use with this client.
    ///
    /// # Errors
    /// There is no version that both sides support.
    pub fn negotiate_version(&self) -> Result<u32, ApiError> {
        let oldest = self.oldest_api_version.unwrap_or(self.api_version);
        let newest_common = self.api_version.min(API_VERSION);
        if newest_common >= oldest.max(OLDEST_API_VERSION) {
            return Ok(newest_common);
        }
        let cure = if self.api_version < OLDEST_API_VERSION { "client" } else { "daemon" };
        let sentence = format!(
            "The daemon supports protocol version {}, the client {}. Update the {cure}.",
            format_version_range(OLDEST_API_VERSION, API_VERSION),
            format_version_range(oldest, self.api_version),
        );
        Err(ApiError::new(ErrorCode::UnsupportedVersion, sentence))
    }
}

fn format_version_range(oldest: u32, newest: u32) -> String {
    if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") }
}

/// The daemon's answer to the handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerWelcome {
    /// The newest version that the daemon supports.
    pub api_version: u32,
    /// The version that this connection uses.
    pub speaks: u32,
    /// The version of the daemon program.
    pub daemon_version: String,
    /// The daemon's id for this connection.
    #[schemars(with = "String")]
    pub client_id: ClientId,
    /// The role of the client.
    pub role: ClientRole,
    /// The role of the client once it has given the PIN. Older daemons don't say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_with_pin: Option<ClientRole>,
}

/// The role of a client (S11.3). Each role includes the permissions of the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientRole {
    /// Can read the state.
    Observer,
    /// Can launch entries, stop its own sessions and ask for time.
    Shell,
    /// Can give every command.
    Admin,
}
